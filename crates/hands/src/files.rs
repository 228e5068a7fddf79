//! The tools of the group `files`: one to view and change files, and one to search them.
//!
//! A change goes through these stages. `str_replace_editor` reads the arguments and the file. `edit`, which is pure,
//! makes the new text, or says why this is not possible. `views` decides whether the agent may change the file.
//! `Workspace` writes the file. Before a change, the runtime records the hashes of the old and the new content of the
//! file. If polity crashes, a repeated run of the call uses these hashes to tell whether the change has already
//! happened.

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
