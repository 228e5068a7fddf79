//! Tokens and costs, in total and by task, agent and service.

use super::{Builder, SUMS, sum};
use crate::Error;
use polity_society::id::{AgentId, ServiceId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{AgentUsage, MAX_PAGE, ServiceUsage, TaskUsage, UsageFilter, UsageSum, UsageView};
use std::collections::HashMap;

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
        by_service: by_service
            .iter()
            .map(|row| ServiceUsage {
                service: ServiceId::new(text(row, "service")),
                model: text(row, "model"),
                usage: sum(row),
            })
            .collect(),
    })
}

/// Returns the sums over all model calls of each service.
pub async fn by_service(connection: &mut Connection) -> Result<HashMap<ServiceId, UsageSum>, Error> {
    let rows = grouped(connection, &UsageFilter::default(), "service").await?;
    Ok(rows.iter().map(|row| (ServiceId::new(row.get::<String, _>("service")), sum(row))).collect())
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
