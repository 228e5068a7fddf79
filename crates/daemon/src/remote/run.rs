//! The client side of `polity run`: begins a task or continues unfinished ones, prints what happens until nothing is left
//! to do, and returns the exit code.

use super::conversation::{Telling, unshown};
use super::send::stored;
use crate::cli::RunArguments;
use crate::failure::Failure;
use crate::output::Output;
use polity_client::{Client, IdempotencyKey, NewMessage, Scope, SteerAction};
use polity_society::id::{AgentId, TaskId};
use polity_view::{AgentState, Entry, EventFilter, MAX_PAGE, TaskFilter, TaskState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokio::sync::watch;
use tokio::time::Instant;

/// The other tasks of the data directory: those that this run did not begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// The daemon works on them, for other clients. This run prints only its own task.
    OfTheDaemon,
    /// This process continues them. The run prints their messages too, and ends when all of them are over.
    OfThisProcess,
}

/// One run.
pub(crate) struct Run<'a> {
    pub(crate) client: &'a Client,
    pub(crate) output: &'a Output,
    pub(crate) arguments: &'a RunArguments,
    pub(crate) data: &'a Path,
    pub(crate) others: Others,
    /// The events after this number are printed.
    pub(crate) since: i64,
}

/// The tasks that a run prints.
struct Begun {
    /// The outcome of the last one becomes the exit code.
    tasks: Vec<TaskId>,
    /// The number of tasks that may still have something to print.
    talking: usize,
}

impl Run<'_> {
    /// Begins and prints; returns the exit code. `tell` gets the task whose outcome becomes the code. However early the
    /// deadline is, the task is begun.
    pub(crate) async fn work(
        self,
        text: Option<String>,
        deadline: Option<Instant>,
        tell: &watch::Sender<Option<TaskId>>,
    ) -> Result<u8, Failure> {
        let begun = self.begin(text).await?;
        tell.send_replace(begun.tasks.last().cloned());
        tokio::select! {
            code = self.print(&begun) => code,
            () = passed(deadline) => Err(Failure::TimedOut),
        }
    }

    async fn begin(&self, text: Option<String>) -> Result<Begun, Failure> {
        let root = AgentId::root();
        let client = &self.client.waiting();
        if text.is_none() {
            client.steer(&root, SteerAction::Resume, Scope::Subtree).await?;
        }
        polity_points::point!("run::begun");
        let mut left = Vec::new();
        if text.is_none() || self.others == Others::OfThisProcess {
            left = open_tasks(client).await?;
        }
        let is_over = left.is_empty();
        if self.others == Others::OfThisProcess {
            // In this order: a task that ends in between is among both.
            let known: BTreeSet<TaskId> = left.iter().cloned().collect();
            let unshown: BTreeSet<TaskId> =
                unshown(client, None).await?.into_iter().map(|message| message.task).collect();
            left.splice(0..0, unshown.difference(&known).cloned());
        }
        let Some(text) = text else {
            let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
            let latest = client.tasks(&filter).await?.tasks.pop();
            let latest = latest.ok_or_else(|| Failure::NothingToResume(self.data.to_owned()))?;
            if is_over && latest.state == TaskState::Idle {
                self.output.nothing_left();
            }
            let talking = left.len();
            return Ok(Begun { tasks: with_last(left, latest.id), talking });
        };
        if client.agent(&root).await?.agent.state == AgentState::Paused {
            return Err(Failure::RootPaused(match self.others {
                Others::OfTheDaemon => "polity resume root",
                Others::OfThisProcess => "polity run --resume",
            }));
        }
        let letter = NewMessage {
            to: root,
            text,
            attachments: stored(self.client, &self.arguments.attach).await?,
            task: None,
            service: self.arguments.service.clone(),
            key: IdempotencyKey::mint(),
        };
        let task = self.client.send(&letter).await?.task;
        let tasks = with_last(left, task);
        Ok(Begun { talking: tasks.len(), tasks })
    }

    /// Prints what happens in the tasks until nothing is left to do in them; returns the exit code of the last.
    async fn print(&self, begun: &Begun) -> Result<u8, Failure> {
        let tasks = begun.tasks.as_slice();
        let client = &self.client.waiting();
        let titles = if begun.talking > 1 { titles(client, tasks).await? } else { BTreeMap::new() };
        let mut telling = Telling::new(client, tasks, self.output.form()).with_titles(titles);
        telling.show_unshown(self.since).await?;
        let filter = match tasks {
            [task] => EventFilter { task: Some(task.clone()), ..EventFilter::default() },
            _ => EventFilter::default(),
        };
        let show_event = |entry: &Entry| match entry.event.task() {
            Some(task) if !tasks.contains(task) => Ok(()),
            // An event that belongs to no task concerns every task.
            Some(_) | None => self.output.event(entry),
        };
        let outcome = match telling.outcome().await? {
            // The stream of events does not tell that these tasks ended: they had ended before it began.
            Some(outcome) if self.arguments.resume => {
                telling.catch_up(self.since, &filter, show_event).await?;
                outcome
            }
            Some(_) | None => telling.follow(self.since, filter, show_event).await?,
        };
        polity_points::point!("run::idle");
        telling.tell_outcome(outcome).await
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Fetches the titles of tasks.
async fn titles(client: &Client, tasks: &[TaskId]) -> Result<BTreeMap<TaskId, String>, Failure> {
    let mut titles = BTreeMap::new();
    for task in tasks {
        titles.insert(task.clone(), client.task(task).await?.title);
    }
    Ok(titles)
}

/// Fetches the tasks in which something is left to do, oldest first.
async fn open_tasks(client: &Client) -> Result<Vec<TaskId>, Failure> {
    let mut filter =
        TaskFilter { state: Some(TaskState::Open), limit: Some(MAX_PAGE), ..TaskFilter::default() };
    let mut open = Vec::new();
    loop {
        let page = client.tasks(&filter).await?;
        open.extend(page.tasks.into_iter().map(|task| task.id));
        if page.next.is_none() {
            open.reverse();
            return Ok(open);
        }
        filter.after = page.next;
    }
}

/// Moves a task to the end of a list, or adds it there.
fn with_last(mut tasks: Vec<TaskId>, last: TaskId) -> Vec<TaskId> {
    tasks.retain(|task| *task != last);
    tasks.push(last);
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_task_is_the_last() {
        let check = |open: &[&str], expect: &[&str]| {
            let open = open.iter().map(|task| TaskId::new(*task)).collect();
            let tasks = with_last(open, TaskId::new("c"));
            assert_eq!(tasks.iter().map(TaskId::as_str).collect::<Vec<_>>(), expect);
        };
        check(&[], &["c"]);
        check(&["c"], &["c"]);
        check(&["a", "b", "c"], &["a", "b", "c"]);
        check(&["c", "a", "b"], &["a", "b", "c"]);
    }
}
