//! Checks a data directory for damage, backs it up, and frees space, without running the society.

pub(crate) mod check;
pub(crate) mod database;
pub(crate) mod forget;
mod lost;
#[cfg(test)]
mod tests;
pub mod unneeded;

pub use lost::{Found, found};
pub(crate) use lost::{refuse_lost, refuse_lost_rows};

use crate::{Durability, Error, Store, clock};
use polity_artifacts::{Blob, BlobError, BlobHash, BlobStore, Expired, TRASH};
use polity_registry::Retention;
use polity_society::id::ArtifactId;
use polity_society::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::TryLockError;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database file in a data directory.
pub const DATABASE: &str = "polity.db";
/// The directory of blobs (the bytes of artifacts) in a data directory.
pub const ARTIFACTS: &str = "artifacts";

/// Why an operation on a data directory failed.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    #[error(transparent)]
    Database(#[from] Error),
    /// Blobs could not be read or written.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The target path of a backup exists already.
    #[error("{0} is there already; name a path that does not exist yet")]
    Taken(PathBuf),
    /// Another process is checking, backing up or cleaning the directory.
    #[error(
        "another polity is checking, backing up or cleaning the data directory {0}; wait until it is done"
    )]
    Busy(PathBuf),
    #[error("cannot write {path}")]
    Write {
        /// The file or directory that could not be written.
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Something damaged in a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The damaged file or directory, relative to the data directory.
    pub place: &'static str,
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// A number of files, and the disk space that they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub files: u64,
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, blob: &Blob) {
        self.files += 1;
        self.bytes += blob.size;
    }
}

/// Whether a check has read the rows of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// The check has read this number of rows.
    Read(u64),
    /// The rows have an older schema. Only the version of polity that wrote them can read them.
    OfOlderSchema,
    Unreadable,
}

/// The result of a check of a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Everything that is damaged; empty if nothing is damaged.
    pub damage: Vec<Damage>,
    pub rows: Rows,
    /// All blobs in the directory, including the blobs that no artifact refers to.
    pub stored: Amount,
    /// The blobs that no artifact refers to. They do no harm.
    pub unneeded: Amount,
}

/// Checks everything in a data directory, and changes nothing. A daemon may use the directory at the same time.
///
/// # Errors
///
/// Fails if no verdict is possible: the directory cannot be read, or a newer polity wrote it.
pub async fn check(data: &Path) -> Result<Checked, MaintenanceError> {
    let store = BlobStore::as_it_is(data.join(ARTIFACTS));
    // List the blobs before reading the rows. Otherwise, a daemon could store a blob in between: the blob would be in
    // the list, but its row would not have been read. So the blob would count as unneeded.
    let mut checked = Checked {
        damage: Vec::new(),
        rows: Rows::Unreadable,
        stored: Amount::default(),
        unneeded: Amount::default(),
    };
    let listed = store.list().await?;
    let needed = check_database(&data.join(DATABASE), &mut checked).await?;
    for blob in &listed {
        checked.stored.add(blob);
        if needed.as_ref().is_some_and(|needed| !needed.contains_key(&blob.hash)) {
            checked.unneeded.add(blob);
        }
        // Also check blobs that no row names. If somebody stores the same content later, the store uses the existing
        // blob, even if the blob is damaged.
        if let Err(error) = store.read(&blob.hash).await {
            checked.damage.push(of_blob(&error, needed.as_ref().and_then(|needed| needed.get(&blob.hash))));
        }
    }
    let there: BTreeSet<&BlobHash> = listed.iter().map(|blob| &blob.hash).collect();
    for (hash, artifacts) in needed.iter().flatten().filter(|(hash, _)| !there.contains(hash)) {
        // The blob is missing, or it was stored after the list was made. Only a missing or damaged blob fails here.
        if let Err(error) = store.read(hash).await {
            checked.damage.push(of_blob(&error, Some(artifacts)));
        }
    }
    Ok(checked)
}

