//! Starts background commands, reads their output, ends them, and reports their ends to their agents.

use super::board::{Aftermath, Posted};
use super::commands::{Commands, Finished, Order, Started};
use super::excerpt::last_lines;
use super::live::Owner;
use super::names::{BASH, failed};
use super::note::{Note, Notes, Over};
use super::told::{CommandEnded, Listener, Told};
use crate::call::{Caller, Invocation, Source};
use polity_sandbox::{Error, Limits, Output};
use polity_society::command::CommandEnd;
use polity_society::id::{AgentId, CommandId, TaskId};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Number of hexadecimal digits of an id after its prefix.
const ID_CHARS: usize = 8;

/// A background command, as `bash_output` and `bash_stop` show it to the agent.
pub(super) enum Seen {
    /// The command is still running.
    Running(Posted),
    /// The command has ended.
    Ended {
        /// How the command ended.
        over: Over,
        output: Output,
        /// The outside sources from which the output may come.
        sources: BTreeSet<Source>,
    },
}

impl Commands {
    /// Sets the listener that records the ends of background commands. Only the first call has an effect.
    pub fn listen(&self, listener: Listener) {
        let _ = self.listener.set(listener);
    }

    /// Starts a command in the background, and returns its id without waiting for its end. `sources` are the outside
    /// sources from which its output may come.
    pub(super) async fn start_background(
        self: &Arc<Self>,
        command: String,
        limits: Limits,
        sources: BTreeSet<Source>,
        call: &Invocation,
    ) -> Result<CommandId, Refusal> {
        let (caller, commands) = (call.caller.clone(), Arc::clone(self));
        let id = id_of(&caller.task, &call.idempotency_key);
        let Owner { agent, task } = Owner::of(&caller);
        let call = call.idempotency_key.clone();
        let note = Note { id, agent, task, command, call, sources, over: None };
        let cancel = CancellationToken::new();
        // The board is the list of running commands. Put the command on the board before the first `await`. If the
        // agent is stopped from now on, its command is found on the board and ended.
        let posted = self.board.post(note.id.clone(), note.owner(), note.sources.clone(), cancel.clone());
        posted.map_err(|full| failed(BASH, full.to_string()))?;
        // The runtime may drop the future of this call halfway. So a separate tokio task starts the command: the start
        // is then completed nevertheless, and the command can be ended.
        let start = async move { commands.start_posted(note, limits, &caller, cancel).await };
        let started = tokio::spawn(start).await;
        started.map_err(|error| failed(BASH, error.to_string()))?
    }

    async fn start_posted(
        self: Arc<Self>,
        note: Note,
        limits: Limits,
        caller: &Caller,
        cancel: CancellationToken,
    ) -> Result<CommandId, Refusal> {
        let id = note.id.clone();
        match self.start_noted(&note, limits, caller, cancel).await {
            Ok(started) => {
                self.board.show(&id, started.viewer());
                tokio::spawn(self.see_off(note, started));
                Ok(id)
            }
            Err(refusal) => {
                let gone = id.clone();
                let _ = self.with_notes(move |notes| notes.remove(&gone)).await;
                self.board.remove(&id);
                Err(refusal)
            }
        }
    }

    async fn start_noted(
        &self,
        note: &Note,
        limits: Limits,
        caller: &Caller,
        cancel: CancellationToken,
    ) -> Result<Started, Refusal> {
        let (written, command) = (note.clone(), note.command.clone());
        self.with_notes(move |notes| notes.write(&written)).await.map_err(not_noted)?;
        let output = self.notes.output(&note.task, &note.id);
        let order = Order { id: Some(note.id.clone()), command, limits, caller, output, cancel };
        self.start(order, |_| {}).await
    }

