//! Replaces a file so that a crash leaves the old content or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file by a rename. The new content is on disk when this returns.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}