/// Checks the structure of a database for at most two seconds, and changes nothing. A daemon may use the database at
/// the same time.
///
/// # Errors
///
/// Fails if the daemon would fail to start: the file is damaged or cannot be read, or a newer polity wrote it.
pub async fn glance(data: &Path) -> Result<(), MaintenanceError> {
    let file = data.join(DATABASE);
    refuse_lost(&file)?;
    let mut connection = database::open_to_read(&file).await?;
    // Check the structure first, as a start does. If a page is damaged, only this check tells the person what to do.
    database::quick_check(&mut connection, &file, database::for_a_look()).await?;
    refuse_lost_rows(&mut connection, &file).await?;
    if let check::Schema::Newer { found, known } = check::schema(&mut connection).await? {
        return Err(Error::Newer { path: file, found, known }.into());
    }
    Ok(())
}

/// Checks the structure of a whole database, as long as `go_on` returns true. A daemon may use the database at the same
/// time.
///
/// # Errors
///
/// Fails if the file is damaged or cannot be read.
pub async fn check_structure(file: &Path, go_on: impl FnMut() -> bool + Send + 'static) -> Result<(), Error> {
    let mut connection = database::open_to_read(file).await?;
    connection.set_pace(polity_sql::Pace::Slow);
    database::quick_check(&mut connection, file, go_on).await?;
    Ok(())
}

/// The blobs that artifacts need: a map from each blob to the artifacts that need the blob.
type Needed = BTreeMap<BlobHash, Vec<ArtifactId>>;

async fn check_database(file: &Path, checked: &mut Checked) -> Result<Option<Needed>, MaintenanceError> {
    let of_database = |what| Damage { place: DATABASE, what };
    let mut connection = match database::open_to_read(file).await {
        Ok(connection) => connection,
        Err(Error::Unsound { what, .. }) => {
            checked.damage.push(of_database(what));
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    };
    refuse_lost_rows(&mut connection, file).await?;
    check::begin(&mut connection).await?;
    let mut problems = check::structure(&mut connection).await;
    let schema = check::schema(&mut connection).await;
    match schema {
        Ok(check::Schema::Known) => {
            checked.rows = Rows::Read(check::rows(&mut connection, &mut problems).await);
        }
        Ok(check::Schema::Older) => checked.rows = Rows::OfOlderSchema,
        Ok(check::Schema::Newer { found, known }) => {
            return Err(Error::Newer { path: file.to_owned(), found, known }.into());
        }
        Err(error) => problems.push(format!("the schema cannot be read: {}", polity_view::in_full(&error))),
    }
    let needed = match (checked.rows, check::blobs(&mut connection).await) {
        (Rows::Read(_), Ok(needed)) => Some(needed),
        // `check::blobs` cannot read the table of artifacts. The checks above have reported why.
        (Rows::OfOlderSchema | Rows::Unreadable, _) | (_, Err(_)) => None,
    };
    checked.damage.extend(problems.into_iter().map(of_database));
    Ok(needed)
}

fn of_blob(error: &BlobError, artifacts: Option<&Vec<ArtifactId>>) -> Damage {
    let mut what = polity_view::in_full(error);
    if let Some(artifacts) = artifacts {
        let references: Vec<String> = artifacts.iter().map(ArtifactId::reference).collect();
        what.push_str(&format!(" ({})", references.join(", ")));
    }
    Damage { place: ARTIFACTS, what }
}

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The size of the copied database in bytes.
    pub database: u64,
    /// The blobs that were copied.
    pub stored: Amount,
    /// The damaged blobs, which were left out.
    pub damage: Vec<Damage>,
}

