//! Runs the program `git` so that no program that a repository names can run.
//!
//! Git serves as a store of objects and as the engine of merges, and nothing else. It always works on a repository whose
//! configuration polity wrote and no agent can change. It never looks at the files of a workspace that agents can
//! change, so no filter, submodule, monitor or attribute of such a workspace is ever asked. A person's own repository is
//! only asked for its HEAD, and told the branches of agents (`person.rs`).

use crate::problem::Problem;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Longest time that one command of git may take. Large repositories need minutes.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Longest part of git's error output that is kept, in bytes.
const ERROR_BYTES: usize = 2_000;

/// The oldest version that merges without a working directory (`merge-tree --write-tree`).
const OLDEST: (u32, u32) = (2, 38);

/// Settings that beat those of every configuration file. Each switches off a program or a side effect.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.alternateRefsCommand=true",
    "core.autocrlf=false",
    "core.quotePath=false",
    "credential.helper=",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "diff.ignoreSubmodules=all",
    "submodule.recurse=false",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "merge.conflictStyle=merge",
    "advice.detachedHead=false",
];

/// The program `git`.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
}

/// Whether this machine has a git that polity can use.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// There is none.
    Missing,
    /// It is older than [`OLDEST`]. The text is its version.
    TooOld(String),
    /// It can be used.
    Usable(Git),
}

/// What a command of git reads from its standard input.
pub(crate) enum Input {
    /// Nothing.
    Nothing,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The content of a file.
    File(File),
}

/// One command of git.
pub(crate) struct Call<'a> {
    directory: &'a Path,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    input: Input,
}

impl<'a> Call<'a> {
    /// Makes a command on the repository in this directory.
    pub(crate) fn on(directory: &'a Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Self { directory, arguments, environment: Vec::new(), input: Input::Nothing }
    }

    /// Adds an argument that need not be UTF-8.
    pub(crate) fn with(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds an environment variable.
    pub(crate) fn set(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Sets what the command reads.
    pub(crate) fn reading(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    fn name(&self) -> String {
        self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// The result of a command.
pub(crate) struct Answer {
    /// The exit code, or `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    /// The standard output.
    pub(crate) output: Vec<u8>,
    errors: Vec<u8>,
    command: String,
}

impl Answer {
    /// Returns the output if the command succeeded.
    pub(crate) fn succeeded(self) -> Result<Vec<u8>, Problem> {
        if self.code == Some(0) { Ok(self.output) } else { Err(self.failed()) }
    }

    /// Returns the error that says what git wrote.
    pub(crate) fn failed(self) -> Problem {
        let Self { code, errors, command, .. } = self;
        let mut errors = String::from_utf8_lossy(&errors).trim().to_owned();
        if errors.is_empty() {
            errors = code.map_or_else(|| "it was killed".to_owned(), |code| format!("exit code {code}"));
        }
        Problem::Git { command, errors }
    }
}

impl Git {
    /// Looks for git on the path of the daemon.
    pub(crate) async fn find() -> Found {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let candidates = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
        let Some(program) = candidates.map(|directory| directory.join("git")).find(|file| file.is_file())
        else {
            return Found::Missing;
        };
        let git = Self { program };
        let call = Call::on(Path::new("/"), &["version"]);
        let Ok(output) = git.run(call, &CancellationToken::new()).await.and_then(Answer::succeeded) else {
            // On macOS, `git` may be a stub that only asks to install the real one.
            return Found::Missing;
        };
        let version = String::from_utf8_lossy(&output).trim().trim_start_matches("git version ").to_owned();
        match version_of(&version) {
            Some(number) if number >= OLDEST => Found::Usable(git),
            _ => Found::TooOld(version),
        }
    }

    /// Runs a command and returns how it ended. The command is killed if nobody waits for it any more.
    pub(crate) async fn run(&self, call: Call<'_>, cancel: &CancellationToken) -> Result<Answer, Problem> {
        let command = call.name();
        tokio::select! {
            () = cancel.cancelled() => Err(Problem::Cancelled),
            ended = tokio::time::timeout(COMMAND_TIMEOUT, self.run_to_end(call)) => {
                ended.unwrap_or(Err(Problem::TooLong { command }))
            }
        }
    }

    async fn run_to_end(&self, call: Call<'_>) -> Result<Answer, Problem> {
        let name = call.name();
        let failed = |source| Problem::Io { what: "run", path: self.program.clone(), source };
        let mut command = Command::new(&self.program);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(FIXED_ENVIRONMENT.iter().copied());
        command.env("GIT_DIR", call.directory).env("HOME", "/dev/null").current_dir(call.directory);
        command.envs(call.environment);
        command.args(["--no-pager", "--no-optional-locks", "--literal-pathspecs"]);
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(call.arguments).process_group(0).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let bytes = match call.input {
            Input::Nothing => {
                command.stdin(Stdio::null());
                None
            }
            Input::Bytes(bytes) => {
                command.stdin(Stdio::piped());
                Some(bytes)
            }
            Input::File(file) => {
                command.stdin(Stdio::from(file));
                None
            }
        };
        let mut child = command.spawn().map_err(failed)?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let write = async {
            if let (Some(mut stdin), Some(bytes)) = (stdin, bytes) {
                // A command that fails stops reading. Its own error says more than the broken pipe.
                let _ = stdin.write_all(&bytes).await;
            }
            Ok(())
        };
        let read = async {
            let mut output = Vec::new();
            if let Some(mut stdout) = stdout {
                stdout.read_to_end(&mut output).await?;
            }
            Ok(output)
        };
        let read_errors = async {
            let mut errors = Vec::new();
            if let Some(mut stderr) = stderr {
                stderr.read_to_end(&mut errors).await?;
            }
            errors.truncate(ERROR_BYTES);
            Ok(errors)
        };
        let ((), output, errors) = tokio::try_join!(write, read, read_errors).map_err(failed)?;
        let status = child.wait().await.map_err(failed)?;
        Ok(Answer { code: status.code(), output, errors, command: name })
    }
}

/// The environment of every command. It holds nothing of the daemon's environment but the path.
const FIXED_ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_DEFAULT_HASH", "sha1"),
    ("GIT_DEFAULT_REF_FORMAT", "files"),
    // An empty list allows no protocol at all, and beats every configuration file.
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_AUTHOR_NAME", "polity"),
    ("GIT_AUTHOR_EMAIL", "polity@polity.invalid"),
    ("GIT_COMMITTER_NAME", "polity"),
    ("GIT_COMMITTER_EMAIL", "polity@polity.invalid"),
];

/// Reads the first two numbers of a version, such as `2.47.3` or `2.39.5 (Apple Git-154)`.
fn version_of(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let check = |text: &str, expect| assert_eq!(version_of(text), expect);
        check("2.47.3", Some((2, 47)));
        check("2.39.5 (Apple Git-154)", Some((2, 39)));
        check("2.38.0.windows.1", Some((2, 38)));
        check("unknown", None);
        assert!(version_of("10.1").unwrap() > OLDEST);
        assert!(version_of("2.9.1").unwrap() < OLDEST);
    }
}
