//! The list of all running commands, and what the commands of each task have used. If the running commands of a task
//! together exceed a limit, polity ends one of them. If all commands of a task together have used up a sum, polity ends
//! all that still run.

use super::excerpt::last_lines;
use super::running::RunningCommand;
use super::spent::Spent;
use super::sums::{heaviest, time_left, used_up};
use crate::call::Caller;
use polity_sandbox::TaskLimits;
use polity_sandbox::{How, Viewer};
use polity_society::command::{CommandEnd, CommandLimit};
use polity_society::id::{AgentId, CommandId, TaskId};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio_util::sync::CancellationToken;

/// The agent that runs a command, and the task for which the agent runs the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) agent: AgentId,
    pub(super) task: TaskId,
}

impl Owner {
    pub(super) fn of(caller: &Caller) -> Self {
        Self { agent: caller.agent.clone(), task: caller.task.clone() }
    }
}

/// What a person is told of a command besides its output and its usage.
#[derive(Clone, Debug)]
pub(super) struct Label {
    /// The id of a background command; `None` for a command in the foreground.
    pub(super) id: Option<CommandId>,
    pub(super) command: String,
    pub(super) since: SystemTime,
}

/// The running commands, in the foreground and in the background.
#[derive(Default)]
pub(super) struct Live(Mutex<Table>);

#[derive(Default)]
struct Table {
    next: u64,
    entries: BTreeMap<u64, Entry>,
    /// What the ended commands of each task have used: those that are no longer in `entries`.
    spent: HashMap<TaskId, Spent>,
}

struct Entry {
    owner: Owner,
    label: Label,
    begun: Instant,
    viewer: Viewer,
    cancel: CancellationToken,
    /// [`Live::weigh`] ends a command if its task exceeds a limit. This is that limit; `None` if `weigh` has not ended
    /// this command.
    exceeded: Option<CommandLimit>,
}

/// The entry of one command in [`Live`]. Dropping this value removes the entry.
pub(super) struct Seat {
    live: Arc<Live>,
    number: u64,
}

impl Live {
    /// Adds a running command. Cancelling `cancel` must end the command.
    pub(super) fn seat(
        self: &Arc<Self>,
        owner: Owner,
        label: Label,
        viewer: Viewer,
        cancel: CancellationToken,
    ) -> Seat {
        let mut table = self.table();
        let number = table.next;
        table.next += 1;
        let begun = Instant::now();
        table.entries.insert(number, Entry { owner, label, begun, viewer, cancel, exceeded: None });
        Seat { live: Arc::clone(self), number }
    }

    /// Returns whether it is known what the ended commands of a task have used.
    pub(super) fn knows(&self, task: &TaskId) -> bool {
        self.table().spent.contains_key(task)
    }

    /// Sets what the ended commands of a task have used, unless it is known already.
    pub(super) fn learn(&self, task: &TaskId, spent: Spent) {
        self.table().spent.entry(task.clone()).or_insert(spent);
    }

    /// Forgets what the commands of a task have used.
    pub(super) fn forget(&self, task: &TaskId) {
        self.table().spent.remove(task);
    }

    /// Returns what the commands of a task have used, those that are running included.
    pub(super) fn spent(&self, task: &TaskId) -> Spent {
        self.table().spent(task)
    }

    /// Returns how long the running commands of a task can run before they have used up the time of the task. Commands
    /// that [`Self::weigh`] has ended do not count. Returns `None` if no other command of the task runs.
    pub(super) fn time_left(&self, task: &TaskId, limits: &TaskLimits) -> Option<Duration> {
        let table = self.table();
        let is_running = |entry: &&Entry| entry.owner.task == *task && entry.exceeded.is_none();
        let running = table.entries.values().filter(is_running).count() as u64;
        (running > 0).then(|| time_left(limits, &table.spent(task), running))
    }