/// Copies the current state of a data directory into a new directory. A daemon may use the old directory at the same
/// time.
///
/// The new directory appears only when the backup is complete. The caller must ensure that no process calls [`free`] on
/// the old directory during the backup.
///
/// # Errors
///
/// Fails if the target exists, the database is damaged, or the backup cannot be written.
/// If blobs are damaged, the backup succeeds without these blobs, and the result reports them.
pub async fn back_up(data: &Path, to: &Path) -> Result<BackedUp, MaintenanceError> {
    if std::fs::symlink_metadata(to).is_ok() {
        return Err(MaintenanceError::Taken(to.to_owned()));
    }
    let failed = |source| MaintenanceError::Write { path: to.to_owned(), source };
    let Some(name) = to.file_name() else {
        return Err(failed(std::io::Error::from(std::io::ErrorKind::InvalidFilename)));
    };
    let mut unfinished = name.to_owned();
    unfinished.push(format!(".unfinished-{}", std::process::id()));
    let unfinished = to.with_file_name(unfinished);
    std::fs::DirBuilder::new().mode(0o700).create(&unfinished).map_err(failed)?;
    let done = match fill(data, &unfinished).await {
        Ok(done) => finish(&unfinished, to).map(|()| done).map_err(failed),
        Err(error) => Err(error),
    };
    if done.is_err() {
        // Try to remove the unfinished directory. If this fails too, report only the failure of the backup. The name of
        // the remaining directory contains `unfinished`.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    done
}

async fn fill(data: &Path, backup: &Path) -> Result<BackedUp, MaintenanceError> {
    let (file, copy) = (data.join(DATABASE), backup.join(DATABASE));
    let mut connection = database::open_to_read(&file).await?;
    database::copy(&mut connection, &file, &copy).await?;
    // Copy the blobs that the copied database names. Blobs that were stored later are not part of the backup.
    let mut connection = database::open_to_read(&copy).await?;
    let needed = check::blobs(&mut connection).await?;
    let from = BlobStore::as_it_is(data.join(ARTIFACTS));
    let into = BlobStore::open(backup.join(ARTIFACTS)).await?;
    let (mut stored, mut damage) = (Amount::default(), Vec::new());
    for (hash, artifacts) in &needed {
        polity_points::point!("backup::before_blob");
        match from.read(hash).await {
            Ok(bytes) => stored.add(&into.put(bytes).await?),
            Err(error) => damage.push(of_blob(&error, Some(artifacts))),
        }
    }
    polity_points::point!("backup::filled");
    let failed = |source| MaintenanceError::Write { path: backup.to_owned(), source };
    let database = std::fs::metadata(&copy).map_err(failed)?.len();
    Ok(BackedUp { database, stored, damage })
}

/// Syncs the directory of the finished backup to the disk, and then renames it to its final name.
fn finish(unfinished: &Path, to: &Path) -> std::io::Result<()> {
    let sync = |directory: &Path| std::fs::File::open(directory)?.sync_all();
    sync(unfinished)?;
    polity_points::point!("backup::before_rename");
    std::fs::rename(unfinished, to)?;
    polity_points::point!("backup::renamed");
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")))
}

/// Whether [`free`] removes what nobody needs, or only counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Remove,
    /// [`free`] only counts what it would remove, and changes nothing.
    Count,
}

/// The settings that decide what [`free`] removes.
#[derive(Clone, Copy, Debug)]
pub struct Unwanted {
    /// How long a task must have been idle before its artifacts are removed; `None` keeps them for ever.
    pub idle_for: Option<Duration>,
    /// How long events are kept.
    pub retention: Retention,
    pub trash: Trash,
}

/// What happens to the blobs in the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trash {
    /// Each blob stays in the trash for a week.
    Kept,
    /// [`free`] removes all blobs in the trash at once, including the blobs that it has just moved there.
    Emptied,
}

impl Trash {
    fn expired(self, now: Timestamp) -> Expired {
        match self {
            Self::Kept => Expired::Before(now.saturating_sub(IN_TRASH_FOR)),
            Self::Emptied => Expired::Everything,
        }
    }
}

/// Returns the directory of discarded blobs in a data directory.
pub fn trash(data: &Path) -> PathBuf {
    data.join(ARTIFACTS).join(TRASH)
}

/// How long discarded blobs stay in the trash: a week.
const IN_TRASH_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What [`free`] has removed; with [`Mode::Count`], what it would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Artifacts of tasks that ended long ago, and artifacts that the person sent to nobody.
    pub artifacts: u64,
    /// Blobs that no remaining artifact needs. They are in the trash now, unless it was emptied.
    pub stored: Amount,
    /// Blobs that [`free`] has removed from the trash.
    pub trash: Amount,
    /// Events that have expired.
    pub events: u64,
    /// The size of the database with its log before anything was freed, in bytes.
    pub database_before: u64,
    /// The size of the database with its log at the end, in bytes.
    pub database_after: u64,
}

