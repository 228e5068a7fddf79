//! What the person sees of a task's workspaces: the files, and who changed them.

use super::Society;
use polity_files::{FileError, Kind, Workspace};
use polity_hands::call::Place;
use polity_hands::files::{BrowseError, Browsed, browse};
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_society::workspace::Root;
use polity_store::{Error, agents, tasks, view};
use polity_view::{
    ChangesFilter, ChangesView, CommitView, EditView, EntryKind, FileChangeView, FileDiffView, RecordingView,
    WorkspaceContent, WorkspaceEntry, WorkspaceFilter, WorkspaceView,
};
use polity_workspaces::{FileChange, History, Recording, WorktreeCommit};

/// Why the files of a task cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is no such task.
    #[error("there is no task `{0}`")]
    NoTask(TaskId),
    /// There is no such agent.
    #[error("there is no agent `{0}`")]
    NoAgent(AgentId),
    /// There is no such commit.
    #[error("the task has no commit `{0}`; give the whole name of a commit")]
    NoCommit(String),
    /// There is no such file or directory.
    #[error("{0} does not exist in the workspace")]
    NoFile(String),
    /// The rules for workspaces refuse the path, or the file cannot be read.
    #[error("{message}")]
    Refused {
        /// The stable code of the refusal.
        code: &'static str,
        /// The refusal in words.
        message: String,
    },
    /// The database could not be read.
    #[error("failed to read the task")]
    Store(#[from] Error),
}

impl Society {
    /// Returns the file or directory at a path in a workspace of a task. A workspace that no agent has used yet is
    /// shown as an empty directory.
    pub async fn workspace(
        &self,
        task: &TaskId,
        filter: &WorkspaceFilter,
    ) -> Result<WorkspaceView, WorkspaceError> {
        let place = self.place(task, filter.agent.as_ref()).await?;
        let path = filter.path.clone().unwrap_or_else(|| ".".to_owned());
        let shown = |path, content| WorkspaceView {
            workspace: (place.root != Root::Made).then(|| place.root.to_string()),
            worktree: place.worktree.clone(),
            path,
            content,
        };
        let present = match self.handles.hands.workspaces() {
            Some(workspaces) => {
                workspaces.present(task, &place).map_err(|refusal| self.workspace_refused(&refusal))?
            }
            None => None,
        };
        let Some((directory, access)) = present else {
            let nothing = WorkspaceContent::Directory { entries: Vec::new(), left_out: 0 };
            return if path == "." { Ok(shown(path, nothing)) } else { Err(WorkspaceError::NoFile(path)) };
        };
        let browsed = tokio::task::spawn_blocking(move || {
            let refused = |message| WorkspaceError::Refused { code: "workspace_refused", message };
            let workspace =
                Workspace::open(&directory, access).map_err(|error| refused(error.to_string()))?;
            browse(&workspace, &path).map_err(|error| match error {
                BrowseError::File(FileError::NotFound(path)) => WorkspaceError::NoFile(path.to_string()),
                error @ (BrowseError::File(_) | BrowseError::Path(_)) => refused(error.to_string()),
            })
        });
        let cut_off = |_| WorkspaceError::Refused {
            code: "workspace_refused",
            message: "the work on the files was cut off".to_owned(),
        };
        let (path, browsed) = browsed.await.map_err(cut_off)??;
        Ok(shown(path.to_string(), content(browsed)))
    }

