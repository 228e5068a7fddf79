//! Table `records`: the histories of conversations.

use super::messages::requests::was_read;
use super::{Conversation, Error, Tx, damaged, messages, seen};
use crate::record::{Keeps, Record};
use polity_society::id::{AgentId, CallId, MessageId, TaskId, TurnId};
use polity_society::message::Message;
use polity_society::present::{FirstWords, first_words};
use polity_society::rules::subjects;
use polity_society::text::Texts;
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

const INSERT: &str =
    "INSERT INTO records (agent, task, turn, message, body, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    RETURNING seq";
const OF_TURN: &str = "SELECT seq, turn, body FROM records WHERE turn = ?1 ORDER BY seq";
const OF_CONVERSATION: &str =
    "SELECT seq, turn, body FROM records WHERE agent = ?1 AND task = ?2 AND seq >= ?3 ORDER BY seq";
const MESSAGES_OF: &str = "SELECT m.* FROM records r JOIN messages m ON m.id = r.message
    WHERE r.agent = ?1 AND r.task = ?2 AND r.seq >= ?3 AND r.message IS NOT NULL";
/// The oldest requests that an agent has read but not answered. Each request comes with the record that was written
/// when the agent read this request.
const OPEN: &str = concat!(
    "SELECT r.seq, r.turn, r.body, m.id FROM messages m INDEXED BY messages_unanswered
    CROSS JOIN records r INDEXED BY records_heard ON r.message = m.id
    WHERE m.receiver = ?1 AND m.task = ?2 AND m.expects = 'answer' AND m.answered_by IS NULL
    AND m.",
    was_read!(),
    " AND r.agent = ?1 ORDER BY m.seq LIMIT ?3"
);
const ASKED: &str = "SELECT * FROM messages WHERE id IN (SELECT value FROM json_each(?1))";
const NEWEST_SUMMARIES: &str = "SELECT seq, turn, body FROM records
    WHERE agent = ?1 AND task = ?2 AND substr(body, 1, 21) = '{\"record\":\"compacted\"'
    ORDER BY seq DESC LIMIT ?3";
const BEGINS_TURN: &str = "SELECT min(seq) FROM records WHERE turn = ?1";
const SO_MANY_BEFORE: &str =
    "SELECT min(seq) FROM (SELECT seq FROM records WHERE agent = ?1 AND task = ?2 AND seq < ?3
    ORDER BY seq DESC LIMIT ?4)";
const HEARD_BEFORE: &str = "SELECT max(seq) FROM records
    WHERE agent = ?1 AND task = ?2 AND seq <= ?3 AND message IS NOT NULL";

/// The newest result of a call. Ids of calls are unique in a conversation.
const RESULT_OF: &str = "SELECT seq, body FROM records WHERE agent = ?1 AND task = ?2
    AND substr(body, 1, 25) = '{\"record\":\"tool_finished\"' AND json_extract(body, '$.call') = ?3
    ORDER BY seq DESC LIMIT 1";

/// The paths of files that calls have begun to write in turns that are still open. The evidence of a call names the
/// path.
const WRITING: &str = "SELECT DISTINCT t.agent, json_extract(r.body, '$.evidence.path') AS path
    FROM turns t INDEXED BY turns_open
    CROSS JOIN records r INDEXED BY records_of_turn ON r.turn = t.id
    WHERE t.task = ?1 AND t.state = 'open' AND substr(r.body, 1, 24) = '{\"record\":\"tool_started\"'
    AND json_extract(r.body, '$.evidence.path') IS NOT NULL";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT,
    OF_TURN,
    OF_CONVERSATION,
    MESSAGES_OF,
    OPEN,
    ASKED,
    NEWEST_SUMMARIES,
    BEGINS_TURN,
    SO_MANY_BEFORE,
    HEARD_BEFORE,
    RESULT_OF,
    WRITING,
];

/// Writes a record, and returns its number.
pub async fn append(
    tx: &mut Tx,
    conversation: &Conversation,
    turn: TurnId,
    record: &Record,
) -> Result<i64, Error> {
    let body = serde_json::to_string(record).map_err(|error| damaged("records", "new", error))?;
    let message = match record {
        Record::Heard { message } => Some(message.as_str()),
        _ => None,
    };
    let row = polity_sql::query(INSERT)
        .bind(conversation.agent.as_str())
        .bind(conversation.task.as_str())
        .bind(turn.number())
        .bind(message)
        .bind(body)
        .bind(tx.now.as_millis())
        .fetch_one(&mut tx.connection)
        .await?;
    polity_points::point!("records::appended");
    if let Record::Heard { message } = record {
        seen::heard(tx, message).await?;
    }
    Ok(row.get("seq"))
}

