//! The writer: the one part of the program that writes to the database. It is a thread, because a commit waits for the
//! disk. It runs all waiting jobs in one transaction. If there are several, it sets a savepoint before each, so that it
//! can undo one job alone. It answers the callers of the jobs and rings bells only after the commit.

use super::place::{Gone, Place};
use super::trouble::Trouble;
use super::{Conversation, Error, events};
use crate::Bell;
use futures::FutureExt;
use futures::future::BoxFuture;
use polity_society::time::Timestamp;
use polity_sql::{Connection, Sql};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

/// The length of the queue for jobs. A longer queue would not make commits more efficient.
const QUEUE: usize = 256;

/// How many of the newest bells [`Tx::ring`] compares with a new bell. A job that steers all agents rings a bell for each
/// of them, and comparing each bell with all others would take quadratic time.
const COMPARED_BELLS: usize = 64;

/// A write transaction, as a job sees it.
pub struct Tx {
    pub connection: Connection,
    /// The time of the transaction. All rows that the transaction writes get this time.
    pub now: Timestamp,
    /// The conversations that have stopped waiting: this job has ended the turn that they waited for. Before the job
    /// ends, the module `rest` of the runtime checks whether their agents now have texts to deliver.
    pub released: Vec<Conversation>,
    /// The events that the running job has appended.
    pub(crate) unwritten: Vec<events::Unwritten>,
    bells: Vec<Bell>,
    newest_event: i64,
}

impl Tx {
    /// Makes the writer ring a bell after the commit. A bell that was rung shortly before is not rung again.
    pub fn ring(&mut self, bell: Bell) {
        if !self.bells.iter().rev().take(COMPARED_BELLS).any(|rung| *rung == bell) {
            self.bells.push(bell);
        }
    }

    /// Notes the number of a written event, so that the writer announces it after the commit.
    pub(crate) fn event_written(&mut self, sequence: i64) {
        self.newest_event = sequence;
    }

    /// Begins a part of the transaction that can be undone separately. Nested parts need different names.
    pub async fn savepoint(&mut self, name: &'static str) -> Result<Savepoint, polity_sql::Error> {
        self.execute(format!("SAVEPOINT {name}")).await?;
        Ok(self.mark(name))
    }

    /// Notes how many events and signals are pending now. [`Tx::forget`] can then drop those that were added after this
    /// moment.
    fn mark(&self, name: &'static str) -> Savepoint {
        Savepoint {
            name,
            bells: self.bells.len(),
            released: self.released.len(),
            events: self.unwritten.len(),
        }
    }

    /// Forgets the pending events and signals of an undone part of the transaction.
    fn forget(&mut self, since: &Savepoint) {
        self.bells.truncate(since.bells);
        self.released.truncate(since.released);
        self.unwritten.truncate(since.events);
    }

    /// Undoes a part of the transaction: its writes, its events and its pending signals.
    pub async fn undo(&mut self, since: &Savepoint) -> Result<(), polity_sql::Error> {
        self.forget(since);
        self.execute(format!("ROLLBACK TO {}", since.name)).await
    }

    /// Ends a part of the transaction and keeps its writes.
    pub async fn release(&mut self, part: Savepoint) -> Result<(), polity_sql::Error> {
        self.execute(format!("RELEASE {}", part.name)).await
    }

    async fn execute(&mut self, sql: impl Into<String>) -> Result<(), polity_sql::Error> {
        polity_sql::query(Sql::built(sql)).execute(&mut self.connection).await.map(drop)
    }
}

/// Marks where a part of a transaction begins, so that the part can be undone separately.
#[derive(Debug)]
pub struct Savepoint {
    name: &'static str,
    bells: usize,
    released: usize,
    events: usize,
}

/// Whether a job shares its transaction with other jobs. A job that is alone needs no savepoint: to undo the job, the
/// writer undoes the transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Alone,
    Shared,
}

/// The name of a [`Savepoint`] that marks the beginning of the whole transaction.
const WHOLE: &str = "transaction";

/// Whether the transaction of a job was committed; if not, why.
type Verdict = Result<(), String>;

/// Sends the result of a job to its caller. The argument tells whether the job's transaction was committed.
type Answer = Box<dyn FnOnce(&Verdict) + Send>;

/// A job that has run: whether to keep its writes, and how to answer its caller.
struct Ran {
    outcome: KeepOrUndo,
    answer: Answer,
}

#[derive(PartialEq, Eq)]
enum KeepOrUndo {
    Keep,
    Undo,
}

/// A job. It gets the transaction, or the reason why no transaction could begin.
type Job = Box<dyn for<'t> FnOnce(Result<&'t mut Tx, &'t str>) -> BoxFuture<'t, Ran> + Send>;

