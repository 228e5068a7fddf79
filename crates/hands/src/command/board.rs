//! The background commands that run now.

use super::live::Owner;
use polity_sandbox::Viewer;
use polity_society::id::{AgentId, CommandId, TaskId};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of background commands that run in a task at the same time.
const MOST: usize = 16;

/// What follows the end of a background command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aftermath {
    /// Its agent is told.
    Tell,
    /// Nobody is told: the agent has ended the command itself, or does not work any more.
    Quiet,
    /// polity ends. The next start reports the command as interrupted.
    Interrupted,
}

/// A background command that runs.
#[derive(Clone, Debug)]
pub(super) struct Posted {
    pub(super) owner: Owner,
    pub(super) begun: Instant,
    /// Absent until the command has started.
    pub(super) viewer: Option<Viewer>,
    /// Ends the command.
    pub(super) cancel: CancellationToken,
    /// Cancelled when the command is gone and its note says how it ended.
    pub(super) over: CancellationToken,
    /// Bytes of the output that the agent has seen.
    pub(super) seen: u64,
    pub(super) aftermath: Aftermath,
}

/// The background commands that run now.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<HashMap<CommandId, Posted>>);

/// The task has as many background commands as it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MOST} background commands of this task are running; end one with bash_stop")]
pub(super) struct Full;

impl Board {
    /// Adds a command that is about to start.
    pub(super) fn post(&self, id: CommandId, owner: Owner, cancel: CancellationToken) -> Result<(), Full> {
        let mut board = self.lock();
        if board.values().filter(|posted| posted.owner.task == owner.task).count() >= MOST {
            return Err(Full);
        }
        let posted = Posted {
            owner,
            begun: Instant::now(),
            viewer: None,
            cancel,
            over: CancellationToken::new(),
            seen: 0,
            aftermath: Aftermath::Tell,
        };
        board.insert(id, posted);
        Ok(())
    }

    /// Sets the viewer of the output of a command.
    pub(super) fn show(&self, id: &CommandId, viewer: Viewer) {
        if let Some(posted) = self.lock().get_mut(id) {
            posted.viewer = Some(viewer);
        }
    }

    /// Returns a command that runs.
    pub(super) fn get(&self, id: &CommandId) -> Option<Posted> {
        self.lock().get(id).cloned()
    }

    /// Notes how much of the output the agent has seen.
    pub(super) fn saw(&self, id: &CommandId, seen: u64) {
        if let Some(posted) = self.lock().get_mut(id) {
            posted.seen = posted.seen.max(seen);
        }
    }

    /// Ends the commands that `is_meant` selects, and sets what follows. Returns their `over` tokens, to wait for.
    pub(super) fn stop(
        &self,
        is_meant: impl Fn(&CommandId, &Owner) -> bool,
        aftermath: Aftermath,
    ) -> Vec<CancellationToken> {
        let mut board = self.lock();
        let meant = board.iter_mut().filter(|(id, posted)| is_meant(id, &posted.owner));
        let stop = |(_, posted): (&CommandId, &mut Posted)| {
            posted.aftermath = aftermath;
            posted.cancel.cancel();
            posted.over.clone()
        };
        meant.map(stop).collect()
    }

    /// Wakes everybody who waits for the end of a command. Its note must already say how it ended.
    pub(super) fn end(&self, id: &CommandId) {
        if let Some(posted) = self.lock().get(id) {
            posted.over.cancel();
        }
    }

    /// Removes a command, and wakes everybody who waits for its end.
    pub(super) fn remove(&self, id: &CommandId) {
        if let Some(posted) = self.lock().remove(id) {
            posted.over.cancel();
        }
    }

    /// Returns the ids of the commands that `is_meant` selects, in order.
    pub(super) fn ids(&self, is_meant: impl Fn(&Owner) -> bool) -> Vec<CommandId> {
        let board = self.lock();
        let meant = board.iter().filter(|(_, posted)| is_meant(&posted.owner));
        let mut ids: Vec<CommandId> = meant.map(|(id, _)| id.clone()).collect();
        ids.sort();
        ids
    }

    /// Returns the tasks in which an agent has commands.
    pub(super) fn tasks(&self, agent: &AgentId) -> BTreeSet<TaskId> {
        let board = self.lock();
        let own = board.values().filter(|posted| posted.owner.agent == *agent);
        own.map(|posted| posted.owner.task.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CommandId, Posted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
