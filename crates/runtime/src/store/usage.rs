//! Table `model_calls`.

use super::{Conversation, Error, Tx};
use polity_llm::{Usage, UsageSource};
use polity_society::id::{ServiceId, TaskId};
use sqlx::{Row, SqliteConnection};

const INSERT: &str =
    "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
    completion_tokens, usage_source, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const OF_TASK: &str = "SELECT count(*) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt,
    coalesce(sum(completion_tokens), 0) AS completion FROM model_calls WHERE task = ?1";
const BY_AGENT: &str = "SELECT agent, count(*) AS calls, sum(prompt_tokens + completion_tokens) AS tokens
    FROM model_calls WHERE task = ?1 GROUP BY agent ORDER BY tokens DESC, agent LIMIT 10";
/// What was written before a summary says nothing of what is told after it.
const IN_CONTEXT: &str = "SELECT prompt_tokens + completion_tokens AS tokens FROM model_calls
    WHERE task = ?2 AND agent = ?1 AND created_at > coalesce((SELECT max(created_at) FROM records
    WHERE agent = ?1 AND task = ?2 AND substr(body, 1, 21) = '{\"record\":\"compacted\"'), 0) ORDER BY seq DESC LIMIT 1";

/// Every statement of this file.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, OF_TASK, BY_AGENT, IN_CONTEXT];

/// What answered a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The service.
    pub(crate) service: ServiceId,
    /// The model, as the server calls it where it says so.
    pub(crate) model: String,
    /// The catalogue's revision.
    pub(crate) revision: u64,
    /// How many attempts it took.
    pub(crate) attempts: u32,
    /// What it cost.
    pub(crate) usage: Usage,
}

/// What a task has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    /// Model calls that were answered.
    pub(crate) calls: u64,
    /// Tokens in and out.
    pub(crate) tokens: u64,
}

pub(crate) async fn insert(
    tx: &mut Tx,
    caller: &Conversation,
    turn: i64,
    served: &Served,
) -> Result<(), Error> {
    let source = match served.usage.source {
        UsageSource::Reported => "reported",
        UsageSource::Estimated => "estimated",
    };
    sqlx::query(INSERT)
        .bind(caller.task.as_str())
        .bind(caller.agent.as_str())
        .bind(turn)
        .bind(served.service.as_str())
        .bind(&served.model)
        .bind(served.revision.cast_signed())
        .bind(served.attempts)
        .bind(served.usage.prompt_tokens.cast_signed())
        .bind(served.usage.completion_tokens.cast_signed())
        .bind(source)
        .bind(tx.now)
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("usage::inserted");
    Ok(())
}

pub(crate) async fn of_task(connection: &mut SqliteConnection, task: &TaskId) -> Result<Used, Error> {
    let row = sqlx::query(OF_TASK).bind(task.as_str()).fetch_one(connection).await?;
    let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
    Ok(Used { calls: number("calls"), tokens: number("prompt") + number("completion") })
}

/// How many tokens the last request of a conversation had, with its answer; `None` where there was none since its
/// history was last summed up.
pub(crate) async fn in_context(
    connection: &mut SqliteConnection,
    conversation: &Conversation,
) -> Result<Option<u64>, Error> {
    let query = sqlx::query_scalar(IN_CONTEXT).bind(conversation.agent.as_str());
    let tokens: Option<i64> = query.bind(conversation.task.as_str()).fetch_optional(connection).await?;
    Ok(tokens.map(i64::unsigned_abs))
}

/// Who used most: agent, calls, tokens.
pub(crate) async fn by_agent(
    connection: &mut SqliteConnection,
    task: &TaskId,
) -> Result<Vec<(String, u64, u64)>, Error> {
    let rows = sqlx::query(BY_AGENT).bind(task.as_str()).fetch_all(connection).await?;
    let read = |row: &sqlx::sqlite::SqliteRow| {
        let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
        (row.get("agent"), number("calls"), number("tokens"))
    };
    Ok(rows.iter().map(read).collect())
}
