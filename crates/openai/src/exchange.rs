//! A request becomes a message: to whom, in which task, and whether it was sent already. `docs/openai.md` has the rule.

use crate::conversation::{Between, Conversation};
use crate::part::Attached;
use crate::problem::Problem;
use axum::http::StatusCode;
use polity_runtime::view::{MessageView, TaskState};
use polity_runtime::{
    Attachment, Exchange, ExchangeState, NewArtifact, NewExchange, Post, Society, WriteError,
};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::{Expects, RESULT_SCHEMA};
use serde_json::{Map, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// What a client says about a request beside its body.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints<'a> {
    /// What it calls the request, so that a repetition is known.
    pub(crate) idempotency_key: Option<&'a str>,
    /// The task that it names.
    pub(crate) task: Option<&'a str>,
    /// Whether it says that it has sent the same before.
    pub(crate) attempt: Attempt,
}

/// Which time a client sends a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The first, or it does not say.
    #[default]
    First,
    /// It has sent the same before and got no answer.
    Repeated,
}

/// An exchange whose message was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// What it is known by.
    pub(crate) key: String,
    /// Its task.
    pub(crate) task: TaskId,
    /// The message.
    pub(crate) message: MessageId,
    /// The answer, where it was given before.
    pub(crate) answer: Option<MessageId>,
    /// The message whose answer is waited for.
    pub(crate) awaits: MessageId,
}

/// Finds the exchange that a request repeats, or begins one; its message has been sent when this returns.
pub(crate) async fn open(
    society: &Society,
    conversation: &Conversation,
    schema: Option<&Value>,
    between: Between<'_>,
    hints: Hints<'_>,
) -> Result<Sent, Problem> {
    let exchanges = society.exchanges();
    // The same words with another form of the answer are another request.
    let request = match schema {
        Some(schema) => {
            format!("{} {}", conversation.request(between), blake3::hash(schema.to_string().as_bytes()))
        }
        None => conversation.request(between),
    };
    let begun = match hints.idempotency_key {
        Some(key) => {
            // Whatever a client writes there, the key is short.
            let key = format!("key {}", blake3::hash(key.as_bytes()).to_hex());
            let found = exchanges.by_key(&key).await.map_err(|error| Problem::of_store(&error))?;
            if found.as_ref().is_some_and(|found| found.request != request) {
                let message = "this Idempotency-Key was used for another request";
                return Err(Problem::refused(StatusCode::CONFLICT, "key_reused", message));
            }
            found.ok_or(key)
        }
        None => {
            let newest = exchanges.like(&request).await.map_err(|error| Problem::of_store(&error))?;
            match newest {
                Some((newest, number)) => repeated(society, newest, hints.attempt)
                    .await?
                    .ok_or_else(|| format!("{request} {number}")),
                None => Err(format!("{request} 0")),
            }
        }
    };
    let exchange = match begun {
        Ok(exchange) => exchange,
        Err(key) => {
            let new = plan(society, conversation, between, hints, key, request).await?;
            exchanges.begin(new).await.map_err(|error| Problem::of_store(&error))?
        }
    };
    send(society, conversation, schema, exchange).await
}

/// For how long, in milliseconds, the same request is taken for a repetition of one that has come to its end.
const REPEATED_WITHIN: i64 = 30 * 60 * 1000;

/// How the newest exchange stands in which the same was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    state: ExchangeState,
    /// How its task stands; as an open one where it has not begun.
    task: TaskState,
    /// When something was asked or answered in it last.
    last: i64,
}

impl Standing {
    /// Whether a request that comes now is taken to repeat it. Somebody who waits, or has not got the answer, asks for
    /// the same; a client that says so repeats what it has got. Neither asks for what was said yesterday.
    fn is_repeated(self, attempt: Attempt, now: i64) -> bool {
        let recent = now.saturating_sub(self.last) <= REPEATED_WITHIN;
        match (self.state, self.task, attempt) {
            (ExchangeState::Open, TaskState::Open, _) => true,
            (ExchangeState::Open, TaskState::Idle, _) => recent,
            (ExchangeState::Answered | ExchangeState::Failed, _, Attempt::Repeated) => recent,
            (ExchangeState::Answered | ExchangeState::Failed, _, Attempt::First) => false,
        }
    }
}

