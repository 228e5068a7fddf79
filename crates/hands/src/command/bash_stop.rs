//! The tool `bash_stop`.

use super::commands::Commands;
use super::names::BASH_STOP;
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

/// The tool that ends a background command.
pub(super) struct BashStop {
    commands: Arc<Commands>,
}

impl BashStop {
    pub(super) fn new(commands: Arc<Commands>) -> Self {
        Self { commands }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BashStopArguments {
    id: String,
}

impl Argued for BashStopArguments {
    const NAMES: &'static [&'static str] = &["id"];
}

impl Tool for BashStop {
    fn name(&self) -> &str {
        BASH_STOP
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Command
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<BashStopArguments>()
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::ChangesWorkspace
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Changes)
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        // Repeating is harmless: if the command has already ended, the call only describes the end.
        AfterCrash::Repeat
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let BashStopArguments { id } = arguments::read(&invocation.arguments)?;
            let Invocation { caller, cancel, .. } = invocation;
            let id = CommandId::new(id.trim());
            self.commands.stop_one(&caller, &id).await;
            let found = self.commands.look(&caller, &id, Duration::ZERO, &cancel).await?;
            Ok(report::of_look(&id, found, &self.commands.settings()).await.0)
        }
        .boxed()
    }
}
