//! Starts the driver of a conversation when the conversation has work, and notices when a task is over.
//!
//! Only the rows of the database decide what must be done. A bell (a signal in memory after a change of rows) only
//! makes the supervisor read the rows. So it does no harm if a bell is lost, rings twice or rings without need.

use crate::approvals::expire;
use crate::commands;
use crate::driver::{self, Abandoned};
use crate::handles::Handles;
use crate::rest;
use polity_decide::idle::{Background, Verdict, verdict};
use polity_society::id::TaskId;
use polity_society::notice::Notice;
use polity_society::rules::{self, Deadlock};
use polity_society::time::Timestamp;
use polity_store::{
    Bell, Connection, Conversation, Error, Tx, apply, approvals, events, messages, tasks, turns,
};
use polity_view::Event;
use polity_view::in_full;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// If a turn fails this many times in succession because of damage or a defect, the supervisor gives the turn up.
const FAILURES: u32 = 3;

/// The number of failures after which the pause of a conversation no longer grows. After each failure, the supervisor
/// pauses before it starts the driver of the conversation again. The pause is 200 ms after the first failure, and
/// doubles with each further failure up to 25.6 s.
const LONGEST_PAUSE: u32 = 8;

/// The pause before the supervisor repeats a read or write that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// The longest sleep of the supervisor while messages are delayed. Somebody may set the clock during the sleep, so the
/// supervisor must look at the clock from time to time.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// A conversation whose driver runs.
struct Running {
    /// Cancel this token to halt the driver: the driver then abandons the model call or the tool for which it waits.
    halt: CancellationToken,
    again: Again,
}

/// Whether a bell rang while the driver was running.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    Rung,
    Quiet,
}

pub(crate) struct Supervisor {
    handles: Arc<Handles>,
    bells: mpsc::UnboundedReceiver<Bell>,
    stop: CancellationToken,
    broken: watch::Sender<Option<String>>,
    running: HashMap<Conversation, Running>,
    /// The conversation of each driver, by the id of the driver's tokio task. After a panic of a driver, only this id
    /// is known.
    names: HashMap<tokio::task::Id, Conversation>,
    /// How often each conversation has failed in succession. `failures` counts failures because of damage or a
    /// defect; `passing` counts failures of the disk or the operating system.
    failures: HashMap<Conversation, u32>,
    passing: HashMap<Conversation, u32>,
    tasks: JoinSet<Result<(), Error>>,
    /// The next time at which a delayed message is due or a question expires.
    due: Option<Timestamp>,
    /// The tasks that could not be checked. The supervisor checks these tasks again at `look_again`.
    unsettled: BTreeSet<TaskId>,
    look_again: Instant,
    /// Whether the supervisor has stopped starting drivers.
    draining: bool,
    /// Cancelled when the supervisor has ended.
    ended: CancellationToken,
}

/// The result of checking whether a task is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    GoesOn,
    Idle,
}

/// Why a driver ended before its work was done.
enum Failure {
    /// The disk or the operating system failed. If the driver starts again later, it may succeed.
    Passing(String),
    /// Data are damaged, or polity has a defect.
    Ours(String),
}

impl Supervisor {
    /// Creates a supervisor. If the society cannot continue, the supervisor sends the reason to `broken`. When no agent
    /// works any more, it cancels `ended`.
    pub(crate) fn new(
        handles: Arc<Handles>,
        bells: mpsc::UnboundedReceiver<Bell>,
        stop: CancellationToken,
        broken: watch::Sender<Option<String>>,
        ended: CancellationToken,
    ) -> Self {
        Self {
            handles,
            bells,
            stop,
            broken,
            running: HashMap::new(),
            names: HashMap::new(),
            failures: HashMap::new(),
            passing: HashMap::new(),
            tasks: JoinSet::new(),
            due: None,
            unsettled: BTreeSet::new(),
            look_again: Instant::now(),
            draining: false,
            ended,
        }
    }

