//! The place where the agents of a task work on files and run commands.

use crate::id::{AgentId, TaskId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// At the end of the path of a workspace, this suffix makes the workspace read-only.
pub const READ_ONLY: &str = ":ro";

/// The place where an agent works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The workspace of the task.
    pub root: Root,
    /// The owner of the worktree (a separate copy of the workspace) in which the agent works: the agent itself, or the
    /// nearest agent above it that has a worktree. `None` for the workspace that the agents of the task share.
    pub worktree: Option<AgentId>,
}

/// An agent that works on a task, and where it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The agent.
    pub agent: AgentId,
    /// The task that the agent works on.
    pub task: TaskId,
    /// The name of the agent's role.
    pub role: String,
    /// The place where the agent works.
    pub place: Place,
}

/// The directory of a task's workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Root {
    /// A directory that polity makes when it is first needed.
    #[default]
    Made,
    /// A directory of the person.
    Person {
        /// The absolute path.
        directory: PathBuf,
        /// Whether agents may change the files of the directory.
        access: Access,
    },
}

/// The error for a text that does not name a workspace of the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a workspace is an absolute path, or an absolute path with `:ro` at its end")]
pub struct NoWorkspace;

impl Root {
    /// Reads the workspace that the person named: the absolute path of a directory. `:ro` at the end of the path makes
    /// the workspace read-only.
    pub fn parse(text: &str) -> Result<Self, NoWorkspace> {
        let (path, access) = match text.strip_suffix(READ_ONLY) {
            Some(path) => (path, Access::Read),
            None => (text, Access::Write),
        };
        let directory = PathBuf::from(path);
        let is_plain = !path.contains('\0') && directory.is_absolute();
        if is_plain { Ok(Self::Person { directory, access }) } else { Err(NoWorkspace) }
    }
}

impl fmt::Display for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Made => f.write_str("made by polity"),
            Self::Person { directory, access: Access::Write } => write!(f, "{}", directory.display()),
            Self::Person { directory, access: Access::Read } => {
                write!(f, "{}{READ_ONLY}", directory.display())
            }
        }
    }
}

/// Whether agents may change a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Agents may read and change the files.
    Write,
    /// Agents may only read the files.
    Read,
}

impl Access {
    /// All kinds of access.
    pub const ALL: [Self; 2] = [Self::Write, Self::Read];

    /// Returns the words for a directory of the person with this access. The system message tells them to each agent
    /// that works in such a directory.
    pub fn fact(self) -> &'static str {
        match self {
            Self::Write => "a directory of the user",
            Self::Read => "a directory of the user, read-only",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_an_absolute_path_that_may_be_read_only() {
        let person = |path: &str, access| Ok(Root::Person { directory: path.into(), access });
        assert_eq!(Root::parse("/a b/c"), person("/a b/c", Access::Write));
        assert_eq!(Root::parse("/a:ro"), person("/a", Access::Read));
        assert_eq!(Root::parse("/a:ro:ro"), person("/a:ro", Access::Read));
        for other in ["", ".", "a/b", ":ro", "/a\0b"] {
            assert_eq!(Root::parse(other), Err(NoWorkspace), "{other:?}");
        }
        for text in ["/a", "/a:ro"] {
            assert_eq!(Root::parse(text).unwrap().to_string(), text);
        }
    }
}
