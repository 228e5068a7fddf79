//! What the person can see of a workspace: its files, its commits, its changes since it was made, and what a merge would
//! bring.

use super::merge;
use super::opening::check_directory;
use super::{AGENT_TRAILER, Locked, TURN_TRAILER, Workspaces, base_of, branch_of, segment};
use crate::beneath::Beneath;
use crate::git::Input;
use crate::journal::in_background;
use crate::parse::{self, Change};
use crate::problem::Problem;
use crate::repository::{Author, Repository};
use crate::snapshot::{self, NextCommit};
use crate::{repository, walk};
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_society::workspace::{Caller, Place, Root};
use serde::Serialize;
use std::sync::PoisonError;
use tokio_util::sync::CancellationToken;

/// Maximum number of bytes of the diff of one file.
const PATCH_BYTES: usize = 256 << 10;

/// Maximum number of files in a list.
const FILES: usize = 20_000;

/// The option of `git log` that limits the number of commits in a list.
const COMMITS: &str = "--max-count=500";

/// The ref of a temporary commit with the uncommitted changes of a workspace. This ref exists only during a
/// comparison.
const VIEWED: &str = "refs/polity/viewed";

/// How a file differs between two states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// The file is new.
    Added,
    /// The content or the type of the file has changed.
    Changed,
    /// The file was deleted.
    Deleted,
}

/// How one file differs between two states of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// The path, relative to the workspace.
    pub path: String,
    /// Whether the file was added, changed or deleted.
    pub change: FileChange,
    /// The unified diff. Ends with `…` if it was cut off.
    pub patch: String,
}

/// What a merge would bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmerged {
    /// The files that the merge would change.
    pub files: Vec<FileDiff>,
    /// The hash of the git tree with the present files of the worktree. With it, [`super::Wanted::Shown`] takes these
    /// files and no others.
    pub tree: String,
}

/// A commit in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    /// The hash of the commit.
    pub id: String,
    /// The id of the agent that made the commit. If no agent made it, this is the id of the agent that the commit
    /// message names. If the message names no agent, this is the address of the author.
    pub agent: String,
    /// The first line of the commit message.
    pub message: String,
    /// The number of the turn, if the commit was made at the end of a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<i64>,
    /// The time of the commit in seconds since 1970.
    pub time: i64,
    /// The paths of the files that the commit changed.
    pub files: Vec<String>,
}

