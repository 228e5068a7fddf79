//! Tokens and costs, in total and by task, agent and service.

use super::{Builder, SUMS, sum};
use crate::Error;
use polity_society::id::{AgentId, ServiceId, TaskId};
use polity_sql::Connection;
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

const BY_SERVICE: &str = concat!("SELECT service, ", totals!(), " FROM spent GROUP BY service");
const BY_MODEL: &str = concat!(
    "SELECT service, model, ",
    totals!(),
    " FROM spent GROUP BY service, model ORDER BY prompt + completion DESC, calls DESC, service, model LIMIT ?1"
);
const OF_ROOT: &str = concat!("SELECT ", totals!(), " FROM spent WHERE share = 'root'");

/// The statements of this file, except those that are built from parts; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[BY_SERVICE, BY_MODEL, OF_ROOT];

/// Returns the sums over the model calls that match a filter, in total and by task, agent and service.
pub async fn view(connection: &mut Connection, filter: &UsageFilter) -> Result<UsageView, Error> {
    let total = grouped(connection, filter, "").await?.first().map(sum).unwrap_or_default();
    let by_task = grouped(connection, filter, "task").await?;
    let by_agent = grouped(connection, filter, "agent").await?;
    let by_service = grouped(connection, filter, "service, model").await?;
    let text = |row: &Row, column: &str| row.get::<String, _>(column);
    Ok(UsageView {
        total,
        by_task: by_task
            .iter()
            .map(|row| TaskUsage { task: TaskId::new(text(row, "task")), usage: sum(row) })
            .collect(),
        by_agent: by_agent
            .iter()
            .map(|row| AgentUsage { agent: AgentId::new(text(row, "agent")), usage: sum(row) })
            .collect(),
        by_service: by_service.iter().map(of_model).collect(),
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

fn of_model(row: &Row) -> ServiceUsage {
    ServiceUsage {
        service: ServiceId::new(row.get::<String, _>("service")),
        model: row.get("model"),
        usage: sum(row),
    }
}

/// Returns what these agents have spent, in one task or in all tasks. Agents without calls may be missing. Only root
/// makes calls in several tasks, so only root's calls in all tasks come from the running totals.
pub(super) async fn of_agents(
    connection: &mut Connection,
    ids: &[&AgentId],
    task: Option<&TaskId>,
) -> Result<HashMap<AgentId, UsageSum>, Error> {
    let (root, others): (Vec<&AgentId>, Vec<&AgentId>) =
        ids.iter().copied().partition(|id| id.is_root() && task.is_none());
    let mut query = Builder::new("SELECT agent, ");
    query.push(SUMS).push(
        " FROM model_calls INDEXED BY model_calls_of_agent WHERE agent IN (SELECT value FROM json_each(",
    );
    query.push_bind(json!(others).to_string()).push("))");
    if let Some(task) = task {
        query.push(" AND task = ").push_bind(task.as_str().to_owned());
    }
    query.push(" GROUP BY agent");
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut spent: HashMap<AgentId, UsageSum> =
        rows.iter().map(|row| (AgentId::new(row.get::<String, _>("agent")), sum(row))).collect();
    if let Some(root) = root.first() {
        let row = polity_sql::query(OF_ROOT).fetch_one(connection).await?;
        spent.insert((*root).clone(), sum(&row));
    }
    Ok(spent)
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
