//! Table `tasks`: the state of each task, its workspace, and what has stopped the task: a limit or the person.

use super::messages::requests::{awaited, open_question};
use super::{Error, Tx, damaged};
use polity_society::id::{ServiceId, TaskId};
use polity_society::workspace::Root;
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::Outcome;
use std::collections::HashMap;
use std::time::Duration;

const INSERT: &str = "INSERT INTO tasks (id, service, state, created_at) VALUES (?1, ?2, 'open', ?3)";
const EXISTS: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1)";
const REMEMBERED: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND forgotten_at IS NULL)";
/// Finds, among the tasks in the JSON array ?1, the forgotten tasks in which no agent works.
const FORGOTTEN: &str = "SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(?1))
    AND forgotten_at IS NOT NULL AND state = 'idle' ORDER BY rowid";
const SET_WORKSPACE: &str = "UPDATE tasks SET workspace = ?2 WHERE id = ?1";
const WORKSPACE: &str = "SELECT workspace FROM tasks WHERE id = ?1";
const SERVICE: &str = "SELECT service FROM tasks WHERE id = ?1";
// Row numbers give the order of tasks, since clocks can be set back.
const OPEN: &str = "SELECT id FROM tasks WHERE state = 'open' ORDER BY rowid";
const IS_OPEN: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND state = 'open')";
const LATEST: &str = "SELECT id FROM tasks ORDER BY rowid DESC LIMIT 1";
const REOPEN: &str = "UPDATE tasks SET state = 'open', nudged = 0, stopped_by = NULL WHERE id = ?1";
const WAKE: &str = "UPDATE tasks SET state = 'open', nudged = 0 WHERE id = ?1";
const IDLE: &str = "UPDATE tasks SET state = 'idle', worked_ms = max(worked_ms, ?2) WHERE id = ?1";
const STOP: &str = "UPDATE tasks SET stopped_by = ?2 WHERE id = ?1
    AND (stopped_by IS NULL OR stopped_by = 'user' AND ?2 <> 'user')";
