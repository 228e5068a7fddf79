//! Reads and changes the database of a daemon, mostly after the daemon has ended.

use std::path::Path;

use polity_sql::{Access, Connection, Options, Row};

/// A connection to the database of a data directory.
pub(crate) struct Database {
    connection: Connection,
}

impl Database {
    #[track_caller]
    pub(crate) fn read(data: &Path) -> Self {
        Self::open(data, Access::Read)
    }

    /// Opens the database for changing or damaging it.
    #[track_caller]
    pub(crate) fn write(data: &Path) -> Self {
        Self::open(data, Access::Write)
    }

    #[track_caller]
    fn open(data: &Path, access: Access) -> Self {
        let connection = Options::new(&data.join("polity.db"), access).connect().expect("a database");
        Self { connection }
    }

    #[track_caller]
    pub(crate) fn execute(&mut self, statement: &'static str) {
        let executed = polity_sql::query(statement).execute(&mut self.connection);
        executed.into_inner().expect("a statement");
    }

    /// Runs a statement with these numbers as its parameters, from `?1` on.
    #[track_caller]
    pub(crate) fn execute_with(&mut self, statement: &'static str, numbers: &[i64]) {
        let query = numbers.iter().fold(polity_sql::query(statement), |query, number| query.bind(*number));
        query.execute(&mut self.connection).into_inner().expect("a statement");
    }

    /// Returns all rows of a query.
    #[track_caller]
    pub(crate) fn rows(&mut self, query: &'static str) -> Vec<Row> {
        polity_sql::query(query).fetch_all(&mut self.connection).into_inner().expect("a query")
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
