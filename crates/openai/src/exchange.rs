//! A request becomes a message: to whom, in which task, and whether it was sent already. `docs/openai.md` has the rule.

use crate::conversation::{Between, Conversation};
use crate::part::Attached;
use crate::problem::Problem;
use axum::http::StatusCode;
use polity_runtime::view::MessageView;
use polity_runtime::{
    Attachment, Exchange, ExchangeState, NewArtifact, NewExchange, Post, Society, WriteError,
};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::Expects;
use serde_json::{Map, Value};

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
    /// The message whose answer is the answer.
    pub(crate) awaits: MessageId,
    /// The answer, where it was given before.
    pub(crate) answer: Option<MessageId>,
}

/// Finds the exchange that a request repeats, or begins one; its message has been sent when this returns.
pub(crate) async fn open(
    society: &Society,
    conversation: &Conversation,
    between: Between<'_>,
    hints: Hints<'_>,
) -> Result<Sent, Problem> {
    let exchanges = society.exchanges();
    let request = conversation.request(between);
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
            let (newest, count) =
                exchanges.like(&request).await.map_err(|error| Problem::of_store(&error))?;
            repeated(newest, hints.attempt).ok_or_else(|| format!("{request} {count}"))
        }
    };
    let exchange = match begun {
        Ok(exchange) => exchange,
        Err(key) => {
            let new = plan(society, conversation, between, hints, key, request).await?;
            exchanges.begin(new).await.map_err(|error| Problem::of_store(&error))?
        }
    };
    send(society, conversation, exchange).await
}

/// The exchange that a request is taken to repeat: one whose answer nobody has got, or whatever came of it where the
/// client says that it repeats.
fn repeated(newest: Option<Exchange>, attempt: Attempt) -> Option<Exchange> {
    newest.filter(|newest| newest.state == ExchangeState::Open || attempt == Attempt::Repeated)
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
async fn send(society: &Society, conversation: &Conversation, exchange: Exchange) -> Result<Sent, Problem> {
    let Exchange { key, agent, receiver, task, message, awaits, answer, .. } = exchange;
    if let (Some(message), Some(task), Some(awaits)) = (&message, &task, &awaits) {
        let (task, message, awaits) = (task.clone(), message.clone(), awaits.clone());
        return Ok(Sent { key, task, message, awaits, answer });
    }
    let mut payload = Map::new();
    payload.insert("text".to_owned(), Value::String(conversation.question()));
    // Whoever has not been part of the conversation gets to know it, with what went with it.
    let begins = task.is_none() && agent.is_root();
    if begins {
        payload.extend(conversation.background());
    }
    let earlier = if begins { &conversation.before[..] } else { &[] };
    let attached = earlier.iter().chain(&conversation.asked).flat_map(|said| &said.attached);
    let post = Post {
        to: receiver.to_string(),
        payload: Value::Object(payload),
        attachments: attached.map(attachment).collect(),
        task,
        service: None,
        key: Some(format!("openai {key}")),
    };
    let posted = match society.write(post).await {
        Ok(posted) => posted,
        Err(error) => {
            // Nothing was sent: whoever asks the same again is not taken for somebody who waits.
            let failed = society.exchanges().failed(key).await;
            failed.map_err(|error| Problem::of_store(&error))?;
            return Err(refused(&error));
        }
    };
    let noted = society.exchanges().sent(key.clone(), posted.task.clone(), posted.id.clone()).await;
    noted.map_err(|error| Problem::of_store(&error))?;
    let awaits = awaits.unwrap_or_else(|| posted.id.clone());
    Ok(Sent { key, task: posted.task, message: posted.id, awaits, answer: None })
}

fn attachment(attached: &Attached) -> Attachment {
    match attached {
        Attached::Stored(id) => Attachment::Stored(id.clone()),
        Attached::Bytes { bytes, mime, filename } => Attachment::New(NewArtifact {
            bytes: bytes.clone(),
            declared_mime: mime.clone(),
            filename: filename.clone(),
            label: None,
            meta: Map::new(),
        }),
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
    Problem::refused(status, error.code(), error.to_string())
}
