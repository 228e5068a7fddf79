//! Merges the worktree of an agent into another workspace. A merge that finds a conflict changes no files.

use super::{AGENT_TRAILER, Locked, Workspaces, branch_of, merged_of, segment};
use crate::hunks::{self, Conflict, Hunk};
use crate::journal::{self, Journal, Judged};
use crate::parse::{Change, Leaf, MergedTree, Mode, Stages};
use crate::path::TreePath;
use crate::person::Person;
use crate::plan::{self, Disk, Step};
use crate::problem::Problem;
use crate::repository::{Author, LEFT, LEFT_HEAD, Repository};
use crate::snapshot::{self, NextCommit};
use polity_society::id::AgentId;
use polity_society::refusal::Refusal;
use polity_society::workspace::{Access, Caller, Place, Root};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Maximum number of files in conflict that a refusal reports.
const CONFLICTS: usize = 50;

/// Maximum size in bytes of a text that is searched for hunks.
const HUNK_BYTES: usize = 4 << 20;

/// Maximum number of files that are compared with the disk at the same time. The number is limited because the
/// contents of these files are in memory.
const FILES_AT_ONCE: usize = 32;

/// Which files of a worktree a merge takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The files that the worktree has when the merge runs.
    Present,
    /// The files of this tree, which [`Workspaces::unmerged`] has shown. If the worktree has other files now, or if
    /// nothing was shown (`None`), polity refuses the merge.
    Shown(Option<&'a str>),
}

/// The result of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Number of commits of the agent that were new to the workspace.
    pub commits: u64,
    /// The files that the merge changed.
    pub files: Vec<MergedFile>,
    /// Files that the merge left unchanged, because somebody changed them while the merge was being carried out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

/// A file that a merge changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MergedFile {
    /// The path, relative to the workspace.
    pub path: String,
    /// `added`, `changed` or `deleted`.
    pub change: &'static str,
}

impl MergedFile {
    fn of(change: &Change) -> Self {
        let what = match (&change.old, &change.new) {
            (None, _) => "added",
            (Some(_), None) => "deleted",
            (Some(_), Some(_)) => "changed",
        };
        Self { path: change.path.to_string(), change: what }
    }
}

impl Workspaces {
    /// Merges the worktree of an agent into the workspace of the caller. First commits the uncommitted changes in both
    /// workspaces, except in a directory of the person. If there is a conflict, changes no files. If the worktree was
    /// merged before, the merge adds only what is new since then.
    pub async fn merge(
        &self,
        caller: &Caller,
        from: &AgentId,
        wanted: Wanted<'_>,
        cancel: &CancellationToken,
    ) -> Result<Merged, Refusal> {
        let person = match (&caller.place.worktree, &caller.place.root) {
            (None, Root::Person { directory, .. }) => Some(directory),
            _ => None,
        };
        let locked = self.lock(&caller.task, cancel).await?;
        // The lock of the task is not enough: agents of other tasks may merge into the same directory of the person.
        let _guard = match person {
            Some(directory) => Some(self.lock_of(directory).lock_owned().await),
            None => None,
        };
        Ok(locked.merge(caller, from, wanted).await?)
    }
}

/// The workspace that receives the merge.
struct Into<'a> {
    /// The commit that describes the present state of the workspace.
    commit: String,
    directory: &'a Path,
    /// The refs to set to the merge commit.
    points: Vec<String>,
    /// Further refs to set, each with its commit.
    other_points: Vec<(String, String)>,
    /// The name of the workspace in the repository; `None` for a directory of the person.
    workspace: Option<&'a str>,
}

