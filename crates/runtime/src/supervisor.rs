//! Starts an agent's task when there is work for it, and notices when a task of the person is over.
//!
//! Rows are the truth, bells are doorbells: a bell may be lost, doubled or rung for nothing without harm.

use crate::driver;
use crate::event::Event;
use crate::handles::Handles;
use crate::idle::{Verdict, verdict};
use crate::store::{Conversation, Error, apply, events, messages, tasks, turns};
use polity_society::id::{AgentId, TaskId};
use polity_society::notice::Notice;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

/// Something that the supervisor should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Bell {
    /// A mailbox got something.
    Mailbox(Conversation),
    /// A message was delayed.
    Timer,
    /// An agent was ended.
    Ended(AgentId),
}

/// How often a conversation may fail for a reason of ours before its turn is given up.
const FAILURES: u32 = 3;

/// How long the supervisor sleeps at most while messages are delayed: the clock may be set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(30);

/// A conversation whose task runs.
struct Running {
    abort: AbortHandle,
    again: Again,
}

/// Whether a bell rang while the task was running.
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
    /// A task that panicked is known by its id alone.
    names: HashMap<tokio::task::Id, Conversation>,
    failures: HashMap<Conversation, u32>,
    tasks: JoinSet<Result<(), Error>>,
}

impl Supervisor {
    /// A supervisor. `broken` is told when the society cannot go on.
    pub(crate) fn new(
        handles: Arc<Handles>,
        bells: mpsc::UnboundedReceiver<Bell>,
        stop: CancellationToken,
        broken: watch::Sender<Option<String>>,
    ) -> Self {
        Self {
            handles,
            bells,
            stop,
            broken,
            running: HashMap::new(),
            names: HashMap::new(),
            failures: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Takes up what was left, then works until it is stopped.
    pub(crate) async fn run(mut self) {
        if let Err(error) = self.serve().await {
            self.broken.send_replace(Some(in_full(&error)));
        }
        // Dropping an agent's task anywhere is safe: what it has not written it does again.
        self.tasks.shutdown().await;
    }

    async fn serve(&mut self) -> Result<(), Error> {
        let stop = self.stop.clone();
        self.take_up_all().await?;
        let mut due = self.next_due().await?;
        loop {
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                bell = self.bells.recv() => match bell {
                    // The person is no agent: nobody is woken, but the task may be over now.
                    Some(Bell::Mailbox(conversation)) if conversation.agent.is_user() => {
                        self.settle(conversation.task).await?;
                    }
                    Some(Bell::Mailbox(conversation)) => self.wake(conversation),
                    Some(Bell::Timer) => due = self.next_due().await?,
                    Some(Bell::Ended(agent)) => self.abort(&agent),
                    None => return Ok(()),
                },
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended).await?,
                () = sleep_until(due), if due.is_some() => {
                    self.deliver_due().await?;
                    due = self.next_due().await?;
                }
            }
        }
    }

    /// Every unfinished turn, every mailbox that holds something, and every task that might be over.
    async fn take_up_all(&mut self) -> Result<(), Error> {
        let mut reader = self.handles.store.reader().await?;
        let mut work = turns::all_open(&mut reader).await?;
        work.extend(messages::waiting(&mut reader).await?);
        let open = tasks::open(&mut reader).await?;
        drop(reader);
        for conversation in work {
            self.wake(conversation);
        }
        for task in open {
            self.settle(task).await?;
        }
        Ok(())
    }

    fn wake(&mut self, conversation: Conversation) {
        if let Some(running) = self.running.get_mut(&conversation) {
            running.again = Again::Rung;
            return;
        }
        let handles = Arc::clone(&self.handles);
        let (name, after) =
            (conversation.clone(), self.failures.get(&conversation).copied().unwrap_or_default());
        let abort = self.tasks.spawn(async move {
            if after > 0 {
                tokio::time::sleep(Duration::from_millis(100 << after.min(10))).await;
            }
            driver::run(&handles, &name).await
        });
        self.names.insert(abort.id(), conversation.clone());
        self.running.insert(conversation, Running { abort, again: Again::Quiet });
    }

