//! Runs one command: turns a plan into a launch, starts the supervisor, and collects the output.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::domains::Domains;
use crate::ended::{Ended, Error, How, LONGEST_COMMAND, Usage};
use crate::enter::{INSIDE, SUPERVISE};
use crate::environment::{self, Directories, environment};
use crate::host::Host;
use crate::limits::Limits;
use crate::machine::{Level, Machine};
use crate::message::{Exceeded, FromSupervisor, Guard, Inside, Launch, ProcessLimits, Report, WayOut, Why};
use crate::output::{Output, Recorder, Room};
use crate::plan::{Access, Enter, Network, Plan};
use crate::proxy::{Internet, Proxy};
use crate::supervise::leash::Leash;
use crate::view::{self, Hidden, Kind, Names, Places};
use crate::{bubblewrap, forward, walls};

/// Kernel version from which on the number of processes is counted per user namespace.
const COUNTS_PER_NAMESPACE: (u32, u32) = (5, 14);

/// Bytes that are read from a command at a time.
const CHUNK: usize = 64 << 10;

/// A command that runs. Dropping it ends the command.
#[derive(Debug)]
pub struct Running {
    shared: Arc<Mutex<Output>>,
    cancel: CancellationToken,
    task: JoinHandle<Result<Ended, Error>>,
}

