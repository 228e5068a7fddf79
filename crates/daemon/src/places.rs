//! Where things are: the configuration directory, and the data directory that only one process has at a time.

use crate::failure::Failure;
use etcetera::{BaseStrategy, choose_base_strategy};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "polity";
/// Any of these makes `./config` a configuration directory.
const FILES: [&str; 2] = ["app.json", "llmservices.json"];
pub(crate) const LOCK: &str = "polity.lock";
/// Says where the daemon of a data directory listens.
pub(crate) const NOTE: &str = "daemon.json";
/// How often the lock is tried: whoever looks whether there is a daemon holds it for a moment.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// Held by whoever looks after a data directory, beside a society that may live in it.
const CARE_LOCK: &str = "care.lock";

/// A configuration directory.
pub(crate) struct ConfigDirectory {
    /// Where it is.
    pub(crate) path: PathBuf,
    reason: Reason,
}

/// Why a configuration directory counts.
enum Reason {
    /// It was named.
    Named,
    /// This file of it is in the current directory.
    Here(&'static str),
    /// It is the person's own.
    Own,
    /// It is the person's own, and files of it were just made.
    Made,
}

impl fmt::Display for ConfigDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.reason {
            Reason::Named | Reason::Own => Ok(()),
            Reason::Here(file) => {
                write!(f, " (because {} is here; --config names another)", self.path.join(file).display())
            }
            Reason::Made => f.write_str(" (what was missing was made with the defaults)"),
        }
    }
}

/// The configuration directory: the one that was named, else `./config`, else the person's own, made from the built-in
/// defaults at first use.
pub(crate) fn config(named: Option<PathBuf>) -> Result<ConfigDirectory, Failure> {
    let mut directory = config_as_it_is(named)?;
    if matches!(directory.reason, Reason::Own)
        && !polity_registry::write_defaults(&directory.path)?.is_empty()
    {
        directory.reason = Reason::Made;
    }
    Ok(directory)
}

/// The same, but nothing is made. The person's own need not be there: then the defaults are in force.
pub(crate) fn config_as_it_is(named: Option<PathBuf>) -> Result<ConfigDirectory, Failure> {
    if let Some(path) = named {
        if !path.is_dir() {
            return Err(Failure::NoConfig(path));
        }
        return Ok(ConfigDirectory { path, reason: Reason::Named });
    }
    let here = PathBuf::from("./config");
    if let Some(file) = FILES.into_iter().find(|file| here.join(file).is_file()) {
        return Ok(ConfigDirectory { path: here, reason: Reason::Here(file) });
    }
    let base = choose_base_strategy().map_err(|_| Failure::NoHome("configuration", "config"))?;
    Ok(ConfigDirectory { path: base.config_dir().join(NAME), reason: Reason::Own })
}

/// A data directory that no other process has. It is free again when this is dropped, or the process ends.
pub(crate) struct DataDirectory {
    /// Where it is.
    pub(crate) path: PathBuf,
    _lock: File,
}

/// Takes the data directory: the one that was named, else the person's own. It is made where it is not there.
pub(crate) fn data(named: Option<PathBuf>) -> Result<DataDirectory, Failure> {
    let path = data_path(named)?;
    let unusable = |source| Failure::Data { path: path.clone(), source };
    make_private(&path).map_err(unusable)?;
    let lock =
        File::options().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(unusable)?;
    match locked(&lock, || std::thread::sleep(BETWEEN_TRIES)) {
        Ok(()) => {
            remove_stale_note(&path).map_err(unusable)?;
            Ok(DataDirectory { path, _lock: lock })
        }
        Err(TryLockError::WouldBlock) => Err(Failure::InUse(path)),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

fn locked(lock: &File, mut pause: impl FnMut()) -> Result<(), TryLockError> {
    for _ in 1..TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => pause(),
            done => return done,
        }
    }
    lock.try_lock()
}

