//! Copies the rows of a task. `polity_decide::fork` decides which rows are copied, and how ids are renamed in them.
//!
//! Copying must not interpret what it copies. So a task is read and written as whole tables of plain rows.

#[cfg(test)]
mod tests;

use super::{Conversation, Error, Tx, damaged};
use crate::Bell;
use polity_society::id::{AgentId, TaskId};
use polity_sql::Connection;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

const READ_ROLES: &str = "SELECT json_object('id', id, 'creator', creator, 'name', name, 'prompt', prompt, 'interface_spec', interface_spec, 'service', service, 'required_capabilities', required_capabilities, 'tool_groups', tool_groups, 'created_at', created_at)
    FROM roles WHERE task = ?1 ORDER BY created_at, id";
const WRITE_ROLES: &str = "INSERT INTO roles (task, id, creator, name, prompt, interface_spec, service, required_capabilities, tool_groups, created_at)
    SELECT ?1, value ->> '$.id', value ->> '$.creator', value ->> '$.name', value ->> '$.prompt', value ->> '$.interface_spec', value ->> '$.service', value ->> '$.required_capabilities', value ->> '$.tool_groups', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_AGENTS: &str = "SELECT json_object('id', id, 'parent', parent, 'role', role, 'name', name, 'brief', brief, 'depth', depth, 'own_worktree', own_worktree, 'hired_in', hired_in, 'ended_at', ended_at, 'created_at', created_at)
    FROM agents WHERE task = ?1 ORDER BY depth, created_at, id";
const WRITE_AGENTS: &str = "INSERT INTO agents (task, id, parent, role, name, brief, depth, own_worktree, hired_in, ended_at, created_at)
    SELECT ?1, value ->> '$.id', value ->> '$.parent', value ->> '$.role', value ->> '$.name', value ->> '$.brief', value ->> '$.depth', value ->> '$.own_worktree', NULL, value ->> '$.ended_at', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_CONTACTS: &str = "SELECT json_object('owner', owner, 'agent', agent, 'source', source, 'introduced_by', introduced_by, 'since', since)
    FROM contacts WHERE owner IN (SELECT id FROM agents WHERE task = ?1)
    OR agent IN (SELECT id FROM agents WHERE task = ?1) ORDER BY since, owner, agent";
const WRITE_CONTACTS: &str = "INSERT INTO contacts (owner, agent, source, introduced_by, since, task)
    SELECT value ->> '$.owner', value ->> '$.agent', value ->> '$.source', value ->> '$.introduced_by', value ->> '$.since',
        coalesce((SELECT task FROM agents WHERE id = value ->> '$.agent'), '')
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key ON CONFLICT DO NOTHING";
const READ_TURNS: &str = "SELECT json_object('id', id, 'agent', agent, 'began_by', began_by, 'works_on', works_on, 'state', state, 'created_at', created_at)
    FROM turns WHERE task = ?1 ORDER BY id";
const WRITE_TURNS: &str = "INSERT INTO turns (task, id, agent, began_by, works_on, state, created_at)
    SELECT ?1, value ->> '$.id', value ->> '$.agent', value ->> '$.began_by', value ->> '$.works_on', value ->> '$.state', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_MESSAGES: &str = "SELECT json_object('seq', seq, 'id', id, 'sender', sender, 'sender_role', sender_role, 'receiver', receiver, 'type', type, 'body', body, 'attachments', attachments, 'in_reply_to', in_reply_to, 'about', about, 'on_behalf_of', on_behalf_of, 'expects', expects, 'finality', finality, 'introduction', introduction, 'introduced', introduced, 'due_at', due_at, 'state', state, 'answered_by', answered_by, 'answered_in', answered_in, 'reminded', reminded, 'sent_in', sent_in, 'turn', turn, 'created_at', created_at)
    FROM messages WHERE task = ?1 ORDER BY seq";