impl Running {
    /// The output so far.
    pub fn output(&self) -> Output {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the command and everything that it started.
    pub fn stop(&self) {
        self.cancel.cancel();
    }

    /// Waits for the end of the command.
    pub async fn ended(mut self) -> Result<Ended, Error> {
        match (&mut self.task).await {
            Ok(result) => result,
            Err(error) => Err(Error::Sandbox { reason: format!("the task that watches it failed: {error}") }),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Starts a command and returns at once.
///
/// `sink` is called with each piece of output as it arrives. When `cancel` is cancelled, the command ends.
pub async fn spawn(
    plan: Plan,
    machine: &Machine,
    enter: &Enter,
    cancel: &CancellationToken,
    sink: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Running, Error> {
    let scratch = Scratch::new(&plan.output).await?;
    let launch = launch(&plan, machine, enter, &scratch).await?;
    let proxy = match &plan.network {
        Network::Domains(list) => {
            let started = Proxy::start(&scratch.proxy, Domains::new(list)?, Internet);
            Some(started.map_err(start("start the proxy"))?)
        }
        Network::None | Network::Full => None,
    };
    let (ours, theirs) =
        std::os::unix::net::UnixStream::pair().map_err(start("make a connection to the supervisor"))?;
    ours.set_nonblocking(true).map_err(start("make a connection to the supervisor"))?;
    let mut connection = UnixStream::from_std(ours).map_err(start("make a connection to the supervisor"))?;
    let (reader, writer) = std::io::pipe().map_err(start("make a pipe for the output"))?;
    let pipe =
        pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(start("make a pipe for the output"))?;
    let second = writer.try_clone().map_err(start("make a pipe for the output"))?;
    let recorder = Recorder::new(&plan.output, plan.excerpt, plan.limits.output_bytes)
        .await
        .map_err(start("create the file for the output"))?;

    let began = Instant::now();
    let child = Command::new(&enter.program)
        .args(&enter.first_arguments)
        .arg(SUPERVISE)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(second))
        .spawn()
        .map_err(start("start the supervisor"))?;
    let mut line = serde_json::to_vec(&launch).map_err(|error| Error::Start {
        action: "describe the command to the supervisor",
        source: error.into(),
    })?;
    line.push(b'\n');
    connection.write_all(&line).await.map_err(start("describe the command to the supervisor"))?;

    let shared = Arc::new(Mutex::new(recorder.so_far()));
    // Dropping `Running` cancels this command only, and no other command that shares the caller's token.
    let cancel = cancel.child_token();
    let watch =
        Watch { child, connection, pipe, recorder, shared: Arc::clone(&shared), began, scratch, proxy };
    let task = tokio::spawn(watch.run(cancel.clone(), sink));
    Ok(Running { shared, cancel, task })
}

/// Runs a command to its end.
pub async fn run(
    plan: Plan,
    machine: &Machine,
    enter: &Enter,
    cancel: &CancellationToken,
    sink: impl FnMut(&[u8]) + Send + 'static,
) -> Result<Ended, Error> {
    spawn(plan, machine, enter, cancel, sink).await?.ended().await
}

fn start(action: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::Start { action, source }
}

/// The daemon's side of a command that runs.
struct Watch {
    child: Child,
    connection: UnixStream,
    pipe: pipe::Receiver,
    recorder: Recorder,
    shared: Arc<Mutex<Output>>,
    began: Instant,
    scratch: Scratch,
    proxy: Option<Proxy>,
}

impl Watch {
    async fn run(
        self,
        cancel: CancellationToken,
        mut sink: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Ended, Error> {
        let Self { mut child, connection, mut pipe, mut recorder, shared, began, scratch, proxy } = self;
        let (from_supervisor, mut to_supervisor) = connection.into_split();
        let mut lines = BufReader::new(from_supervisor).lines();
        let mut buffer = vec![0; CHUNK];
        let mut stopped: Option<How> = None;
        let mut result: Option<Result<Report, String>> = None;
        let mut readable = Readable::Open;
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => match serde_json::from_str(&line) {
                        Ok(FromSupervisor::Ready) => tracing::debug!("the command begins"),
                        Ok(FromSupervisor::Failed(reason)) => result = Some(Err(reason)),
                        Ok(FromSupervisor::Ended(report)) => result = Some(Ok(report)),
                        Err(error) => tracing::warn!(%error, "the supervisor of a command said something unknown"),
                    },
                    Ok(None) | Err(_) => break,
                },
                count = tokio::io::AsyncReadExt::read(&mut pipe, &mut buffer), if readable == Readable::Open => {
                    match count {
                        Ok(0) | Err(_) => readable = Readable::Closed,
                        Ok(count) => {
                            let room = accept(&mut recorder, &shared, &mut sink, &buffer[..count]).await?;
                            if room == Room::Exhausted && stopped.is_none() {
                                stopped = Some(How::TooMuchOutput);
                                let _ = to_supervisor.shutdown().await;
                            }
                        }
                    }
                },
                () = cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(How::Cancelled);
                    let _ = to_supervisor.shutdown().await;
                },
            }
        }
        // Everybody who could write is gone; what they wrote is in the pipe.
        while let Ok(count @ 1..) = pipe.try_read(&mut buffer) {
            accept(&mut recorder, &shared, &mut sink, &buffer[..count]).await?;
        }
        let _ = child.wait().await;
        let output = recorder.finish().await.map_err(start("write the output to its file"))?;
        drop(proxy);
        drop(scratch);
        let duration = began.elapsed();
        let (how, report) = match result {
            Some(Err(reason)) if stopped.is_none() => {
                let said = String::from_utf8_lossy(&output.first);
                let said = said.trim();
                let reason = if said.is_empty() { reason } else { format!("{reason}: {said}") };
                return Err(Error::Sandbox { reason });
            }
            Some(Ok(report)) => (how(&report, stopped), report),
            Some(Err(_)) | None => {
                let nothing =
                    Report { why: Why::Stopped, peak: Usage::default(), restored: Vec::new(), left: 0 };
                (stopped.unwrap_or(How::Lost), nothing)
            }
        };
        if report.left > 0 {
            tracing::warn!(left = report.left, "processes of a command could not be killed");
        }
        Ok(Ended { how, duration, output, peak: report.peak, restored: report.restored })
    }
}

/// Whether a command can still write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readable {
    Open,
    Closed,
}

