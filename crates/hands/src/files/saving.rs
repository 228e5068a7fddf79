//! Writes whole files for other tools, such as `http_request`, by the rules of the command `create`.

use crate::call::Caller;
use crate::files::bounds::Bounds;
use crate::files::desk::{Desk, blocking};
use crate::places::Places;
use crate::views::{Change, Views};
use bytes::Bytes;
use polity_files::{ContentHash, WorkspacePath};
use polity_society::refusal::Refusal;
use std::sync::Arc;

/// Writes whole files in the workspaces of callers.
#[derive(Clone)]
pub struct Files {
    places: Arc<dyn Places>,
    views: Arc<Views>,
    bounds: Bounds,
}

/// A path in the workspace, with the tool and the argument that it comes from, for refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathArgument<'a> {
    /// The name of the tool, for refusals.
    pub tool: &'static str,
    /// The name of the argument that holds the path.
    pub argument: &'static str,
    /// The path, as the model wrote it.
    pub path: &'a str,
}

impl Files {
    /// `views` knows which content each agent last saw of each file.
    pub fn new(places: Arc<dyn Places>, views: Arc<Views>, bounds: Bounds) -> Self {
        Self { places, views, bounds }
    }

    /// Checks that the caller may now write a file at the path. Changes nothing.
    pub async fn check(&self, caller: &Caller, at: PathArgument<'_>) -> Result<(), Refusal> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await?;
        let written = at.path.to_owned();
        blocking(at.tool, move || checked(&desk, &views, &written).map(|_| ())).await
    }

    /// Writes a file at the path, and notes that the caller knows its content. Returns the path in the workspace.
    pub async fn write(
        &self,
        caller: &Caller,
        at: PathArgument<'_>,
        content: Bytes,
    ) -> Result<String, Refusal> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await?;
        let written = at.path.to_owned();
        let write = move || {
            let (path, before) = checked(&desk, &views, &written)?;
            desk.write(&views, &path, before, &content)?;
            Ok(path.on_one_line())
        };
        blocking(at.tool, write).await
    }

    /// Opens the workspace of the caller for one call of a tool.
    pub(super) async fn desk(
        &self,
        caller: &Caller,
        tool: &'static str,
        argument: &'static str,
    ) -> Result<(Desk, Arc<Views>), Refusal> {
        let workspace = self.places.open(caller).await?;
        let desk = Desk { tool, argument, caller: caller.clone(), workspace, bounds: self.bounds };
        Ok((desk, Arc::clone(&self.views)))
    }
}

/// Checks that the caller may replace the file. Returns the path and the hash of the current content, if the file
/// exists.
fn checked(
    desk: &Desk,
    views: &Views,
    written: &str,
) -> Result<(WorkspacePath, Option<ContentHash>), Refusal> {
    let path = desk.path(written)?;
    desk.workspace.check_write(&path).map_err(|error| desk.refusal(error))?;
    let now = desk.read_if_there(&path).map_err(|error| desk.refusal(error))?;
    let before = now.as_deref().map(ContentHash::of);
    desk.check_known(views, &path, Change::Create, before)?;
    Ok((path, before))
}
