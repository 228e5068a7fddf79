//! Why a daemon did not do what it was asked.

use crate::place::FindError;
use polity_runtime::view::Problem;

/// Reads the body of an answer that is an error; one that is no problem of ours is told by its status alone.
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

/// What people read of a problem: what is known of this case, else of its kind.
fn words(problem: &Problem) -> &str {
    let all = [&problem.detail, &problem.title, &problem.error];
    all.into_iter().find(|words| !words.is_empty()).map_or("the daemon says no", String::as_str)
}

/// A failure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nobody to ask.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The daemon says no.
    #[error("{}", words(.0))]
    Refused(Box<Problem>),
    /// The way to the daemon broke.
    #[error("lost the way to the polity at {url}: {reason}")]
    Lost {
        /// Where it was.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The way to the daemon broke while a message was sent.
    #[error(
        "lost the way to the polity at {url}: {reason}; the message may have been taken: polity messages shows it"
    )]
    MayBeTaken {
        /// Where it was.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The daemon answered with something else than what this version reads.
    #[error("cannot read what the polity at {url} answered: {reason}; is it another version?")]
    Unreadable {
        /// Where it is.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of the person cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What was named cannot be an id.
    #[error("that is no id")]
    NoId,
    /// There is no HTTP client.
    #[error("failed to set up the HTTP client: {0}")]
    Setup(String),
}

impl Error {
    /// Whether the same may succeed a moment later, with the same daemon or the next one.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Find(FindError::NotServing(_)) | Self::Lost { .. } => true,
            // The disk refuses, or the daemon is about to end.
            Self::Refused(problem) => matches!(problem.status, 502..=504),
            Self::Find(_)
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
