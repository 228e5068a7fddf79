//! Bounds on what the file tools read and show.

/// Bounds on what the file tools read and show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Maximum number of characters of a file in one result.
    pub view_chars: usize,
    /// Maximum size in bytes of a file that is viewed, changed or searched. The size is bounded because the tools hold
    /// the file in memory.
    pub file_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { view_chars: 16_000, file_bytes: 32 << 20 }
    }
}
