//! The errors of this crate.

use crate::path::BadPath;
use polity_society::refusal::Refusal;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// A failure, or a refusal that tells the caller what to do.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// A refusal that the agent reads.
    #[error("refused: {0:?}")]
    Refused(Refusal),
    /// Git ended with an error. `errors` is its error output.
    #[error("`git {command}` failed: {errors}")]
    Git { command: String, errors: String },
    /// The output of git does not have the expected form.
    #[error("`git {command}` printed something that cannot be read: {what}")]
    Unreadable { command: &'static str, what: String },
    /// Git exceeded the time limit and was killed.
    #[error("`git {command}` did not end in time and was stopped")]
    TooLong { command: String },
    /// The caller cancelled the operation.
    #[error("it was cancelled")]
    Cancelled,
    /// A repository contains a path that polity does not allow in a workspace.
    #[error(transparent)]
    Path(#[from] BadPath),
    #[error("could not {what} {}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// A blocking task panicked or was cancelled.
    #[error("the work on the files was cut off")]
    CutOff,
}

impl Problem {
    /// Makes the refusal that the agent reads, with this reason.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self::Refused(Refusal::WorkspaceRefused { reason: reason.into() })
    }

    /// Makes an error from an operating system error. `what` is the failed operation, such as `read`.
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