async fn accept(
    recorder: &mut Recorder,
    shared: &Mutex<Output>,
    sink: &mut impl FnMut(&[u8]),
    bytes: &[u8],
) -> Result<Room, Error> {
    sink(bytes);
    let room = recorder.take(bytes).await.map_err(start("write the output to its file"))?;
    *shared.lock().unwrap_or_else(PoisonError::into_inner) = recorder.so_far();
    Ok(room)
}

/// The end of a command, from what the supervisor saw and why the daemon stopped it, if it did.
fn how(report: &Report, stopped: Option<How>) -> How {
    match report.why {
        Why::Exited(code) => match stopped {
            // The command wrote too much and ended before the supervisor heard of it.
            Some(How::TooMuchOutput) => How::TooMuchOutput,
            Some(_) | None => How::Exited(code),
        },
        Why::Stopped => stopped.unwrap_or(How::Lost),
        Why::Exceeded(Exceeded::Time) => How::TimedOut,
        Why::Exceeded(Exceeded::Memory) => How::OutOfMemory,
        Why::Exceeded(Exceeded::Processes) => How::TooManyProcesses,
        Why::Exceeded(Exceeded::Disk) => How::TooMuchDisk,
    }
}

/// Files that one command needs beside its output.
struct Scratch {
    passwd: PathBuf,
    group: PathBuf,
    /// Created only if the network is a list of domains.
    proxy: PathBuf,
}

