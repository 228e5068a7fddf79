//! The files that a daemon keeps in the data directory for other programs of the same user: its token and its address.

use crate::failure::Failure;
use crate::places::NOTE;
use polity_api::Token;
use polity_disk::{Links, open, read_to_end, text, write_private};
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const TOKEN: &str = "token";
/// Maximum size of the token file, in bytes.
const MAX_TOKEN: u64 = 64 * 1024;

/// Reads the token of a data directory. The token is a secret; a client that sends it may use the daemon. Creates a
/// token if there is none.
pub(super) fn token(data: &Path) -> Result<Token, Failure> {
    let path = data.join(TOKEN);
    let unusable = |source| Failure::Data { path: path.clone(), source };
    match read_private(&path) {
        Ok(text) => Token::read(&text).ok_or_else(|| Failure::NoToken(path.clone())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let token = Token::generate().map_err(|error| {
                Failure::Defect(format!("cannot get random bytes from the system: {error}"))
            })?;
            write_private(&path, &format!("{}\n", token.expose())).map_err(unusable)?;
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
        write_private(&path, &format!("{note:#}\n"))
            .map_err(|source| Failure::Data { path: path.clone(), source })?;
        Ok(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A file that stays does no harm: clients ignore it while nobody holds the lock of the data directory, and the
        // next process that takes the lock removes it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads the token file. Refuses a symbolic link: otherwise polity would read the target of the link as a token, and
/// would change the permissions of that target.
fn read_private(path: &Path) -> io::Result<String> {
    let mut file = open(path, Links::Refused)?;
    keep_private(path, &file)?;
    text(read_to_end(&mut file, MAX_TOKEN)?)
}

/// Removes all permissions that other users have on a file. Tells the user if there were any.
fn keep_private(path: &Path, file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        crate::output::complain(&format!("others could read {}; made it private", path.display()));
    }
    Ok(())
}
