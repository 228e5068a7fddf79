//! What can go wrong with a workspace.

use crate::path::BadPath;
use polity_society::refusal::Refusal;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// A failure, or a refusal that the caller can do something about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// The caller is told why not, and what to do.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// Git ended with an error.
    #[error("`git {command}` failed: {errors}")]
    Git { command: String, errors: String },
    /// Git printed something that this version of polity cannot read.
    #[error("`git {command}` printed something that cannot be read: {what}")]
    Unreadable { command: &'static str, what: String },
    /// Git took too long and was killed.
    #[error("`git {command}` did not end in time and was stopped")]
    TooLong { command: String },
    /// Nobody waits for the result any more.
    #[error("it was cancelled")]
    Cancelled,
    /// A repository contains a path that no workspace may have.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// A file or a directory could not be read or written.
    #[error("could not {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// A background thread ended without a result.
    #[error("the work on the files was cut off")]
    CutOff,
}

impl Problem {
    /// Says that the workspace does not allow what the caller wants.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(Refusal::WorkspaceRefused { reason: reason.into() })
    }

    /// Names the operation and the path that an error of the operating system belongs to.
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        if let Problem::Refused(refusal) = problem {
            return refusal;
        }
        let mut reason = problem.to_string();
        let mut source = problem.source();
        while let Some(error) = source {
            reason.push_str(": ");
            reason.push_str(&error.to_string());
            source = error.source();
        }
        Self::ToolFailed { tool: "workspace".to_owned(), reason }
    }
}