    /// Starts drivers for the work that the last process left, then handles bells until the supervisor is stopped.
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.serve().await {
            self.broken.send_replace(Some(in_full(&error)));
        }
        // A driver may be dropped at any point. The next driver repeats the work that was not written.
        self.tasks.shutdown().await;
        self.ended.cancel();
    }

    async fn serve(&mut self) -> Result<(), Error> {
        let (stop, draining) = (self.stop.clone(), self.handles.draining.clone());
        self.take_up_all().await?;
        polity_points::point!("supervisor::left_work_taken_up");
        self.look_for_due().await;
        loop {
            if self.draining && self.running.is_empty() {
                return Ok(());
            }
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                bell = self.bells.recv() => match bell {
                    // The message is for the person, so no agent is woken. But the message may have ended the task.
                    Some(Bell::Mailbox(conversation)) if conversation.agent.is_user() => {
                        self.settle(conversation.task).await;
                    }
                    Some(Bell::Mailbox(conversation)) => self.wake(conversation),
                    Some(Bell::Timer) => self.look_for_due().await,
                    Some(Bell::Halt(agent)) => self.halt(|running| running.agent == agent),
                    Some(Bell::EndCommands(agent)) => commands::end_of_agent(&self.handles, agent),
                    Some(Bell::EndCommandsOf(task)) => commands::end_of_stopped_task(&self.handles, task),
                    Some(Bell::HaltIn(halted)) => self.halt(|running| *running == halted),
                    None => return Ok(()),
                },
                () = draining.cancelled(), if !self.draining => self.draining = true,
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await,
                () = sleep_until(self.due), if self.due.is_some() => self.deliver_due().await,
                () = tokio::time::sleep_until(self.look_again), if !self.unsettled.is_empty() => {
                    for task in std::mem::take(&mut self.unsettled) {
                        self.settle(task).await;
                    }
                }
            }
        }
    }

    /// Starts a driver for every conversation with an unfinished turn or a mailbox that is not empty. Checks every
    /// task that might be over.
    async fn take_up_all(&mut self) -> Result<(), Error> {
        let mut reader = self.handles.store.reader().await?;
        let mut work = turns::all_open(&mut reader).await?;
        work.extend(messages::waiting(&mut reader).await?);
        let open = tasks::open(&mut reader).await?;
        polity_points::point!("supervisor::left_work_read");
        drop(reader);
        for conversation in work {
            self.wake(conversation);
        }
        polity_points::point!("supervisor::left_work_woken");
        for task in open {
            self.settle(task).await;
        }
        Ok(())
    }

    fn wake(&mut self, conversation: Conversation) {
        if let Some(running) = self.running.get_mut(&conversation) {
            running.again = Again::Rung;
            return;
        }
        // The next start of the society continues the unfinished work.
        if self.draining {
            return;
        }
        let handles = Arc::clone(&self.handles);
        let failed =
            [&self.failures, &self.passing].map(|of| of.get(&conversation).copied().unwrap_or_default());
        let (name, after) = (conversation.clone(), failed.into_iter().max().unwrap_or_default());
        let halt = CancellationToken::new();
        let halted = halt.clone();
        let task = self.tasks.spawn(async move {
            if after > 0 {
                let pause = Duration::from_millis(100 << after.min(LONGEST_PAUSE));
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = halted.cancelled() => {}
                    () = handles.draining.cancelled() => {}
                }
            }
            driver::run(&handles, &name, &halted).await
        });
        self.names.insert(task.id(), conversation.clone());
        self.running.insert(conversation, Running { halt, again: Again::Quiet });
    }

    /// Makes drivers abandon the model calls and the tools for which they wait. The drivers are not aborted: a driver
    /// that is writing finishes the write before the next driver starts.
    fn halt(&self, is_meant: impl Fn(&Conversation) -> bool) {
        for (conversation, running) in &self.running {
            if is_meant(conversation) {
                running.halt.cancel();
            }
        }
    }

    async fn ended(&mut self, ended: Result<(tokio::task::Id, Result<(), Error>), JoinError>) {
        let (id, failure) = match ended {
            Ok((id, Ok(()))) => (id, None),
            Ok((id, Err(error))) if error.may_pass() => (id, Some(Failure::Passing(in_full(&error)))),
            Ok((id, Err(error))) => (id, Some(Failure::Ours(in_full(&error)))),
            Err(error) => (error.id(), Some(Failure::Ours(format!("a defect of polity: {error}")))),
        };
        let Some(conversation) = self.names.remove(&id) else { return };
        let again = match self.running.remove(&conversation) {
            // A bell may have rung before the halt, and the halted driver may not have done the work that it announced.
            // So start the driver again.
            Some(running) if running.halt.is_cancelled() => Again::Rung,
            Some(running) => running.again,
            None => Again::Quiet,
        };
        let Some(failure) = failure else {
            self.failures.remove(&conversation);
            self.passing.remove(&conversation);
            return match again {
                Again::Rung => self.wake(conversation),
                Again::Quiet => self.settle(conversation.task).await,
            };
        };
        let counted = match &failure {
            Failure::Passing(_) => &mut self.passing,
            Failure::Ours(_) => &mut self.failures,
        };
        let failures = counted.entry(conversation.clone()).or_default();
        *failures = failures.saturating_add(1);
        let failures = *failures;
        match failure {
            Failure::Passing(reason) => {
                tracing::error!(agent = %conversation.agent, %reason, failures, "a driver failed; starting it again after a pause");
                self.wake(conversation);
            }
            Failure::Ours(reason) => {
                tracing::error!(agent = %conversation.agent, %reason, failures, "a driver failed because of damage or a defect");
                if failures >= FAILURES {
                    self.give_up(conversation, reason).await;
                } else {
                    self.wake(conversation);
                }
            }
        }
    }

    /// Gives up the turn of a conversation that fails again and again. If the turn cannot be given up, or no turn is
    /// open, parks the conversation.
    async fn give_up(&mut self, conversation: Conversation, reason: String) {
        match driver::abandon(&self.handles, &conversation, reason.clone()).await {
            Ok(Abandoned::Turn) => {
                self.failures.remove(&conversation);
                // Start the driver again for the messages that are still in the mailbox.
                return self.wake(conversation);
            }
            Ok(Abandoned::Nothing) => {}
            // The turn stays open. When its driver fails again, the supervisor calls this function again.
            Err(error) if error.may_pass() => return self.wake(conversation),
            Err(error) => {
                tracing::error!(agent = %conversation.agent, error = %in_full(&error), "failed to give up a turn");
            }
        }
        self.failures.remove(&conversation);
        match driver::park(&self.handles, &conversation, reason).await {
            Ok(()) => self.settle(conversation.task).await,
            // This conversation stays unchanged until the next start of the society. Other conversations continue.
            Err(error) => {
                tracing::error!(agent = %conversation.agent, error = %in_full(&error), "failed to park an agent");
            }
        }
    }

    /// Checks whether agents of a task wait for each other, and whether the task is over.
    async fn settle(&mut self, task: TaskId) {
        let is_at_work = self.running.keys().any(|running| running.task == task);
        let settled =
            if is_at_work { self.break_deadlocks(&task).await } else { self.try_to_settle(&task).await };
        if let Err(error) = settled {
            tracing::error!(%task, error = %in_full(&error), "failed to check whether a task is over; trying again");
            self.unsettled.insert(task);
            self.look_again = Instant::now() + AGAIN;
        }
    }

    /// Finds deadlocks. When a check finds a deadlock for the first time, tells its agents that they wait for each
    /// other. When a later check finds the same deadlock, gives up the newest request of the deadlock.
    async fn break_deadlocks(&self, task: &TaskId) -> Result<(), Error> {
        let mut reader = self.handles.store.reader().await?;
        let waits = messages::waits(&mut reader, task).await?;
        drop(reader);
        // The search for busy agents is slow, and deadlocks are rare. So first find out whether there would be a
        // deadlock if no agent were busy, and search for busy agents only then.
        if rules::deadlocks(&waits, &BTreeSet::new()).is_empty() {
            return Ok(());
        }
        let snapshot = self.handles.registry.current();
        let task = task.clone();
        let write = self.handles.store.write(move |tx| {
            Box::pin(async move {
                // Read the waits again in this transaction, because an agent may have got mail since the first read.
                let waits = messages::waits(&mut tx.connection, &task).await?;
                for deadlock in rules::deadlocks(&waits, &messages::busy(&mut tx.connection, &task).await?) {
                    let Deadlock { agents, requests } = deadlock;
                    let open = messages::requests(&mut tx.connection, requests.iter()).await?;
                    let newest = requests.last().cloned();
                    let notice = Notice::Deadlock { agents: agents.clone(), requests };
                    let mut told = false;
                    for agent in &agents {
                        if !messages::was_told(&mut tx.connection, &task, agent, 0, &notice).await? {
                            // The notice is about the newest request to this agent. Nothing was requested on behalf of
                            // the newest request, so the agent can answer it at once.
                            let owed = open.iter().rev().find(|request| request.to == *agent);
                            let about = owed.map(|request| request.id.clone());
                            apply::tell(tx, &snapshot, &task, agent, notice.clone(), about).await?;
                            told = true;
                        }
                    }
                    if told {
                        polity_points::point!("supervisor::deadlock_told");
                        events::append(tx, &Event::DeadlockFound { task: task.clone(), agents }).await?;
                    } else if let Some(newest) = newest {
                        rest::break_circle(tx, &snapshot, &task, &newest).await?;
                    }
                }
                Ok(())
            })
        });
        write.await
    }

    /// Does what is due in a task in which no driver is active.
    async fn try_to_settle(&self, task: &TaskId) -> Result<(), Error> {
        polity_points::point!("supervisor::before_settle");
        let background = commands::background(&self.handles, task);
        let mut reader = self.handles.store.reader().await?;
        let standing = tasks::standing(&mut reader, task).await?;
        drop(reader);
        let Some(standing) = standing else { return Ok(()) };
        if standing.waiting {
            self.break_deadlocks(task).await?;
        }
        if !standing.open {
            // If agents have worked since the task was last idle, the transaction of a turn has ended the task.
            if self.handles.budgets.worked(task).is_some() {
                self.forget(task);
            }
            return Ok(());
        }
        if verdict(&standing, background) == Verdict::Leave {
            return Ok(());
        }
        let snapshot = self.handles.registry.current();
        let (name, worked) = (task.clone(), self.handles.budgets.worked(task));
        let settle = self.handles.store.write(move |tx| {
            Box::pin(async move {
                // Read the facts again in this transaction, because an agent may have got mail since the first read.
                let Some(standing) = tasks::standing(&mut tx.connection, &name).await? else {
                    return Ok(Settled::GoesOn);
                };
                match verdict(&standing, background) {
                    Verdict::Leave => Ok(Settled::GoesOn),
                    Verdict::Nudge => {
                        tasks::set_nudged(tx, &name).await?;
                        rest::nudge(tx, &snapshot, &name).await?;
                        Ok(Settled::GoesOn)
                    }
                    Verdict::Idle(_) => {
                        rest::end_task(tx, &snapshot, &name, standing, worked).await?;
                        if background == Background::Running {
                            // These commands are ended after this transaction, and no agent is told.
                            polity_store::commands::stopped_in_task(tx, &name).await?;
                        }
                        Ok(Settled::Idle)
                    }
                }
            })
        });
        if settle.await? == Settled::Idle {
            self.forget(task);
        }
        Ok(())
    }

    /// Forgets the budget of an idle task, and ends its commands.
    fn forget(&self, task: &TaskId) {
        self.handles.budgets.forget(task);
        commands::end_of_task(&self.handles, task.clone());
    }

    /// Finds out when the next delayed message is due or the next question expires.
    async fn look_for_due(&mut self) {
        self.due = match self.next_due().await {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(error = %in_full(&error), "failed to read when the next message is due or the next question expires; trying again");
                Some(polity_store::now().saturating_add(AGAIN))
            }
        };
    }

    async fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        let mut reader = self.handles.store.reader().await?;
        next_due(&mut reader).await
    }

    async fn deliver_due(&mut self) {
        polity_points::point!("supervisor::due");
        match self.handles.store.write(|tx| Box::pin(deliver(tx))).await {
            Ok(()) => self.look_for_due().await,
            Err(error) => {
                tracing::error!(error = %in_full(&error), "failed to deliver delayed messages or to end expired questions; trying again");
                self.due = Some(polity_store::now().saturating_add(AGAIN));
            }
        }
    }
}

