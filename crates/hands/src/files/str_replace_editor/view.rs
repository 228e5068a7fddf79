//! Carries out the command `view`: returns a directory listing or a text file as text, and any other file unchanged.

use crate::call::{File, Output};
use crate::files::desk::{Desk, refused};
use crate::files::numbered::{cut, numbered};
use crate::files::text::{Content, lines};
use crate::views::Views;
use polity_files::{ContentHash, Kind, WorkspacePath};
use polity_society::refusal::Refusal;
use serde_json::json;

pub(super) fn view(
    desk: &Desk,
    views: &Views,
    written: &str,
    range: Option<[i64; 2]>,
) -> Result<Output, Refusal> {
    let path = desk.path(written)?;
    let found = desk.workspace.metadata(&path).map_err(|error| desk.refusal(error))?;
    let output = match found.kind {
        Kind::Directory => directory(desk, &path),
        Kind::File | Kind::Link | Kind::Special => file(desk, views, &path, range),
    };
    output.map(|output| desk.sourced(output))
}

fn directory(desk: &Desk, path: &WorkspacePath) -> Result<Output, Refusal> {
    let lines = desk.workspace.list(path).map_err(|error| desk.refusal(error))?.lines;
    let mut text = String::new();
    let mut shown = 0_usize;
    for line in &lines {
        if text.chars().count().saturating_add(line.chars().count()) >= desk.bounds.view_chars {
            break;
        }
        text.push_str(line);
        text.push('\n');
        shown = shown.saturating_add(1);
    }
    let name = path.on_one_line();
    let left_out = lines.len().saturating_sub(shown);
    let origin = match (lines.len(), left_out) {
        (0, _) => format!("{name}/, an empty directory"),
        (_, 0) => format!("{name}/"),
        (_, left_out) => format!("{name}/, without the last {left_out} lines; view its subdirectories"),
    };
    Ok(Output::text(origin, text))
}

fn file(
    desk: &Desk,
    views: &Views,
    path: &WorkspacePath,
    range: Option<[i64; 2]>,
) -> Result<Output, Refusal> {
    let bytes = desk.workspace.read(path, desk.bounds.file_bytes).map_err(|error| desk.refusal(error))?;
    let hash = ContentHash::of(&bytes);
    let name = path.on_one_line();
    let output = match Content::of(&bytes) {
        Content::Text(text) => text_output(desk, &name, &text, range)?,
        Content::Encoded { encoding, text } => {
            text_output(desk, &format!("{name} in {encoding}, not in UTF-8"), &text, range)?
        }
        Content::Binary => {
            let said = json!({"path": name, "bytes": bytes.len()});
            let filename = path.name().map(str::to_owned);
            Output::json(said).with_file(File { bytes: bytes.into(), declared_mime: None, filename })
        }
    };
    views.note(&desk.caller, path, hash);
    Ok(output)
}

/// Returns the numbered lines of a text. The path and the range of lines are in a separate line, which names the origin
/// of the text. So the content of the file cannot forge them.
fn text_output(desk: &Desk, name: &str, text: &str, range: Option<[i64; 2]>) -> Result<Output, Refusal> {
    let count = lines(text).count();
    let [first, last] = range.unwrap_or([1, -1]);
    let first = usize::try_from(first).unwrap_or(usize::MAX).max(1);
    let last = usize::try_from(last).map_or(count, |last| last.min(count));
    if count == 0 {
        return Ok(Output::text(format!("{name}, an empty file"), ""));
    }
    if first > count {
        return Err(refused("view_range", format!("the file has {count} lines")));
    }
    let shown = numbered(text, first..=last, desk.bounds.view_chars);
    let mut origin = name.to_owned();
    if first > 1 || shown.last < count {
        origin.push_str(&format!(", lines {first}-{} of {count}", shown.last));
    }
    if shown.last < last {
        origin.push_str(&format!("; continue with view_range [{}, {last}]", shown.last.saturating_add(1)));
    }
    Ok(Output::text(cut(&origin, 1000), shown.text))
}
