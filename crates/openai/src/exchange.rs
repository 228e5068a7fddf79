//! Turns a request into a message: chooses the receiver and the task, and recognizes a request that the client
//! repeats. `docs/openai.md` explains the rules.

use crate::conversation::{Between, Conversation};
use crate::part::Attached;
use crate::problem::Problem;
use axum::http::StatusCode;
use polity_runtime::{Attachment, NewArtifact, Society, UserMessage, WriteError};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::{Expects, RESULT_SCHEMA};
use polity_society::time::Timestamp;
use polity_society::workspace::Root;
use polity_store::exchanges::{Exchange, NewExchange, State as ExchangeState};
use polity_view::{MessageView, TaskState};
use serde_json::{Map, Value};
use std::time::Duration;

/// What a client specifies about a request apart from the conversation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hints<'a> {
    /// The client's key for the request. A repetition of the request has the same key.
    pub(crate) idempotency_key: Option<&'a str>,
    /// The task to continue.
    pub(crate) task: Option<&'a str>,
    pub(crate) attempt: Attempt,
}

/// Whether a client reports that it is repeating a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The client sends the request for the first time, or does not report whether it repeats the request.
    #[default]
    First,
    /// The client has sent the same request before and got no answer.
    Repeated,
}

/// An exchange is a request of a client together with the answer. The message of this exchange was already sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The key of the exchange in the database.
    pub(crate) key: String,
    pub(crate) task: TaskId,
    /// The message that was made from the request.
    pub(crate) message: MessageId,
    /// The answer, if a client has already got it.
    pub(crate) answer: Option<MessageId>,
    /// The client waits for the answer to this message. It is usually `message` itself. But if `message` replies to an
    /// agent's question, it is the request that the client sent before the agent asked.
    pub(crate) awaits: MessageId,
}

