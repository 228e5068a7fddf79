//! Counts the rows of the database, for the health of a data directory.

use crate::{Error, Store, maintenance::forget};
use polity_sql::Connection;
use polity_view::DataFacts;

const SCHEMA: &str = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations";
const COUNTS: &str = "SELECT (SELECT count(*) FROM tasks) AS tasks,
    (SELECT count(*) FROM tasks WHERE state = 'open') AS open_tasks,
    (SELECT count(*) FROM agents) - (SELECT count(*) FROM agents WHERE task IS NULL) AS agents,
    (SELECT coalesce(sum(agents), 0) FROM served) AS live_agents,
    (SELECT count(*) FROM messages) AS messages,
    (SELECT count(*) FROM messages WHERE state IN ('queued', 'delayed')) AS waiting_messages,
    (SELECT count(*) FROM artifacts) AS artifacts,
    (SELECT coalesce(sum(size), 0) FROM artifacts) AS artifact_bytes,
    (SELECT count(*) FROM events) AS events,
    (SELECT coalesce(max(seq), 0) FROM events) AS newest_event";
/// This statement changes no value, but writes the header of the file to the disk. So it fails if nothing can be
/// written.
const TOUCH: &str = "PRAGMA user_version = 0";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[SCHEMA, COUNTS, TOUCH];

/// Checks whether the database can be written to now.
pub async fn touch(store: &Store) -> Result<(), Error> {
    store
        .write(|tx| {
            Box::pin(async move {
                polity_sql::query(TOUCH).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await
}

/// Counts the rows that [`DataFacts`] reports. `trouble` is the reason why the database cannot be written to, if
/// there is one.
pub async fn count(connection: &mut Connection, trouble: Option<String>) -> Result<DataFacts, Error> {
    let schema: i64 = polity_sql::query_scalar(SCHEMA).fetch_one(&mut *connection).await?;
    let database_bytes = forget::used(&mut *connection).await?;
    let row = polity_sql::query(COUNTS).fetch_one(connection).await?;
    let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
    Ok(DataFacts {
        writable: trouble.is_none(),
        trouble,
        schema,
        database_bytes,
        tasks: number("tasks"),
        open_tasks: number("open_tasks"),
        agents: number("agents"),
        live_agents: number("live_agents"),
        messages: number("messages"),
        waiting_messages: number("waiting_messages"),
        artifacts: number("artifacts"),
        artifact_bytes: number("artifact_bytes"),
        events: number("events"),
        newest_event: row.get("newest_event"),
    })
}
