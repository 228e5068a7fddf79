//! Table `approvals` holds the questions that ask the person whether an agent may make a tool call. Table `permissions`
//! holds the person's permissions that cover more than one call.

use super::view::{as_far_as_it_goes, sound};
use super::{Conversation, Error, Tx, damaged, events};
use polity_society::approval::Answer;
use polity_society::id::{AgentId, ApprovalId, CallId, PermissionId, TaskId, TurnId};
use polity_society::time::Timestamp;
use polity_sql::Builder;
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use polity_view::{ApprovalFilter, ApprovalState, Event, page};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantArray};

const INSERT: &str = "INSERT INTO approvals
    (task, agent, turn, call, tool, role, arguments, preview, remembered, why, scope, way, state, asked_at, expires_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 'open', ?13, ?14) RETURNING seq";
const GET: &str = "SELECT * FROM approvals WHERE seq = ?1";
const END: &str = "UPDATE approvals SET state = ?2, answer = ?3, note = ?4, answered_at = ?5
    WHERE seq = ?1 AND state = 'open'";
const OPEN_OF_TURN: &str = "SELECT * FROM approvals WHERE turn = ?1 AND state = 'open'";
const DROP: &str =
    "UPDATE approvals SET state = 'dropped', answered_at = ?2 WHERE turn = ?1 AND state = 'open'
    RETURNING *";
/// Restarts the time limit of each question that was asked later than ?1 (now). The clock was set back after the question
/// was asked, so nobody knows how much of the time has passed. The same happens to delayed messages.
const REDATE: &str = "UPDATE approvals INDEXED BY approvals_expiring
    SET expires_at = ?1 + (expires_at - asked_at), asked_at = ?1 WHERE state = 'open' AND asked_at > ?1";
/// Without the name of the index, SQLite reads all questions that were ever asked, because they are in the right order.
const EXPIRED: &str = "SELECT * FROM approvals INDEXED BY approvals_expiring
    WHERE state = 'open' AND expires_at <= ?1 ORDER BY seq";
const NEXT_EXPIRY: &str = "SELECT min(expires_at) FROM approvals WHERE state = 'open'";
const PERMIT: &str =
    "INSERT INTO permissions (task, tool, role, calls, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
const PERMISSIONS: &str =
    "SELECT * FROM permissions WHERE task IS NULL OR task = ?1 OR ?1 IS NULL ORDER BY seq";
const OF_CALL: &str =
    "SELECT calls FROM permissions WHERE tool = ?2 AND role = ?3 AND (task IS NULL OR task = ?1)";
const REMOVE: &str = "DELETE FROM permissions WHERE seq = ?1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[
    INSERT,
    GET,
    END,
    OPEN_OF_TURN,
    DROP,
    REDATE,
    EXPIRED,
    NEXT_EXPIRY,
    PERMIT,
    PERMISSIONS,
    OF_CALL,
    REMOVE,
];

/// A new question to the person: may an agent make a tool call? The question is not stored yet.
#[derive(Clone, Debug, PartialEq)]
pub struct NewApproval {
    pub turn: TurnId,
    pub call: CallId,
    pub tool: String,
    pub role: String,
    pub arguments: Value,
    /// What the call would change, in words for the person.
    pub preview: Option<String>,
    /// The calls that are allowed from then on if the person allows more than this call.
    pub remembered: Value,
    /// A text that tells the person why polity asks about this call.
    pub why: String,
    /// The calls that are allowed if the person answers `yes`.
    pub scope: Scope,
    /// How content from outside reached the agent: one line for each step, beginning at the source.
    pub way: Vec<String>,
    pub expires_at: Timestamp,
}

/// The calls that are allowed if the person answers `yes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    /// This call.
    Call,
    /// All calls that the permission would cover, until the end of the task.
    Task,
}

