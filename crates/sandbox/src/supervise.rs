//! The supervisor: the parent process of one command, outside the sandbox.
//!
//! The supervisor starts the command and samples what the command uses. It ends the command if the command exceeds a
//! limit, or if the daemon closes the connection or dies. Then it kills every process that is left, and restores
//! guarded paths: files such as git hooks, which the command must not change. The main thread of the supervisor starts
//! the command, and runs until the supervisor ends. The command is set to die with its parent. So if another thread
//! started the command, Linux would kill the command when that thread ends.
//!
//! Path of data: *[`Launch`] → start → samples (`tree`, `disk`) → `verdict` → kill → [`Report`]*.

mod disk;

pub(crate) mod leash;

mod verdict;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SendFlags;
use rustix::process::{Pid, PidfdFlags, WaitOptions, WaitStatus};

use crate::ended::Usage;
use crate::groups;
use crate::guard::Snapshot;
use crate::message::{FromInside, FromSupervisor, Launch, Report, Why};
use crate::tree;
use leash::Leash;

/// Time between two checks of the number of threads of the machine.
const PAUSE: Duration = Duration::from_millis(15);

/// Minimum time between two samples of memory and disk.
const SAMPLE_PAUSE: Duration = Duration::from_millis(25);

/// Minimum pause after a sample, as a multiple of the time that the sample took.
const SHARE: u32 = 10;

/// The nice value that the supervisor sets for itself, if the system permits it. The value gives the supervisor
/// priority over the command (`inside::NICE`), so that the supervisor can end a command with thousands of busy
/// processes.
const NICE: i32 = -10;

/// Runs the supervisor until all processes of the command have ended.
pub(crate) fn run() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the supervisor of a command failed: {error}");
            ExitCode::from(125)
        }
    }
}

fn supervise() -> Result<(), String> {
    let daemon = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)
        .map(UnixStream::from)
        .map_err(|error| format!("standard input is not the daemon: {error}"))?;
    // The supervisor may have inherited file descriptors from the daemon by accident. The command must not inherit
    // these descriptors.
    close_fds::set_fds_cloexec(3, &[]);
    // A command may nest directories very deeply, and removing them could overflow the stack. Let the supervisor open
    // only few descriptors: then the removal fails with an error first.
    if let Ok(hard) = rlimit::Resource::NOFILE.get_hard() {
        let _ = rlimit::Resource::NOFILE.set(hard.min(1024), hard);
    }
    let mut line = String::new();
    BufReader::new(&daemon)
        .read_line(&mut line)
        .map_err(|error| format!("the daemon sent nothing: {error}"))?;
    let launch: Launch =
        serde_json::from_str(&line).map_err(|error| format!("the daemon sent something else: {error}"))?;

    let outcome = Supervisor::start(&daemon, &launch).and_then(|supervisor| supervisor.watch(&launch));
    let message = match outcome {
        Ok(report) => FromSupervisor::Ended(report),
        Err(reason) => FromSupervisor::Failed(reason),
    };
    tell(&daemon, &message);
    Ok(())
}

/// Sends a message to the daemon. A failure means that the daemon is gone, so nobody needs the message.
fn tell(daemon: &UnixStream, message: &FromSupervisor) {
    if let Ok(line) = serde_json::to_string(message) {
        let _ = writeln!(&*daemon, "{line}");
    }
}