impl Locked<'_> {
    async fn merge(&self, caller: &Caller, from: &AgentId, wanted: Wanted<'_>) -> Result<Merged, Problem> {
        let agent = segment(from.as_str())?;
        let repository = self.repository().await?;
        if caller.place.worktree.as_ref() == Some(from) {
            return Err(Problem::refused(
                "This worktree is your own workspace already. There is nothing to merge.",
            ));
        }
        if !self.task.join(agent).is_dir() {
            return Err(Problem::refused(format!(
                "The agent {agent} has no worktree of its own, so there is nothing to merge: it works in the workspace \
                 of the agent that hired it."
            )));
        }
        let root = caller.place.root.clone();
        let theirs_place = Place { root, worktree: Some(from.clone()) };
        let message = format!("Work of {agent} before a merge\n\n{AGENT_TRAILER} {agent}\n");
        self.commit(&theirs_place, &Author::agent(agent, ""), &message, None).await?;
        let Some(theirs) = repository.tip(&branch_of(agent)).await? else {
            return Err(Problem::refused(format!("The agent {agent} has no branch.")));
        };
        let workspace = self.workspace(&caller.place)?;
        let into = match (&workspace, &caller.place.root) {
            (Some((name, branch, directory)), _) => {
                self.directory(&caller.place).await?;
                let message = format!(
                    "Work of {} before merging {agent}\n\n{AGENT_TRAILER} {}\n",
                    caller.agent, caller.agent
                );
                // An uncommitted change could overlap with the merge, so this commit takes all changes, whoever made
                // them.
                self.settle(caller, &message, None).await?;
                let Some(commit) = repository.tip(branch).await? else {
                    return Err(Problem::refused(format!("The workspace {name} has no commit yet.")));
                };
                Into {
                    commit,
                    directory,
                    points: vec![branch.clone()],
                    other_points: Vec::new(),
                    workspace: Some(name),
                }
            }
            (None, Root::Person { access: Access::Read, directory }) => {
                return Err(Problem::refused(format!(
                    "{} may only be read, so nothing can be merged into it.",
                    directory.display()
                )));
            }
            (None, Root::Person { directory, access: Access::Write }) => {
                let person = self.person(directory).await?;
                repository.make(Some(&person.lender)).await?;
                let commit = present(&repository, &person, directory).await?;
                Into {
                    commit,
                    directory,
                    points: vec![LEFT.to_owned()],
                    other_points: vec![(LEFT_HEAD.to_owned(), person.head)],
                    workspace: None,
                }
            }
            (None, Root::Made) => return Err(Problem::refused("The task has no workspace.")),
        };
        self.merge_into(&repository, &into, caller, from, &theirs, wanted).await
    }

    async fn merge_into(
        &self,
        repository: &Repository,
        into: &Into<'_>,
        caller: &Caller,
        from: &AgentId,
        theirs: &str,
        wanted: Wanted<'_>,
    ) -> Result<Merged, Problem> {
        let agent = from.as_str();
        let conflict = |conflicts: Vec<Conflict>| {
            let conflicts = json!(conflicts.into_iter().take(CONFLICTS).collect::<Vec<_>>());
            Problem::Refused(Refusal::MergeConflict { agent: from.clone(), conflicts })
        };
        if repository.contains(&into.commit, theirs).await? {
            repository.point(&merged_of(agent), theirs).await?;
            return Ok(Merged::default());
        }
        let merged = repository.merge_trees(&into.commit, theirs).await?;
        // The commit `theirs` has the present files of the worktree, which may differ from those that the person saw.
        // The merge takes this commit, so nothing can change between this check and the merge. `merge_trees` comes
        // first, because work without a common commit was never shown, and its error names this reason.
        if let Wanted::Shown(shown) = wanted
            && shown != Some(repository.tree_of(theirs).await?.as_str())
        {
            return Err(Problem::Refused(Refusal::WorkChanged { agent: from.clone() }));
        }
        if !merged.conflicts.is_empty() || !merged.kinds.is_empty() {
            return Err(conflict(self.describe(repository, &merged).await?));
        }
        let changes = plan::in_order(repository.changes(&into.commit, &merged.tree).await?);
        let deleted = journal::deleted(&changes);
        let mut overlaps = Vec::new();
        for some in changes.chunks(FILES_AT_ONCE) {
            for judged in journal::judge(repository, into.directory, some, &deleted).await? {
                if judged.step == Step::Conflict && overlaps.len() < CONFLICTS {
                    overlaps.push(self.overlap(repository, &judged).await?);
                }
            }
        }
        if !overlaps.is_empty() {
            return Err(conflict(overlaps));
        }
        let protected = journal::protected(into.directory, &changes).await?;
        if let Some(path) = protected.first() {
            return Err(Problem::refused(format!(
                "Polity may not write {} in {}. Ask the person to permit it.",
                path,
                into.directory.display()
            )));
        }
        let commits = repository.count(&into.commit, theirs).await?;
        let author = Author::agent(caller.agent.as_str(), &caller.role);
        let message = format!("Merge the work of {agent}\n\n{AGENT_TRAILER} {}\n", caller.agent);
        let parents = [into.commit.as_str(), theirs];
        let commit = repository.commit(&merged.tree, &parents, &author, &message).await?;
        let mut points: Vec<(String, String)> =
            into.points.iter().map(|name| (name.clone(), commit.clone())).collect();
        points.extend(into.other_points.iter().cloned());
        points.push((merged_of(agent), theirs.to_owned()));
        let files = changes.iter().map(MergedFile::of).collect();
        let journal = Journal {
            directory: into.directory.to_owned(),
            index: into.workspace.map(|name| (name.to_owned(), commit.clone())),
            points,
            changes,
        };
        if self.cancel.is_cancelled() {
            return Err(Problem::Cancelled);
        }
        journal.write(&self.journal())?;
        let left = journal.finish(repository, &self.journal()).await?;
        if let (Some(owner), Root::Person { directory, access: Access::Write }) =
            (&caller.place.worktree, &caller.place.root)
        {
            // The merge is already done. If the branch cannot be written into the person's repository, this does not
            // make the merge fail.
            self.publish(repository, directory, owner.as_str(), &commit).await?;
        }
        Ok(Merged { commits, files, left: left.iter().map(ToString::to_string).collect() })
    }

    /// Describes the conflicts that git has found, for the refusal.
    pub(super) async fn describe(
        &self,
        repository: &Repository,
        merged: &MergedTree,
    ) -> Result<Vec<Conflict>, Problem> {
        let mut found: BTreeMap<TreePath, &str> =
            merged.conflicts.keys().map(|path| (path.clone(), "content")).collect();
        for (kind, paths) in &merged.kinds {
            // Git reports `contents` for every conflict inside a file. Such a conflict keeps the kind `content`. Any
            // other kind that git reports for the file replaces it.
            if kind == "contents" {
                continue;
            }
            for path in paths.iter().filter_map(|path| TreePath::new(path.clone()).ok()) {
                found.insert(path, kind);
            }
        }
        let mut conflicts = Vec::new();
        for (path, kind) in found.into_iter().take(CONFLICTS) {
            let hunks = match merged.conflicts.get(&path) {
                Some(Stages { base, ours: Some(ours), theirs: Some(theirs) }) => {
                    let leaves = [Some(ours), base.as_ref(), Some(theirs)];
                    self.hunks_of(repository, leaves).await?
                }
                _ => Vec::new(),
            };
            conflicts.push(Conflict::new(path.to_string(), kind, hunks));
        }
        Ok(conflicts)
    }

    async fn hunks_of(
        &self,
        repository: &Repository,
        leaves: [Option<&Leaf>; 3],
    ) -> Result<Vec<Hunk>, Problem> {
        let is_text = |leaf: &&Leaf| matches!(leaf.mode, Mode::Plain | Mode::Program);
        if !leaves.iter().flatten().all(is_text) {
            return Ok(Vec::new());
        }
        let mut texts = Vec::new();
        for leaf in leaves {
            let content = match leaf {
                Some(leaf) => repository.contents(&[&leaf.object]).await?.pop().unwrap_or_default(),
                None => Vec::new(),
            };
            texts.push(content);
        }
        let [ours, base, theirs] = texts.as_slice() else { return Ok(Vec::new()) };
        self.hunks(repository, ours, base, theirs).await
    }

    /// Finds the lines of `base` that both `ours` and `theirs` have changed.
    async fn hunks(
        &self,
        repository: &Repository,
        ours: &[u8],
        base: &[u8],
        theirs: &[u8],
    ) -> Result<Vec<Hunk>, Problem> {
        let texts = [ours, base, theirs];
        if texts.iter().any(|text| text.contains(&0) || text.len() > HUNK_BYTES) {
            return Ok(Vec::new());
        }
        let size = hunks::marker_size(&texts);
        let place = self.task.join("versions.new");
        fs::create_dir_all(&place).map_err(Problem::io("make", &place))?;
        let files = ["ours", "base", "theirs"].map(|name| place.join(name));
        for (file, text) in files.iter().zip(texts) {
            fs::write(file, text).map_err(Problem::io("write", file))?;
        }
        let mut call = repository.call(&["merge-file", "--stdout", "--diff3", "--quiet"]);
        call = call.with(format!("--marker-size={size}"));
        for label in ["ours", "base", "theirs"] {
            call = call.with("-L").with(label);
        }
        for file in &files {
            call = call.with(file);
        }
        let answer = repository.run(call).await;
        let _ = fs::remove_dir_all(&place);
        let answer = answer?;
        // The exit code is the number of conflicts, but at most 127.
        match answer.code {
            Some(0..=127) => Ok(hunks::hunks(&answer.output, size)),
            _ => Ok(Vec::new()),
        }
    }

    /// Describes a conflict between the merge and an uncommitted change on disk.
    async fn overlap(&self, repository: &Repository, judged: &Judged) -> Result<Conflict, Problem> {
        let Judged { change, disk, old, new, .. } = judged;
        let hunks = match disk {
            Disk::File(bytes, _) => self.hunks(repository, bytes, old, new).await?,
            _ => Vec::new(),
        };
        Ok(Conflict::new(change.path.to_string(), "uncommitted edits", hunks))
    }
}

