//! Whether an agent may change a file, by what it knows of it. Pure.

use polity_files::ContentHash;

/// A change of a file, by what its arguments prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The whole content is replaced. The arguments prove nothing.
    Create,
    /// A text is replaced, which the arguments quote. So the agent knows the place that it changes.
    Replace,
    /// Lines are inserted at a number, which means something else if the file has changed.
    Insert,
}

/// Why an agent may not change a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Somebody else changed the file since the agent last viewed or wrote it.
    Changed,
    /// The agent has never viewed the file.
    NeverViewed,
}

/// Checks that an agent may change a file: not if somebody else changed the file since the agent last saw it, and
/// not blindly. `seen` is the content that the agent last viewed or wrote; `now` is the content of the file, or `None`
/// if there is no file.
pub fn may_change(
    change: Change,
    seen: Option<ContentHash>,
    now: Option<ContentHash>,
) -> Result<(), Unknown> {
    match (now, seen) {
        // Nothing can be lost where there is no file.
        (None, _) => Ok(()),
        (Some(now), Some(seen)) if now == seen => Ok(()),
        (Some(_), Some(_)) => Err(Unknown::Changed),
        (Some(_), None) => match change {
            Change::Replace => Ok(()),
            Change::Create | Change::Insert => Err(Unknown::NeverViewed),
        },
    }
}
