//! Reads the open work of a society at one moment, for the views that show the present. The statements read the rows of
//! open work, the rows of agents and the newest records. Of finished work, they read no other rows.

use crate::messages::requests::awaited;
use crate::record::Record;
use crate::{Conversation, Error};
use polity_society::id::{AgentId, ApprovalId, MessageId, ServiceId, TaskId, TurnId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::TaskState;
use serde_json::json;
use std::collections::{HashMap, HashSet};

const TURNS: &str =
    "SELECT agent, task, created_at AS since FROM turns INDEXED BY turns_open_of WHERE state = 'open'";
const MAIL: &str = "SELECT receiver AS agent, task, max(created_at) AS since
    FROM messages INDEXED BY messages_waiting WHERE state = 'queued' AND receiver <> 'user' GROUP BY receiver, task";
const HOLDS: &str = "SELECT agent, task, reason, created_at AS since FROM holds";
const APPROVALS: &str = "SELECT seq, agent, task, tool, asked_at, expires_at
    FROM approvals INDEXED BY approvals_waiting WHERE state = 'open'";
const REQUESTS: &str = concat!(
    "SELECT m.id, m.task, m.sender, m.receiver, m.created_at, m.state = 'delayed' AS delayed,
    t.state AS task_state FROM messages m INDEXED BY messages_open JOIN tasks t ON t.id = m.task
    WHERE ",
    awaited!(),
    " ORDER BY m.seq"
);
/// The conversations in which the agent waits for a command to end, or for a delayed message from itself to arrive.
const TIMED: &str = "SELECT agent, task FROM commands INDEXED BY commands_running WHERE state = 'running'
    UNION SELECT sender, task FROM messages INDEXED BY messages_delayed WHERE state = 'delayed' AND sender = receiver";
const PAUSED: &str = "SELECT id, paused_at FROM agents WHERE paused_at IS NOT NULL";
const NEWEST: &str = "SELECT c.value ->> 0 AS agent, c.value ->> 1 AS task,
    (SELECT created_at FROM records INDEXED BY records_of_conversation
        WHERE agent = c.value ->> 0 AND task = c.value ->> 1 ORDER BY seq DESC LIMIT 1) AS at
    FROM json_each(?1) c";
const LAST: &str = "SELECT r.agent, r.body, r.created_at FROM json_each(?1) c JOIN records r ON r.seq =
    (SELECT seq FROM records INDEXED BY records_of_conversation
        WHERE agent = c.value ->> 0 AND task = c.value ->> 1 AND CASE WHEN json_valid(body) THEN body ->> '$.record' END
            IN ('heard', 'replied', 'failed', 'stopped')
        ORDER BY seq DESC LIMIT 1)";
const OBJECTIVES: &str =
    "SELECT id, CASE WHEN json_valid(brief) THEN substr(brief ->> '$.objective', 1, 500) END AS objective
    FROM agents WHERE id IN (SELECT value FROM json_each(?1))";
const ROOT_TURNS: &str = "SELECT t.id AS task, t.service,
    (SELECT id FROM turns INDEXED BY turns_of_conversation
        WHERE agent = 'root' AND task = t.id ORDER BY id DESC LIMIT 1) AS turn
    FROM tasks t WHERE t.id IN (SELECT value FROM json_each(?1))";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] =
    &[TURNS, MAIL, HOLDS, APPROVALS, REQUESTS, TIMED, PAUSED, NEWEST, LAST, OBJECTIVES, ROOT_TURNS];

/// The open work of a society at one moment.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// The conversations with an open turn or unread messages. The time is the later one of two: when the turn began,
    /// and when the newest unread message was accepted.
    pub work: HashMap<Conversation, i64>,
    /// The parked conversations.
    pub holds: Vec<Hold>,
    /// The questions whether an agent may make a call.
    pub approvals: Vec<Asked>,
    /// The requests without an answer, oldest first.
    pub requests: Vec<OpenRequest>,
    /// The conversations that wait for the end of a background command or for their own delayed message.
    pub timed: HashSet<Conversation>,
    /// The paused agents, each with the time of its pause.
    pub paused: HashMap<AgentId, i64>,
    /// The time of the newest record of each conversation in `work`, `approvals` and `requests`.
    pub newest: HashMap<Conversation, i64>,
}

/// A parked conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    pub who: Conversation,
    /// The failure for which it was parked.
    pub reason: String,
    pub since: i64,
}

/// A question whether an agent may make a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub who: Conversation,
    pub approval: ApprovalId,
    pub tool: String,
    pub since: i64,
    pub expires_at: i64,
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    pub id: MessageId,
    pub task: TaskId,
    pub from: AgentId,
    pub to: AgentId,
    pub since: i64,
    /// Whether the request is a delayed message, which its receiver has not got yet.
    pub is_delayed: bool,
    pub task_state: TaskState,
}

/// Root's newest turn in a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootTurn {
    pub turn: TurnId,
    /// The service that was chosen for root in this task.
    pub service: Option<ServiceId>,
}

impl OpenRequest {
    /// Returns the conversation of the receiver.
    pub fn receiver(&self) -> Conversation {
        Conversation { agent: self.to.clone(), task: self.task.clone() }
    }

    /// Returns the conversation of the sender.
    pub fn sender(&self) -> Conversation {
        Conversation { agent: self.from.clone(), task: self.task.clone() }
    }
}