    /// Waits for the end of a command, writes the end into the note, and reports it to the listener.
    async fn see_off(self: Arc<Self>, note: Note, started: Started) {
        let finished = started.finished().await;
        let id = note.id.clone();
        let Some(posted) = self.board.get(&id) else { return };
        if posted.aftermath == Aftermath::Interrupted {
            return self.board.remove(&id);
        }
        let note = Note { over: Some(over(finished, posted.seen)), ..note };
        let written = note.clone();
        let result = self
            .with_notes(move |notes| match posted.aftermath {
                Aftermath::Quiet => notes.close(&written),
                Aftermath::Tell | Aftermath::Interrupted => notes.write(&written),
            })
            .await;
        match (result, posted.aftermath, CommandEnded::of(&note)) {
            // The note could not be written, and still says that the command is running. So the next start of polity
            // reports the command as interrupted.
            (Err(error), _, _) => {
                tracing::error!(command = %id, %error, "failed to note the end of a background command");
            }
            (Ok(()), Aftermath::Tell, Some(ended)) => {
                // The agent may ask for the output immediately after it gets the notice. So before the notice, the
                // board (the list of running commands) must say that the command has ended.
                self.board.end(&id);
                self.tell(ended).await;
            }
            (Ok(()), _, _) => {}
        }
        // As long as a command of a task is on the board, the task does not count as idle. So the command stays on the
        // board until its end is recorded.
        self.board.remove(&id);
    }

    async fn tell(&self, ended: CommandEnded) {
        let Some(listener) = self.listener.get() else { return };
        let id = ended.id.clone();
        match listener(ended).await {
            Told::Recorded => self.acknowledge(&id).await,
            Told::NotRecorded => {
                tracing::error!(command = %id, "the end of a background command is told at the next start");
            }
        }
    }

    /// Returns the background commands whose end the listener has not yet recorded. Some of them had ended before
    /// polity died. Others were still running, and count as interrupted. Call this once at the start, before agents
    /// work.
    pub async fn recover(&self) -> Vec<CommandEnded> {
        let mut running = self.board.ids(|_| true);
        running.retain(|id| self.board.get(id).is_some_and(|posted| !posted.over.is_cancelled()));
        let found = self.with_notes(move |notes| {
            let open = notes.open()?.into_iter().filter(|note| !running.contains(&note.id));
            let ended = open.map(|note| if note.over.is_some() { Ok(note) } else { notes.interrupt(note) });
            ended.collect::<io::Result<Vec<Note>>>()
        });
        match found.await {
            Ok(notes) => notes.iter().filter_map(CommandEnded::of).collect(),
            Err(error) => {
                tracing::error!(%error, "failed to read the notes about background commands");
                Vec::new()
            }
        }
    }

    /// Closes the note of a command, so that [`Self::recover`] does not return the command again. Call this after the
    /// listener has recorded the end of the command.
    pub async fn acknowledge(&self, id: &CommandId) {
        let of = id.clone();
        let closed = self.with_notes(move |notes| match notes.open_note(&of)? {
            Some(note) => notes.close(&note),
            None => Ok(()),
        });
        if let Err(error) = closed.await {
            // The note stays open, so the next start reports the end of the command again. This does no harm, because
            // the listener ignores an end that it has already recorded.
            tracing::warn!(command = %id, %error, "failed to close the note about a background command");
        }
    }

    /// Waits until a background command of the caller has ended, but not longer than `patience`. Then returns the state
    /// of the command.
    pub(super) async fn look(
        &self,
        caller: &Caller,
        id: &CommandId,
        patience: Duration,
        cancel: &CancellationToken,
    ) -> Result<Seen, Refusal> {
        let owner = Owner::of(caller);
        if let Some(posted) = self.board.get(id).filter(|posted| posted.owner == owner) {
            tokio::select! {
                () = posted.over.cancelled() => {}
                () = tokio::time::sleep(patience) => {}
                () = cancel.cancelled() => {}
            }
            if let Some(posted) = self.board.get(id).filter(|posted| !posted.over.is_cancelled()) {
                return Ok(Seen::Running(posted));
            }
        }
        // The id becomes part of a path, so an id that polity did not make is rejected here.
        let found = if is_id(id) {
            let (task, of) = (caller.task.clone(), id.clone());
            let found = self.with_notes(move |notes| {
                let Some(note) = notes.find(&task, &of)?.filter(|note| note.owner() == owner) else {
                    return Ok(None);
                };
                Ok(Some((notes.kept(&task, &of)?, note)))
            });
            found.await.map_err(not_noted)?
        } else {
            None
        };
        let ended = found.and_then(|(output, note)| {
            let Note { over, sources, .. } = note;
            Some(Seen::Ended { over: over?, output, sources })
        });
        ended.ok_or_else(|| self.unknown(caller, id))
    }

    /// Records how many bytes of a background command's output the agent has seen.
    pub(super) fn saw(&self, id: &CommandId, seen: u64) {
        self.board.saw(id, seen);
    }

