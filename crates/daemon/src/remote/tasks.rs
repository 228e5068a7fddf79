//! `polity tasks`: lists the tasks and their state.

use super::words::{moment, standing, usage, variant};
use super::{Shape, Source};
use crate::failure::Failure;
use crate::output::Form;
use crate::output::table::{Cell, DIM, HELD, NAME, PLAIN, painted, table};
use crate::output::width::width;
use clap::Args;
use polity_society::id::TaskId;
use polity_view::{MAX_PAGE, TaskFilter, TaskState, TaskView};
use std::collections::BTreeSet;

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
    /// Also list the finished tasks, below the tasks in which something is left to do.
    #[arg(long)]
    all: bool,
    /// Maximum number of tasks; the newest are listed.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: u32,
}

/// Whether a list contains the finished tasks, or only their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finished {
    Listed,
    Counted,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let filter = TaskFilter { state: arguments.state, after: None, limit: Some(arguments.limit) };
    let page = client.tasks(&filter).await?;
    let mut tasks = page.tasks;
    if page.next.is_some() && filter.state.is_none() && arguments.shape.form() == Form::Text {
        // A task that is older than the tasks of this page may still be open, so fetch the open tasks, too.
        let known: BTreeSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
        let open = client.tasks(&TaskFilter { state: Some(TaskState::Open), ..filter }).await?.tasks;
        tasks.extend(open.into_iter().filter(|task| !known.contains(&task.id)));
    }
    // Show the newest task last, because the user first sees the line just above the next shell prompt.
    tasks.reverse();
    let finished = match (arguments.all, arguments.state) {
        (false, None) => Finished::Counted,
        (true, _) | (_, Some(_)) => Finished::Listed,
    };
    arguments.shape.list(&tasks, "there are no such tasks", |tasks| listed(tasks, finished, width()))?;
    Ok(0)
}

/// Formats tasks, one per line: first those in which something is left to do, then the finished ones or their number.
/// If all tasks are finished, lists them even if `finished` asks for their number.
fn listed(tasks: &[TaskView], finished: Finished, columns: Option<usize>) -> String {
    let (mut shown, over): (Vec<&TaskView>, Vec<&TaskView>) = tasks.iter().partition(|task| is_active(task));
    let folds = finished == Finished::Counted && !shown.is_empty() && !over.is_empty();
    if !folds {
        shown.extend(&over);
    }
    let rows: Vec<Vec<Cell>> = shown.into_iter().map(row).collect();
    let table = table(&rows, columns);
    if !folds {
        return table;
    }
    let words = match over.len() {
        1 => "1 finished task is not shown; --all lists it".to_owned(),
        count => format!("{count} finished tasks are not shown; --all lists them"),
    };
    format!("{table}\n{}", painted(DIM, &words))
}

/// Returns whether something is left to do in a task, for the agents or for the user.
pub(super) fn is_active(task: &TaskView) -> bool {
    task.state == TaskState::Open || task.waiting_for_user > 0
}

/// Formats tasks, one per line. The lines are not shortened.
pub(crate) fn words(tasks: &[TaskView]) -> String {
    let rows: Vec<Vec<Cell>> = tasks.iter().map(row).collect();
    table(&rows, None)
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
    let forked = task.forked_from.as_ref().map_or_else(String::new, |from| format!("fork of {from}"));
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
        Cell::new(DIM, &forked),
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
task-aaaa  1970-01-01 00:00:00  answered                                                                                                                (removed to make room)
task-bbbb  1970-01-01 00:00:00  limited      stopped by maxTokensPerTask                     2 agents  15 calls, 24000 + 405 tokens                     red <U+001B>[31m<U+0007> and more
task-cccc  1970-01-01 00:00:00  awaits_user                               1 question to you  1 agent   15 calls, 24000 + 405 tokens  fork of task-aaaa  看看这张图片
task-4x2k  1970-01-01 00:00:00  open                                                         2 agents  15 calls, 24000 + 405 tokens                     看看这张图片
"#);
    }

    #[test]
    fn active_tasks_come_first_and_finished_ones_are_counted() {
        // The list begins with two finished tasks. One of the two active tasks waits for an answer of the user.
        let all = tasks();
        let check = |tasks: &[TaskView], finished, expect: &[&str]| {
            let listed = without_styles(&listed(tasks, finished, None));
            let lines: Vec<&str> = listed.lines().map(|line| line.split("  ").next().unwrap()).collect();
            assert_eq!(lines, expect);
        };
        let two = "2 finished tasks are not shown; --all lists them";
        check(&all, Finished::Counted, &["task-cccc", "task-4x2k", two]);
        check(&all, Finished::Listed, &["task-cccc", "task-4x2k", "task-aaaa", "task-bbbb"]);
        let one = "1 finished task is not shown; --all lists it";
        check(&all[1..3], Finished::Counted, &["task-cccc", one]);
        check(&all[2..], Finished::Counted, &["task-cccc", "task-4x2k"]);
        check(&all[..2], Finished::Counted, &["task-aaaa", "task-bbbb"]);
    }
}