const NUDGE: &str = "UPDATE tasks SET nudged = 1 WHERE id = ?1";
const STOPPED_BY: &str = "SELECT stopped_by FROM tasks WHERE id = ?1";
const WORKED: &str = "SELECT worked_ms FROM tasks WHERE id = ?1";
const SET_WORKED: &str = "UPDATE tasks SET worked_ms = max(worked_ms, ?2) WHERE id = ?1";
const STANDINGS: &str = concat!(
    "SELECT t.id, t.state = 'open' AS open, t.nudged, t.stopped_by IS NOT NULL AND t.stopped_by <> 'user' AS limited,
    coalesce(t.stopped_by = 'user', 0) AS stopped,
    EXISTS (SELECT 1 FROM turns WHERE task = t.id AND state = 'open'
            AND agent NOT IN (SELECT agent FROM holds WHERE task = t.id)
            AND id NOT IN (SELECT turn FROM approvals WHERE task = t.id AND state = 'open')) AS turning,
    EXISTS (SELECT 1 FROM messages INDEXED BY messages_unread WHERE task = t.id AND state IN ('queued', 'delayed')
            AND (state = 'delayed' OR receiver <> 'user')
            AND receiver NOT IN (SELECT agent FROM holds WHERE task = t.id)
            AND receiver NOT IN (SELECT agent FROM approvals WHERE task = t.id AND state = 'open')) AS mail,
    EXISTS (SELECT 1 FROM holds WHERE task = t.id AND agent = 'root') AS root_parked,
    EXISTS (SELECT 1 FROM messages asked INDEXED BY messages_owed_to_user WHERE asked.task = t.id AND asked.sender = 'user'
            AND asked.expects = 'answer' AND asked.answered_by IS NULL AND asked.state <> 'bounced'
            AND NOT EXISTS (SELECT 1 FROM messages said INDEXED BY messages_between WHERE said.task = t.id
                AND said.sender = asked.receiver AND said.receiver = 'user' AND said.finality = 'final'
                AND said.seq > asked.seq AND said.sent_in >= asked.turn)) AS unanswered,
    coalesce((SELECT said.finality FROM messages said INDEXED BY messages_between WHERE said.task = t.id
        AND said.sender = 'root' AND said.receiver = 'user' AND said.expects = 'nothing' AND said.type <> 'status_report'
        ORDER BY said.seq DESC LIMIT 1) = 'interim', 0) AS expectant,
    EXISTS (SELECT 1 FROM messages INDEXED BY messages_open_requests WHERE task = t.id AND ",
    open_question!(),
    ")
        OR EXISTS (SELECT 1 FROM approvals WHERE task = t.id AND state = 'open') AS asks_user,
    EXISTS (SELECT 1 FROM messages m INDEXED BY messages_open WHERE m.task = t.id AND m.sender <> 'user' AND ",
    awaited!(),
    ") AS waiting,
    (SELECT state FROM turns WHERE task = t.id AND agent = 'root' ORDER BY id DESC LIMIT 1) = 'failed' AS root_failed,
    EXISTS (SELECT 1 FROM model_calls WHERE task = t.id)
        OR EXISTS (SELECT 1 FROM events WHERE task = t.id AND kind = 'model_failed'
            AND json_extract(body, '$.kind') IN ('refused', 'media_refused', 'context_overflow', 'call_not_parsed',
                                                        'tools_refused', 'no_such_model')
            AND (coalesce(json_extract(body, '$.status'), 404) <> 404
                OR json_extract(body, '$.kind') = 'context_overflow')) AS model_reached
    FROM tasks t WHERE t.id IN (SELECT value FROM json_each(?1))"
);

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT,
    EXISTS,
    REMEMBERED,
    FORGOTTEN,
    SET_WORKSPACE,
    WORKSPACE,
    SERVICE,
    OPEN,
    IS_OPEN,
    LATEST,
    REOPEN,
    WAKE,
    IDLE,
    STOP,
    NUDGE,
    STOPPED_BY,
    WORKED,
    SET_WORKED,
    STANDINGS,
];

/// The value of the column `stopped_by` if the person has stopped a task. If a limit has stopped the task, the value is
/// the name of the limit.
pub const STOPPED_BY_USER: &str = "user";

/// The facts that decide whether a task is over, and with which outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The task is open. When nothing is left to do in the task, it becomes idle, and this is false.
    pub open: bool,
    /// Root has got a nudge: the notice that the user has heard nothing final.
    pub nudged: bool,
    /// A limit has stopped the task.
    pub limited: bool,
    /// The person has stopped the task.
    pub stopped: bool,
    /// An agent has an open turn, is not parked, and does not wait for the person to allow a call.
    pub turning: bool,
    /// A message is queued for an agent, or delayed for any party. Messages for agents that are parked, or that wait
    /// for the person to allow a call, do not count.
    pub mail: bool,
    /// A request of the person is unanswered, and its receiver has told the person nothing final since reading it.
    pub unanswered: bool,
    /// Root's last message to the person announced that further messages will follow.
    pub expectant: bool,
    /// An agent has asked the person something, or wants to make a call that the person must allow.
    pub asks_user: bool,
    /// An agent waits for an answer.
    pub waiting: bool,
    /// Root's last turn failed, or root is parked: root will send nothing more.
    pub root_failed: bool,
    /// Root's last turn failed, and the task never reached a model. The task has reached a model if the model answered
    /// a call or refused a request. If only the server answered, because it rejected the key or does not have the
    /// model, the model does not count as reached.
    pub unreached: bool,
}

impl Standing {
    /// Returns the outcome of a task in which nothing is left to do. If several outcomes apply, the one that is checked
    /// first is returned.
    pub fn outcome(&self) -> Outcome {
        if self.unreached && self.unanswered {
            Outcome::NoModel
        } else if self.limited {
            Outcome::Limited
        } else if self.asks_user {
            Outcome::AwaitsUser
        } else if self.unanswered || self.stopped {
            Outcome::Unanswered
        } else {
            Outcome::Answered
        }
    }
}

