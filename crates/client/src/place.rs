//! Finds the address and the token of a data directory's daemon in two small files that the daemon writes.

use polity_disk::{Holder, LOCK, Links, holder, read_text};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use url::Url;

/// The file with the daemon's address, which the daemon writes when it is ready.
const DAEMON: &str = "daemon.json";
/// The file with the secret that requests must carry. Only the owner of the file may read it.
const TOKEN: &str = "token";
/// Maximum size of a file of the daemon, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Why the daemon of a data directory cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No daemon is running for this directory.
    #[error("no polity is serving {0}, and this needs one; start it: polity serve")]
    NotServing(PathBuf),
    /// A file of the daemon cannot be read.
    #[error("cannot read {path}: {source}; is it yours?")]
    Unreadable {
        /// Path of the file of the daemon.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// A file of the daemon has contents that no daemon writes.
    #[error("{path} is not what a polity writes: {reason}; restart it: polity serve")]
    Nonsense {
        /// Path of the file of the daemon.
        path: PathBuf,
        /// The problem with the contents of the file.
        reason: String,
    },
}

/// The address of a daemon, and the token that it requires.
#[derive(Clone)]
pub(crate) struct Door {
    /// The base of all routes.
    pub(crate) url: Url,
    /// The token. Routes in this process require no token; for them, this is `None`.
    pub(crate) token: Option<String>,
}

impl Door {
    /// Returns an address for routes in this process. The host name in it is a placeholder that nothing resolves.
    pub(crate) fn in_process() -> Result<Self, url::ParseError> {
        let url = Url::parse("http://in-process")?;
        Ok(Self { url, token: None })
    }
}

#[derive(Deserialize)]
struct Written {
    url: String,
}

/// Finds the daemon of a data directory. Uses the two files of the daemon only if a process holds the lock of the
/// directory. Without the lock, the files are from a killed daemon, and another program may now listen on its port. The
/// next daemon removes the old files.
pub(crate) fn find(data: &Path) -> Result<Door, FindError> {
    let written = read(data, DAEMON)?;
    let held = holder(data).map_err(|source| FindError::Unreadable { path: data.join(LOCK), source })?;
    if held == Holder::Nobody {
        return Err(FindError::NotServing(data.to_owned()));
    }
    let nonsense = |reason| FindError::Nonsense { path: data.join(DAEMON), reason };
    let Written { url } = serde_json::from_str(&written).map_err(|error| nonsense(error.to_string()))?;
    let url = Url::parse(&url).map_err(|error| nonsense(error.to_string()))?;
    if url.scheme() != "http" || url.host().is_none() {
        return Err(nonsense("its url is not an http URL".to_owned()));
    }
    let token = read(data, TOKEN)?.trim().to_owned();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let reason = "it holds no token".to_owned();
        return Err(FindError::Nonsense { path: data.join(TOKEN), reason });
    }
    Ok(Door { url, token: Some(token) })
}

fn read(data: &Path, name: &str) -> Result<String, FindError> {
    let path = data.join(name);
    read_text(&path, Links::Refused, MAX_BYTES).map_err(|source| match source.kind() {
        // If the path is not a directory, there is no daemon for it.
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            FindError::NotServing(data.to_owned())
        }
        _ => FindError::Unreadable { path, source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_disk::Lock;
    use std::fs::File;

    #[track_caller]
    fn check(daemon: Option<&str>, token: Option<&str>, expect: Result<(&str, &str), &str>) {
        let data = tempfile::tempdir().unwrap();
        let _lock = taken(data.path());
        for (name, text) in [(DAEMON, daemon), (TOKEN, token)] {
            if let Some(text) = text {
                std::fs::write(data.path().join(name), text).unwrap();
            }
        }
        let found = find(data.path()).map(|door| (door.url.to_string(), door.token.unwrap_or_default()));
        let found = found.map_err(|error| error.to_string().replace(&*data.path().to_string_lossy(), "DATA"));
        let expect = expect.map(|(url, token)| (url.to_owned(), token.to_owned())).map_err(str::to_owned);
        assert_eq!(found, expect);
    }

    /// Locks a data directory, as a daemon does.
    fn taken(data: &Path) -> Lock {
        Lock::take(data).unwrap()
    }

    #[test]
    fn what_a_killed_daemon_has_left_is_no_door() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(DAEMON), r#"{"url": "http://127.0.0.1:7717"}"#).unwrap();
        std::fs::write(data.path().join(TOKEN), "abc").unwrap();
        let is_gone = || matches!(find(data.path()), Err(FindError::NotServing(_)));
        assert!(is_gone());
        let lock = taken(data.path());
        assert!(find(data.path()).is_ok());
        drop(lock);
        assert!(is_gone());
        // Another client may hold a shared lock for a moment, to check whether a daemon is running. `find` must not
        // mistake that client for a daemon.
        let looking = File::open(data.path().join(LOCK)).unwrap();
        looking.try_lock_shared().unwrap();
        assert!(is_gone());
    }

    #[test]
    fn doors() {
        let daemon = r#"{"url": "http://127.0.0.1:7717", "pid": 1, "version": "0.1.0"}"#;
        check(Some(daemon), Some("abc\n"), Ok(("http://127.0.0.1:7717/", "abc")));
        let nobody = Err("no polity is serving DATA, and this needs one; start it: polity serve");
        check(None, Some("abc"), nobody);
        check(Some(daemon), None, nobody);
        check(
            Some(r#"{"url": "file:///etc/passwd"}"#),
            Some("abc"),
            Err(
                "DATA/daemon.json is not what a polity writes: its url is not an http URL; restart it: polity serve",
            ),
        );
        check(
            Some(daemon),
            Some("a\nb"),
            Err("DATA/token is not what a polity writes: it holds no token; restart it: polity serve"),
        );
    }

    #[test]
    fn half_a_file_is_no_door() {
        let data = tempfile::tempdir().unwrap();
        let _lock = taken(data.path());
        std::fs::write(data.path().join(DAEMON), "{\"url\": \"http://127").unwrap();
        assert!(matches!(find(data.path()), Err(FindError::Nonsense { .. })));
    }
}