/// A stored question.
#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub id: ApprovalId,
    pub asker: Conversation,
    pub asked: NewApproval,
    pub state: ApprovalState,
    pub answer: Option<Answer>,
    /// The reason that the person gave.
    pub note: Option<String>,
    pub asked_at: Timestamp,
    pub answered_at: Option<Timestamp>,
}

impl Approval {
    /// Returns the part of the question that its end needs.
    pub fn to_end(&self) -> ToEnd {
        ToEnd {
            id: self.id.clone(),
            asker: self.asker.clone(),
            turn: self.asked.turn,
            call: self.asked.call.clone(),
            tool: self.asked.tool.clone(),
        }
    }
}

/// The part of a question that its end needs. Damage in the rest of its row does not keep the question open.
#[derive(Clone, Debug, PartialEq)]
pub struct ToEnd {
    pub id: ApprovalId,
    pub asker: Conversation,
    pub turn: TurnId,
    pub call: CallId,
    pub tool: String,
}

impl ToEnd {
    /// Returns the event that tells how the question ended.
    pub fn ended(&self, state: ApprovalState, reason: Option<String>) -> Event {
        Event::ApprovalEnded {
            task: self.asker.task.clone(),
            agent: self.asker.agent.clone(),
            approval: self.id.clone(),
            tool: self.tool.clone(),
            state,
            reason,
        }
    }
}

/// How a question ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub state: ApprovalState,
    pub answer: Option<Answer>,
    pub note: Option<String>,
}

/// A permission for more than one call.
#[derive(Clone, Debug, PartialEq)]
pub struct Permission {
    pub id: PermissionId,
    /// `None` if the permission is for every task.
    pub task: Option<TaskId>,
    pub tool: String,
    pub role: String,
    pub calls: Value,
    pub created_at: Timestamp,
}

pub async fn insert(tx: &mut Tx, asker: &Conversation, asked: &NewApproval) -> Result<ApprovalId, Error> {
    let query = polity_sql::query_scalar(INSERT)
        .bind(asker.task.as_str())
        .bind(asker.agent.as_str())
        .bind(asked.turn.number())
        .bind(asked.call.as_str())
        .bind(&asked.tool)
        .bind(&asked.role)
        .bind(Json(&asked.arguments))
        .bind(&asked.preview)
        .bind(Json(&asked.remembered))
        .bind(&asked.why)
        .bind(<&str>::from(asked.scope))
        .bind(Json(&asked.way))
        .bind(tx.now.as_millis())
        .bind(asked.expires_at.as_millis());
    let number = query.fetch_one(&mut tx.connection).await?;
    polity_points::point!("approvals::inserted");
    Ok(ApprovalId::from_number(number))
}

