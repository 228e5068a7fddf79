//! Paths that no command may see.

use std::path::PathBuf;

/// A path that no command may see, such as the data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hidden {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
}

/// Whether a path is a directory or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    File,
}
