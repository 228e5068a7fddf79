//! A database in a temporary directory, with one empty task, for the tests of this crate.

use crate::view::events;
use crate::{Conversation, Durability, Error, Signals, Store, Tx, tasks};
use futures::future::BoxFuture;
use polity_society::id::{AgentId, TaskId};
use polity_sql::{Connection, Sql};
use polity_view::{Entry, EventFilter};
use tempfile::TempDir;

pub(crate) struct Scratch {
    pub(crate) store: Store,
    pub(crate) signals: Signals,
    pub(crate) directory: TempDir,
}

impl Scratch {
    /// Creates a database with the open task `t-1`.
    pub(crate) async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (store, signals) =
            Store::open(&directory.path().join("polity.db"), Durability::Normal).await.unwrap();
        let scratch = Self { store, signals, directory };
        scratch.add_task("t-1").await;
        scratch
    }

    pub(crate) async fn add_task(&self, id: &str) {
        let id = TaskId::new(id);
        self.write(move |tx| Box::pin(async move { tasks::insert(tx, &id, None).await })).await;
    }

    pub(crate) async fn write<T, F>(&self, job: F) -> T
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Error>> + Send + 'static,
    {
        self.store.write(job).await.unwrap()
    }

    /// Runs SQL directly, without the functions of this crate.
    pub(crate) async fn execute(&self, statements: &'static str) {
        self.write(move |tx| {
            Box::pin(async move {
                polity_sql::raw_sql(statements).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    }

    /// Returns the first column of each row that a query finds, as text.
    pub(crate) async fn query(&self, sql: &str) -> Vec<String> {
        let mut reader = self.store.reader().await.unwrap();
        let rows = polity_sql::query(Sql::built(sql.to_owned())).fetch_all(&mut reader).await.unwrap();
        rows.iter().map(|row| row.try_get::<Option<String>, _>(0).unwrap().unwrap_or_default()).collect()
    }
}

/// Returns the conversation of an agent in the task `t-1`.
pub(crate) fn conversation(agent: &str) -> Conversation {
    Conversation { agent: AgentId::new(agent), task: TaskId::new("t-1") }
}

/// Returns all events after a number.
pub(crate) async fn events_after(connection: &mut Connection, seq: i64) -> Vec<Entry> {
    let everything = EventFilter::default();
    events::list(connection, events::Side::After(seq), &everything, 10_000).await.unwrap().events
}
