//! An agent is at rest if it has no open turn and no queued message. This module does what is due when an agent comes
//! to rest. It delivers the texts that the agent held. It reminds the agent of the answers that the agent owes. It
//! gives the askers the artifacts that were made for them (docs/contract.md, section 7, "Nobody is left without an
//! answer"). [`rules::due`] decides what is due. This module only gathers the facts and writes the result, in the
//! transaction that brought the agent to rest.

use crate::door;
use polity_decide::idle::interim_is_final;
use polity_registry::Snapshot;
use polity_society::agent::Standing;
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::Payload;
use polity_society::notice::{Notice, Quoted};
use polity_society::present::first_words;
use polity_society::rules::{
    self, Answering, Cause, Draft, Due, Held, LastWord, Owed, Provisional, RestFacts, Subject, Unnamed,
};
use polity_store::notes::{self, Left};
use polity_store::tasks::{self, Standing as TaskStanding};
use polity_store::{Conversation, Error, Tx, agents, apply, artifacts, events, keep, messages, turns};
use polity_view::Event;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum characters of a held text that a reminder quotes. The reminded agent has the whole text in its own
/// history.
const NOTE_CHARS: usize = 200;

/// Checks an agent whose turn has just ended. Then checks the agents that were waiting for this turn.
pub(crate) async fn after_turn(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
) -> Result<(), Error> {
    look(tx, snapshot, conversation, Cause::TurnEnded).await?;
    after_waits(tx, snapshot).await
}

/// Checks the agents whose wait has ended in this transaction.
pub(crate) async fn after_waits(tx: &mut Tx, snapshot: &Snapshot) -> Result<(), Error> {
    while let Some(waited) = tx.released.pop() {
        if !waited.agent.is_user() {
            look(tx, snapshot, &waited, Cause::WaitEnded).await?;
        }
    }
    Ok(())
}

/// Does what is due for an agent at rest. Does nothing if the agent is in a turn or has mail. At the end of the agent's
/// turn, this function is called again.
async fn look(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    cause: Cause,
) -> Result<(), Error> {
    // If a turn has ended and has left nothing to do, no further check is needed. If a wait has ended, the check is
    // needed, because an interim message of the agent to the person may now be the agent's last word.
    if cause == Cause::TurnEnded && notes::left(&mut tx.connection, conversation).await? == Left::Nothing
        || turns::open(&mut tx.connection, conversation).await?.is_some()
        || messages::any_queued(&mut tx.connection, conversation).await?
        || !is_active(tx, &conversation.agent).await?
    {
        return Ok(());
    }
    loop {
        let facts = facts(tx, conversation, cause).await?;
        match rules::due(&facts) {
            None => return Ok(()),
            Some(Due::Deliver(held)) => deliver(tx, snapshot, conversation, &facts, &held).await?,
            Some(Due::Settle(provisional)) => {
                settle_provisional(tx, conversation, &provisional).await?;
            }
            Some(Due::Remind { asker, requests }) if is_active(tx, &asker).await? => {
                return remind(tx, snapshot, conversation, &facts, &asker, &requests).await;
            }
            Some(Due::Remind { asker, .. } | Due::GiveUp { asker, .. }) => {
                give_up(tx, snapshot, conversation, &facts, &asker).await?;
            }
        }
    }
}

async fn is_active(tx: &mut Tx, agent: &AgentId) -> Result<bool, Error> {
    let row = agents::get(&mut tx.connection, agent).await?;
    Ok(row.is_some_and(|row| row.standing == Standing::Active))
}

async fn facts(tx: &mut Tx, of: &Conversation, cause: Cause) -> Result<RestFacts, Error> {
    let told = match cause {
        Cause::WaitEnded => messages::last_told_user(&mut tx.connection, of).await?,
        Cause::TurnEnded => None,
    };
    Ok(RestFacts {
        cause,
        pending: messages::pending(&mut tx.connection, of).await?,
        unnamed: notes::unnamed(&mut tx.connection, of).await?,
        held: notes::held(&mut tx.connection, of).await?,
        provisional: told,
        owed: messages::owed(&mut tx.connection, of).await?,
    })
}