/// A file of a workspace, for a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileEntry {
    /// The path, relative to the workspace.
    pub path: String,
    /// The size in bytes; `None` for a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Workspaces {
    /// Compares the present files of a workspace with the commit that the workspace began with. For a worktree, this
    /// commit contains the files that the hirer's workspace had at the time of hiring. The hirer is the agent that
    /// hired the owner of the worktree. For a directory of the person, this commit is the person's HEAD.
    pub async fn diff(
        &self,
        task: &TaskId,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Vec<FileDiff>, Refusal> {
        Ok(self.lock(task, cancel).await?.diff(place).await?)
    }

    /// Returns what a merge of an agent's worktree into the workspace of the caller would bring: compares the present
    /// files of the worktree with the latest commit that both workspaces contain. Merges nothing. Returns `None` if the
    /// agent has no worktree, or if the workspaces have no commit in common.
    pub async fn unmerged(
        &self,
        caller: &Caller,
        from: &AgentId,
        cancel: &CancellationToken,
    ) -> Result<Option<Unmerged>, Refusal> {
        Ok(self.lock(&caller.task, cancel).await?.unmerged(caller, from).await?)
    }

    /// Lists the commits of a workspace, the latest first. The list is empty for a directory of the person, because
    /// polity never commits there.
    pub async fn log(
        &self,
        task: &TaskId,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Vec<Commit>, Refusal> {
        Ok(self.lock(task, cancel).await?.log(place).await?)
    }

    /// Lists at most 20,000 files of a workspace. Leaves out files that an ignore file such as `.gitignore` excludes.
    pub async fn tree(
        &self,
        task: &TaskId,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Vec<FileEntry>, Refusal> {
        Ok(self.lock(task, cancel).await?.tree(place).await?)
    }
}

impl Locked<'_> {
    async fn tree(&self, place: &Place) -> Result<Vec<FileEntry>, Problem> {
        let directory = match (self.workspace(place)?, &place.root) {
            (Some((_, _, directory)), _) => directory,
            (None, Root::Person { directory, .. }) => {
                check_directory(directory)?;
                directory.clone()
            }
            (None, Root::Made) => return Ok(Vec::new()),
        };
        if !directory.is_dir() {
            return Ok(Vec::new());
        }
        in_background(move || {
            let files = walk::files(&Beneath::open(&directory)?)?;
            let entry = |walk::Entry { path, stamp }| FileEntry {
                path: path.to_string(),
                size: stamp.map(|stamp| stamp.size),
            };
            Ok(files.into_iter().take(FILES).map(entry).collect())
        })
        .await
    }

    pub(super) async fn log(&self, place: &Place) -> Result<Vec<Commit>, Problem> {
        let Some((_, branch, _)) = self.workspace(place)? else { return Ok(Vec::new()) };
        let repository = self.repository().await?;
        if !repository.directory.is_dir() {
            return Ok(Vec::new());
        }
        let Some(tip) = repository.tip(&branch).await? else { return Ok(Vec::new()) };
        let base = match &place.worktree {
            Some(agent) => repository.tip(&base_of(agent.as_str())).await?,
            None => None,
        };
        let format = "--format=%x00%H%x00%ae%x00%at%x00%B%x00";
        let mut call =
            repository.call(&["log", COMMITS, "--first-parent", "--diff-merges=first-parent", "-z"]);
        call =
            call.with("--name-only").with("--no-renames").with("--no-show-signature").with(format).with(&tip);
        if let Some(base) = base {
            call = call.with(format!("^{base}"));
        }
        let output = repository.run(call).await?.succeeded()?;
        parse_log(&output)
    }

    async fn diff(&self, place: &Place) -> Result<Vec<FileDiff>, Problem> {
        let repository = self.repository().await?;
        let (base, head, directory) = match (self.workspace(place)?, &place.root) {
            (Some((_, branch, directory)), _) => {
                if !repository.directory.is_dir() || !directory.is_dir() {
                    return Ok(Vec::new());
                }
                let Some(head) = repository.tip(&branch).await? else { return Ok(Vec::new()) };
                let base = match &place.worktree {
                    Some(agent) => repository.tip(&base_of(agent.as_str())).await?,
                    None => repository.first_commit(&head).await?,
                };
                (base.unwrap_or_else(|| head.clone()), head, directory)
            }
            (None, Root::Person { directory, .. }) => {
                let person = self.person(directory).await?;
                std::fs::create_dir_all(&self.task).map_err(Problem::io("make", &self.task))?;
                repository.make(Some(&person.lender)).await?;
                (person.head.clone(), person.head, directory.clone())
            }
            (None, Root::Made) => return Ok(Vec::new()),
        };
        self.compare(&repository, &base, &head, directory).await
    }

    async fn unmerged(&self, caller: &Caller, from: &AgentId) -> Result<Option<Unmerged>, Problem> {
        let agent = segment(from.as_str())?;
        let directory = self.task.join(agent);
        let repository = self.present_repository().await.filter(|_| directory.is_dir());
        let Some(repository) = repository else { return Ok(None) };
        let Some(theirs) = repository.tip(&branch_of(agent)).await? else { return Ok(None) };
        let ours = match (self.workspace(&caller.place)?, &caller.place.root) {
            (Some((_, branch, _)), _) => repository.tip(&branch).await?,
            (None, Root::Person { directory, .. }) => {
                let person = self.person(directory).await?;
                repository.make(Some(&person.lender)).await?;
                Some(merge::present(&repository, &person, directory).await?)
            }
            (None, Root::Made) => None,
        };
        let common = match ours {
            Some(ours) => repository.common(&ours, &theirs).await?,
            None => None,
        };
        let Some(common) = common else { return Ok(None) };
        let now = self.viewed(&repository, &theirs, directory).await?;
        let files = difference(&repository, &common, &now).await?;
        Ok(Some(Unmerged { files, tree: repository.tree_of(&now).await? }))
    }

    /// Compares the present files of a workspace with the commit `base`. `head` is the latest commit of the workspace.
    async fn compare(
        &self,
        repository: &Repository,
        base: &str,
        head: &str,
        directory: std::path::PathBuf,
    ) -> Result<Vec<FileDiff>, Problem> {
        let now = self.viewed(repository, head, directory).await?;
        difference(repository, base, &now).await
    }

    /// Returns a temporary commit with the present files of a workspace. No branch contains this commit.
    async fn viewed(
        &self,
        repository: &Repository,
        head: &str,
        directory: std::path::PathBuf,
    ) -> Result<String, Problem> {
        let base = repository.tree(head).await?;
        let (seen, commit) = (self.all.seen_in(&directory), head.to_owned());
        let file = repository.directory.join(format!("{}viewed", repository::STREAM_PREFIX));
        let stream = file.clone();
        let written = in_background(move || {
            let beneath = Beneath::open(&directory)?;
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            let difference = snapshot::compare(&beneath, &base, &commit, &mut seen)?;
            if difference.changes.is_empty() {
                return Ok(None);
            }
            let failed = || Problem::io("write", &stream);
            let mut writer = std::io::BufWriter::new(std::fs::File::create(&stream).map_err(failed())?);
            let author = Author::agent("polity", "").line();
            let next =
                NextCommit { reference: VIEWED, parents: &[&commit], author, message: "Not committed yet\n" };
            next.begin(&mut writer).map_err(failed())?;
            snapshot::stream_files(&beneath, &difference.changes, &mut writer)?;
            std::io::Write::flush(&mut writer).map_err(failed())?;
            std::fs::File::open(&stream).map(Some).map_err(failed())
        });
        let imported = match written.await {
            Ok(None) => return Ok(head.to_owned()),
            Ok(Some(input)) => {
                repository.forget(VIEWED).await?;
                repository.import(Input::File(input)).await
            }
            Err(problem) => Err(problem),
        };
        let _ = std::fs::remove_file(&file);
        imported?;
        Ok(repository.tip(VIEWED).await?.unwrap_or_else(|| head.to_owned()))
    }
}

/// Compares two commits.
async fn difference(repository: &Repository, old: &str, new: &str) -> Result<Vec<FileDiff>, Problem> {
    let changes = repository.changes(old, new).await?;
    Ok(with_patches(&changes, &repository.patches(old, new).await?))
}

/// Splits the output of `git diff-tree -p` and assigns each part to its change. The parts and the changes have the
/// same order.
pub(super) fn with_patches(changes: &[Change], output: &[u8]) -> Vec<FileDiff> {
    let mut patches = patches(output).into_iter();
    changes
        .iter()
        .map(|change| {
            let change_kind = match (&change.old, &change.new) {
                (None, _) => FileChange::Added,
                (Some(_), None) => FileChange::Deleted,
                (Some(_), Some(_)) => FileChange::Changed,
            };
            let mut patch = patches.next().unwrap_or_default();
            // If an entry becomes another kind, for example a file becomes a link, git prints two parts: a deletion and
            // an addition.
            if parse::is_other_kind(change) {
                patch.extend(patches.next().unwrap_or_default());
            }
            let patch = match patch.len() > PATCH_BYTES {
                true => format!("{}…", String::from_utf8_lossy(&patch[..PATCH_BYTES])),
                false => String::from_utf8_lossy(&patch).into_owned(),
            };
            FileDiff { path: change.path.to_string(), change: change_kind, patch }
        })
        .collect()
}

/// Splits the output of `git diff-tree -p` into its parts. A part begins with a line `diff --git …`. A line of a file
/// cannot look like this, because a diff puts a sign before each line of a file.
fn patches(output: &[u8]) -> Vec<Vec<u8>> {
    let mut patches: Vec<Vec<u8>> = Vec::new();
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b"diff --git ") {
            patches.push(Vec::new());
        }
        if let Some(patch) = patches.last_mut() {
            patch.extend(line);
        }
    }
    patches
}

