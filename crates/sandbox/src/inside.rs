//! The process inside the sandbox. It sets its own limits, installs Landlock and seccomp for itself, and then becomes
//! the shell.
//!
//! At the sandbox level `full`, this process runs inside bubblewrap's namespaces. At the other levels, it is a direct
//! child of the supervisor.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::machine::Level;
use crate::message::{FromInside, Inside, ProcessLimits, WayOut};
use crate::walls::{LANDLOCK_LEAST, landlock, seccomp};

/// Shells in order of preference.
const SHELLS: [&str; 6] = [
    "/bin/bash",
    "/usr/bin/bash",
    "/run/current-system/sw/bin/bash",
    "/bin/sh",
    "/usr/bin/sh",
    "/system/bin/sh",
];

/// The `oom_score_adj` of a command. It makes the kernel kill the command rather than the daemon if memory runs out.
const OUT_OF_MEMORY_SCORE: &str = "800";

/// The nice value of a command. It gives the daemon and the supervisor priority over the command.
const NICE: i32 = 5;

/// Runs the process inside the sandbox. This function returns only if the process fails before it becomes the shell.
pub(crate) fn run() -> std::process::ExitCode {
    let error = match connect() {
        Ok(connection) => match become_command(&connection) {
            Ok(never) => match never {},
            Err(reason) => {
                let line = serde_json::to_string(&FromInside::Failed(reason.clone())).unwrap_or_default();
                let _ = writeln!(&connection, "{line}");
                reason
            }
        },
        Err(reason) => reason,
    };
    let _ = writeln!(std::io::stderr(), "the sandbox could not be entered: {error}");
    std::process::ExitCode::from(126)
}

/// Returns the standard input of this process, which is the connection to the supervisor.
fn connect() -> Result<UnixStream, String> {
    let connection = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map_err(|error| format!("standard input is not the supervisor: {error}"))?;
    Ok(UnixStream::from(connection))
}

fn become_command(connection: &UnixStream) -> Result<std::convert::Infallible, String> {
    let mut line = String::new();
    BufReader::new(connection)
        .read_line(&mut line)
        .map_err(|error| format!("the supervisor sent nothing readable: {error}"))?;
    let inside: Inside = serde_json::from_str(&line)
        .map_err(|error| format!("the supervisor sent something else than a command: {error}"))?;

    let nothing =
        std::fs::File::open("/dev/null").map_err(|error| format!("failed to open /dev/null: {error}"))?;
    rustix::stdio::dup2_stdin(&nothing)
        .map_err(|error| format!("failed to close standard input: {error}"))?;
    drop(nothing);
    let shell =
        SHELLS.iter().find(|shell| Path::new(shell).exists()).ok_or("there is no shell such as /bin/sh")?;
    match inside.way_out {
        WayOut::None => {}
        WayOut::Proxy => crate::forward::start()?,
    }

    let _ = rustix::process::setpriority_process(None, NICE);
    // Ignore an error. At the sandbox level `full` the file is read-only, so the write fails there. The supervisor
    // limits the memory in any case.
    let _ = std::fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    // At the sandbox levels `partial` and `none`, the command shares the machine with other users. So only the person
    // may read the files that the command makes.
    let umask = if inside.level == Level::Full { 0o022 } else { 0o077 };
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
    std::env::set_current_dir(&inside.directory)
        .map_err(|error| format!("failed to enter {}: {error}", inside.directory.display()))?;
    limit(inside.limits)?;
    // Normally the supervisor kills all processes of the command. The signal that is set here is for another case: if
    // the supervisor itself is killed, the kernel kills this process.
    if inside.level != Level::Full {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(|error| format!("failed to tie the command to its supervisor: {error}"))?;
        // If the process already has a session of its own, `setsid` fails, which does no harm.
        let _ = rustix::process::setsid();
    }
    drop_capabilities(inside.level)?;
    if !inside.landlock.is_empty() {
        let version = landlock::restrict(&inside.landlock).map_err(|error| format!("Landlock: {error}"))?;
        if inside.level == Level::Partial && version < LANDLOCK_LEAST {
            return Err(format!("the kernel has version {version} of Landlock, which is too old"));
        }
    }
    let filters =
        inside.wall.map(seccomp::filters).transpose().map_err(|error| format!("seccomp: {error}"))?;

    let ready = serde_json::to_string(&FromInside::Ready).map_err(|error| error.to_string())?;
    let mut command = Command::new(shell);
    command.arg("-c").arg(&inside.command);
    seccomp::apply(&filters.unwrap_or_default()).map_err(|error| format!("seccomp: {error}"))?;
    writeln!(&*connection, "{ready}").map_err(|error| format!("the supervisor is gone: {error}"))?;
    let error = command.exec();
    Err(format!("failed to start {shell}: {error}"))
}

fn limit(limits: ProcessLimits) -> Result<(), String> {
    use rlimit::Resource;
    let set = |resource: Resource, value: u64| {
        // A process cannot raise its limits above those of the daemon.
        let hard = resource.get_hard().unwrap_or(u64::MAX);
        let value = value.min(hard);
        resource.set(value, value).map_err(|error| format!("failed to set {}: {error}", resource.as_name()))
    };
    set(Resource::CORE, 0)?;
    set(Resource::DATA, limits.memory_bytes)?;
    set(Resource::FSIZE, limits.file_bytes)?;
    set(Resource::NOFILE, 65_536)?;
    set(Resource::MEMLOCK, 8 << 20)?;
    set(Resource::MSGQUEUE, 1 << 20)?;
    set(Resource::RTPRIO, 0)?;
    if let Some(processes) = limits.processes {
        set(Resource::NPROC, processes)?;
    }
    Ok(())
}

/// Drops all capabilities. Otherwise, if the daemon runs as root, a command at the sandbox level `partial` would have
/// all rights of root.
fn drop_capabilities(level: Level) -> Result<(), String> {
    if level == Level::None {
        return Ok(());
    }
    let failed = |error: rustix::io::Errno| format!("failed to drop capabilities: {error}");
    rustix::thread::set_no_new_privs(true).map_err(failed)?;
    let _ = rustix::thread::clear_ambient_capability_set();
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if rustix::thread::capability_is_in_bounding_set(capability).unwrap_or(false) {
            // The removal fails in a process without CAP_SETPCAP. Such a process does not need the removal.
            let _ = rustix::thread::remove_capability_from_bounding_set(capability);
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(
        None,
        CapabilitySets { effective: none, permitted: none, inheritable: none },
    )
    .map_err(failed)
}
