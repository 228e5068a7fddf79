//! The errors of a call to the daemon.

use crate::place::FindError;
use polity_view::Problem;

/// Parses the body of an error answer. If the body is not a [`Problem`] of polity, creates a problem from the HTTP
/// status.
pub(crate) fn problem(status: u16, body: &[u8]) -> Problem {
    serde_json::from_slice(body).map_or_else(
        |_| Problem {
            problem_type: "about:blank".to_owned(),
            title: String::new(),
            status,
            detail: format!("the daemon answered with the status {status}"),
            error: "unknown".to_owned(),
            details: None,
        },
        |read: Problem| Problem { status, ..read },
    )
}

/// Returns the text to show for a problem: its detail; if the problem has no detail, its title; if it has no title,
/// its code.
fn words(problem: &Problem) -> &str {
    let all = [&problem.detail, &problem.title, &problem.error];
    all.into_iter().find(|words| !words.is_empty()).map_or("the daemon refused the request", String::as_str)
}

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The daemon of the data directory cannot be found.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The daemon refused the request.
    #[error("{}", words(.0))]
    Refused(Box<Problem>),
    /// The connection to the daemon broke.
    #[error("lost the connection to the polity at {url}: {reason}")]
    Lost {
        /// Address of the daemon.
        url: String,
        /// The network error with its causes.
        reason: String,
    },
    /// The connection to the daemon broke while the client sent a message.
    #[error(
        "lost the connection to the polity at {url}: {reason}; it may have accepted the message: polity messages shows it"
    )]
    MayBeTaken {
        /// Address of the daemon.
        url: String,
        /// The network error with its causes.
        reason: String,
    },
    /// This version cannot parse the daemon's answer.
    #[error("cannot parse the answer of the polity at {url}: {reason}; is it another version?")]
    Unreadable {
        /// Address of the daemon.
        url: String,
        /// The error of the parser, or the limit that was exceeded.
        reason: String,
    },
    /// A file of the person cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file as the caller gave it.
        path: std::path::PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A segment of the path is empty, `.` or `..`. No id has such a form.
    #[error("not an id: it is empty or consists of dots")]
    NoId,
    /// The HTTP client or a request could not be built.
    #[error("failed to set up the HTTP client: {0}")]
    Setup(String),
}

/// Why a client that waits has no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No daemon is there.
    Gone,
    /// A daemon is there and refuses, or the API in this process fails.
    Unreadable,
}

impl Loss {
    /// Returns the words that tell the person about it, without a period.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Gone => "the daemon has gone; waiting until it is back",
            Self::Unreadable => "the events cannot be read at the moment; trying again",
        }
    }
}

impl Error {
    /// Returns whether no daemon was there to answer.
    pub(crate) fn is_of_absence(&self) -> bool {
        matches!(self, Self::Find(FindError::NotServing(_)) | Self::Lost { .. })
    }

    /// Returns whether the same call may succeed a moment later, with the same daemon or after a restart of the
    /// daemon.
    pub fn may_pass(&self) -> bool {
        match self {
            error if error.is_of_absence() => true,
            // These statuses mean that the daemon cannot use its disk, or that it is shutting down.
            Self::Refused(problem) => matches!(problem.status, 502..=504),
            Self::Find(_)
            | Self::Lost { .. }
            | Self::MayBeTaken { .. }
            | Self::Unreadable { .. }
            | Self::File { .. }
            | Self::NoId
            | Self::Setup(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_read() {
        let check = |body: &str, code: &str, expect: &str| {
            let problem = problem(409, body.as_bytes());
            assert_eq!((problem.status, &*problem.error, words(&problem)), (409, code, expect));
        };
        let whole = r#"{"type": "about:blank", "title": "Conflict", "status": 400, "detail": "the key was used",
            "error": "key_reused"}"#;
        check(whole, "key_reused", "the key was used");
        let without = r#"{"type": "x", "title": "Conflict", "status": 409, "detail": "", "error": "x"}"#;
        check(without, "x", "Conflict");
        check("<html>", "unknown", "the daemon answered with the status 409");
        check("", "unknown", "the daemon answered with the status 409");
    }
}