/// Returns the records of one turn, in order.
pub async fn of_turn(connection: &mut Connection, turn: TurnId) -> Result<Vec<Record>, Error> {
    let rows = polity_sql::query(OF_TURN).bind(turn.number()).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// Returns the record of the result of a call.
pub async fn result_of(
    connection: &mut Connection,
    conversation: &Conversation,
    call: &CallId,
) -> Result<Option<Record>, Error> {
    let query =
        polity_sql::query(RESULT_OF).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    query.bind(call.as_str()).fetch_optional(connection).await?.as_ref().map(read).transpose()
}

/// Returns the paths of files that agents of a task have begun to write with tools in turns that are still open. A path
/// counts from the start of its call to the end of the turn, even if the call is refused after its start. Each path is
/// relative to the workspace of its agent, on one line.
pub async fn writing(
    connection: &mut Connection,
    task: &TaskId,
) -> Result<BTreeMap<AgentId, HashSet<String>>, Error> {
    let rows = polity_sql::query(WRITING).bind(task.as_str()).fetch_all(connection).await?;
    let mut writing = BTreeMap::<AgentId, HashSet<String>>::new();
    for row in &rows {
        writing.entry(AgentId::new(row.get::<String, _>("agent"))).or_default().insert(row.get("path"));
    }
    Ok(writing)
}

/// The store reads open requests even if a summary covers them, but at most this many. More requests would not fit into
/// any context window.
const OPEN_REQUESTS: i64 = 1_000;

/// The records of a conversation that the newest summary of the conversation does not cover, with their messages.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Records in order, each with its turn. Records that a summary covers may be missing.
    pub records: Vec<(TurnId, Record)>,
    /// The messages that the records name, by id.
    pub messages: HashMap<String, Message>,
    /// The first words of each request that one of these messages answers or is about.
    pub asked: FirstWords,
    /// The ids of the unanswered requests to the agent. The model gets to see these requests even if a summary covers
    /// them.
    pub open: HashSet<String>,
}

/// Reads the part of a conversation that its newest summary does not cover, and the requests that are still open.
pub async fn history(
    connection: &mut Connection,
    conversation: &Conversation,
    texts: &Texts,
) -> Result<Recorded, Error> {
    let (agent, task) = (conversation.agent.as_str(), conversation.task.as_str());
    let first = first_told(connection, conversation).await?;
    let with_turn = |row: &Row| Ok::<_, Error>((TurnId::new(row.get("turn")), read(row)?));
    let mut history = Recorded::default();
    let query = polity_sql::query(OPEN).bind(agent).bind(task).bind(OPEN_REQUESTS);
    for row in &query.fetch_all(&mut *connection).await? {
        let id: String = row.get("id");
        if row.get::<i64, _>("seq") < first {
            history.records.push(with_turn(row)?);
            history.messages.extend(messages::get(connection, &MessageId::new(id.clone())).await?.map(by_id));
        }
        history.open.insert(id);
    }
    let rows = polity_sql::query(OF_CONVERSATION)
        .bind(agent)
        .bind(task)
        .bind(first)
        .fetch_all(&mut *connection)
        .await?;
    for row in &rows {
        history.records.push(with_turn(row)?);
    }
    let rows =
        polity_sql::query(MESSAGES_OF).bind(agent).bind(task).bind(first).fetch_all(&mut *connection).await?;
    for row in &rows {
        history.messages.extend([by_id(messages::read(row)?)]);
    }
    history.asked = asked(connection, &history.messages, texts).await?;
    Ok(history)
}

/// Reads the first words of the requests that messages answer or are about.
async fn asked(
    connection: &mut Connection,
    heard: &HashMap<String, Message>,
    texts: &Texts,
) -> Result<FirstWords, Error> {
    let named: BTreeSet<&MessageId> = heard.values().flat_map(subjects).collect();
    if named.is_empty() {
        return Ok(FirstWords::new());
    }
    let rows = polity_sql::query(ASKED).bind(Json(named)).fetch_all(connection).await?;
    let read = |row: &Row| {
        let request = messages::read(row)?;
        Ok((request.id.clone(), first_words(&request, texts)))
    };
    rows.iter().map(read).collect()
}

fn by_id(message: Message) -> (String, Message) {
    (message.id.to_string(), message)
}

/// How many summaries [`first_told`] reads at most: the newest ones.
const SUMMARIES: i64 = 20;

/// Returns the number of the first record that no summary covers. Callers read the records from this number on. The
/// code that builds the history does not rely on this number: it decides itself which records a summary covers.
async fn first_told(connection: &mut Connection, conversation: &Conversation) -> Result<i64, Error> {
    let query = polity_sql::query(NEWEST_SUMMARIES).bind(conversation.agent.as_str());
    let query = query.bind(conversation.task.as_str()).bind(SUMMARIES);
    let mut first = 0;
    for row in query.fetch_all(&mut *connection).await?.iter().rev() {
        first = first_after(connection, conversation, row).await?.max(first);
    }
    Ok(first)
}

/// Returns the number of the first record that this summary does not cover.
async fn first_after(
    connection: &mut Connection,
    conversation: &Conversation,
    row: &Row,
) -> Result<i64, Error> {
    let (agent, task) = (conversation.agent.as_str(), conversation.task.as_str());
    let Record::Compacted { keep_recent, keeps, .. } = read(row)? else { return Ok(0) };
    let summary: i64 = row.get("seq");
    let keep = i64::try_from(keep_recent).unwrap_or(i64::MAX);
    let query = polity_sql::query_scalar(SO_MANY_BEFORE).bind(agent).bind(task).bind(summary).bind(keep);
    let kept: Option<i64> = query.fetch_one(&mut *connection).await?;
    let mut first = kept.unwrap_or(summary);
    if keeps == Keeps::Turn {
        let query = polity_sql::query_scalar(BEGINS_TURN).bind(row.get::<i64, _>("turn"));
        let begins: Option<i64> = query.fetch_one(&mut *connection).await?;
        first = first.min(begins.unwrap_or(first));
        let query = polity_sql::query_scalar(HEARD_BEFORE).bind(agent).bind(task).bind(first);
        let heard: Option<i64> = query.fetch_one(&mut *connection).await?;
        first = heard.unwrap_or(0);
    }
    Ok(first)
}

pub(super) fn read(row: &Row) -> Result<Record, Error> {
    let body: String = row.get("body");
    serde_json::from_str(&body)
        .map_err(|error| damaged("records", &row.get::<i64, _>("seq").to_string(), error))
}
