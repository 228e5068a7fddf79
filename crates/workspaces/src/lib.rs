//! Workspaces: the directory that each agent works in, and the record of its work in git.
//!
//! Below the root directory of all workspaces, there is a directory for each task:
//!
//! ```text
//! <task>/git/           the repository of the task, which agents cannot change
//! <task>/main/          the workspace that the agents of the task share, unless they share a directory of the person
//! <task>/<agent>/       the worktree of an agent, if the agent has a worktree
//! <task>/journal.json   a merge that is being carried out
//! ```
//!
//! The path of a change: an agent changes files in its directory. At the end of the turn, [`Workspaces::settle`] reads
//! the directory (modules `walk` and `snapshot`) and commits the changes to the agent's branch. It leaves out the files
//! that only other agents of the same directory are writing. Later, [`Workspaces::merge`] brings this commit into
//! another workspace, the target. First, git merges the agent's commit with a commit of the target's present files.
//! This changes only the repository. Then the module `plan` decides what to do with each file of the target. Last, the
//! module `journal` changes these files. If a crash interrupts it, polity finishes the merge later. `parse`, `path`,
//! `hunks` and `plan` are pure.
//!
//! The module `git` makes sure that git starts no program, even if the configuration of a repository names one. Git
//! stores objects, merges commits, and writes the first files of a new worktree. After that, only polity itself reads
//! and writes the files of workspaces for a commit or a merge, and follows no symbolic links (module `beneath`).
//!
//! This crate must not know tools, SQL, models, or who may merge whose work. It knows the number of a turn, and
//! nothing else about turns.

// Circle: `workspaces` imports types from its submodules, and they import the type `Locked` from `workspaces`.
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

pub use settle::Unfinished;
pub use workspaces::{
    Commit, Cut, FileChange, FileDiff, FileEntry, GitDirs, History, Merged, MergedFile, Opened, Recording,
    Recovered, Retired, Settled, Unmerged, Wanted, Workspaces, WorktreeCommit,
};