/// Reads the output of `git log -z` with the fields hash, address, time and message, separated by NUL. With the option
/// `--name-only`, git also prints the files of each commit. Otherwise, the lists of files are empty.
pub(super) fn parse_log(output: &[u8]) -> Result<Vec<Commit>, Problem> {
    let mut commits = Vec::new();
    let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let mut at = 0;
    let text = |field: &[u8]| String::from_utf8_lossy(field).into_owned();
    while at < fields.len() {
        // A commit begins with an empty field, followed by the hash.
        let is_name = |field: &[u8]| field.len() >= 40 && field.iter().all(u8::is_ascii_hexdigit);
        let [b"", id, address, time, message] = fields[at..].get(..5).unwrap_or_default() else {
            at += 1;
            continue;
        };
        if !is_name(id) {
            at += 1;
            continue;
        }
        at += 5;
        let mut files = Vec::new();
        while let Some(field) = fields.get(at) {
            let begins_next =
                field.is_empty() && fields.get(at + 1).is_none_or(|next| is_name(next) || next.is_empty());
            if begins_next {
                break;
            }
            let file = field.strip_prefix(b"\n").unwrap_or(field);
            if !file.is_empty() {
                files.push(text(file));
            }
            at += 1;
        }
        commits.push(commit_of(&text(id), &text(address), &text(time), &text(message), files));
    }
    Ok(commits)
}

fn commit_of(id: &str, address: &str, time: &str, message: &str, files: Vec<String>) -> Commit {
    let trailer = |name: &str| message.lines().rev().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let own = address.strip_suffix("@polity.invalid");
    let agent = own.or_else(|| trailer(AGENT_TRAILER)).unwrap_or(address);
    Commit {
        id: id.to_owned(),
        agent: agent.to_owned(),
        message: message.lines().next().unwrap_or_default().to_owned(),
        turn: own.and_then(|_| trailer(TURN_TRAILER)).and_then(|turn| turn.parse().ok()),
        time: time.parse().unwrap_or_default(),
        files,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_line_is_in_the_patch_of_its_file(files in proptest::collection::vec("[ +-](diff --git |a){0,3}", 0..6)) {
            let part = |line: &String| format!("diff --git a/x b/x\n--- a/x\n{line}\n");
            let output: String = files.iter().map(part).collect();
            let expect: Vec<Vec<u8>> = files.iter().map(|line| part(line).into_bytes()).collect();
            prop_assert_eq!(patches(output.as_bytes()), expect);
        }

        #[test]
        fn no_output_makes_the_reader_of_the_log_panic(output in any::<Vec<u8>>()) {
            let _ = parse_log(&output);
        }
    }
}