/// Sends, as one message, the texts that were held for a request. If this message answers other requests too, it also
/// contains the texts that were held for those requests. Leaves out texts that the asker has already got.
async fn deliver(
    tx: &mut Tx,
    snapshot: &Snapshot,
    from: &Conversation,
    facts: &RestFacts,
    held: &Held,
) -> Result<(), Error> {
    let Held { request, asker, answers } = held;
    let owed = owed_to(&facts.owed, asker).map(|owed| owed.request.clone());
    let open: Vec<MessageId> = owed.filter(|owed| answers.contains(owed)).collect();
    let subject =
        if open.is_empty() { Subject::Settled(request.clone()) } else { Subject::Open(open.clone()) };
    let concerned = [std::slice::from_ref(request), &open].concat();
    let mut texts: Vec<String> = Vec::new();
    let mut repeated = None;
    for text in notes::of_requests(&mut tx.connection, from, &concerned).await? {
        let named = subject.requests();
        match messages::said_before(&mut tx.connection, from, asker, named, &text).await? {
            Some(earlier) => repeated = Some(earlier.id),
            None if texts.iter().any(|other| other.trim() == text.trim()) => {}
            None => texts.push(text),
        }
    }
    notes::drop(tx, from, &concerned).await?;
    if texts.is_empty() {
        // The asker has already got all these texts in an earlier message, so this earlier message is the answer.
        return match repeated {
            Some(earlier) if !open.is_empty() => settle(tx, from, &earlier, &open).await,
            Some(_) | None => Ok(()),
        };
    }
    let draft = Draft {
        to: asker.to_string(),
        payload: Payload::text(texts.join("\n\n")),
        answering: Answering::Closing(subject),
        due_at: None,
    };
    if let Err(refusal) = keep(door::send(tx, snapshot, from, draft, LastWord::UnlessWaiting).await)? {
        // The door has refused the text. The asker is told, because otherwise it would wait for ever.
        let reason = refusal.message(&snapshot.prompts.texts);
        for request in &open {
            messages::fail(tx, request).await?;
        }
        let notice = Notice::ReceiverFailed { agent: from.agent.clone(), message: request.clone(), reason };
        apply::tell(tx, snapshot, &from.task, asker, notice, Some(request.clone())).await?;
    }
    polity_points::point!("rest::delivered");
    Ok(())
}

/// Makes an earlier message final, and records this message as the answer to these requests.
pub(crate) async fn settle(
    tx: &mut Tx,
    by: &Conversation,
    message: &MessageId,
    answers: &[MessageId],
) -> Result<(), Error> {
    messages::settle_interim(tx, message).await?;
    for request in answers {
        messages::answer(tx, request, message).await?;
    }
    polity_points::point!("rest::settled");
    let event = Event::AnswerSettled {
        task: by.task.clone(),
        agent: by.agent.clone(),
        message: message.clone(),
        answers: answers.to_vec(),
    };
    events::append(tx, &event).await
}

fn owed_to<'f>(owed: &'f [Owed], asker: &'f AgentId) -> impl Iterator<Item = &'f Owed> {
    owed.iter().filter(move |owed| owed.asker == *asker)
}

/// Returns the unfinished requests of an asker. A request is unfinished if it is open. It is also unfinished if the
/// agent wrote or stored something for it, and this was not delivered.
fn concerned(facts: &RestFacts, asker: &AgentId) -> BTreeSet<MessageId> {
    let owed = owed_to(&facts.owed, asker).map(|owed| owed.request.clone());
    let stored = facts.unnamed.iter().filter(|unnamed: &&Unnamed| unnamed.asker == *asker);
    let written = facts.held.iter().filter(|held: &&Held| held.asker == *asker);
    let made = stored.map(|unnamed| &unnamed.request).chain(written.map(|held| &held.request));
    owed.chain(made.cloned()).collect()
}

