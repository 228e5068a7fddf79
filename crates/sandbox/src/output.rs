//! Records the output of a command: its first and last bytes in memory, and the whole output in a file.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tokio::io::{AsyncWriteExt as _, BufWriter};

use crate::plan::Excerpt;

/// The output of a command: the bytes of its standard output and its standard error, in the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// The first bytes.
    pub first: Vec<u8>,
    /// The last bytes, without those that are in `first`.
    pub last: Vec<u8>,
    /// Total number of bytes.
    pub total_bytes: u64,
    /// The file with the output, up to [`Limits::output_bytes`](crate::Limits::output_bytes).
    pub file: PathBuf,
}

impl Output {
    /// Returns the number of bytes that are neither in `first` nor in `last`.
    pub fn omitted_bytes(&self) -> u64 {
        self.total_bytes.saturating_sub((self.first.len() + self.last.len()) as u64)
    }
}

/// Receives the output of a command.
#[derive(Debug)]
pub(crate) struct Recorder {
    excerpt: Excerpt,
    limit: u64,
    first: Vec<u8>,
    last: VecDeque<u8>,
    total: u64,
    path: PathBuf,
    file: BufWriter<File>,
}

/// Whether a command may write more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Left,
    Exhausted,
}

impl Recorder {
    /// Creates the file and records nothing yet.
    pub(crate) async fn new(path: &Path, excerpt: Excerpt, limit: u64) -> std::io::Result<Self> {
        let file = BufWriter::new(File::create(path).await?);
        Ok(Self {
            excerpt,
            limit,
            first: Vec::new(),
            last: VecDeque::new(),
            total: 0,
            path: path.to_owned(),
            file,
        })
    }

    /// Records bytes. If some of the bytes are beyond the limit, drops these and returns [`Room::Exhausted`].
    pub(crate) async fn take(&mut self, bytes: &[u8]) -> std::io::Result<Room> {
        let left = usize::try_from(self.limit.saturating_sub(self.total)).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(left)];
        self.file.write_all(kept).await?;
        self.total += kept.len() as u64;
        let beginning = kept.len().min(self.excerpt.first.saturating_sub(self.first.len()));
        self.first.extend_from_slice(&kept[..beginning]);
        let rest = &kept[beginning..];
        self.last.extend(&rest[rest.len().saturating_sub(self.excerpt.last)..]);
        let surplus = self.last.len().saturating_sub(self.excerpt.last);
        self.last.drain(..surplus);
        Ok(if kept.len() < bytes.len() { Room::Exhausted } else { Room::Left })
    }

    /// Returns the output so far.
    pub(crate) fn so_far(&self) -> Output {
        Output {
            first: self.first.clone(),
            last: self.last.iter().copied().collect(),
            total_bytes: self.total,
            file: self.path.clone(),
        }
    }

    /// Writes buffered bytes to the file, and returns the whole output.
    pub(crate) async fn finish(mut self) -> std::io::Result<Output> {
        self.file.flush().await?;
        Ok(self.so_far())
    }
}

#[cfg(test)]
mod tests;