const WRITE_MESSAGES: &str = "INSERT INTO messages (task, seq, id, sender, sender_role, receiver, type, body, attachments, in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, answered_by, answered_in, reminded, sent_in, turn, created_at)
    SELECT ?1, value ->> '$.seq', value ->> '$.id', value ->> '$.sender', value ->> '$.sender_role', value ->> '$.receiver', value ->> '$.type', value ->> '$.body', value ->> '$.attachments', value ->> '$.in_reply_to', value ->> '$.about', value ->> '$.on_behalf_of', value ->> '$.expects', value ->> '$.finality', value ->> '$.introduction', value ->> '$.introduced', value ->> '$.due_at', value ->> '$.state', value ->> '$.answered_by', value ->> '$.answered_in', value ->> '$.reminded', value ->> '$.sent_in', value ->> '$.turn', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_RECORDS: &str = "SELECT json_object('seq', seq, 'agent', agent, 'turn', turn, 'message', message, 'body', body, 'created_at', created_at)
    FROM records WHERE task = ?1 ORDER BY seq";
const WRITE_RECORDS: &str = "INSERT INTO records (task, agent, turn, message, body, created_at)
    SELECT ?1, value ->> '$.agent', value ->> '$.turn', value ->> '$.message', value ->> '$.body', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_ARTIFACT_GRANTS: &str = "SELECT json_object('agent', agent, 'artifact', artifact, 'stored_at', (SELECT created_at FROM artifacts WHERE id = artifact))
    FROM artifact_grants WHERE agent IN (SELECT id FROM agents WHERE task = ?1) ORDER BY agent, artifact";
const WRITE_ARTIFACT_GRANTS: &str = "INSERT INTO artifact_grants (agent, artifact)
    SELECT value ->> '$.agent', value ->> '$.artifact'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key ON CONFLICT DO NOTHING";
/// Artifacts that a fork had from its original stay with the forks of this fork.
const READ_INHERITED: &str = "SELECT json_object('artifact', id, 'stored_at', created_at) FROM artifacts
    WHERE task = ?1 OR id IN (SELECT artifact FROM inherited WHERE task = ?1) ORDER BY id";
const WRITE_INHERITED: &str = "INSERT INTO inherited (task, artifact)
    SELECT ?1, value ->> '$.artifact'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key ON CONFLICT DO NOTHING";
const READ_APPROVALS: &str = "SELECT json_object('seq', seq, 'agent', agent, 'turn', turn, 'call', call, 'tool', tool, 'role', role, 'arguments', arguments, 'preview', preview, 'remembered', remembered, 'why', why, 'scope', scope, 'way', way, 'state', state, 'answer', answer, 'note', note, 'asked_at', asked_at, 'expires_at', expires_at, 'answered_at', answered_at)
    FROM approvals WHERE task = ?1 ORDER BY seq";
const WRITE_APPROVALS: &str = "INSERT INTO approvals (task, seq, agent, turn, call, tool, role, arguments, preview, remembered, why, scope, way, state, answer, note, asked_at, expires_at, answered_at)
    SELECT ?1, value ->> '$.seq', value ->> '$.agent', value ->> '$.turn', value ->> '$.call', value ->> '$.tool', value ->> '$.role', value ->> '$.arguments', value ->> '$.preview', value ->> '$.remembered', value ->> '$.why', value ->> '$.scope', value ->> '$.way', value ->> '$.state', value ->> '$.answer', value ->> '$.note', value ->> '$.asked_at', value ->> '$.expires_at', value ->> '$.answered_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_PERMISSIONS: &str =
    "SELECT json_object('tool', tool, 'role', role, 'calls', calls, 'created_at', created_at)
    FROM permissions WHERE task = ?1 ORDER BY seq";
const WRITE_PERMISSIONS: &str = "INSERT INTO permissions (task, tool, role, calls, created_at)
    SELECT ?1, value ->> '$.tool', value ->> '$.role', value ->> '$.calls', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key ON CONFLICT DO NOTHING";
const READ_SEEN: &str = "SELECT json_object('holder', holder, 'source', source, 'way', way, 'since', since)
    FROM seen WHERE task = ?1 ORDER BY since, holder, source";
const WRITE_SEEN: &str = "INSERT INTO seen (task, holder, source, way, since)
    SELECT ?1, value ->> '$.holder', value ->> '$.source', value ->> '$.way', value ->> '$.since'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key ON CONFLICT DO NOTHING";
const READ_NOTES: &str = "SELECT json_object('agent', agent, 'request', request, 'answers', answers, 'text', text, 'created_at', created_at)
    FROM notes WHERE task = ?1 ORDER BY seq";