enum Order {
    Run(Job),
    Close(oneshot::Sender<()>),
}

#[derive(Clone, Debug)]
pub(super) struct Handle {
    /// `None` if the database is open read-only.
    orders: Option<mpsc::Sender<Order>>,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Run(_) => "Run",
            Self::Close(_) => "Close",
        })
    }
}

impl Handle {
    /// Returns the handle for a database that is open read-only.
    pub(super) fn none() -> Self {
        Self { orders: None }
    }

    /// Fails if the database is open read-only.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.orders().map(drop)
    }

    fn orders(&self) -> Result<&mpsc::Sender<Order>, Error> {
        self.orders.as_ref().ok_or(Error::ReadOnly)
    }

    /// Runs a job in a write transaction. If the job fails, the writer undoes the job.
    pub(super) async fn run<T, E, F>(&self, job: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, E>> + Send + 'static,
    {
        let orders = self.orders()?;
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move |tx| {
            Box::pin(async move {
                let result = match tx {
                    Ok(tx) => {
                        let done = AssertUnwindSafe(job(&mut *tx)).catch_unwind().await;
                        match done.unwrap_or_else(|_| Err(Error::Panicked.into())) {
                            Ok(done) => events::write_all(tx).await.map(|()| done).map_err(E::from),
                            Err(error) => Err(error),
                        }
                    }
                    Err(reason) => Err(Error::Commit(reason.to_owned()).into()),
                };
                let outcome = if result.is_ok() { KeepOrUndo::Keep } else { KeepOrUndo::Undo };
                let answer = move |verdict: &Verdict| {
                    let result = match verdict {
                        Ok(()) => result,
                        Err(reason) => result.and(Err(Error::Commit(reason.clone()).into())),
                    };
                    // Sending fails if the caller was dropped before the job ended. That caller needs no answer.
                    let _ = sender.send(result);
                };
                Ran { outcome, answer: Box::new(answer) }
            })
        });
        orders.send(Order::Run(job)).await.map_err(|_| Error::Closed)?;
        receiver.await.map_err(|_| Error::Closed)?
    }

    pub(super) async fn close(&self) {
        let Ok(orders) = self.orders() else { return };
        let (sender, receiver) = oneshot::channel();
        if orders.send(Order::Close(sender)).await.is_ok() {
            // An error means that the writer has already ended.
            let _ = receiver.await;
        }
    }
}

pub(super) fn start(
    connection: Connection,
    newest_event: i64,
    place: Arc<Place>,
) -> Result<(Handle, super::Signals), std::io::Error> {
    let (orders, waiting) = mpsc::channel(QUEUE);
    let (bells, rung) = mpsc::unbounded_channel();
    let (events, seen) = watch::channel(newest_event);
    let tx = Tx {
        connection,
        now: Timestamp::default(),
        released: Vec::new(),
        unwritten: Vec::new(),
        bells: Vec::new(),
        newest_event,
    };
    let writer = Writer { tx, waiting, bells, events, place, failed: 0 };
    // A job is a future that waits only for the database. So this thread can run it without the threads of the
    // runtime. But the job may use the context of the runtime, for example to log.
    let runtime = tokio::runtime::Handle::current();
    std::thread::Builder::new().name("writer".to_owned()).spawn(move || runtime.block_on(writer.run()))?;
    Ok((Handle { orders: Some(orders) }, super::Signals { bells: rung, events: seen, to_check: false }))
}

struct Writer {
    tx: Tx,
    waiting: mpsc::Receiver<Order>,
    bells: mpsc::UnboundedSender<Bell>,
    events: watch::Sender<i64>,
    place: Arc<Place>,
    /// The number of transactions in a row that were not committed.
    failed: u32,
}

