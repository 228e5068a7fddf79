//! The client side of `polity run`: begins a task or continues unfinished ones, prints what happens until nothing is
//! left to do, and returns the exit code.

use super::approvals::terminal::Answerable;
use super::conversation::{Resumable, Telling, asking_tasks, unshown};
use super::finished::open_tasks;
use super::send::{post, root_is_paused};
use crate::failure::Failure;
use crate::output::{Form, Output, complain, one_line};
use crate::values::{duration, service, workspace};
use clap::Args;
use polity_client::{Client, IdempotencyKey, NewMessage, Scope, SteerAction};
use polity_society::id::ServiceId;
use polity_society::id::{AgentId, TaskId};
use polity_view::{AgentFilter, Entry, Event, EventFilter, Outcome, TaskFilter, TaskState, TaskView};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum number of tasks that are named when a run begins.
const NAMED: usize = 3;
/// Maximum length of the title of such a task, in characters.
const TITLE_CHARS: usize = 60;

/// `polity run`
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The prompt: what you want done; `-` reads it from standard input.
    #[arg(value_name = "PROMPT", required_unless_present = "resume")]
    pub(crate) prompt: Option<String>,

    /// Continue all unfinished work, also after a crash, ask all open questions again, and try again if no model could
    /// be used for the latest task.
    #[arg(long, conflicts_with_all = ["prompt", "attach", "service", "workspace"])]
    pub(crate) resume: bool,

    /// A file to attach to the prompt; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// The directory in which the agents work on files and run commands; `:ro` at the end of its path makes the
    /// directory read-only [default: a new directory].
    #[arg(long, value_name = "DIR", value_parser = workspace)]
    pub(crate) workspace: Option<String>,

    /// The service that the root agent uses for this prompt.
    #[arg(long, value_name = "ID", value_parser = service)]
    pub(crate) service: Option<ServiceId>,

    /// Where app.json and llmservices.json are [default: ./config if it has one of them and is not in the workspace, else
    /// `polity` in your user configuration directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Print one JSON object per line for everything that happens.
    #[arg(long)]
    pub(crate) json: bool,

    /// Stop after this long, such as 90s, 5m or 1h30m; the work can be resumed.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// The other tasks of the data directory: the tasks that this run did not begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    /// The daemon works on the other tasks, for other clients. This run prints only its own task.
    OfTheDaemon,
    /// This process continues the other tasks. The run prints their messages too, and ends when all of them are over.
    OfThisProcess,
}

/// One execution of `polity run`.
pub(crate) struct Run<'a> {
    pub(crate) client: &'a Client,
    pub(crate) output: &'a Output,
    pub(crate) arguments: &'a RunArguments,
    pub(crate) data: &'a Path,
    pub(crate) others: Others,
    /// The number of an event; only later events are printed.
    pub(crate) since: i64,
}

/// The tasks that a run prints.
struct Begun {
    /// The outcome of the last task becomes the exit code.
    tasks: Vec<TaskId>,
    /// Number of tasks of which something may still be printed. If there are several, each message is printed below
    /// the title of its task.
    talking: usize,
    /// The latest task, if this run was to resume work and found none.
    nothing_left: Option<TaskId>,
}

