//! The tool `bash`.

use super::{Commands, in_words};
use crate::arguments::{self, Argued};
use crate::call::{Arguments, File, Invocation, Output};
use crate::tool::{AfterCrash, Effect, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_sandbox::{Ended, How, Limits};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The name of the tool.
pub(super) const NAME: &str = "bash";

/// Runs a command in a fresh shell in the caller's workspace.
pub struct Bash {
    commands: Arc<Commands>,
}

impl Bash {
    /// Makes the tool.
    pub fn new(commands: Arc<Commands>) -> Self {
        Self { commands }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct BashArguments {
    command: String,
    timeout_ms: Option<u64>,
}

impl Argued for BashArguments {
    const NAMES: &'static [&'static str] = &["command", "timeoutMs"];
}

impl Tool for Bash {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Command
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<BashArguments>()
    }

    fn effect(&self, _: &Arguments) -> Effect {
        Effect::Changes
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        // A command may have done anything, so it never runs twice.
        AfterCrash::Never
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let BashArguments { command, timeout_ms } = arguments::read(&invocation.arguments)?;
            let limits = Limits::default();
            let timeout_ms = timeout_ms.unwrap_or(limits.timeout_ms).min(limits.timeout_ms);
            let limits = Limits { timeout_ms, ..limits };
            let ended = self.commands.run(command, limits.clone(), &invocation).await?;
            Ok(output(ended, &limits).await)
        }
        .boxed()
    }
}

/// Describes the end of a command to the model. A long output becomes a file as well.
async fn output(ended: Ended, limits: &Limits) -> Output {
    let Ended { how, duration, output, restored, .. } = ended;
    let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut result = json!({"exitCode": null});
    if let How::Exited(code) = how {
        result["exitCode"] = json!(code);
    }
    if let Some(words) = in_words(&how, limits) {
        result["ended"] = json!(words);
    }
    let omitted = output.omitted_bytes();
    let first = String::from_utf8_lossy(&output.first);
    let last = String::from_utf8_lossy(&output.last);
    result["output"] = match omitted {
        0 => json!(format!("{first}{last}")),
        _ => json!(format!("{first}\n[… {omitted} bytes left out …]\n{last}")),
    };
    result["durationMs"] = json!(duration_ms);
    if !restored.is_empty() {
        // The model should not believe that it has changed them.
        let names: Vec<String> = restored.iter().map(|path| path.display().to_string()).collect();
        result["restored"] = json!(names);
    }
    let mut made = Output::json(result);
    if omitted > 0
        && let Ok(bytes) = tokio::fs::read(&output.file).await
    {
        let (declared_mime, filename) = (Some("text/plain".to_owned()), Some("output.txt".to_owned()));
        made = made.with_file(File { bytes: bytes.into(), declared_mime, filename });
    }
    // The file is an artifact now, or the result has all of it.
    let _ = tokio::fs::remove_file(&output.file).await;
    made
}
