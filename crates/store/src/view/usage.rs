//! Tokens and costs, in total and by task, agent and service.

use super::{Builder, SUMS, sum};
use crate::Error;
use polity_society::id::{AgentId, ServiceId, TaskId};
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use polity_view::{AgentUsage, MAX_PAGE, ServiceUsage, TaskUsage, UsageFilter, UsageSum, UsageView};
use serde_json::json;
use std::collections::HashMap;

/// The columns of a sum over the running totals in the table `spent`. They have the same names as those of [`SUMS`].
macro_rules! totals {
    () => {
        "coalesce(sum(calls), 0) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt,
    coalesce(sum(completion_tokens), 0) AS completion, CASE WHEN sum(priced) > 0 THEN sum(cost) END AS cost"
    };
}
/// The columns of a sum that the schema keeps for a task or an agent.
macro_rules! kept_sum {
    () => {
        "calls, prompt_tokens AS prompt, completion_tokens AS completion, CASE WHEN priced > 0 THEN cost END AS cost"
    };
}

const BY_SERVICE: &str = concat!("SELECT service, ", totals!(), " FROM spent GROUP BY service");
const BY_MODEL: &str = concat!(
    "SELECT service, model, ",
    totals!(),
    " FROM spent GROUP BY service, model ORDER BY prompt + completion DESC, calls DESC, service, model LIMIT ?1"
);
const TOTAL: &str = concat!("SELECT ", totals!(), " FROM spent");
const LARGEST_TASKS: &str = concat!(
    "SELECT task, ",
    kept_sum!(),
    " FROM spent_in_tasks ORDER BY prompt_tokens + completion_tokens DESC, calls DESC, task LIMIT ?1"
);
const LARGEST_AGENTS: &str = concat!(
    "SELECT agent, ",
    kept_sum!(),
    " FROM spent_by_agents ORDER BY prompt_tokens + completion_tokens DESC, calls DESC, agent LIMIT ?1"
);
const OF_TASKS: &str = concat!(
    "SELECT task, ",
    kept_sum!(),
    " FROM spent_in_tasks WHERE task IN (SELECT value FROM json_each(?1))"
);
const OF_AGENTS: &str = concat!(
    "SELECT agent, ",
    kept_sum!(),
    " FROM spent_by_agents WHERE agent IN (SELECT value FROM json_each(?1))"
);

/// The statements of this file, except those that are built from parts; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] =
    &[BY_SERVICE, BY_MODEL, TOTAL, LARGEST_TASKS, LARGEST_AGENTS, OF_TASKS, OF_AGENTS];

/// Returns the sums over the model calls that match a filter, in total and by task, agent and service. Without a
/// filter, they come from the kept sums: the cost of this function then does not grow with the number of calls.
pub async fn view(connection: &mut Connection, filter: &UsageFilter) -> Result<UsageView, Error> {
    let UsageFilter { task, agent } = filter;
    if task.is_none() && agent.is_none() {
        return of_all_calls(connection).await;
    }
    let total = grouped(connection, filter, "").await?.first().map(sum).unwrap_or_default();
    let by_task = grouped(connection, filter, "task").await?;
    let by_agent = grouped(connection, filter, "agent").await?;
    let by_service = grouped(connection, filter, "service, model").await?;
    Ok(UsageView {
        total,
        by_task: by_task.iter().map(of_task).collect(),
        by_agent: by_agent.iter().map(of_agent).collect(),
        by_service: by_service.iter().map(of_model).collect(),
    })
}

async fn of_all_calls(connection: &mut Connection) -> Result<UsageView, Error> {
    let total = sum(&polity_sql::query(TOTAL).fetch_one(&mut *connection).await?);
    let by_task = polity_sql::query(LARGEST_TASKS).bind(MAX_PAGE).fetch_all(&mut *connection).await?;
    let by_agent = polity_sql::query(LARGEST_AGENTS).bind(MAX_PAGE).fetch_all(&mut *connection).await?;
    Ok(UsageView {
        total,
        by_task: by_task.iter().map(of_task).collect(),
        by_agent: by_agent.iter().map(of_agent).collect(),
        by_service: by_model(connection).await?,
    })
}

