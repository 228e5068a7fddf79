//! Runs `git` so that git starts no other program, even if the configuration of a repository names one.
//!
//! Almost all git commands run in the repository of a task. Polity wrote the configuration of this repository, and no
//! agent can change it. These commands store objects, merge commits, and write the files of a new worktree. Git never
//! reads the files of a workspace, which agents can change. So filters, submodules, file system monitors and attributes
//! of a workspace have no effect.
//!
//! A few git commands run in the person's own repository, whose configuration polity did not write. These commands only
//! read HEAD and the object format, and read and write the branches of agents. They are in the module `person`.

use crate::problem::Problem;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Longest time that one git command may take. Commands on large repositories can take minutes.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum number of bytes of git's error output that an error quotes.
const ERROR_BYTES: usize = 2_000;

/// The oldest usable version of git. It is the first version with `merge-tree --write-tree`, which merges without a
/// working directory.
const OLDEST: (u32, u32) = (2, 38);

/// Settings that take precedence over all configuration files. Each disables a program or a side effect of git.
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

/// The program `git`, by its absolute path.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    program: PathBuf,
}

/// Whether polity can use the git of this machine.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// Git is not installed.
    Missing,
    /// Git is older than [`OLDEST`]. Holds its version.
    TooOld(String),
    Usable(Git),
}

/// The standard input of a git command.
pub(crate) enum Input {
    Nothing,
    Bytes(Vec<u8>),
    File(File),
}

/// A git command to run.
pub(crate) struct Call<'a> {
    directory: &'a Path,
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, OsString)>,
    input: Input,
}

impl<'a> Call<'a> {
    /// Makes a command that runs in `directory`, the directory of the repository.
    pub(crate) fn on(directory: &'a Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(OsString::from).collect();
        Self { directory, arguments, environment: Vec::new(), input: Input::Nothing }
    }

    /// Adds an argument, which need not be UTF-8.
    pub(crate) fn with(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds an environment variable.
    pub(crate) fn set(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.environment.push((name, value.into()));
        self
    }

    /// Sets the standard input.
    pub(crate) fn reading(mut self, input: Input) -> Self {
        self.input = input;
        self
    }

    fn name(&self) -> String {
        self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// The result of a git command.
pub(crate) struct Answer {
    /// `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    pub(crate) output: Vec<u8>,
    errors: Vec<u8>,
    command: String,
}

impl Answer {
    /// Returns the standard output if the exit code is 0, otherwise an error with git's error output.
    pub(crate) fn succeeded(self) -> Result<Vec<u8>, Problem> {
        if self.code == Some(0) { Ok(self.output) } else { Err(self.failed()) }
    }

    /// Makes an error from git's error output.
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
    /// Finds git in the directories of the daemon's `PATH`.
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
            // This also happens on macOS without developer tools: there `git` is a stub, which offers to install the
            // tools and fails.
            return Found::Missing;
        };
        let version = String::from_utf8_lossy(&output).trim().trim_start_matches("git version ").to_owned();
        match version_of(&version) {
            Some(number) if number >= OLDEST => Found::Usable(git),
            _ => Found::TooOld(version),
        }
    }

    /// Runs a command and returns its result. Dropping this future kills the command.
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
                // A git command that fails may stop reading its input early. The failed write is ignored, because
                // git's own error output explains the failure better.
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

/// The environment variables of every git command. From the daemon's own environment, a git command gets only `PATH`.
const FIXED_ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_DEFAULT_HASH", "sha1"),
    ("GIT_DEFAULT_REF_FORMAT", "files"),
    // An empty list forbids all protocols, and takes precedence over all configuration files.
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