    /// Ends a background command of the caller. The agent gets no notice of this end, because the agent itself asked
    /// polity to end the command.
    pub(super) async fn stop_one(&self, caller: &Caller, id: &CommandId) {
        let of = Owner::of(caller);
        wait(self.board.stop(|other, owner| other == id && *owner == of, Aftermath::Quiet)).await;
    }

    /// Ends all commands of an agent, with all their processes. The agent gets no notice of these ends.
    pub async fn stop_of_agent(&self, agent: &AgentId) {
        self.stop(|owner| owner.agent == *agent, Aftermath::Quiet).await;
    }

    /// Ends all commands of an agent in one task, with all their processes. The agent gets no notice of these ends.
    pub async fn stop_in(&self, agent: &AgentId, task: &TaskId) {
        self.stop(|owner| owner.agent == *agent && owner.task == *task, Aftermath::Quiet).await;
    }

    /// Ends all commands of a task, with all their processes. The agents get no notice of these ends.
    pub async fn stop_of_task(&self, task: &TaskId) {
        self.stop(|owner| owner.task == *task, Aftermath::Quiet).await;
    }

    /// Ends all commands with all their processes, because polity ends. The next start reports the background
    /// commands as interrupted.
    pub async fn stop_all(&self) {
        self.stop(|_| true, Aftermath::Interrupted).await;
    }

    async fn stop(&self, is_meant: impl Fn(&Owner) -> bool, aftermath: Aftermath) {
        let over = self.board.stop(|_, owner| is_meant(owner), aftermath);
        self.cancel(is_meant);
        wait(over).await;
    }

    /// Returns whether any background command of a task is running.
    pub fn are_running(&self, task: &TaskId) -> bool {
        !self.board.ids(|owner| owner.task == *task).is_empty()
    }

    /// Returns the tasks in which an agent has running background commands.
    pub fn tasks_of(&self, agent: &AgentId) -> BTreeSet<TaskId> {
        self.board.tasks(agent)
    }

    /// Ends the commands of a task, and removes the home directory, the temporary directory and all output of the
    /// task.
    pub async fn forget(&self, task: &TaskId) -> io::Result<()> {
        self.stop_of_task(task).await;
        self.forget_use(task);
        let task = task.clone();
        self.with_notes(move |notes| notes.forget(&task)).await
    }

    fn unknown(&self, caller: &Caller, id: &CommandId) -> Refusal {
        let owner = Owner::of(caller);
        let running: Vec<String> =
            self.board.ids(|of| *of == owner).iter().map(ToString::to_string).collect();
        let running = if running.is_empty() { "none".to_owned() } else { running.join(", ") };
        let fault = format!("you have no background command {id}; running: {running}");
        Refusal::InvalidArguments(vec![FieldProblem::new("id", Fault::Rule(fault))])
    }

    async fn with_notes<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Notes) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let notes = self.notes.clone();
        tokio::task::spawn_blocking(move || act(&notes)).await.map_err(io::Error::other)?
    }
}

async fn wait(over: Vec<CancellationToken>) {
    for over in over {
        over.cancelled().await;
    }
}

fn not_noted(error: io::Error) -> Refusal {
    failed(BASH, format!("cannot keep a note about the command: {error}"))
}

/// Describes how a command ended. Polity writes this description into the note on disk. `seen` is the number of output
/// bytes that the agent has seen.
fn over(finished: Result<Finished, Error>, seen: u64) -> Over {
    match finished {
        Ok(Finished { end, ended }) => Over {
            end,
            duration_ms: u64::try_from(ended.duration.as_millis()).ok(),
            seen,
            last_lines: last_lines(&ended.output),
            restored: ended.restored,
        },
        Err(error) => Over {
            end: CommandEnd::Failed { reason: error.to_string() },
            duration_ms: None,
            seen,
            last_lines: String::new(),
            restored: Vec::new(),
        },
    }
}

/// Makes an id that is short enough for a model to repeat. The same call of a tool always gets the same id.
fn id_of(task: &TaskId, key: &str) -> CommandId {
    let hash = blake3::hash(format!("{task}\n{key}").as_bytes()).to_hex();
    CommandId::new(format!("{PREFIX}{}", hash.chars().take(ID_CHARS).collect::<String>()))
}

const PREFIX: &str = "cmd-";

/// Returns whether an id has the form of the ids that [`id_of`] makes.
fn is_id(id: &CommandId) -> bool {
    let rest = id.as_str().strip_prefix(PREFIX);
    rest.is_some_and(|rest| rest.len() == ID_CHARS && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
