//! The files that a daemon keeps in the data directory for other programs of the same user: its token and its address.

use crate::failure::Failure;
use crate::places::NOTE;
use polity_api::Token;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const TOKEN: &str = "token";

/// Reads the token of a data directory. Creates a token if there is none.
pub(super) fn token(data: &Path) -> Result<Token, Failure> {
    let path = data.join(TOKEN);
    let unusable = |source| Failure::Data { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(text) => {
            keep_private(&path).map_err(unusable)?;
            Token::read(&text).ok_or_else(|| Failure::NoToken(path.clone()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = Token::generate().map_err(|error| {
                Failure::Defect(format!("cannot get random bytes from the system: {error}"))
            })?;
            put(&path, &format!("{}\n", token.expose())).map_err(unusable)?;
            Ok(token)
        }
        Err(error) => Err(unusable(error)),
    }
}

/// The file `daemon.json`, which tells clients where the daemon listens. Dropping this value removes the file.
pub(super) struct Note(PathBuf);

impl Note {
    pub(super) fn write(data: &Path, url: &str) -> Result<Self, Failure> {
        let path = data.join(NOTE);
        let note = json!({"url": url, "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION")});
        put(&path, &format!("{note:#}\n")).map_err(|source| Failure::Data { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A file that stays does no harm: clients ignore it while nobody holds the lock, and the next process that
        // takes the lock removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a file that only its owner may read. The complete file is renamed to its final name, so no reader sees half
/// of it.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    // Never reuse a file that a crash left behind: other users may be allowed to read it.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    // The new name survives a power cut only if the directory is synced, too.
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Removes the permissions of other users on a file. Tells the user if other users had permissions.
fn keep_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            crate::output::complain(&format!("others could read {}; made it private", path.display()));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
