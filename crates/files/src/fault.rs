//! The errors of operations on files of a workspace.

use crate::path::WorkspacePath;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use std::fmt;
use std::io;

/// The type of what exists at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A pipe, a socket or a device.
    Special,
}

impl Kind {
    /// Converts the file type of the operating system.
    pub fn of(kind: cap_std::fs::FileType) -> Self {
        if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Directory
        } else if kind.is_symlink() {
            Self::Link
        } else {
            Self::Special
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File => "a file",
            Self::Directory => "a directory",
            Self::Link => "a symbolic link",
            Self::Special => "a pipe, a socket or a device",
        })
    }
}

/// Why an operation on a file of a workspace failed. The operation has not changed the file, with one exception. The
/// last step of a write is the sync of the directory. If this step fails, the new file is already in place.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path does not exist.
    #[error("{0} does not exist")]
    NotFound(WorkspacePath),
    /// The operation needs a regular file.
    #[error("{path} is {kind}, not a file")]
    NotAFile {
        /// The path that the operation was given.
        path: WorkspacePath,
        /// The type of what exists at the path.
        kind: Kind,
    },
    /// The operation needs a directory, but the path leads to something else. Or a component of the path exists and is
    /// not a directory.
    #[error("{0} is not a directory, or is below something that is not")]
    NotADirectory(WorkspacePath),
    /// The file is larger than the limit of the operation.
    #[error("{path} has {bytes} bytes; at most {limit} can be read at once")]
    TooLarge {
        /// The path that the operation was given.
        path: WorkspacePath,
        /// The size of the file in bytes.
        bytes: u64,
        /// The maximum size in bytes for this operation.
        limit: u64,
    },
    /// A symbolic link in the path leads out of the workspace.
    #[error("a symbolic link on the way to {0} leads out of the workspace")]
    Escapes(WorkspacePath),
    /// Writes never follow symbolic links, but the path or a directory in the path is a symbolic link.
    #[error("{0} is, or is below, a symbolic link; nothing is written through symbolic links")]
    ThroughLink(WorkspacePath),
    /// The workspace is read-only.
    #[error("the workspace is read-only")]
    ReadOnly,
    /// The path is in the list of paths that agents' tools never write.
    #[error("{path} is never written: {reason}")]
    Protected {
        /// The path that the operation was given.
        path: WorkspacePath,
        /// Why agents' tools never write this path.
        reason: &'static str,
    },
    /// The file is read-only: its permissions do not allow any user to write it.
    #[error("{0} is write-protected by its permissions")]
    WriteProtected(WorkspacePath),
    /// The file does not have the content that the caller expected.
    #[error("{0} has changed")]
    Changed(WorkspacePath),
    /// Another error of the operating system.
    #[error("cannot {operation} {path}")]
    Io {
        /// The failed operation, such as `read`.
        operation: &'static str,
        /// The path that the operation was given.
        path: WorkspacePath,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl FileError {
    /// Chooses the variant for an error of the operating system, so that the refusal gives the right advice.
    pub(crate) fn new(operation: &'static str, path: &WorkspacePath, source: io::Error) -> Self {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            // A component of the path is a file.
            io::ErrorKind::NotADirectory => Self::NotADirectory(path),
            // Without an error code of the system, this error comes from cap-std itself, which returns it if a path
            // leads out of the directory.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => Self::Escapes(path),
            _ => Self::Io { operation, path, source },
        }
    }

    /// Returns the refusal that the model reads. `tool` is the name of the tool. `argument` is the name of the argument
    /// in which the model gave the path.
    pub fn into_refusal(self, tool: &str, argument: &str) -> Refusal {
        match self {
            Self::NotFound(_) | Self::NotAFile { .. } | Self::NotADirectory(_) | Self::TooLarge { .. } => {
                let problem = FieldProblem::new(argument, Fault::Rule(self.to_string()));
                Refusal::InvalidArguments(vec![problem])
            }
            Self::Escapes(_)
            | Self::ThroughLink(_)
            | Self::ReadOnly
            | Self::Protected { .. }
            | Self::WriteProtected(_) => Refusal::WorkspaceRefused { reason: self.to_string() },
            Self::Changed(path) => Refusal::FileChanged { path: path.to_string() },
            Self::Io { ref source, .. } => {
                let reason = format!("{self}: {source}");
                Refusal::ToolFailed { tool: tool.to_owned(), reason }
            }
        }
    }
}
