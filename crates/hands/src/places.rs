//! Opens the workspaces of agents for the tools that work on files.

use crate::call::{Caller, Root};
use crate::workspace::{Places, Trust, Workspace};
use crate::workspaces::Workspaces;
use futures::future::{BoxFuture, FutureExt};
use polity_society::refusal::Refusal;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

impl Places for Workspaces {
    fn open<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>> {
        async move {
            let opened = self.directory(&caller.task, &caller.place, &CancellationToken::new()).await?;
            let workspace = Workspace::open(&opened.directory, opened.access);
            let workspace =
                workspace.map_err(|error| Refusal::WorkspaceRefused { reason: error.to_string() })?;
            // A directory of the person may contain what strangers wrote.
            let trust = match caller.place.root {
                Root::Made => Trust::Trusted,
                Root::Person { .. } => Trust::Untrusted,
            };
            Ok(Arc::new(workspace.with_trust(trust)))
        }
        .boxed()
    }
}