/// Returns when the next delayed message is due or the next question expires.
async fn next_due(connection: &mut Connection) -> Result<Option<Timestamp>, Error> {
    let message = messages::next_due(connection).await?;
    let question = approvals::next_expiry(connection).await?;
    Ok(message.into_iter().chain(question).min())
}

/// Delivers all messages that are due, and ends all questions whose time limit has passed. Afterwards, [`next_due`]
/// returns a later time, so the supervisor never wakes twice for the same message.
async fn deliver(tx: &mut Tx) -> Result<(), Error> {
    for mailbox in messages::deliver_due(tx).await? {
        if mailbox.agent.is_user() {
            events::append(tx, &Event::MessageDue { task: mailbox.task.clone() }).await?;
        }
        tx.ring(Bell::Mailbox(mailbox));
    }
    expire(tx).await
}

/// Sleeps until `due`, but at most for [`LONGEST_SLEEP`]. If somebody sets the clock during the sleep, the caller
/// notices it after this time.
async fn sleep_until(due: Option<Timestamp>) {
    tokio::time::sleep(time_to_sleep(due.unwrap_or_default(), polity_store::now())).await;
}

fn time_to_sleep(due: Timestamp, now: Timestamp) -> Duration {
    due.saturating_duration_since(now).min(LONGEST_SLEEP)
}

#[cfg(test)]
mod tests;