async fn remind(
    tx: &mut Tx,
    snapshot: &Snapshot,
    who: &Conversation,
    facts: &RestFacts,
    asker: &AgentId,
    requests: &[MessageId],
) -> Result<(), Error> {
    let concerned = concerned(facts, asker);
    let all: Vec<MessageId> = concerned.iter().cloned().collect();
    let open: Vec<MessageId> = owed_to(&facts.owed, asker).map(|owed| owed.request.clone()).collect();
    let notes = notes::of_requests(&mut tx.connection, who, &all).await?;
    let notice = Notice::Reminder {
        asker: asker.clone(),
        requests: quoted(tx, snapshot, &open).await?,
        notes: notes.into_iter().map(|note| beginning(&note)).collect(),
        artifacts: notes::stored_for(&mut tx.connection, who, asker).await?,
    };
    messages::mark_reminded(tx, &concerned).await?;
    polity_points::point!("rest::reminded");
    apply::tell(tx, snapshot, &who.task, &who.agent, notice, requests.first().cloned()).await
}

fn beginning(note: &str) -> String {
    match note.char_indices().nth(NOTE_CHARS) {
        Some((end, _)) => format!("{}…", &note[..end]),
        None => note.to_owned(),
    }
}

async fn quoted(tx: &mut Tx, snapshot: &Snapshot, ids: &[MessageId]) -> Result<Vec<Quoted>, Error> {
    let mut quoted = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(message) = messages::get(&mut tx.connection, id).await? {
            quoted.push(Quoted { id: id.clone(), words: first_words(&message, &snapshot.prompts.texts) });
        }
    }
    Ok(quoted)
}

/// Tells an asker that no answer will come. Also gives the asker everything that the agent has made for this asker. If
/// the asker is the person, the person is told only if the agent has made something for the person.
async fn give_up(
    tx: &mut Tx,
    snapshot: &Snapshot,
    who: &Conversation,
    facts: &RestFacts,
    asker: &AgentId,
) -> Result<(), Error> {
    let open: Vec<MessageId> = owed_to(&facts.owed, asker).map(|owed| owed.request.clone()).collect();
    let concerned: Vec<MessageId> = concerned(facts, asker).into_iter().collect();
    let artifacts = notes::stored_for(&mut tx.connection, who, asker).await?;
    let written = notes::of_requests(&mut tx.connection, who, &concerned).await?;
    let requests = quoted(tx, snapshot, &open).await?;
    for request in &open {
        messages::give_up(tx, request).await?;
    }
    for artifact in &artifacts {
        artifacts::grant(&mut tx.connection, asker, &artifact.id).await?;
    }
    notes::drop(tx, who, &concerned).await?;
    notes::forget(tx, who, asker).await?;
    polity_points::point!("rest::given_up");
    if asker.is_user() && artifacts.is_empty() && written.is_empty() {
        return Ok(());
    }
    let agent = who.agent.clone();
    let notice = if requests.is_empty() {
        Notice::Leftover { agent, notes: written, artifacts }
    } else {
        Notice::Unanswered { agent, requests, notes: written, artifacts }
    };
    apply::tell(tx, snapshot, &who.task, asker, notice, concerned.into_iter().next()).await
}

/// Reminds root that the person has heard nothing final.
pub(crate) async fn nudge(tx: &mut Tx, snapshot: &Snapshot, task: &TaskId) -> Result<(), Error> {
    let (root, asked) = asked_by_user(tx, task).await?;
    let about = match asked {
        Some(request) => Some(request),
        // No request of the person is open. So the nudge is about the request to which the last message to the person
        // belongs. That message was not final, so the person still waits for more.
        None => {
            let told = messages::last_told_user(&mut tx.connection, &root).await?;
            told.and_then(|told| told.requests.into_iter().next())
        }
    };
    apply::tell(tx, snapshot, task, &root.agent, Notice::Nudge, about).await
}

/// Tells root to go on with the person's request after a turn that failed.
pub(crate) async fn try_again(tx: &mut Tx, snapshot: &Snapshot, task: &TaskId) -> Result<(), Error> {
    let (root, asked) = asked_by_user(tx, task).await?;
    apply::tell(tx, snapshot, task, &root.agent, Notice::TryAgain, asked).await
}

/// Returns the conversation of root in a task, and the first open request of the person in it.
async fn asked_by_user(tx: &mut Tx, task: &TaskId) -> Result<(Conversation, Option<MessageId>), Error> {
    let root = Conversation { agent: AgentId::root(), task: task.clone() };
    let open = messages::open_requests(&mut tx.connection, &root).await?;
    let asked = open.into_iter().find(|request| request.from.is_user());
    Ok((root, asked.map(|request| request.id)))
}

