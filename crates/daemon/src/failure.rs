//! Why the program ends without having done what it was asked: one line for the person, and the exit code of contract
//! section 11. Whose fault it is, is decided here and nowhere else.

use polity_runtime::{Outcome, PromptError};
use std::path::PathBuf;

/// Bad usage, configuration or data directory.
pub(crate) const USAGE: u8 = 2;
const DEFECT: u8 = 1;
const TIMED_OUT: u8 = 124;
const INTERRUPTED: u8 = 130;

/// A failure.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file that the person named cannot be read.
    #[error("cannot read {path}: {source}; check the path of --attach")]
    Attachment {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What the person named is no file.
    #[error("{0} is not a regular file; attach files only")]
    NotAFile(PathBuf),
    /// A file is larger than an artifact may be.
    #[error("{path} has {size} bytes; limits.maxArtifactBytes in app.json allows {limit}")]
    AttachmentTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Standard input is not text.
    #[error("cannot read the prompt from standard input: {0}")]
    StandardInput(std::io::Error),
    /// There is no such configuration directory.
    #[error("there is no directory {0}; make it, or leave --config out to use the defaults")]
    NoConfig(PathBuf),
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(#[from] polity_registry::LoadError),
    /// The defaults cannot be written.
    #[error("cannot write the default configuration: {0}; name another directory with --config")]
    Defaults(#[from] polity_registry::WriteDefaultsError),
    /// The home directory is not known.
    #[error("cannot tell where your {0} directory is; name one with --{1}")]
    NoHome(&'static str, &'static str),
    /// The data directory cannot be used.
    #[error("cannot use the data directory {path}: {source}; name one that you can write to with --data")]
    Data {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another process has the data directory.
    #[error("another polity is using the data directory {0}; stop it, or name another directory with --data")]
    InUse(PathBuf),
    /// The database cannot be opened.
    #[error("{}", chain(.0))]
    Open(#[source] polity_runtime::Error),
    /// The prompt was not taken.
    #[error("{}", chain(.0))]
    Prompt(#[from] PromptError),
    /// There is nothing to go on with.
    #[error("there is nothing to resume in {0}; give a prompt instead: polity run \"…\"")]
    NothingToResume(PathBuf),
    /// Standard output was closed.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] std::io::Error),
    /// The time is over.
    #[error("stopped by --timeout; `polity run --resume` goes on")]
    TimedOut,
    /// Somebody pressed Ctrl-C.
    #[error("interrupted; `polity run --resume` goes on")]
    Interrupted,
    /// The society stopped.
    #[error("the society stopped: {0}")]
    Broken(String),
    /// Nobody but us is to blame.
    #[error("{0}")]
    Defect(String),
}

impl Failure {
    /// The exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Attachment { .. }
            | Self::NotAFile(_)
            | Self::AttachmentTooLarge { .. }
            | Self::StandardInput(_)
            | Self::NoConfig(_)
            | Self::Config(_)
            | Self::Defaults(_)
            | Self::NoHome(..)
            | Self::Data { .. }
            | Self::InUse(_)
            | Self::Open(_)
            | Self::NothingToResume(_) => USAGE,
            Self::Prompt(PromptError::Store(_)) => DEFECT,
            Self::Prompt(_) => USAGE,
            Self::Output(_) | Self::Interrupted => INTERRUPTED,
            Self::TimedOut => TIMED_OUT,
            Self::Broken(_) | Self::Defect(_) => DEFECT,
        }
    }
}

/// The exit code of a task that has nothing left to do.
pub(crate) fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Answered => 0,
        Outcome::Unanswered => 3,
        Outcome::Limited => 4,
        Outcome::NoModel => 5,
        Outcome::AwaitsUser => 6,
    }
}

/// An error with all that caused it, in one line. Some errors say what caused them themselves.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
