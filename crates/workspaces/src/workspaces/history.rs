//! What the person can see of a task's history: the commits in each workspace, and the changes of each commit.

use super::reading::with_patches;
use super::{Commit, FileDiff, Locked, SHARED, Workspaces, segment};
use crate::git::Found;
use crate::problem::Problem;
use crate::repository::Repository;
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_society::workspace::{Access, Place, Root};
use std::cmp::Reverse;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Maximum number of commits in a history.
const COMMITS: usize = 500;

/// Maximum number of bytes of all diffs of a commit. The diffs of further files are left out.
const PATCHES_BYTES: usize = 1 << 20;

/// Which changes git records in the workspaces of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Each turn that changes a file ends with a commit.
    Turns,
    /// Only the worktrees of agents are recorded. The shared workspace is a directory of the person, where polity
    /// never commits.
    Worktrees,
    /// Nothing is recorded, because git is missing or too old.
    Nothing,
}

/// A commit, and the workspace in which it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorktreeCommit {
    /// The owner of the worktree; `None` for the workspace that the agents of the task share.
    pub worktree: Option<AgentId>,
    /// The author, message, time and files.
    pub commit: Commit,
}

/// The history of the workspaces of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// Which changes git records.
    pub recording: Recording,
    /// The agents that have a worktree or had a worktree earlier.
    pub worktrees: Vec<AgentId>,
    /// The latest 500 commits of all workspaces together, or all commits if there are fewer. The latest commit is
    /// first.
    pub commits: Vec<WorktreeCommit>,
}

impl Workspaces {
    /// Returns the directory of a workspace, and whether agents may change it. Returns `None` if the directory does
    /// not exist. Changes nothing.
    pub fn present(&self, task: &TaskId, place: &Place) -> Result<Option<(PathBuf, Access)>, Refusal> {
        let task = self.root.join(segment(task.as_str())?);
        let (directory, access) = match (&place.worktree, &place.root) {
            (Some(agent), _) => (task.join(segment(agent.as_str())?), Access::Write),
            (None, Root::Made) => (task.join(SHARED), Access::Write),
            (None, Root::Person { directory, access }) => (directory.clone(), *access),
        };
        Ok(directory.is_dir().then_some((directory, access)))
    }

    /// Returns the history of all workspaces of a task. Changes nothing.
    pub async fn history(
        &self,
        task: &TaskId,
        root: &Root,
        cancel: &CancellationToken,
    ) -> Result<History, Refusal> {
        Ok(self.hold(task, cancel).await?.history(root).await?)
    }

    /// Returns the changes of a commit, or `None` if the repository of the task has no such commit. `commit` is the
    /// whole hash. Changes nothing.
    pub async fn patch(
        &self,
        task: &TaskId,
        commit: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<Vec<FileDiff>>, Refusal> {
        Ok(self.hold(task, cancel).await?.patch(commit).await?)
    }
}

impl Locked<'_> {
    /// Returns the repository of the task, if it exists.
    pub(super) async fn present_repository(&self) -> Option<Repository> {
        let directory = self.task.join("git");
        match self.all.found().await {
            Found::Usable(git) if directory.is_dir() => Some(Repository::at(git, directory, &self.cancel)),
            Found::Usable(_) | Found::Missing | Found::TooOld(_) => None,
        }
    }

    async fn history(&self, root: &Root) -> Result<History, Problem> {
        let recording = match (self.all.found().await, root) {
            (Found::Missing | Found::TooOld(_), _) => Recording::Nothing,
            (Found::Usable(_), Root::Made) => Recording::Turns,
            (Found::Usable(_), Root::Person { .. }) => Recording::Worktrees,
        };
        let mut history = History { recording, worktrees: Vec::new(), commits: Vec::new() };
        let Some(repository) = self.present_repository().await else { return Ok(history) };
        history.worktrees = repository.branches().await?.into_iter().map(AgentId::new).collect();
        let own = history.worktrees.iter().cloned().map(Some);
        for worktree in [None].into_iter().chain(own) {
            let place = Place { root: root.clone(), worktree: worktree.clone() };
            let commits = self.log(&place).await?.into_iter();
            history
                .commits
                .extend(commits.map(|commit| WorktreeCommit { worktree: worktree.clone(), commit }));
        }
        // The sort is stable, so commits of the same second keep their order.
        history.commits.sort_by_key(|found| Reverse(found.commit.time));
        history.commits.truncate(COMMITS);
        Ok(history)
    }

    async fn patch(&self, commit: &str) -> Result<Option<Vec<FileDiff>>, Problem> {
        let is_whole = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(repository) = self.present_repository().await.filter(|_| is_whole) else { return Ok(None) };
        let Some(commit) = repository.tip(commit).await? else { return Ok(None) };
        let before = repository.before(&commit).await?;
        let changes = repository.changes(&before, &commit).await?;
        let mut files = with_patches(&changes, &repository.patches(&before, &commit).await?);
        let mut left = PATCHES_BYTES;
        for file in &mut files {
            match left.checked_sub(file.patch.len()) {
                Some(rest) => left = rest,
                None => file.patch = "…".to_owned(),
            }
        }
        Ok(Some(files))
    }
}
