//! Why the program ends without having done what it was asked: a line for the person, more where a configuration has
//! more problems, and the exit code of contract section 11. Whose fault it is, is decided here and nowhere else.

use polity_runtime::maintenance::MaintenanceError;
use polity_runtime::{Outcome, PromptError, SteerError, in_full};
use polity_society::id::TaskId;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bad usage, configuration or data directory.
pub(crate) const USAGE: u8 = 2;
/// A defect of polity, or of what it runs on: the disk, the place that standard output goes to.
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
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is there already, and its name is not one that the person chose.
    #[error("{0} is there already; name the file to write with --output")]
    AlreadyThere(PathBuf),
    /// Not all that was asked for was written.
    #[error("{failed} of {all} artifacts could not be written to {dir}")]
    Incomplete {
        /// How many are missing.
        failed: usize,
        /// How many there are.
        all: usize,
        /// Where they were to be.
        dir: PathBuf,
    },
    /// What was named is no artifact.
    #[error(
        "`{0}` is no reference of an artifact; they look like artifact:mmpqmm6wc2, and `polity artifacts` lists them"
    )]
    NoReference(String),
    /// There is nothing to export.
    #[error("there is no task yet; give a prompt first: polity run \"…\"")]
    NoTask,
    /// The daemon cannot be asked, or says no.
    #[error(transparent)]
    Client(#[from] polity_client::Error),
    /// Somebody pressed Ctrl-C while a daemon works.
    #[error(
        "left; the daemon goes on with {0}: polity watch shows it, polity messages --task {0} what came of it"
    )]
    LeftWorking(TaskId),
    /// The time is over while a daemon works.
    #[error("stopped waiting because of --timeout; the daemon goes on with {0}: polity watch shows it")]
    TimedOutWorking(TaskId),
    /// Nobody would do anything.
    #[error("root is paused and does nothing until it is resumed: {0}")]
    RootPaused(&'static str),
    /// Somebody pressed Ctrl-C while something was shown.
    #[error("interrupted")]
    Left,
    /// Standard input is not text.
    #[error("cannot read the prompt from standard input: {0}; write it as UTF-8 text")]
    StandardInput(std::io::Error),
    /// There is no such configuration directory.
    #[error("there is no directory {0}; make it, or leave --config out to use the defaults")]
    NoConfig(PathBuf),
    /// The configuration cannot be used.
    #[error("{}", problems(.0))]
    Config(#[from] polity_registry::LoadError),
    /// The defaults cannot be written.
    #[error("{}; name another directory with --config", in_full(.0))]
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
    /// Nobody can listen there.
    #[error("cannot listen on {address}: {source}; {}", listening(source))]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// Other machines would reach it, and nobody has said under which name.
    #[error(
        "{0} can be reached from other machines: whoever has the token could do everything there, and what is said is not encrypted; \
         name the host by which they reach it with --allow-host, or listen on a loopback address"
    )]
    OpenToOthers(SocketAddr),
    /// The token cannot be used.
    #[error(
        "there is no token in {0}: a token is one line of 32 characters or more; remove the file, and a new one is made"
    )]
    NoToken(PathBuf),
    /// Nothing is stored there.
    #[error(
        "there is no society in {0}: nothing was run there yet; give a prompt first: polity run \"…\", or name the \
         directory where one lives with --data"
    )]
    NoSociety(PathBuf),
    /// Somebody else looks after the data directory.
    #[error(
        "another polity is checking, backing up or cleaning the data directory {0}; wait until it is done"
    )]
    LookedAfter(PathBuf),
    /// The data directory cannot be looked after.
    #[error("{}", in_full(.0))]
    Maintenance(#[from] MaintenanceError),
    /// The database cannot be opened.
    #[error("{}", in_full(.0))]
    Open(#[source] polity_runtime::Error),
    /// The prompt was not taken.
    #[error("{}", in_full(.0))]
    Prompt(#[from] PromptError),
    /// There is nothing to go on with.
    #[error("there is nothing to resume in {0}; give a prompt instead: polity run \"…\"")]
    NothingToResume(PathBuf),
    /// Whoever read standard output has gone.
    #[error("standard output was closed")]
    OutputClosed,
    /// Standard output takes no more.
    #[error("cannot write to standard output: {0}; `polity run --resume` shows what is missing")]
    Output(std::io::Error),
    /// The time is over.
    #[error("stopped by --timeout; `polity run --resume` goes on")]
    TimedOut,
    /// Somebody pressed Ctrl-C.
    #[error("interrupted; `polity run --resume` goes on")]
    Interrupted,
    /// The society stopped.
    #[error("the society stopped: {0}")]
    Broken(String),
    /// Agents cannot be resumed.
    #[error("cannot let agents go on: {}", in_full(.0))]
    Steer(#[from] SteerError),
    /// What the society has written cannot be read.
    #[error("cannot tell what the society has done: {}", in_full(.0))]
    Unreadable(#[from] polity_runtime::Error),
    /// Nobody but us is to blame.
    #[error("{0}")]
    Defect(String),
}

impl Failure {
    /// What it means that standard output could not be written to.
    pub(crate) fn of_output(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::Output(error) }
    }

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
            | Self::Listen { .. }
            | Self::OpenToOthers(_)
            | Self::NoToken(_)
            | Self::NoSociety(_)
            | Self::LookedAfter(_)
            | Self::Maintenance(_)
            | Self::Open(_)
            | Self::Unwritable { .. }
            | Self::AlreadyThere(_)
            | Self::Incomplete { .. }
            | Self::NoReference(_)
            | Self::NoTask
            | Self::RootPaused(_)
            | Self::NothingToResume(_) => USAGE,
            Self::Client(error) => of_client(error),
            // The data directory cannot be used, as a start shows that cannot write to it.
            Self::Prompt(PromptError::Store(error))
            | Self::Steer(SteerError::Store(error))
            | Self::Unreadable(error)
                if error.may_pass() =>
            {
                USAGE
            }
            Self::Prompt(PromptError::Store(_)) => DEFECT,
            Self::Prompt(_) => USAGE,
            Self::OutputClosed | Self::Interrupted | Self::Left | Self::LeftWorking(_) => INTERRUPTED,
            Self::TimedOut | Self::TimedOutWorking(_) => TIMED_OUT,
            Self::Output(_) | Self::Broken(_) | Self::Steer(_) | Self::Unreadable(_) | Self::Defect(_) => {
                DEFECT
            }
        }
    }
}

/// Whose fault it is that a daemon could not be asked: that it is not there, or says no, is for the person to mend.
fn of_client(error: &polity_client::Error) -> u8 {
    match error {
        polity_client::Error::Refused(problem) if problem.status == 500 => DEFECT,
        polity_client::Error::Find(_)
        | polity_client::Error::Refused(_)
        | polity_client::Error::Lost { .. }
        | polity_client::Error::MayBeTaken { .. }
        | polity_client::Error::File { .. }
        | polity_client::Error::NoId => USAGE,
        polity_client::Error::Unreadable { .. } | polity_client::Error::Setup(_) => DEFECT,
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

/// What to do where nobody can listen.
fn listening(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    match source.kind() {
        AddrInUse => {
            "another program listens there; name another port with --listen, or port 0 for any that is free"
        }
        AddrNotAvailable => "this machine has no such address; name one of its own with --listen",
        PermissionDenied => "name a port from 1024 on with --listen",
        _ => "name another address with --listen",
    }
}

/// The problems of a configuration, a line each.
fn problems(error: &polity_registry::LoadError) -> String {
    if let [problem] = error.problems.as_slice() {
        return format!("cannot use the configuration in {}: {problem}", error.config_dir.display());
    }
    let mut text = format!("cannot use the configuration in {}:", error.config_dir.display());
    for problem in &error.problems {
        text.push_str(&format!("\n{problem}"));
    }
    text
}
