//! Runs SQL statements on a SQLite database, on the caller's thread.
//!
//! SQLite runs a statement in a few microseconds. The way to another thread and back would take longer than the
//! statement itself. So each call runs its statement at once, and returns a future that is already ready. The calls
//! return futures because the database may be on another machine one day. Then their callers need no change.
//!
//! The path of a statement: [`query`] takes the text, `bind` adds the arguments, and `execute` or `fetch_…` runs the
//! statement on a [`Connection`], which keeps prepared statements. A fetched [`Row`] owns its values and can go to any
//! thread. This crate knows no table.

#![expect(missing_docs, reason = "the variants of values and errors say what they are")]

mod connection;
mod error;
mod query;
mod row;
#[cfg(test)]
mod tests;
mod value;

pub use connection::{Access, Connection, Journal, Options, Pace};
pub use error::Error;
pub use query::{Builder, Done, Query, Scalar, Sql, query, query_scalar, raw_sql};
pub use row::{Place, Row};
pub use value::{Argument, FromColumn, Json, Mismatch, Value};
