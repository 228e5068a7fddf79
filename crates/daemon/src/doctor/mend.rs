//! `polity doctor --fix`: writes corrections into `llmservices.json`.

use super::report::Mended;
use polity_probe::{Correction, Finding, edit};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

const FILE: &str = "llmservices.json";

/// Corrects the file in a configuration directory; returns the changes.
pub(super) fn services(config_dir: &Path, corrections: &[Correction]) -> Result<Vec<Mended>, Finding> {
    if corrections.is_empty() {
        return Ok(Vec::new());
    }
    let path = config_dir.join(FILE);
    let by_hand = "edit the file by hand, as the hints above advise";
    let failed =
        |why: String| Finding::warning("not_mended", format!("{FILE} was left as it is: {why}"), by_hand);
    let text = fs::read_to_string(&path).map_err(|error| failed(error.to_string()))?;
    let edited = edit(&text, corrections).map_err(|error| failed(error.to_string()))?;
    if edited.changes.is_empty() {
        return Ok(Vec::new());
    }
    replace(&path, &text, &edited.text).map_err(|error| failed(error.to_string()))?;
    let mended = edited.changes.into_iter().map(|change| Mended {
        file: path.display().to_string(),
        what: format!("{}: {}", change.service, change.field),
        before: change.before,
        after: change.after,
    });
    Ok(mended.collect())
}

/// Replaces a file atomically, if it still contains the text that was read. The new file gets the old permissions, and
/// a symbolic link stays a link.
fn replace(path: &Path, before: &str, after: &str) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let permissions = fs::metadata(&path)?.permissions();
    let mut unfinished = path.clone().into_os_string();
    unfinished.push(format!(".{}.new", std::process::id()));
    let unfinished = Path::new(&unfinished);
    let written = write(unfinished, permissions, after).and_then(|()| {
        if fs::read_to_string(&path)? != before {
            return Err(io::Error::other("somebody else has just changed the file"));
        }
        fs::rename(unfinished, &path)
    });
    if written.is_err() {
        // Ignore the error that the temporary file does not exist: the failure may have prevented its creation.
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
    // The file may contain API keys.
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
    fn what_somebody_else_has_changed_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "theirs").unwrap();
        assert!(replace(&path, "before", "after").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
