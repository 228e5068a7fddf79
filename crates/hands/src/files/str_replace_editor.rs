//! The tool `str_replace_editor`: views, creates and changes files. Many open models were trained with this tool.

mod arguments;
mod change;
mod view;

pub use change::Preview;

use crate::arguments::schema_of;
use crate::call::{Arguments, Attempt, Caller, Invocation, Output};
use crate::files::desk::{PATH, blocking};
use crate::files::saving::Files;
use crate::files::str_replace_editor::arguments::{Arguments as Given, Wanted};
use crate::tool::{AfterCrash, Effect, Reach, Shown, Tool};
use futures::future::{BoxFuture, FutureExt};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::Value;

const NAME: &str = "str_replace_editor";

/// The tool that views, creates and changes files of the caller's workspace.
pub struct StrReplaceEditor {
    files: Files,
}

impl StrReplaceEditor {
    /// `files` opens the workspaces of callers.
    pub fn new(files: Files) -> Self {
        Self { files }
    }

    /// Returns what a call would change, for a person to review. Returns `None` for the command `view`. Changes
    /// nothing.
    pub async fn diff(&self, caller: &Caller, arguments: &Arguments) -> Result<Option<Preview>, Refusal> {
        let Wanted::Change { path, change } = Wanted::read(arguments)? else { return Ok(None) };
        let (desk, views) = self.files.desk(caller, NAME, PATH).await?;
        blocking(NAME, move || change::preview(&desk, &views, &path, &change).map(Some)).await
    }

    async fn evidence(&self, invocation: &Invocation) -> Result<Value, Refusal> {
        let Wanted::Change { path, change } = Wanted::read(&invocation.arguments)? else {
            return Ok(Value::Null);
        };
        let (desk, views) = self.files.desk(&invocation.caller, NAME, PATH).await?;
        blocking(NAME, move || change::evidence(&desk, &views, &path, &change)).await
    }

    async fn output(&self, invocation: Invocation) -> Result<Output, Refusal> {
        let wanted = Wanted::read(&invocation.arguments)?;
        let (desk, views) = self.files.desk(&invocation.caller, NAME, PATH).await?;
        let Invocation { evidence, attempt, .. } = invocation;
        blocking(NAME, move || match wanted {
            Wanted::View { path, range } => view::view(&desk, &views, &path, range),
            Wanted::Change { path, change } => {
                if attempt == Attempt::AfterCrash {
                    desk.sweep(&path);
                }
                change::carry_out(&desk, &views, &path, &change, &evidence, attempt)
            }
        })
        .await
    }
}

impl Tool for StrReplaceEditor {
    fn name(&self) -> &str {
        NAME
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Files
    }

    fn parameters(&self) -> Value {
        schema_of::<Given>()
    }

    fn reach(&self, arguments: &Arguments) -> Reach {
        match Wanted::read(arguments) {
            Ok(Wanted::View { .. }) => Reach::ReadsWorkspace,
            Ok(Wanted::Change { .. }) | Err(_) => Reach::ChangesWorkspace,
        }
    }

    fn after_crash(&self, arguments: &Arguments) -> AfterCrash {
        match self.effect(arguments) {
            Effect::Reads => AfterCrash::Repeat,
            Effect::Changes => AfterCrash::Verify,
        }
    }

    fn prepare<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        self.evidence(invocation).boxed()
    }

    fn preview<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Option<Shown>> {
        async move {
            let preview = self.diff(&invocation.caller, &invocation.arguments).await;
            // A call that cannot be carried out has no preview. It is refused when it runs, even if the person
            // allows it. The diff needs no state: if somebody else changes the file before the answer, the call is
            // refused, because the agent has not viewed that change.
            preview.ok().flatten().map(|preview| Shown::text(preview.diff))
        }
        .boxed()
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        self.output(invocation).boxed()
    }
}
