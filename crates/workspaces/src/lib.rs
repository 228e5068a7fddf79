//! Workspaces: the directory that each agent works in, and the record of its work in git.
//!
//! Below the root, there is a directory for each task:
//!
//! ```text
//! <task>/git/           the repository of the task, which agents cannot change
//! <task>/main/          the workspace that the task shares, unless it is a directory of the person
//! <task>/<agent>/       the worktree of an agent, if the agent has a worktree
//! <task>/journal.json   a merge that is being carried out
//! ```
//!
//! The path of a change: an agent changes files in its directory. At the end of the turn, [`Workspaces::settle`]
//! reads the directory (`walk`, `snapshot`) and commits the changes to the agent's branch. Later,
//! [`Workspaces::merge`] merges this commit with the commit of another workspace inside the repository, decides
//! what to do with each file of the other workspace (`plan`), and then changes the files (`journal`), so that a
//! crash leaves no merge half done. `parse`, `path`, `hunks` and `plan` are pure.
//!
//! Git starts no program, even if the configuration of a repository names one. Git only stores objects and merges
//! commits, in a repository whose configuration polity wrote. Polity itself reads and writes the files of workspaces,
//! and follows no symbolic links (`beneath`).
//!
//! This crate must not know tools, SQL, models, or who may merge whose work. It knows the number of a turn, and
//! nothing else about turns.

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
