//! Paths that no command may see.

use std::path::PathBuf;

/// A path that must not be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
}
