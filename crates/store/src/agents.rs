//! Table `agents`, and the facts about an agent that the rules need.

use super::{Error, Tx, damaged};
use polity_registry::Catalogue;
use polity_society::agent::{Agent, Party, Standing};
use polity_society::brief::TaskBrief;
use polity_society::id::{AgentId, RoleId, ServiceId, TaskId, TurnId};
use polity_society::rules::Link;
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use std::collections::{BTreeSet, HashMap};

const INSERT: &str = "INSERT INTO agents (id, task, parent, role, name, brief, depth, created_at, hired_in)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, (SELECT id FROM turns WHERE agent = ?3 AND task = ?2 AND state = 'open'))";
const GET: &str = "SELECT a.id, a.task, a.parent, a.role, a.name, a.brief, a.depth, a.ended_at,
    r.name AS role_name, r.interface_spec, r.service FROM agents a LEFT JOIN roles r ON r.id = a.role WHERE a.id = ?1";
const IN_TASK: &str = "SELECT a.id, a.task, a.parent, a.role, a.name, a.brief, a.depth, a.ended_at,
    r.name AS role_name, r.interface_spec,
    coalesce(r.service, (SELECT service FROM tasks WHERE id = ?2)) AS service
    FROM agents a LEFT JOIN roles r ON r.id = a.role WHERE a.id = ?1";
const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM agents WHERE id = ?1)";
const COUNT_CHILDREN: &str =
    "SELECT count(*) FROM agents WHERE parent = ?1 AND task = ?2 AND ended_at IS NULL";
const COUNT_OF_TASK: &str = "SELECT count(*) FROM agents WHERE task = ?1 AND ended_at IS NULL";
const BELOW: &str = "WITH RECURSIVE below (id) AS (
        SELECT id FROM agents WHERE parent = ?1 AND task = ?2
        UNION SELECT agents.id FROM agents JOIN below ON agents.parent = below.id)
    SELECT a.id, a.task, a.parent, a.role, a.name, a.brief, a.depth, a.ended_at,
    r.name AS role_name, r.interface_spec, r.service
    FROM below JOIN agents a ON a.id = below.id LEFT JOIN roles r ON r.id = a.role ORDER BY a.depth, a.created_at, a.id";
const LIVE_SUBTREE: &str = "WITH RECURSIVE branch (id) AS (
        SELECT ?1 UNION SELECT agents.id FROM agents JOIN branch ON agents.parent = branch.id)
    SELECT a.id FROM branch JOIN agents a ON a.id = branch.id WHERE a.ended_at IS NULL ORDER BY a.depth, a.id";
const PAUSE: &str = "UPDATE agents SET paused_at = ?2 WHERE id IN (SELECT value FROM json_each(?1))
    AND paused_at IS NULL AND ended_at IS NULL RETURNING id";
const UNPAUSE: &str = "UPDATE agents SET paused_at = NULL WHERE id IN (SELECT value FROM json_each(?1))
    AND paused_at IS NOT NULL RETURNING id";
const PARENTS: &str = "SELECT id, parent FROM agents WHERE task = ?1 AND parent IS NOT NULL";
const ANCESTORS: &str = "WITH RECURSIVE above (id) AS (
        SELECT parent FROM agents WHERE id = ?1 AND parent IS NOT NULL
        UNION SELECT agents.parent FROM agents JOIN above ON agents.id = above.id WHERE agents.parent IS NOT NULL)
    SELECT id FROM above";
/// The roles that restrict an agent: the agent's own role, and the roles of all agents above it. Directly above it are
/// its parent and the creator of its role. All agents above these two are above it, too.
const CHAIN: &str = "WITH RECURSIVE chain (id, distance) AS (
        SELECT ?1, 0 UNION
        SELECT above.id, chain.distance + 1 FROM chain JOIN agents a ON a.id = chain.id
            LEFT JOIN roles r ON r.id = a.role JOIN agents above ON above.id IN (a.parent, r.creator)
            WHERE above.id <> a.id)
    SELECT a.id, r.name, r.tool_groups FROM chain JOIN agents a ON a.id = chain.id JOIN roles r ON r.id = a.role
    GROUP BY a.id ORDER BY min(chain.distance), a.id";
/// Finds the worktree (a separate copy of the task's files) in which the agent ?1 works, and returns its owner. The
/// owner is the agent itself, or else the nearest ancestor that has a worktree.
const WORKTREE: &str = "WITH RECURSIVE chain (id, distance) AS (
        SELECT ?1, 0 UNION
        SELECT a.parent, chain.distance + 1 FROM chain JOIN agents a ON a.id = chain.id WHERE a.parent IS NOT NULL)
    SELECT a.id, a.parent FROM chain JOIN agents a ON a.id = chain.id WHERE a.own_worktree = 1
    ORDER BY chain.distance LIMIT 1";
