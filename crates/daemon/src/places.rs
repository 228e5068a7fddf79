//! Finds the configuration directory and the data directory, and locks the data directory: only one process may use it
//! at a time. Maintenance commands are an exception: see [`CaredFor`].

use crate::failure::Failure;
use etcetera::{BaseStrategy, choose_base_strategy};
use polity_disk::Lock;
use polity_store::maintenance::{self, Found};
use std::fmt;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAME: &str = "polity";
/// `./config` counts as a configuration directory if it contains one of these files.
const FILES: [&str; 2] = ["app.json", "llmservices.json"];
/// The file in which a daemon writes its address and process id.
pub(crate) const NOTE: &str = "daemon.json";
/// Number of attempts to lock the directory before giving up. One attempt is not enough: a client that checks whether a
/// daemon is running holds the lock for a moment.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The configuration directory, and why it was chosen.
pub(crate) struct ConfigDirectory {
    pub(crate) path: PathBuf,
    reason: Reason,
    /// A `./config` that was not used, because it is in the workspace; absent otherwise.
    passed_over: Option<PathBuf>,
}

/// Why a configuration directory was chosen.
enum Reason {
    /// The user named it with `--config`.
    Named,
    /// This file was found in `./config`.
    Here(&'static str),
    /// The directory is the user's own configuration directory.
    Own,
    /// The directory is the user's own configuration directory, and [`config`] has just created missing files in it.
    Made,
}

impl fmt::Display for ConfigDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.reason {
            Reason::Named | Reason::Own => {}
            Reason::Here(file) => {
                write!(f, " (because {} is here; --config names another)", self.path.join(file).display())?;
            }
            Reason::Made => f.write_str(" (missing files were created with the defaults)")?,
        }
        match &self.passed_over {
            Some(path) => write!(f, " ({} does not count: it is in the workspace)", path.display()),
            None => Ok(()),
        }
    }
}

/// Returns the configuration directory: the named directory, else `./config`, else the user's own directory. If the
/// user's own directory lacks a file, polity creates the file from the built-in defaults.
pub(crate) fn config(named: Option<PathBuf>) -> Result<ConfigDirectory, Failure> {
    with_defaults(config_as_it_is(named)?)
}

/// Like [`config`], but for a new task: ignores a `./config` in the workspace of the task. The files in a workspace are
/// the material of the agents. They must not decide which programs polity starts and which models polity asks.
pub(crate) fn config_beside(named: Option<PathBuf>, workspace: &Path) -> Result<ConfigDirectory, Failure> {
    let directory = config_as_it_is(named)?;
    if !matches!(directory.reason, Reason::Here(_)) || !is_in(&directory.path, workspace) {
        return with_defaults(directory);
    }
    with_defaults(ConfigDirectory { passed_over: Some(directory.path), ..own_config()? })
}

/// Returns whether `directory` is the same directory as `other` or is below `other`.
fn is_in(directory: &Path, other: &Path) -> bool {
    match (directory.canonicalize(), other.canonicalize()) {
        (Ok(directory), Ok(other)) => directory.starts_with(other),
        (Err(_), _) | (_, Err(_)) => false,
    }
}

fn with_defaults(mut directory: ConfigDirectory) -> Result<ConfigDirectory, Failure> {
    if matches!(directory.reason, Reason::Own)
        && !polity_registry::write_defaults(&directory.path)?.is_empty()
    {
        directory.reason = Reason::Made;
    }
    Ok(directory)
}

/// Like [`config`], but creates no files. If the user's own directory does not exist, the defaults apply.
pub(crate) fn config_as_it_is(named: Option<PathBuf>) -> Result<ConfigDirectory, Failure> {
    if let Some(path) = named {
        if !path.is_dir() {
            return Err(Failure::NoConfig(path));
        }
        return Ok(ConfigDirectory { path, reason: Reason::Named, passed_over: None });
    }
    let here = PathBuf::from("./config");
    if let Some(file) = FILES.into_iter().find(|file| here.join(file).is_file()) {
        return Ok(ConfigDirectory { path: here, reason: Reason::Here(file), passed_over: None });
    }
    own_config()
}

fn own_config() -> Result<ConfigDirectory, Failure> {
    let base = choose_base_strategy().map_err(|_| Failure::NoHome("configuration", "config"))?;
    Ok(ConfigDirectory { path: base.config_dir().join(NAME), reason: Reason::Own, passed_over: None })
}

/// A data directory that this process has locked. The lock ends when this value is dropped or the process ends.
pub(crate) struct DataDirectory {
    pub(crate) path: PathBuf,
    _lock: Lock,
}

