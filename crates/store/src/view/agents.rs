//! Reads agents, their contacts and their tasks, for the views.

use super::doing::{self, BASE, Facts, Moments};
use super::{Builder, as_far_as_it_goes, cut, sound, usage};
use crate::agents::{self, AgentRow};
use crate::messages::requests::answerable;
use crate::{Error, damaged};
use polity_registry::{Catalogue, Service};
use polity_society::agent::Standing;
use polity_society::contact::Source;
use polity_society::content::{Capabilities, Direction};
use polity_society::id::{AgentId, RoleId, ServiceId, TaskId};
use polity_sql::{Connection, Row};
use polity_view::{
    AgentFilter, AgentState, AgentView, ContactView, Doing, HoldView, MAX_PAGE, UsageSum, page,
};
use serde_json::json;
use std::sync::Arc;

/// Every agent with the facts that decide its state. Each parameter is the id of a task: only facts of this task are
/// read. NULL means all tasks. Root and the person take part in every task.
const AGENTS: &str = concat!(
    "SELECT a.rowid AS place, a.id, a.task, a.parent, a.role, a.name, a.depth, a.ended_at, a.paused_at,
    a.created_at, r.name AS role_name, coalesce(r.service, (SELECT service FROM tasks WHERE id = ?)) AS service,
    EXISTS (SELECT 1 FROM holds WHERE agent = a.id AND task = coalesce(?, task)) AS parked,
    EXISTS (SELECT 1 FROM turns t INDEXED BY turns_open_of WHERE t.agent = a.id AND t.state = 'open'
        AND t.task = coalesce(?, t.task)
        AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.agent = a.id AND h.task = t.task)
        AND NOT EXISTS (SELECT 1 FROM approvals p INDEXED BY approvals_of_agent
            WHERE p.agent = a.id AND p.task = t.task AND p.state = 'open'))
    OR EXISTS (SELECT 1 FROM messages q INDEXED BY messages_waiting WHERE q.receiver = a.id AND q.state = 'queued'
        AND a.id <> 'user' AND q.task = coalesce(?, q.task)
        AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.agent = a.id AND h.task = q.task)
        AND NOT EXISTS (SELECT 1 FROM approvals p INDEXED BY approvals_of_agent
            WHERE p.agent = a.id AND p.task = q.task AND p.state = 'open')) AS works,
    EXISTS (SELECT 1 FROM approvals INDEXED BY approvals_of_agent WHERE agent = a.id AND state = 'open'
        AND task = coalesce(?, task)) AS asking,
    (SELECT count(*) FROM messages INDEXED BY messages_waiting
        WHERE receiver = a.id AND state = 'queued' AND task = coalesce(?, task)) AS unread,
    EXISTS (SELECT 1 FROM messages INDEXED BY messages_asked WHERE sender = a.id AND expects = 'answer'
        AND answered_by IS NULL AND receiver <> a.id AND ",
    answerable!(),
    "
        AND task = coalesce(?, task)) AS waits,
    EXISTS (SELECT 1 FROM messages INDEXED BY messages_asked WHERE sender = a.id AND expects = 'answer'
        AND answered_by IS NULL AND receiver = 'user' AND a.id <> 'user'
        AND ",
    answerable!(),
    " AND task = coalesce(?, task)) AS questions
    FROM agents a LEFT JOIN roles r ON r.id = a.role"
);
const CONTACTS: &str = "SELECT a.id, a.task, a.parent, a.role, a.name, a.brief, a.depth, a.ended_at,
    r.name AS role_name, r.interface_spec, r.service, c.source, c.introduced_by, c.since
    FROM contacts c INDEXED BY contacts_in_order CROSS JOIN agents a ON a.id = c.agent LEFT JOIN roles r ON r.id = a.role
    WHERE c.owner = ?1 ORDER BY c.since DESC, c.agent DESC LIMIT ?2";