/// Returns the running totals of each service.
pub async fn by_service(connection: &mut Connection) -> Result<HashMap<ServiceId, UsageSum>, Error> {
    let rows = polity_sql::query(BY_SERVICE).fetch_all(connection).await?;
    Ok(rows.iter().map(|row| (ServiceId::new(row.get::<String, _>("service")), sum(row))).collect())
}

/// Returns the running totals of each service and model, largest first.
pub async fn by_model(connection: &mut Connection) -> Result<Vec<ServiceUsage>, Error> {
    let rows = polity_sql::query(BY_MODEL).bind(MAX_PAGE).fetch_all(connection).await?;
    Ok(rows.iter().map(of_model).collect())
}

fn of_task(row: &Row) -> TaskUsage {
    TaskUsage { task: TaskId::new(row.get::<String, _>("task")), usage: sum(row) }
}

fn of_agent(row: &Row) -> AgentUsage {
    AgentUsage { agent: AgentId::new(row.get::<String, _>("agent")), usage: sum(row) }
}

fn of_model(row: &Row) -> ServiceUsage {
    ServiceUsage {
        service: ServiceId::new(row.get::<String, _>("service")),
        model: row.get("model"),
        usage: sum(row),
    }
}

/// Returns what these tasks have spent. Tasks without calls are missing.
pub(super) async fn of_tasks(
    connection: &mut Connection,
    ids: &[&TaskId],
) -> Result<HashMap<TaskId, UsageSum>, Error> {
    let rows = polity_sql::query(OF_TASKS).bind(Json(ids)).fetch_all(connection).await?;
    Ok(rows.iter().map(of_task).map(|one| (one.task, one.usage)).collect())
}

/// Returns what these agents have spent, in one task or in all tasks. Agents without calls are missing.
pub(super) async fn of_agents(
    connection: &mut Connection,
    ids: &[&AgentId],
    task: Option<&TaskId>,
) -> Result<HashMap<AgentId, UsageSum>, Error> {
    let rows = match task {
        None => polity_sql::query(OF_AGENTS).bind(Json(ids)).fetch_all(connection).await?,
        Some(task) => {
            let mut query = Builder::new("SELECT agent, ");
            query.push(SUMS).push(
                " FROM model_calls INDEXED BY model_calls_of_agent WHERE agent IN (SELECT value FROM json_each(",
            );
            query.push_bind(json!(ids).to_string()).push("))");
            query.push(" AND task = ").push_bind(task.as_str().to_owned()).push(" GROUP BY agent");
            query.build().fetch_all(connection).await?
        }
    };
    Ok(rows.iter().map(of_agent).map(|one| (one.agent, one.usage)).collect())
}

/// Returns the sums grouped by these columns, largest first. Without columns there is one row.
async fn grouped(
    connection: &mut Connection,
    filter: &UsageFilter,
    columns: &'static str,
) -> Result<Vec<Row>, Error> {
    let mut query = Builder::new("SELECT ");
    if !columns.is_empty() {
        query.push(columns).push(", ");
    }
    query.push(SUMS).push(" FROM model_calls WHERE 1");
    if let Some(task) = &filter.task {
        query.push(" AND task = ").push_bind(task.as_str().to_owned());
    }
    if let Some(agent) = &filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str().to_owned());
    }
    if !columns.is_empty() {
        query.push(" GROUP BY ").push(columns);
        query.push(" ORDER BY prompt + completion DESC, calls DESC, ").push(columns);
        query.push(" LIMIT ").push_bind(MAX_PAGE);
    }
    Ok(query.build().fetch_all(connection).await?)
}
