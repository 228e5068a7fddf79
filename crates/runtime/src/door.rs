//! The door checks every message before it is delivered: messages that tools send, closing texts of turns, and prompts
//! of the person. This module gathers the facts that the rules of the door need, lets the rules decide, and writes the
//! result. Only the system's own notices bypass the door.

use polity_decide::result::{self, Misfit};
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
use polity_store::agents::AgentRow;
use polity_store::contacts::ContactRow;
use polity_store::messages::{Arrival, RequestsOf, Streak};
use polity_store::{
    Conversation, Error, Stopped, Tx, agents, apply, artifacts, contacts, events, messages, notes, tasks,
    turns,
};
use polity_view::Event;
use serde_json::Value;
use std::collections::BTreeSet;

/// Returns the contacts of an agent in a task, in the form that the rules need.
pub(crate) async fn known_parties(
    connection: &mut Connection,
    catalogue: &Catalogue,
    owner: &Conversation,
) -> Result<Vec<KnownParty>, Error> {
    Ok(known(contacts::of(connection, &owner.agent, &owner.task).await?, catalogue))
}

/// Returns contacts in the form that the rules need. This form contains the capabilities of a contact's service. They
/// are read from this catalogue (list of services).
pub(crate) fn known(rows: Vec<ContactRow>, catalogue: &Catalogue) -> Vec<KnownParty> {
    let known = rows.into_iter().map(|row| KnownParty {
        party: row.agent.party(catalogue),
        source: row.source,
        introduced_by: row.introduced_by,
        since: row.since,
    });
    known.collect()
}

/// Returns the mentioned artifacts that an agent may open.
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

/// Returns the artifacts of a payload: its attachments, and the artifacts that its text names.
pub(crate) fn mentioned(payload: &Payload) -> Vec<ArtifactId> {
    let mut all = payload.attachments.clone();
    let named = ArtifactId::all_in(&payload.to_json_text());
    all.extend(named.into_iter().filter(|id| !payload.attachments.contains(id)));
    all
}

/// A message that the door has admitted.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) id: MessageId,
    pub(crate) to: AgentId,
    /// The ids in the message's `request_id` that belong to no open request.
    pub(crate) ignored: Vec<MessageId>,
}

/// Returns the request that an agent's open turn works on: the request that began the turn, or the oldest open request.
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

/// Sends a draft. If the draft is refused, nothing is written, with one exception: if two agents have answered each
/// other too often (the pair limit), both get a notice.
pub(crate) async fn send(
    tx: &mut Tx,
    snapshot: &Snapshot,
    sender: &Conversation,
    draft: Draft,
    last_word: LastWord,
) -> Result<Sent, Stopped> {
    let requests = messages::requests_of(&mut tx.connection, sender).await?;
    send_fitting(tx, snapshot, sender, draft, last_word, Misfit::Marked, requests).await
}

/// Sends a draft as [`send`] does. `misfit` decides what happens to an answer that does not fit its schema. `requests`
/// are the requests on which the draft can depend.
pub(crate) async fn send_fitting(
    tx: &mut Tx,
    snapshot: &Snapshot,
    sender: &Conversation,
    draft: Draft,
    last_word: LastWord,
    misfit: Misfit,
    requests: RequestsOf,
) -> Result<Sent, Stopped> {
    if let Some(problem) = unreadable_schema(&draft.payload) {
        return Err(Refusal::InvalidMessage(vec![problem]).into());
    }
    let Some(row) = agents::get(&mut tx.connection, &sender.agent).await? else {
        let what = format!("{} is missing", sender.agent);
        return Err(Error::Damaged { table: "agents", what }.into());
    };
    let contacts = known_parties(&mut tx.connection, &snapshot.catalogue, sender).await?;
    let known = contact::find(&contacts, &draft.to)?;
    let receiver = known.map_or(&sender.agent, |known| &known.party.id).clone();
    let mut pending = requests.pending;
    if matches!(draft.answering, Answering::Closing(_)) {
        // The turn ends with this text. Messages that the turn has not read will begin another turn, in which the
        // agent will say more. So the requests of these messages count as pending, too.
        pending.extend(requests.unheard);
    }
    let mailbox = Conversation { agent: receiver.clone(), task: sender.task.clone() };
    let max_queue = snapshot.settings.limits.max_queue;
    let arrival = messages::arrival(tx, &sender.agent, &mailbox, max_queue).await?;
    let Arrival { known, queued, id, reopens } = arrival;
    let streak = if sender.agent.is_user() || receiver.is_user() {
        Streak::default()
    } else {
        messages::streak(&mut tx.connection, &sender.task, &sender.agent, &receiver).await?
    };
    let facts = DoorFacts {
        task: sender.task.clone(),
        sender: row.party(&snapshot.catalogue),
        acquaintance: if known { Acquaintance::Known } else { Acquaintance::New },
        open_requests: requests.open,
        works_on: requests.works_on,
        pending,
        last_word,
        queued,
        exchanges: streak.exchanges,
        openable: openable(&mut tx.connection, sender, &mentioned(&draft.payload)).await?,
        contacts,
    };
    let admitted = rules::admit(draft, &facts, id.clone(), &snapshot.settings.limits);
    if let Err(Refusal::LimitReached { limit: PAIR_LIMIT, value }) = admitted {
        tell_pair(tx, snapshot, sender, &receiver, streak.after, value).await?;
    }
    let Admitted { mut changes, ignored } = admitted?;
    check_result(tx, sender, &row, &mut changes, misfit).await?;
    apply::apply(tx, snapshot, changes).await?;
    if sender.agent.is_user() && reopens {
        tasks::reopen(tx, &sender.task).await?;
    }
    notes::named(tx, sender, &receiver, &facts.openable).await?;
    Ok(Sent { id, to: receiver, ignored })
}