const HOLDS: &str = "SELECT task, reason FROM holds WHERE agent = ?1 ORDER BY created_at, task LIMIT ?2";
const CHILDREN: &str =
    "SELECT id FROM agents INDEXED BY agents_of_parent WHERE parent = ?1 ORDER BY rowid DESC LIMIT ?2";
/// The tasks of the newest turns of an agent, and how many of these turns each task has.
const CONVERSATIONS: &str = "SELECT task, count(*) AS turns
    FROM (SELECT id, task FROM turns INDEXED BY turns_of_agent WHERE agent = ?1 ORDER BY id DESC LIMIT ?2)
    GROUP BY task ORDER BY max(id) DESC";
/// Counts the tasks in which an agent has had a turn, up to ?2. Each step finds the next task in the index, so the turns
/// themselves are not read.
const TASK_COUNT: &str = "WITH RECURSIVE found (task) AS (
        SELECT min(task) FROM turns INDEXED BY turns_of_conversation WHERE agent = ?1
        UNION ALL SELECT (SELECT min(task) FROM turns INDEXED BY turns_of_conversation
            WHERE agent = ?1 AND task > found.task) FROM found WHERE found.task IS NOT NULL LIMIT ?2)
    SELECT count(task) FROM found";
const NEWEST_TASK: &str =
    "SELECT task FROM turns INDEXED BY turns_of_agent WHERE agent = ?1 ORDER BY id DESC LIMIT 1";
const LIVE_OF_ROLE: &str =
    "SELECT count(*) FROM agents INDEXED BY agents_live WHERE role = ?1 AND ended_at IS NULL";
/// Root has no role. The person has none either and does not count.
const BY_SERVICE: &str = "SELECT service, agents FROM served
    UNION ALL SELECT NULL, count(*) FROM agents WHERE id = 'root' AND ended_at IS NULL";

/// Finds all agents that are not idle, and some that are. Each part reads an index that has only rows of what goes on
/// now.
const NOT_IDLE: &str = concat!(
    "SELECT agent FROM turns INDEXED BY turns_open_of WHERE state = 'open'
    UNION SELECT receiver FROM messages INDEXED BY messages_waiting WHERE state = 'queued' AND receiver <> 'user'
    UNION SELECT agent FROM holds
    UNION SELECT agent FROM approvals INDEXED BY approvals_of_agent WHERE state = 'open'
    UNION SELECT sender FROM messages INDEXED BY messages_asked WHERE expects = 'answer' AND answered_by IS NULL
        AND sender <> 'user' AND ",
    answerable!(),
    "
    UNION SELECT id FROM agents INDEXED BY agents_paused WHERE paused_at IS NOT NULL"
);

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    AGENTS,
    CONTACTS,
    HOLDS,
    CHILDREN,
    CONVERSATIONS,
    TASK_COUNT,
    NEWEST_TASK,
    LIVE_OF_ROLE,
    BY_SERVICE,
    NOT_IDLE,
];

/// The number of turns from which the tasks of an agent are listed. One more is read, to find out whether there are
/// more. Only then, older turns may be in further tasks.
const MOST_TURNS: u32 = 2 * MAX_PAGE;

/// The newest rows of a list, and whether it has older rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest<T> {
    pub rows: Vec<T>,
    pub more: bool,
}

impl<T> Newest<T> {
    /// Cuts the rows of a statement to a page. The rows are the newest first, at most one more than a page has.
    fn page(mut rows: Vec<T>) -> Self {
        let more = rows.len() > MAX_PAGE as usize;
        rows.truncate(MAX_PAGE as usize);
        Self { rows, more }
    }

    /// Puts the oldest of these rows first.
    fn oldest_first(mut self) -> Self {
        self.rows.reverse();
        self
    }
}

