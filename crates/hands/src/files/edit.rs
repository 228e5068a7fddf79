//! Applies a change to the text of a file. Pure.
//!
//! Models see no line ends when they view a file, so they write `\n`. A change replaces this `\n` by the line end of
//! the file, such as `\r\n`.

use crate::files::text::{BYTE_ORDER_MARK, Ending, lines};
use std::ops::{Range, RangeInclusive};

/// If a quoted text occurs several times in the file, the refusal names at most this many of the places.
const MAX_PLACES: usize = 10;

/// If a quoted text occurs very often in the file, the count of the places stops at this number.
const MAX_COUNT: usize = 1000;

/// A change that a model asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edit<'a> {
    /// Replaces the whole text.
    Create(&'a str),
    /// Replaces the text `old`, which must occur exactly once.
    Replace { old: &'a str, new: &'a str },
    /// Inserts a text as separate lines after the line with this number. 0 inserts at the beginning.
    Insert { after: usize, text: &'a str },
}

/// A text after a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) text: String,
    /// The numbers of the lines that the change wrote. If the change only removed text, this is the number of the line
    /// where the text was.
    pub(super) changed: RangeInclusive<usize>,
}

/// Why a change cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditFault {
    #[error("empty; quote the text to replace, or use insert")]
    NothingToReplace,
    #[error("the same as old_str; nothing would change")]
    NoChange,
    #[error("does not occur in the file")]
    NotFound,
    #[error("{}", several(*.count, .lines))]
    Several {
        count: usize,
        /// The lines in which the first places begin, at most [`MAX_PLACES`].
        lines: Vec<usize>,
    },
    #[error("the file has {lines} lines; give 0 to {lines}")]
    NoSuchLine { lines: usize },
}

fn several(count: usize, lines: &[usize]) -> String {
    let times = if count == MAX_COUNT { format!("at least {count}") } else { count.to_string() };
    let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
    let more = if count > lines.len() { ", …" } else { "" };
    let lines = lines.join(", ");
    format!("occurs {times} times, at lines {lines}{more}; quote more lines around the one that you mean")
}

/// Applies a change. `old` is the text of the file; absent if the file does not exist or is not text.
pub(super) fn edit(old: Option<&str>, edit: Edit<'_>) -> Result<Edited, EditFault> {
    let text = old.unwrap_or_default();
    match edit {
        Edit::Create(new) => Ok(create(text, new)),
        Edit::Replace { old, new } => replace(text, old, new),
        Edit::Insert { after, text: new } => insert(text, after, new),
    }
}

/// Replaces the whole text, but keeps the byte order mark and the line ends of the old text.
fn create(old: &str, new: &str) -> Edited {
    let mut text = String::new();
    if old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK) {
        text.push(BYTE_ORDER_MARK);
    }
    let is_windows = old.contains("\r\n") && old.matches('\n').count() == old.matches("\r\n").count();
    let ending = if is_windows { Ending::CrLf } else { Ending::Lf };
    text.push_str(&ending.applied_to(new));
    let last = lines(&text).count().max(1);
    Edited { text, changed: 1..=last }
}

fn replace(text: &str, old: &str, new: &str) -> Result<Edited, EditFault> {
    if old.is_empty() {
        return Err(EditFault::NothingToReplace);
    }
    let flat = Flat::of(text);
    let wanted = Flat::of(old).text;
    let places = places(&flat.text, &wanted);
    let place = match places[..] {
        [] => return Err(EditFault::NotFound),
        [place] => flat.raw(place)..flat.raw(place.saturating_add(wanted.len())),
        _ => {
            let lines = places.iter().take(MAX_PLACES).map(|place| line_of(&flat.text, *place)).collect();
            return Err(EditFault::Several { count: places.len(), lines });
        }
    };
    let ending = Ending::of(&text[place.clone()]).or_else(|| Ending::of(text)).unwrap_or(Ending::Lf);
    let new = ending.applied_to(new);
    if new == text[place.clone()] {
        return Err(EditFault::NoChange);
    }
    Ok(spliced(text, place, &new))
}

fn insert(text: &str, after: usize, new: &str) -> Result<Edited, EditFault> {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let count = body.lines().count();
    if after > count {
        return Err(EditFault::NoSuchLine { lines: count });
    }
    let ending = Ending::of(text).unwrap_or(Ending::Lf);
    let new = new.strip_suffix('\n').map_or(new, |line| line.strip_suffix('\r').unwrap_or(line));
    let new = ending.applied_to(new);
    let breaks = body.match_indices('\n').map(|(at, _)| at.saturating_add(1));
    let at = match after.checked_sub(1) {
        None => Some(0),
        Some(before) => breaks.clone().nth(before),
    };
    let start = text.len() - body.len();
    Ok(match at {
        Some(at) => {
            let at = start.saturating_add(at);
            spliced(text, at..at, &format!("{new}{}", ending.as_str()))
        }
        // The text is inserted at the end of a file whose last line has no line end. So the last inserted line gets no
        // line end either. There is one exception. Without a line end, a blank line would not count as a line. So if
        // the last inserted line is blank, it gets a line end.
        None => {
            let is_blank = new.is_empty() || new.ends_with('\n');
            let end = if is_blank { ending.as_str() } else { "" };
            let line = format!("{}{new}{end}", ending.as_str());
            let mut edited = spliced(text, text.len()..text.len(), &line);
            edited.changed = after.saturating_add(1)..=*edited.changed.end();
            edited
        }
    })
}

fn spliced(text: &str, place: Range<usize>, new: &str) -> Edited {
    let (before, after) = (&text[..place.start], &text[place.end..]);
    let first = line_of(text, place.start);
    let breaks = new.matches('\n').count();
    let last = first.saturating_add(if new.ends_with('\n') { breaks.saturating_sub(1) } else { breaks });
    Edited { text: [before, new, after].concat(), changed: first..=last }
}

/// Returns the number of the line that contains the byte at `place`.
fn line_of(text: &str, place: usize) -> usize {
    text[..place].matches('\n').count().saturating_add(1)
}

/// Finds all places where `wanted` occurs in a text. The places may overlap. All of them count, because the model could
/// mean any of them.
fn places(text: &str, wanted: &str) -> Vec<usize> {
    let mut places = Vec::new();
    let mut from = 0;
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    while places.len() < MAX_COUNT
        && let Some(found) = text.get(from..).and_then(|rest| rest.find(wanted))
    {
        let place = found.saturating_add(from);
        places.push(place);
        from = place.saturating_add(step);
    }
    places
}

/// A text in which each `\r\n` was replaced by `\n`.
struct Flat {
    text: String,
    /// The places in `text` of the line ends that were `\r\n` in the original.
    shortened: Vec<usize>,
}

impl Flat {
    fn of(raw: &str) -> Self {
        let shortened = raw.match_indices("\r\n").enumerate().map(|(before, (at, _))| at - before).collect();
        Self { text: raw.replace("\r\n", "\n"), shortened }
    }

    /// Converts a place in `text` to the same place in the original text.
    fn raw(&self, place: usize) -> usize {
        place.saturating_add(self.shortened.partition_point(|end| *end < place))
    }
}

#[cfg(test)]
mod tests;