/// Writes that a task is idle, because nothing is left to do in it. `worked` is how long agents have worked for the task.
pub(crate) async fn end_task(
    tx: &mut Tx,
    snapshot: &Snapshot,
    task: &TaskId,
    standing: TaskStanding,
    worked: Option<Duration>,
) -> Result<(), Error> {
    let is_settled = interim_is_final(&standing);
    if is_settled {
        settle_last_word(tx, task).await?;
    }
    let left = tell_user_what_is_left(tx, snapshot, task).await?;
    let standing = if is_settled || left == Left::Something {
        tasks::standing(&mut tx.connection, task).await?.unwrap_or(standing)
    } else {
        standing
    };
    tasks::set_idle(tx, task, worked.unwrap_or_default()).await?;
    let outcome = standing.outcome();
    events::append(tx, &Event::TaskIdle { task: task.clone(), outcome }).await
}

/// Makes root's last message to the person final, although root sent the message as interim.
async fn settle_last_word(tx: &mut Tx, task: &TaskId) -> Result<(), Error> {
    let root = Conversation { agent: AgentId::root(), task: task.clone() };
    let Some(told) = messages::last_told_user(&mut tx.connection, &root).await? else { return Ok(()) };
    settle_provisional(tx, &root, &told).await
}

/// Makes an interim message to the person final. All requests that the message belongs to then count as answered. This
/// includes requests whose turn has failed, because an agent can answer the person even after a failed turn.
async fn settle_provisional(tx: &mut Tx, by: &Conversation, told: &Provisional) -> Result<(), Error> {
    let open = messages::open_requests(&mut tx.connection, by).await?;
    let open = open.into_iter().map(|request| request.id);
    let answers: Vec<MessageId> = open.filter(|request| told.requests.contains(request)).collect();
    settle(tx, by, &told.message, &answers).await
}

/// A failed agent may have made texts and artifacts for its askers, which its turn can no longer deliver. Gives them to
/// the askers.
pub(crate) async fn hand_over(tx: &mut Tx, snapshot: &Snapshot, who: &Conversation) -> Result<(), Error> {
    let facts = facts(tx, who, Cause::TurnEnded).await?;
    let stored = facts.unnamed.iter().map(|unnamed| &unnamed.asker);
    let askers: BTreeSet<&AgentId> = stored.chain(facts.held.iter().map(|held| &held.asker)).collect();
    for asker in askers.into_iter().filter(|asker| !asker.is_user()) {
        give_up(tx, snapshot, who, &facts, asker).await?;
    }
    Ok(())
}

/// At the end of a task, tells the person about texts and artifacts that were made for the person but not delivered.
/// Returns whether an agent owed the person an answer, or had stored artifacts for the person without naming them.
async fn tell_user_what_is_left(tx: &mut Tx, snapshot: &Snapshot, task: &TaskId) -> Result<Left, Error> {
    let user = AgentId::user();
    let owing = notes::owe_user(&mut tx.connection, task).await?;
    let left = if owing.is_empty() { Left::Nothing } else { Left::Something };
    for agent in owing {
        let conversation = Conversation { agent, task: task.clone() };
        let facts = facts(tx, &conversation, Cause::TurnEnded).await?;
        if !facts.pending.is_empty() {
            continue;
        }
        // A person who has been answered gets no notice about stored artifacts, because the person can list artifacts
        // at any time.
        match owed_to(&facts.owed, &user).next() {
            Some(_) => give_up(tx, snapshot, &conversation, &facts, &user).await?,
            None => notes::forget(tx, &conversation, &user).await?,
        }
    }
    Ok(left)
}

/// Breaks a deadlock: gives up one of its requests. The agents of the deadlock were told about it before, but could not
/// end it.
pub(crate) async fn break_circle(
    tx: &mut Tx,
    snapshot: &Snapshot,
    task: &TaskId,
    request: &MessageId,
) -> Result<(), Error> {
    let rows = messages::requests(&mut tx.connection, std::iter::once(request)).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(()) };
    let who = Conversation { agent: row.to, task: task.clone() };
    let facts = facts(tx, &who, Cause::TurnEnded).await?;
    give_up(tx, snapshot, &who, &facts, &row.from).await
}
