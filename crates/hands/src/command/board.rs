//! The list of background commands that are running.

use super::live::Owner;
use crate::call::Source;
use polity_sandbox::Viewer;
use polity_society::id::{AgentId, CommandId, TaskId};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of background commands that run in a task at the same time.
const MOST: usize = 16;

/// What happens when a background command has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aftermath {
    /// The agent gets a notice.
    Tell,
    /// The agent gets no notice, because the agent itself ended the command, or the agent no longer works.
    Quiet,
    /// Polity itself ends, so the end of the command is not written into the note on disk. The next start reports the
    /// command as interrupted.
    Interrupted,
}

/// A running background command.
#[derive(Clone, Debug)]
pub(super) struct Posted {
    pub(super) owner: Owner,
    /// The outside sources from which the output may come.
    pub(super) sources: BTreeSet<Source>,
    pub(super) begun: Instant,
    /// Gives access to the output. `None` as long as the command has not started.
    pub(super) viewer: Option<Viewer>,
    /// Cancelling this ends the command.
    pub(super) cancel: CancellationToken,
    /// Cancelled after the command has ended. Before that, polity tries to write the end into the note, unless polity
    /// itself ends.
    pub(super) over: CancellationToken,
    /// Number of output bytes that the agent has seen.
    pub(super) seen: u64,
    pub(super) aftermath: Aftermath,
}

/// The running background commands, by id.
#[derive(Debug, Default)]
pub(super) struct Board(Mutex<HashMap<CommandId, Posted>>);

/// The task already has the maximum number of background commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{MOST} background commands of this task are running; end one with bash_stop")]
pub(super) struct Full;

impl Board {
    /// Adds a command that is about to start, or returns an error if its task already has [`MOST`] commands.
    pub(super) fn post(
        &self,
        id: CommandId,
        owner: Owner,
        sources: BTreeSet<Source>,
        cancel: CancellationToken,
    ) -> Result<(), Full> {
        let mut board = self.lock();
        if board.values().filter(|posted| posted.owner.task == owner.task).count() >= MOST {
            return Err(Full);
        }
        let posted = Posted {
            owner,
            sources,
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

    /// Sets the viewer through which `bash_output` reads the output of a command.
    pub(super) fn show(&self, id: &CommandId, viewer: Viewer) {
        if let Some(posted) = self.lock().get_mut(id) {
            posted.viewer = Some(viewer);
        }
    }

    pub(super) fn get(&self, id: &CommandId) -> Option<Posted> {
        self.lock().get(id).cloned()
    }

    /// Records how many output bytes the agent has seen. A smaller number than before has no effect.
    pub(super) fn saw(&self, id: &CommandId, seen: u64) {
        if let Some(posted) = self.lock().get_mut(id) {
            posted.seen = posted.seen.max(seen);
        }
    }

    /// Ends the commands that `is_meant` selects, and sets the `aftermath` of each. Returns the `over` token of each
    /// command. With these tokens, the caller can wait until the commands have ended.
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

    /// Wakes all callers that wait for the end of a command. The note must already say how the command ended.
    pub(super) fn end(&self, id: &CommandId) {
        if let Some(posted) = self.lock().get(id) {
            posted.over.cancel();
        }
    }

    /// Removes a command, and wakes all callers that wait for its end.
    pub(super) fn remove(&self, id: &CommandId) {
        if let Some(posted) = self.lock().remove(id) {
            posted.over.cancel();
        }
    }

    /// Returns the ids of the commands that `is_meant` selects, sorted.
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