impl Run<'_> {
    /// Begins a task or continues the unfinished ones, prints what happens, and returns the exit code. `tell` gets the
    /// task whose outcome becomes the exit code. The deadline ends only the printing: a task is begun even if the
    /// deadline has passed.
    pub(crate) async fn work(
        self,
        text: Option<String>,
        deadline: Option<Instant>,
        tell: &watch::Sender<Option<TaskId>>,
    ) -> Result<u8, Failure> {
        let begun = self.begin(text).await?;
        if let Some(latest) = &begun.nothing_left {
            self.output.nothing_left(latest);
        }
        tell.send_replace(begun.tasks.last().cloned());
        tokio::select! {
            code = self.print(&begun) => code,
            () = passed(deadline) => Err(Failure::TimedOut),
        }
    }

    async fn begin(&self, text: Option<String>) -> Result<Begun, Failure> {
        let root = AgentId::root();
        let client = &self.client.waiting_aloud(complain);
        let mut trying = Vec::new();
        if text.is_none() {
            client.steer(&root, SteerAction::Resume, Scope::Subtree).await?;
            if let Some(latest) = latest_task(client).await? {
                trying = client.try_task(&latest.id).await?.agents;
            }
        }
        polity_points::point!("run::begun");
        let mut left = Vec::new();
        if text.is_none() || self.others == Others::OfThisProcess {
            left = open_tasks(client).await?;
        }
        let open = left.clone();
        let mut before = Vec::new();
        if text.is_none() {
            // A task in which only questions to the user are open is idle, so it is not among the open tasks.
            before.extend(asking_tasks(client).await?);
        }
        if self.others == Others::OfThisProcess {
            // Fetch the open tasks first and the unshown messages second. A task that ends between the two requests is
            // then found by its messages.
            before.extend(unshown(client, None).await?.into_iter().map(|message| message.task));
        }
        let mut known: BTreeSet<TaskId> = left.iter().cloned().collect();
        before.retain(|task| known.insert(task.clone()));
        left.splice(0..0, before);
        let Some(text) = text else {
            let latest = latest_task(client).await?;
            let latest = latest.ok_or_else(|| Failure::NothingToResume(self.data.to_owned()))?;
            // The last task may have ended before this command began. Then its answer may still be unprinted.
            let nothing_to_print = left.is_empty() && unshown(client, Some(&latest.id)).await?.is_empty();
            // If root tries again, it may have failed again by now, and another client may have shown the failure.
            let nothing_done = trying.is_empty() && open.is_empty() && latest.state == TaskState::Idle;
            let nothing_left = (nothing_done && nothing_to_print).then(|| latest.id.clone());
            let talking = left.len();
            return Ok(Begun { tasks: with_last(left, latest.id), talking, nothing_left });
        };
        if root_is_paused(client).await? {
            return Err(Failure::RootPaused(match self.others {
                Others::OfTheDaemon => "polity resume root",
                Others::OfThisProcess => "polity run --resume",
            }));
        }
        let letter = NewMessage {
            to: root,
            text,
            attachments: Vec::new(),
            task: None,
            service: self.arguments.service.clone(),
            workspace: self.arguments.workspace.clone(),
            key: IdempotencyKey::mint(),
        };
        let task = post(self.client, letter, &self.arguments.attach).await?.task;
        if self.output.form() == Form::Text && !open.is_empty() {
            let named = &open[..open.len().min(NAMED)];
            complain(&also_continued(named, &titles(client, named).await?, open.len() - named.len()));
        }
        let tasks = with_last(left, task);
        Ok(Begun { talking: tasks.len(), tasks, nothing_left: None })
    }

    /// Prints what happens in the tasks until nothing is left to do in them; returns the exit code of the last task.
    async fn print(&self, begun: &Begun) -> Result<u8, Failure> {
        let tasks = begun.tasks.as_slice();
        let client = &self.client.waiting_aloud(complain);
        let titles = if begun.talking > 1 { titles(client, tasks).await? } else { BTreeMap::new() };
        let mut telling =
            Telling::new(client, tasks, self.output.form()).with_titles(titles).asking(Answerable::now());
        telling.show_unshown(self.since).await?;
        let mut agents = BTreeSet::from([AgentId::root(), AgentId::user()]);
        for task in tasks {
            let filter =
                AgentFilter { task: Some(task.clone()), include_ended: true, ..AgentFilter::default() };
            agents.extend(client.all_agents(&filter).await?.agents.into_iter().map(|agent| agent.id));
        }
        let mut show_event = |entry: &Entry| {
            let event = &entry.event;
            let is_ours = match (event.task(), event.agent()) {
                (Some(task), _) => tasks.contains(task),
                (None, Some(agent)) => agents.contains(agent),
                // An event without a task and without an agent concerns every task.
                (None, None) => true,
            };
            if let (true, Event::AgentCreated { agent, .. }) = (is_ours, event) {
                agents.insert(agent.clone());
            }
            if is_ours { self.output.event(entry) } else { Ok(()) }
        };
        let filter = EventFilter::default();
        let outcome = match telling.outcome().await? {
            // All tasks ended before the event stream began, so the stream would never report their end.
            Some(outcome) if self.arguments.resume && !telling.has_questions().await? => {
                telling.catch_up(self.since, &filter, &mut show_event).await?;
                outcome
            }
            Some(_) | None => telling.follow(self.since, filter, show_event).await?,
        };
        polity_points::point!("run::idle");
        let resumable = match outcome {
            Outcome::NoModel => resumable(client, tasks.last()).await,
            Outcome::Answered | Outcome::AwaitsUser | Outcome::Unanswered | Outcome::Limited => Resumable::No,
        };
        telling.tell_outcome(outcome, resumable).await
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Fetches the task that was begun last.
async fn latest_task(client: &Client) -> Result<Option<TaskView>, Failure> {
    let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
    Ok(client.tasks(&filter).await?.tasks.pop())
}

/// Returns whether `polity run --resume` would let root try again in this task. It would not if another client has begun
/// a task since.
async fn resumable(client: &Client, task: Option<&TaskId>) -> Resumable {
    match latest_task(client).await {
        Ok(latest) if latest.as_ref().map(|latest| &latest.id) == task => Resumable::Yes,
        // The advice is left out if the daemon does not answer.
        Ok(_) | Err(_) => Resumable::No,
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

/// Says which tasks of earlier processes a run continues beside its own. `more` further tasks are not named.
fn also_continued(named: &[TaskId], titles: &BTreeMap<TaskId, String>, more: usize) -> String {
    let title = |task: &TaskId| one_line(titles.get(task).map_or("", String::as_str), TITLE_CHARS);
    let named: Vec<String> = named.iter().map(|task| format!("{task} ({})", title(task))).collect();
    match (&named[..], more) {
        ([task], 0) => format!("this run also continues an unfinished task: {task}"),
        (several, 0) => format!("this run also continues unfinished tasks: {}", several.join(", ")),
        (several, more) => {
            format!("this run also continues unfinished tasks: {} and {more} more", several.join(", "))
        }
    }
}

/// Adds a task at the end of the list. If the list already contains the task, moves it to the end.
fn with_last(mut tasks: Vec<TaskId>, last: TaskId) -> Vec<TaskId> {
    tasks.retain(|task| *task != last);
    tasks.push(last);
    tasks
}

#[cfg(test)]
mod tests {
    use super::super::examples::tasks;
    use super::*;
    use crate::output::Form;
    use axum::http::Uri;
    use axum::routing::{get, post};
    use axum::{Json, Router};
    use polity_view::{MessagePage, NowView, Steered, TaskPage};
    use std::future::ready;

    /// Returns the routes of a daemon whose only task is idle, because no model could be used in it. All its messages
    /// were shown. `trying` are the agents that try again.
    fn idle_without_model(trying: Vec<AgentId>) -> Router {
        let id = TaskId::new("t-1");
        let outcome = Some(Outcome::NoModel);
        let task = TaskView { id, state: TaskState::Idle, outcome, ..tasks()[0].clone() };
        let tasks = move |uri: Uri| {
            let wants_open = uri.query().is_some_and(|query| query.contains("state=open"));
            let tasks = if wants_open { Vec::new() } else { vec![task.clone()] };
            ready(Json(TaskPage { tasks, next: None }))
        };
        let now = || {
            ready(Json(NowView {
                at: 0,
                as_of: 0,
                running: true,
                working: Vec::new(),
                working_total: 0,
                at_work_total: 0,
                stuck: Vec::new(),
                stuck_total: 0,
            }))
        };
        Router::new()
            .route("/api/agents/root/resume", post(|| ready(Json(Steered { agents: Vec::new() }))))
            .route("/api/tasks", get(tasks))
            .route("/api/tasks/t-1/try", post(move || ready(Json(Steered { agents: trying.clone() }))))
            .route("/api/now", get(now))
            .route("/api/messages", get(|| ready(Json(MessagePage { messages: Vec::new(), next: None }))))
    }

    /// A server that refuses at once lets root fail again before the command looks at the task.
    #[tokio::test]
    async fn a_resumed_run_in_which_root_tries_again_has_something_to_do() {
        let check = async |trying: Vec<AgentId>, expect: Option<TaskId>| {
            let client = Client::in_process(idle_without_model(trying)).unwrap();
            let arguments = RunArguments {
                prompt: None,
                resume: true,
                attach: Vec::new(),
                service: None,
                workspace: None,
                config: None,
                data: None,
                json: false,
                timeout: None,
            };
            let run = Run {
                client: &client,
                output: &Output::new(Form::Text),
                arguments: &arguments,
                data: Path::new("data"),
                others: Others::OfTheDaemon,
                since: 0,
            };
            let begun = run.begin(None).await.unwrap();
            assert_eq!((begun.tasks, begun.nothing_left), (vec![TaskId::new("t-1")], expect));
        };
        check(Vec::new(), Some(TaskId::new("t-1"))).await;
        check(vec![AgentId::root()], None).await;
    }

    #[test]
    fn unfinished_tasks_of_earlier_processes_are_named() {
        let tasks = ["a", "b"].map(TaskId::new);
        let titles = BTreeMap::from([
            (tasks[0].clone(), "count the pages".to_owned()),
            (tasks[1].clone(), "read them".to_owned()),
        ]);
        let check = |count: usize, more, expect: &str| {
            assert_eq!(also_continued(&tasks[..count], &titles, more), expect);
        };
        check(1, 0, "this run also continues an unfinished task: a (count the pages)");
        check(2, 0, "this run also continues unfinished tasks: a (count the pages), b (read them)");
        let many = "this run also continues unfinished tasks: a (count the pages), b (read them) and 5 more";
        check(2, 5, many);
    }

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