/// Reads the open work of a society.
pub async fn open(connection: &mut Connection) -> Result<Open, Error> {
    let mut open = Open::default();
    for statement in [TURNS, MAIL] {
        for row in polity_sql::query(statement).fetch_all(&mut *connection).await? {
            let since: i64 = row.get("since");
            let known = open.work.entry(conversation(&row)).or_insert(since);
            *known = since.max(*known);
        }
    }
    let hold =
        |row: &Row| Hold { who: conversation(row), reason: row.get("reason"), since: row.get("since") };
    open.holds = polity_sql::query(HOLDS).fetch_all(&mut *connection).await?.iter().map(hold).collect();
    let asked = |row: &Row| Asked {
        who: conversation(row),
        approval: ApprovalId::from_number(row.get("seq")),
        tool: row.get("tool"),
        since: row.get("asked_at"),
        expires_at: row.get("expires_at"),
    };
    open.approvals =
        polity_sql::query(APPROVALS).fetch_all(&mut *connection).await?.iter().map(asked).collect();
    let request = |row: &Row| OpenRequest {
        id: MessageId::new(row.get::<String, _>("id")),
        task: TaskId::new(row.get::<String, _>("task")),
        from: AgentId::new(row.get::<String, _>("sender")),
        to: AgentId::new(row.get::<String, _>("receiver")),
        since: row.get("created_at"),
        is_delayed: row.get("delayed"),
        task_state: row.get::<String, _>("task_state").parse().unwrap_or(TaskState::Idle),
    };
    open.requests =
        polity_sql::query(REQUESTS).fetch_all(&mut *connection).await?.iter().map(request).collect();
    open.timed =
        polity_sql::query(TIMED).fetch_all(&mut *connection).await?.iter().map(conversation).collect();
    let paused = |row: &Row| (AgentId::new(row.get::<String, _>("id")), row.get::<i64, _>("paused_at"));
    open.paused = polity_sql::query(PAUSED).fetch_all(&mut *connection).await?.iter().map(paused).collect();
    open.newest = newest(connection, &open).await?;
    Ok(open)
}

async fn newest(connection: &mut Connection, open: &Open) -> Result<HashMap<Conversation, i64>, Error> {
    let mut named: HashSet<Conversation> = open.work.keys().cloned().collect();
    named.extend(open.approvals.iter().map(|asked| asked.who.clone()));
    named.extend(open.requests.iter().flat_map(|request| [request.sender(), request.receiver()]));
    named.retain(|conversation| !conversation.agent.is_user());
    let rows = polity_sql::query(NEWEST).bind(pairs(&named)).fetch_all(connection).await?;
    let at = |row: &Row| Some((conversation(row), row.get::<Option<i64>, _>("at")?));
    Ok(rows.iter().filter_map(at).collect())
}

/// Returns the newest record of each conversation, with the time of the record. Only records of these kinds count: the
/// agent heard a message, the model replied, the turn failed, or the turn was stopped.
pub async fn last(
    connection: &mut Connection,
    conversations: &[Conversation],
) -> Result<HashMap<AgentId, (i64, Record)>, Error> {
    let rows = polity_sql::query(LAST).bind(pairs(conversations)).fetch_all(connection).await?;
    let read = |row: &Row| {
        // A damaged record is left out; `polity db check` reports it.
        let record = serde_json::from_str(row.try_get("body").ok()?).ok()?;
        Some((AgentId::new(row.get::<String, _>("agent")), (row.get("created_at"), record)))
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// Returns the beginning of the objective of each agent that has a task brief.
pub async fn objectives(
    connection: &mut Connection,
    agents: &[AgentId],
) -> Result<HashMap<AgentId, String>, Error> {
    let rows = polity_sql::query(OBJECTIVES).bind(json!(agents).to_string()).fetch_all(connection).await?;
    let read = |row: &Row| {
        let objective: Option<String> = row.try_get("objective").ok().flatten();
        Some((AgentId::new(row.get::<String, _>("id")), objective?))
    };
    Ok(rows.iter().filter_map(read).collect())
}

/// Returns root's newest turn in each of these tasks. Leaves out the tasks in which root has had no turn.
pub async fn root_turns(
    connection: &mut Connection,
    tasks: &[TaskId],
) -> Result<HashMap<TaskId, RootTurn>, Error> {
    let rows = polity_sql::query(ROOT_TURNS).bind(json!(tasks).to_string()).fetch_all(connection).await?;
    let read = |row: &Row| {
        let turn = TurnId::new(row.get::<Option<i64>, _>("turn")?);
        let service = row.get::<Option<String>, _>("service").map(ServiceId::new);
        Some((TaskId::new(row.get::<String, _>("task")), RootTurn { turn, service }))
    };
    Ok(rows.iter().filter_map(read).collect())
}

fn conversation(row: &Row) -> Conversation {
    Conversation {
        agent: AgentId::new(row.get::<String, _>("agent")),
        task: TaskId::new(row.get::<String, _>("task")),
    }
}

/// Returns conversations as a JSON array of pairs, each with an agent and a task.
fn pairs<'c>(conversations: impl IntoIterator<Item = &'c Conversation>) -> String {
    let pairs: Vec<(&AgentId, &TaskId)> =
        conversations.into_iter().map(|Conversation { agent, task }| (agent, task)).collect();
    json!(pairs).to_string()
}
