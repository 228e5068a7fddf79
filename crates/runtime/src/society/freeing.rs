//! Frees space while the society runs.

use super::Society;
use crate::handles::Handles;
use polity_store::maintenance::{self, Amount, MaintenanceError, Mode, Trash, Unwanted};
use polity_view::{AmountView, FreedView, FreeingFilter};
use std::time::Duration;

impl Society {
    /// Frees space while the society runs: see [`maintenance::free_beside`].
    pub async fn free(&self, wanted: &FreeingFilter) -> Result<FreedView, MaintenanceError> {
        let unwanted = Unwanted {
            idle_for: wanted.older_than_seconds.map(Duration::from_secs),
            retention: self.handles.registry.current().settings.retention,
            trash: if wanted.empty_trash { Trash::Emptied } else { Trash::Kept },
        };
        let mode = if wanted.dry_run { Mode::Count } else { Mode::Remove };
        let Handles { store, blobs, .. } = &*self.handles;
        let freed = maintenance::free_beside(store, blobs, &self.data, &unwanted, mode).await?;
        let amount = |amount: Amount| AmountView { files: amount.files, bytes: amount.bytes };
        Ok(FreedView {
            artifacts: freed.artifacts,
            stored: amount(freed.stored),
            trash: amount(freed.trash),
            events: freed.events,
            database_before: freed.database_before,
            database_after: freed.database_after,
        })
    }
}
