//! Gathers what the mailbox's door needs to know, has the rules decide, and writes what they say. Every message but the
//! system's own notices comes through here: tools, closing texts, the person's prompts.

use crate::decide::result::{self, Misfit};
use polity_registry::{Catalogue, Snapshot};
use polity_society::brief::TaskBrief;
use polity_society::change::Change;
use polity_society::contact::{self, KnownParty};
use polity_society::id::{AgentId, ArtifactId, MessageId};
use polity_society::message::{Body, Finality, Payload, RESULT, RESULT_SCHEMA, SCHEMA_ERRORS};
use polity_society::notice::Notice;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::rules::{
    self, Acquaintance, Admitted, Answering, DoorFacts, Draft, LastWord, PAIR_LIMIT,
};
use polity_store::Connection;
use polity_store::contacts::ContactRow;
use polity_store::messages::Streak;
use polity_store::{
    Conversation, Error, Tx, agents, apply, artifacts, contacts, events, messages, notes, turns,
};
use polity_view::Event;
use serde_json::Value;
use std::collections::BTreeSet;

/// An agent's registry in a task, as the rules see it.
pub(crate) async fn known_parties(
    connection: &mut Connection,
    catalogue: &Catalogue,
    owner: &Conversation,
) -> Result<Vec<KnownParty>, Error> {
    Ok(known(contacts::of(connection, &owner.agent, &owner.task).await?, catalogue))
}

/// Entries as the rules see them, with the capabilities that each party's service has in this catalogue.
pub(crate) fn known(rows: Vec<ContactRow>, catalogue: &Catalogue) -> Vec<KnownParty> {
    let known = rows.into_iter().map(|row| KnownParty {
        party: row.agent.party(catalogue),
        source: row.source,
        introduced_by: row.introduced_by,
        since: row.since,
    });
    known.collect()
}

/// Of the artifacts that a text mentions, those that an agent may open.
pub(crate) async fn openable(
    connection: &mut Connection,
    owner: &Conversation,
    mentioned: &[ArtifactId],
) -> Result<BTreeSet<ArtifactId>, Error> {
    if mentioned.is_empty() {
        return Ok(BTreeSet::new());
    }
    Ok(artifacts::may_open(connection, &owner.agent, mentioned).await?.into_iter().collect())
}

/// The artifacts of a payload: its attachments, and those that its text names.
pub(crate) fn mentioned(payload: &Payload) -> Vec<ArtifactId> {
    let mut all = payload.attachments.clone();
    let named = ArtifactId::all_in(&payload.to_json_text());
    all.extend(named.into_iter().filter(|id| !payload.attachments.contains(id)));
    all
}

/// A message that was accepted.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Its id.
    pub(crate) id: MessageId,
    /// The ids in its `request_id` that name no open request.
    pub(crate) ignored: Vec<MessageId>,
}

/// The request that an agent works on in its open turn: the one that the turn began with, else the oldest that it owes.
pub(crate) async fn worked_on(
    connection: &mut Connection,
    agent: &Conversation,
) -> Result<Option<MessageId>, Error> {
    let Some(turn) = turns::open(connection, agent).await? else { return Ok(None) };
    match turn.works_on {
        Some(request) => Ok(Some(request)),
        None => Ok(messages::open_requests(connection, agent).await?.into_iter().next().map(|open| open.id)),
    }
}

/// Sends a draft, or says why not. Nothing is written where it is refused.
pub(crate) async fn send(
    tx: &mut Tx,
    snapshot: &Snapshot,
    sender: &Conversation,
    draft: Draft,
    last_word: LastWord,
) -> Result<Result<Sent, Refusal>, Error> {
    send_fitting(tx, snapshot, sender, draft, last_word, Misfit::Marked).await
}

/// As [`send`], and says what becomes of an answer that does not fit the schema that was asked for.
pub(crate) async fn send_fitting(
    tx: &mut Tx,
    snapshot: &Snapshot,
    sender: &Conversation,
    draft: Draft,
    last_word: LastWord,
    misfit: Misfit,
) -> Result<Result<Sent, Refusal>, Error> {
    if let Some(problem) = unreadable_schema(&draft.payload) {
        return Ok(Err(Refusal::InvalidMessage(vec![problem])));
    }
    let Some(row) = agents::get(&mut tx.connection, &sender.agent).await? else {
        return Err(Error::Damaged { table: "agents", what: format!("{} is missing", sender.agent) });
    };
    let contacts = known_parties(&mut tx.connection, &snapshot.catalogue, sender).await?;
    let receiver = match contact::find(&contacts, &draft.to) {
        Ok(known) => known.map_or(&sender.agent, |known| &known.party.id).clone(),
        Err(refusal) => return Ok(Err(refusal)),
    };
    let acquaintance = if contacts::knows(&mut tx.connection, &receiver, &sender.agent).await? {
        Acquaintance::Known
    } else {
        Acquaintance::New
    };
    let mut pending = messages::pending(&mut tx.connection, sender).await?;
    if matches!(draft.answering, Answering::Closing(_)) {
        // A turn ends with this text: what came meanwhile is heard in the next one, which says more.
        pending.extend(messages::unheard(&mut tx.connection, sender).await?);
    }
    let mailbox = Conversation { agent: receiver.clone(), task: sender.task.clone() };
    let streak = if sender.agent.is_user() || receiver.is_user() {
        Streak::default()
    } else {
        messages::streak(&mut tx.connection, &sender.task, &sender.agent, &receiver).await?
    };
    let facts = DoorFacts {
        task: sender.task.clone(),
        sender: row.party(&snapshot.catalogue),
        acquaintance,
        open_requests: messages::open_requests(&mut tx.connection, sender).await?,
        works_on: turns::open(&mut tx.connection, sender).await?.and_then(|turn| turn.works_on),
        pending,
        last_word,
        queued: messages::queued(&mut tx.connection, &mailbox, snapshot.settings.limits.max_queue).await?,
        exchanges: streak.exchanges,
        openable: openable(&mut tx.connection, sender, &mentioned(&draft.payload)).await?,
        contacts,
    };
    let id = messages::next_id(tx).await?;
    match rules::admit(draft, &facts, id.clone(), &snapshot.settings.limits) {
        Ok(Admitted { mut changes, ignored }) => {
            if let Some(refusal) = check_result(tx, sender, &mut changes, misfit).await? {
                return Ok(Err(refusal));
            }
            apply::apply(tx, snapshot, changes).await?;
            notes::named(tx, sender, &receiver, &facts.openable).await?;
            Ok(Ok(Sent { id, ignored }))
        }
        Err(refusal) => {
            if let Refusal::LimitReached { limit: PAIR_LIMIT, value } = refusal {
                tell_pair(tx, snapshot, sender, &receiver, streak.after, value).await?;
            }
            Ok(Err(refusal))
        }
    }
}