/// If the request repeats an earlier request, finds the exchange of the earlier request; otherwise begins a new
/// exchange. In both cases, also makes sure that the message of the exchange has been sent.
pub(crate) async fn open(
    society: &Society,
    conversation: &Conversation,
    schema: Option<&Value>,
    between: Between<'_>,
    hints: Hints<'_>,
) -> Result<Sent, Problem> {
    let exchanges = society.exchanges();
    // The schema is part of a request. Two requests with the same conversation are different if their schemas differ.
    let request = match schema {
        Some(schema) => {
            format!("{} {}", conversation.request(between), blake3::hash(schema.to_string().as_bytes()))
        }
        None => conversation.request(between),
    };
    let begun = match hints.idempotency_key {
        Some(key) => {
            // A hash keeps the key short, even if the client's key is long.
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

/// For this long after [`Standing::last`], a request can count as a repetition.
const REPEATED_WITHIN: Duration = Duration::from_mins(30);

/// The facts that decide whether a request repeats the newest exchange with the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    state: ExchangeState,
    /// The state of the task; `Open` if the task has not begun.
    task: TaskState,
    /// The later of two times: when the exchange was begun, and when it was answered.
    last: Timestamp,
}

impl Standing {
    /// Whether a request that arrives at `now` counts as a repetition. As long as the task is open and there is no
    /// answer, the request always counts as a repetition, because the client may ask again after a broken connection.
    /// If the task is idle without an answer, this holds only for a limited time. After an answer or a failure, this
    /// holds for the same limited time, and only if the client reports a retry.
    fn is_repeated(self, attempt: Attempt, now: Timestamp) -> bool {
        let recent = now.saturating_duration_since(self.last) <= REPEATED_WITHIN;
        match (self.state, self.task, attempt) {
            (ExchangeState::Open, TaskState::Open, _) => true,
            (ExchangeState::Open, TaskState::Idle, _) => recent,
            (ExchangeState::Answered | ExchangeState::Failed, _, Attempt::Repeated) => recent,
            (ExchangeState::Answered | ExchangeState::Failed, _, Attempt::First) => false,
        }
    }
}

/// `newest` is the newest exchange with the same request. If the current request counts as a repetition, returns
/// `newest`. Otherwise returns `None`.
async fn repeated(
    society: &Society,
    newest: Exchange,
    attempt: Attempt,
) -> Result<Option<Exchange>, Problem> {
    let of_store = |error: polity_store::Error| Problem::of_store(&error);
    let answer = match &newest.answer {
        Some(answer) => Some(answer.clone()),
        None => society.exchanges().answer_of(&newest.key).await.map_err(of_store)?,
    };
    let answer = match answer {
        Some(answer) => society.message(&answer).await.map_err(of_store)?,
        None => None,
    };
    let task = match &newest.task {
        // The message was not sent yet, so the exchange continues where it stopped.
        None => TaskState::Open,
        Some(task) => {
            let task = society.task(task).await.map_err(of_store)?;
            task.map_or(TaskState::Idle, |task| task.state)
        }
    };
    let begun = newest.created_at;
    let last = answer.map_or(begun, |answer| Timestamp::from_millis(answer.created_at).max(begun));
    let standing = Standing { state: newest.state, task, last };
    Ok(standing.is_repeated(attempt, polity_store::now()).then_some(newest))
}

/// Decides which agent gets the message, and in which task.
async fn plan(
    society: &Society,
    conversation: &Conversation,
    between: Between<'_>,
    hints: Hints<'_>,
    key: String,
    request: String,
) -> Result<NewExchange, Problem> {
    let of_store = |error: polity_store::Error| Problem::of_store(&error);
    let exchanges = society.exchanges();
    let before = match conversation.ending(between) {
        Some(ending) => exchanges.ending(&ending).await.map_err(of_store)?,
        None => None,
    };
    if conversation.previous.is_some() && before.is_none() {
        let message = "the conversation has continued since that response; name its newest response, or send the \
                       whole conversation, which then becomes a new task";
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
    // If the client names a task, ignore an earlier exchange that belongs to another task.
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

/// Returns whether a message is a question to the person that has no answer yet.
fn open_question(message: &MessageView) -> bool {
    message.expects == Expects::Answer && message.answered_by.is_none()
}

/// Sends the message of an exchange, unless it was already sent. The key of the exchange makes sure that concurrent or
/// repeated calls send it only once.
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
    // In a new task, root does not know the earlier conversation. So the message contains the earlier conversation
    // and all its attachments.
    let begins = task.is_none() && agent.is_root();
    if begins {
        payload.extend(conversation.background());
    }
    // Add the schema only to a message that is itself the client's request. A reply to an agent's question needs no
    // schema: the client's request was sent earlier, with its own schema.
    if let Some(schema) = schema.filter(|_| awaits.is_none()) {
        payload.insert(RESULT_SCHEMA.to_owned(), schema.clone());
    }
    let earlier = conversation.before().filter(|_| begins);
    let attached = earlier.chain(conversation.asked()).flat_map(|said| &said.attached);
    let post = UserMessage {
        to: receiver.to_string(),
        payload: Value::Object(payload),
        attachments: attached.filter_map(attachment).collect(),
        task,
        service: None,
        workspace: Root::Made,
        key: Some(post_key(&key)),
    };
    let of_store = |error: polity_store::Error| Problem::of_store(&error);
    let exchanges = society.exchanges();
    let (task, message) = match society.write(post).await {
        Ok(posted) => (posted.task, posted.id),
        // A message with this key was already sent, but with other instructions. This happens, for example, because
        // clients write the date into their instructions. The exchange uses the message that was sent before.
        Err(error @ WriteError::KeyReused) => {
            let posted = exchanges.posted(&post_key(&key)).await.map_err(of_store)?;
            posted.ok_or_else(|| refused(&error))?
        }
        Err(error) => {
            // The message was not sent. If the client makes the same request again, the request must not wait for an
            // answer to this message.
            exchanges.failed(key).await.map_err(of_store)?;
            return Err(refused(&error));
        }
    };
    exchanges.sent(key.clone(), task.clone(), message.clone()).await.map_err(of_store)?;
    let awaits = awaits.unwrap_or_else(|| message.clone());
    Ok(Sent { key, task, message, answer: None, awaits })
}

/// Returns the key for the message of an exchange: the key of the exchange with a prefix. The prefix prevents a
/// collision with keys from other interfaces.
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
        // A fingerprint has replaced the bytes, because the message was already sent. So there is nothing to attach.
        Attached::Fingerprint(_) => None,
    }
}

/// Turns an error of the society into a problem for the client.
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
        let last = Timestamp::from_millis(1_000);
        let at = |state, task, attempt, now: Timestamp, expect: bool| {
            let standing = Standing { state, task, last };
            assert_eq!(standing.is_repeated(attempt, now), expect, "{standing:?} {attempt:?} {now:?}");
        };
        let check = |state, task, attempt, age: Duration, expect: bool| {
            at(state, task, attempt, last.saturating_add(age), expect);
        };
        let (edge, day) = (REPEATED_WITHIN, Duration::from_hours(24));
        let over = edge + Duration::from_millis(1);
        check(State::Open, Task::Open, First, day, true);
        check(State::Open, Task::Idle, First, edge, true);
        check(State::Open, Task::Idle, First, over, false);
        check(State::Open, Task::Idle, Repeated, day, false);
        for state in [State::Answered, State::Failed] {
            check(state, Task::Idle, First, Duration::ZERO, false);
            check(state, Task::Open, First, Duration::ZERO, false);
            check(state, Task::Idle, Repeated, edge, true);
            check(state, Task::Idle, Repeated, over, false);
            check(state, Task::Open, Repeated, day, false);
        }
        // Here `now` is before `last`, as if the clock had been set back. The age of the exchange then counts as zero.
        at(State::Answered, Task::Idle, Repeated, last.saturating_sub(day), true);
    }
}