/// Frees space: removes expired events, moves blobs without an artifact to the trash, and removes the blobs that have
/// been in the trash for a week. If [`Unwanted::idle_for`] is set, also removes artifacts that nobody can need any
/// more. If the database is larger than the settings allow, also forgets the oldest ended tasks. The caller must ensure
/// that no other process uses the directory.
///
/// # Errors
///
/// Fails if the directory cannot be read or written. Things that were removed before the failure stay removed,
/// and the directory stays valid.
pub async fn free(data: &Path, unwanted: &Unwanted, mode: Mode) -> Result<Freed, MaintenanceError> {
    let file = data.join(DATABASE);
    let database_before = size_with_log(&file);
    let (store, _signals) = Store::open(&file, Durability::Full).await?;
    let blobs = BlobStore::as_it_is(data.join(ARTIFACTS));
    let freed = free_in(&store, &blobs, unwanted, mode).await;
    store.close().await;
    let freed = freed?;
    if mode == Mode::Remove {
        database::shrink(&file).await?;
    }
    Ok(Freed { database_before, database_after: size_with_log(&file), ..freed })
}

/// Frees space like [`free`] while a society uses this store and these blobs in this process. The file of the database
/// does not become smaller; SQLite reuses the freed space. Blobs that were stored within the last hour stay, because
/// their rows may not be written yet.
///
/// # Errors
///
/// Fails for the same reasons as [`free`], and also if a command is checking, backing up or cleaning the directory.
pub async fn free_beside(
    store: &Store,
    blobs: &BlobStore,
    data: &Path,
    unwanted: &Unwanted,
    mode: Mode,
) -> Result<Freed, MaintenanceError> {
    let _lock = match take_care(data, std::fs::File::try_lock) {
        Ok(lock) => lock,
        Err(TryLockError::WouldBlock) => return Err(MaintenanceError::Busy(data.to_owned())),
        Err(TryLockError::Error(source)) => {
            return Err(MaintenanceError::Write { path: data.join(CARE_LOCK), source });
        }
    };
    let file = data.join(DATABASE);
    let database_before = size_with_log(&file);
    let freed = free_in(store, blobs, unwanted, mode).await?;
    Ok(Freed { database_before, database_after: size_with_log(&file), ..freed })
}

/// Returns the size of a database with its log (WAL), in bytes. SQLite moves the newest changes from the log into the
/// file at some later time. So the file alone can grow while space is freed.
fn size_with_log(file: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    // SQLite puts the log beside the file itself, not beside a link to it.
    let mut log = file.canonicalize().unwrap_or_else(|_| file.to_owned()).into_os_string();
    log.push("-wal");
    size(file) + size(Path::new(&log))
}

/// The lock file of maintenance: check, backup and cleaning. It is separate from the lock of the society, because a
/// society may run during maintenance.
const CARE_LOCK: &str = "care.lock";

/// Opens the lock file of maintenance and locks it with `take`. If this user may not write into the directory, returns
/// `None`. In this case, no lock is needed, because no command of this user can remove data there.
pub fn take_care(
    data: &Path,
    take: impl FnOnce(&std::fs::File) -> Result<(), TryLockError>,
) -> Result<Option<std::fs::File>, TryLockError> {
    let Ok(lock) = polity_disk::open_or_create(&data.join(CARE_LOCK), polity_disk::Links::Refused) else {
        return Ok(None);
    };
    take(&lock)?;
    Ok(Some(lock))
}