const WRITE_NOTES: &str = "INSERT INTO notes (task, agent, request, answers, text, created_at)
    SELECT ?1, value ->> '$.agent', value ->> '$.request', value ->> '$.answers', value ->> '$.text', value ->> '$.created_at'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_OUTPUTS: &str = "SELECT json_object('agent', agent, 'request', request, 'asker', asker, 'artifact', artifact, 'stored_at', (SELECT created_at FROM artifacts WHERE id = artifact))
    FROM outputs WHERE task = ?1 ORDER BY agent, asker, request, artifact";
const WRITE_OUTPUTS: &str = "INSERT INTO outputs (task, agent, request, asker, artifact)
    SELECT ?1, value ->> '$.agent', value ->> '$.request', value ->> '$.asker', value ->> '$.artifact'
    FROM json_each(?2) WHERE ?1 IS NOT NULL ORDER BY key";
const READ_TASK: &str = "SELECT json_object('service', service, 'workspace', workspace)
    FROM tasks WHERE id = ?1 AND forgotten_at IS NULL";
const WRITE_TASK: &str =
    "INSERT INTO tasks (id, service, workspace, state, created_at) VALUES (?1, ?2, ?3, 'open', ?4)";
/// Sets the turn in which each agent was hired. Agents and turns refer to each other, so this statement runs after the
/// rows of both were written.
const HIRED: &str = "UPDATE agents SET hired_in =
    (SELECT value ->> '$.hired_in' FROM json_each(?2) WHERE value ->> '$.id' = agents.id) WHERE task = ?1";
/// Marks each copied conversation as resumed after its last turn. An agent is parked after several failed turns in a
/// row. Because of the mark, failed turns that were copied do not count towards this.
const RELEASE: &str = "INSERT INTO releases (agent, task, turn)
    SELECT agent, task, max(id) FROM turns WHERE task = ?1 GROUP BY agent, task";
const NEXT_MESSAGE: &str =
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'messages'), 0) + 1";
const NEXT_TURN: &str = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'turns'), 0) + 1";
const NEXT_APPROVAL: &str =
    "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'approvals'), 0) + 1";
/// The agents of a task that have a queued message or an open turn.
const AT_WORK: &str =
    "SELECT receiver AS agent FROM messages WHERE task = ?1 AND state = 'queued' AND receiver <> 'user'
    UNION SELECT agent FROM turns WHERE task = ?1 AND state = 'open'";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    READ_ROLES,
    WRITE_ROLES,
    READ_AGENTS,
    WRITE_AGENTS,
    READ_CONTACTS,
    WRITE_CONTACTS,
    READ_TURNS,
    WRITE_TURNS,
    READ_MESSAGES,
    WRITE_MESSAGES,
    READ_RECORDS,
    WRITE_RECORDS,
    READ_ARTIFACT_GRANTS,
    WRITE_ARTIFACT_GRANTS,
    READ_INHERITED,
    WRITE_INHERITED,
    READ_APPROVALS,
    WRITE_APPROVALS,
    READ_PERMISSIONS,
    WRITE_PERMISSIONS,
    READ_SEEN,
    WRITE_SEEN,
    READ_NOTES,
    WRITE_NOTES,
    READ_OUTPUTS,
    WRITE_OUTPUTS,
    READ_TASK,
    WRITE_TASK,
    HIRED,
    RELEASE,
    NEXT_MESSAGE,
    NEXT_TURN,
    NEXT_APPROVAL,
    AT_WORK,
];

/// The columns of a task that are copied into the new task.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskRow {
    pub service: Option<String>,
    pub workspace: Option<String>,
}

/// A row of `roles`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoleRow {
    pub id: String,
    pub creator: String,
    pub name: String,
    pub prompt: String,
    pub interface_spec: Option<String>,
    pub service: String,
    pub required_capabilities: String,
    pub tool_groups: String,
    pub created_at: i64,
}

/// A row of `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentRow {
    pub id: String,
    pub parent: Option<String>,
    pub role: Option<String>,
    pub name: Option<String>,
    pub brief: Option<String>,
    pub depth: i64,
    /// 1 if the agent has its own worktree, else 0.
    pub own_worktree: i64,
    pub hired_in: Option<i64>,
    pub ended_at: Option<i64>,
    pub created_at: i64,
}