const GIVE_WORKTREE: &str = "UPDATE agents SET own_worktree = 1 WHERE id = ?1";
const END: &str = "UPDATE agents SET ended_at = ?2 WHERE id = ?1 AND ended_at IS NULL";
const UNWRITTEN: &str = "SELECT a.id FROM agents a WHERE a.parent = ?1 AND a.task = ?2 AND a.ended_at IS NULL
    AND a.hired_in = ?3
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.task = a.task AND m.receiver = a.id) ORDER BY a.created_at, a.id";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT,
    GET,
    IN_TASK,
    EXISTS,
    COUNT_CHILDREN,
    COUNT_OF_TASK,
    BELOW,
    LIVE_SUBTREE,
    PAUSE,
    UNPAUSE,
    PARENTS,
    ANCESTORS,
    CHAIN,
    WORKTREE,
    GIVE_WORKTREE,
    END,
    UNWRITTEN,
];

/// A row of the table `agents`, with the columns of the agent's role that the rules need.
#[derive(Clone, Debug)]
pub struct AgentRow {
    pub id: AgentId,
    pub task: Option<TaskId>,
    pub parent: Option<AgentId>,
    pub role: Option<RoleId>,
    pub name: Option<String>,
    pub brief: Option<TaskBrief>,
    pub depth: u32,
    pub standing: Standing,
    pub role_name: String,
    pub interface_spec: Option<polity_society::role::InterfaceSpec>,
    pub service: Option<ServiceId>,
}

impl AgentRow {
    /// Converts the row to a [`Party`], the type that the rules work with. The party gets the capabilities that the
    /// agent's service has now.
    pub fn party(&self, catalogue: &Catalogue) -> Party {
        Party {
            id: self.id.clone(),
            task: self.task.clone(),
            role_name: self.role_name.clone(),
            interface_spec: self.interface_spec.clone(),
            objective: self.brief.as_ref().map(|brief| brief.objective.clone()),
            standing: self.standing,
            depth: self.depth,
            capabilities: catalogue.service_for(self.service.as_ref()).capabilities.clone(),
        }
    }
}

pub async fn insert(tx: &mut Tx, agent: &Agent) -> Result<(), Error> {
    polity_sql::query(INSERT)
        .bind(agent.id.as_str())
        .bind(agent.task.as_str())
        .bind(agent.parent.as_str())
        .bind(agent.role.as_str())
        .bind(agent.name.as_ref().map(polity_society::name::Name::as_str))
        .bind(Json(&agent.brief))
        .bind(agent.depth)
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("agents::inserted");
    Ok(())
}

pub async fn get(connection: &mut Connection, id: &AgentId) -> Result<Option<AgentRow>, Error> {
    let row = polity_sql::query(GET).bind(id.as_str()).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Returns the agent of a conversation. If the agent's role has no service, the row contains the service of the task.
pub async fn in_task(
    connection: &mut Connection,
    of: &super::Conversation,
) -> Result<Option<AgentRow>, Error> {
    let query = polity_sql::query(IN_TASK).bind(of.agent.as_str()).bind(of.task.as_str());
    query.fetch_optional(connection).await?.as_ref().map(read).transpose()
}

/// Returns the roles that restrict an agent, nearest first: its own role, and the roles of all agents above it.
pub async fn chain(connection: &mut Connection, id: &AgentId) -> Result<Vec<Link>, Error> {
    // Root has no role, and nobody is above it.
    if id.is_root() {
        return Ok(Vec::new());
    }
    let rows = polity_sql::query(CHAIN).bind(id.as_str()).fetch_all(connection).await?;
    let read = |row: &Row| {
        let agent: String = row.get("id");
        let groups = serde_json::from_str(&row.get::<String, _>("tool_groups"));
        let groups = groups.map_err(|error| damaged("roles", &agent, error))?;
        Ok(Link { agent: AgentId::new(agent), role: row.get("name"), groups })
    };
    rows.iter().map(read).collect()
}

/// Returns the owner of the worktree in which an agent works, and the agent that hired the owner; `None` if the agent
/// works in the workspace that the agents of the task share.
pub async fn worktree(
    connection: &mut Connection,
    id: &AgentId,
) -> Result<Option<(AgentId, AgentId)>, Error> {
    let row = polity_sql::query(WORKTREE).bind(id.as_str()).fetch_optional(connection).await?;
    let party = |row: &Row, column: &str| AgentId::new(row.get::<String, _>(column));
    Ok(row.map(|row| (party(&row, "id"), party(&row, "parent"))))
}

/// Gives an agent its own worktree.
pub async fn give_worktree(tx: &mut Tx, id: &AgentId) -> Result<(), Error> {
    polity_sql::query(GIVE_WORKTREE).bind(id.as_str()).execute(&mut tx.connection).await?;
    Ok(())
}

pub async fn exists(connection: &mut Connection, id: &str) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(EXISTS).bind(id).fetch_one(connection).await?)
}

/// Counts the agents that an agent has hired in a task and that have not ended.
pub async fn count_children(
    connection: &mut Connection,
    parent: &AgentId,
    task: &TaskId,
) -> Result<u64, Error> {
    let count: i64 = polity_sql::query_scalar(COUNT_CHILDREN)
        .bind(parent.as_str())
        .bind(task.as_str())
        .fetch_one(connection)
        .await?;
    Ok(count.unsigned_abs())
}