/// The exchange, if a request is taken to repeat it.
async fn repeated(
    society: &Society,
    newest: Exchange,
    attempt: Attempt,
) -> Result<Option<Exchange>, Problem> {
    let of_store = |error: polity_runtime::Error| Problem::of_store(&error);
    let answer = match &newest.answer {
        Some(answer) => Some(answer.clone()),
        None => society.exchanges().answer_of(&newest.key).await.map_err(of_store)?,
    };
    let answer = match answer {
        Some(answer) => society.message(&answer).await.map_err(of_store)?,
        None => None,
    };
    let task = match &newest.task {
        // What was not sent yet goes on where it stopped.
        None => TaskState::Open,
        Some(task) => {
            let task = society.task(task).await.map_err(of_store)?;
            task.map_or(TaskState::Idle, |task| task.state)
        }
    };
    let last = answer.map_or(newest.created_at, |answer| answer.created_at.max(newest.created_at));
    let standing = Standing { state: newest.state, task, last };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    Ok(standing.is_repeated(attempt, now).then_some(newest))
}

/// Decides who gets the message, and in which task.
async fn plan(
    society: &Society,
    conversation: &Conversation,
    between: Between<'_>,
    hints: Hints<'_>,
    key: String,
    request: String,
) -> Result<NewExchange, Problem> {
    let of_store = |error: polity_runtime::Error| Problem::of_store(&error);
    let exchanges = society.exchanges();
    let before = match conversation.ending(between) {
        Some(ending) => exchanges.ending(&ending).await.map_err(of_store)?,
        None => None,
    };
    if conversation.previous.is_some() && before.is_none() {
        let message = "the conversation has gone on since that response; go on from its newest one, or send the \
                       whole conversation, which then is a task of its own";
        return Err(Problem {
            param: Some("previous_response_id".to_owned()),
            ..Problem::refused(StatusCode::CONFLICT, "not_the_newest", message)
        });
    }
    let named = hints.task.map(TaskId::new);
    if let Some(task) = &named
        && society.task(task).await.map_err(of_store)?.is_none()
    {
        let message = format!("there is no task `{task}`");
        return Err(Problem::refused(StatusCode::NOT_FOUND, "unknown_task", message));
    }
    // Another task was named than the one that the conversation was held in: it does not go on with that.
    let before = before.filter(|before| named.is_none() || before.task == named);
    let asked_back = match before.as_ref().and_then(|before| before.answer.as_ref()) {
        Some(answer) => society.message(answer).await.map_err(of_store)?.filter(open_question),
        None => None,
    };
    let task = named.or_else(|| before.as_ref().and_then(|before| before.task.clone()));
    let (receiver, awaits) = match asked_back {
        Some(question) => (AgentId::new(question.from), before.and_then(|before| before.awaits)),
        None => (between.agent.clone(), None),
    };
    Ok(NewExchange { key, request, agent: between.agent.clone(), receiver, task, awaits })
}

/// Whether a message asks the person something, and was not answered yet.
fn open_question(message: &MessageView) -> bool {
    message.expects == Expects::Answer && message.answered_by.is_none()
}

