//! What is done to a data directory beside running its society: looking for damage, backing up, freeing room.

pub(crate) mod check;
pub(crate) mod database;
pub(crate) mod forget;
#[cfg(test)]
mod tests;
pub mod unneeded;

use crate::{Durability, Error, Store, clock};
use polity_artifacts::{Blob, BlobError, BlobHash, BlobStore};
use polity_registry::Retention;
use polity_society::id::ArtifactId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file of the database in a data directory.
pub const DATABASE: &str = "polity.db";
/// The directory of artifacts' bytes in a data directory.
pub const ARTIFACTS: &str = "artifacts";

/// Whether a directory holds a society, sound or not.
pub fn is_data_directory(path: &Path) -> bool {
    path.join(DATABASE).is_file()
}

/// Why something could not be done to a data directory.
#[derive(Debug, thiserror::Error)]
pub enum MaintenanceError {
    /// The database could not be read or written.
    #[error(transparent)]
    Database(#[from] Error),
    /// The bytes of artifacts could not be read or written.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// There is something in the place of a backup.
    #[error("{0} is there already; a backup is made where nothing is")]
    Taken(PathBuf),
    /// A backup could not be written.
    #[error("cannot write the backup {path}")]
    Write {
        /// Where it was to be.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Something that is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file or directory, in the data directory.
    pub place: &'static str,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Files, and how much room they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub files: u64,
    /// How many bytes.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, blob: &Blob) {
        self.files += 1;
        self.bytes += blob.size;
    }
}

/// Whether the rows of a database were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// So many were read.
    Read(u64),
    /// They are of an older schema, which only the program that wrote it reads.
    OfOlderSchema,
    /// The database could not be read.
    Unreadable,
}

/// What a look at a data directory has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What is damaged; nothing where all is good.
    pub damage: Vec<Damage>,
    /// The rows of the database.
    pub rows: Rows,
    /// The bytes of artifacts that are there.
    pub stored: Amount,
    /// Those of them that no row names. They harm nobody.
    pub unneeded: Amount,
}

/// Looks at everything in a data directory, and changes nothing. A daemon may be working in it.
///
/// # Errors
///
/// Where nothing can be said: the directory cannot be read, or a newer polity wrote it.
pub async fn check(data: &Path) -> Result<Checked, MaintenanceError> {
    let store = BlobStore::as_it_is(data.join(ARTIFACTS));
    // Before the rows: bytes come first and their row later, so what a row names now was there already.
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
        // Also where no row names them: equal bytes that come later would not be written again.
        if let Err(error) = store.read(&blob.hash).await {
            checked.damage.push(of_blob(&error, needed.as_ref().and_then(|needed| needed.get(&blob.hash))));
        }
    }
    let there: BTreeSet<&BlobHash> = listed.iter().map(|blob| &blob.hash).collect();
    for (hash, artifacts) in needed.iter().flatten().filter(|(hash, _)| !there.contains(hash)) {
        // Stored since the list was made, or missing.
        if let Err(error) = store.read(hash).await {
            checked.damage.push(of_blob(&error, Some(artifacts)));
        }
    }
    Ok(checked)
}

/// Looks at the structure of a database for two seconds at most, as a start does, and changes nothing. A daemon may be
/// working in it.
///
/// # Errors
///
/// Where a start would fail: the file is damaged or cannot be read, or a newer polity wrote it.
pub async fn glance(data: &Path) -> Result<(), MaintenanceError> {
    let file = data.join(DATABASE);
    let mut connection = database::open_to_read(&file).await?;
    if let check::Schema::Newer { found, known } = check::schema(&mut connection).await? {
        return Err(Error::Newer { path: file, found, known }.into());
    }
    Ok(database::quick_check(&mut connection, &file).await?)
}

/// Bytes that artifacts need, where that can be told.
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
        // What else is wrong with the table has been told.
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

/// What is in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackedUp {
    /// The size of the database in bytes.
    pub database: u64,
    /// The bytes of artifacts.
    pub stored: Amount,
    /// What is missing, because it was damaged.
    pub damage: Vec<Damage>,
}

/// Makes a data directory that holds what another one holds at this moment; a daemon may be working in that one. It is
/// whole, or it is not there. The caller sees to it that nobody frees room meanwhile.
///
/// # Errors
///
/// Where there is something in its place, the database is damaged, or it cannot be written. Damaged bytes of single
/// artifacts are left out and told.
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
        // The failure is the one to tell; the name says what is left.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    done
}

async fn fill(data: &Path, backup: &Path) -> Result<BackedUp, MaintenanceError> {
    let (file, copy) = (data.join(DATABASE), backup.join(DATABASE));
    let mut connection = database::open_to_read(&file).await?;
    database::copy(&mut connection, &file, &copy).await?;
    // What the copy names, not what has come since.
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

/// Gives a backup its name, when all of it is on the disk.
fn finish(unfinished: &Path, to: &Path) -> std::io::Result<()> {
    let sync = |directory: &Path| std::fs::File::open(directory)?.sync_all();
    sync(unfinished)?;
    polity_points::point!("backup::before_rename");
    std::fs::rename(unfinished, to)?;
    polity_points::point!("backup::renamed");
    let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync(parent.unwrap_or(Path::new(".")))
}

/// Whether what is found is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It is.
    Remove,
    /// It is only counted.
    Count,
}