/// Counts the agents of a task that have not ended.
pub async fn count_of_task(connection: &mut Connection, task: &TaskId) -> Result<u64, Error> {
    let count: i64 =
        polity_sql::query_scalar(COUNT_OF_TASK).bind(task.as_str()).fetch_one(connection).await?;
    Ok(count.unsigned_abs())
}

/// Returns all descendants of an agent in a task, parents before children.
pub async fn below(
    connection: &mut Connection,
    agent: &AgentId,
    task: &TaskId,
) -> Result<Vec<AgentRow>, Error> {
    let rows =
        polity_sql::query(BELOW).bind(agent.as_str()).bind(task.as_str()).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// Returns all ancestors of an agent.
pub async fn ancestors(connection: &mut Connection, agent: &AgentId) -> Result<Vec<AgentId>, Error> {
    let rows = polity_sql::query(ANCESTORS).bind(agent.as_str()).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| AgentId::new(row.get::<String, _>(0))).collect())
}

/// Returns the agents of a subtree that have not ended, parents before children. The subtree is the agent `top` and
/// all its descendants in all tasks.
pub async fn live_subtree(connection: &mut Connection, top: &AgentId) -> Result<Vec<AgentId>, Error> {
    let ids: Vec<String> =
        polity_sql::query_scalar(LIVE_SUBTREE).bind(top.as_str()).fetch_all(connection).await?;
    Ok(ids.into_iter().map(AgentId::new).collect())
}

/// Notes that the person paused these agents. Returns those that were not paused before and have not ended.
pub async fn pause(tx: &mut Tx, agents: &[AgentId]) -> Result<BTreeSet<AgentId>, Error> {
    let query = polity_sql::query(PAUSE).bind(Json(agents)).bind(tx.now.as_millis());
    let rows = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("agents::paused");
    Ok(rows.iter().map(|row| AgentId::new(row.get::<String, _>("id"))).collect())
}

/// Notes that these agents were resumed. Returns those that were paused before.
pub async fn unpause(tx: &mut Tx, agents: &[AgentId]) -> Result<BTreeSet<AgentId>, Error> {
    let rows = polity_sql::query(UNPAUSE).bind(Json(agents)).fetch_all(&mut tx.connection).await?;
    polity_points::point!("agents::unpaused");
    Ok(rows.iter().map(|row| AgentId::new(row.get::<String, _>("id"))).collect())
}

/// Returns the parent of each agent in a task, including agents that have ended.
pub async fn parents(connection: &mut Connection, task: &TaskId) -> Result<HashMap<AgentId, AgentId>, Error> {
    let rows = polity_sql::query(PARENTS).bind(task.as_str()).fetch_all(connection).await?;
    let read =
        |row: &Row| (AgentId::new(row.get::<String, _>("id")), AgentId::new(row.get::<String, _>("parent")));
    Ok(rows.iter().map(read).collect())
}

/// Notes that an agent has ended. Returns false if the agent had ended before.
pub async fn end(tx: &mut Tx, id: &AgentId) -> Result<bool, Error> {
    let done =
        polity_sql::query(END).bind(id.as_str()).bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    polity_points::point!("agents::ended");
    Ok(done.rows_affected() == 1)
}

/// Returns the agents that an agent has hired in a turn. Leaves out agents that have ended, and agents to which
/// somebody has sent a message.
pub async fn unwritten_children(
    connection: &mut Connection,
    conversation: &super::Conversation,
    turn: TurnId,
) -> Result<Vec<AgentId>, Error> {
    let query = polity_sql::query(UNWRITTEN)
        .bind(conversation.agent.as_str())
        .bind(conversation.task.as_str())
        .bind(turn.number());
    let rows = query.fetch_all(connection).await?;
    Ok(rows.iter().map(|row| AgentId::new(row.get::<String, _>(0))).collect())
}

pub(crate) fn read(row: &Row) -> Result<AgentRow, Error> {
    let id: String = row.get("id");
    let parse = |column: &str| row.get::<Option<String>, _>(column);
    let brief = parse("brief").map(|text| serde_json::from_str(&text)).transpose();
    let interface_spec = parse("interface_spec").map(|text| serde_json::from_str(&text)).transpose();
    let ended = row.get::<Option<i64>, _>("ended_at").is_some();
    let depth = u32::try_from(row.get::<i64, _>("depth"));
    Ok(AgentRow {
        task: parse("task").map(TaskId::new),
        parent: parse("parent").map(AgentId::new),
        role: parse("role").map(RoleId::new),
        name: parse("name"),
        brief: brief.map_err(|error| damaged("agents", &id, error))?,
        depth: depth.map_err(|error| damaged("agents", &id, error))?,
        standing: if ended { Standing::Ended } else { Standing::Active },
        // The agent `root` and the person (`user`) have no role, so their ids serve as role names.
        role_name: parse("role_name").unwrap_or_else(|| id.clone()),
        interface_spec: interface_spec.map_err(|error| damaged("agents", &id, error))?,
        service: parse("service").map(ServiceId::new),
        id: AgentId::new(id),
    })
}
