//! Carries out the commands `create`, `str_replace` and `insert`.

use crate::call::{Attempt, Output};
use crate::files::desk::{Desk, refused};
use crate::files::diff::{diff, with_diff};
use crate::files::edit::{EditFault, Edited, edit};
use crate::files::nearest::{Difference, has_line_numbers, nearest};
use crate::files::numbered::{excerpt, snippet};
use crate::files::str_replace_editor::arguments::Change;
use crate::files::text::{Content, lines};
use crate::views::{Change as Kind, Views};
use polity_files::{ContentHash, FileError, WorkspacePath};
use polity_society::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// Maximum number of lines that a refusal quotes from the most similar place.
const MAX_QUOTED_LINES: usize = 12;

/// What a call would change, for a person to review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// The change as a unified diff.
    pub diff: String,
}

/// Recorded before a change. After a crash, the next run of the call uses it to tell whether the change has happened.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Evidence {
    /// The hash of the file before the change; `null` if the file did not exist.
    before: Option<ContentHash>,
    /// The hash of the file after the change.
    after: ContentHash,
    /// The number of the first line that the change wrote.
    first_line: usize,
    /// The number of the last line that the change wrote.
    last_line: usize,
}

/// A change that was checked and can be written.
struct Plan {
    path: WorkspacePath,
    before: Option<ContentHash>,
    /// The text of the file before the change. Absent if the file does not exist or is not text.
    old: Option<String>,
    new: Edited,
}

impl Plan {
    fn evidence(&self) -> Evidence {
        Evidence {
            before: self.before,
            after: ContentHash::of(self.new.text.as_bytes()),
            first_line: *self.new.changed.start(),
            last_line: *self.new.changed.end(),
        }
    }

    fn preview(&self) -> Preview {
        let path = self.path.on_one_line();
        let diff = diff(self.old.as_deref().unwrap_or_default(), &self.new.text, &path);
        Preview { path, diff }
    }
}

/// Whether to check that the agent knows the current content of the file that it changes.
#[derive(Clone, Copy)]
enum Knowledge<'a> {
    /// [`Views`] must show that the agent has viewed or written the current content.
    Needed(&'a Views),
    /// Nothing is checked, because an earlier step has already checked the same content.
    Checked,
}

pub(super) fn preview(
    desk: &Desk,
    views: &Views,
    written: &str,
    change: &Change,
) -> Result<Preview, Refusal> {
    let plan = plan(desk, Knowledge::Needed(views), written, change)?;
    Ok(plan.preview())
}

pub(super) fn evidence(desk: &Desk, views: &Views, written: &str, change: &Change) -> Result<Value, Refusal> {
    let plan = plan(desk, Knowledge::Needed(views), written, change)?;
    let Preview { path, diff } = plan.preview();
    Ok(with_diff(json!(plan.evidence()), &path, &diff))
}

/// Makes the change. If an earlier run of the call has already made the change before a crash, only describes it.
pub(super) fn carry_out(
    desk: &Desk,
    views: &Views,
    written: &str,
    change: &Change,
    evidence: &Value,
    attempt: Attempt,
) -> Result<Output, Refusal> {
    let changed_meanwhile = || Refusal::FileChanged { path: written.to_owned() };
    if evidence.is_null() {
        let plan = plan(desk, Knowledge::Needed(views), written, change)?;
        return write(desk, views, change, &plan);
    }
    let evidence = Evidence::deserialize(evidence).map_err(|error| Refusal::ToolFailed {
        tool: desk.tool.to_owned(),
        reason: format!("the record of the change cannot be read: {error}"),
    })?;
    let path = desk.path(written)?;
    let now = desk.read_if_there(&path).map_err(|error| desk.refusal(error))?;
    let hash = now.as_deref().map(ContentHash::of);
    if hash == evidence.before {
        let plan = plan(desk, Knowledge::Checked, written, change)?;
        // The file was read twice: here, and again by `plan`. It may have changed in between.
        return if plan.evidence() == evidence {
            write(desk, views, change, &plan)
        } else {
            Err(changed_meanwhile())
        };
    }
    match (attempt, now) {
        (Attempt::AfterCrash, Some(now)) if hash == Some(evidence.after) => {
            views.note(&desk.caller, &path, evidence.after);
            let text = String::from_utf8_lossy(&now);
            let changed = evidence.first_line..=evidence.last_line;
            Ok(confirmation(desk, &path, evidence.before, &text, &changed, change))
        }
        (Attempt::First | Attempt::AfterCrash, _) => Err(changed_meanwhile()),
    }
}

