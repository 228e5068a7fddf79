//! The prompt of `polity run`: its text and attachments, which are checked before the society starts.

use crate::failure::Failure;
use polity_registry::Snapshot;
use polity_runtime::Prompt;
use polity_society::id::ServiceId;
use polity_society::limits::{Limits, TooLarge};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads the text of the prompt, if the command line has one, and checks the text, the service and the attachments.
/// An invalid prompt is refused before the society starts, because a society that starts also continues the
/// unfinished work in its data directory.
pub(crate) fn check(
    argument: Option<&str>,
    attach: &[PathBuf],
    service: Option<&ServiceId>,
    snapshot: &Snapshot,
) -> Result<Option<String>, Failure> {
    let Some(argument) = argument else { return Ok(None) };
    let text = read_text(argument)?;
    let prompt = Prompt { text, attachments: Vec::new(), service: service.cloned() };
    prompt.check(snapshot)?;
    for path in attach.iter().filter(|path| !is_reference(path)) {
        check_attachment(path, &snapshot.settings.limits)?;
    }
    Ok(Some(prompt.text))
}

/// Stands for the text of the user in the commands that polity suggests.
const PLACEHOLDER: &str = "…";

/// Returns the text of an argument; `-` reads it from standard input. Refuses the placeholder of a suggested command: a
/// user who pastes such a command would send it as a message, perhaps as the answer to a question.
pub(crate) fn read_text(argument: &str) -> Result<String, Failure> {
    match argument {
        "-" => read_standard_input(),
        text if text.trim() == PLACEHOLDER => Err(Failure::Placeholder),
        text => Ok(text.to_owned()),
    }
}

fn read_standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::StandardInput)?;
    Ok(text)
}

/// Returns whether an attachment names a stored artifact instead of a file.
pub(crate) fn is_reference(attachment: &Path) -> bool {
    attachment.to_str().is_some_and(|name| name.starts_with("artifact:"))
}

fn check_attachment(path: &Path, limits: &Limits) -> Result<(), Failure> {
    let size = size_of_file(path)?;
    limits.check_artifact(size).map_err(|TooLarge { size, limit }| Failure::AttachmentTooLarge {
        path: path.to_owned(),
        size,
        limit,
    })
}

/// Returns the size of a file. Fails if the file cannot be read.
pub(crate) fn size_of_file(path: &Path) -> Result<u64, Failure> {
    let unreadable = |source| Failure::Attachment { path: path.to_owned(), source };
    // Check the type before opening: opening a pipe would block until another process writes to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Failure::NotAFile(path.to_owned()));
    }
    Ok(File::open(path).and_then(|file| file.metadata()).map_err(unreadable)?.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_command_is_not_sent_with_its_placeholder() {
        for text in ["…", " …\n"] {
            assert!(matches!(read_text(text), Err(Failure::Placeholder)), "{text:?}");
        }
        for text in ["and so on …", "...", ""] {
            assert_eq!(read_text(text).ok().as_deref(), Some(text));
        }
    }
}
