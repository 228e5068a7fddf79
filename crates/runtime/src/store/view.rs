//! Readings for those who look at a society. A page takes a few statements, however many rows it has.
//!
//! Conditions are put together from the filters that are there, so that SQLite picks the index for them; what a filter
//! says is always bound, never written into a statement.

pub(crate) mod agents;
pub(crate) mod artifacts;
pub(crate) mod conversation;
pub(crate) mod events;
pub(crate) mod facts;
pub(crate) mod messages;
pub(crate) mod tasks;
pub(crate) mod usage;

use crate::view::UsageSum;
use sqlx::sqlite::{Sqlite, SqliteRow};
use sqlx::{QueryBuilder, Row};

/// A statement that is being put together.
type Builder = QueryBuilder<Sqlite>;

/// Cuts what was read to what was asked for: one row more was read than that. Says where the next page begins, if there
/// is more.
fn cut<T>(rows: &mut Vec<(i64, T)>, limit: u32) -> Option<i64> {
    if rows.len() <= limit as usize {
        return None;
    }
    rows.truncate(limit as usize);
    rows.last().map(|(place, _)| *place)
}

/// The columns of a sum over calls.
const SUMS: &str = "count(*) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt,
    coalesce(sum(completion_tokens), 0) AS completion, sum(cost) AS cost";

fn sum(row: &SqliteRow) -> UsageSum {
    let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
    UsageSum {
        calls: number("calls"),
        prompt_tokens: number("prompt"),
        completion_tokens: number("completion"),
        cost: row.get("cost"),
    }
}
