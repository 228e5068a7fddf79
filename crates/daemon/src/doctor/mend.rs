//! `polity doctor --fix`: writes corrections into `llmservices.json`.

use super::report::{Mended, Section};
use polity_probe::{Correction, Edited, Field, Finding, edit};
use polity_registry::config_text;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "llmservices.json";

/// Corrections that can be written into `llmservices.json`.
pub(super) struct Plan {
    path: PathBuf,
    before: String,
    edited: Edited,
}

/// Finds out which corrections can be written into the `llmservices.json` of a configuration directory. Writes nothing.
pub(super) fn plan(config_dir: &Path, corrections: &[Correction]) -> Result<Plan, Finding> {
    let path = config_dir.join(FILE);
    if corrections.is_empty() {
        let edited = Edited { text: String::new(), changes: Vec::new() };
        return Ok(Plan { path, before: String::new(), edited });
    }
    let before = config_text(&path).map_err(|error| failed(&error.to_string()))?;
    let edited = edit(&before, corrections).map_err(|error| failed(&error.to_string()))?;
    Ok(Plan { path, before, edited })
}

fn failed(why: &str) -> Finding {
    let by_hand = "edit the file by hand, as the hints above advise";
    Finding::warning("not_mended", format!("{FILE} cannot be corrected by polity: {why}"), by_hand)
}

impl Plan {
    /// If `--fix` would correct what a finding reports, adds to the finding's advice that the user can run
    /// `polity doctor --fix` instead. The advice of all other findings stays as it is.
    pub(super) fn advise(&self, section: &mut Section) {
        let Some((service, findings)) = section.of_service() else { return };
        let corrects = |field: Field| {
            let mut changes = self.edited.changes.iter();
            changes.any(|change| change.service == service && change.field == field.name())
        };
        for finding in findings {
            let is_settled = finding.settled_by.is_some_and(corrects);
            if let Some(advice) = finding.advice.as_mut().filter(|_| is_settled) {
                advice.push_str(", or run `polity doctor --fix`");
            }
        }
    }

    /// Corrects the file; returns the changes.
    pub(super) fn carry_out(self) -> Result<Vec<Mended>, Finding> {
        let Self { path, before, edited } = self;
        if edited.changes.is_empty() {
            return Ok(Vec::new());
        }
        replace(&path, &before, &edited.text).map_err(|error| failed(&error.to_string()))?;
        let mended = edited.changes.into_iter().map(|change| Mended {
            file: path.display().to_string(),
            what: format!("{}: {}", change.service, change.field),
            before: change.before,
            after: change.after,
        });
        Ok(mended.collect())
    }
}

/// Atomically replaces the text `before` of a file by `after`. If the file no longer contains `before`, somebody has
/// just edited the file, so this function fails. The new file gets the permissions of the old one, and a symbolic link
/// stays a link.
fn replace(path: &Path, before: &str, after: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(format!(".{}.new", std::process::id()));
    let unfinished = Path::new(&unfinished);
    let written = write(unfinished, permissions, after).and_then(|()| {
        if config_text(&path)? != before {
            return Err(io::Error::other("somebody else has just changed the file"));
        }
        fs::rename(unfinished, &path)
    });
    if written.is_err() {
        // Ignore an error: if the write failed early, there is no temporary file to remove.
        let _ = fs::remove_file(unfinished);
    }
    written?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

fn write(path: &Path, permissions: fs::Permissions, text: &str) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    // Create the file so that only its owner can read it, because it may contain API keys. After that, it gets the
    // permissions of the file that it will replace.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.set_permissions(permissions)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_is_replaced_as_a_whole_with_its_permissions_and_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
        fs::write(&real, "before").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        replace(&link, "before", "after").unwrap();
        assert_eq!(fs::read_to_string(&real).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_polity_does_not_read_is_not_corrected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let correction =
            Correction { service: "one".to_owned(), input: None, output: None, context_window: Some(8_192) };
        let check = |expect: &str| {
            let Err(finding) = plan(dir.path(), std::slice::from_ref(&correction)) else {
                panic!("there is a plan: {expect}");
            };
            assert!(finding.what.ends_with(expect), "{}", finding.what);
        };
        fs::write(&path, " ".repeat(5 << 20)).unwrap();
        check("it is longer than 4194304 bytes");
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        check("it is not a regular file");
        assert!(replace(&path, "before", "after").is_err());
    }

    #[test]
    fn what_somebody_else_has_changed_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "theirs").unwrap();
        assert!(replace(&path, "before", "after").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
