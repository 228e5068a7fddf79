//! The tool `bash_output`.

use super::commands::Commands;
use super::names::BASH_OUTPUT;
use super::report;
use crate::arguments::{self, Argued};
use crate::call::{Arguments, Invocation, Output};
use crate::tool::{AfterCrash, Effect, Reach, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_society::id::CommandId;
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// Longest time that one call may wait for the end of a command.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 60);

/// The tool that shows what a background command has printed since the agent's previous call of this tool.
pub(super) struct BashOutput {
    commands: Arc<Commands>,
}

impl BashOutput {
    pub(super) fn new(commands: Arc<Commands>) -> Self {
        Self { commands }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BashOutputArguments {
    id: String,
    wait: Option<u64>,
}

impl Argued for BashOutputArguments {
    const NAMES: &'static [&'static str] = &["id", "wait"];
}

impl Tool for BashOutput {
    fn name(&self) -> &str {
        BASH_OUTPUT
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Command
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<BashOutputArguments>()
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::ReadsWorkspace
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Reads)
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        AfterCrash::Repeat
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let BashOutputArguments { id, wait } = arguments::read(&invocation.arguments)?;
            let patience = Duration::from_millis(wait.unwrap_or_default()).min(LONGEST_WAIT);
            let Invocation { caller, cancel, .. } = invocation;
            let id = CommandId::new(id.trim());
            let found = self.commands.look(&caller, &id, patience, &cancel).await?;
            let (output, seen) = report::of_look(&id, found, &self.commands.settings()).await;
            self.commands.saw(&id, seen);
            Ok(output)
        }
        .boxed()
    }
}
