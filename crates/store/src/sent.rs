//! Tables `sent` and `sent_texts`: the requests that model servers have got, exactly as they were sent, but with
//! references in place of media (pictures, sounds and files).
//!
//! A past request cannot be built again from the history, because prompts, tools, the configuration and the program
//! itself change. So each request is stored. Most of a request repeats the previous request. To save space, a request
//! is stored as a list of pieces, and each piece is stored only once for a task.

use super::{Conversation, Error, Tx, damaged};
use polity_society::id::{AgentId, ArtifactId, ServiceId, TaskId, TurnId};
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use polity_view::{SentOutcome, SentRequest, Shown};
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

const INSERT: &str =
    "INSERT INTO sent (task, agent, turn, service, model, revision, outcome, shown, texts, kept,
    created_at, record) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING seq";
/// Finds the pieces that the task has already. One more row, without a hash, contains how many bytes the pieces of the
/// task take.
const KNOWN: &str = "SELECT seq, hash FROM sent_texts
    WHERE task = ?1 AND hash IN (SELECT value FROM json_each(?2))
    UNION ALL SELECT * FROM (SELECT kept, NULL FROM sent WHERE task = ?1 ORDER BY seq DESC LIMIT 1)";
const INSERT_TEXTS: &str = "INSERT INTO sent_texts (task, hash, text)
    SELECT ?1, value ->> 0, value ->> 1 FROM json_each(?2) ORDER BY key RETURNING seq, hash";
const GET: &str = "SELECT * FROM sent WHERE seq = ?1";
const TEXTS: &str =
    "SELECT t.text FROM json_each(?1) e LEFT JOIN sent_texts t ON t.seq = e.value ORDER BY e.key";
const OF_RECORDS: &str = "SELECT record, seq FROM sent WHERE record IN (SELECT value FROM json_each(?1))";
/// The newest request that described the artifact ?1. The statement reads only the requests of agents that may open the
/// artifact, because the requests of other agents do not show it.
const DESCRIBING: &str =
    "SELECT * FROM sent WHERE agent IN (SELECT agent FROM artifact_grants WHERE artifact = ?1)
    AND (?2 IS NULL OR agent = ?2) AND EXISTS (SELECT 1 FROM json_each(sent.shown)
        WHERE json_extract(value, '$.artifact') = ?1 AND json_extract(value, '$.routing') = 'described')
    ORDER BY seq DESC LIMIT 1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, KNOWN, INSERT_TEXTS, GET, TEXTS, OF_RECORDS, DESCRIBING];

/// The maximum size of all stored pieces of one task together, in bytes. If the new pieces of a request would exceed
/// this limit, the request is stored without its body. Only a very long task reaches the limit: each piece is stored
/// once, so all pieces together are only slightly larger than the messages and records of the task.
pub const MOST_BYTES: u64 = 256 << 20;

/// A request that a server has got.
#[derive(Clone, Debug)]
pub struct Sent {
    pub service: ServiceId,
    pub model: String,
    /// The revision of the catalogue (the configured services) for which the request was made.
    pub revision: u64,
    pub outcome: SentOutcome,
    /// How the request showed the artifacts of the conversation.
    pub shown: Vec<Shown>,
    /// The body in pieces, with references in place of media.
    pub pieces: Vec<Piece>,
}

/// A piece of the body of a request. Its hash is computed before the writer's transaction, so that the transaction is
/// short.
#[derive(Clone, Debug)]
pub struct Piece {
    hash: String,
    text: String,
}

impl Piece {
    /// Returns a piece with this text.
    pub fn new(text: &str) -> Self {
        Self { hash: blake3::hash(text.as_bytes()).to_hex().to_string(), text: text.to_owned() }
    }
}

/// Stores a request, and returns the number of the request. The answer of the model may have become a record; `record`
/// is the number of this record.
pub async fn insert(
    tx: &mut Tx,
    caller: &Conversation,
    turn: TurnId,
    sent: &Sent,
    record: Option<i64>,
) -> Result<i64, Error> {
    let (places, kept) = keep(tx, &caller.task, &sent.pieces).await?;
    let row = polity_sql::query(INSERT)
        .bind(caller.task.as_str())
        .bind(caller.agent.as_str())
        .bind(turn.number())
        .bind(sent.service.as_str())
        .bind(&sent.model)
        .bind(sent.revision.cast_signed())
        .bind(sent.outcome.as_str())
        .bind(Json(&sent.shown))
        .bind(places.map(Json))
        .bind(kept.cast_signed())
        .bind(tx.now.as_millis())
        .bind(record)
        .fetch_one(&mut tx.connection)
        .await?;
    polity_points::point!("sent::inserted");
    Ok(row.get("seq"))
}