/// Returns a page of agents, and where the next page begins.
pub async fn list(
    connection: &mut Connection,
    catalogue: &Catalogue,
    moments: &Moments,
    filter: &AgentFilter,
) -> Result<(Vec<AgentView>, Option<i64>), Error> {
    let limit = page(filter.limit);
    let mut query = matching("*", catalogue, moments, filter);
    if let Some(after) = filter.after {
        query.push(" AND place > ").push_bind(after);
    }
    if filter.unfinished {
        query.push(" AND ").push(unfinished());
    }
    query.push(" ORDER BY place LIMIT ").push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut agents = rows.iter().map(|row| read(row, catalogue)).collect::<Result<Vec<_>, _>>()?;
    let next = cut(&mut agents, limit);
    let agents = agents.into_iter().map(|(_, agent)| agent).collect();
    Ok((complete(connection, agents, catalogue, moments, filter.task.as_ref()).await?, next))
}

/// Counts the agents that `unfinished` leaves out. Returns `None` without `unfinished`, and for all pages but the first.
pub async fn left_out(
    connection: &mut Connection,
    catalogue: &Catalogue,
    moments: &Moments,
    filter: &AgentFilter,
) -> Result<Option<u64>, Error> {
    if !filter.unfinished || filter.after.is_some() {
        return Ok(None);
    }
    let mut query = matching("count(*) AS count", catalogue, moments, filter);
    query.push(" AND NOT ").push(unfinished());
    let row = query.build().fetch_one(connection).await?;
    Ok(Some(row.get::<i64, _>("count").unsigned_abs()))
}

/// Returns the condition that agents may have something left to do. Some idle agents of finished tasks fulfil it, too,
/// as [`NOT_IDLE`] finds them.
fn unfinished() -> String {
    format!(
        "(ended_at IS NULL AND (task IS NULL OR task IN (SELECT id FROM tasks WHERE state = 'open')
            OR id IN ({NOT_IDLE})))"
    )
}

/// Begins a statement about the agents that a filter selects, on all pages, without regard to `unfinished`.
fn matching(what: &str, catalogue: &Catalogue, moments: &Moments, filter: &AgentFilter) -> Builder {
    let mut query = select(what, filter.task.as_ref());
    if !filter.ids.is_empty() {
        let ids = json!(filter.ids).to_string();
        query.push(" AND id IN (SELECT value FROM json_each(").push_bind(ids).push("))");
    }
    if let Some(task) = &filter.task {
        query.push(" AND (task IS NULL OR task = ").push_bind(task.as_str().to_owned()).push(")");
    }
    match filter.state {
        Some(state) => moments.filter(&mut query, state),
        None if filter.include_ended || filter.unfinished => {}
        None => {
            query.push(" AND ended_at IS NULL");
        }
    }
    if let Some(role) = &filter.role {
        query.push(" AND ").push_bind(role.clone()).push(" IN (role, coalesce(role_name, id))");
    }
    if let Some(capability) = &filter.capability {
        let direction = filter.direction.unwrap_or(Direction::Input);
        let ids = |services: Vec<&Arc<Service>>| {
            json!(services.iter().map(|service| &service.id).collect::<Vec<_>>()).to_string()
        };
        // If the service of a role no longer exists, the default service replaces it.
        query.push(" AND id <> 'user' AND CASE WHEN service IN (SELECT value FROM json_each(");
        query.push_bind(ids(catalogue.services().iter().collect())).push(")) THEN service ELSE ");
        query
            .push_bind(catalogue.default_service().id.to_string())
            .push(" END IN (SELECT value FROM json_each(");
        query.push_bind(ids(catalogue.services_with(capability, direction))).push("))");
    }
    query
}

/// Returns an agent; `None` if there is no agent with this id.
pub async fn get(
    connection: &mut Connection,
    catalogue: &Catalogue,
    moments: &Moments,
    id: &AgentId,
) -> Result<Option<AgentView>, Error> {
    let mut query = select("*", None);
    query.push(" AND id = ").push_bind(id.as_str().to_owned());
    let row = query.build().fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(None) };
    let agents = vec![read(&row, catalogue)?.1];
    Ok(complete(connection, agents, catalogue, moments, None).await?.pop())
}