pub async fn get(connection: &mut Connection, id: &ApprovalId) -> Result<Option<Approval>, Error> {
    let Some(number) = id.number() else { return Ok(None) };
    let row = polity_sql::query(GET).bind(number).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Ends a question. Returns false if it had ended before.
pub async fn end(tx: &mut Tx, id: &ApprovalId, ending: &Ending) -> Result<bool, Error> {
    let query = polity_sql::query(END)
        .bind(id.number())
        .bind(ending.state.as_str())
        .bind(ending.answer.map(<&str>::from))
        .bind(&ending.note)
        .bind(tx.now.as_millis());
    let done = query.execute(&mut tx.connection).await?;
    polity_points::point!("approvals::ended");
    Ok(done.rows_affected() == 1)
}

/// Returns the open question of a turn.
pub async fn open_of_turn(connection: &mut Connection, turn: TurnId) -> Result<Option<Approval>, Error> {
    let row = polity_sql::query(OPEN_OF_TURN).bind(turn.number()).fetch_optional(connection).await?;
    row.as_ref().map(read).transpose()
}

/// Drops the open question of a turn, because the turn has ended.
pub(crate) async fn drop_of_turn(tx: &mut Tx, turn: TurnId) -> Result<(), Error> {
    let query = polity_sql::query(DROP).bind(turn.number()).bind(tx.now.as_millis());
    let Some(row) = query.fetch_optional(&mut tx.connection).await? else { return Ok(()) };
    polity_points::point!("approvals::dropped");
    match to_end(&row) {
        Ok(question) => events::append(tx, &question.ended(ApprovalState::Dropped, None)).await,
        // The turn must end even if nobody can be told what it has asked.
        Err(error) => {
            tracing::error!(%error, "a question that was dropped is damaged; run `polity db check` for details");
            Ok(())
        }
    }
}

/// Returns the open questions whose time has passed, oldest first. A question that cannot be ended is returned with its
/// damage. Other damage is only logged. If the clock was set back, restarts the time limits.
pub async fn expired(tx: &mut Tx) -> Result<Vec<(ApprovalId, Result<ToEnd, Error>)>, Error> {
    polity_sql::query(REDATE).bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    let rows = polity_sql::query(EXPIRED).bind(tx.now.as_millis()).fetch_all(&mut tx.connection).await?;
    let expired = |row: &Row| {
        let question = to_end(row);
        if question.is_ok()
            && let Err(error) = sound("approvals", row, read)
        {
            tracing::error!(%error, "a question that has expired is damaged; run `polity db check` for details");
        }
        (ApprovalId::from_number(row.get("seq")), question)
    };
    Ok(rows.iter().map(expired).collect())
}

/// Returns when the next open question expires.
pub async fn next_expiry(connection: &mut Connection) -> Result<Option<Timestamp>, Error> {
    let at: Option<i64> = polity_sql::query_scalar(NEXT_EXPIRY).fetch_one(connection).await?;
    Ok(at.map(Timestamp::from_millis))
}

/// Returns a page of questions, newest first, and where the next page begins.
pub async fn list(
    connection: &mut Connection,
    filter: &ApprovalFilter,
) -> Result<(Vec<Approval>, Option<i64>), Error> {
    let limit = page(filter.limit);
    let rows = matching(filter, limit).build().fetch_all(connection).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push((row.get::<i64, _>("seq"), read(row)?));
    }
    let next = super::view::cut(&mut found, limit);
    Ok((found.into_iter().map(|(_, approval)| approval).collect(), next))
}

/// Builds the statement for a page of questions and one more. Few questions are open, so open questions of all tasks
/// come from the index that has no others. This index needs its condition in the statement, not as a bound value.
pub(super) fn matching(filter: &ApprovalFilter, limit: u32) -> Builder<'static> {
    let mut query = Builder::new("SELECT * FROM approvals");
    if filter.task.is_none() && filter.state == Some(ApprovalState::Open) {
        query.push(" INDEXED BY approvals_expiring");
    }
    query.push(" WHERE 1");
    if let Some(task) = &filter.task {
        query.push(" AND task = ").push_bind(task.as_str().to_owned());
    }
    match filter.state {
        Some(ApprovalState::Open) => {
            query.push(" AND state = 'open'");
        }
        Some(state) => {
            query.push(" AND state = ").push_bind(state.as_str());
        }
        None => {}
    }
    if let Some(after) = filter.after {
        query.push(" AND seq < ").push_bind(after);
    }
    query.push(" ORDER BY seq DESC LIMIT ").push_bind(i64::from(limit) + 1);
    query
}

/// Stores a permission. If `task` is `None`, the permission applies in every task.
pub async fn permit(
    tx: &mut Tx,
    task: Option<&TaskId>,
    tool: &str,
    role: &str,
    calls: &Value,
) -> Result<(), Error> {
    let query =
        polity_sql::query(PERMIT).bind(task.map(TaskId::as_str)).bind(tool).bind(role).bind(Json(calls));
    query.bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    polity_points::point!("approvals::permitted");
    Ok(())
}

/// Returns the permissions that apply in a task, or all permissions if no task is given. The oldest permission comes
/// first.
pub async fn permissions(
    connection: &mut Connection,
    task: Option<&TaskId>,
) -> Result<Vec<Permission>, Error> {
    let rows = polity_sql::query(PERMISSIONS).bind(task.map(TaskId::as_str)).fetch_all(connection).await?;
    rows.iter().map(read_permission).collect()
}

