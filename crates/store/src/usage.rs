//! Table `model_calls`: the tokens and the cost of each model call.

use super::{Conversation, Error, Tx};
use polity_llm::Usage;
use polity_society::id::{AgentId, ServiceId, TaskId, TurnId};
use polity_sql::{Connection, Row};

const INSERT: &str =
    "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
    completion_tokens, usage_source, cost, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const OF_TASK: &str = "SELECT count(*) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt,
    coalesce(sum(completion_tokens), 0) AS completion, total(cost) AS cost FROM model_calls WHERE task = ?1";
const SINCE: &str = "SELECT count(*) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt,
    coalesce(sum(completion_tokens), 0) AS completion, total(cost) AS cost, coalesce(max(seq), ?2) AS newest,
    (SELECT stopped_by FROM tasks WHERE id = ?1) AS stopped_by
    FROM model_calls INDEXED BY model_calls_of_task WHERE task = ?1 AND seq > ?2";
const BY_AGENT: &str = "SELECT agent, count(*) AS calls, sum(prompt_tokens + completion_tokens) AS tokens,
    sum(cost) AS cost FROM model_calls WHERE task = ?1 GROUP BY agent";
/// The tokens of the newest call of a conversation. If no model has answered since the newest summary, there is no
/// result: the newest call still contained the history that the summary has replaced. Row numbers give the order,
/// because clocks can be set back.
const IN_CONTEXT: &str = "SELECT prompt_tokens + completion_tokens AS tokens FROM model_calls
    WHERE task = ?2 AND agent = ?1 AND EXISTS (SELECT 1 FROM records INDEXED BY records_of_conversation
        WHERE agent = ?1 AND task = ?2 AND substr(body, 1, 19) = '{\"record\":\"replied\"'
        AND seq > coalesce((SELECT max(seq) FROM records
            WHERE agent = ?1 AND task = ?2 AND substr(body, 1, 21) = '{\"record\":\"compacted\"'), 0))
    ORDER BY seq DESC LIMIT 1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, OF_TASK, SINCE, BY_AGENT, IN_CONTEXT];

/// An amount that was spent, or that may be spent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The number of model calls.
    pub calls: u64,
    /// Tokens of prompts and answers together.
    pub tokens: u64,
    /// The cost, in the currency of the services' prices.
    pub cost: f64,
}

impl std::ops::Add for Spent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
        }
    }
}

/// Facts about a call that a service has answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    pub service: ServiceId,
    /// The model's name as the server reports it. If the server reports none, the name in the configuration.
    pub model: String,
    /// The revision of the catalogue (the configured services) that the call used.
    pub revision: u64,
    pub attempts: u32,
    pub usage: Usage,
    /// What the tokens cost, if the service has a price.
    pub cost: Option<f64>,
}

pub async fn insert(tx: &mut Tx, caller: &Conversation, turn: TurnId, served: &Served) -> Result<(), Error> {
    polity_sql::query(INSERT)
        .bind(caller.task.as_str())
        .bind(caller.agent.as_str())
        .bind(turn.number())
        .bind(served.service.as_str())
        .bind(&served.model)
        .bind(served.revision.cast_signed())
        .bind(served.attempts)
        .bind(served.usage.prompt_tokens.cast_signed())
        .bind(served.usage.completion_tokens.cast_signed())
        .bind(served.usage.source.as_str())
        .bind(served.cost)
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("usage::inserted");
    Ok(())
}

/// Returns what a task has spent so far.
pub async fn of_task(connection: &mut Connection, task: &TaskId) -> Result<Spent, Error> {
    Ok(spent(&polity_sql::query(OF_TASK).bind(task.as_str()).fetch_one(connection).await?))
}

/// The facts about a task that decide whether the task may make another model call.
#[derive(Clone, Debug, PartialEq)]
pub struct Since {
    /// What the newer calls have cost.
    pub spent: Spent,
    /// The number of the newest call of the task.
    pub through: i64,
    /// What has stopped the task, as [`stopped_by`](super::tasks::stopped_by) returns it.
    pub stopped_by: Option<String>,
}

/// Returns what a task has spent in those of its model calls that have numbers above `after`, and what has stopped the
/// task.
pub async fn since(connection: &mut Connection, task: &TaskId, after: i64) -> Result<Since, Error> {
    let row = polity_sql::query(SINCE).bind(task.as_str()).bind(after).fetch_one(connection).await?;
    Ok(Since { spent: spent(&row), through: row.get("newest"), stopped_by: row.get("stopped_by") })
}

fn spent(row: &Row) -> Spent {
    let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
    Spent {
        calls: number("calls"),
        tokens: number("prompt").saturating_add(number("completion")),
        cost: row.get("cost"),
    }
}

/// Returns the tokens of the last request of a conversation and its answer, or `None` if no model has answered in the
/// conversation since its newest summary.
pub async fn in_context(
    connection: &mut Connection,
    conversation: &Conversation,
) -> Result<Option<u64>, Error> {
    let query = polity_sql::query_scalar(IN_CONTEXT).bind(conversation.agent.as_str());
    let tokens: Option<i64> = query.bind(conversation.task.as_str()).fetch_optional(connection).await?;
    Ok(tokens.map(i64::unsigned_abs))
}

/// What one agent has spent in a task.
#[derive(Clone, Debug)]
pub struct Share {
    pub agent: AgentId,
    /// The number of model calls.
    pub calls: u64,
    /// Tokens of prompts and answers together.
    pub tokens: u64,
    /// `None` if no service that the agent used has a price.
    pub cost: Option<f64>,
}

/// Returns what each agent has spent in a task.
pub async fn by_agent(connection: &mut Connection, task: &TaskId) -> Result<Vec<Share>, Error> {
    let rows = polity_sql::query(BY_AGENT).bind(task.as_str()).fetch_all(connection).await?;
    let read = |row: &polity_sql::Row| {
        let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
        Share {
            agent: AgentId::new(row.get::<String, _>("agent")),
            calls: number("calls"),
            tokens: number("tokens"),
            cost: row.get("cost"),
        }
    };
    Ok(rows.iter().map(read).collect())
}