/// A row of `contacts`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContactRow {
    pub owner: String,
    pub agent: String,
    pub source: String,
    pub introduced_by: Option<String>,
    pub since: i64,
}

/// A row of `turns`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnRow {
    pub id: i64,
    pub agent: String,
    pub began_by: String,
    pub works_on: Option<String>,
    pub state: String,
    pub created_at: i64,
}

/// A row of `messages`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageRow {
    pub seq: i64,
    pub id: String,
    pub sender: String,
    pub sender_role: String,
    pub receiver: String,
    #[serde(rename = "type")]
    pub message_type: String,
    pub body: String,
    pub attachments: String,
    pub in_reply_to: Option<String>,
    pub about: Option<String>,
    pub on_behalf_of: Option<String>,
    pub expects: String,
    pub finality: String,
    pub introduction: Option<String>,
    pub introduced: Option<String>,
    pub due_at: Option<i64>,
    pub state: String,
    pub answered_by: Option<String>,
    pub answered_in: Option<i64>,
    pub reminded: i64,
    pub sent_in: Option<i64>,
    pub turn: Option<i64>,
    pub created_at: i64,
}

/// A row of `records`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordRow {
    pub seq: i64,
    pub agent: String,
    pub turn: i64,
    pub message: Option<String>,
    pub body: String,
    pub created_at: i64,
}

/// A row of `artifact_grants`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GrantRow {
    pub agent: String,
    pub artifact: String,
    /// The time at which the artifact was stored.
    pub stored_at: i64,
}

/// An artifact that a task has. Its copy inherits the artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InheritedRow {
    pub artifact: String,
    /// The time at which the artifact was stored.
    pub stored_at: i64,
}

/// A row of `approvals`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRow {
    pub seq: i64,
    pub agent: String,
    pub turn: i64,
    pub call: String,
    pub tool: String,
    pub role: String,
    pub arguments: String,
    pub preview: Option<String>,
    pub remembered: String,
    pub why: String,
    pub scope: String,
    pub way: String,
    pub state: String,
    pub answer: Option<String>,
    pub note: Option<String>,
    pub asked_at: i64,
    pub expires_at: i64,
    pub answered_at: Option<i64>,
}

/// A row of `permissions`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermissionRow {
    pub tool: String,
    pub role: String,
    pub calls: String,
    pub created_at: i64,
}

/// A row of `seen`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeenRow {
    pub holder: String,
    pub source: String,
    pub way: String,
    pub since: i64,
}

/// A row of `notes`: a held text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoteRow {
    pub agent: String,
    pub request: String,
    pub answers: String,
    pub text: String,
    pub created_at: i64,
}

/// A row of `outputs`: an artifact that an agent has stored for a request and not named to the asker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputRow {
    pub agent: String,
    pub request: String,
    pub asker: String,
    pub artifact: String,
    /// The time at which the artifact was stored.
    pub stored_at: i64,
}

/// The rows of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    pub task: TaskRow,
    pub roles: Vec<RoleRow>,
    pub agents: Vec<AgentRow>,
    pub contacts: Vec<ContactRow>,
    pub turns: Vec<TurnRow>,
    pub messages: Vec<MessageRow>,
    pub records: Vec<RecordRow>,
    pub grants: Vec<GrantRow>,
    pub inherited: Vec<InheritedRow>,
    pub approvals: Vec<ApprovalRow>,
    pub permissions: Vec<PermissionRow>,
    pub seen: Vec<SeenRow>,
    pub notes: Vec<NoteRow>,
    pub outputs: Vec<OutputRow>,
}

/// The numbers that the next rows of the tables `messages`, `turns` and `approvals` get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub message: i64,
    pub turn: i64,
    pub approval: i64,
}

