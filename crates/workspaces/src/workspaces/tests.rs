//! Tests with real git, in temporary directories.

mod forking;
mod hiring;
mod hostile;
mod merging;
mod person;
mod properties;
mod reading;
mod settling;

use super::{Opened, Settled, Unmerged, Wanted, Workspaces};
use crate::git::{Found, Git};
use crate::settle::Unfinished;
use futures::FutureExt;
use polity_society::id::{AgentId, TaskId, TurnId};
use polity_society::refusal::Refusal;
use polity_society::workspace::{Access, Caller, Place, Root};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A temporary directory with the workspaces of a task and a directory of the person.
pub(super) struct World {
    home: TempDir,
    pub(super) all: Workspaces,
    pub(super) root: Root,
}

pub(super) fn task() -> TaskId {
    TaskId::new("t-1")
}

impl World {
    /// Makes a world in which the task has its own workspace. If git is missing or too old, prints a message and
    /// returns `None`.
    pub(super) async fn made() -> Option<Self> {
        let Found::Usable(_) = Git::find().await else {
            println!("this test needs git 2.38 or newer, which this machine lacks");
            return None;
        };
        let home = tempfile::tempdir().unwrap();
        let all = Workspaces::new(home.path().join("workspaces"));
        Some(Self { home, all, root: Root::Made })
    }

    /// Makes a world in which the task works in a directory of the person: a repository with one commit.
    pub(super) async fn of_person(files: &[(&str, &str)]) -> Option<Self> {
        let mut world = Self::made().await?;
        let directory = world.person();
        fs::create_dir_all(&directory).unwrap();
        world.root = Root::Person { directory: directory.clone(), access: Access::Write };
        git(&directory, &["init", "-q", "-b", "trunk"]);
        git(&directory, &["config", "user.name", "Person"]);
        git(&directory, &["config", "user.email", "person@example.org"]);
        for (path, text) in files {
            write(&directory, path, text);
        }
        git(&directory, &["add", "-A"]);
        git(&directory, &["commit", "-q", "--allow-empty", "-m", "First"]);
        Some(world)
    }

    pub(super) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(super) fn person(&self) -> PathBuf {
        self.home.path().join("person's project")
    }

    pub(super) fn task_directory(&self) -> PathBuf {
        self.home.path().join("workspaces/t-1")
    }

    /// Simulates a restart of the daemon after a crash.
    pub(super) fn restart(&mut self) {
        self.all = Workspaces::new(self.home.path().join("workspaces"));
    }

    /// Returns a caller that works in the shared workspace.
    pub(super) fn shared(&self, agent: &str) -> Caller {
        self.caller(agent, None)
    }

    /// Returns a caller that works in its own worktree.
    pub(super) fn own(&self, agent: &str) -> Caller {
        self.caller(agent, Some(agent))
    }

    pub(super) fn caller(&self, agent: &str, worktree: Option<&str>) -> Caller {
        let place = Place { root: self.root.clone(), worktree: worktree.map(AgentId::new) };
        Caller { agent: AgentId::new(agent), task: task(), role: format!("Role of {agent}"), place }
    }

    pub(super) async fn open(&self, caller: &Caller) -> Opened {
        self.all.directory(&task(), &caller.place, &CancellationToken::new()).await.unwrap()
    }

    pub(super) async fn hire(&self, hirer: &Caller, agent: &str) -> PathBuf {
        self.try_hire(hirer, agent).await.unwrap().directory
    }

    pub(super) async fn try_hire(&self, hirer: &Caller, agent: &str) -> Result<Opened, Refusal> {
        self.all.hire(hirer, &AgentId::new(agent), &CancellationToken::new()).await
    }

    pub(super) async fn can_hire(&self, hirer: &Caller) -> Result<(), Refusal> {
        self.all.can_hire(hirer, &CancellationToken::new()).await
    }

    pub(super) async fn settle(&self, caller: &Caller, turn: i64) -> Settled {
        self.settle_beside(caller, turn, &[]).await
    }

    /// Ends a turn while other agents are writing these paths.
    pub(super) async fn settle_beside(&self, caller: &Caller, turn: i64, paths: &[&str]) -> Settled {
        let (turn, others) = (TurnId::new(turn), writing(paths));
        self.all.settle(caller, turn, &*others, &CancellationToken::new()).await.unwrap()
    }

    pub(super) async fn merge(&self, caller: &Caller, from: &str) -> Result<super::Merged, Refusal> {
        self.merge_wanted(caller, from, Wanted::Present).await
    }

    pub(super) async fn merge_wanted(
        &self,
        caller: &Caller,
        from: &str,
        wanted: Wanted<'_>,
    ) -> Result<super::Merged, Refusal> {
        self.all.merge(caller, &AgentId::new(from), wanted, &CancellationToken::new()).await
    }

    /// Returns what a merge into the workspace of the caller would bring.
    pub(super) async fn unmerged(&self, caller: &Caller, from: &str) -> Option<Unmerged> {
        self.all.unmerged(caller, &AgentId::new(from), &CancellationToken::new()).await.unwrap()
    }

    /// Runs git in the repository of the task.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        git(&self.task_directory().join("git"), arguments)
    }

    /// Returns author and subject of each commit of a branch, the latest first.
    pub(super) fn log(&self, branch: &str) -> Vec<String> {
        let log = self.git(&["log", "--first-parent", "--format=%an: %s", branch]);
        log.lines().map(str::to_owned).collect()
    }
}

/// Answers that other agents are writing these paths.
pub(super) fn writing(paths: &[&str]) -> Box<Unfinished> {
    let paths: HashSet<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    Box::new(move || std::future::ready(Ok(paths.clone())).boxed())
}

/// Runs git as the person does, but without the git configuration of this machine.
pub(super) fn git(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(super) fn write(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

pub(super) fn read(directory: &Path, path: &str) -> String {
    fs::read_to_string(directory.join(path)).unwrap()
}

pub(super) fn reason(refused: Result<impl std::fmt::Debug, Refusal>) -> String {
    match refused.unwrap_err() {
        Refusal::WorkspaceRefused { reason } | Refusal::ToolFailed { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Returns the paths and kinds of the conflicts in the refusal of a merge.
pub(super) fn conflicts(refused: &Result<super::Merged, Refusal>) -> Vec<(String, String)> {
    let Err(Refusal::MergeConflict { conflicts, .. }) = refused else { panic!("{refused:?}") };
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    conflicts.as_array().unwrap().iter().map(|one| (text(&one["path"]), text(&one["kind"]))).collect()
}

/// Returns the paths and contents of all files of a directory, except git's own.
pub(super) fn files(directory: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(place) = waiting.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if entry.file_name() == ".git" {
                continue;
            }
            let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
            let kind = entry.file_type().unwrap();
            if kind.is_symlink() {
                found.push((name, format!("-> {}", fs::read_link(&path).unwrap().display())));
            } else if kind.is_dir() {
                waiting.push(path);
            } else {
                found.push((name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()));
            }
        }
    }
    found.sort();
    found
}
