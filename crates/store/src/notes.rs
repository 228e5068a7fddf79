//! Tables `notes` and `outputs`: texts and artifacts that an agent has made for a request but not delivered yet. A text
//! in `notes` is called a held text. It is the closing text of a turn, and is not sent yet, because the agent still
//! waits for something that it needs to answer the request.

use super::messages::requests::{answerable, was_read};
use super::{Conversation, Error, Tx};
use polity_society::id::{AgentId, ArtifactId, MessageId};
use polity_society::notice::Stored;
use polity_society::rules::{Held, Reminded, Unnamed};
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use std::collections::BTreeSet;

const HOLD: &str =
    "INSERT INTO notes (agent, task, request, answers, text, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const HELD: &str = "SELECT n.request, m.sender, n.answers FROM notes n JOIN messages m ON m.id = n.request
    WHERE n.agent = ?1 AND n.task = ?2 ORDER BY n.seq";
/// Whether a conversation owes an answer, has a held text (a text that is not delivered yet), or has stored an artifact
/// that it did not name to the asker. After most turns, none of these three conditions is true.
const ANYTHING: &str = concat!(
    "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_unanswered
        WHERE receiver = ?1 AND task = ?2 AND expects = 'answer' AND answered_by IS NULL
        AND ",
    was_read!(),
    ")
    OR EXISTS (SELECT 1 FROM notes WHERE agent = ?1 AND task = ?2)
    OR EXISTS (SELECT 1 FROM outputs WHERE agent = ?1 AND task = ?2)"
);
const OF_REQUESTS: &str = "SELECT text FROM notes WHERE agent = ?1 AND task = ?2
    AND request IN (SELECT value FROM json_each(?3)) ORDER BY seq";
const DROP: &str = "DELETE FROM notes WHERE agent = ?1 AND task = ?2
    AND request IN (SELECT value FROM json_each(?3))";
const MADE: &str = "INSERT INTO outputs (agent, task, request, asker, artifact)
    SELECT ?1, ?2, id, sender, ?4 FROM messages WHERE id = ?3 AND sender <> ?1 ON CONFLICT DO NOTHING";
const NAMED: &str = "DELETE FROM outputs WHERE agent = ?1 AND task = ?2 AND asker = ?3
    AND artifact IN (SELECT value FROM json_each(?4))";
const UNNAMED: &str = "SELECT o.request, o.asker, o.artifact, m.reminded FROM outputs o
    JOIN messages m ON m.id = o.request WHERE o.agent = ?1 AND o.task = ?2 ORDER BY m.seq";
const STORED: &str =
    "SELECT DISTINCT a.rowid AS place, a.id, coalesce(a.filename, a.label) AS name FROM outputs o
    JOIN artifacts a ON a.id = o.artifact WHERE o.agent = ?1 AND o.task = ?2 AND o.asker = ?3 ORDER BY place";
const FORGET: &str = "DELETE FROM outputs WHERE agent = ?1 AND task = ?2 AND asker = ?3";
const FORGET_OUTPUTS: &str = "DELETE FROM outputs WHERE agent = ?1 AND task = ?2";
const FORGET_NOTES: &str = "DELETE FROM notes WHERE agent = ?1 AND task = ?2";
const OWNERS: &str = concat!(
    "SELECT DISTINCT agent FROM outputs WHERE task = ?1 AND asker = 'user'
    UNION SELECT DISTINCT receiver FROM messages INDEXED BY messages_open
    WHERE task = ?1 AND expects = 'answer' AND answered_by IS NULL AND ",
    answerable!(),
    "
    AND sender = 'user' AND state = 'done'"
);

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    HOLD,
    HELD,
    ANYTHING,
    OF_REQUESTS,
    DROP,
    MADE,
    NAMED,
    UNNAMED,
    STORED,
    FORGET,
    FORGET_OUTPUTS,
    FORGET_NOTES,
    OWNERS,
];

/// Stores a held text: a text that answers a request, but that is delivered later.
pub async fn hold(
    tx: &mut Tx,
    writer: &Conversation,
    request: &MessageId,
    answers: &[MessageId],
    text: &str,
) -> Result<(), Error> {
    let query = polity_sql::query(HOLD).bind(writer.agent.as_str()).bind(writer.task.as_str());
    query
        .bind(request.as_str())
        .bind(Json(answers))
        .bind(text)
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("notes::held");
    Ok(())
}

/// Returns the requests for which a conversation has held texts, in the order in which the texts were stored.
pub async fn held(connection: &mut Connection, of: &Conversation) -> Result<Vec<Held>, Error> {
    let query = polity_sql::query(HELD).bind(of.agent.as_str()).bind(of.task.as_str());
    let read = |row: &Row| Held {
        request: MessageId::new(row.get::<String, _>("request")),
        asker: AgentId::new(row.get::<String, _>("sender")),
        answers: row.get::<Json<Vec<MessageId>>, _>("answers").0,
    };
    Ok(query.fetch_all(connection).await?.iter().map(read).collect())
}

