//! Table `seen`: from which outside sources an agent, an artifact or a workspace has content, and how the content
//! reached it.
//!
//! The agent, artifact or workspace is called the holder. Each row contains the first step by which content of a source
//! reached a holder. The row of an artifact stays as long as the artifact. Any other row stays until the task is
//! forgotten. [`way`] follows the steps back to the source, or to the first step that is still there.

use super::{Conversation, Error, Tx, damaged};
use polity_society::contact::Contact;
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use polity_society::policy::Source;
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

const INSERT: &str = "INSERT INTO seen (task, holder, source, way, since) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO NOTHING";
/// Gives a holder the sources of another holder. If this other holder is an artifact `?6` of another task, the rows of
/// its sources have that task. The artifacts of a forked task keep their task, but the fork has a copy of the rows.
const PASS: &str = "INSERT INTO seen (task, holder, source, way, since)
    SELECT ?1, ?3, source, ?4, ?5 FROM seen
    WHERE holder = ?2 AND task IN (?1, (SELECT task FROM artifacts WHERE id = ?6)) ON CONFLICT DO NOTHING";
/// Gives the receiver of a message the sources that the writer had seen when the message was sent, and the sources of
/// the attachments. The writer is usually the sender. The system sends notices, and some of them quote an agent. Then
/// this agent is the writer. For an attachment that belongs to another task, the rows of its sources have that task.
const HEARD: &str = "INSERT INTO seen (task, holder, source, way, since)
    SELECT s.task, 'agent:' || m.receiver, s.source,
        json_object('by', 'message', 'from', m.writer, 'message', m.id), ?2
    FROM (SELECT id, task, receiver, created_at, CASE
            WHEN sender <> 'system' THEN sender
            WHEN body ->> '$.notice' IN ('unanswered', 'leftover', 'receiver_failed', 'agent_failed', 'parked')
                THEN body ->> '$.agent'
            WHEN body ->> '$.notice' = 'terminated' THEN body ->> '$.by' END AS writer
        FROM messages WHERE id = ?1) m
    JOIN seen s ON s.task = m.task AND s.holder = 'agent:' || m.writer AND s.since <= m.created_at
    WHERE m.writer <> m.receiver
    UNION ALL SELECT m.task, 'agent:' || m.receiver, s.source, json_object('by', 'artifact', 'artifact', a.value), ?2
    FROM messages m JOIN json_each(m.attachments) a LEFT JOIN artifacts f ON f.id = a.value
    JOIN seen s ON s.task IN (m.task, f.task) AND s.holder = 'artifact:' || a.value
    WHERE m.id = ?1 ON CONFLICT DO NOTHING";
/// Gives the owner ?1 of the contact ?2 the sources of the agent that wrote what the role of the contact offers.
const OFFERED: &str = "INSERT INTO seen (task, holder, source, way, since)
    SELECT s.task, 'agent:' || ?1, s.source, json_object('by', 'role', 'from', r.creator), ?3
    FROM agents a JOIN roles r ON r.id = a.role JOIN seen s ON s.task = a.task AND s.holder = 'agent:' || r.creator
    WHERE a.id = ?2 AND r.interface_spec IS NOT NULL AND r.creator <> ?1 AND ?1 <> 'user' ON CONFLICT DO NOTHING";
const OF: &str = "SELECT source FROM seen WHERE task = ?1 AND holder = ?2 ORDER BY source";
/// The step by which content of a source reached a holder, and the task of the row. Finds the task of an artifact `?4`
/// as [`PASS`] does.
const STEP: &str = "SELECT task, way FROM seen WHERE holder = ?2 AND source = ?3
    AND task IN (?1, (SELECT task FROM artifacts WHERE id = ?4)) ORDER BY task <> ?1 LIMIT 1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, PASS, HEARD, OFFERED, OF, STEP];

/// Maximum number of steps to follow back to a source. A longer chain of steps contains a circle, which only a
/// damaged table can have.
const STEPS: usize = 1_000;

/// Something that has content from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Agent(AgentId),
    Artifact(ArtifactId),
    /// The files of a task, including all worktrees.
    Workspace,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Agent(agent) => write!(f, "agent:{agent}"),
            Self::Artifact(artifact) => write!(f, "artifact:{artifact}"),
            Self::Workspace => f.write_str("workspace"),
        }
    }
}

impl Holder {
    /// Returns the id of the artifact; `None` for any other holder.
    fn artifact(&self) -> Option<&str> {
        match self {
            Self::Artifact(artifact) => Some(artifact.as_str()),
            Self::Agent(_) | Self::Workspace => None,
        }
    }
}

/// How content reached a holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Step {
    /// A tool of the agent read the content from the source.
    Tool { tool: String },
    /// The agent heard a message.
    Message { from: AgentId, message: MessageId },
    /// The agent opened an artifact, or a call has begun to copy the artifact into the files of the task.
    Artifact { artifact: ArtifactId },
    /// The agent worked with the files of the task.
    Files,
    /// The agent stored the artifact, or changed the files of the task.
    Agent { agent: AgentId },
    /// The agent was hired. Its brief or its role prompt is text of the agent `from`.
    Hired { from: AgentId },
    /// The agent read what a role offers. This is text of the agent `from`.
    Role { from: AgentId },
    /// A tool of the agent may have written content from the source into the files of the task.
    Brought { agent: AgentId, tool: String },
}

