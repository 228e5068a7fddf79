//! Table `exchanges`.

use super::{Error, Tx, damaged};
use polity_society::id::{AgentId, MessageId, TaskId};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};

const INSERT: &str = "INSERT INTO exchanges (key, request, agent, receiver, task, awaits, state, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7) ON CONFLICT (key) DO NOTHING";
const BY_KEY: &str = "SELECT * FROM exchanges WHERE key = ?1";
const LIKE: &str = "SELECT * FROM exchanges WHERE request = ?1 ORDER BY seq DESC LIMIT 1";
/// Where a conversation has gone on since, it does not end there any more. What failed said nothing to it.
const ENDING: &str =
    "SELECT * FROM exchanges e WHERE e.reply = ?1 AND NOT EXISTS (SELECT 1 FROM exchanges later
        WHERE later.task = e.task AND later.agent = e.agent AND later.seq > e.seq AND later.state <> 'failed')
    ORDER BY e.seq DESC LIMIT 1";
const REPLY_TO: &str = "SELECT reply FROM exchanges WHERE message = ?1 AND reply IS NOT NULL";
const SENT: &str = "UPDATE exchanges SET task = ?2, message = ?3, awaits = coalesce(awaits, ?3) WHERE key = ?1 AND message IS NULL";
const ANSWERED: &str = "UPDATE exchanges SET state = 'answered', answer = ?2, reply = ?3
    WHERE key = ?1 AND state <> 'answered'";
const FAILED: &str = "UPDATE exchanges SET state = 'failed' WHERE key = ?1 AND state = 'open'";
/// The last word of the first turn in which whoever was asked has said one to the person since it heard the message:
/// what it says before in that turn is followed by more, so the turn has to have ended, or the task has come to rest.
/// A question is no last word; nor is what was given as the answer earlier in the same exchange of question and reply.
/// Where the message replies to a question, only what comes after it counts: an agent that has asked may close its turn
/// with a word about that.
const ANSWER: &str = "SELECT said.id FROM exchanges mine JOIN messages asked ON asked.id = mine.awaits
        JOIN messages own ON own.id = mine.message
        JOIN messages said ON said.task = asked.task AND said.sender = asked.receiver
        JOIN turns ON turns.id = said.sent_in JOIN tasks ON tasks.id = said.task
    WHERE mine.key = ?1 AND said.receiver = 'user' AND said.finality = 'final' AND said.expects <> 'answer'
        AND said.state <> 'delayed' AND said.seq > asked.seq AND said.sent_in >= asked.turn
        AND said.seq > own.seq AND (own.receiver <> said.sender OR said.sent_in >= own.turn)
        AND (turns.state <> 'open' OR tasks.state = 'idle')
        AND NOT EXISTS (SELECT 1 FROM exchanges other WHERE other.task = mine.task AND other.awaits = mine.awaits
            AND other.answer = said.id AND other.key <> mine.key)
    ORDER BY said.sent_in, said.seq DESC LIMIT 1";
const POSTED: &str = "SELECT task, message FROM posts WHERE key = ?1";
const PAUSED: &str =
    "SELECT agents.id FROM exchanges JOIN agents ON agents.id IN (exchanges.receiver, exchanges.agent)
    WHERE exchanges.key = ?1 AND agents.paused_at IS NOT NULL AND agents.ended_at IS NULL
    ORDER BY agents.id = exchanges.receiver DESC LIMIT 1";

/// Every statement of this file.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[INSERT, BY_KEY, LIKE, ENDING, REPLY_TO, SENT, ANSWERED, FAILED, ANSWER, POSTED, PAUSED];

/// A request that is to be written down before anything is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewExchange {
    /// What a repetition of the request is known by.
    pub key: String,
    /// The fingerprint of the conversation up to what is asked.
    pub request: String,
    /// Who the conversation is with.
    pub agent: AgentId,
    /// Who the message is for.
    pub receiver: AgentId,
    /// The task that it goes on with; none where it begins one.
    pub task: Option<TaskId>,
    /// The message whose answer is waited for, if not the one that is sent.
    pub awaits: Option<MessageId>,
}

/// A request, and what has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// What a repetition of the request is known by.
    pub key: String,
    /// The fingerprint of the conversation up to what was asked.
    pub request: String,
    /// Who the conversation is with.
    pub agent: AgentId,
    /// Who the message is for.
    pub receiver: AgentId,
    /// The task; none where it begins one and was not sent yet.
    pub task: Option<TaskId>,
    /// The message that it became; none where it was not sent yet.
    pub message: Option<MessageId>,
    /// The message whose answer is waited for.
    pub awaits: Option<MessageId>,
    /// Where it stands.
    pub state: State,
    /// The message that was given as its answer.
    pub answer: Option<MessageId>,
    /// When it was written down, in milliseconds.
    pub created_at: i64,
}

