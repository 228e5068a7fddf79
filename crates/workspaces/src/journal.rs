//! Carries out the file changes of a merge so that all of them happen, even if the process dies in between.
//!
//! First, polity writes a journal: the old and the new version of each file, and the git refs to move afterwards. Then
//! it replaces each file by a rename, moves the refs, and removes the journal. If the process dies in between, the next
//! operation on the task's workspaces finishes the journal. If a file has neither its old nor its new version, somebody
//! else has changed it, and polity does not touch it.

use crate::beneath::{self, Beneath, Content, Execution, Found};
use crate::parse::{Change, Leaf, Mode};
use crate::path::TreePath;
use crate::plan::{self, Disk, Endings, Step, Version};
use crate::problem::Problem;
use crate::repository::{Repository, replace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of entries that are listed in a directory. A directory is listed if it exists at a path where a merge
/// must write a file.
const IN_THE_WAY: usize = 10_000;

/// Maximum number of files that are compared and written at the same time. The number is limited because the contents
/// of these files are in memory.
const FILES_AT_ONCE: usize = 32;

/// A merge that is being carried out. Stored as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// The directory whose files the merge changes.
    pub(crate) directory: PathBuf,
    /// A workspace and a commit: after the merge, the git index of this workspace is set to this commit. Only git
    /// commands of agents read this index. `None` for a directory of the person.
    pub(crate) index: Option<(String, String)>,
    /// The git refs to set after the files are changed, each with its commit.
    pub(crate) points: Vec<(String, String)>,
    /// The changes of files, in the order in which they are carried out.
    pub(crate) changes: Vec<Change>,
}

/// A change of a merge, compared with the file on disk.
pub(crate) struct Judged {
    pub(crate) change: Change,
    /// What the merge must do with the file.
    pub(crate) step: Step,
    /// What exists on disk at the path.
    pub(crate) disk: Disk,
    /// The content of the file before the change.
    pub(crate) old: Vec<u8>,
    /// The content of the file after the change.
    pub(crate) new: Vec<u8>,
}

/// Reads what exists at a path.
fn disk(beneath: &Beneath, path: &TreePath) -> Result<Disk, Problem> {
    Ok(match beneath.look(path)? {
        Found::Nothing => Disk::Nothing,
        Found::File(file, metadata) => {
            let execution = Execution::of(&metadata);
            let bytes = beneath::read(file, metadata.len()).map_err(Problem::io("read", &path.relative()))?;
            Disk::File(bytes, execution)
        }
        Found::Link(target) => Disk::Link(target),
        Found::Directory => Disk::Directory(beneath.below(path, IN_THE_WAY)?),
        Found::Blocked(components) => path.ancestor(components).map_or(Disk::Special, Disk::Blocked),
        Found::Special => Disk::Special,
    })
}

/// Compares each change with the file on disk. `deleted` are all files that the whole merge deletes.
pub(crate) async fn judge(
    repository: &Repository,
    directory: &Path,
    changes: &[Change],
    deleted: &BTreeSet<TreePath>,
) -> Result<Vec<Judged>, Problem> {
    let has_content = |leaf: &&Leaf| leaf.mode != Mode::Submodule;
    let leaves = changes.iter().flat_map(|change| [&change.old, &change.new]).flatten();
    let objects: Vec<&str> = leaves.filter(has_content).map(|leaf| leaf.object.as_str()).collect();
    let mut contents = repository.contents(&objects).await?.into_iter();
    let mut content = |leaf: &Option<Leaf>| {
        leaf.as_ref().filter(has_content).and_then(|_| contents.next()).unwrap_or_default()
    };
    let versions: Vec<(Change, Vec<u8>, Vec<u8>)> = changes
        .iter()
        .map(|change| {
            let old = content(&change.old);
            let new = content(&change.new);
            (change.clone(), old, new)
        })
        .collect();
    let (directory, deleted) = (directory.to_owned(), deleted.clone());
    in_background(move || {
        let beneath = Beneath::open(&directory)?;
        let mut judged = Vec::new();
        for (change, old, new) in versions {
            let disk = disk(&beneath, &change.path)?;
            let version = |leaf: &Option<Leaf>, content| {
                leaf.as_ref().map(|leaf| leaf.mode).map(|mode| (mode, content))
            };
            let before =
                version(&change.old, old.as_slice()).map(|(mode, content)| Version { mode, content });
            let after = version(&change.new, new.as_slice()).map(|(mode, content)| Version { mode, content });
            let step = plan::step(before, after, &disk, &deleted);
            judged.push(Judged { change, step, disk, old, new });
        }
        Ok(judged)
    })
    .await
}

/// Runs blocking work outside the async threads.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Problem::CutOff))
}

/// Returns the paths of the files that the changes delete.
pub(crate) fn deleted(changes: &[Change]) -> BTreeSet<TreePath> {
    changes.iter().filter(|change| change.new.is_none()).map(|change| change.path.clone()).collect()
}

