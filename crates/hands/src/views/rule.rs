//! Decides whether an agent knows a file well enough to change it. Pure.

use polity_files::ContentHash;

/// The kinds of change. For some kinds, the arguments prove that the agent knows the text that it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Replaces the whole content. The arguments prove nothing.
    Create,
    /// Replaces a text that the arguments quote. So the agent knows the text that it changes.
    Replace,
    /// Inserts lines after a line number. If the file has changed, the number may mean another place.
    Insert,
}

/// Why an agent does not know a file well enough to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The file has changed since the agent last viewed or wrote it.
    Changed,
    /// The agent has never viewed or written the file.
    NeverViewed,
}

/// Checks that an agent may change a file. `seen` is the hash of the content that the agent last viewed or wrote. `now`
/// is the hash of the current content, or `None` if the file does not exist.
pub fn may_change(
    change: Change,
    seen: Option<ContentHash>,
    now: Option<ContentHash>,
) -> Result<(), Unknown> {
    match (now, seen) {
        // There is no file, so no content can be lost.
        (None, _) => Ok(()),
        (Some(now), Some(seen)) if now == seen => Ok(()),
        (Some(_), Some(_)) => Err(Unknown::Changed),
        (Some(_), None) => match change {
            Change::Replace => Ok(()),
            Change::Create | Change::Insert => Err(Unknown::NeverViewed),
        },
    }
}