/// Returns a commit that describes a directory of the person. It contains the files of the person's HEAD, and those
/// changes of polity's merges that are still on disk and not in HEAD. It does not contain uncommitted edits of the
/// person.
pub(super) async fn present(
    repository: &Repository,
    person: &Person,
    directory: &Path,
) -> Result<String, Problem> {
    let (Some(left), Some(left_head)) = (repository.tip(LEFT).await?, repository.tip(LEFT_HEAD).await?)
    else {
        return Ok(person.head.clone());
    };
    let ours: BTreeSet<TreePath> =
        repository.changes(&left_head, &left).await?.into_iter().map(|change| change.path).collect();
    let mut changes = repository.changes(&person.head, &left).await?;
    changes.retain(|change| ours.contains(&change.path));
    // Leave out each file that is the same on disk as in HEAD: the person has discarded the change that polity merged.
    let mut kept = Vec::new();
    let nothing = BTreeSet::new();
    for some in changes.chunks(FILES_AT_ONCE) {
        for judged in journal::judge(repository, directory, some, &nothing).await? {
            if !matches!(judged.step, Step::Change(_)) {
                kept.push((judged.change.path, judged.change.new));
            }
        }
    }
    if person.head == left_head && kept.len() == ours.len() {
        return Ok(left);
    }
    let mut stream = Vec::new();
    let next = NextCommit {
        reference: "refs/polity/present",
        parents: &[&person.head, &left],
        author: Author::agent("polity", "").line(),
        message: "The person's directory before a merge\n",
    };
    let written = next.begin(&mut stream).and_then(|()| snapshot::stream_known(&kept, &mut stream));
    written.map_err(Problem::io("write", Path::new("the stream of a commit")))?;
    // The new commit does not descend from the previous commit of the ref `refs/polity/present`. Git would refuse to
    // move the ref, so the ref is removed first.
    repository.forget("refs/polity/present").await?;
    repository.import(crate::git::Input::Bytes(stream)).await?;
    let present = repository.tip("refs/polity/present").await?;
    present.ok_or_else(|| Problem::Unreadable { command: "fast-import", what: "no commit".to_owned() })
}
