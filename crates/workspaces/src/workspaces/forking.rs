//! Begins the workspace of a fork. A fork is a new task that begins as a copy of an earlier state of another task.

use super::reading::{Commit, parse_log};
use super::{Locked, SHARED, Workspaces};
use crate::journal::in_background;
use crate::problem::Problem;
use crate::repository::{self, Author, MAIN, Repository};
use polity_society::id::TaskId;
use polity_society::refusal::Refusal;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// The moment in the history of a task at which a fork begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The turns that had ended.
    pub ended: BTreeSet<i64>,
    /// The time, in milliseconds since 1970.
    pub at: i64,
}

impl Cut {
    /// Returns whether the cut is after a commit. For a commit that belongs to a turn, this is so if the turn had
    /// ended. The time of the commit would be less exact, because git stores no milliseconds. Only for a commit that
    /// belongs to no turn, such as a merge, the time decides.
    fn is_after(&self, commit: &Commit) -> bool {
        match commit.turn {
            Some(turn) => self.ended.contains(&turn),
            None => commit.time <= self.at.div_euclid(1000),
        }
    }
}

impl Workspaces {
    /// Makes the workspace that the agents of the new task `fork` share. Finds the last commit before the cut in the
    /// shared workspace of the task `original`. The new workspace begins with the files of this commit. Returns this
    /// commit. Makes nothing and returns `None` if there is no such commit, or if git records nothing. Changes nothing
    /// in the workspaces of the original.
    pub async fn fork(
        &self,
        fork: &TaskId,
        original: &TaskId,
        cut: &Cut,
        cancel: &CancellationToken,
    ) -> Result<Option<String>, Refusal> {
        // The original is locked so that no commit writes objects while the objects are copied. Holding two locks
        // causes no deadlock here: nobody else knows the fork yet, so nobody else can hold the lock of the fork and
        // wait for the lock of the original.
        let original = self.hold(original, cancel).await?;
        let fork = self.hold(fork, cancel).await?;
        Ok(fork.begin(&original, cut).await?)
    }

    /// Removes everything that [`Self::fork`] has made for a new task. The caller uses this if the task could not begin
    /// after all.
    pub async fn discard(&self, fork: &TaskId, cancel: &CancellationToken) -> Result<(), Refusal> {
        let locked = self.hold(fork, cancel).await?;
        let directory = locked.task.clone();
        Ok(in_background(move || repository::remove_all(&directory)).await?)
    }
}

impl Locked<'_> {
    async fn begin(&self, original: &Locked<'_>, cut: &Cut) -> Result<Option<String>, Problem> {
        let Some(theirs) = original.present_repository().await else { return Ok(None) };
        let Some(commit) = last_before(&theirs, cut).await? else { return Ok(None) };
        fs::create_dir_all(&self.task).map_err(Problem::io("make", &self.task))?;
        let ours = self.repository().await?;
        ours.make(None).await?;
        let (from, to) = (theirs.directory.join("objects"), ours.directory.join("objects"));
        in_background(move || share_objects(&from, &to)).await?;
        // The fork does not get the commits of the original, because they name agents and turns of the original. Its
        // history begins with a commit of its own.
        let tree = format!("{commit}^{{tree}}");
        let message = "Begin with the files of the task that was forked\n";
        let first = ours.commit(&tree, &[], &Author::agent("polity", ""), message).await?;
        ours.point(MAIN, &first).await?;
        let directory = self.task.join(SHARED);
        let unfinished = self.task.join("main.new");
        repository::remove_all(&unfinished)?;
        fs::create_dir(&unfinished).map_err(Problem::io("make", &unfinished))?;
        ours.link(SHARED, MAIN, &directory)?;
        ours.check_out(SHARED, &first, &unfinished).await?;
        ours.write_pointer(SHARED, &unfinished)?;
        fs::rename(&unfinished, &directory).map_err(Problem::io("make", &directory))?;
        Ok(Some(commit))
    }
}

/// Returns the last commit before the cut in the workspace that the agents of a task share.
async fn last_before(repository: &Repository, cut: &Cut) -> Result<Option<String>, Problem> {
    let Some(tip) = repository.tip(MAIN).await? else { return Ok(None) };
    let format = "--format=%x00%H%x00%ae%x00%at%x00%B%x00";
    let call = repository.call(&["log", "--first-parent", "--no-show-signature", "-z", format]);
    let commits = parse_log(&repository.run(call.with(&tip)).await?.succeeded()?)?;
    let before = commits.into_iter().rev().take_while(|commit| cut.is_after(commit));
    Ok(before.last().map(|commit| commit.id))
}

/// Gives a repository all objects of another repository. The objects become hard links, which is safe because git never
/// changes an object. If the file system has no hard links, copies the objects.
fn share_objects(from: &Path, to: &Path) -> Result<(), Problem> {
    for entry in fs::read_dir(from).map_err(Problem::io("read", from))? {
        let entry = entry.map_err(Problem::io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(Problem::io("read", &source))?;
        // The directory `info` is not copied. It contains no objects, only lists that belong to the other repository.
        if kind.is_dir() && entry.file_name() != "info" {
            fs::create_dir_all(&target).map_err(Problem::io("make", &target))?;
            share_objects(&source, &target)?;
        } else if kind.is_file() && !target.exists() && fs::hard_link(&source, &target).is_err() {
            fs::copy(&source, &target).map_err(Problem::io("copy", &target))?;
        }
    }
    Ok(())
}
