//! Starts commands in the workspaces of agents, and waits for their end.

use super::board::Board;
use super::live::{Label, Live, Owner, Seat, end_of};
use super::names::{BASH, failed};
use super::note::Notes;
use super::plan::{Directories, plan};
use super::running::RunningCommand;
use super::size;
use super::sources::readable;
use super::spent::Ledger;
use super::sums::{disk_left, in_words, used_up};
use super::told::Listener;
use crate::call::{Access, Caller, Place, Root, Source};
use crate::tool::Confinement;
use polity_files::Guarded;
use polity_sandbox::{Ended, Enter, Error, Level, Limits, Machine, Network, Running, Settings, Viewer};
use polity_society::command::CommandEnd;
use polity_society::id::{AgentId, CommandId, TaskId};
use polity_society::refusal::Refusal;
use polity_workspaces::{Opened, Workspaces};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use tokio::sync::{Notify, OnceCell};
use tokio_util::sync::CancellationToken;

/// Returns the current settings. Called for each command, so that a changed setting applies to the next command.
pub type SettingsSource = Arc<dyn Fn() -> Settings + Send + Sync>;

/// The runner of commands in the workspaces of agents.
pub struct Commands {
    workspaces: Arc<Workspaces>,
    enter: Enter,
    /// The directory in which polity keeps the homes, the temporary directories and the output of commands.
    state: PathBuf,
    /// Directories of polity that commands cannot see, such as the data directory.
    hidden: Vec<PathBuf>,
    settings: SettingsSource,
    machine: OnceCell<Machine>,
    live: Arc<Live>,
    ledger: Arc<Ledger>,
    sizes: size::Sizes,
    pub(super) notes: Notes,
    pub(super) board: Board,
    pub(super) listener: OnceLock<Listener>,
}

/// A command to run, with its limits and the agent that runs it.
pub(super) struct Order<'a> {
    /// The id of a background command; `None` for a command in the foreground.
    pub(super) id: Option<CommandId>,
    pub(super) command: String,
    pub(super) limits: Limits,
    pub(super) caller: &'a Caller,
    /// The file that the output is written to.
    pub(super) output: PathBuf,
    /// Cancelling this ends the command.
    pub(super) cancel: CancellationToken,
}

/// A running command.
pub(super) struct Started {
    running: Running,
    seat: Seat,
    task: TaskId,
    live: Arc<Live>,
    ledger: Arc<Ledger>,
    /// Notified when the command has printed something.
    printed: Arc<Notify>,
    settings: SettingsSource,
}

/// How a command ended, and what the sandbox reports about it.
pub(super) struct Finished {
    pub(super) end: CommandEnd,
    pub(super) ended: Ended,
}

impl Commands {
    /// `enter` is the program that sets up the sandbox. `state` is the directory for homes, temporary files and
    /// output. Commands cannot see the directories `hidden`.
    pub fn new(
        workspaces: Arc<Workspaces>,
        enter: Enter,
        state: PathBuf,
        hidden: Vec<PathBuf>,
        settings: SettingsSource,
    ) -> Self {
        Self {
            workspaces,
            enter,
            notes: Notes::new(state.clone()),
            ledger: Arc::new(Ledger::new(state.clone())),
            state,
            hidden,
            settings,
            machine: OnceCell::new(),
            live: Arc::default(),
            sizes: size::Sizes::default(),
            board: Board::default(),
            listener: OnceLock::new(),
        }
    }

    /// Sets `machine`, which says which level of sandbox the machine can enforce. Then [`Self::machine`] returns this
    /// value and starts no test processes.
    #[must_use]
    pub fn on(self, machine: Machine) -> Self {
        Self { machine: OnceCell::new_with(Some(machine)), ..self }
    }

    /// Returns which level of sandbox this machine can enforce. The first call of this method starts test processes to
    /// find this out.
    pub async fn machine(&self) -> &Machine {
        self.machine.get_or_init(|| polity_sandbox::probe(&self.enter)).await
    }