    fn abort(&mut self, agent: &AgentId) {
        for (conversation, running) in &self.running {
            if conversation.agent == *agent {
                running.abort.abort();
            }
        }
    }

    async fn ended(
        &mut self,
        ended: Result<(tokio::task::Id, Result<(), Error>), JoinError>,
    ) -> Result<(), Error> {
        let (id, failure) = match ended {
            Ok((id, Ok(()))) => (id, None),
            Ok((id, Err(error))) => (id, Some(in_full(&error))),
            Err(error) if error.is_cancelled() => (error.id(), None),
            Err(error) => (error.id(), Some(format!("a defect of polity: {error}"))),
        };
        let Some(conversation) = self.names.remove(&id) else {
            return Ok(());
        };
        let again = self.running.remove(&conversation).map_or(Again::Quiet, |running| running.again);
        let Some(failure) = failure else {
            self.failures.remove(&conversation);
            if again == Again::Rung {
                self.wake(conversation);
                return Ok(());
            }
            return self.settle(conversation.task).await;
        };
        let failures = self.failures.entry(conversation.clone()).or_default();
        *failures += 1;
        tracing::error!(agent = %conversation.agent, %failure, failures, "an agent's turn was interrupted");
        if *failures >= FAILURES {
            self.failures.remove(&conversation);
            if let Err(error) = driver::abandon(&self.handles, &conversation, failure).await {
                // It stays as it is until the next start; the others go on.
                tracing::error!(agent = %conversation.agent, error = %in_full(&error), "a turn cannot even be given up");
                return Ok(());
            }
        }
        // What is still in its mailbox is taken up again.
        self.wake(conversation);
        Ok(())
    }

    /// Looks whether a task is over; if so, says it, or has root say something first.
    async fn settle(&mut self, task: TaskId) -> Result<(), Error> {
        if self.running.keys().any(|running| running.task == task) {
            return Ok(());
        }
        let snapshot = self.handles.registry.current();
        let settle = self.handles.store.write(move |tx| {
            Box::pin(async move {
                let Some(standing) = tasks::standing(&mut tx.connection, &task).await? else {
                    return Ok(());
                };
                match verdict(&standing) {
                    Verdict::Leave => Ok(()),
                    Verdict::Nudge => {
                        tasks::set_nudged(tx, &task).await?;
                        apply::tell(tx, &snapshot, &task, &AgentId::root(), Notice::Nudge).await
                    }
                    Verdict::Idle(outcome) => {
                        tasks::set_idle(tx, &task).await?;
                        events::append(tx, &Event::TaskIdle { task, outcome }).await
                    }
                }
            })
        });
        settle.await
    }

    async fn next_due(&self) -> Result<Option<i64>, Error> {
        let mut reader = self.handles.store.reader().await?;
        messages::next_due(&mut reader).await
    }

    async fn deliver_due(&self) -> Result<(), Error> {
        let deliver = self.handles.store.write(|tx| {
            Box::pin(async move {
                for mailbox in messages::deliver_due(tx).await? {
                    if mailbox.agent.is_user() {
                        events::append(tx, &Event::MessageDue { task: mailbox.task.clone() }).await?;
                    }
                    tx.ring(Bell::Mailbox(mailbox));
                }
                Ok(())
            })
        });
        deliver.await
    }
}

/// Sleeps until a time, but never long: the clock may be set meanwhile.
async fn sleep_until(due: Option<i64>) {
    let left = due.unwrap_or_default().saturating_sub(crate::clock::now()).max(0).unsigned_abs();
    tokio::time::sleep(Duration::from_millis(left).min(LONGEST_SLEEP)).await;
}

/// An error with all that caused it, in one line.
fn in_full(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
