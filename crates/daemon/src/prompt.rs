//! The prompt of `polity run`: its text and attachments, which are read and checked before the society starts.

use crate::cli::RunArguments;
use crate::failure::Failure;
use polity_registry::Snapshot;
use polity_runtime::{NewArtifact, Prompt};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Reads the prompt, if the command line has one. Refuses an invalid prompt before the society starts, because a
/// society that starts also continues the unfinished work in its data directory.
pub(crate) fn read(arguments: &RunArguments, snapshot: &Snapshot) -> Result<Option<Prompt>, Failure> {
    let Some(argument) = arguments.prompt.as_deref() else { return Ok(None) };
    let text = read_text(argument)?;
    let mut prompt = Prompt { text, attachments: Vec::new(), service: arguments.service.clone() };
    prompt.check(snapshot)?;
    let limit = snapshot.settings.limits.max_artifact_bytes;
    for path in &arguments.attach {
        prompt.attachments.push(read_attachment(path, limit)?);
    }
    Ok(Some(prompt))
}

/// Returns the text of an argument; `-` reads it from standard input.
pub(crate) fn read_text(argument: &str) -> Result<String, Failure> {
    if argument == "-" { read_standard_input() } else { Ok(argument.to_owned()) }
}

fn read_standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::StandardInput)?;
    Ok(text)
}

fn read_attachment(path: &Path, limit: u64) -> Result<NewArtifact, Failure> {
    let unreadable = |source| Failure::Attachment { path: path.to_owned(), source };
    // Check the type before opening: opening a pipe would block until somebody writes to it.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Failure::NotAFile(path.to_owned()));
    }
    let file = File::open(path).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    // The file may grow meanwhile. Reading stops one byte above the limit.
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    let read = bytes.len() as u64;
    if read > limit {
        return Err(Failure::AttachmentTooLarge { path: path.to_owned(), size: size.max(read), limit });
    }
    let filename = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(NewArtifact { bytes: bytes.into(), filename, ..NewArtifact::default() })
}
