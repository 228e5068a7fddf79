//! Reads and writes the files of a configuration directory.

use crate::problem::{Place, Problem, Severity};
use crate::{services, settings};
use polity_disk::{Links, read_text, write_private};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size of a configuration file, in bytes. The limit is low because polity reads the files before each model
/// call.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The default `app.json`: every setting with its default value, and comments.
pub const DEFAULT_SETTINGS: &str = include_str!("../../../config/app.json");

/// Reads the text of a configuration file.
///
/// Follows symbolic links. Tools that manage configuration files replace the files by links, and Kubernetes does the
/// same when it mounts a ConfigMap.
///
/// # Errors
///
/// Fails if the file cannot be read, is no regular file, is longer than 4 MiB, or is not UTF-8.
pub fn config_text(path: &Path) -> io::Result<String> {
    read_text(path, Links::Followed, MAX_BYTES)
}

/// Reads a file, and returns `None` if it does not exist. Problems show `name` as the name of the file.
pub(crate) fn read(path: &Path, name: &str) -> Result<Option<String>, Problem> {
    match config_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Problem {
            file: name.to_owned(),
            place: Place::Whole,
            severity: Severity::Error,
            what: format!("cannot be read: {error}"),
            done: "the file is not used".to_owned(),
        }),
    }
}

/// A default configuration file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("failed to write the default configuration {path}")]
pub struct WriteDefaultsError {
    /// The file that could not be written, or the directory that could not be created.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// Creates the configuration directory if it does not exist. Adds each default file that the directory lacks. Returns
/// the paths of the new files.
///
/// # Errors
///
/// Fails at the first file or directory that cannot be written.
pub fn write_defaults(config_dir: &Path) -> Result<Vec<PathBuf>, WriteDefaultsError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| WriteDefaultsError { path, source }
    };
    fs::create_dir_all(config_dir).map_err(failed(config_dir))?;
    let mut made = Vec::new();
    for (name, text) in [
        (settings::FILE, DEFAULT_SETTINGS),
        (services::FILE, include_str!("../../../config/llmservices.json")),
        ("llmservices.template.json", include_str!("../../../config/llmservices.template.json")),
    ] {
        let path = config_dir.join(name);
        if path.exists() {
            continue;
        }
        // Only the owner may read the file, because people write keys into it.
        write_private(&path, text).map_err(failed(&path))?;
        made.push(path);
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_written_once_and_never_over_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("deep").join("config");
        assert_eq!(write_defaults(&config).unwrap().len(), 3);
        fs::write(config.join("app.json"), "mine").unwrap();
        fs::remove_file(config.join("llmservices.json")).unwrap();
        assert_eq!(write_defaults(&config).unwrap(), [config.join("llmservices.json")]);
        assert_eq!(fs::read_to_string(config.join("app.json")).unwrap(), "mine");
        assert_eq!(fs::read_dir(&config).unwrap().count(), 3);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_problem_and_an_absent_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.json");
        assert_eq!(read(&path, "app.json"), Ok(None));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        let problem = read(&path, "app.json").unwrap_err();
        assert_eq!(
            problem.to_string(),
            "app.json: cannot be read: stream did not contain valid UTF-8; the file is not used"
        );
    }

    #[test]
    fn a_file_that_has_no_end_or_that_nobody_writes_is_a_problem_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.json");
        let check = |expect: &str| {
            let problem = read(&path, "app.json").unwrap_err();
            assert_eq!(
                problem.to_string(),
                format!("app.json: cannot be read: {expect}; the file is not used")
            );
            fs::remove_file(&path).unwrap();
        };
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        check("it is not a regular file");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        check("it is not a regular file");
        fs::File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        check("it is longer than 4194304 bytes");
    }
}
