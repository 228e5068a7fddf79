//! Table `exchanges`: the requests of clients that use the API of OpenAI, and how these requests were answered.

use super::{Error, Tx, damaged};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::time::Timestamp;
use polity_sql::Connection;
use polity_sql::Row;
use strum::{EnumString, IntoStaticStr, VariantArray};

const INSERT: &str = "INSERT INTO exchanges (key, request, agent, receiver, task, awaits, state, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'open', ?7) ON CONFLICT (key) DO NOTHING";
const BY_KEY: &str = "SELECT * FROM exchanges WHERE key = ?1";
const LIKE: &str = "SELECT * FROM exchanges WHERE request = ?1 ORDER BY seq DESC LIMIT 1";
/// Finds the newest exchange whose answer ends a conversation with the fingerprint ?1, and which no later exchange has
/// continued. A later exchange that failed does not count, because it added nothing to the conversation.
const ENDING: &str =
    "SELECT * FROM exchanges e WHERE e.reply = ?1 AND NOT EXISTS (SELECT 1 FROM exchanges later
        WHERE later.task = e.task AND later.agent = e.agent AND later.seq > e.seq AND later.state <> 'failed')
    ORDER BY e.seq DESC LIMIT 1";
const REPLY_TO: &str = "SELECT reply FROM exchanges WHERE message = ?1 AND reply IS NOT NULL";
const SENT: &str = "UPDATE exchanges SET task = ?2, message = ?3, awaits = coalesce(awaits, ?3) WHERE key = ?1 AND message IS NULL";
const ANSWERED: &str = "UPDATE exchanges SET state = 'answered', answer = ?2, reply = ?3
    WHERE key = ?1 AND state <> 'answered'";
const FAILED: &str = "UPDATE exchanges SET state = 'failed' WHERE key = ?1 AND state = 'open'";
/// Finds the answer of an exchange. The awaited message (column `awaits`) is the message whose answer the client waits
/// for. The search begins with the turn in which the agent read the awaited message, and goes on to the first turn with
/// a final text to the person. The newest final text to the person in this turn is the answer. More texts may follow
/// while a turn is open, so the turn must have ended or the task must be idle.
///
/// Questions do not count as texts. A text that is already the answer of another exchange with the same awaited message
/// does not count either. If the message of the exchange replies to a question, only a text that is newer than this
/// message counts, because the turn that asked the question may have ended with a text about the question.
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

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[INSERT, BY_KEY, LIKE, ENDING, REPLY_TO, SENT, ANSWERED, FAILED, ANSWER, POSTED, PAUSED];

/// A new exchange. The caller stores the exchange before the message is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewExchange {
    /// The key by which a repetition of the request is recognised.
    pub key: String,
    /// The fingerprint of the conversation up to this request.
    pub request: String,
    /// The agent that the conversation is with.
    pub agent: AgentId,
    /// The agent that gets the message.
    pub receiver: AgentId,
    /// The task that the request continues; `None` if the request begins a task.
    pub task: Option<TaskId>,
    /// The message whose answer the client waits for. `None` if the client waits for the answer to this request itself:
    /// the request has not become a message yet.
    pub awaits: Option<MessageId>,
}

/// A stored request, with its message and its answer if they exist already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The key by which a repetition of the request is recognised.
    pub key: String,
    /// The fingerprint of the conversation up to this request.
    pub request: String,
    /// The agent that the conversation is with.
    pub agent: AgentId,
    /// The agent that gets the message.
    pub receiver: AgentId,
    /// `None` if the request begins a task and was not sent yet.
    pub task: Option<TaskId>,
    /// The message that the request became; `None` before it was sent.
    pub message: Option<MessageId>,
    /// The message whose answer the client waits for.
    pub awaits: Option<MessageId>,
    pub state: State,
    /// The message that was given as the answer.
    pub answer: Option<MessageId>,
    /// When the request was stored.
    pub created_at: Timestamp,
}

/// The state of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// No client has got the answer yet.
    Open,
    /// A client has got the answer.
    Answered,
    /// A client was told that there is no answer.
    Failed,
}

/// An answer that was given to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenAnswer {
    /// The message that is the answer.
    pub answer: MessageId,
    /// The fingerprint of the conversation up to the answer.
    pub reply: String,
}