/// Where an exchange stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody got the answer yet.
    Open,
    /// The answer was given.
    Answered,
    /// It was said that there is no answer.
    Failed,
}

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The message.
    pub answer: MessageId,
    /// The fingerprint of the conversation up to it.
    pub reply: String,
}

/// Writes an exchange down, unless one has its key; gives the one that has it now.
pub async fn insert(tx: &mut Tx, new: &NewExchange) -> Result<Option<Exchange>, Error> {
    let query = sqlx::query(INSERT).bind(&new.key).bind(&new.request).bind(new.agent.as_str());
    let query = query.bind(new.receiver.as_str()).bind(new.task.as_ref().map(TaskId::as_str));
    let query = query.bind(new.awaits.as_ref().map(MessageId::as_str)).bind(tx.now);
    query.execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::inserted");
    by_key(&mut tx.connection, &new.key).await
}

pub async fn by_key(connection: &mut SqliteConnection, key: &str) -> Result<Option<Exchange>, Error> {
    let row = sqlx::query(BY_KEY).bind(key).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// The newest exchange in which the same was asked, with its number. Numbers are never used again, whatever is forgotten.
pub async fn like(
    connection: &mut SqliteConnection,
    request: &str,
) -> Result<Option<(Exchange, i64)>, Error> {
    let row = sqlx::query(LIKE).bind(request).fetch_optional(connection).await?;
    row.as_ref().map(|row| Ok((read(row)?, row.get("seq")))).transpose()
}

/// The fingerprint of a conversation up to the answer of the exchange that a message began.
pub async fn reply_to(
    connection: &mut SqliteConnection,
    message: &MessageId,
) -> Result<Option<String>, Error> {
    Ok(sqlx::query_scalar(REPLY_TO).bind(message.as_str()).fetch_optional(connection).await?)
}

/// The newest exchange at whose answer a conversation stands still.
pub async fn ending(connection: &mut SqliteConnection, reply: &str) -> Result<Option<Exchange>, Error> {
    let row = sqlx::query(ENDING).bind(reply).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

pub async fn sent(tx: &mut Tx, key: &str, task: &TaskId, message: &MessageId) -> Result<(), Error> {
    let query = sqlx::query(SENT).bind(key).bind(task.as_str()).bind(message.as_str());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::sent");
    Ok(())
}

pub async fn answered(tx: &mut Tx, key: &str, given: &Given) -> Result<(), Error> {
    let query = sqlx::query(ANSWERED).bind(key).bind(given.answer.as_str()).bind(&given.reply);
    query.execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::answered");
    Ok(())
}

pub async fn failed(tx: &mut Tx, key: &str) -> Result<(), Error> {
    sqlx::query(FAILED).bind(key).execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::failed");
    Ok(())
}

/// The message that is the answer of an exchange.
pub async fn answer(connection: &mut SqliteConnection, key: &str) -> Result<Option<MessageId>, Error> {
    let id: Option<String> = sqlx::query_scalar(ANSWER).bind(key).fetch_optional(connection).await?;
    Ok(id.map(MessageId::new))
}

/// What the person has written under a key.
pub async fn posted(
    connection: &mut SqliteConnection,
    key: &str,
) -> Result<Option<(TaskId, MessageId)>, Error> {
    let row = sqlx::query(POSTED).bind(key).fetch_optional(connection).await?;
    Ok(row.map(|row| {
        (TaskId::new(row.get::<String, _>("task")), MessageId::new(row.get::<String, _>("message")))
    }))
}

/// Of those that an exchange is with, one that is paused.
pub async fn paused(connection: &mut SqliteConnection, key: &str) -> Result<Option<AgentId>, Error> {
    let id: Option<String> = sqlx::query_scalar(PAUSED).bind(key).fetch_optional(connection).await?;
    Ok(id.map(AgentId::new))
}

pub(super) fn read(row: &SqliteRow) -> Result<Exchange, Error> {
    let key: String = row.get("key");
    let message = |column: &str| row.get::<Option<String>, _>(column).map(MessageId::new);
    Ok(Exchange {
        request: row.get("request"),
        agent: AgentId::new(row.get::<String, _>("agent")),
        receiver: AgentId::new(row.get::<String, _>("receiver")),
        task: row.get::<Option<String>, _>("task").map(TaskId::new),
        message: message("message"),
        awaits: message("awaits"),
        state: match row.get::<String, _>("state").as_str() {
            "open" => State::Open,
            "answered" => State::Answered,
            "failed" => State::Failed,
            other => return Err(damaged("exchanges", &key, format!("unknown state {other}"))),
        },
        answer: message("answer"),
        created_at: row.get("created_at"),
        key,
    })
}