/// Why a transaction does not count as committed.
#[derive(Debug, thiserror::Error)]
enum Uncommitted {
    #[error("{}", with_advice(.0))]
    Sql(#[from] polity_sql::Error),
    #[error("{0}; the data directory was removed or replaced: put it back, or restore a backup")]
    Gone(#[from] Gone),
}

/// Describes an error of SQLite, with advice for the person if there is any.
fn with_advice(error: &polity_sql::Error) -> String {
    match Trouble::of_sql(error) {
        Some(trouble) => format!("{error}; {}", trouble.advice()),
        None => error.to_string(),
    }
}

impl Writer {
    async fn run(mut self) {
        let mut orders = Vec::with_capacity(QUEUE);
        while self.waiting.recv_many(&mut orders, QUEUE).await > 0 {
            let mut jobs = Vec::with_capacity(orders.len());
            let mut closing = None;
            for order in orders.drain(..) {
                match order {
                    Order::Run(job) => jobs.push(job),
                    Order::Close(sender) => closing = Some(sender),
                }
            }
            if !jobs.is_empty() {
                self.commit(jobs).await;
            }
            if let Some(closed) = closing {
                // When the connection closes, SQLite moves the log (WAL) into the database file. If this fails, nothing
                // is lost.
                let Self { tx, .. } = self;
                if let Err(error) = tx.connection.close() {
                    tracing::warn!(%error, "failed to close the database");
                }
                let _ = closed.send(());
                return;
            }
        }
    }

    async fn commit(&mut self, jobs: Vec<Job>) {
        self.tx.now = crate::clock::now();
        let events_before = self.tx.newest_event;
        let mut answers: Vec<Answer> = Vec::with_capacity(jobs.len());
        let verdict = match self.transaction(jobs, &mut answers).await {
            Ok(()) => {
                if std::mem::take(&mut self.failed) > 0 {
                    tracing::info!("the database can be written to again");
                }
                Ok(())
            }
            Err(error) => {
                self.failed = self.failed.saturating_add(1);
                let reason = error.to_string();
                tracing::error!(reason, failed = self.failed, "a write was not committed; it is retried");
                // `ROLLBACK` fails if SQLite has already rolled back by itself, so ignore a failure.
                let _ = self.tx.execute("ROLLBACK").await;
                self.tx.bells.clear();
                self.tx.newest_event = events_before;
                Err(reason)
            }
        };
        polity_points::point!("writer::committed");
        for answer in answers {
            answer(&verdict);
        }
        polity_points::point!("writer::answered");
        for bell in self.tx.bells.drain(..) {
            // The supervisor does not listen while the daemon starts or shuts down. The work is not lost, because the
            // supervisor finds it in the rows.
            let _ = self.bells.send(bell);
        }
        polity_points::point!("writer::rung");
        if self.tx.newest_event != events_before {
            self.events.send_replace(self.tx.newest_event);
        }
    }

    async fn transaction(&mut self, jobs: Vec<Job>, answers: &mut Vec<Answer>) -> Result<(), Uncommitted> {
        let sharing = if jobs.len() == 1 { Sharing::Alone } else { Sharing::Shared };
        polity_points::point!("writer::before_begin");
        // `BEGIN IMMEDIATE` begins a write transaction. A read transaction that later begins to write can fail with a
        // snapshot error, and the busy timeout does not prevent this error.
        let mut so_far = match self.place.check() {
            Ok(()) => self.tx.execute("BEGIN IMMEDIATE").await.map_err(Uncommitted::Sql),
            Err(gone) => Err(gone.into()),
        };
        for job in jobs {
            so_far = match so_far {
                Ok(()) => self.run_job(job, sharing, answers).await,
                // The transaction has failed. The caller of this job learns the reason and can retry.
                Err(error) => {
                    answers.push(job(Err(&error.to_string())).await.answer);
                    Err(error)
                }
            };
        }
        so_far?;
        polity_points::point!("writer::before_commit");
        self.tx.execute("COMMIT").await?;
        // If the files were removed or replaced, the commit is lost, so do not report it as a success.
        Ok(self.place.check()?)
    }

    async fn run_job(
        &mut self,
        job: Job,
        sharing: Sharing,
        answers: &mut Vec<Answer>,
    ) -> Result<(), Uncommitted> {
        let begun = match sharing {
            Sharing::Alone => Ok(self.tx.mark(WHOLE)),
            Sharing::Shared => self.tx.savepoint("job").await,
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => {
                answers.push(job(Err(&with_advice(&error))).await.answer);
                return Err(error.into());
            }
        };
        let ran = job(Ok(&mut self.tx)).await;
        polity_points::point!("writer::job_done");
        answers.push(ran.answer);
        match (ran.outcome, sharing) {
            (KeepOrUndo::Keep, _) => {}
            (KeepOrUndo::Undo, Sharing::Shared) => self.tx.undo(&begun).await?,
            (KeepOrUndo::Undo, Sharing::Alone) => {
                self.tx.forget(&begun);
                self.tx.execute("ROLLBACK").await?;
                // The commit that follows needs a transaction, although it has nothing to commit.
                self.tx.execute("BEGIN IMMEDIATE").await?;
            }
        }
        debug_assert_eq!(self.tx.released, [], "a job must handle the conversations that it released");
        self.tx.released.clear();
        match sharing {
            Sharing::Alone => Ok(()),
            Sharing::Shared => Ok(self.tx.release(begun).await?),
        }
    }
}