/// Returns what is wrong with the schema in a draft.
fn unreadable_schema(payload: &Payload) -> Option<FieldProblem> {
    let error = result::read(&payload.result_schema()?).err()?;
    let name =
        if payload.fields.contains_key(RESULT_SCHEMA) { "result_schema" } else { "taskBrief.result_schema" };
    Some(FieldProblem::new(name, Fault::Rule(error)))
}

/// Returns the schemas that the answer to these requests must fit. Each request may contain a schema. If the first
/// request of a parent contains no schema, the schema of the task brief applies. `agent` is the row of the answering
/// agent.
pub(crate) async fn schemas(
    tx: &mut Tx,
    answering: &Conversation,
    agent: &AgentRow,
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
        let Some(schema) = agent.brief.as_ref().and_then(TaskBrief::result_schema) else { continue };
        let is_of_parent = agent.parent.is_some() && request.from.party() == agent.parent.as_ref();
        let parent = agent.parent.clone().unwrap_or_else(AgentId::user);
        let first = messages::first_between(&mut tx.connection, &parent, answering).await?;
        if is_of_parent && first.as_ref() == Some(id) {
            schemas.push(schema);
        }
    }
    Ok(schemas)
}

/// Compares an answer with the schemas of its requests. If the answer fits, it gets a field with the result as JSON. If
/// it does not fit, `misfit` decides whether it is refused or marked. An interim answer is checked too, because it may
/// become the last answer. But if an interim answer does not fit, it is sent unchanged.
async fn check_result(
    tx: &mut Tx,
    sender: &Conversation,
    agent: &AgentRow,
    changes: &mut [Change],
    misfit: Misfit,
) -> Result<(), Stopped> {
    let answered = |change: &Change| match change {
        Change::RequestAnswered { request, .. } => Some(request.clone()),
        _ => None,
    };
    let answered: Vec<MessageId> = changes.iter().filter_map(answered).collect();
    let accepted = changes.iter_mut().find_map(|change| match change {
        Change::MessageAccepted(message) => Some(message),
        _ => None,
    });
    let Some(message) = accepted else { return Ok(()) };
    let is_interim = message.finality == Finality::Interim;
    let requests = if is_interim { message.in_reply_to.clone() } else { answered };
    let schemas = schemas(tx, sender, agent, &requests).await?;
    let Body::Payload(payload) = &mut message.body else { return Ok(()) };
    if schemas.is_empty() {
        return Ok(());
    }
    match result::fit(payload, &schemas) {
        Ok(value) => payload.fields.insert(RESULT.to_owned(), value),
        Err(_) if is_interim => None,
        Err(errors) if misfit == Misfit::Refused => return Err(Refusal::ResultDoesNotFit { errors }.into()),
        Err(errors) => payload.fields.insert(SCHEMA_ERRORS.to_owned(), errors.into()),
    };
    Ok(())
}

/// Two agents have answered each other too often. Tells both that no more messages are delivered between them. The
/// series of these answers began at `since`. Each agent is told only once during a series.
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