/// Returns the agents with these ids, in any order, with what they do in one task or in all tasks. Ids without an agent
/// are skipped.
pub async fn several(
    connection: &mut Connection,
    catalogue: &Catalogue,
    moments: &Moments,
    ids: &[AgentId],
    task: Option<&TaskId>,
) -> Result<Vec<AgentView>, Error> {
    let mut query = select("*", task);
    query.push(" AND id IN (SELECT value FROM json_each(").push_bind(json!(ids).to_string()).push("))");
    let rows = query.build().fetch_all(&mut *connection).await?;
    let bare = rows.iter().map(|row| Ok(read(row, catalogue)?.1)).collect::<Result<Vec<_>, Error>>()?;
    complete(connection, bare, catalogue, moments, task).await
}

/// Begins a statement that selects something of all agents. Callers add conditions to the statement.
fn select(what: &str, task: Option<&TaskId>) -> Builder {
    let statement = format!("SELECT {what} FROM (SELECT *, {BASE} AS base FROM ({AGENTS})) WHERE 1");
    let mut query = Builder::new(statement);
    for _ in AGENTS.matches('?') {
        query.bind(task.map(|task| task.as_str().to_owned()));
    }
    query
}

/// The view of an agent, made from the agent's own row only, and the time at which the agent was paused.
type Bare = (AgentView, Option<i64>);

fn read(row: &Row, catalogue: &Catalogue) -> Result<(i64, Bare), Error> {
    let id: String = row.get("id");
    let text = |column: &str| row.get::<Option<String>, _>(column);
    let depth = u32::try_from(row.get::<i64, _>("depth")).map_err(|error| damaged("agents", &id, error))?;
    let service = (id != "user").then(|| catalogue.service_for(text("service").map(ServiceId::new).as_ref()));
    let mut agent = AgentView {
        name: text("name"),
        role_id: text("role").map(RoleId::new),
        role: text("role_name").unwrap_or_else(|| id.clone()),
        parent: text("parent").map(AgentId::new),
        task: text("task").map(TaskId::new),
        depth,
        // These values of `state` and `doing` are placeholders, which the function `complete` replaces.
        state: AgentState::Idle,
        doing: Doing::Idle,
        service: None,
        model: None,
        capabilities: None,
        waiting: row.get::<i64, _>("unread").unsigned_abs(),
        waits_for: Vec::new(),
        created_at: row.get("created_at"),
        ended_at: row.get("ended_at"),
        usage: UsageSum::default(),
        id: AgentId::new(id),
    };
    if let Some(service) = service {
        show_service(&mut agent, service);
    }
    Ok((row.get("place"), (agent, row.get("paused_at"))))
}

/// Completes the agents of a page: adds what each agent is doing, whom it waits for, and its usage, in one task or in
/// all tasks. The number of statements does not depend on the number of agents.
async fn complete(
    connection: &mut Connection,
    bare: Vec<Bare>,
    catalogue: &Catalogue,
    moments: &Moments,
    task: Option<&TaskId>,
) -> Result<Vec<AgentView>, Error> {
    let ids = json!(bare.iter().map(|(agent, _)| &agent.id).collect::<Vec<_>>()).to_string();
    let mut facts = doing::facts(connection, &ids, task).await?;
    let ids: Vec<&AgentId> = bare.iter().map(|(agent, _)| &agent.id).collect();
    let spent = usage::of_agents(connection, &ids, task).await?;
    let complete = |(mut agent, paused): Bare| {
        let facts = Facts { ended: agent.ended_at, paused, ..facts.remove(&agent.id).unwrap_or_default() };
        agent.waits_for = facts.waits_for();
        agent.usage = spent.get(&agent.id).copied().unwrap_or_default();
        agent.doing = doing::doing(facts, moments.of(&agent.id));
        agent.state = agent.doing.state();
        if let Some(called) = agent.doing.service().and_then(|id| catalogue.service(id)) {
            show_service(&mut agent, called);
        }
        agent
    };
    Ok(bare.into_iter().map(complete).collect())
}