    /// Ends commands if the commands of a task exceed a limit of the task. If the running commands together use too
    /// much of a resource, ends the command that uses most of it. If all commands together have used up a sum over the
    /// whole task, ends all commands.
    pub(super) fn weigh(&self, task: &TaskId, limits: &TaskLimits) {
        let mut table = self.table();
        let used_up = used_up(limits, &table.spent(task));
        // Some commands may still run although `weigh` has already cancelled them. They do not count, because they will
        // soon free their memory and processes.
        let entries = table.entries.values_mut();
        let mut of_task: Vec<&mut Entry> =
            entries.filter(|entry| entry.owner.task == *task && entry.exceeded.is_none()).collect();
        if let Some(limit) = used_up {
            of_task.into_iter().for_each(|entry| entry.end(limit));
            return;
        }
        let usages: Vec<_> = of_task.iter().map(|entry| entry.viewer.usage()).collect();
        if let Some((index, limit)) = heaviest(limits, &usages)
            && let Some(entry) = of_task.get_mut(index)
        {
            entry.end(limit);
        }
    }

    /// Ends the commands whose owner `is_meant` selects.
    pub(super) fn cancel(&self, is_meant: impl Fn(&Owner) -> bool) {
        let table = self.table();
        table.entries.values().filter(|entry| is_meant(&entry.owner)).for_each(|entry| entry.cancel.cancel());
    }

    /// Returns the commands of all owners for which `is_meant` returns true, the oldest first.
    pub(super) fn running(&self, is_meant: impl Fn(&Owner) -> bool) -> Vec<RunningCommand> {
        let table = self.table();
        let meant = table.entries.values().filter(|entry| is_meant(&entry.owner));
        let meant: Vec<(Owner, Label, Viewer)> =
            meant.map(|entry| (entry.owner.clone(), entry.label.clone(), entry.viewer.clone())).collect();
        // Release the lock before the outputs are copied, so that commands can begin and end in the meantime.
        drop(table);
        let shown = |(owner, label, viewer): (Owner, Label, Viewer)| {
            let (Owner { agent, task }, Label { id, command, since }) = (owner, label);
            let output = viewer.output();
            RunningCommand {
                agent,
                task,
                id,
                command,
                since,
                last_lines: last_lines(&output),
                output_bytes: output.total_bytes,
                usage: viewer.usage(),
            }
        };
        meant.into_iter().map(shown).collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns what the commands of a task have used, those that are running included.
    fn spent(&self, task: &TaskId) -> Spent {
        let running = self.entries.values().filter(|entry| entry.owner.task == *task).map(Entry::spent);
        running.fold(self.spent.get(task).copied().unwrap_or_default(), Spent::plus)
    }
}

impl Entry {
    /// Returns what the command has used so far.
    fn spent(&self) -> Spent {
        let time_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Spent { time_ms, output_bytes: self.viewer.output_bytes() }
    }

    /// Ends the command because of a limit of its task.
    fn end(&mut self, limit: CommandLimit) {
        self.exceeded = Some(limit);
        self.cancel.cancel();
    }
}

impl Seat {
    /// If [`Live::weigh`] has ended this command, returns the limit that the task had exceeded.
    pub(super) fn exceeded(&self) -> Option<CommandLimit> {
        self.live.table().entries.get(&self.number).and_then(|entry| entry.exceeded)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut table = self.live.table();
        if let Some(entry) = table.entries.remove(&self.number) {
            let of_task = table.spent.entry(entry.owner.task.clone()).or_default();
            *of_task = of_task.plus(entry.spent());
        }
    }
}

/// Returns how a command ended. If [`Live::weigh`] ended the command, `exceeded` is the limit that the task had
/// exceeded.
pub(super) fn end_of(how: How, exceeded: Option<CommandLimit>) -> CommandEnd {
    let limited = |limit| CommandEnd::Limited { limit };
    match how {
        How::Exited(code) => CommandEnd::Exited { code },
        How::TimedOut => limited(CommandLimit::Time),
        How::OutOfMemory => limited(CommandLimit::Memory),
        How::TogetherOutOfMemory => limited(CommandLimit::TaskMemory),
        How::TooManyProcesses => limited(CommandLimit::Processes),
        How::TooMuchOutput => limited(CommandLimit::Output),
        How::TooMuchDisk => limited(CommandLimit::Disk),
        How::Cancelled => exceeded.map_or(CommandEnd::Stopped, limited),
        How::Lost => CommandEnd::Lost,
    }
}