    /// Agents change files in the workspaces of a task. Returns those of their changes that git has recorded. Where git
    /// records nothing, returns what the tools for files wrote.
    pub async fn changes(
        &self,
        task: &TaskId,
        filter: &ChangesFilter,
    ) -> Result<ChangesView, WorkspaceError> {
        let root = self.place(task, filter.agent.as_ref()).await?.root;
        let Some(workspaces) = self.handles.hands.workspaces() else {
            let nothing = RecordingView::Nothing;
            return Ok(ChangesView {
                recording: nothing,
                worktrees: Vec::new(),
                commits: Vec::new(),
                files: None,
                edits: Vec::new(),
            });
        };
        let cancel = &self.stop;
        let refused = |refusal| self.workspace_refused(&refusal);
        let History { recording, worktrees, commits } =
            workspaces.history(task, &root, cancel).await.map_err(refused)?;
        let wanted = |found: &WorktreeCommit| {
            filter.agent.as_ref().is_none_or(|agent| found.commit.agent == agent.as_str())
                && filter.commit.as_ref().is_none_or(|commit| found.commit.id == *commit)
        };
        let commits: Vec<CommitView> = commits.into_iter().filter(wanted).map(commit_view).collect();
        let files = match (&filter.commit, commits.is_empty()) {
            (None, _) => None,
            (Some(commit), true) => return Err(WorkspaceError::NoCommit(commit.clone())),
            (Some(commit), false) => {
                let files = workspaces.patch(task, commit, cancel).await.map_err(refused)?;
                let files = files.ok_or_else(|| WorkspaceError::NoCommit(commit.clone()))?;
                Some(files.into_iter().map(diff_view).collect())
            }
        };
        let (recording, commits_show_all) = match recording {
            Recording::Turns => (RecordingView::Turns, true),
            Recording::Worktrees => (RecordingView::Worktrees, false),
            Recording::Nothing => (RecordingView::Nothing, false),
        };
        let edits = if commits_show_all || filter.commit.is_some() {
            Vec::new()
        } else {
            self.edits(task, filter.agent.as_ref()).await?
        };
        Ok(ChangesView { recording, worktrees, commits, files, edits })
    }

    /// Returns what agents wrote with the tools for files in the workspace that they share. Commits show what agents
    /// wrote in worktrees.
    async fn edits(&self, task: &TaskId, agent: Option<&AgentId>) -> Result<Vec<EditView>, WorkspaceError> {
        let mut reader = self.handles.store.reader().await?;
        let callers = match agent {
            Some(agent) => vec![agent.clone()],
            None => view::edits::callers(&mut reader, task).await?,
        };
        let mut sharing = Vec::new();
        for caller in callers {
            if agents::worktree(&mut reader, &caller).await?.is_none() {
                sharing.push(caller);
            }
        }
        Ok(view::edits::of_agents(&mut reader, task, &sharing).await?)
    }

    /// Returns the place in which an agent works on a task. Without an agent, returns the place that the agents of
    /// the task share.
    async fn place(&self, task: &TaskId, agent: Option<&AgentId>) -> Result<Place, WorkspaceError> {
        let mut reader = self.handles.store.reader().await?;
        if !tasks::exists(&mut reader, task).await? {
            return Err(WorkspaceError::NoTask(task.clone()));
        }
        let root = tasks::workspace(&mut reader, task).await?;
        let Some(agent) = agent else { return Ok(Place { root, worktree: None }) };
        if !agents::exists(&mut reader, agent.as_str()).await? {
            return Err(WorkspaceError::NoAgent(agent.clone()));
        }
        let worktree = agents::worktree(&mut reader, agent).await?.map(|(owner, _)| owner);
        Ok(Place { root, worktree })
    }

    fn workspace_refused(&self, refusal: &Refusal) -> WorkspaceError {
        let snapshot = self.handles.registry.current();
        WorkspaceError::Refused { code: refusal.code(), message: refusal.message(&snapshot.prompts.texts) }
    }
}

fn content(browsed: Browsed) -> WorkspaceContent {
    match browsed {
        Browsed::Directory(listed) => {
            let entry = |entry: polity_files::Entry| WorkspaceEntry {
                name: entry.name,
                kind: match entry.kind {
                    Kind::File => EntryKind::File,
                    Kind::Directory => EntryKind::Directory,
                    Kind::Link => EntryKind::Link,
                    Kind::Special => EntryKind::Special,
                },
                size: entry.bytes,
            };
            WorkspaceContent::Directory {
                entries: listed.entries.into_iter().map(entry).collect(),
                left_out: listed.left_out as u64,
            }
        }
        Browsed::Text { text, shown, bytes } => WorkspaceContent::Text { text, shown, size: bytes },
        Browsed::Binary { bytes } => WorkspaceContent::Binary { size: bytes },
    }
}

fn commit_view(found: WorktreeCommit) -> CommitView {
    let WorktreeCommit { worktree, commit } = found;
    CommitView {
        id: commit.id,
        agent: commit.agent,
        worktree,
        message: commit.message,
        turn: commit.turn,
        at: commit.time.saturating_mul(1000),
        files: commit.files,
    }
}

fn diff_view(diff: polity_workspaces::FileDiff) -> FileDiffView {
    let change = match diff.change {
        FileChange::Added => FileChangeView::Added,
        FileChange::Changed => FileChangeView::Changed,
        FileChange::Deleted => FileChangeView::Deleted,
    };
    FileDiffView { path: diff.path, change, patch: diff.patch }
}