fn show_service(agent: &mut AgentView, service: &Service) {
    agent.service = Some(service.id.clone());
    agent.model = Some(service.endpoint.model.clone());
    agent.capabilities = Some(service.capabilities.clone());
}

/// Returns the newest contacts of an agent in all tasks, in the order in which the agent came to know them. Agents that
/// have ended come last.
pub async fn contacts(
    connection: &mut Connection,
    catalogue: &Catalogue,
    owner: &AgentId,
) -> Result<Newest<ContactView>, Error> {
    let query = polity_sql::query(CONTACTS).bind(owner.as_str()).bind(MAX_PAGE + 1);
    let rows = query.fetch_all(connection).await?;
    let read = |row: &Row| {
        let (agent, damage) = match sound("agents", row, agents::read) {
            Ok(agent) => (agent, None),
            Err(error) => {
                tracing::warn!(%error, "a contact is shown as damaged; run `polity db check` for details");
                (as_far_as_it_is_read(row), Some(error.to_string()))
            }
        };
        let none = Capabilities { input: Vec::new(), output: Vec::new() };
        let party = agent.party(catalogue);
        ContactView {
            role: party.role_name,
            source: Source::from_name(&as_far_as_it_goes(row, "source")),
            introduced_by: row.try_get::<Option<String>, _>("introduced_by").ok().flatten().map(AgentId::new),
            since: row.get("since"),
            standing: party.standing,
            capabilities: if party.id.is_user() { none } else { party.capabilities },
            interface_spec: party.interface_spec,
            agent: party.id,
            damage,
        }
    };
    let mut contacts = Newest::page(rows.iter().map(read).collect()).oldest_first();
    contacts.rows.sort_by_key(|contact| contact.standing == Standing::Ended);
    Ok(contacts)
}

/// Reads the undamaged columns of a contact whose row is damaged.
fn as_far_as_it_is_read(row: &Row) -> AgentRow {
    let optional = |column: &str| row.try_get::<Option<String>, _>(column).ok().flatten();
    let id = AgentId::new(as_far_as_it_goes(row, "id"));
    AgentRow {
        task: optional("task").map(TaskId::new),
        parent: optional("parent").map(AgentId::new),
        role: optional("role").map(RoleId::new),
        name: optional("name"),
        brief: None,
        depth: 0,
        standing: match row.try_get::<Option<i64>, _>("ended_at") {
            Ok(Some(_)) => Standing::Ended,
            Ok(None) | Err(_) => Standing::Active,
        },
        role_name: optional("role_name").unwrap_or_else(|| id.to_string()),
        interface_spec: None,
        service: optional("service").map(ServiceId::new),
        id,
    }
}

/// Returns the tasks in which an agent is parked, with the reasons.
pub async fn holds(connection: &mut Connection, agent: &AgentId) -> Result<Vec<HoldView>, Error> {
    let rows = polity_sql::query(HOLDS).bind(agent.as_str()).bind(MAX_PAGE).fetch_all(connection).await?;
    let read =
        |row: &Row| HoldView { task: TaskId::new(row.get::<String, _>("task")), reason: row.get("reason") };
    Ok(rows.iter().map(read).collect())
}

/// Returns the newest of the agents that an agent has hired, in the order of hiring.
pub async fn children(connection: &mut Connection, agent: &AgentId) -> Result<Newest<AgentId>, Error> {
    let query = polity_sql::query_scalar(CHILDREN).bind(agent.as_str()).bind(MAX_PAGE + 1);
    let ids: Vec<String> = query.fetch_all(connection).await?;
    Ok(Newest::page(ids.into_iter().map(AgentId::new).collect()).oldest_first())
}

