//! What a daemon keeps in the data directory for the programs of the same person: the token, and where it listens.

use crate::failure::Failure;
use crate::places::NOTE;
use polity_api::Token;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const TOKEN: &str = "token";

/// The token of a data directory; it is made where there is none.
pub(super) fn token(data: &Path) -> Result<Token, Failure> {
    let path = data.join(TOKEN);
    let unusable = |source| Failure::Data { path: path.clone(), source };
    match fs::read_to_string(&path) {
        Ok(text) => {
            keep_private(&path).map_err(unusable)?;
            Token::read(&text).ok_or_else(|| Failure::NoToken(path.clone()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = Token::generate()
                .map_err(|error| Failure::Defect(format!("the system gives no random bytes: {error}")))?;
            put(&path, &format!("{}\n", token.expose())).map_err(unusable)?;
            Ok(token)
        }
        Err(error) => Err(unusable(error)),
    }
}

/// Says where the daemon listens, as long as it lives.
pub(super) struct Note(PathBuf);

impl Note {
    /// Writes it.
    pub(super) fn write(data: &Path, url: &str) -> Result<Self, Failure> {
        let path = data.join(NOTE);
        let note = json!({"url": url, "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION")});
        put(&path, &format!("{note:#}\n")).map_err(|source| Failure::Data { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // One that stays does no harm: that nobody holds the lock tells that there is no daemon, and whoever takes the
        // lock next removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes a file for its owner alone; nobody ever sees half of it.
fn put(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    // One that a crash left could be readable by others.
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
    // A name outlives a power cut only where its directory is on disk, too.
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Takes from others the right to read a file.
fn keep_private(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
            crate::output::complain(&format!("others could read {}: not any more", path.display()));
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
