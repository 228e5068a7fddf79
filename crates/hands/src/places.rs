//! Opens the workspaces of callers for the tools that work on files.

use crate::call::{Caller, Place, Root};
use futures::future::{BoxFuture, FutureExt};
use polity_files::{Trust, Workspace};
use polity_society::refusal::Refusal;
use polity_workspaces::Workspaces;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Opens workspaces. Tests implement this with a fixed directory.
pub trait Places: Send + Sync {
    /// Opens the workspace in which the caller works. Makes the directory if it does not exist.
    fn open<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>>;
}

/// Returns whether the content of the files of a workspace can be trusted.
pub fn trust_in(place: &Place) -> Trust {
    match place.root {
        Root::Made => Trust::Trusted,
        // A directory of the person may contain files that strangers wrote, so its content counts as untrusted.
        Root::Person { .. } => Trust::Untrusted,
    }
}

impl Places for Workspaces {
    fn open<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>> {
        async move {
            let opened = self.directory(&caller.task, &caller.place, &CancellationToken::new()).await?;
            let workspace = Workspace::open(&opened.directory, opened.access);
            let workspace =
                workspace.map_err(|error| Refusal::WorkspaceRefused { reason: error.to_string() })?;
            Ok(Arc::new(workspace.with_trust(trust_in(&caller.place))))
        }
        .boxed()
    }
}