/// Returns the tasks in which an agent has had a turn lately, the most recent first.
pub async fn tasks(connection: &mut Connection, agent: &AgentId) -> Result<Newest<TaskId>, Error> {
    let query = polity_sql::query(CONVERSATIONS).bind(agent.as_str()).bind(MOST_TURNS + 1);
    let rows = query.fetch_all(connection).await?;
    let turns: i64 = rows.iter().map(|row| row.get::<i64, _>("turns")).sum();
    let page = Newest::page(rows.iter().map(|row| TaskId::new(row.get::<String, _>("task"))).collect());
    if page.more || turns <= i64::from(MOST_TURNS) {
        return Ok(page);
    }
    let shown = i64::try_from(page.rows.len()).unwrap_or(i64::MAX);
    let query = polity_sql::query_scalar(TASK_COUNT).bind(agent.as_str()).bind(shown.saturating_add(1));
    let count: i64 = query.fetch_one(connection).await?;
    Ok(Newest { more: count > shown, ..page })
}

/// Returns the task in which an agent had its newest turn.
pub async fn newest_task(connection: &mut Connection, agent: &AgentId) -> Result<Option<TaskId>, Error> {
    let task: Option<String> =
        polity_sql::query_scalar(NEWEST_TASK).bind(agent.as_str()).fetch_optional(connection).await?;
    Ok(task.map(TaskId::new))
}

/// Counts the agents of a role that have not ended.
pub async fn live_of_role(connection: &mut Connection, role: &RoleId) -> Result<u64, Error> {
    let count: i64 = polity_sql::query_scalar(LIVE_OF_ROLE).bind(role.as_str()).fetch_one(connection).await?;
    Ok(count.unsigned_abs())
}

/// Counts the live agents for each service that a role names. Root has no role and counts under `None`.
pub async fn by_service(connection: &mut Connection) -> Result<Vec<(Option<ServiceId>, u64)>, Error> {
    let rows = polity_sql::query(BY_SERVICE).fetch_all(connection).await?;
    let read = |row: &Row| {
        let service = row.get::<Option<String>, _>("service").map(ServiceId::new);
        (service, row.get::<i64, _>("agents").unsigned_abs())
    };
    Ok(rows.iter().map(read).collect())
}

/// Returns root and all live agents that are not idle, in the order of hiring. The agents that are idle are not read,
/// because their number grows with the history.
pub async fn not_idle(
    connection: &mut Connection,
    catalogue: &Catalogue,
    moments: &Moments,
) -> Result<Vec<AgentView>, Error> {
    let mut ids: Vec<String> = polity_sql::query_scalar(NOT_IDLE).fetch_all(&mut *connection).await?;
    ids.push(AgentId::root().to_string());
    let mut query = select("*", None);
    query.push(" AND ended_at IS NULL AND id IN (SELECT value FROM json_each(");
    query.push_bind(json!(ids).to_string()).push(")) ORDER BY place");
    let rows = query.build().fetch_all(&mut *connection).await?;
    let bare = rows.iter().map(|row| Ok(read(row, catalogue)?.1)).collect::<Result<Vec<_>, Error>>()?;
    let mut agents = complete(connection, bare, catalogue, moments, None).await?;
    agents.retain(|agent| agent.id.is_root() || agent.state != AgentState::Idle);
    Ok(agents)
}

/// Counts the live agents in each state except `ended`. Root counts, the person does not.
pub async fn by_state(
    connection: &mut Connection,
    catalogue: &Catalogue,
    moments: &Moments,
) -> Result<Vec<(AgentState, u64)>, Error> {
    let live: u64 = by_service(&mut *connection).await?.into_iter().map(|(_, agents)| agents).sum();
    let agents = not_idle(connection, catalogue, moments).await?;
    let count = |state: AgentState| agents.iter().filter(|agent| agent.state == state).count() as u64;
    let states = AgentState::ALL.iter().copied().filter(|state| *state != AgentState::Ended);
    let mut counts: Vec<(AgentState, u64)> = states.map(|state| (state, count(state))).collect();
    let others: u64 =
        counts.iter().filter(|(state, _)| *state != AgentState::Idle).map(|(_, count)| count).sum();
    for (_, count) in counts.iter_mut().filter(|(state, _)| *state == AgentState::Idle) {
        *count = live.saturating_sub(others);
    }
    Ok(counts)
}
