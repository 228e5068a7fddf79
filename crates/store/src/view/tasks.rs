//! Reads tasks for the views, newest first.

use super::{Builder, cut, usage};
use crate::messages::requests::open_question;
use crate::tasks::Standing;
use crate::{Error, tasks};
use polity_society::id::TaskId;
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{TaskFilter, TaskState, TaskView, UsageSum, page};
use std::collections::HashMap;

/// The most characters of a title. The title is the first line of the prompt.
const TITLE_CHARS: usize = 120;

/// Reads the beginning of the prompt of a task `t`. The body of a message is a JSON object unless it is damaged.
macro_rules! said {
    () => {
        "(SELECT CASE WHEN json_valid(body) THEN
            substr(trim(coalesce(body ->> '$.text', body ->> '$.content', ''), char(9, 10, 13, 32)), 1, 500) END
        FROM messages INDEXED BY messages_of_task WHERE task = t.id AND sender = 'user' ORDER BY seq LIMIT 1)"
    };
}

/// The tasks, each with the beginning of its prompt. The second event of a fork tells which task was copied. Only the
/// first two events of a task are read, because a task can have many.
const TASKS: &str = concat!(
    "SELECT t.rowid AS place, t.id, t.state, t.stopped_by, t.created_at, t.forgotten_at,
    ",
    said!(),
    " AS said,
    (SELECT count(*) FROM agents WHERE task = t.id) AS agents,
    (SELECT count(*) FROM messages INDEXED BY messages_open_requests WHERE task = t.id AND ",
    open_question!(),
    ")
        + (SELECT count(*) FROM approvals WHERE task = t.id AND state = 'open') AS questions,
    (SELECT CASE WHEN json_valid(body) THEN body ->> '$.from' END
        FROM (SELECT kind, body FROM events INDEXED BY events_of_task WHERE task = t.id ORDER BY seq LIMIT 2)
        WHERE kind = 'task_forked') AS forked_from
    FROM tasks t"
);
const TITLES: &str = concat!(
    "SELECT t.id, ",
    said!(),
    " AS said FROM tasks t WHERE t.id IN (SELECT value FROM json_each(?1))"
);

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[TASKS, TITLES];

/// Returns a page of tasks, and where the next page begins.
pub async fn list(
    connection: &mut Connection,
    filter: &TaskFilter,
) -> Result<(Vec<TaskView>, Option<i64>), Error> {
    let limit = page(filter.limit);
    let rows = matching(filter, limit).build().fetch_all(&mut *connection).await?;
    let mut found: Vec<(i64, TaskView)> = rows.iter().map(|row| (row.get("place"), read(row))).collect();
    let next = cut(&mut found, limit);
    let mut found: Vec<TaskView> = found.into_iter().map(|(_, task)| task).collect();
    complete(connection, &mut found).await?;
    Ok((found, next))
}

/// Builds the statement for a page of tasks and one more. Few tasks are open, and they have an index. This index needs
/// its condition in the statement, not as a bound value.
pub(super) fn matching(filter: &TaskFilter, limit: u32) -> Builder {
    let mut query = Builder::new(TASKS);
    query.push(" WHERE 1");
    if let Some(after) = filter.after {
        query.push(" AND t.rowid < ").push_bind(after);
    }
    match filter.state {
        Some(TaskState::Open) => {
            query.push(" AND t.state = 'open'");
        }
        Some(TaskState::Idle) => {
            query.push(" AND t.state = 'idle'");
        }
        None => {}
    }
    query.push(" ORDER BY t.rowid DESC LIMIT ").push_bind(i64::from(limit) + 1);
    query
}

/// Returns a task; `None` if there is no task with this id.
pub async fn get(connection: &mut Connection, id: &TaskId) -> Result<Option<TaskView>, Error> {
    let mut query = Builder::new(TASKS);
    query.push(" WHERE t.id = ").push_bind(id.as_str().to_owned());
    let row = query.build().fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok(None) };
    let mut found = [read(&row)];
    complete(connection, &mut found).await?;
    let [task] = found;
    Ok(Some(task))
}

/// Returns the titles of these tasks. Tasks without a title are left out.
pub async fn titles(connection: &mut Connection, ids: &[TaskId]) -> Result<HashMap<TaskId, String>, Error> {
    let rows =
        polity_sql::query(TITLES).bind(serde_json::json!(ids).to_string()).fetch_all(connection).await?;
    let read = |row: &Row| {
        let said: Option<String> = row.get("said");
        Some((TaskId::new(row.get::<String, _>("id")), title(&said?)))
    };
    Ok(rows.iter().filter_map(read).filter(|(_, title)| !title.is_empty()).collect())
}

/// Returns the title of a task with this prompt. `…` shows that the first line was cut.
fn title(prompt: &str) -> String {
    let mut characters = prompt.lines().next().unwrap_or_default().chars();
    let mut title: String = characters.by_ref().take(TITLE_CHARS).collect();
    if characters.next().is_some() {
        title.pop();
        title.push('…');
    }
    title
}

fn read(row: &Row) -> TaskView {
    let said: Option<String> = row.get("said");
    let title = title(&said.unwrap_or_default());
    let number = |column: &str| row.get::<i64, _>(column).unsigned_abs();
    TaskView {
        id: TaskId::new(row.get::<String, _>("id")),
        title,
        state: row.get::<String, _>("state").parse().unwrap_or(TaskState::Idle),
        outcome: None,
        stopped_by: row.get("stopped_by"),
        created_at: row.get("created_at"),
        forgotten_at: row.get("forgotten_at"),
        agents: number("agents"),
        usage: UsageSum::default(),
        waiting_for_user: number("questions"),
        forked_from: row.get::<Option<String>, _>("forked_from").map(TaskId::new),
    }
}

/// Adds two facts to each task of a page: its usage and its outcome. Each fact takes one statement for the whole page.
async fn complete(connection: &mut Connection, found: &mut [TaskView]) -> Result<(), Error> {
    let ids: Vec<&TaskId> = found.iter().map(|task| &task.id).collect();
    let spent = usage::of_tasks(connection, &ids).await?;
    let idle: Vec<TaskId> =
        found.iter().filter(|task| task.state == TaskState::Idle).map(|task| task.id.clone()).collect();
    let standings = tasks::standings(connection, &idle).await?;
    for task in found {
        task.usage = spent.get(&task.id).copied().unwrap_or_default();
        // The messages of a forgotten task were removed, so its outcome is no longer known.
        let standing = standings.get(&task.id).filter(|_| task.forgotten_at.is_none());
        task.outcome = standing.map(Standing::outcome);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_is_cut_says_so() {
        assert_eq!(title("write\na story"), "write");
        assert_eq!(title(&"写".repeat(TITLE_CHARS)), "写".repeat(TITLE_CHARS));
        assert_eq!(title(&"写".repeat(TITLE_CHARS + 1)), format!("{}…", "写".repeat(TITLE_CHARS - 1)));
        assert_eq!(title(""), "");
    }
}
