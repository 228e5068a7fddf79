//! Runs SQL statements on a SQLite database, on the thread that asks for them.
//!
//! A statement of SQLite takes a few microseconds. To hand it to another thread and back takes longer than the statement
//! itself, so this crate does not do that: each call runs the statement and returns a future that is ready. The calls
//! are nevertheless `async`, so that the code above does not change if a database on another machine is used one day.
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
