//! Commits the changes in a workspace.

use crate::beneath::Beneath;
use crate::git::Input;
use crate::journal::in_background;
use crate::problem::Problem;
use crate::repository::{Author, Repository, STREAM_PREFIX};
use crate::snapshot::{self, Difference, NextCommit, Seen};
use polity_files::path::on_one_line;
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of attempts at a commit. An attempt fails if running commands change the files while polity reads
/// them.
const ATTEMPTS: usize = 3;

/// Returns the paths that only other agents have begun to write in turns that are still open, or the reason why they are
/// not known. The paths are relative to the workspace, on one line. The runtime provides this function, because this
/// crate does not know who wrote what.
pub type Unfinished =
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<HashSet<String>, String>> + Send>> + Send + Sync;

/// A workspace whose changes can be committed.
pub(crate) struct Committed<'a> {
    pub(crate) repository: &'a Repository,
    /// The name of the workspace in the repository: `main`, or the id of the agent.
    pub(crate) workspace: &'a str,
    pub(crate) directory: &'a Path,
    /// The metadata and hashes of the files that polity has read before.
    pub(crate) seen: Arc<Mutex<Seen>>,
    /// Returns the paths to leave out. `None` if the commit takes all changes.
    pub(crate) unfinished: Option<&'a Unfinished>,
}

/// The result of committing a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The hash of the new commit; `None` if nothing has changed.
    pub(crate) commit: Option<String>,
    /// Files that could not be read. In the commit, they stay as they were before.
    pub(crate) unreadable: Vec<String>,
}

impl Committed<'_> {
    /// Commits all changes since the commit `head`, except the paths that `unfinished` returns, and sets `reference` to
    /// the new commit. Makes no commit if there is nothing to commit.
    pub(crate) async fn commit(
        &self,
        head: &str,
        reference: &str,
        author: &Author,
        message: &str,
    ) -> Result<Outcome, Problem> {
        let mut attempt = 1;
        loop {
            match self.try_commit(head, reference, author, message).await {
                Err(Problem::Io { .. }) if attempt < ATTEMPTS => attempt += 1,
                other => return other,
            }
        }
    }

    async fn try_commit(
        &self,
        head: &str,
        reference: &str,
        author: &Author,
        message: &str,
    ) -> Result<Outcome, Problem> {
        let base = self.repository.tree(head).await?;
        let (directory, seen, commit) = (self.directory.to_owned(), self.seen.clone(), head.to_owned());
        let Difference { mut changes, unreadable } = in_background(move || {
            let beneath = Beneath::open(&directory)?;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            snapshot::compare(&beneath, &base, &commit, &mut seen)
        })
        .await?;
        let unreadable = unreadable.iter().map(ToString::to_string).collect();
        if let Some(unfinished) = self.unfinished.filter(|_| !changes.is_empty()) {
            // A write is recorded before it begins. So the answer names every write that the comparison may have found
            // only if polity asks after the comparison.
            let left_out = unfinished().await.map_err(Problem::refused)?;
            changes.retain(|(path, _)| !left_out.contains(&on_one_line(&path.to_string())));
        }
        if changes.is_empty() {
            return Ok(Outcome { commit: None, unreadable });
        }
        let file = self.repository.directory.join(format!("{STREAM_PREFIX}{}", self.workspace));
        let (directory, stream) = (self.directory.to_owned(), file.clone());
        let (reference_name, head) = (reference.to_owned(), head.to_owned());
        let (author, message) = (author.line(), message.to_owned());
        let input = in_background(move || {
            let failed = || Problem::io("write", &stream);
            let beneath = Beneath::open(&directory)?;
            let mut writer = BufWriter::new(File::create(&stream).map_err(failed())?);
            let next =
                NextCommit { reference: &reference_name, parents: &[&head], author, message: &message };
            next.begin(&mut writer).map_err(failed())?;
            snapshot::stream_files(&beneath, &changes, &mut writer)?;
            writer.flush().map_err(failed())?;
            File::open(&stream).map_err(failed())
        });
        let imported = match input.await {
            Ok(input) => self.repository.import(Input::File(input)).await,
            Err(problem) => Err(problem),
        };
        let _ = std::fs::remove_file(&file);
        imported?;
        let commit = self.repository.tip(reference).await?;
        if let Some(commit) = &commit {
            self.repository.refresh_index(self.workspace, commit).await;
        }
        Ok(Outcome { commit, unreadable })
    }
}
