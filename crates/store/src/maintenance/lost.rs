//! Decides whether a data directory has lost its database, or never had a database.
//!
//! The daemon creates a missing database when it starts. In a directory with artifacts, a new database would hide
//! that the old database was lost. The new database lists no artifacts, so the next `polity gc` would remove all
//! artifacts.

use super::{ARTIFACTS, DATABASE, check};
use crate::Error;
use polity_artifacts::BlobStore;
use polity_sql::Connection;
use std::path::Path;

/// What is in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The database of a society, damaged or not.
    Society,
    /// The database is missing, but artifacts or the log (WAL) of the database exist. Or the database is empty, but
    /// artifacts exist.
    Lost,
    /// Neither a database nor a log nor artifacts.
    Nothing,
}

/// Returns what is in a directory. An empty database without artifacts counts as a society, because a crash or a
/// power cut during the first start can leave an empty database, with or without a log (WAL).
pub fn found(data: &Path) -> Found {
    let file = std::fs::metadata(data.join(DATABASE)).ok().filter(std::fs::Metadata::is_file);
    match file.map(|file| file.len()) {
        Some(1..) => Found::Society,
        Some(0) | None if has_artifacts(data) => Found::Lost,
        Some(0) => Found::Society,
        None if has_log(data) => Found::Lost,
        None => Found::Nothing,
    }
}

fn has_artifacts(data: &Path) -> bool {
    !BlobStore::as_it_is(data.join(ARTIFACTS)).is_empty()
}

/// Returns whether a directory contains the log (WAL) of a database. If the database file is missing, SQLite deletes
/// the log, and the commits that only the log contains are lost.
fn has_log(data: &Path) -> bool {
    std::fs::metadata(data.join(format!("{DATABASE}-wal"))).is_ok_and(|log| log.len() > 0)
}

/// Fails if the database was lost. `file` is the path of the database in the data directory.
pub(crate) fn refuse_lost(file: &Path) -> Result<(), Error> {
    match file.parent().filter(|data| found(data) == Found::Lost) {
        Some(data) => Err(Error::Lost { data: data.to_owned() }),
        None => Ok(()),
    }
}

/// Fails if the database has no tables although there are artifacts.
pub(crate) async fn refuse_lost_rows(connection: &mut Connection, file: &Path) -> Result<(), Error> {
    let Some(data) = file.parent() else { return Ok(()) };
    if check::has_schema(connection).await? || !has_artifacts(data) {
        return Ok(());
    }
    Err(Error::Lost { data: data.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};

    /// Creates a data directory with an artifact in it.
    async fn with_artifact() -> tempfile::TempDir {
        let data = tempfile::tempdir().unwrap();
        let blobs = BlobStore::open(data.path().join(ARTIFACTS)).await.unwrap();
        blobs.put(b"precious".to_vec().into()).await.unwrap();
        data
    }

    async fn open(data: &Path) -> Result<(), Error> {
        Store::open(&data.join(DATABASE), Durability::Full).await?.0.close().await;
        Ok(())
    }

    #[tokio::test]
    async fn a_missing_or_empty_database_beside_artifacts_is_no_new_society() {
        let data = with_artifact().await;
        let file = data.path().join(DATABASE);
        assert_eq!(found(data.path()), Found::Lost);
        assert!(matches!(open(data.path()).await, Err(Error::Lost { .. })));
        assert!(!file.exists(), "nothing is created");
        std::fs::write(&file, "").unwrap();
        assert_eq!(found(data.path()), Found::Lost);
        assert!(matches!(open(data.path()).await, Err(Error::Lost { .. })));
        // The database file has a header but no tables.
        let elsewhere = tempfile::tempdir().unwrap();
        open(elsewhere.path()).await.unwrap();
        let mut connection = polity_sql::Options::new(&file, polity_sql::Access::Create).connect().unwrap();
        polity_sql::query("PRAGMA user_version = 1").execute(&mut connection).await.unwrap();
        connection.close().unwrap();
        assert_eq!(found(data.path()), Found::Society);
        assert!(matches!(open(data.path()).await, Err(Error::Lost { .. })));
        let checked = super::super::check(data.path()).await;
        assert!(checked.unwrap_err().to_string().contains("polity.db is missing or empty"));
        // Once the database is back in its place, the directory opens again.
        std::fs::copy(elsewhere.path().join(DATABASE), &file).unwrap();
        open(data.path()).await.unwrap();
    }

    #[tokio::test]
    async fn what_a_crash_of_the_first_start_leaves_is_a_new_society() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(found(data.path()), Found::Nothing);
        BlobStore::open(data.path().join(ARTIFACTS)).await.unwrap();
        std::fs::write(data.path().join(ARTIFACTS).join("tmp/1-0"), "half").unwrap();
        assert_eq!(found(data.path()), Found::Nothing);
        std::fs::write(data.path().join(DATABASE), "").unwrap();
        assert_eq!(found(data.path()), Found::Society);
        open(data.path()).await.unwrap();
    }

    #[test]
    fn a_log_without_its_database_is_a_trace() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join("polity.db-wal"), "commits").unwrap();
        assert_eq!(found(data.path()), Found::Lost);
        // A power cut during the first start can leave an empty database file.
        std::fs::write(data.path().join(DATABASE), "").unwrap();
        assert_eq!(found(data.path()), Found::Society);
    }
}
