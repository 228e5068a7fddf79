//! How much the tools read and show.

/// How much the tools read and show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Characters of a text that one result shows.
    pub view_chars: usize,
    /// Bytes of the largest file that is viewed, changed or searched. It is held in memory.
    pub file_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { view_chars: 16_000, file_bytes: 32 << 20 }
    }
}