/// Removes the note of a daemon that did not come to its end. Whoever listens there by now may be anybody; with the
/// lock held again, a client would take it for a daemon and show it the token.
fn remove_stale_note(data: &Path) -> io::Result<()> {
    match fs::remove_file(data.join(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Where the data directory is: the one that was named, else the person's own. Nothing is made or taken.
pub(crate) fn data_path(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match named {
        Some(named) => Ok(named),
        None => {
            let base = choose_base_strategy().map_err(|_| Failure::NoHome("data", "data"))?;
            Ok(base.data_dir().join(NAME))
        }
    }
}

/// What somebody who looks after a data directory does there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Reads; others may, too.
    Look,
    /// Removes what is not needed; nobody may be looking.
    Clean,
}

/// A data directory that somebody looks after; a society may live in it all the same.
pub(crate) struct CaredFor {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Nothing where nothing can be written, and so nothing removed.
    _lock: Option<File>,
}

/// The data directory of a society: the one that was named, else the person's own. Nothing is made.
pub(crate) fn cared_for(named: Option<PathBuf>, care: Care) -> Result<CaredFor, Failure> {
    let path = data_path(named)?;
    if !polity_runtime::maintenance::is_data_directory(&path) {
        return Err(Failure::NoSociety(path));
    }
    let lock = File::options().create(true).truncate(false).write(true).open(path.join(CARE_LOCK)).ok();
    let take = match care {
        Care::Look => File::try_lock_shared,
        Care::Clean => File::try_lock,
    };
    match lock.as_ref().map(take) {
        Some(Err(TryLockError::WouldBlock)) => Err(Failure::LookedAfter(path)),
        Some(Err(TryLockError::Error(source))) => Err(Failure::Data { path, source }),
        Some(Ok(())) | None => Ok(CaredFor { path, _lock: lock }),
    }
}

/// What people tell a society is theirs: nobody else may read it. A power cut does not take the directory with all that
/// is in it.
fn make_private(path: &Path) -> io::Result<()> {
    let made: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    // Its own name also where it was there: whoever made it may not have come this far.
    let synced = path.parent().into_iter().chain(made.into_iter().skip(1).filter_map(Path::parent));
    for parent in synced {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match File::open(parent).and_then(|directory| directory.sync_all()) {
            // A directory that one may go through but not list cannot be synced by name.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_takes_a_data_directory_removes_the_note_of_a_crash() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join(NOTE), "{\"url\": \"http://127.0.0.1:1\"}").unwrap();
        let taken = data(Some(home.path().to_owned())).unwrap();
        assert!(!home.path().join(NOTE).exists());
        // The note of a daemon that lives stays.
        std::fs::write(home.path().join(NOTE), "{}").unwrap();
        assert!(matches!(data(Some(home.path().to_owned())), Err(Failure::InUse(_))));
        assert!(home.path().join(NOTE).exists());
        drop(taken);
    }

    #[test]
    fn a_data_directory_that_is_looked_at_for_a_moment_can_be_taken() {
        let home = tempfile::tempdir().unwrap();
        let open = || File::create(home.path().join(LOCK)).unwrap();
        let (looking, lock) = (open(), open());
        looking.try_lock_shared().unwrap();
        let mut pauses = 0;
        let stays = locked(&lock, || pauses += 1);
        assert!(matches!(stays, Err(TryLockError::WouldBlock)));
        assert_eq!(pauses, TRIES - 1);
        locked(&lock, || looking.unlock().unwrap()).unwrap();
    }

    #[test]
    fn a_configuration_directory_says_why_it_counts() {
        let check = |path: &str, reason: Reason, expect: &str| {
            let directory = ConfigDirectory { path: PathBuf::from(path), reason };
            assert_eq!(directory.to_string(), expect);
        };
        check("elsewhere", Reason::Named, "elsewhere");
        let here = "./config (because ./config/app.json is here; --config names another)";
        check("./config", Reason::Here("app.json"), here);
        let own = "/home/me/.config/polity";
        check(own, Reason::Own, own);
        check(own, Reason::Made, &format!("{own} (what was missing was made with the defaults)"));
    }
}
