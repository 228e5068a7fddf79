//! Writes whole files for tools whose content comes from elsewhere, by the rules of `create`.

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

/// The argument of a tool that holds a path in the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathArgument<'a> {
    /// The name of the tool.
    pub tool: &'static str,
    /// The name of the argument.
    pub argument: &'static str,
    /// The path, as the model wrote it.
    pub path: &'a str,
}

impl Files {
    /// Works in these workspaces. `views` knows what each agent has seen of each file.
    pub fn new(places: Arc<dyn Places>, views: Arc<Views>, bounds: Bounds) -> Self {
        Self { places, views, bounds }
    }

    /// Checks that the caller may put a file at the path as it is now. Changes nothing.
    pub async fn check(&self, caller: &Caller, at: PathArgument<'_>) -> Result<(), Refusal> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await?;
        let written = at.path.to_owned();
        blocking(at.tool, move || checked(&desk, &views, &written).map(|_| ())).await
    }

    /// Puts a file at the path, which then belongs to what the caller knows. Returns the path in the workspace.
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

    /// Returns the caller in its workspace, and what agents have seen there.
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

/// Returns the path, and the content that the file has now, if the caller may replace it.
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