/// Reads all rows of a task; `None` if there is no such task, or if it was forgotten.
pub async fn read(connection: &mut Connection, task: &TaskId) -> Result<Option<Rows>, Error> {
    let Some(row) = rows(connection, READ_TASK, task).await?.pop() else { return Ok(None) };
    Ok(Some(Rows {
        task: row,
        roles: rows(connection, READ_ROLES, task).await?,
        agents: rows(connection, READ_AGENTS, task).await?,
        contacts: rows(connection, READ_CONTACTS, task).await?,
        turns: rows(connection, READ_TURNS, task).await?,
        messages: rows(connection, READ_MESSAGES, task).await?,
        records: rows(connection, READ_RECORDS, task).await?,
        grants: rows(connection, READ_ARTIFACT_GRANTS, task).await?,
        inherited: rows(connection, READ_INHERITED, task).await?,
        approvals: rows(connection, READ_APPROVALS, task).await?,
        permissions: rows(connection, READ_PERMISSIONS, task).await?,
        seen: rows(connection, READ_SEEN, task).await?,
        notes: rows(connection, READ_NOTES, task).await?,
        outputs: rows(connection, READ_OUTPUTS, task).await?,
    }))
}

async fn rows<T: DeserializeOwned>(
    connection: &mut Connection,
    statement: &'static str,
    task: &TaskId,
) -> Result<Vec<T>, Error> {
    let found: Vec<String> =
        polity_sql::query_scalar(statement).bind(task.as_str()).fetch_all(connection).await?;
    let parse =
        |text: &String| serde_json::from_str(text).map_err(|error| damaged("tasks", task.as_str(), error));
    found.iter().map(parse).collect()
}

/// Returns the numbers that the next message, turn and question about a call get.
pub async fn next(connection: &mut Connection) -> Result<Next, Error> {
    Ok(Next {
        message: polity_sql::query_scalar(NEXT_MESSAGE).fetch_one(&mut *connection).await?,
        turn: polity_sql::query_scalar(NEXT_TURN).fetch_one(&mut *connection).await?,
        approval: polity_sql::query_scalar(NEXT_APPROVAL).fetch_one(connection).await?,
    })
}

/// Writes rows as a new task. Rings a bell for each conversation that has a queued message or an open turn.
pub async fn write(tx: &mut Tx, task: &TaskId, copy: &Rows) -> Result<(), Error> {
    let query = polity_sql::query(WRITE_TASK).bind(task.as_str()).bind(copy.task.service.as_deref());
    let query = query.bind(copy.task.workspace.as_deref()).bind(tx.now.as_millis());
    query.execute(&mut tx.connection).await?;
    put(tx, WRITE_ROLES, task, &copy.roles).await?;
    put(tx, WRITE_AGENTS, task, &copy.agents).await?;
    put(tx, WRITE_CONTACTS, task, &copy.contacts).await?;
    put(tx, WRITE_TURNS, task, &copy.turns).await?;
    put(tx, HIRED, task, &copy.agents).await?;
    put(tx, WRITE_MESSAGES, task, &copy.messages).await?;
    put(tx, WRITE_RECORDS, task, &copy.records).await?;
    put(tx, WRITE_ARTIFACT_GRANTS, task, &copy.grants).await?;
    put(tx, WRITE_INHERITED, task, &copy.inherited).await?;
    put(tx, WRITE_APPROVALS, task, &copy.approvals).await?;
    put(tx, WRITE_PERMISSIONS, task, &copy.permissions).await?;
    put(tx, WRITE_SEEN, task, &copy.seen).await?;
    put(tx, WRITE_NOTES, task, &copy.notes).await?;
    put(tx, WRITE_OUTPUTS, task, &copy.outputs).await?;
    polity_sql::query(RELEASE).bind(task.as_str()).execute(&mut tx.connection).await?;
    let working: Vec<String> =
        polity_sql::query_scalar(AT_WORK).bind(task.as_str()).fetch_all(&mut tx.connection).await?;
    for agent in working {
        tx.ring(Bell::Mailbox(Conversation { agent: AgentId::new(agent), task: task.clone() }));
    }
    tx.ring(Bell::Timer);
    Ok(())
}

async fn put<T: Serialize>(
    tx: &mut Tx,
    statement: &'static str,
    task: &TaskId,
    rows: &[T],
) -> Result<(), Error> {
    let json = serde_json::to_string(rows).map_err(|error| damaged("tasks", task.as_str(), error))?;
    polity_sql::query(statement).bind(task.as_str()).bind(json).execute(&mut tx.connection).await?;
    Ok(())
}
