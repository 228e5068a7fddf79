//! Searches the prompts, messages, agents and artifacts, newest first.
//!
//! The index contains groups of three characters. With these groups, the index finds the rows that may contain all
//! words of a search. This module then reads the texts of these rows, and keeps the rows that really contain the words.
//!
//! A word of one or two characters is shorter than a group. For such a word, the index finds the rows that have any
//! group that begins with the word. If more than `MOST_GROUPS` groups begin with the word, the word is too frequent,
//! and the index is not used for it.

#[cfg(test)]
mod tests;
mod words;

use super::Builder;
use crate::Error;
use polity_society::id::{AgentId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{SearchFilter, SearchHit, SearchKind, page};
use words::{Word, any_of, snippet, words};

/// The groups of the index that begin with the short word `?1`. `?2` is a text that sorts after all these groups.
const GROUPS: &str = "SELECT term FROM found_groups WHERE term >= ?1 AND term < ?2 LIMIT ?3";
/// The rows, each with the columns that a hit shows, and with the text that was indexed. This statement builds the text
/// like the triggers of the migration `0012_search.sql`. The only difference is that the triggers add two line breaks
/// at the end.
const ROWS: &str =
    "SELECT f.seq, f.kind, f.id, f.task, f.created_at, m.sender, m.receiver, x.owner, a.ended_at, t.state,
    CASE f.kind WHEN 'agent' THEN coalesce(a.name, r.name) WHEN 'artifact' THEN coalesce(x.filename, x.label) END AS name,
    substr(CASE f.kind WHEN 'agent' THEN concat_ws(char(10), a.id, a.name, r.name, (SELECT group_concat(atom, char(10))
            FROM json_tree(CASE WHEN json_valid(a.brief) THEN a.brief ELSE '{}' END) WHERE type = 'text'))
        WHEN 'artifact' THEN concat_ws(char(10), x.id, x.filename, x.label, x.words)
        ELSE (SELECT group_concat(atom, char(10))
            FROM json_tree(CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END) WHERE type = 'text') END, 1, 20000)
        AS text
    FROM findable f
    LEFT JOIN messages m ON f.kind IN ('task', 'message') AND m.id = f.id
    LEFT JOIN agents a ON f.kind = 'agent' AND a.id = f.id
    LEFT JOIN roles r ON r.id = a.role
    LEFT JOIN artifacts x ON f.kind = 'artifact' AND x.id = f.id
    LEFT JOIN tasks t ON t.id = f.task
    WHERE f.seq < ?";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[GROUPS, ROWS];

/// The most groups that a query for the index contains for one short word.
const MOST_GROUPS: u32 = 300;
/// The most rows that one statement reads. The number is small, because the first rows usually fill a page.
const BATCH: u32 = 200;
/// The most rows that a search reads for one page.
const MOST_ROWS: usize = 20_000;
/// The most bytes of text that a search reads for one page.
const MOST_TEXT: usize = 16 << 20;

/// Returns a page of hits, and where the next page begins.
pub async fn list(
    connection: &mut Connection,
    filter: &SearchFilter,
) -> Result<(Vec<SearchHit>, Option<i64>), Error> {
    let (limit, words) = (page(filter.limit) as usize, words(&filter.q));
    let mut hits = Vec::new();
    if words.is_empty() {
        return Ok((hits, None));
    }
    let index = match query(connection, &words).await? {
        Query::Nothing => return Ok((hits, None)),
        Query::Index(query) => Some(query),
        Query::Everything => None,
    };
    let mut before = filter.after.unwrap_or(i64::MAX);
    let (mut read, mut text) = (0, 0);
    loop {
        let rows = matching(filter, index.as_deref(), before).build().fetch_all(&mut *connection).await?;
        for row in &rows {
            // The page ends before this row: the page is full, or the search has read as much as it may for one page.
            if hits.len() == limit || read >= MOST_ROWS || text >= MOST_TEXT {
                return Ok((hits, Some(before)));
            }
            before = row.get("seq");
            let said = super::as_far_as_it_goes(row, "text");
            (read, text) = (read + 1, text + said.len());
            if let Some(snippet) = snippet(&said, &words) {
                hits.push(SearchHit { snippet, ..hit(row, filter.kind) });
            }
        }
        if rows.len() < BATCH as usize {
            return Ok((hits, None));
        }
    }
}

/// Which rows a search must read.
enum Query {
    /// No row has all words.
    Nothing,
    /// The rows that the index names for this query.
    Index(String),
    /// All rows.
    Everything,
}

async fn query(connection: &mut Connection, words: &[Word]) -> Result<Query, Error> {
    let mut parts = Vec::new();
    for word in words {
        if let Some(part) = word.query() {
            parts.push(part);
        } else if word.is_short() {
            let begin = word.text();
            let groups: Vec<String> = polity_sql::query_scalar(GROUPS)
                .bind(&begin)
                .bind(format!("{begin}\u{10ffff}"))
                .bind(MOST_GROUPS + 1)
                .fetch_all(&mut *connection)
                .await?;
            match groups.len() {
                0 => return Ok(Query::Nothing),
                many if many > MOST_GROUPS as usize => {}
                _ => parts.push(any_of(&groups)),
            }
        }
    }
    Ok(if parts.is_empty() { Query::Everything } else { Query::Index(parts.join(" AND ")) })
}

/// Builds the statement for the next rows, newest first.
fn matching(filter: &SearchFilter, index: Option<&str>, before: i64) -> Builder {
    let mut query = Builder::new(ROWS);
    query.bind(before);
    if let Some(index) = index {
        query.push(" AND f.seq IN (SELECT rowid FROM found WHERE found MATCH ").push_bind(index.to_owned());
        query.push(" AND rowid < ").push_bind(before).push(" ORDER BY rowid DESC");
        // A filter leaves out some of the rows that the index finds, so the index must not stop at the limit. Without a
        // filter, it may stop there.
        if filter.task.is_none() && filter.kind.is_none() {
            query.push(" LIMIT ").push_bind(BATCH);
        }
        query.push(")");
    }
    if let Some(task) = &filter.task {
        query.push(" AND (f.task = ").push_bind(task.as_str().to_owned());
        query.push(" OR f.kind = 'artifact' AND f.id IN (SELECT artifact FROM inherited WHERE task = ");
        query.push_bind(task.as_str().to_owned()).push("))");
    }
    match filter.kind {
        None => {}
        Some(SearchKind::Message) => {
            query.push(" AND f.kind IN ('task', 'message')");
        }
        Some(kind) => {
            query.push(" AND f.kind = ").push_bind(kind.as_str());
        }
    }
    query.push(" ORDER BY f.seq DESC LIMIT ").push_bind(BATCH);
    query
}

/// Reads a hit, without its snippet. The prompt that began a task is a hit of the kind `task`. If the caller wants
/// messages, the prompt is shown as a message.
fn hit(row: &Row, wanted: Option<SearchKind>) -> SearchHit {
    let optional = |column: &str| row.try_get::<Option<String>, _>(column).ok().flatten();
    let found = super::as_far_as_it_goes(row, "kind").parse().unwrap_or(SearchKind::Message);
    let kind = match (found, wanted) {
        (SearchKind::Task, Some(SearchKind::Message)) => SearchKind::Message,
        (found, _) => found,
    };
    let task = optional("task");
    let id = super::as_far_as_it_goes(row, "id");
    let ended = row.try_get::<Option<i64>, _>("ended_at").ok().flatten().is_some();
    SearchHit {
        id: match (kind, &task) {
            (SearchKind::Task, Some(task)) => task.clone(),
            _ => id,
        },
        kind,
        task: task.map(TaskId::new),
        name: optional("name"),
        from: optional("sender").or_else(|| optional("owner")),
        to: optional("receiver").map(AgentId::new),
        snippet: Vec::new(),
        created_at: row.try_get("created_at").unwrap_or_default(),
        over: ended || optional("state").is_some_and(|state| state == "idle"),
    }
}
