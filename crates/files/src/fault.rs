//! What can go wrong with a file of a workspace.

use crate::path::WorkspacePath;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use std::fmt;
use std::io;

/// What a path leads to.
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
    /// Returns the kind of a file, as the system names it.
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

/// Why an operation on a file of a workspace failed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// There is nothing at the path.
    #[error("{0} does not exist")]
    NotFound(WorkspacePath),
    /// The operation needs a regular file.
    #[error("{path} is {kind}, not a file")]
    NotAFile {
        /// The path.
        path: WorkspacePath,
        /// What is there.
        kind: Kind,
    },
    /// The operation needs a directory, and there or on the way is none.
    #[error("{0} is not a directory, or is below something that is not")]
    NotADirectory(WorkspacePath),
    /// The file is larger than the limit of the operation.
    #[error("{path} has {bytes} bytes; at most {limit} can be read at once")]
    TooLarge {
        /// The path.
        path: WorkspacePath,
        /// Its size.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A symbolic link on the way leads out of the workspace.
    #[error("a symbolic link on the way to {0} leads out of the workspace")]
    Escapes(WorkspacePath),
    /// The path, or a directory on the way to it, is a symbolic link. No write passes through one.
    #[error("{0} is, or is below, a symbolic link; nothing is written through symbolic links")]
    ThroughLink(WorkspacePath),
    /// The workspace is read-only.
    #[error("the workspace is read-only")]
    ReadOnly,
    /// The path is one of those that are never written.
    #[error("{path} is never written: {reason}")]
    Protected {
        /// The path.
        path: WorkspacePath,
        /// Why it is protected.
        reason: &'static str,
    },
    /// The permissions of the file allow nobody to write it.
    #[error("{0} is write-protected by its permissions")]
    WriteProtected(WorkspacePath),
    /// The file does not have the content that the writer expected.
    #[error("{0} has changed")]
    Changed(WorkspacePath),
    /// The operating system refused.
    #[error("cannot {operation} {path}")]
    Io {
        /// What was to be done, such as `read`.
        operation: &'static str,
        /// The path.
        path: WorkspacePath,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl FileError {
    /// Returns the error of an operation, sorted by what the caller can do about it.
    pub(crate) fn new(operation: &'static str, path: &WorkspacePath, source: io::Error) -> Self {
        let path = path.clone();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound(path),
            // A name on the way is a file.
            io::ErrorKind::NotADirectory => Self::NotADirectory(path),
            // cap-std reports a way out as an error that no system call returned.
            io::ErrorKind::PermissionDenied if source.raw_os_error().is_none() => Self::Escapes(path),
            _ => Self::Io { operation, path, source },
        }
    }

    /// Returns the refusal that the model reads. `tool` is the name of the tool that wanted the operation, and `argument`
    /// that of the argument that holds the path.
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