/// Carries out the change of one file, as decided in `judged.step`.
fn carry_out(beneath: &Beneath, judged: &Judged, number: usize) -> Result<(), Problem> {
    let Step::Change(endings) = judged.step else { return Ok(()) };
    let path = &judged.change.path;
    let Some(leaf) = &judged.change.new else { return beneath.remove(path) };
    if matches!(judged.disk, Disk::Directory(_)) {
        beneath.remove_empty(path)?;
    }
    let converted;
    let bytes = match endings {
        Endings::Stored => judged.new.as_slice(),
        Endings::Converted => {
            converted = plan::with_crlf(&judged.new);
            &converted
        }
    };
    let content = match leaf.mode {
        Mode::Plain => Content::File(bytes, Execution::Plain),
        Mode::Program => Content::File(bytes, Execution::Program),
        Mode::Link => Content::Link(&judged.new),
        Mode::Submodule => return Ok(()),
    };
    beneath.put(path, &content, number)
}

/// Carries out changes of files. Leaves a file alone if somebody else has changed it, or if it cannot be written, and
/// returns these files.
pub(crate) async fn apply(
    repository: &Repository,
    directory: &Path,
    changes: &[Change],
) -> Result<Vec<TreePath>, Problem> {
    // Deletions are carried out first. Only then are the files to write compared with the disk. If something still
    // exists at the path of a new file, it does not belong to the merge, so it stays unchanged.
    let first_write = changes.iter().position(|change| change.new.is_some()).unwrap_or(changes.len());
    let (deletions, writes) = changes.split_at(first_write);
    let nothing = BTreeSet::new();
    let mut left = Vec::new();
    for some in deletions.chunks(FILES_AT_ONCE).chain(writes.chunks(FILES_AT_ONCE)) {
        let judged = judge(repository, directory, some, &nothing).await?;
        let directory = directory.to_owned();
        let stayed = in_background(move || {
            let beneath = Beneath::open(&directory)?;
            let mut stayed = Vec::new();
            for (number, judged) in judged.into_iter().enumerate() {
                let is_carried_out = match carry_out(&beneath, &judged, number) {
                    Ok(()) => judged.step != Step::Conflict,
                    // A file that cannot be written is skipped, because an error here would block all further work
                    // on the task.
                    Err(Problem::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                        false
                    }
                    Err(problem) => return Err(problem),
                };
                if !is_carried_out {
                    stayed.push(judged.change.path);
                }
            }
            Ok(stayed)
        });
        left.extend(stayed.await?);
    }
    Ok(left)
}

/// Returns the files that cannot be written, because this process has no permission to change the directory above them.
pub(crate) async fn protected(directory: &Path, changes: &[Change]) -> Result<Vec<TreePath>, Problem> {
    let directory = directory.to_owned();
    let paths: Vec<TreePath> = changes.iter().map(|change| change.path.clone()).collect();
    in_background(move || {
        let beneath = Beneath::open(&directory)?;
        Ok(paths.into_iter().filter(|path| !beneath.may_write(path)).collect())
    })
    .await
}

impl Journal {
    /// Writes the journal. After this, the merge is carried out even if the process dies.
    pub(crate) fn write(&self, file: &Path) -> Result<(), Problem> {
        let text = serde_json::to_vec(self).map_err(|error| Problem::Io {
            what: "write",
            path: file.to_owned(),
            source: error.into(),
        })?;
        replace(file, &text)
    }

    /// Reads the journal, if it exists.
    pub(crate) fn read(file: &Path) -> Result<Option<Self>, Problem> {
        let failed = Problem::io("read", file);
        match fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| failed(error.into())),
        }
    }

    /// Carries out the merge and removes the journal. Returns the files that the merge does not touch, for example
    /// because somebody else changed them after the journal was written.
    pub(crate) async fn finish(
        &self,
        repository: &Repository,
        file: &Path,
    ) -> Result<Vec<TreePath>, Problem> {
        let left = match (self.directory.is_dir(), &self.index) {
            (true, _) => apply(repository, &self.directory, &self.changes).await?,
            // The workspace was removed, so there are no files to change.
            (false, Some(_)) => Vec::new(),
            // The directory of the person may be on a disk that is not mounted now.
            (false, None) => {
                return Err(Problem::refused(format!(
                    "A merge into {} was interrupted, and the directory is not there now. Ask the person to bring it \
                     back: the merge is then finished.",
                    self.directory.display()
                )));
            }
        };
        for (name, commit) in &self.points {
            repository.point(name, commit).await?;
        }
        if let Some((workspace, commit)) = &self.index {
            repository.refresh_index(workspace, commit).await;
        }
        fs::remove_file(file).map_err(Problem::io("remove", file))?;
        Ok(left)
    }
}