/// Sends a message to the daemon, or drops it if the daemon does not read: a daemon that hangs must not block the
/// supervisor.
///
/// The message is far smaller than a page, so the kernel accepts the whole message or nothing.
fn mention(daemon: &UnixStream, message: &FromSupervisor) {
    if let Ok(mut line) = serde_json::to_vec(message) {
        line.push(b'\n');
        let _ = rustix::net::send(daemon, &line, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// The supervisor of a running command.
struct Supervisor<'a> {
    daemon: &'a UnixStream,
    inside: UnixStream,
    /// The process that the supervisor started: bubblewrap, or the process inside the sandbox.
    child: Pid,
    handle: OwnedFd,
    started: Instant,
    snapshot: Option<Snapshot>,
    leash: Leash,
    /// The control group of the command, if the system has delegated one to the daemon.
    group: Option<groups::Command>,
    /// Bytes from the process inside the sandbox that are not a whole line yet.
    said: Vec<u8>,
    readiness: Readiness,
}

/// Whether the process inside the sandbox has started the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Readiness {
    Waiting,
    Ready,
    Failed(String),
}

impl<'a> Supervisor<'a> {
    fn start(daemon: &'a UnixStream, launch: &Launch) -> Result<Self, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: std::io::Error| format!("failed to {what}: {error}")
        };
        // Start a new session, so that signals from the daemon's terminal do not reach the command. Further below,
        // the supervisor becomes a subreaper, so that orphaned processes of the command become its children.
        let _ = rustix::process::setsid();
        // Only root can raise the priority. Without root, the supervisor keeps the priority of the daemon.
        let _ = rustix::process::setpriority_process(None, NICE);
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
            .map_err(|error| format!("failed to adopt orphans: {error}"))?;
        let snapshot = launch
            .guard
            .as_ref()
            .map(Snapshot::take)
            .transpose()
            .map_err(|error| format!("failed to note the guarded paths: {error}"))?;

        let group = launch.place.as_ref().map(|place| groups::Command::make(place, &launch.limits));
        let group = group.transpose().map_err(failed("make a control group"))?;
        let leash = launch.leash.put_on();
        let (ours, theirs) = UnixStream::pair().map_err(failed("make a connection to the command"))?;
        let started = Instant::now();
        if let Some(group) = &group {
            group.enter().map_err(failed("enter the control group"))?;
        }
        let program = Command::new(&launch.program)
            .args(&launch.arguments)
            .env_clear()
            .envs(&launch.environment)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .spawn();
        if let Some(group) = &group {
            group.leave().map_err(failed("leave the control group"))?;
        }
        let program =
            program.map_err(|error| format!("failed to start {}: {error}", launch.program.display()))?;
        let child =
            i32::try_from(program.id()).ok().and_then(Pid::from_raw).ok_or("the child has no number")?;
        let handle = rustix::process::pidfd_open(child, PidfdFlags::empty())
            .map_err(|error| format!("failed to watch the command: {error}"))?;
        let line = serde_json::to_string(&launch.inside).map_err(|error| error.to_string())?;
        let mut writer = ours.try_clone().map_err(failed("write to the command"))?;
        // A separate thread writes the line. A long command does not fit into the buffer of the socket, so the thread
        // waits until the process inside the sandbox reads.
        std::thread::spawn(move || {
            let _ = writeln!(writer, "{line}");
        });
        ours.set_nonblocking(true).map_err(failed("read from the command"))?;
        Ok(Self {
            daemon,
            inside: ours,
            child,
            handle,
            started,
            snapshot,
            leash,
            group,
            said: Vec::new(),
            readiness: Readiness::Waiting,
        })
    }

    /// Waits until the command ends or must be ended, and cleans up.
    fn watch(mut self, launch: &Launch) -> Result<Report, String> {
        let (mut peak, mut told) = (Usage::default(), Usage::default());
        let mut disk = disk::Meter::new(&launch.growing);
        let own = self.leash.own_processes();
        let mut next = Instant::now();
        let mut threads = tree::Threads::new();
        let why = loop {
            let events = self.wait(PAUSE)?;
            // Read the messages before anything else: the messages tell whether the sandbox was built, even if the
            // process inside the sandbox has ended already.
            self.listen();
            let code = self.reap();
            // Look at the control group after `reap`, but before using the exit code: if the kernel killed the command,
            // the exit code does not say why.
            if let Some(exceeded) = self.group.as_ref().and_then(groups::Command::exceeded) {
                break Why::Exceeded(exceeded);
            }
            if let Some(code) = code {
                break Why::Exited(code);
            }
            if events.daemon_is_gone {
                break Why::Stopped;
            }
            let begin = Instant::now();
            // Look at the number of all threads of the machine in every round, because reading it is cheap. If it has
            // grown so much that the command may have too many processes, take the next sample at once.
            if begin < next && !threads.grew_by(launch.limits.processes) {
                if let Some(exceeded) =
                    verdict::exceeded(&launch.limits, self.started.elapsed(), &Usage::default())
                {
                    break Why::Exceeded(exceeded);
                }
                continue;
            }
            let tree = tree::sample(rustix::process::getpid(), launch.limits.processes + own + 1);
            let added = disk.measure(&launch.limits, || tree::deleted_bytes(&tree.processes));
            let usage = Usage {
                memory_bytes: tree.memory_bytes,
                processes: (tree.processes.len() as u64).saturating_sub(own),
                disk_bytes: added.bytes,
                files: added.files,
            };
            peak = verdict::greater(peak, usage);
            if usage != told {
                mention(self.daemon, &FromSupervisor::Uses(usage));
                told = usage;
            }
            if let Some(exceeded) = verdict::exceeded(&launch.limits, self.started.elapsed(), &usage) {
                break Why::Exceeded(exceeded);
            }
            next = Instant::now() + SAMPLE_PAUSE.max(begin.elapsed() * SHARE);
        };
        let left = self.leash.kill_all(self.child, || {
            if let Some(group) = &self.group {
                group.kill();
            }
        });
        self.listen();
        let restored = self.snapshot.as_ref().map(Snapshot::restore).unwrap_or_default();
        match (&self.readiness, why) {
            (Readiness::Failed(reason), _) => Err(reason.clone()),
            (Readiness::Waiting, Why::Exited(code)) => {
                Err(format!("the sandbox ended with code {code} before the command began"))
            }
            (Readiness::Waiting | Readiness::Ready, _) => Ok(Report { why, peak, restored, left }),
        }
    }

    /// Waits until the daemon or the process inside the sandbox sends a message, or until the child ends. Waits for the
    /// time `pause` at most.
    fn wait(&self, pause: Duration) -> Result<Events, String> {
        let timeout =
            Timespec { tv_sec: 0, tv_nsec: i64::from(pause.min(Duration::from_millis(999)).subsec_nanos()) };
        let mut watched =
            vec![PollFd::new(self.daemon, PollFlags::IN), PollFd::new(&self.handle, PollFlags::IN)];
        if self.readiness == Readiness::Waiting {
            watched.push(PollFd::new(&self.inside, PollFlags::IN));
        }
        match poll(&mut watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("failed to wait for the command: {error}")),
        }
        let daemon = watched[0].revents();
        let daemon_is_gone = if daemon.is_empty() {
            false
        } else {
            // The daemon sends nothing after its first line. So if a read returns no bytes or fails, the connection
            // has ended.
            !matches!((&*self.daemon).read(&mut [0; 64]), Ok(1..))
        };
        Ok(Events { daemon_is_gone })
    }

    /// Reads the messages of the process inside the sandbox.
    fn listen(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = (&self.inside).read(&mut buffer) {
            // The process inside the sandbox writes at most two short lines. A command that gets access to the
            // connection could write without end. So the supervisor drops further bytes while `said` has 64 KiB or
            // more.
            if self.said.len() < 64 << 10 {
                self.said.extend_from_slice(&buffer[..count]);
            }
        }
        while let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.said.drain(..=end).collect();
            match serde_json::from_slice(&line) {
                Ok(FromInside::Ready) if self.readiness == Readiness::Waiting => {
                    self.readiness = Readiness::Ready;
                    tell(self.daemon, &FromSupervisor::Ready);
                }
                Ok(FromInside::Failed(reason)) => self.readiness = Readiness::Failed(reason),
                Ok(FromInside::Ready) | Err(_) => {}
            }
        }
    }

    /// Collects the exit codes of children that have ended, including orphans. Returns the exit code of the command
    /// if the command has ended.
    fn reap(&self) -> Option<i32> {
        let mut code = None;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            if pid == self.child {
                code = Some(code_of(status));
            }
        }
        code
    }
}

/// What happened while the supervisor waited.
struct Events {
    daemon_is_gone: bool,
}

/// Returns the exit code of a process as shells report it: 128 + n if signal n ended the process.
fn code_of(status: WaitStatus) -> i32 {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 128,
    }
}
