//! Every way in which a command can fail, with its error message and its exit code. A message is one line; only the
//! message about a configuration has one line for each problem. Section 11 of docs/contract.md defines the exit codes.
//! Only this file assigns an exit code to a failure.

use polity_runtime::{PromptError, SteerError};
use polity_society::id::TaskId;
use polity_store::maintenance::MaintenanceError;
use polity_view::{Outcome, in_full};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Bad usage, configuration or data directory.
pub(crate) const USAGE: u8 = 2;
/// A bug in polity, or a fault of the machine, such as a failing disk or standard output that cannot be written.
const DEFECT: u8 = 1;
const TIMED_OUT: u8 = 124;
const INTERRUPTED: u8 = 130;

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A file that the user wants to attach cannot be read.
    #[error("cannot read {path}: {source}; check the path")]
    Attachment { path: PathBuf, source: std::io::Error },
    /// The path that the user wants to attach or store is a directory, a pipe or another special file.
    #[error("{0} is not a regular file; only files can be attached or stored")]
    NotAFile(PathBuf),
    /// A file is larger than an artifact may be.
    #[error("{path} has {size} bytes; limits.maxArtifactBytes in app.json allows {limit}")]
    AttachmentTooLarge {
        path: PathBuf,
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    Unwritable { path: PathBuf, source: std::io::Error },
    /// The output file exists, and the user did not choose its name, so it must not be overwritten.
    #[error("{0} already exists; choose the file to write with --output")]
    AlreadyThere(PathBuf),
    /// An export could not write all artifacts.
    #[error("{failed} of {all} artifacts could not be written to {dir}")]
    Incomplete {
        failed: usize,
        all: usize,
        /// The directory given with `--with-artifacts`.
        dir: PathBuf,
    },
    /// An argument is not an artifact reference.
    #[error(
        "`{0}` is not an artifact reference: these look like artifact:mmpqmm6wc2, and `polity artifacts` lists them"
    )]
    NoReference(String),
    /// The user asked for a request of one agent, but another agent made the request with this number.
    #[error("request {number} was made by the agent {agent}: polity agent {agent} --sent {number}")]
    NotItsRequest { number: i64, agent: polity_society::id::AgentId },
    /// No agent has the id that the user gave.
    #[error("there is no agent `{0}`: `polity agents` lists the ids")]
    NoAgent(String),
    /// Neither an agent nor a task has the id that the user gave.
    #[error("there is no agent and no task `{0}`: `polity agents` and `polity tasks --all` list the ids")]
    NoAgentOrTask(String),
    /// There is nothing to export.
    #[error("there is no task yet; give a prompt first: polity run \"…\"")]
    NoTask,
    /// The daemon cannot be reached, or refused the request.
    #[error(transparent)]
    Client(#[from] polity_client::Error),
    /// The user pressed Ctrl-C while the daemon works on a task.
    #[error(
        "interrupted; the daemon goes on with {0}: `polity watch` shows its progress, `polity messages --task {0}` its \
         result"
    )]
    LeftWorking(TaskId),
    /// The time limit of `--timeout` passed while the daemon works on a task.
    #[error(
        "stopped waiting because of --timeout; the daemon goes on with {0}: `polity watch` shows its progress"
    )]
    TimedOutWorking(TaskId),
    /// Root is paused, so nobody would work on the prompt. The text is the command that resumes root.
    #[error("root is paused and does nothing until it is resumed: {0}")]
    RootPaused(&'static str),
    /// The user pressed Ctrl-C, and there is nothing to resume.
    #[error("interrupted")]
    Left,
    /// Standard input cannot be read, or is not UTF-8.
    #[error("cannot read the prompt from standard input: {0}; write it as UTF-8 text")]
    StandardInput(std::io::Error),
    /// The user has pasted a suggested command without a text of their own.
    #[error("`…` only stands for your text; write the text in its place")]
    Placeholder,
    /// The directory given with `--config` does not exist.
    #[error("there is no directory {0}; create it, or leave out --config to use the defaults")]
    NoConfig(PathBuf),
    /// The configuration is invalid.
    #[error("{}", problems(.0))]
    Config(#[from] polity_registry::LoadError),
    /// The default configuration files cannot be written into the user's configuration directory.
    #[error("{}; choose another directory with --config", in_full(.0))]
    Defaults(#[from] polity_registry::WriteDefaultsError),
    /// The user's home directory is unknown, so polity cannot find a directory in it. The first text says which kind of
    /// directory polity looked for. The second text is the option with which the user can name this directory.
    #[error("cannot find your {0} directory; choose one with --{1}")]
    NoHome(&'static str, &'static str),
    /// The data directory, or a file of the daemon in it, cannot be read or written.
    #[error("cannot use the data directory {path}: {source}; choose one that you can write to with --data")]
    Data { path: PathBuf, source: std::io::Error },
    /// No daemon serves the data directory, so none can be asked to end.
    #[error("no daemon serves {0}; there is nothing to end")]
    NothingServes(PathBuf),
    /// Another process has locked the data directory.
    #[error(
        "another polity is using the data directory {0}; stop it, or choose another directory with --data"
    )]
    InUse(PathBuf),
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}; {}", listening(source))]
    Listen { address: SocketAddr, source: std::io::Error },
    /// The address is reachable from other machines, but no `--allow-host` gives the host name that these machines use.
    #[error(
        "{0} can be reached from other machines: anyone who has the token could do everything, and the traffic is not \
         encrypted; give the host name that they use with --allow-host, or listen on a loopback address"
    )]
    OpenToOthers(SocketAddr),
    /// The token file does not contain a token.
    #[error(
        "there is no valid token in {0}: a token is one line of at least 32 characters; remove the file, and the next \
         start writes a new one"
    )]
    NoToken(PathBuf),
    /// The directory is not a data directory.
    #[error(
        "there is no society in {0}: nothing was run there yet; give a prompt first: polity run \"…\", or choose \
         another data directory with --data"
    )]
    NoSociety(PathBuf),
    /// The database of the society is gone, but its artifacts are there.
    #[error("{}", lost(.0))]
    Lost(PathBuf),
    /// The data directory was removed or replaced while this process was using it.
    #[error(
        "{0}: the data directory was removed or replaced while polity was using it; nothing more is accepted; put it \
         back or restore a backup, and start polity again"
    )]
    Gone(polity_store::Gone),
    /// Another process is checking, backing up or cleaning the data directory.
    #[error(
        "another polity is checking, backing up or cleaning the data directory {0}; wait until it is done"
    )]
    LookedAfter(PathBuf),
    /// The check, backup or cleaning of the data directory failed.
    #[error("{}", in_full(.0))]
    Maintenance(#[from] MaintenanceError),
    /// The database cannot be opened.
    #[error("{}", in_full(.0))]
    Open(#[source] polity_store::Error),
    /// The society refused the prompt.
    #[error("{}", in_full(.0))]
    Prompt(#[from] PromptError),
    /// The data directory contains no task to resume.
    #[error("there is nothing to resume in {0}; give a prompt instead: polity run \"…\"")]
    NothingToResume(PathBuf),
    /// The reader of standard output has closed the pipe. Never printed.
    #[error("standard output was closed")]
    OutputClosed,
    /// Standard output cannot be written, for example because the disk is full.
    #[error(
        "cannot write to standard output: {0}; `polity run --resume` shows the messages that are missing"
    )]
    Output(std::io::Error),
    /// The time limit of `--timeout` passed, and the society in this process was stopped.
    #[error("stopped by --timeout; `polity run --resume` continues the work")]
    TimedOut,
    /// The user pressed Ctrl-C, and the society in this process was stopped.
    #[error("interrupted; `polity run --resume` continues the work")]
    Interrupted,
    /// The society cannot continue, for example because the disk fails.
    #[error("the society stopped: {0}")]
    Broken(String),
    /// Agents cannot be resumed.
    #[error("cannot resume the agents: {}", in_full(.0))]
    Steer(#[from] SteerError),
    /// The store of the society cannot be read.
    #[error("cannot read what the society has done: {}", in_full(.0))]
    Unreadable(#[from] polity_store::Error),
    /// A bug in polity, or a service of the operating system that failed.
    #[error("{0}")]
    Defect(String),
}

impl Failure {
    /// Returns the failure for an error while writing to standard output.
    pub(crate) fn of_output(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe { Self::OutputClosed } else { Self::Output(error) }
    }

    /// Returns the exit code as docs/contract.md defines it.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Attachment { .. }
            | Self::NotAFile(_)
            | Self::AttachmentTooLarge { .. }
            | Self::StandardInput(_)
            | Self::Placeholder
            | Self::NoConfig(_)
            | Self::Config(_)
            | Self::Defaults(_)
            | Self::NoHome(..)
            | Self::Data { .. }
            | Self::InUse(_)
            | Self::NothingServes(_)
            | Self::Listen { .. }
            | Self::OpenToOthers(_)
            | Self::NoToken(_)
            | Self::NoSociety(_)
            | Self::Lost(_)
            | Self::Gone(_)
            | Self::LookedAfter(_)
            | Self::Maintenance(_)
            | Self::Open(_)
            | Self::Unwritable { .. }
            | Self::AlreadyThere(_)
            | Self::Incomplete { .. }
            | Self::NoReference(_)
            | Self::NotItsRequest { .. }
            | Self::NoAgent(_)
            | Self::NoAgentOrTask(_)
            | Self::NoTask
            | Self::RootPaused(_)
            | Self::NothingToResume(_) => USAGE,
            Self::Client(error) => of_client(error),
            // An error of the store, such as a full disk, is something that the user can correct, so the code is
            // [`USAGE`].
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

/// Returns the exit code for an error of the client that calls the daemon. The user can correct a missing daemon or a
/// refused request, so the code for these is [`USAGE`].
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

/// Returns the exit code for the outcome of an idle task.
pub(crate) fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Answered => 0,
        Outcome::Unanswered => 3,
        Outcome::Limited => 4,
        Outcome::NoModel => 5,
        Outcome::AwaitsUser => 6,
    }
}

/// Advises what to do if the server cannot listen on its address.
fn listening(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{AddrInUse, AddrNotAvailable, PermissionDenied};
    match source.kind() {
        AddrInUse => {
            "another program listens there; choose another port with --listen, or port 0 for any free port"
        }
        AddrNotAvailable => "this machine does not have this address; choose one that it has with --listen",
        PermissionDenied => "choose a port of 1024 or higher with --listen",
        _ => "choose another address with --listen",
    }
}

/// Returns the error message for a lost database. The store uses the same message when a society starts.
fn lost(data: &std::path::Path) -> String {
    polity_store::Error::Lost { data: data.to_owned() }.to_string()
}

/// Lists the problems of a configuration, one per line.
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
