//! The tool `bash`.

use super::commands::{Commands, Finished, Order};
use super::names::{BASH, failed};
use super::report;
use crate::arguments::{self, Argued};
use crate::call::{Arguments, Invocation, Output, Source};
use crate::tool::{Effect, Reach, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_sandbox::Limits;
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tool that runs a command in a new shell in the caller's workspace.
pub(super) struct Bash {
    commands: Arc<Commands>,
}

impl Bash {
    pub(super) fn new(commands: Arc<Commands>) -> Self {
        Self { commands }
    }
}

/// The argument that holds the text of the command.
const COMMAND: &str = "command";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BashArguments {
    command: String,
    timeout_ms: Option<u64>,
    background: Option<bool>,
}

impl Argued for BashArguments {
    const NAMES: &'static [&'static str] = &[COMMAND, "timeoutMs", "background"];
}

impl Tool for Bash {
    fn name(&self) -> &str {
        BASH
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Command
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<BashArguments>()
    }

    fn reach(&self, arguments: &Arguments) -> Reach {
        let command = arguments::text_of::<BashArguments>(arguments, COMMAND).unwrap_or_default();
        Reach::Command { command, confinement: self.commands.confinement() }
    }

    fn always(&self) -> Option<Effect> {
        Some(Effect::Changes)
    }

    /// Refuses a call whose arguments cannot be read. So nobody is asked about a call that cannot run.
    fn prepare<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        async move { arguments::read::<BashArguments>(&invocation.arguments).map(|_| Value::Null) }.boxed()
    }

    fn brings<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, BTreeSet<Source>> {
        self.commands.sources(&invocation.caller.place).boxed()
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let BashArguments { command, timeout_ms, background } = arguments::read(&invocation.arguments)?;
            let settings = self.commands.settings();
            let most = settings.limits.timeout_ms;
            let timeout_ms = timeout_ms.unwrap_or(most).min(most);
            let limits = Limits { timeout_ms, ..settings.limits.clone() };
            let sources = self.commands.sources(&invocation.caller.place).await;
            if background.unwrap_or_default() {
                let started =
                    self.commands.start_background(command, limits, sources.clone(), &invocation).await;
                let id = started?;
                let output = Output::json(json!({"id": id, "running": true})).going_on(id);
                // This result contains no output of the command. But from now on, the command may write what it reads
                // into the workspace, so the result names the sources all the same.
                return Ok(output.from_sources(sources));
            }
            let Invocation { caller, idempotency_key, cancel, progress, .. } = invocation;
            let output = self.commands.output_file(&caller.task, &idempotency_key);
            let cancel = cancel.child_token();
            // If the runtime drops this future, nobody will read the result. The guard is then dropped too, and ends
            // the command.
            let _ends = cancel.clone().drop_guard();
            let order = Order { id: None, command, limits, caller: &caller, output, cancel };
            let report = move |bytes: &[u8]| progress.report(String::from_utf8_lossy(bytes).trim_end());
            let finished = self.commands.start(order, report).await?.finished().await;
            let Finished { end, ended } = finished.map_err(|error| failed(BASH, error.to_string()))?;
            Ok(report::of_end(&end, ended, timeout_ms, &settings).await.from_sources(sources))
        }
        .boxed()
    }
}