/// Returns the permissions that allow a role to use a tool in a task. The person gave these permissions. Each value is
/// the stored JSON that describes the permitted calls.
pub async fn permitted(
    connection: &mut Connection,
    task: &TaskId,
    tool: &str,
    role: &str,
) -> Result<Vec<Value>, Error> {
    let query = polity_sql::query_scalar(OF_CALL).bind(task.as_str()).bind(tool).bind(role);
    let calls: Vec<Json<Value>> = query.fetch_all(connection).await?;
    Ok(calls.into_iter().map(|Json(calls)| calls).collect())
}

/// Removes a permission. Returns false if there is none with this id.
pub async fn remove_permission(tx: &mut Tx, id: &PermissionId) -> Result<bool, Error> {
    let done = polity_sql::query(REMOVE).bind(id.number()).execute(&mut tx.connection).await?;
    polity_points::point!("approvals::permission_removed");
    Ok(done.rows_affected() == 1)
}

/// Reads the part of a question that its end needs. The rest of the row may be damaged.
fn to_end(row: &Row) -> Result<ToEnd, Error> {
    let id = ApprovalId::from_number(row.get("seq"));
    let text = |column: &str| {
        row.try_get::<String, _>(column).map_err(|error| damaged("approvals", id.as_str(), error))
    };
    Ok(ToEnd {
        asker: Conversation { agent: AgentId::new(text("agent")?), task: TaskId::new(text("task")?) },
        turn: TurnId::new(row.get("turn")),
        call: CallId::new(text("call")?),
        tool: as_far_as_it_goes(row, "tool"),
        id,
    })
}

pub(super) fn read(row: &Row) -> Result<Approval, Error> {
    let id = ApprovalId::from_number(row.get("seq"));
    let broken = |what: &str| damaged("approvals", id.as_str(), format!("cannot read `{what}`"));
    let json = |column: &str| {
        let text: String = row.get(column);
        serde_json::from_str::<Value>(&text).map_err(|_| broken(column))
    };
    let way = serde_json::from_value(json("way")?).map_err(|_| broken("way"))?;
    let answer: Option<String> = row.get("answer");
    let time = |column: &str| Timestamp::from_millis(row.get(column));
    Ok(Approval {
        asker: Conversation {
            agent: AgentId::new(row.get::<String, _>("agent")),
            task: TaskId::new(row.get::<String, _>("task")),
        },
        asked: NewApproval {
            turn: TurnId::new(row.get("turn")),
            call: CallId::new(row.get::<String, _>("call")),
            tool: row.get("tool"),
            role: row.get("role"),
            arguments: json("arguments")?,
            preview: row.get("preview"),
            remembered: json("remembered")?,
            why: row.get("why"),
            scope: row.get::<String, _>("scope").parse().map_err(|_| broken("scope"))?,
            way,
            expires_at: time("expires_at"),
        },
        state: row.get::<String, _>("state").parse().map_err(|_| broken("state"))?,
        answer: answer.map(|answer| answer.parse().map_err(|_| broken("answer"))).transpose()?,
        note: row.get("note"),
        asked_at: time("asked_at"),
        answered_at: row.get::<Option<i64>, _>("answered_at").map(Timestamp::from_millis),
        id,
    })
}

pub(super) fn read_permission(row: &Row) -> Result<Permission, Error> {
    let id = PermissionId::from_number(row.get("seq"));
    let calls: String = row.get("calls");
    Ok(Permission {
        task: row.get::<Option<String>, _>("task").map(TaskId::new),
        tool: row.get("tool"),
        role: row.get("role"),
        calls: serde_json::from_str(&calls).map_err(|error| damaged("permissions", id.as_str(), error))?,
        created_at: Timestamp::from_millis(row.get("created_at")),
        id,
    })
}
