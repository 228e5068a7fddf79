//! Commands: runs the shell commands of agents in a sandbox.

mod bash;

#[cfg(test)]
mod tests;

pub use bash::Bash;

use crate::call::{Access, Invocation};
use crate::workspaces::{Opened, Workspaces};
use polity_sandbox::{Ended, Enter, Excerpt, How, Level, Limits, Machine, Network, Plan, guarded_paths};
use polity_society::refusal::Refusal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// What the person allows to commands (`tools.sandbox` in app.json).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Further directories and files that commands may read.
    pub readable: Vec<PathBuf>,
    /// What commands can reach over the network.
    pub network: Network,
    /// Limits on each command.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self { readable: Vec::new(), network: Network::None, limits: Limits::default() }
    }
}

/// Runs commands in the workspaces of agents.
pub struct Commands {
    workspaces: Arc<Workspaces>,
    enter: Enter,
    /// A directory of polity for the homes, the temporary directories and the output of commands.
    state: PathBuf,
    /// Directories of polity that no command may see.
    hidden: Vec<PathBuf>,
    machine: OnceCell<Machine>,
}

impl Commands {
    /// Makes a runner. `enter` is the program that sets up the sandbox; `state` is a directory of polity's own.
    pub fn new(workspaces: Arc<Workspaces>, enter: Enter, state: PathBuf, hidden: Vec<PathBuf>) -> Self {
        Self { workspaces, enter, state, hidden, machine: OnceCell::new() }
    }

    /// Returns what this machine can enforce. The first call tries it.
    pub async fn machine(&self) -> &Machine {
        self.machine.get_or_init(|| polity_sandbox::probe(&self.enter)).await
    }

    /// Runs a command to its end.
    async fn run(&self, command: String, limits: Limits, call: &Invocation) -> Result<Ended, Refusal> {
        let machine = self.machine().await;
        if machine.level < Level::Full {
            // In any other sandbox, the person would have to be asked about each command.
            let reason =
                "this machine has no full sandbox, so commands do not run; the person can install bubblewrap";
            return Err(failed(reason));
        }
        let task = &call.caller.task;
        let opened = self.workspaces.directory(task, &call.caller.place, &call.cancel).await?;
        let own = self.state.join(task.as_str());
        let home = made(&own.join("home")).await?;
        let temporary = made(&own.join("tmp")).await?;
        let output =
            made(&own.join("output")).await?.join(format!("{}.txt", file_name(&call.idempotency_key)));
        let settings = Settings { limits, ..Settings::default() };
        let plan =
            plan(command, opened, &settings, Directories { home, temporary, output, hidden: &self.hidden });
        let progress = call.progress.clone();
        let report = move |bytes: &[u8]| progress.report(String::from_utf8_lossy(bytes).trim_end());
        let ended = polity_sandbox::run(plan, machine, &self.enter, &call.cancel, report).await;
        ended.map_err(|error| failed(&error.to_string()))
    }
}

/// The directories of a command besides the workspace.
struct Directories<'a> {
    home: PathBuf,
    temporary: PathBuf,
    output: PathBuf,
    hidden: &'a [PathBuf],
}

/// Plans a command in an opened workspace.
fn plan(command: String, opened: Opened, settings: &Settings, own: Directories<'_>) -> Plan {
    let Opened { directory, access, git } = opened;
    let (inside, outside): (Vec<PathBuf>, Vec<PathBuf>) =
        git.into_iter().flat_map(|git| git.read_only).partition(|path| path.starts_with(&directory));
    let within = inside.iter().filter_map(|path| path.strip_prefix(&directory).ok().map(Path::to_owned));
    let guarded = guarded_paths(&directory).into_iter().chain(within).collect();
    Plan {
        command,
        guarded,
        workspace: directory,
        access: match access {
            Access::Write => polity_sandbox::Access::ReadWrite,
            Access::Read => polity_sandbox::Access::ReadOnly,
        },
        readable: settings.readable.iter().cloned().chain(outside).collect(),
        hidden: own.hidden.to_vec(),
        home: own.home,
        temporary: own.temporary,
        network: settings.network.clone(),
        environment: std::env::vars().collect::<BTreeMap<_, _>>(),
        limits: settings.limits.clone(),
        output: own.output,
        excerpt: Excerpt::default(),
    }
}

/// Makes a directory if it is not there.
async fn made(directory: &Path) -> Result<PathBuf, Refusal> {
    let made = tokio::fs::create_dir_all(directory).await;
    made.map_err(|error| failed(&format!("cannot make {}: {error}", directory.display())))?;
    Ok(directory.to_owned())
}

/// Makes a file name of a key, which may contain what a model wrote.
fn file_name(key: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    key.chars().map(plain).take(100).collect()
}

fn failed(reason: &str) -> Refusal {
    Refusal::ToolFailed { tool: bash::NAME.to_owned(), reason: reason.to_owned() }
}

/// Says in words how a command ended, if it did not end by itself.
fn in_words(how: &How, limits: &Limits) -> Option<String> {
    Some(match how {
        How::Exited(_) => return None,
        How::TimedOut => format!("stopped after {} ms", limits.timeout_ms),
        How::OutOfMemory => {
            format!("stopped: its processes took more than {} bytes of memory", limits.memory_bytes)
        }
        How::TooManyProcesses => format!("stopped: it had more than {} processes", limits.processes),
        How::TooMuchOutput => format!("stopped: it printed more than {} bytes", limits.output_bytes),
        How::TooMuchDisk => {
            format!("stopped: it added more than {} bytes or {} files", limits.disk_bytes, limits.files)
        }
        How::Cancelled => "stopped, because nobody waits for it any more".to_owned(),
        How::Lost => "stopped by something outside polity".to_owned(),
    })
}