fn plan(desk: &Desk, knowledge: Knowledge<'_>, written: &str, change: &Change) -> Result<Plan, Refusal> {
    let path = desk.path(written)?;
    desk.workspace.check_write(&path).map_err(|error| desk.refusal(error))?;
    let now = desk.read_if_there(&path).map_err(|error| desk.refusal(error))?;
    let before = now.as_deref().map(ContentHash::of);
    if let Knowledge::Needed(views) = knowledge {
        desk.check_known(views, &path, change.kind(), before)?;
    }
    let old = match (change.kind(), now.as_deref().map(Content::of)) {
        (_, Some(Content::Text(text))) => Some(text),
        (Kind::Create, _) => None,
        (Kind::Replace | Kind::Insert, None) => return Err(desk.refusal(FileError::NotFound(path))),
        (Kind::Replace | Kind::Insert, Some(Content::Encoded { encoding, .. })) => {
            let rule = "and not in UTF-8, so a change could damage it; convert it first, or create it anew";
            return Err(refused("path", format!("is in {encoding} {rule}")));
        }
        (Kind::Replace | Kind::Insert, Some(Content::Binary)) => {
            return Err(refused("path", "is not a text file"));
        }
    };
    let new = edit(old.as_deref(), change.edit());
    let new = new.map_err(|fault| explained(&fault, old.as_deref().unwrap_or_default(), change))?;
    Ok(Plan { path, before, old, new })
}

fn write(desk: &Desk, views: &Views, change: &Change, plan: &Plan) -> Result<Output, Refusal> {
    let Plan { path, before, new, .. } = plan;
    desk.write(views, path, *before, new.text.as_bytes())?;
    Ok(confirmation(desk, path, *before, &new.text, &new.changed, change))
}

/// Describes the change to the model. The path and the line numbers are separate from the content of the file: in JSON,
/// or in the line that names the origin of the text. So the content cannot forge them.
fn confirmation(
    desk: &Desk,
    path: &WorkspacePath,
    before: Option<ContentHash>,
    text: &str,
    changed: &RangeInclusive<usize>,
    change: &Change,
) -> Output {
    let (name, count) = (path.on_one_line(), lines(text).count());
    match change.kind() {
        Kind::Create => {
            let done = if before.is_some() { "replaced" } else { "created" };
            Output::json(json!({"path": name, "done": done, "lines": count}))
        }
        Kind::Replace | Kind::Insert => {
            let (first, last) = (changed.start(), changed.end());
            let origin = format!("{name}, changed at lines {first}-{last}; it now has {count} lines");
            desk.sourced(Output::text(origin, snippet(text, changed)))
        }
    }
}

/// Makes the refusal of a change. If the quoted text does not occur, the refusal shows the most similar place.
fn explained(fault: &EditFault, text: &str, change: &Change) -> Refusal {
    let argument = match fault {
        EditFault::NothingToReplace | EditFault::NotFound | EditFault::Several { .. } => "old_str",
        EditFault::NoChange => "new_str",
        EditFault::NoSuchLine { .. } => "insert_line",
    };
    let (EditFault::NotFound, Change::Replace { old, .. }) = (fault, change) else {
        return refused(argument, fault.to_string());
    };
    if has_line_numbers(old) {
        return refused(argument, format!("{fault}; leave out the line numbers of the view"));
    }
    let Some(place) = nearest(text, old) else {
        return refused(argument, format!("{fault}; view it and quote it exactly"));
    };
    let difference = match place.difference {
        Difference::Blanks => "only white space differs at",
        Difference::Words => "the most similar place is",
    };
    let (first, last) = (*place.lines.start(), *place.lines.end());
    let quoted = last.min(first.saturating_add(MAX_QUOTED_LINES - 1));
    let quote = excerpt(text, first..=quoted);
    refused(argument, format!("{fault}; {difference} lines {first}-{last}:\n{quote}"))
}