/// One step on the way from a source to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    pub holder: Holder,
    pub step: Step,
}

/// Notes that a tool of an agent has read from a source.
pub async fn read(tx: &mut Tx, reader: &Conversation, source: &Source, tool: &str) -> Result<(), Error> {
    let (holder, step) = (Holder::Agent(reader.agent.clone()), Step::Tool { tool: tool.to_owned() });
    insert(tx, &reader.task, &holder, source, &step).await?;
    polity_points::point!("seen::read");
    Ok(())
}

/// Notes that a tool of an agent may write content from a source into the files of the task. The agent itself has not
/// seen the content yet.
pub async fn bring(tx: &mut Tx, by: &Conversation, source: &Source, tool: &str) -> Result<(), Error> {
    let step = Step::Brought { agent: by.agent.clone(), tool: tool.to_owned() };
    insert(tx, &by.task, &Holder::Workspace, source, &step).await
}

async fn insert(
    tx: &mut Tx,
    task: &TaskId,
    holder: &Holder,
    source: &Source,
    step: &Step,
) -> Result<(), Error> {
    let query = polity_sql::query(INSERT)
        .bind(task.as_str())
        .bind(holder.to_string())
        .bind(source.to_string())
        .bind(Json(step))
        .bind(tx.now.as_millis());
    query.execute(&mut tx.connection).await?;
    Ok(())
}

/// Notes that the holder `to` now has all sources that the holder `from` has. `task` is the task of `to`. If `from` is
/// an artifact, it may belong to another task.
pub async fn pass(tx: &mut Tx, task: &TaskId, from: &Holder, to: &Holder, step: &Step) -> Result<(), Error> {
    let query = polity_sql::query(PASS)
        .bind(task.as_str())
        .bind(from.to_string())
        .bind(to.to_string())
        .bind(Json(step))
        .bind(tx.now.as_millis())
        .bind(from.artifact());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("seen::passed");
    Ok(())
}

/// Notes that the receiver of a message has read it: the receiver now has the sources that the message passes on.
pub async fn heard(tx: &mut Tx, message: &MessageId) -> Result<(), Error> {
    let query = polity_sql::query(HEARD).bind(message.as_str()).bind(tx.now.as_millis());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("seen::heard");
    Ok(())
}

/// Notes that an agent has a new contact. From now on, the requests of the agent show what the role of the contact
/// offers. So the agent now has the sources of the agent that wrote this text.
pub async fn offered(tx: &mut Tx, contact: &Contact) -> Result<(), Error> {
    let query = polity_sql::query(OFFERED).bind(contact.owner.as_str()).bind(contact.agent.as_str());
    query.bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    Ok(())
}

/// Returns the sources from which an agent has content in a task.
pub async fn sources(connection: &mut Connection, of: &Conversation) -> Result<BTreeSet<Source>, Error> {
    let holder = Holder::Agent(of.agent.clone());
    let query = polity_sql::query_scalar(OF).bind(of.task.as_str()).bind(holder.to_string());
    let sources: Vec<String> = query.fetch_all(connection).await?;
    let read = |source: String| {
        source.parse().map_err(|_| damaged("seen", &holder.to_string(), format!("unknown source {source}")))
    };
    sources.into_iter().map(read).collect()
}

/// Checks whether a row can be parsed, for `polity db check`.
pub(super) fn check(row: &Row) -> Result<(), Error> {
    let holder: String = row.get("holder");
    let (source, way): (String, String) = (row.get("source"), row.get("way"));
    source.parse::<Source>().map_err(|error| damaged("seen", &holder, error))?;
    serde_json::from_str::<Step>(&way).map_err(|error| damaged("seen", &holder, error)).map(drop)
}

/// Returns the steps by which content of a source reached an agent, beginning at the source. If the way leads through
/// an artifact of another task, the steps before that happened in that task.
pub async fn way(
    connection: &mut Connection,
    to: &Conversation,
    source: &Source,
) -> Result<Vec<Passed>, Error> {
    let (mut task, mut holder) = (to.task.as_str().to_owned(), Holder::Agent(to.agent.clone()));
    let mut way = Vec::new();
    while way.len() < STEPS {
        let query = polity_sql::query(STEP)
            .bind(task.as_str())
            .bind(holder.to_string())
            .bind(source.to_string())
            .bind(holder.artifact());
        let Some(row) = query.fetch_optional(&mut *connection).await? else { break };
        task = row.get("task");
        let text: String = row.get("way");
        let step: Step =
            serde_json::from_str(&text).map_err(|error| damaged("seen", &holder.to_string(), error))?;
        let before = match &step {
            Step::Tool { .. } | Step::Brought { .. } => None,
            Step::Message { from, .. } | Step::Hired { from } | Step::Role { from } => {
                Some(Holder::Agent(from.clone()))
            }
            Step::Artifact { artifact } => Some(Holder::Artifact(artifact.clone())),
            Step::Files => Some(Holder::Workspace),
            Step::Agent { agent } => Some(Holder::Agent(agent.clone())),
        };
        way.push(Passed { holder, step });
        match before {
            Some(before) => holder = before,
            None => break,
        }
    }
    way.reverse();
    Ok(way)
}

#[cfg(test)]
mod tests;