    /// Returns how the next command will be confined. Until [`Self::machine`] is called, the result is
    /// [`Confinement::None`].
    pub fn confinement(&self) -> Confinement {
        let level = self.machine.get().map_or(Level::None, |machine| machine.level);
        match (level, self.settings().network) {
            (Level::Full, Network::None) => Confinement::Full,
            (Level::Full, Network::Domains(_) | Network::Full) => Confinement::FullWithNetwork,
            (Level::Partial, _) => Confinement::Partial,
            (Level::None, _) => Confinement::None,
        }
    }

    /// Returns the outside sources from which the output of the next command at a place may come.
    pub(super) async fn sources(&self, place: &Place) -> BTreeSet<Source> {
        let level = self.machine().await.level;
        readable(place, level, &self.settings().network)
    }

    /// Returns whether the settings allow commands on this machine. Until [`Self::machine`] is called, the result is
    /// `true`.
    pub fn exist(&self) -> bool {
        self.machine.get().is_none_or(|machine| self.settings().permit(machine.level))
    }

    pub(super) fn settings(&self) -> Settings {
        (self.settings)()
    }

    /// Ends all running commands, in the foreground and in the background, whose owner `is_meant` selects.
    pub(super) fn cancel(&self, is_meant: impl Fn(&Owner) -> bool) {
        self.live.cancel(is_meant);
    }

    /// Returns the running commands that `is_meant` selects, in the foreground and in the background, the oldest first.
    pub fn running(&self, is_meant: impl Fn(&AgentId, &TaskId) -> bool) -> Vec<RunningCommand> {
        self.live.running(|owner| is_meant(&owner.agent, &owner.task))
    }

    /// Forgets what the commands of a task have used: the size of the task's directories, and the sums of time and
    /// output.
    pub(super) fn forget_use(&self, task: &TaskId) {
        self.sizes.forget(task);
        self.live.forget(task);
    }

    /// Adds up what the commands of a task have used. If a sum has reached its limit, returns an error, and ends the
    /// commands of the task that still run. Commands can still run then if the person has lowered the limit since they
    /// started.
    async fn check_sums(&self, task: &TaskId, settings: &Settings) -> Result<(), Refusal> {
        if !self.live.knows(task) {
            let (ledger, of) = (Arc::clone(&self.ledger), task.clone());
            let read = tokio::task::spawn_blocking(move || ledger.read(&of)).await;
            self.live.learn(task, read.unwrap_or_default());
        }
        match used_up(&settings.task_limits, &self.live.spent(task)) {
            None => Ok(()),
            Some(limit) => {
                self.live.weigh(task, &settings.task_limits);
                let (words, name) = (in_words(limit, &settings.task_limits), limit.name());
                let reason = format!(
                    "{words}, so no further one starts; the person can raise tools.sandbox.{name} in app.json"
                );
                Err(failed(BASH, reason))
            }
        }
    }

    /// Returns the file that receives the output of a foreground command. `key` is the idempotency key of its call.
    pub(super) fn output_file(&self, task: &TaskId, key: &str) -> PathBuf {
        self.state.join(task.as_str()).join("output").join(format!("{}.txt", file_name(key)))
    }

