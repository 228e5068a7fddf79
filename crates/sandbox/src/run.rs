//! Runs one command: starts its supervisor, and collects the output.

use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::domains::Domains;
use crate::ended::{Ended, Error, How, Usage};
use crate::launch::{Scratch, launch};
use crate::machine::Machine;
use crate::message::{Exceeded, FromSupervisor, Report, Why};
use crate::output::{Output, Recorder, Room};
use crate::parts::SUPERVISE;
use crate::plan::{Enter, Network, Plan};
use crate::proxy::{Internet, Proxy};

/// Maximum number of bytes per read of a command's output.
const CHUNK: usize = 64 << 10;

/// A running command. Dropping this value ends the command.
#[derive(Debug)]
pub struct Running {
    viewer: Viewer,
    cancel: CancellationToken,
    task: JoinHandle<Result<Ended, Error>>,
}

/// Shows what a command prints and uses. It can be cloned, and [`Running`] cannot. So several Tokio tasks can watch one
/// command.
#[derive(Debug, Clone)]
pub struct Viewer {
    output: Arc<Mutex<Output>>,
    usage: watch::Receiver<Usage>,
}

impl Viewer {
    /// Returns the output so far.
    pub fn output(&self) -> Output {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of bytes of the output so far.
    pub fn output_bytes(&self) -> u64 {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).total_bytes
    }

    /// Returns what the command uses, according to the latest sample.
    pub fn usage(&self) -> Usage {
        *self.usage.borrow()
    }

    /// Waits until the usage of the command changes. After the end of the command, this method never returns.
    pub async fn usage_changed(&mut self) {
        if self.usage.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

impl Running {
    /// Returns a view of what the command prints and uses.
    pub fn viewer(&self) -> Viewer {
        self.viewer.clone()
    }

    /// Returns the output so far.
    pub fn output(&self) -> Output {
        self.viewer.output()
    }

    /// Ends the command and all processes that it started. Does not wait until they have ended.
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
/// `sink` is called with each piece of output as it arrives. The caller ends the command by cancelling `cancel`.
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
    // Dropping `Running` cancels only this child token, not the token of the caller, which other commands may share.
    let cancel = cancel.child_token();
    let (uses, usage) = watch::channel(Usage::default());
    let output = Arc::clone(&shared);
    let watch = Watch { child, connection, pipe, recorder, shared, uses, began, scratch, proxy };
    let task = tokio::spawn(watch.run(cancel.clone(), sink));
    Ok(Running { viewer: Viewer { output, usage }, cancel, task })
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

/// The Tokio task that watches one command for the daemon. It reads the output of the command and the messages of the
/// supervisor.
struct Watch {
    child: Child,
    connection: UnixStream,
    pipe: pipe::Receiver,
    recorder: Recorder,
    shared: Arc<Mutex<Output>>,
    uses: watch::Sender<Usage>,
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
        let Self { mut child, connection, mut pipe, mut recorder, shared, uses, began, scratch, proxy } =
            self;
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
                        Ok(FromSupervisor::Uses(usage)) => {
                            uses.send_replace(usage);
                        }
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
        // All processes of the command have ended. The pipe may still contain output that they wrote.
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

/// Whether the pipe with the output of a command is still open.
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

/// Returns how a command ended. `report` comes from the supervisor. `stopped` is the reason if the daemon stopped the
/// command.
fn how(report: &Report, stopped: Option<How>) -> How {
    match report.why {
        Why::Exited(code) => match stopped {
            // The command wrote too much output, and ended by itself before the daemon could stop it.
            Some(How::TooMuchOutput) => How::TooMuchOutput,
            Some(_) | None => How::Exited(code),
        },
        Why::Stopped => stopped.unwrap_or(How::Lost),
        Why::Exceeded(Exceeded::Time) => How::TimedOut,
        Why::Exceeded(Exceeded::Memory) => How::OutOfMemory,
        Why::Exceeded(Exceeded::TogetherMemory) => How::TogetherOutOfMemory,
        Why::Exceeded(Exceeded::Processes) => How::TooManyProcesses,
        Why::Exceeded(Exceeded::Disk) => How::TooMuchDisk,
    }
}
