//! The result of freeing space in a data directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a cleaning works. It always removes the data that nobody needs. The filter can add further data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FreeingFilter {
    /// If this is set, the cleaning also removes artifacts of tasks in which nothing has happened for this many
    /// seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older_than_seconds: Option<u64>,
    /// Whether the cleaning also removes everything in the trash.
    pub empty_trash: bool,
    /// Whether the cleaning only counts what it would remove, and removes nothing.
    pub dry_run: bool,
}

/// What a cleaning has removed. If the cleaning only counted, this is what it would remove.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FreedView {
    /// Number of artifacts that `olderThanSeconds` selects.
    pub artifacts: u64,
    /// Stored bytes that no artifact needs. These bytes are in the trash now, unless the trash was emptied.
    pub stored: AmountView,
    /// Stored bytes that were removed from the trash.
    pub trash: AmountView,
    /// Number of events that have expired.
    pub events: u64,
    /// The size of the database with its log before the cleaning, in bytes.
    pub database_before: u64,
    /// The size of the database with its log after the cleaning, in bytes.
    pub database_after: u64,
}

/// A number of files, and their size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AmountView {
    /// Number of files.
    pub files: u64,
    /// Their size in bytes.
    pub bytes: u64,
}