async fn free_in(
    store: &Store,
    blobs: &BlobStore,
    unwanted: &Unwanted,
    mode: Mode,
) -> Result<Freed, MaintenanceError> {
    let now = clock::now();
    let mut events = 0;
    if mode == Mode::Remove {
        // First remove events, so that a task is forgotten only if the database is too large even without these events.
        // Then forget tasks. Last, below, remove blobs, so that the blobs of forgotten tasks are removed, too.
        events = remove_expired(store, unwanted.retention, now).await?;
        if let Some(most) = unwanted.retention.max_database_bytes {
            keep_within(store, most).await?;
        }
    }
    let mut reader = store.reader().await?;
    let since = unwanted.idle_for.map(|age| now.saturating_sub(age));
    let mut going = match since {
        Some(since) => unneeded::find(&mut reader, since).await?,
        None => BTreeSet::new(),
    };
    if let (Mode::Remove, Some(since), false) = (mode, since, going.is_empty()) {
        // Remove rows before their blobs, so that no row lacks its blob. Since the search above, an agent may have
        // named one of these artifacts in a message. So the transaction that removes the rows searches again.
        let write = store.write(move |tx| {
            Box::pin(async move {
                let still = unneeded::find(&mut tx.connection, since).await?;
                going.retain(|artifact| still.contains(artifact));
                unneeded::remove(tx, &going).await?;
                Ok(going)
            })
        });
        going = write.await?;
    }
    let mut needed = check::blobs(&mut reader).await?;
    needed.retain(|_, artifacts| artifacts.iter().any(|artifact| !going.contains(artifact)));
    let mut freed = Freed { artifacts: going.len() as u64, ..Freed::default() };
    match mode {
        Mode::Count => {
            freed.events = database::count_expired(&mut reader, &unwanted.retention, now).await?;
        }
        Mode::Remove => freed.events = events,
    }
    drop(reader);
    polity_points::point!("gc::rows_removed");
    let mut unneeded = blobs.list().await?;
    unneeded.retain(|blob| !needed.contains_key(&blob.hash) && !blobs.was_stored_lately(&blob.hash));
    unneeded.iter().for_each(|blob| freed.stored.add(blob));
    let expired = unwanted.trash.expired(now);
    blobs.discarded(expired).await?.iter().for_each(|blob| freed.trash.add(blob));
    if mode == Mode::Remove {
        blobs.discard(unneeded, now).await?;
        blobs.empty_trash(expired).await?;
    }
    Ok(freed)
}

/// Removes the blobs that have been in the trash for a week. A society may be running.
pub async fn empty_trash(blobs: &BlobStore, now: Timestamp) -> Result<(), BlobError> {
    blobs.empty_trash(Trash::Kept.expired(now)).await
}

/// Removes expired events in several short transactions, and returns the number of removed events. A society may be
/// running. The age of an event is the time from its creation to `now`.
pub async fn remove_expired(store: &Store, retention: Retention, now: Timestamp) -> Result<u64, Error> {
    let mut removed = 0;
    loop {
        let write =
            store.write(move |tx| Box::pin(async move { database::maintain(tx, &retention, now).await }));
        let gone = write.await?;
        polity_points::point!("retention::removed");
        match gone {
            0 => return Ok(removed),
            some => removed += some,
        }
    }
}

/// How long an artifact of the person may remain unsent: a day.
const UNSENT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes the artifacts that the person stored more than a day ago and sent to nobody, and returns how many. A society
/// may be running. The blobs stay until [`free`] finds that nothing needs them.
pub async fn remove_unsent(store: &Store, now: Timestamp) -> Result<u64, Error> {
    let since = now.saturating_sub(UNSENT_FOR);
    store.write(move |tx| Box::pin(async move { unneeded::remove_strays(tx, since).await })).await
}

/// Forgets the oldest ended tasks, one per transaction, while the database is larger than `most` bytes. Returns how
/// many it has forgotten. A society may be running.
pub async fn keep_within(store: &Store, most: u64) -> Result<u64, Error> {
    let mut forgotten = 0;
    loop {
        let mut reader = store.reader().await?;
        let Some(oldest) = forget::oldest(&mut reader, most).await? else { return Ok(forgotten) };
        drop(reader);
        let write = store.write(move |tx| Box::pin(async move { forget::forget(tx, oldest).await }));
        if !write.await? {
            // Somebody continued the task after the search had chosen it. The next check, in an hour, chooses another
            // task.
            return Ok(forgotten);
        }
        polity_points::point!("retention::forgotten");
        forgotten += 1;
    }
}
