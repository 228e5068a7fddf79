//! `polity tasks`: lists the tasks and their state.

use super::words::{moment, standing, usage, variant};
use super::{Shape, Source};
use crate::failure::Failure;
use crate::output::table::{Cell, DIM, HELD, NAME, PLAIN, table};
use clap::Args;
use polity_view::{MAX_PAGE, TaskFilter, TaskState, TaskView};

/// `polity tasks`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Only tasks in this state: open or idle.
    #[arg(long, value_parser = variant::<TaskState>)]
    state: Option<TaskState>,
    /// Maximum number of tasks; the newest are listed.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: u32,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let filter = TaskFilter { state: arguments.state, after: None, limit: Some(arguments.limit) };
    let mut tasks = arguments.source.client().await?.tasks(&filter).await?.tasks;
    // Show the newest task last, because the user first sees the line just above the next shell prompt.
    tasks.reverse();
    arguments.shape.list(&tasks, "there are no such tasks", words)?;
    Ok(0)
}

/// Formats tasks, one per line.
pub(crate) fn words(tasks: &[TaskView]) -> String {
    let rows: Vec<Vec<Cell>> = tasks.iter().map(row).collect();
    table(&rows)
}

fn row(task: &TaskView) -> Vec<Cell> {
    let (style, standing) = standing(task);
    let stopped = task.stopped_by.as_ref().map_or_else(String::new, |by| format!("stopped by {by}"));
    let asked = match task.waiting_for_user {
        0 => String::new(),
        1 => "1 question to you".to_owned(),
        count => format!("{count} questions to you"),
    };
    let agents = match task.agents {
        0 => String::new(),
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    };
    let title = match task.forgotten_at {
        Some(_) if task.title.is_empty() => "(removed to make room)",
        Some(_) | None => &task.title,
    };
    vec![
        Cell::new(NAME, task.id.as_str()),
        Cell::new(DIM, &moment(task.created_at)),
        Cell::new(style, &standing),
        Cell::new(HELD, &stopped),
        Cell::new(HELD, &asked),
        Cell::new(DIM, &agents),
        Cell::new(DIM, &usage(&task.usage)),
        Cell::new(PLAIN, title),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::examples::tasks;
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn tasks_in_words() {
        insta::assert_snapshot!(without_styles(&words(&tasks())), @r#"
task-aaaa  1970-01-01 00:00:00  answered                                                                                             (removed to make room)
task-bbbb  1970-01-01 00:00:00  limited      stopped by maxTokensPerTask                     2 agents  15 calls, 24000 + 405 tokens  red <U+001B>[31m<U+0007> and more
task-cccc  1970-01-01 00:00:00  awaits_user                               1 question to you  1 agent   15 calls, 24000 + 405 tokens  看看这张图片
task-4x2k  1970-01-01 00:00:00  open                                                         2 agents  15 calls, 24000 + 405 tokens  看看这张图片
"#);
    }
}
