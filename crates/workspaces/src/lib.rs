//! Workspaces: in which directory an agent works, and what git keeps of its work.
//!
//! Below the root there is one directory per task:
//!
//! ```text
//! <task>/git/           the repository of the task, which agents cannot change
//! <task>/main/          the workspace that the task shares, unless it is a directory of the person
//! <task>/<agent>/       the worktree of an agent that has its own
//! <task>/journal.json   a merge that is being carried out
//! ```
//!
//! The path of a file: an agent changes it in its directory. At the end of the turn [`Workspaces::settle`] reads the
//! directory (`walk`, `snapshot`) and commits on the agent's branch. [`Workspaces::merge`] merges two commits inside the
//! repository, orders what to change (`plan`), and then changes the files of the other directory as a journal says, so
//! that a crash leaves nothing half done. `parse`, `path`, `hunks` and `plan` are pure.
//!
//! No program that a repository names ever runs here. Git only stores objects and merges commits, in a repository whose
//! configuration polity wrote. Polity itself reads and writes the files of workspaces, through handles that no link
//! leads away (`beneath`).
//!
//! This crate must not know tools, SQL, models, turns beyond their number, or who may merge whose work.

// Circle: the submodules work on the locked workspaces of a task, which workspaces declares.
mod workspaces;

mod git;
mod hunks;
mod journal;
mod parse;
mod path;
mod person;
mod plan;
mod problem;
mod repository;
mod settle;
mod snapshot;
mod walk;

mod beneath;

pub use workspaces::{
    Commit, FileChange, FileDiff, FileEntry, GitDirs, History, Merged, MergedFile, Opened, Recording,
    Recovered, Retired, Settled, Workspaces, WorktreeCommit,
};