/// What is no longer wanted.
#[derive(Clone, Copy, Debug)]
pub struct Unwanted {
    /// How long nothing may have happened in a task before its artifacts go; never where there is no time.
    pub idle_for: Option<Duration>,
    /// How long events are kept.
    pub retention: Retention,
}

/// What was freed, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Artifacts of tasks that are long over.
    pub artifacts: u64,
    /// Bytes that no artifact needs, or would need.
    pub stored: Amount,
    /// Events that have had their time.
    pub events: u64,
    /// The size of the database before, in bytes.
    pub database_before: u64,
    /// The size of the database after, in bytes.
    pub database_after: u64,
}

/// Frees the room that nobody needs: bytes without an artifact, events that have had their time, and, where that is
/// wanted, artifacts of tasks that are long over. The caller sees to it that no other process has the directory.
///
/// # Errors
///
/// Where the directory cannot be read or written. What was removed until then stays removed; nothing is half done.
pub async fn free(data: &Path, unwanted: &Unwanted, mode: Mode) -> Result<Freed, MaintenanceError> {
    let file = data.join(DATABASE);
    let size = || std::fs::metadata(&file).map_or(0, |file| file.len());
    let database_before = size();
    let (store, _signals) = Store::open(&file, Durability::Full).await?;
    let freed = free_in(&store, data, unwanted, mode).await;
    store.close().await;
    let freed = freed?;
    if mode == Mode::Remove {
        database::shrink(&file).await?;
    }
    Ok(Freed { database_before, database_after: size(), ..freed })
}

async fn free_in(
    store: &Store,
    data: &Path,
    unwanted: &Unwanted,
    mode: Mode,
) -> Result<Freed, MaintenanceError> {
    let now = clock::now();
    let mut events = 0;
    if mode == Mode::Remove {
        // First, because what was said is forgotten only where that is not enough, and so that the bytes of what goes
        // with it go too.
        events = remove_expired(store, unwanted.retention, now).await?;
        if let Some(most) = unwanted.retention.max_database_bytes {
            keep_within(store, most).await?;
        }
    }
    let mut reader = store.reader().await?;
    let going = match unwanted.idle_for {
        Some(age) => {
            let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            unneeded::find(&mut reader, now.saturating_sub(age)).await?
        }
        None => BTreeSet::new(),
    };
    let mut needed = check::blobs(&mut reader).await?;
    needed.retain(|_, artifacts| artifacts.iter().any(|artifact| !going.contains(artifact)));
    let mut freed = Freed { artifacts: going.len() as u64, ..Freed::default() };
    match mode {
        Mode::Count => {
            freed.events = database::count_expired(&mut reader, &unwanted.retention, now).await?;
        }
        Mode::Remove => {
            // Rows before their bytes, so that no row is left without.
            store.write(move |tx| Box::pin(async move { unneeded::remove(tx, &going).await })).await?;
            freed.events = events;
        }
    }
    polity_points::point!("gc::rows_removed");
    let blobs = BlobStore::as_it_is(data.join(ARTIFACTS));
    for blob in blobs.list().await?.iter().filter(|blob| !needed.contains_key(&blob.hash)) {
        if mode == Mode::Remove {
            blobs.remove(&blob.hash).await?;
            polity_points::point!("gc::blob_removed");
        }
        freed.stored.add(blob);
    }
    Ok(freed)
}

/// Removes the events that have had their time, a transaction after the other; says how many. A society may be running.
/// Their age is counted until `now` (milliseconds since 1970).
pub async fn remove_expired(store: &Store, retention: Retention, now: i64) -> Result<u64, Error> {
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

/// How long what the person has stored may wait to be sent to somebody, in milliseconds: a day.
const UNSENT_FOR: i64 = 24 * 60 * 60 * 1000;

/// Removes what the person has stored more than a day ago and sent to nobody; says how much. A society may be running: the
/// bytes stay until [`free`] finds that nothing needs them.
pub async fn remove_unsent(store: &Store, now: i64) -> Result<u64, Error> {
    let since = now.saturating_sub(UNSENT_FOR);
    store.write(move |tx| Box::pin(async move { unneeded::remove_strays(tx, since).await })).await
}

/// Forgets the oldest tasks that are over, one transaction each, while the database is larger than its bound; says how
/// many. A society may be running.
pub async fn keep_within(store: &Store, most: u64) -> Result<u64, Error> {
    let mut forgotten = 0;
    loop {
        let mut reader = store.reader().await?;
        let Some(oldest) = forget::oldest(&mut reader, most).await? else { return Ok(forgotten) };
        drop(reader);
        let write = store.write(move |tx| Box::pin(async move { forget::forget(tx, oldest).await }));
        if !write.await? {
            // Somebody went on with it meanwhile: the next look, in an hour, finds another.
            return Ok(forgotten);
        }
        polity_points::point!("retention::forgotten");
        forgotten += 1;
    }
}