/// Whether a conversation has unfinished work for its askers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// The conversation owes an answer, has a held text, or has stored an artifact that it did not name to the asker.
    Something,
    Nothing,
}

/// Returns whether a conversation has unfinished work for its askers.
pub async fn left(connection: &mut Connection, of: &Conversation) -> Result<Left, Error> {
    let query = polity_sql::query_scalar(ANYTHING).bind(of.agent.as_str()).bind(of.task.as_str());
    let anything: bool = query.fetch_one(connection).await?;
    Ok(if anything { Left::Something } else { Left::Nothing })
}

/// Returns the held texts for these requests, oldest first.
pub async fn of_requests(
    connection: &mut Connection,
    of: &Conversation,
    requests: &[MessageId],
) -> Result<Vec<String>, Error> {
    let query = polity_sql::query_scalar(OF_REQUESTS).bind(of.agent.as_str()).bind(of.task.as_str());
    Ok(query.bind(Json(requests)).fetch_all(connection).await?)
}

/// Removes the held texts for these requests.
pub async fn drop(tx: &mut Tx, of: &Conversation, requests: &[MessageId]) -> Result<(), Error> {
    let query = polity_sql::query(DROP).bind(of.agent.as_str()).bind(of.task.as_str());
    query.bind(Json(requests)).execute(&mut tx.connection).await?;
    polity_points::point!("notes::dropped");
    Ok(())
}

/// Notes that an agent stored an artifact while it worked on a request.
pub async fn made(
    tx: &mut Tx,
    owner: &Conversation,
    request: &MessageId,
    artifact: &ArtifactId,
) -> Result<(), Error> {
    let query = polity_sql::query(MADE).bind(owner.agent.as_str()).bind(owner.task.as_str());
    query.bind(request.as_str()).bind(artifact.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("notes::made");
    Ok(())
}

/// Notes that an agent has named artifacts in a message to a party, so the party knows these artifacts.
pub async fn named(
    tx: &mut Tx,
    by: &Conversation,
    to: &AgentId,
    artifacts: &BTreeSet<ArtifactId>,
) -> Result<(), Error> {
    if artifacts.is_empty() {
        return Ok(());
    }
    let query = polity_sql::query(NAMED).bind(by.agent.as_str()).bind(by.task.as_str()).bind(to.as_str());
    query.bind(Json(artifacts)).execute(&mut tx.connection).await?;
    polity_points::point!("notes::named");
    Ok(())
}

/// Returns the artifacts that an agent stored for askers and never named to them.
pub async fn unnamed(connection: &mut Connection, of: &Conversation) -> Result<Vec<Unnamed>, Error> {
    let query = polity_sql::query(UNNAMED).bind(of.agent.as_str()).bind(of.task.as_str());
    let rows = query.fetch_all(connection).await?;
    let read = |row: &Row| Unnamed {
        artifact: ArtifactId::new(row.get::<String, _>("artifact")),
        request: MessageId::new(row.get::<String, _>("request")),
        asker: AgentId::new(row.get::<String, _>("asker")),
        reminded: if row.get("reminded") { Reminded::Yes } else { Reminded::No },
    };
    Ok(rows.iter().map(read).collect())
}

/// Returns the artifacts that an agent stored for one asker and never named, oldest first.
pub async fn stored_for(
    connection: &mut Connection,
    of: &Conversation,
    asker: &AgentId,
) -> Result<Vec<Stored>, Error> {
    let query = polity_sql::query(STORED).bind(of.agent.as_str()).bind(of.task.as_str()).bind(asker.as_str());
    let rows = query.fetch_all(connection).await?;
    let read = |row: &Row| Stored { id: ArtifactId::new(row.get::<String, _>("id")), name: row.get("name") };
    Ok(rows.iter().map(read).collect())
}

/// Forgets the unnamed artifacts for one asker, because the asker was told about them.
pub async fn forget(tx: &mut Tx, of: &Conversation, asker: &AgentId) -> Result<(), Error> {
    let query = polity_sql::query(FORGET).bind(of.agent.as_str()).bind(of.task.as_str()).bind(asker.as_str());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("notes::forgotten");
    Ok(())
}

/// Forgets the held texts and the unnamed artifacts of an agent for all askers, because the person has stopped the
/// agent's work.
pub async fn forget_all(tx: &mut Tx, of: &Conversation) -> Result<(), Error> {
    for statement in [FORGET_OUTPUTS, FORGET_NOTES] {
        let query = polity_sql::query(statement).bind(of.agent.as_str()).bind(of.task.as_str());
        query.execute(&mut tx.connection).await?;
    }
    polity_points::point!("notes::all_forgotten");
    Ok(())
}

/// Returns the agents that owe the person an answer, or that have stored artifacts for the person and not named these
/// artifacts.
pub async fn owe_user(
    connection: &mut Connection,
    task: &polity_society::id::TaskId,
) -> Result<Vec<AgentId>, Error> {
    let agents: Vec<String> =
        polity_sql::query_scalar(OWNERS).bind(task.as_str()).fetch_all(connection).await?;
    Ok(agents.into_iter().map(AgentId::new).collect())
}