/// What is wrong with the schema that a draft asks for.
fn unreadable_schema(payload: &Payload) -> Option<FieldProblem> {
    let error = result::read(&payload.result_schema()?).err()?;
    let name =
        if payload.fields.contains_key(RESULT_SCHEMA) { "result_schema" } else { "taskBrief.result_schema" };
    Some(FieldProblem::new(name, Fault::Rule(error)))
}

/// The schemas that the answer to a request is to fit: its own; for the first request of a parent, that of the brief.
pub(crate) async fn schemas(
    tx: &mut Tx,
    answering: &Conversation,
    requests: &[MessageId],
) -> Result<Vec<Value>, Error> {
    let mut schemas = Vec::new();
    for id in requests {
        let Some(request) = messages::get(&mut tx.connection, id).await? else { continue };
        let Body::Payload(asked) = &request.body else { continue };
        if let Some(schema) = asked.result_schema() {
            schemas.push(schema);
            continue;
        }
        let Some(agent) = agents::get(&mut tx.connection, &answering.agent).await? else { continue };
        let Some(schema) = agent.brief.as_ref().and_then(TaskBrief::result_schema) else { continue };
        let is_of_parent = agent.parent.is_some() && request.from.party() == agent.parent.as_ref();
        let parent = agent.parent.unwrap_or_else(AgentId::user);
        let first = messages::first_between(&mut tx.connection, &parent, answering).await?;
        if is_of_parent && first.as_ref() == Some(id) {
            schemas.push(schema);
        }
    }
    Ok(schemas)
}

/// Compares an answer with what was asked for: what fits gets its result as JSON, all else is refused or marked. What is
/// said while more is to come may turn out to be the answer: it gets its result where it fits, and nothing else.
async fn check_result(
    tx: &mut Tx,
    sender: &Conversation,
    changes: &mut [Change],
    misfit: Misfit,
) -> Result<Option<Refusal>, Error> {
    let answered = |change: &Change| match change {
        Change::RequestAnswered { request, .. } => Some(request.clone()),
        _ => None,
    };
    let answered: Vec<MessageId> = changes.iter().filter_map(answered).collect();
    let accepted = changes.iter_mut().find_map(|change| match change {
        Change::MessageAccepted(message) => Some(message),
        _ => None,
    });
    let Some(message) = accepted else { return Ok(None) };
    let is_interim = message.finality == Finality::Interim;
    let requests = if is_interim { message.in_reply_to.clone() } else { answered };
    let schemas = schemas(tx, sender, &requests).await?;
    let Body::Payload(payload) = &mut message.body else { return Ok(None) };
    if schemas.is_empty() {
        return Ok(None);
    }
    match result::fit(payload, &schemas) {
        Ok(value) => payload.fields.insert(RESULT.to_owned(), value),
        Err(_) if is_interim => None,
        Err(errors) if misfit == Misfit::Refused => return Ok(Some(Refusal::ResultDoesNotFit { errors })),
        Err(errors) => payload.fields.insert(SCHEMA_ERRORS.to_owned(), errors.into()),
    };
    Ok(None)
}

/// Tells both of a pair that no more is delivered between them, once for each streak.
async fn tell_pair(
    tx: &mut Tx,
    snapshot: &Snapshot,
    sender: &Conversation,
    receiver: &AgentId,
    since: i64,
    limit: u64,
) -> Result<(), Error> {
    for (to, other) in [(receiver, &sender.agent), (&sender.agent, receiver)] {
        let notice = Notice::PairLimit { agent: other.clone(), limit };
        if messages::was_told(&mut tx.connection, &sender.task, to, since, &notice).await? {
            continue;
        }
        apply::tell(tx, snapshot, &sender.task, to, notice, None).await?;
        let event = Event::LimitReached {
            task: sender.task.clone(),
            agent: to.clone(),
            limit: PAIR_LIMIT.to_owned(),
            value: limit.into(),
        };
        events::append(tx, &event).await?;
    }
    Ok(())
}
