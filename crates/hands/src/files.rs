//! The tools of the group `files`: one that views and changes files, and one that searches them.
//!
//! The path of a change: the arguments and the file become an `Edit` and a text; `edit` makes the new text or says what
//! is wrong, purely; `views` decides whether the agent may change the file; the workspace writes it. The evidence of a
//! change is the hash before and after, so a run after a crash can tell whether the change has already happened.

mod bounds;
mod browse;
mod desk;
mod diff;
mod edit;
mod nearest;
mod numbered;
mod saving;
mod search_files;
mod str_replace_editor;
mod text;

pub use bounds::Bounds;
pub use browse::{BrowseError, Browsed, browse};
pub use diff::diff;
pub use saving::{Files, PathArgument, ReadFile};
pub use search_files::SearchFiles;
pub use str_replace_editor::{Preview, StrReplaceEditor};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
