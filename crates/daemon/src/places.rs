//! Where things are: the configuration directory, and the data directory that only one process has at a time.

use crate::failure::Failure;
use etcetera::{BaseStrategy, choose_base_strategy};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

const NAME: &str = "polity";
const LOCK: &str = "polity.lock";

/// The configuration directory: the one that was named, else `./config`, else the person's own, made from the built-in
/// defaults at first use.
pub(crate) fn config(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return if named.is_dir() { Ok(named) } else { Err(Failure::NoConfig(named)) };
    }
    let here = PathBuf::from("config");
    let is_ours = ["app.json", "llmservices.json"].iter().any(|file| here.join(file).is_file());
    if is_ours {
        return Ok(here);
    }
    let base = choose_base_strategy().map_err(|_| Failure::NoHome("configuration", "config"))?;
    let own = base.config_dir().join(NAME);
    polity_registry::write_defaults(&own)?;
    Ok(own)
}

/// A data directory that no other process has. It is free again when this is dropped, or the process ends.
pub(crate) struct DataDirectory {
    /// Where it is.
    pub(crate) path: PathBuf,
    _lock: File,
}

/// Takes the data directory: the one that was named, else the person's own. It is made where it is not there.
pub(crate) fn data(named: Option<PathBuf>) -> Result<DataDirectory, Failure> {
    let path = match named {
        Some(named) => named,
        None => {
            let base = choose_base_strategy().map_err(|_| Failure::NoHome("data", "data"))?;
            base.data_dir().join(NAME)
        }
    };
    let unusable = |source| Failure::Data { path: path.clone(), source };
    make_private(&path).map_err(unusable)?;
    let lock =
        File::options().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(unusable)?;
    match lock.try_lock() {
        Ok(()) => Ok(DataDirectory { path, _lock: lock }),
        Err(TryLockError::WouldBlock) => Err(Failure::InUse(path)),
        Err(TryLockError::Error(source)) => Err(unusable(source)),
    }
}

/// What people tell a society is theirs: nobody else may read it.
fn make_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
