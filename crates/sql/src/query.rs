//! Statements with their arguments.

use crate::value::{Argument, FromColumn};
use crate::{Connection, Error, Row};
use std::borrow::Cow;
use std::future::{Ready, ready};

/// The text of a statement. A `&'static str` is converted automatically. A text that was built at run time may contain
/// a value from outside by mistake. So such a text needs a call of [`Sql::built`], by which a reviewer finds the place.
#[derive(Clone, Debug)]
pub struct Sql(Cow<'static, str>);

impl Sql {
    /// Uses a text that was built at run time. The text must contain no value from outside: bind such values instead.
    pub fn built(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

/// What a statement has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub(crate) changed: u64,
}

impl Done {
    /// Returns how many rows the statement has inserted, changed or removed.
    pub fn rows_affected(self) -> u64 {
        self.changed
    }
}

/// A statement with its arguments.
#[derive(Debug)]
#[must_use = "a statement does nothing until it is run"]
pub struct Query<'q> {
    sql: Sql,
    arguments: Vec<Argument<'q>>,
}

/// Begins a statement.
pub fn query<'q>(sql: impl Into<Sql>) -> Query<'q> {
    Query { sql: sql.into(), arguments: Vec::new() }
}

impl<'q> Query<'q> {
    /// Adds the next argument: the first call binds `?1`.
    pub fn bind(mut self, argument: impl Into<Argument<'q>>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs the statement and ignores its rows.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails.
    pub fn execute(self, connection: &mut Connection) -> Ready<Result<Done, Error>> {
        ready(connection.execute(&self.sql, self.arguments))
    }

    /// Returns all rows.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails.
    pub fn fetch_all(self, connection: &mut Connection) -> Ready<Result<Vec<Row>, Error>> {
        let mut rows = Vec::new();
        let read = connection.each(&self.sql, self.arguments, |row| {
            rows.push(row);
            true
        });
        ready(read.map(|()| rows))
    }

    /// Returns the first row, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails.
    pub fn fetch_optional(self, connection: &mut Connection) -> Ready<Result<Option<Row>, Error>> {
        let mut first = None;
        let read = connection.each(&self.sql, self.arguments, |row| {
            first = Some(row);
            false
        });
        ready(read.map(|()| first))
    }

    /// Returns the first row.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails, or if there is no row.
    pub fn fetch_one(self, connection: &mut Connection) -> Ready<Result<Row, Error>> {
        ready(self.fetch_optional(connection).into_inner().and_then(|row| row.ok_or(Error::NoRow)))
    }

    /// Calls a function with one row after the other, so that the rows are never all in memory at the same time.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails. If the function fails for a row, no further row is read, and the error of the function is
    /// returned.
    pub fn for_each(
        self,
        connection: &mut Connection,
        mut each: impl FnMut(&Row) -> Result<(), Error>,
    ) -> Ready<Result<(), Error>> {
        let mut outcome = Ok(());
        let read = connection.each(&self.sql, self.arguments, |row| {
            outcome = each(&row);
            outcome.is_ok()
        });
        ready(read.and(outcome))
    }
}

/// A statement that returns one value per row: the value of the first column.
#[derive(Debug)]
#[must_use = "a statement does nothing until it is run"]
pub struct Scalar<'q>(Query<'q>);

/// Begins a statement that returns one value per row: the value of the first column.
pub fn query_scalar<'q>(sql: impl Into<Sql>) -> Scalar<'q> {
    Scalar(query(sql))
}

impl<'q> Scalar<'q> {
    /// Adds the next argument: the first call binds `?1`.
    pub fn bind(self, argument: impl Into<Argument<'q>>) -> Self {
        Self(self.0.bind(argument))
    }

    /// Returns the values of all rows.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails, or if a value does not have the type `T`.
    pub fn fetch_all<T: for<'r> FromColumn<'r>>(
        self,
        connection: &mut Connection,
    ) -> Ready<Result<Vec<T>, Error>> {
        let rows = self.0.fetch_all(connection).into_inner();
        ready(rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect()))
    }

    /// Returns the value of the first row, if there is one.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails, or if the value does not have the type `T`.
    pub fn fetch_optional<T: for<'r> FromColumn<'r>>(
        self,
        connection: &mut Connection,
    ) -> Ready<Result<Option<T>, Error>> {
        let row = self.0.fetch_optional(connection).into_inner();
        ready(row.and_then(|row| row.map(|row| row.try_get(0)).transpose()))
    }

    /// Returns the value of the first row.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails, if there is no row, or if the value does not have the type `T`.
    pub fn fetch_one<T: for<'r> FromColumn<'r>>(
        self,
        connection: &mut Connection,
    ) -> Ready<Result<T, Error>> {
        ready(self.0.fetch_one(connection).into_inner().and_then(|row| row.try_get(0)))
    }
}

/// Several statements in one text, without arguments.
#[derive(Debug)]
#[must_use = "the statements do nothing until they are run"]
pub struct Statements(Sql);

/// Begins a text of several statements, for tests and tools.
pub fn raw_sql(sql: impl Into<Sql>) -> Statements {
    Statements(sql.into())
}

impl Statements {
    /// Runs the statements one after the other.
    ///
    /// # Errors
    ///
    /// Fails with the first statement that fails.
    pub fn execute(self, connection: &mut Connection) -> Ready<Result<(), Error>> {
        ready(connection.execute_all(self.0.as_str()))
    }
}

/// Builds a statement step by step: a statement whose conditions depend on what the caller asks for.
#[derive(Debug)]
pub struct Builder<'q> {
    sql: String,
    arguments: Vec<Argument<'q>>,
}

impl<'q> Builder<'q> {
    /// Begins with a text.
    pub fn new(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), arguments: Vec::new() }
    }

    /// Binds the next argument. Call this for the text given to [`Builder::new`], before [`Builder::push_bind`].
    pub fn bind(&mut self, argument: impl Into<Argument<'q>>) -> &mut Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a text. The text must contain no value from outside: use [`Builder::push_bind`] for such values.
    pub fn push(&mut self, sql: impl std::fmt::Display) -> &mut Self {
        use std::fmt::Write as _;
        // Writing to a `String` never fails.
        let _ = write!(self.sql, "{sql}");
        self
    }

    /// Adds a `?` to the text and binds its argument.
    pub fn push_bind(&mut self, argument: impl Into<Argument<'q>>) -> &mut Self {
        self.sql.push('?');
        self.arguments.push(argument.into());
        self
    }

    /// Returns the text so far.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// Returns the finished statement.
    pub fn build(self) -> Query<'q> {
        Query { sql: Sql::built(self.sql), arguments: self.arguments }
    }

    /// Returns the finished statement, which returns one value per row: the value of the first column.
    pub fn build_scalar(self) -> Scalar<'q> {
        Scalar(self.build())
    }
}