impl Scratch {
    /// Makes the files, beside the file of the output.
    async fn new(output: &Path) -> Result<Self, Error> {
        let beside = |ending: &str| {
            let mut name = output.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        };
        let scratch = Self { passwd: beside(".passwd"), group: beside(".group"), proxy: beside(".proxy") };
        // A socket that a killed daemon left behind.
        let _ = tokio::fs::remove_file(&scratch.proxy).await;
        let user = bubblewrap::USER;
        let passwd = format!(
            "root:x:0:0:root:/root:/bin/sh\nagent:x:{user}:{user}:agent:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
        );
        let group = format!("root:x:0:\nagent:x:{user}:\nnogroup:x:65534:\n");
        for (path, text) in [(&scratch.passwd, passwd), (&scratch.group, group)] {
            tokio::fs::write(path, text)
                .await
                .map_err(|source| Error::Path { path: path.clone(), source })?;
        }
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in [&self.passwd, &self.group, &self.proxy] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Turns a plan into what the supervisor needs. Only this function looks at the host.
async fn launch(plan: &Plan, machine: &Machine, enter: &Enter, scratch: &Scratch) -> Result<Launch, Error> {
    if plan.command.len() > LONGEST_COMMAND {
        return Err(Error::CommandTooLong(plan.command.len()));
    }
    if plan.command.contains('\0') {
        return Err(Error::ZeroByte);
    }
    let level = machine.level;
    if matches!(plan.network, Network::Domains(_)) && level != Level::Full {
        return Err(Error::DomainsNeedFull);
    }
    let (plan, enter, machine) = (plan.clone(), enter.clone(), machine.clone());
    let proxy = matches!(plan.network, Network::Domains(_)).then(|| scratch.proxy.clone());
    let names = Names { passwd: scratch.passwd.clone(), group: scratch.group.clone() };
    tokio::task::spawn_blocking(move || decide(&plan, &machine, &enter, names, proxy))
        .await
        .map_err(|error| Error::Sandbox { reason: error.to_string() })?
}

fn decide(
    plan: &Plan,
    machine: &Machine,
    enter: &Enter,
    names: Names,
    proxy: Option<PathBuf>,
) -> Result<Launch, Error> {
    let level = machine.level;
    let (places, unpinned) = look_up(plan, enter, names, level)?;
    let places = Places { proxy, ..places };
    view::check(&places, level)?;
    let host = Host::look(|name| plan.environment.get(name).map(PathBuf::from));
    let host = if level == Level::Partial { host.without(&places.hidden) } else { host };
    let temporary = if level == Level::Full { Path::new("/tmp") } else { &places.temporary };
    let visible = view::readable(&places, &host);
    let directories = Directories { home: &places.home, temporary, visible: &visible };
    let mut environment: BTreeMap<String, String> = environment(&plan.environment, &directories);
    let way_out = if places.proxy.is_some() { WayOut::Proxy } else { WayOut::None };
    if way_out == WayOut::Proxy {
        environment.extend(environment::proxy(forward::PORT));
    }

    let inside_arguments = enter.first_arguments.iter().cloned().chain([INSIDE.to_owned()]);
    let (program, arguments) = match (level, &machine.bubblewrap) {
        (Level::Full, Some(bubblewrap)) => {
            let mounts = view::mounts(&places, &host);
            let options = bubblewrap::arguments(&mounts, machine.proc, &plan.network, &places.workspace);
            let options = options.into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
            let arguments = options
                .into_iter()
                .chain([view::PROGRAM_INSIDE.to_owned()])
                .chain(inside_arguments)
                .collect();
            (bubblewrap.clone(), arguments)
        }
        (Level::Full | Level::Partial | Level::None, _) => {
            (enter.program.clone(), inside_arguments.collect())
        }
    };
    let guard = match plan.access {
        Access::ReadWrite => Some(Guard { workspace: places.workspace.clone(), paths: unpinned }),
        Access::ReadOnly => None,
    };
    let inside = Inside {
        level,
        command: plan.command.clone(),
        directory: places.workspace.clone(),
        limits: process_limits(&plan.limits, machine),
        landlock: walls::landlock::rules(&places, &host, level),
        wall: walls::wall(machine, &plan.network),
        way_out,
    };
    let growing = vec![places.workspace, places.home, places.temporary];
    Ok(Launch {
        program,
        arguments,
        environment,
        limits: plan.limits.clone(),
        growing,
        leash: Leash::of(machine),
        guard,
        inside,
    })
}

fn text(text: OsString) -> Result<String, Error> {
    text.into_string().map_err(|text| Error::NotText(PathBuf::from(text)))
}

/// The limits of each process, so that one process alone cannot exceed the limits by much before the next sample.
fn process_limits(limits: &Limits, machine: &Machine) -> ProcessLimits {
    let counts = machine.level == Level::Full && machine.kernel >= COUNTS_PER_NAMESPACE;
    ProcessLimits {
        memory_bytes: limits.memory_bytes,
        file_bytes: limits.disk_bytes,
        // More than the supervisor's limit, so that the command ends with the right reason.
        processes: counts.then(|| limits.processes.saturating_mul(2).saturating_add(64)),
    }
}

/// Resolves the paths of a plan. The second value is the guarded paths that cannot be mounted read-only.
fn look_up(plan: &Plan, enter: &Enter, names: Names, level: Level) -> Result<(Places, Vec<PathBuf>), Error> {
    let canonical =
        |path: &Path| path.canonicalize().map_err(|source| Error::Path { path: path.to_owned(), source });
    let workspace = canonical(&plan.workspace)?;
    let home = canonical(&plan.home)?;
    let temporary = canonical(&plan.temporary)?;
    let program = canonical(&enter.program)?;
    for path in [&workspace, &home, &temporary, &program] {
        if path.to_str().is_none() {
            return Err(Error::NotText(path.clone()));
        }
    }
    let hidden = plan
        .hidden
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .map(|path| Hidden { kind: if path.is_dir() { Kind::Directory } else { Kind::File }, path })
        .collect();
    let readable = plan.readable.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let mut pinned = Vec::new();
    let mut unpinned = Vec::new();
    for path in &plan.guarded {
        let whole = workspace.join(path);
        // A symbolic link in the path could be replaced without touching its target.
        match whole.canonicalize() {
            Ok(canonical) if canonical == whole && level == Level::Full => pinned.push(whole),
            Ok(_) | Err(_) => unpinned.push(path.clone()),
        }
    }
    let places = Places {
        access: plan.access,
        workspace,
        home,
        temporary,
        readable,
        hidden,
        pinned,
        program,
        names: Some(names),
        proxy: None,
    };
    Ok((places, unpinned))
}