pub async fn insert(tx: &mut Tx, id: &TaskId, service: Option<&ServiceId>) -> Result<(), Error> {
    let query = polity_sql::query(INSERT)
        .bind(id.as_str())
        .bind(service.map(ServiceId::as_str))
        .bind(tx.now.as_millis());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("tasks::inserted");
    Ok(())
}

pub async fn exists(connection: &mut Connection, id: &TaskId) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(EXISTS).bind(id.as_str()).fetch_one(connection).await?)
}

/// Returns whether the task exists and still has its messages and records.
pub async fn is_remembered(connection: &mut Connection, id: &TaskId) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(REMEMBERED).bind(id.as_str()).fetch_one(connection).await?)
}

/// Returns, from a list of tasks, the tasks whose messages and records were removed and in which no agent works.
pub async fn forgotten(connection: &mut Connection, tasks: &[TaskId]) -> Result<Vec<TaskId>, Error> {
    let ids: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    let rows =
        polity_sql::query(FORGOTTEN).bind(serde_json::json!(ids).to_string()).fetch_all(connection).await?;
    Ok(rows.into_iter().map(|row| TaskId::new(row.get::<String, _>(0))).collect())
}

/// Returns the service that the person chose for root in this task.
pub async fn service(connection: &mut Connection, id: &TaskId) -> Result<Option<ServiceId>, Error> {
    let row = polity_sql::query(SERVICE).bind(id.as_str()).fetch_optional(connection).await?;
    Ok(row.and_then(|row| row.get::<Option<String>, _>(0)).map(ServiceId::new))
}

/// Sets the directory of the person in which the agents of a task work.
pub async fn set_workspace(tx: &mut Tx, id: &TaskId, root: &Root) -> Result<(), Error> {
    let query = polity_sql::query(SET_WORKSPACE).bind(id.as_str()).bind(polity_sql::Json(root));
    query.execute(&mut tx.connection).await?;
    Ok(())
}

/// Returns the place in which the agents of a task work.
pub async fn workspace(connection: &mut Connection, id: &TaskId) -> Result<Root, Error> {
    let row = polity_sql::query(WORKSPACE).bind(id.as_str()).fetch_optional(connection).await?;
    let text = row.and_then(|row| row.get::<Option<String>, _>(0));
    let read = text.map(|text| serde_json::from_str(&text)).transpose();
    Ok(read.map_err(|error| damaged("tasks", id.as_str(), error))?.unwrap_or_default())
}

/// Returns the tasks that are not idle, oldest first.
pub async fn open(connection: &mut Connection) -> Result<Vec<TaskId>, Error> {
    let rows = polity_sql::query(OPEN).fetch_all(connection).await?;
    Ok(rows.into_iter().map(|row| TaskId::new(row.get::<String, _>(0))).collect())
}

/// Returns whether a task is not idle.
pub async fn is_open(connection: &mut Connection, id: &TaskId) -> Result<bool, Error> {
    Ok(polity_sql::query_scalar(IS_OPEN).bind(id.as_str()).fetch_one(connection).await?)
}

/// Returns the newest task.
pub async fn latest(connection: &mut Connection) -> Result<Option<TaskId>, Error> {
    let row = polity_sql::query(LATEST).fetch_optional(connection).await?;
    Ok(row.map(|row| TaskId::new(row.get::<String, _>(0))))
}

pub async fn standing(connection: &mut Connection, id: &TaskId) -> Result<Option<Standing>, Error> {
    Ok(standings(connection, std::slice::from_ref(id)).await?.remove(id))
}