/// Stores an exchange. If its key exists already, the stored exchange stays. Returns the exchange that is stored under
/// the key afterwards.
pub async fn insert(tx: &mut Tx, new: &NewExchange) -> Result<Option<Exchange>, Error> {
    let query = polity_sql::query(INSERT).bind(&new.key).bind(&new.request).bind(new.agent.as_str());
    let query = query.bind(new.receiver.as_str()).bind(new.task.as_ref().map(TaskId::as_str));
    let query = query.bind(new.awaits.as_ref().map(MessageId::as_str)).bind(tx.now.as_millis());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::inserted");
    by_key(&mut tx.connection, &new.key).await
}

pub async fn by_key(connection: &mut Connection, key: &str) -> Result<Option<Exchange>, Error> {
    let row = polity_sql::query(BY_KEY).bind(key).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Returns the newest exchange whose request has this fingerprint, and the number of the exchange. Numbers are never
/// reused, even after a task was forgotten.
pub async fn like(connection: &mut Connection, request: &str) -> Result<Option<(Exchange, i64)>, Error> {
    let row = polity_sql::query(LIKE).bind(request).fetch_optional(connection).await?;
    row.as_ref().map(|row| Ok((read(row)?, row.get("seq")))).transpose()
}

/// Finds the exchange whose request became this message, and returns the fingerprint of its conversation, from the
/// beginning to the answer. Returns `None` if there is no such exchange, or if it has no answer yet.
pub async fn reply_to(connection: &mut Connection, message: &MessageId) -> Result<Option<String>, Error> {
    Ok(polity_sql::query_scalar(REPLY_TO).bind(message.as_str()).fetch_optional(connection).await?)
}

/// Returns the newest exchange whose answer ends a conversation with this fingerprint.
pub async fn ending(connection: &mut Connection, reply: &str) -> Result<Option<Exchange>, Error> {
    let row = polity_sql::query(ENDING).bind(reply).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

pub async fn sent(tx: &mut Tx, key: &str, task: &TaskId, message: &MessageId) -> Result<(), Error> {
    let query = polity_sql::query(SENT).bind(key).bind(task.as_str()).bind(message.as_str());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::sent");
    Ok(())
}

pub async fn answered(tx: &mut Tx, key: &str, given: &GivenAnswer) -> Result<(), Error> {
    let query = polity_sql::query(ANSWERED).bind(key).bind(given.answer.as_str()).bind(&given.reply);
    query.execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::answered");
    Ok(())
}

pub async fn failed(tx: &mut Tx, key: &str) -> Result<(), Error> {
    polity_sql::query(FAILED).bind(key).execute(&mut tx.connection).await?;
    polity_points::point!("exchanges::failed");
    Ok(())
}

/// Returns the message that answers an exchange.
pub async fn answer(connection: &mut Connection, key: &str) -> Result<Option<MessageId>, Error> {
    let id: Option<String> = polity_sql::query_scalar(ANSWER).bind(key).fetch_optional(connection).await?;
    Ok(id.map(MessageId::new))
}

/// Returns the task and the id of the message that the person sent with this idempotency key.
pub async fn posted(connection: &mut Connection, key: &str) -> Result<Option<(TaskId, MessageId)>, Error> {
    let row = polity_sql::query(POSTED).bind(key).fetch_optional(connection).await?;
    Ok(row.map(|row| {
        (TaskId::new(row.get::<String, _>("task")), MessageId::new(row.get::<String, _>("message")))
    }))
}

/// Returns a paused agent that delays the answer of an exchange: the receiver of the exchange's message, or the agent
/// that the conversation is with. Returns `None` if neither agent is paused.
pub async fn paused(connection: &mut Connection, key: &str) -> Result<Option<AgentId>, Error> {
    let id: Option<String> = polity_sql::query_scalar(PAUSED).bind(key).fetch_optional(connection).await?;
    Ok(id.map(AgentId::new))
}

pub(super) fn read(row: &Row) -> Result<Exchange, Error> {
    let key: String = row.get("key");
    let message = |column: &str| row.get::<Option<String>, _>(column).map(MessageId::new);
    let state: String = row.get("state");
    Ok(Exchange {
        request: row.get("request"),
        agent: AgentId::new(row.get::<String, _>("agent")),
        receiver: AgentId::new(row.get::<String, _>("receiver")),
        task: row.get::<Option<String>, _>("task").map(TaskId::new),
        message: message("message"),
        awaits: message("awaits"),
        state: state.parse().map_err(|_| damaged("exchanges", &key, format!("unknown state {state}")))?,
        answer: message("answer"),
        created_at: Timestamp::from_millis(row.get("created_at")),
        key,
    })
}
