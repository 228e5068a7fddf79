//! Reads and changes the database of a daemon, mostly after it has ended.

use std::path::Path;

use sqlx::sqlite::{SqliteConnectOptions, SqliteRow};
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};
use tokio::runtime::Runtime;

/// A connection to the database of a data directory.
pub(crate) struct Database {
    runtime: Runtime,
    connection: Option<SqliteConnection>,
}

impl Database {
    #[track_caller]
    pub(crate) fn read(data: &Path) -> Self {
        Self::open(data, |options| options.read_only(true))
    }

    /// Opens the database for changing or damaging it.
    #[track_caller]
    pub(crate) fn write(data: &Path) -> Self {
        Self::open(data, |options| options)
    }

    #[track_caller]
    fn open(data: &Path, options: impl FnOnce(SqliteConnectOptions) -> SqliteConnectOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let options = options(SqliteConnectOptions::new().filename(data.join("polity.db")));
        let connection = runtime.block_on(options.connect()).expect("a database");
        Self { runtime, connection: Some(connection) }
    }

    fn connection(&mut self) -> (&Runtime, &mut SqliteConnection) {
        (&self.runtime, self.connection.as_mut().expect("open until dropped"))
    }

    #[track_caller]
    pub(crate) fn execute(&mut self, statement: &'static str) {
        let (runtime, connection) = self.connection();
        let executed = runtime.block_on(sqlx::query(statement).execute(connection));
        executed.expect("a statement");
    }

    /// Runs a statement with these numbers as its parameters, from `?1` on.
    #[track_caller]
    pub(crate) fn execute_with(&mut self, statement: &'static str, numbers: &[i64]) {
        let (runtime, connection) = self.connection();
        let query = numbers.iter().fold(sqlx::query(statement), |query, number| query.bind(*number));
        runtime.block_on(query.execute(connection)).expect("a statement");
    }

    /// Returns all rows of a query.
    #[track_caller]
    pub(crate) fn rows(&mut self, query: &'static str) -> Vec<SqliteRow> {
        let (runtime, connection) = self.connection();
        runtime.block_on(sqlx::query(query).fetch_all(connection)).expect("a query")
    }

    /// Returns the rows of a query whose columns are all text.
    #[track_caller]
    pub(crate) fn texts<const COLUMNS: usize>(&mut self, query: &'static str) -> Vec<[String; COLUMNS]> {
        let rows = self.rows(query);
        rows.iter().map(|row| std::array::from_fn(|column| row.get(column))).collect()
    }

    /// Returns the number in the first row of a query.
    #[track_caller]
    pub(crate) fn number(&mut self, query: &'static str) -> i64 {
        let rows = self.rows(query);
        rows.first().expect("a row").get(0)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // The runtime ends here, so close the connection first. A failure to close it does not matter.
        if let Some(connection) = self.connection.take() {
            let _ = self.runtime.block_on(connection.close());
        }
    }
}