/// Returns the [`Standing`] of each of these tasks. Ids without a task are skipped.
pub async fn standings(
    connection: &mut Connection,
    ids: &[TaskId],
) -> Result<HashMap<TaskId, Standing>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows =
        polity_sql::query(STANDINGS).bind(serde_json::json!(ids).to_string()).fetch_all(connection).await?;
    let turn_failed = |row: &Row| row.get::<Option<bool>, _>("root_failed").unwrap_or_default();
    let read = |row: &Row| Standing {
        open: row.get("open"),
        nudged: row.get("nudged"),
        limited: row.get("limited"),
        stopped: row.get("stopped"),
        turning: row.get("turning"),
        mail: row.get("mail"),
        unanswered: row.get("unanswered"),
        expectant: row.get("expectant"),
        asks_user: row.get("asks_user"),
        waiting: row.get("waiting"),
        root_failed: turn_failed(row) || row.get("root_parked"),
        unreached: turn_failed(row) && !row.get::<bool, _>("model_reached"),
    };
    Ok(rows.iter().map(|row| (TaskId::new(row.get::<String, _>("id")), read(row))).collect())
}

/// Opens an idle task, because the person has sent a message in the task. If the task was stopped, the stop no longer
/// applies. Root can get a nudge again.
pub async fn reopen(tx: &mut Tx, id: &TaskId) -> Result<(), Error> {
    polity_sql::query(REOPEN).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("tasks::reopened");
    Ok(())
}

/// Opens an idle task, because its agents were resumed, or because a stop gives an agent of the task a notice to read. If
/// the task was stopped, the stop still applies.
pub async fn wake(tx: &mut Tx, id: &TaskId) -> Result<(), Error> {
    polity_sql::query(WAKE).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("tasks::woken");
    Ok(())
}

/// Closes a task in which nothing is left to do, and notes how long agents have worked for it, as [`set_worked`] does.
pub async fn set_idle(tx: &mut Tx, id: &TaskId, worked: Duration) -> Result<(), Error> {
    polity_sql::query(IDLE).bind(id.as_str()).bind(millis(worked)).execute(&mut tx.connection).await?;
    polity_points::point!("tasks::set_idle");
    Ok(())
}

pub async fn set_nudged(tx: &mut Tx, id: &TaskId) -> Result<(), Error> {
    polity_sql::query(NUDGE).bind(id.as_str()).execute(&mut tx.connection).await?;
    polity_points::point!("tasks::nudged");
    Ok(())
}

/// Notes what has stopped a task: a limit, or the person ([`STOPPED_BY_USER`]). Returns whether this changed anything.
/// A limit replaces a stored stop of the person. Nothing replaces a stored limit.
pub async fn stop(tx: &mut Tx, id: &TaskId, limit: &str) -> Result<bool, Error> {
    let done = polity_sql::query(STOP).bind(id.as_str()).bind(limit).execute(&mut tx.connection).await?;
    polity_points::point!("tasks::stopped");
    Ok(done.rows_affected() == 1)
}

/// Returns the limit that has stopped a task, or [`STOPPED_BY_USER`] if the person has stopped the task.
pub async fn stopped_by(connection: &mut Connection, id: &TaskId) -> Result<Option<String>, Error> {
    let found: Option<Option<String>> =
        polity_sql::query_scalar(STOPPED_BY).bind(id.as_str()).fetch_optional(connection).await?;
    Ok(found.flatten())
}

/// Returns how long agents have worked for a task.
pub async fn worked(connection: &mut Connection, id: &TaskId) -> Result<Duration, Error> {
    let worked: Option<i64> =
        polity_sql::query_scalar(WORKED).bind(id.as_str()).fetch_optional(connection).await?;
    Ok(Duration::from_millis(worked.unwrap_or_default().unsigned_abs()))
}

/// Notes how long agents have worked for a task. The stored time never decreases.
pub async fn set_worked(tx: &mut Tx, id: &TaskId, worked: Duration) -> Result<(), Error> {
    polity_sql::query(SET_WORKED).bind(id.as_str()).bind(millis(worked)).execute(&mut tx.connection).await?;
    polity_points::point!("tasks::worked");
    Ok(())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
