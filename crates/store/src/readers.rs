//! The connections that only read. They are few, and callers wait until one is free.

use crate::Error;
use polity_sql::{Connection, Options, Pace, query};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// The number of connections. Few are enough: reading a page of rows takes well under a millisecond.
const READERS: u32 = 4;
/// How long a caller waits for a free connection.
const PATIENCE: Duration = Duration::from_secs(30);

const BEGIN: &str = "BEGIN";
const END: &str = "ROLLBACK";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[BEGIN, END];

/// A connection, or nothing once the database is closed.
type Slot = Mutex<Option<Connection>>;

/// The connections, shared by all handles on the database.
#[derive(Clone, Debug)]
pub(crate) struct Readers {
    slots: Arc<[Arc<Slot>]>,
    /// One permit for each slot that nobody uses.
    free: Arc<Semaphore>,
}

impl Readers {
    /// Opens all connections.
    pub(crate) fn open(options: &Options) -> Result<Self, polity_sql::Error> {
        let slot = |_| Ok(Arc::new(Mutex::new(Some(options.connect()?))));
        let slots = (0..READERS).map(slot).collect::<Result<_, polity_sql::Error>>()?;
        Ok(Self { slots, free: Arc::new(Semaphore::new(READERS as usize)) })
    }

    /// Waits for a free connection.
    pub(crate) async fn reader(&self, pace: Pace) -> Result<Reader, Error> {
        let permit = tokio::time::timeout(PATIENCE, Arc::clone(&self.free).acquire_owned()).await;
        let permit =
            permit.map_err(|_| Error::Sql(polity_sql::Error::TimedOut))?.map_err(|_| Error::Closed)?;
        // A caller with a permit finds a slot that nobody uses. All callers try the slots in the same order, so most
        // callers use the first connection, which has already prepared their statements.
        let free = self.slots.iter().find_map(|slot| Arc::clone(slot).try_lock_owned().ok());
        let open = free.and_then(|slot| OwnedMutexGuard::try_map(slot, Option::as_mut).ok());
        let mut connection = open.ok_or(Error::Closed)?;
        connection.set_pace(pace);
        Ok(Reader { connection, _permit: permit })
    }

    /// Begins a read transaction on a free connection.
    pub(crate) async fn moment(&self) -> Result<Moment, Error> {
        let mut reader = self.reader(Pace::Slow).await?;
        query(BEGIN).execute(&mut reader).await?;
        Ok(Moment(reader))
    }

    /// Waits until no connection is in use, and closes all connections.
    pub(crate) async fn close(&self) {
        // An error means that somebody else has closed the connections.
        let Ok(_all) = self.free.acquire_many(READERS).await else { return };
        self.free.close();
        for slot in &*self.slots {
            slot.lock().await.take();
        }
    }
}

/// A connection for reading. The connection becomes free again when this value is dropped.
#[derive(Debug)]
pub struct Reader {
    // The fields are dropped in this order: the connection must be free before the next caller gets the permit.
    connection: OwnedMappedMutexGuard<Option<Connection>, Connection>,
    _permit: OwnedSemaphorePermit,
}

impl Deref for Reader {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

/// A read transaction. The transaction ends when this value is dropped.
#[derive(Debug)]
pub struct Moment(Reader);

impl Deref for Moment {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl DerefMut for Moment {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.0
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        // The transaction has only read. If it cannot end, the next `BEGIN` on this connection reports why.
        let _ = query(END).execute(&mut self.0).into_inner();
    }
}
