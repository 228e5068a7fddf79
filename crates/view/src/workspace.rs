//! The files of a task's workspaces, and who changed them.

use polity_society::id::{AgentId, CallId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A filter that selects a workspace of a task, and a path in this workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkspaceFilter {
    /// The workspace in which this agent works: its worktree, or else the workspace that the agents of the task share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The path of a directory or a file; the workspace itself by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What is at a path of a workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceView {
    /// The path of the person's directory, with `:ro` at the end if agents may only read the directory. The field
    /// `workspace` of a message has the same form. Absent if polity makes the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The owner of the worktree that is shown. Absent for the workspace that the agents of the task share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<AgentId>,
    /// The path below the workspace; `.` for the workspace itself.
    pub path: String,
    /// What is at the path.
    pub content: WorkspaceContent,
}

/// A directory or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum WorkspaceContent {
    /// A directory. A workspace that no agent has used yet is shown as an empty directory.
    Directory {
        /// The entries, sorted by name.
        entries: Vec<WorkspaceEntry>,
        /// Number of entries that were left out.
        left_out: u64,
    },
    /// A file that contains text.
    Text {
        /// The text, or its beginning.
        text: String,
        /// How many bytes of the file are in `text`.
        shown: u64,
        /// The size of the file in bytes.
        size: u64,
    },
    /// A file that contains no text.
    Binary {
        /// The size of the file in bytes.
        size: u64,
    },
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceEntry {
    /// The name.
    pub name: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The size of a file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// The kind of an entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

/// A filter for changes in the workspaces of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangesFilter {
    /// Only commits of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Only the commit with this id. The answer then contains the differences of this commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// What agents have changed in the workspaces of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangesView {
    /// Which changes polity records in this task.
    pub recording: RecordingView,
    /// The agents that have had a worktree of their own.
    pub worktrees: Vec<AgentId>,
    /// The commits, the latest first, at most 500.
    pub commits: Vec<CommitView>,
    /// The differences, file by file, if the filter names a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<FileDiffView>>,
    /// What agents wrote with the tools for files where no commit shows it: in a directory of the person, and without
    /// git. The latest first, at most 200 changes and a megabyte of differences. What commands changed is not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<EditView>,
}

/// What one call of a tool for files wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EditView {
    /// The agent that made the call.
    pub agent: AgentId,
    /// The number of the turn that made the call.
    pub turn: i64,
    /// The id of the call.
    pub call: CallId,
    /// The time of the call.
    pub at: i64,
    /// The path of the file.
    pub path: String,
    /// Whether the call added or changed the file.
    pub change: FileChangeView,
    /// The difference in the unified format; empty if the file is not text. A difference that is too long is cut, and
    /// ends with `…`.
    pub patch: String,
}

/// What polity records as git commits in the workspaces of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordingView {
    /// Each turn that changes something ends with a commit.
    Turns,
    /// The workspace is a directory of the person. Polity makes no commits there, but only in agents' own worktrees.
    Worktrees,
    /// Git is missing or too old on this machine, so there are no commits.
    Nothing,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitView {
    /// The full git hash of the commit.
    pub id: String,
    /// The author: an agent's id, or `polity` for a commit of the system.
    pub agent: String,
    /// The owner of the worktree that the commit was made in. Absent for the workspace that the agents of the task
    /// share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<AgentId>,
    /// The first line of the commit's message.
    pub message: String,
    /// The number of the turn that ended with the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<i64>,
    /// The time of the commit.
    pub at: i64,
    /// The paths of the files that the commit changed.
    pub files: Vec<String>,
}

/// What a commit changed in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileDiffView {
    /// The path of the file.
    pub path: String,
    /// Whether the commit added, changed or deleted the file.
    pub change: FileChangeView,
    /// The difference in the unified format. A difference that is too long is cut, and ends with `…`.
    pub patch: String,
}

/// Whether a commit or a call added, changed or deleted a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileChangeView {
    /// The file is new.
    Added,
    /// The content or the kind of the file is different.
    Changed,
    /// The file is gone.
    Deleted,
}
