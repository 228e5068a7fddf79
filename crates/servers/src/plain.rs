//! Starts the processes of servers without a sandbox.

use crate::config::Process;
use crate::launch::{Launcher, Started, Tree};
use crate::tree::{MARK, Mark};
use futures::future::{BoxFuture, FutureExt};
use polity_society::tool_group::ServerName;
use rustix::process::Pid;
use std::io;
use std::process::{ExitStatus, Stdio};
use tokio::process::{Child, Command};

/// Environment variables that a server gets from polity. Polity withholds all others, because they may contain keys.
const INHERITED: &[&str] = &[
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Starts servers as processes of the same user. Each server gets its own process group, and a mark in its environment,
/// by which its child processes are found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Launcher for Plain {
    fn launch<'a>(&'a self, _: &'a ServerName, process: &'a Process) -> BoxFuture<'a, io::Result<Started>> {
        async { start(process) }.boxed()
    }
}

fn start(process: &Process) -> io::Result<Started> {
    let mut command = Command::new(&process.command);
    let mark = Mark::new();
    let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command
        .args(&process.args)
        .env_clear()
        .envs(inherited)
        .envs(process.env.iter().map(|(name, value)| (name, value.expose())))
        .env(MARK, mark.as_str())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(directory) = &process.cwd {
        command.current_dir(directory);
    }
    let mut child = command.spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("the process has no pipes"));
    };
    let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let tree = Box::new(Processes { child, leader, mark });
    Ok(Started { stdin: Box::new(stdin), stdout: Box::new(stdout), stderr: Box::new(stderr), tree })
}

/// The process of a server and all processes that it has started.
struct Processes {
    child: Child,
    /// The id of the process, which is also the id of its group. `None` after all processes were killed.
    leader: Option<Pid>,
    mark: Mark,
}

impl Tree for Processes {
    fn ended(&mut self) -> BoxFuture<'_, String> {
        async {
            let status = self.child.wait().await;
            // Kill the rest immediately, before the system can give the id to another process.
            self.kill();
            self.leader = None;
            status.map_or_else(|error| error.to_string(), in_words)
        }
        .boxed()
    }

    fn kill(&mut self) {
        if let Some(leader) = self.leader {
            self.mark.kill_all(leader);
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.kill();
    }
}

fn in_words(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
