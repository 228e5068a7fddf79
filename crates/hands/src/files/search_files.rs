//! The tool `search_files`: finds lines that match a regular expression, or files that match a glob.

mod arguments;
mod ignored;
mod search;
mod walk;

use crate::arguments::schema_of;
use crate::call::{Arguments, Invocation, Output};
use crate::files::bounds::Bounds;
use crate::files::desk::{Desk, PATH, blocking};
use crate::files::search_files::arguments::{Arguments as Given, Wanted};
use crate::places::Places;
use crate::tool::{Effect, Reach, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::Value;
use std::sync::Arc;

const NAME: &str = "search_files";

/// The tool that finds lines that match a regular expression, or files that match a glob.
pub struct SearchFiles {
    places: Arc<dyn Places>,
    bounds: Bounds,
}

impl SearchFiles {
    /// `bounds` limits the size of the result and of the searched files.
    pub fn new(places: Arc<dyn Places>, bounds: Bounds) -> Self {
        Self { places, bounds }
    }

    async fn output(&self, invocation: Invocation) -> Result<Output, Refusal> {
        let wanted = Wanted::read(&invocation.arguments)?;
        let Invocation { caller, cancel, .. } = invocation;
        let workspace = self.places.open(&caller).await?;
        let desk = Desk { tool: NAME, argument: PATH, caller, workspace, bounds: self.bounds };
        blocking(NAME, move || search::search(&desk, &wanted, &cancel)).await
    }
}

impl Tool for SearchFiles {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Files
    }

    fn parameters(&self) -> Value {
        schema_of::<Given>()
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::ReadsWorkspace
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Reads)
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        self.output(invocation).boxed()
    }
}