/// Locks the data directory: the named directory, else the user's own. Creates the directory if it does not exist.
pub(crate) fn data(named: Option<PathBuf>) -> Result<DataDirectory, Failure> {
    let path = data_path(named)?;
    let unusable = |source| Failure::Data { path: path.clone(), source };
    make_private(&path).map_err(unusable)?;
    match locked(|| Lock::take(&path), || std::thread::sleep(BETWEEN_TRIES)) {
        Ok(lock) => {
            if let Some(error) = lock.weakness() {
                tracing::warn!(
                    %error,
                    data = %path.display(),
                    "cannot lock the data directory itself; while polity runs, nobody may remove its polity.lock, \
                     because a second polity could then start"
                );
            }
            remove_stale_note(&path).map_err(unusable)?;
            Ok(DataDirectory { path, _lock: lock })
        }
        Err(TryLockError::WouldBlock) => Err(Failure::InUse(path)),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

fn locked(
    mut take: impl FnMut() -> Result<Lock, TryLockError>,
    mut pause: impl FnMut(),
) -> Result<Lock, TryLockError> {
    for _ in 1..TRIES {
        match take() {
            Err(TryLockError::WouldBlock) => pause(),
            done => return done,
        }
    }
    take()
}

/// Removes the `daemon.json` that a crashed daemon left behind. Now that this process holds the lock, clients would
/// trust the file, and send the token to the address in it. But by now another program may listen at this address.
fn remove_stale_note(data: &Path) -> io::Result<()> {
    match fs::remove_file(data.join(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns the path of the data directory: the named directory, else the user's own. Does not create or lock the
/// directory.
pub(crate) fn data_path(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    match named {
        Some(named) => Ok(named),
        None => {
            let base = choose_base_strategy().map_err(|_| Failure::NoHome("data", "data"))?;
            Ok(base.data_dir().join(NAME))
        }
    }
}

/// What a maintenance command does in a data directory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// The command only reads, so several such commands can run at the same time.
    Look,
    /// The command removes data, so no other maintenance command can run at the same time.
    Clean,
}

/// A data directory that is locked for a maintenance command. Such commands use a lock file of their own, `care.lock`.
/// So this lock keeps out only other maintenance commands: a society may run in the directory at the same time.
pub(crate) struct CaredFor {
    pub(crate) path: PathBuf,
    /// Absent if this user may not write into the directory. Then no lock is needed, because no command of this user
    /// can remove data there.
    _lock: Option<File>,
}

/// Locks the data directory of a society for maintenance: the named directory, else the user's own. Fails if the
/// directory does not exist.
pub(crate) fn cared_for(named: Option<PathBuf>, care: Care) -> Result<CaredFor, Failure> {
    let path = data_path(named)?;
    match maintenance::found(&path) {
        Found::Society => {}
        Found::Lost => return Err(Failure::Lost(path)),
        Found::Nothing => return Err(Failure::NoSociety(path)),
    }
    let take = match care {
        Care::Look => File::try_lock_shared,
        Care::Clean => File::try_lock,
    };
    match maintenance::take_care(&path, take) {
        Err(TryLockError::WouldBlock) => Err(Failure::LookedAfter(path)),
        Err(TryLockError::Error(source)) => Err(Failure::Data { path, source }),
        Ok(lock) => Ok(CaredFor { path, _lock: lock }),
    }
}

/// Creates a directory that only its owner may read, because it will contain what the user says. Also syncs the parent
/// directories, so that a power cut does not lose the new directory with all its content.
fn make_private(path: &Path) -> io::Result<()> {
    let made: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    // Sync the parent even if the directory existed: the process that created the directory may have ended before it
    // synced the parent.
    let synced = path.parent().into_iter().chain(made.into_iter().skip(1).filter_map(Path::parent));
    for parent in synced {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        match File::open(parent).and_then(|directory| directory.sync_all()) {
            // Ignore a directory that this user may not read: it cannot be opened, and so it cannot be synced.
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
        // While a daemon holds the lock, nobody removes its `daemon.json`.
        std::fs::write(home.path().join(NOTE), "{}").unwrap();
        assert!(matches!(data(Some(home.path().to_owned())), Err(Failure::InUse(_))));
        assert!(home.path().join(NOTE).exists());
        drop(taken);
    }

    #[test]
    fn a_data_directory_that_is_looked_at_for_a_moment_can_be_taken() {
        let home = tempfile::tempdir().unwrap();
        let looking = File::open(home.path()).unwrap();
        looking.try_lock_shared().unwrap();
        let (mut pauses, take) = (0, || Lock::take(home.path()));
        let stays = locked(take, || pauses += 1);
        assert!(matches!(stays, Err(TryLockError::WouldBlock)));
        assert_eq!(pauses, TRIES - 1);
        locked(take, || looking.unlock().unwrap()).unwrap();
    }

    #[test]
    fn a_configuration_directory_says_why_it_counts() {
        let check = |path: &str, reason: Reason, expect: &str| {
            let directory = ConfigDirectory { path: PathBuf::from(path), reason, passed_over: None };
            assert_eq!(directory.to_string(), expect);
        };
        check("elsewhere", Reason::Named, "elsewhere");
        let here = "./config (because ./config/app.json is here; --config names another)";
        check("./config", Reason::Here("app.json"), here);
        let own = "/home/me/.config/polity";
        check(own, Reason::Own, own);
        check(own, Reason::Made, &format!("{own} (missing files were created with the defaults)"));
        let passed_over = Some(PathBuf::from("./config"));
        let directory = ConfigDirectory { path: PathBuf::from(own), reason: Reason::Own, passed_over };
        assert_eq!(directory.to_string(), format!("{own} (./config does not count: it is in the workspace)"));
    }
}
