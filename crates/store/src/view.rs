//! Queries for the views of a society. Reading a page takes a few statements;
//! their number does not depend on the number of rows.
//!
//! A statement contains only the conditions of the filters that are set, so that SQLite picks the best index. The
//! values of filters are always bound, never written into the statement.

pub mod agents;
pub mod artifacts;
pub mod conversation;
pub mod doing;
pub mod edits;
pub mod events;
pub mod facts;
pub mod messages;
pub mod now;
pub mod search;
pub mod tasks;
#[cfg(test)]
mod tests;
pub mod usage;
pub mod uses;

use super::{Error, damaged};
use polity_sql::Row;
use polity_view::UsageSum;

/// A statement under construction.
type Builder = polity_sql::Builder<'static>;

/// Cuts the rows to the requested number. The caller asks the database for one row more than requested: if this row
/// exists, there is a next page. Returns where the next page begins, if there is one.
pub(crate) fn cut<T>(rows: &mut Vec<(i64, T)>, limit: u32) -> Option<i64> {
    if rows.len() <= limit as usize {
        return None;
    }
    rows.truncate(limit as usize);
    rows.last().map(|(place, _)| *place)
}

/// The maximum number of bytes of stored text on a page. A page may exceed this limit only if it has a single row.
const MAX_PAGE_TEXT: u64 = 8 << 20;

/// Returns the number of a row and the size of its text in bytes.
fn place_and_size(row: &Row) -> (i64, u64) {
    (row.get("seq"), row.get::<i64, _>("size").unsigned_abs())
}

/// Drops the rows beyond `limit`, and the rows whose text no longer fits on the page.
/// Each row is given as its number and its size in bytes. Returns where the next page begins, if there is one.
fn cut_to_room(found: &mut Vec<(i64, u64)>, limit: u32) -> Option<i64> {
    let (whole, mut text) = (found.len(), 0_u64);
    let fits = |(_, size): &&(i64, u64)| {
        text = text.saturating_add(*size);
        text <= MAX_PAGE_TEXT
    };
    let fitting = found.iter().take(limit as usize).take_while(fits).count().max(1);
    found.truncate(fitting);
    found.last().map(|(place, _)| *place).filter(|_| fitting < whole)
}

/// Reads a row after checking that its texts are valid UTF-8, because `read` assumes this.
/// Callers show an invalid row as damaged, so that the rows around it stay visible.
pub(crate) fn sound<T>(
    table: &'static str,
    row: &Row,
    read: impl FnOnce(&Row) -> Result<T, Error>,
) -> Result<T, Error> {
    for (name, value) in row.columns() {
        if let Err(error) = value.check_text() {
            let id = row.try_get::<i64, _>("seq").map(|seq| seq.to_string());
            let id = row.try_get::<String, _>("id").or(id).unwrap_or_else(|_| "a row".to_owned());
            return Err(damaged(table, &id, format!("{name} is not text: {error}")));
        }
    }
    read(row)
}

/// Returns a text column of a row that may be damaged, or an empty text if the column cannot be read.
pub(crate) fn as_far_as_it_goes(row: &Row, column: &str) -> String {
    row.try_get(column).unwrap_or_default()
}

/// The columns of a sum over model calls.
const SUMS: &str = "count(*) AS calls, coalesce(sum(prompt_tokens), 0) AS prompt,
    coalesce(sum(completion_tokens), 0) AS completion, sum(cost) AS cost";

fn sum(row: &Row) -> UsageSum {
    let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
    UsageSum {
        calls: number("calls"),
        prompt_tokens: number("prompt"),
        completion_tokens: number("completion"),
        cost: row.get("cost"),
    }
}
