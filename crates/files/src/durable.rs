//! Replaces a file. After a crash, the file has the whole old content or the whole new content.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file by renaming a new file. When this returns, the new content is safely on disk.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())
}