    /// Starts a command. `report` gets each piece of output as soon as it is printed.
    pub(super) async fn start(
        &self,
        order: Order<'_>,
        mut report: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<Started, Refusal> {
        let Order { id, command, limits, caller, output, cancel } = order;
        let settings = self.settings();
        let machine = self.machine().await;
        if !settings.permit(machine.level) {
            let reason = "this machine has no sandbox, so commands do not run; the person can raise the level \
                          (polity doctor) or set tools.sandbox.allowNone";
            return Err(failed(BASH, reason));
        }
        self.check_sums(&caller.task, &settings).await?;
        let opened = self.workspaces.directory(&caller.task, &caller.place, &cancel).await?;
        let own = self.state.join(caller.task.as_str());
        let home = made(own.join("home")).await?;
        let temporary = made(own.join("tmp")).await?;
        if let Some(directory) = output.parent() {
            made(directory.to_owned()).await?;
        }
        let mut growing = vec![home.clone(), temporary.clone()];
        if caller.place.root == Root::Made {
            growing.push(opened.directory.clone());
        }
        let used = self.sizes.of(&caller.task, growing).await;
        let disk_bytes = disk_left(&settings.task_limits, limits.disk_bytes, used);
        let settings = Settings { limits: Limits { disk_bytes, ..limits }, ..settings };
        let own = Directories { home, temporary, output, hidden: &self.hidden };
        let shown = command.clone();
        let guarded = guarded_in(&opened).await?;
        let plan = plan(command, &caller.task, opened, guarded, settings, own);
        let printed = Arc::new(Notify::new());
        let notified = Arc::clone(&printed);
        let report = move |bytes: &[u8]| {
            report(bytes);
            notified.notify_one();
        };
        let running = polity_sandbox::spawn(plan, machine, &self.enter, &cancel, report).await;
        let running = running.map_err(|error| failed(BASH, error.to_string()))?;
        let label = Label { id, command: shown, since: SystemTime::now() };
        let seat = self.live.seat(Owner::of(caller), label, running.viewer(), cancel);
        let (live, ledger) = (Arc::clone(&self.live), Arc::clone(&self.ledger));
        let (task, settings) = (caller.task.clone(), Arc::clone(&self.settings));
        Ok(Started { running, seat, task, live, ledger, printed, settings })
    }
}

impl Started {
    /// Returns access to the output of the command while it runs.
    pub(super) fn viewer(&self) -> Viewer {
        self.running.viewer()
    }

    /// Waits for the end of the command. All commands of the task share some limits. This method checks these limits
    /// whenever the usage of the command changes, the command prints something, or the time of the task is over.
    pub(super) async fn finished(self) -> Result<Finished, Error> {
        let Self { running, seat, task, live, ledger, printed, settings } = self;
        let mut viewer = running.viewer();
        let ended = running.ended();
        tokio::pin!(ended);
        let ended = loop {
            let limits = settings().task_limits;
            let time_left = live.time_left(&task, &limits);
            let time_over = async {
                match time_left {
                    Some(left) => tokio::time::sleep(left).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut ended => break ended,
                () = viewer.usage_changed() => {}
                () = printed.notified() => {}
                () = time_over => {}
            }
            live.weigh(&task, &limits);
        };
        let exceeded = seat.exceeded();
        // Dropping the seat adds what the command has used to the sums of the task. This must also happen if waiting
        // for the command has failed.
        drop(seat);
        let kept = tokio::task::spawn_blocking(move || ledger.write(&task, || live.spent(&task)));
        if let Err(error) = kept.await {
            tracing::warn!(%error, "the sums of a task's commands are not kept");
        }
        let ended = ended?;
        Ok(Finished { end: end_of(ended.how, exceeded), ended })
    }
}

/// Finds the protected paths of a workspace, so that a command cannot change them.
async fn guarded_in(opened: &Opened) -> Result<Guarded, Refusal> {
    if opened.access == Access::Read {
        return Ok(Guarded::default());
    }
    let directory = opened.directory.clone();
    let found = tokio::task::spawn_blocking(move || polity_files::guarded(&directory)).await;
    let found = found.unwrap_or_else(|error| Err(io::Error::other(error)));
    let directory = opened.directory.display();
    found.map_err(|error| failed(BASH, format!("cannot look for protected files in {directory}: {error}")))
}

/// Makes a directory unless it exists, and returns its path.
async fn made(directory: PathBuf) -> Result<PathBuf, Refusal> {
    let made = tokio::fs::create_dir_all(&directory).await;
    made.map_err(|error| failed(BASH, format!("cannot make {}: {error}", directory.display())))?;
    Ok(directory)
}

/// Makes a file name from an idempotency key. The key may contain characters that are not allowed in a file name.
fn file_name(key: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    key.chars().map(plain).take(100).collect()
}
