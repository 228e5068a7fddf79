//! Finds out which level of sandbox this machine can enforce, by starting test processes.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use tokio::process::Command;

use crate::groups;
use crate::machine::{Finding, Level, Machine, OwnProc};
use crate::parts::PROBE;
use crate::plan::Enter;
use crate::walls::{LANDLOCK_LEAST, Separation, Sockets, Wall, landlock, seccomp};

mod advice;

use advice::Facts;

/// Time limit for one test process. A test process normally needs a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Finds out which level of sandbox this machine can enforce, and explains to the person what is missing.
pub async fn probe(enter: &Enter) -> Machine {
    let program = find("bwrap");
    let tried = match &program {
        Some(program) => try_bubblewrap(program).await,
        None => Err(String::new()),
    };
    let walls = try_walls(enter).await;
    let facts = Facts::read();
    advice::conclude(program, tried, walls, groups::find(), &facts)
}

/// Finds a program in the usual directories of the system. `PATH` is not used, because it may name a directory that
/// an agent can change.
fn find(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/run/wrappers/bin"]
        .iter()
        .map(|directory| Path::new(directory).join(name))
        .find(|path| path.is_file())
}

/// Tries to make the namespaces of the sandbox level `full`, with a separate `/proc` if possible. Returns whether a
/// separate `/proc` is possible. If the namespaces cannot be made, the error is bubblewrap's message.
async fn try_bubblewrap(program: &Path) -> Result<OwnProc, String> {
    const NAMESPACES: [&str; 9] = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--uid",
        "1000",
        "--die-with-parent",
        "--new-session",
    ];
    let attempt = async |proc: &[&str]| {
        let mut command = Command::new(program);
        command.args(NAMESPACES).args(["--size", "1048576", "--tmpfs", "/tmp", "--ro-bind", "/", "/"]);
        command.args(proc).args(["--dev", "/dev", "--", "/bin/sh", "-c", "exit 0"]);
        said(command).await.map(drop)
    };
    match attempt(&["--proc", "/proc", "--remount-ro", "/proc"]).await {
        Ok(()) => Ok(OwnProc::Mounted),
        Err(first) => match attempt(&[]).await {
            Ok(()) => Ok(OwnProc::Absent),
            Err(_) => Err(first),
        },
    }
}

/// Starts a process that installs Landlock and seccomp for itself. Returns the version of Landlock that it reports.
async fn try_walls(enter: &Enter) -> Result<u32, String> {
    let mut command = Command::new(&enter.program);
    command.args(&enter.first_arguments).arg(PROBE);
    let text = said(command).await?;
    text.trim().parse().map_err(|_| format!("{} answered: {text}", enter.program.display()))
}

/// Runs a program. Returns its standard output, or its standard error if the program fails.
async fn said(mut command: Command) -> Result<String, String> {
    command.env_clear().current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .map_err(|_| format!("it did not end within {} seconds", PATIENCE.as_secs()))?
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(if text.trim().is_empty() { output.status.to_string() } else { text.trim().to_owned() })
    }
}

/// Runs in the process that [`try_walls`] starts. Prints the version of Landlock that the kernel enforces.
pub(crate) fn inside() -> ExitCode {
    use std::io::Write as _;
    let tried = || -> Result<u32, String> {
        let rule = landlock::Rule { path: PathBuf::from("/"), right: landlock::Right::Read };
        let version = landlock::restrict(&[rule]).map_err(|error| format!("Landlock: {error}"))?;
        let wall = Wall { sockets: Sockets::None, separation: Separation::Landlock };
        let filters = seccomp::filters(wall).map_err(|error| format!("seccomp: {error}"))?;
        seccomp::apply(&filters).map_err(|error| format!("seccomp: {error}"))?;
        // Installing seccomp has succeeded. Check that seccomp also refuses a call.
        match rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM, None) {
            Err(rustix::io::Errno::PERM) => Ok(version),
            Ok(_) | Err(_) => Err("seccomp did not refuse a socket".to_owned()),
        }
    };
    match tried() {
        Ok(version) => {
            let _ = writeln!(std::io::stdout(), "{version}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