/// Stores the pieces that the task does not have yet. Returns the row number of each piece, and how many bytes all
/// pieces of the task take. If they would take more than [`MOST_BYTES`], stores nothing and returns no row numbers.
async fn keep(tx: &mut Tx, task: &TaskId, pieces: &[Piece]) -> Result<(Option<Vec<i64>>, u64), Error> {
    let hashes: Vec<&str> = pieces.iter().map(|piece| piece.hash.as_str()).collect();
    let query = polity_sql::query(KNOWN).bind(task.as_str()).bind(Json(&hashes));
    let mut known: HashMap<String, i64> = HashMap::new();
    let mut kept = 0;
    for row in query.fetch_all(&mut tx.connection).await? {
        match row.get::<Option<String>, _>("hash") {
            Some(hash) => {
                known.insert(hash, row.get("seq"));
            }
            None => kept = row.get::<i64, _>("seq").unsigned_abs(),
        }
    }
    let mut seen = HashSet::new();
    let new = pieces.iter().filter(|piece| !known.contains_key(&piece.hash) && seen.insert(&piece.hash));
    let new: Vec<(&str, &str)> = new.map(|piece| (piece.hash.as_str(), piece.text.as_str())).collect();
    let all = new.iter().fold(kept, |sum: u64, (_, text)| sum.saturating_add(text.len() as u64));
    if all > MOST_BYTES {
        return Ok((None, kept));
    }
    if !new.is_empty() {
        let query = polity_sql::query(INSERT_TEXTS).bind(task.as_str()).bind(Json(&new));
        let rows = query.fetch_all(&mut tx.connection).await?;
        known.extend(rows.iter().map(|row| (row.get::<String, _>("hash"), row.get::<i64, _>("seq"))));
    }
    let places: Option<Vec<i64>> = pieces.iter().map(|piece| known.get(&piece.hash).copied()).collect();
    // Every piece has a row number now. If one had none, the request would be stored without its body.
    Ok(if places.is_some() { (places, all) } else { (None, kept) })
}

/// Returns a request with its body; `None` if there is no request of this number.
pub async fn get(connection: &mut Connection, number: i64) -> Result<Option<SentRequest>, Error> {
    let Some(row) = polity_sql::query(GET).bind(number).fetch_optional(&mut *connection).await? else {
        return Ok(None);
    };
    let mut sent = read(&row)?;
    if let Some(texts) = row.get::<Option<String>, _>("texts") {
        let pieces: Vec<Option<String>> =
            polity_sql::query_scalar(TEXTS).bind(texts).fetch_all(connection).await?;
        let whole: Option<Vec<String>> = pieces.into_iter().collect();
        let whole = whole.ok_or_else(|| damaged("sent", &number.to_string(), "a piece is missing"))?;
        sent.body = Some(whole.concat());
    }
    Ok(Some(sent))
}

/// Returns the newest request that described an artifact. If `agent` is given, only requests of this agent count. The
/// request has no body.
pub async fn describing(
    connection: &mut Connection,
    agent: Option<&AgentId>,
    artifact: &ArtifactId,
) -> Result<Option<SentRequest>, Error> {
    let query = polity_sql::query(DESCRIBING).bind(artifact.as_str()).bind(agent.map(AgentId::as_str));
    query.fetch_optional(connection).await?.as_ref().map(read).transpose()
}

/// Finds the requests that models answered with these records. The keys of the result are the numbers of the records.
/// The values are the numbers of the sent requests. Records that are no answer of a model are left out.
pub async fn of_records(connection: &mut Connection, records: &[i64]) -> Result<HashMap<i64, i64>, Error> {
    let rows = polity_sql::query(OF_RECORDS).bind(Json(records)).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| (row.get("record"), row.get("seq"))).collect())
}

/// Reads a row, without the body.
pub(crate) fn read(row: &Row) -> Result<SentRequest, Error> {
    let number: i64 = row.get("seq");
    let wrong = |error: &dyn std::fmt::Display| damaged("sent", &number.to_string(), error);
    let shown = serde_json::from_str(&row.get::<String, _>("shown")).map_err(|error| wrong(&error))?;
    let outcome = SentOutcome::from_str(&row.get::<String, _>("outcome")).map_err(|error| wrong(&error))?;
    Ok(SentRequest {
        number,
        agent: AgentId::new(row.get::<String, _>("agent")),
        task: TaskId::new(row.get::<String, _>("task")),
        turn: row.get("turn"),
        service: ServiceId::new(row.get::<String, _>("service")),
        model: row.get("model"),
        revision: row.get::<i64, _>("revision").unsigned_abs(),
        outcome,
        record: row.get("record"),
        at: row.get("created_at"),
        shown,
        body: None,
    })
}
