//! Computes the environment variables of a command. Of the daemon's variables, only those in a fixed list are passed
//! on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Variables of the daemon that are passed on unchanged. None of them contains a secret or a path.
const PASSED: [&str; 8] =
    ["LANG", "LANGUAGE", "TERM", "TZ", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "SOURCE_DATE_EPOCH"];

/// Variables that name a directory or file. Such a variable is passed on only if the command can see the named path.
const PLACES: [&str; 9] = [
    "RUSTUP_HOME",
    "PYENV_ROOT",
    "NVM_DIR",
    "JAVA_HOME",
    "GOROOT",
    "VOLTA_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
];

/// The `PATH` of a command that can see no directory of the daemon's `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The directories that the environment of a command depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories<'a> {
    /// The value of `HOME`.
    pub home: &'a Path,
    /// The value of `TMPDIR`.
    pub temporary: &'a Path,
    /// Directories that the command can read. Every path below such a directory is visible to the command.
    pub visible: &'a [PathBuf],
}

/// Returns the whole environment of a command. From the daemon's environment, it contains only the variables in the
/// lists above, the variables of the locale, and the directories of `PATH` that the command can see.
pub fn environment(
    daemon: &BTreeMap<String, String>,
    directories: &Directories<'_>,
) -> BTreeMap<String, String> {
    let visible = |path: &str| {
        let path = Path::new(path);
        path.is_absolute()
            && path.components().all(|part| part != std::path::Component::ParentDir)
            && directories.visible.iter().any(|root| path.starts_with(root))
    };
    let mut result = BTreeMap::new();
    for (name, value) in daemon {
        let passed = PASSED.contains(&name.as_str()) || is_locale(name);
        if passed || (PLACES.contains(&name.as_str()) && visible(value)) {
            result.insert(name.clone(), value.clone());
        }
    }
    let path: Vec<&str> = daemon
        .get("PATH")
        .map(|path| path.split(':').filter(|part| visible(part)).collect())
        .unwrap_or_default();
    let path = if path.is_empty() { DEFAULT_PATH.to_owned() } else { path.join(":") };
    let set = [
        ("PATH", path),
        ("HOME", directories.home.to_string_lossy().into_owned()),
        ("TMPDIR", directories.temporary.to_string_lossy().into_owned()),
        ("SHELL", "/bin/sh".to_owned()),
        ("USER", "agent".to_owned()),
        ("LOGNAME", "agent".to_owned()),
        // A pager or a prompt would wait for a person, but no person sees the terminal of a command.
        ("PAGER", "cat".to_owned()),
        ("GIT_PAGER", "cat".to_owned()),
        ("GIT_TERMINAL_PROMPT", "0".to_owned()),
    ];
    result.extend(set.map(|(name, value)| (name.to_owned(), value)));
    result
}

/// Returns the variables that make programs use a proxy at this port of 127.0.0.1.
pub(crate) fn proxy(port: u16) -> BTreeMap<String, String> {
    let address = format!("http://127.0.0.1:{port}");
    let leading = ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];
    let local = ["no_proxy", "NO_PROXY"].map(|name| (name, "localhost,127.0.0.1,::1".to_owned()));
    leading
        .map(|name| (name, address.clone()))
        .into_iter()
        .chain(local)
        // Node.js reads `http_proxy` and the other variables above only if this variable is set.
        .chain([("NODE_USE_ENV_PROXY", "1".to_owned())])
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn is_locale(name: &str) -> bool {
    name.strip_prefix("LC_")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase()))
}

#[cfg(test)]
mod tests;