/// Sends the message of an exchange, unless it was sent. Under the key of the exchange it is sent once, however often
/// and by how many this is done.
async fn send(
    society: &Society,
    conversation: &Conversation,
    schema: Option<&Value>,
    exchange: Exchange,
) -> Result<Sent, Problem> {
    let Exchange { key, agent, receiver, task, message, awaits, answer, .. } = exchange;
    if let (Some(message), Some(task)) = (&message, &task) {
        let (task, message) = (task.clone(), message.clone());
        let awaits = awaits.unwrap_or_else(|| message.clone());
        return Ok(Sent { key, task, message, answer, awaits });
    }
    let mut payload = Map::new();
    payload.insert("text".to_owned(), Value::String(conversation.question()));
    // Whoever has not been part of the conversation gets to know it, with what went with it.
    let begins = task.is_none() && agent.is_root();
    if begins {
        payload.extend(conversation.background());
    }
    // Whoever has asked something waits for words.
    if let Some(schema) = schema.filter(|_| awaits.is_none()) {
        payload.insert(RESULT_SCHEMA.to_owned(), schema.clone());
    }
    let earlier = conversation.before().filter(|_| begins);
    let attached = earlier.chain(conversation.asked()).flat_map(|said| &said.attached);
    let post = Post {
        to: receiver.to_string(),
        payload: Value::Object(payload),
        attachments: attached.filter_map(attachment).collect(),
        task,
        service: None,
        key: Some(post_key(&key)),
    };
    let of_store = |error: polity_runtime::Error| Problem::of_store(&error);
    let exchanges = society.exchanges();
    let (task, message) = match society.write(post).await {
        Ok(posted) => (posted.task, posted.id),
        // It was sent before, with other instructions: clients write the date into them. What was sent counts.
        Err(error @ WriteError::KeyReused) => {
            let posted = exchanges.posted(&post_key(&key)).await.map_err(of_store)?;
            posted.ok_or_else(|| refused(&error))?
        }
        Err(error) => {
            // Nothing was sent: whoever asks the same again is not taken for somebody who waits.
            exchanges.failed(key).await.map_err(of_store)?;
            return Err(refused(&error));
        }
    };
    exchanges.sent(key.clone(), task.clone(), message.clone()).await.map_err(of_store)?;
    let awaits = awaits.unwrap_or_else(|| message.clone());
    Ok(Sent { key, task, message, answer: None, awaits })
}

/// The key of the message of an exchange, apart from those of other writers.
fn post_key(key: &str) -> String {
    format!("openai {key}")
}

fn attachment(attached: &Attached) -> Option<Attachment> {
    match attached {
        Attached::Stored(id) => Some(Attachment::Stored(id.clone())),
        Attached::Bytes { bytes, mime, filename } => Some(Attachment::New(NewArtifact {
            bytes: bytes.clone(),
            declared_mime: mime.clone(),
            filename: filename.clone(),
            label: None,
            meta: Map::new(),
        })),
        // It was sent before.
        Attached::Fingerprint(_) => None,
    }
}

/// Why the society did not take what it was given.
fn refused(error: &WriteError) -> Problem {
    let status = match error {
        WriteError::Store(error) => return Problem::of_store(error),
        WriteError::NoTask(_) | WriteError::NoRole(_) => StatusCode::NOT_FOUND,
        WriteError::KeyReused => StatusCode::CONFLICT,
        WriteError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        WriteError::Stopped { .. } => StatusCode::TOO_MANY_REQUESTS,
        WriteError::Refused { .. } | WriteError::Invalid(_) | WriteError::UnknownService { .. } => {
            StatusCode::BAD_REQUEST
        }
    };
    let details = error.details().map(|details| format!(" {details}")).unwrap_or_default();
    Problem::refused(status, error.code(), format!("{error}{details}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yesterdays_answer_is_not_given_again() {
        use {Attempt::*, ExchangeState as State, TaskState as Task};
        let check = |state, task, attempt, age: i64, expect: bool| {
            let standing = Standing { state, task, last: 1_000 };
            let now = 1_000 + age;
            assert_eq!(standing.is_repeated(attempt, now), expect, "{standing:?} {attempt:?} {age}");
        };
        let (edge, day) = (REPEATED_WITHIN, 24 * 60 * 60 * 1000);
        check(State::Open, Task::Open, First, day, true);
        check(State::Open, Task::Idle, First, edge, true);
        check(State::Open, Task::Idle, First, edge + 1, false);
        check(State::Open, Task::Idle, Repeated, day, false);
        for state in [State::Answered, State::Failed] {
            check(state, Task::Idle, First, 0, false);
            check(state, Task::Open, First, 0, false);
            check(state, Task::Idle, Repeated, edge, true);
            check(state, Task::Idle, Repeated, edge + 1, false);
            check(state, Task::Open, Repeated, day, false);
        }
        // A clock that was set back.
        check(State::Answered, Task::Idle, Repeated, -day, true);
    }
}
