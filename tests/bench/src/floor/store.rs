//! Stores conversations in SQLite. They are as durable as in polity: the database uses WAL and `synchronous=FULL`. One
//! thread commits all waiting jobs together. Readers have connections of their own.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use rusqlite::{Connection, params};

/// Number of connections for reading; polity has the same number.
const READERS: usize = 4;
/// Maximum number of messages in a request.
const BOUND: u32 = 1000;

const SCHEMA: &str = "
    CREATE TABLE agents (id TEXT PRIMARY KEY, brief TEXT NOT NULL, created_at INTEGER NOT NULL) STRICT;
    CREATE TABLE messages (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, conversation TEXT NOT NULL, body TEXT NOT NULL, created_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX messages_of_conversation ON messages (conversation, seq);";

/// A row that a job adds.
pub(crate) enum Row {
    Agent {
        id: String,
        brief: String,
    },
    /// A message. `body` is its JSON text, exactly as in a request.
    Message {
        conversation: String,
        body: String,
    },
}

struct Job {
    rows: Vec<Row>,
    committed: Sender<()>,
}

/// The database of a floor.
pub(crate) struct Store {
    jobs: Mutex<Sender<Job>>,
    readers: Vec<Mutex<Connection>>,
}

impl Store {
    /// Makes a database in an empty directory.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join("floor.db");
        let writer = connect(&path)?;
        writer.execute_batch(SCHEMA)?;
        let (sender, receiver) = channel();
        // The thread ends when the store is dropped. If the thread fails, it drops the waiting jobs, and then the
        // callers of these jobs fail.
        std::thread::spawn(move || write(writer, &receiver));
        let readers = (0..READERS).map(|_| connect(&path).map(Mutex::new)).collect::<Result<_>>()?;
        Ok(Self { jobs: Mutex::new(sender), readers })
    }

    /// Adds rows. When this method returns, the rows are on disk.
    pub(crate) fn commit(&self, rows: Vec<Row>) -> Result<()> {
        let (committed, done) = channel();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        jobs.send(Job { rows, committed }).map_err(|_| anyhow!("the writer has ended"))?;
        done.recv().context("the writer has failed")
    }

    /// Returns the newest messages of a conversation, oldest first, joined by commas. `reader` chooses the connection.
    pub(crate) fn history(&self, reader: usize, conversation: &str) -> Result<String> {
        let reader = self.readers[reader % READERS].lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement = reader.prepare_cached(
            "SELECT body FROM (SELECT seq, body FROM messages WHERE conversation = ?1 ORDER BY seq DESC LIMIT ?2)
            ORDER BY seq",
        )?;
        let mut rows = statement.query(params![conversation, BOUND])?;
        let mut history = String::new();
        while let Some(row) = rows.next()? {
            if !history.is_empty() {
                history.push(',');
            }
            history.push_str(row.get_ref(0)?.as_str()?);
        }
        Ok(history)
    }
}

fn connect(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection
        .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 5000;")?;
    Ok(connection)
}

/// Repeats two steps until every sender is dropped: waits for a job, and commits all jobs that are waiting by then in
/// one transaction.
fn write(mut writer: Connection, jobs: &Receiver<Job>) -> Result<()> {
    while let Ok(first) = jobs.recv() {
        let waiting: Vec<Job> = std::iter::once(first).chain(jobs.try_iter()).collect();
        let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        let transaction = writer.transaction()?;
        for row in waiting.iter().flat_map(|job| &job.rows) {
            match row {
                Row::Agent { id, brief } => transaction
                    .prepare_cached("INSERT INTO agents (id, brief, created_at) VALUES (?1, ?2, ?3)")?
                    .execute(params![id, brief, now])?,
                Row::Message { conversation, body } => transaction
                    .prepare_cached(
                        "INSERT INTO messages (conversation, body, created_at) VALUES (?1, ?2, ?3)",
                    )?
                    .execute(params![conversation, body, now])?,
            };
        }
        transaction.commit()?;
        for job in waiting {
            // A caller that no longer waits needs no answer.
            let _ = job.committed.send(());
        }
    }
    Ok(())
}
