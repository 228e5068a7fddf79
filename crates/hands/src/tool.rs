//! What a tool is.

use crate::call::{Arguments, Invocation, Output};
use futures::future::{BoxFuture, FutureExt};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::Value;

/// Whether a call changes anything outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call only reads. Such calls of one answer run at the same time.
    Reads,
    /// The call may change something. Such calls run one after another, in the order of the answer.
    Changes,
}

/// What happens to a call that was running when the process died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// The call runs again, with the same key.
    Repeat,
    /// The call runs again with the evidence that [`Tool::prepare`] returned, and finds out by itself whether it has
    /// already happened.
    Verify,
    /// The call does not run again. The model is told that the outcome is unknown.
    Never,
}

/// The texts that describe a tool to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// The prompts of the current language describe the tool.
    FromPrompts,
    /// The tool has its own description, which is the same in every language.
    Own(String),
}

/// A tool that acts outside the society.
pub trait Tool: Send + Sync {
    /// Returns the name that models call.
    fn name(&self) -> &str;

    /// Returns the group to which an agent needs the right.
    fn group(&self) -> ToolGroup;

    /// Returns the JSON Schema of the arguments, without descriptions if [`Words::FromPrompts`] describes them.
    fn parameters(&self) -> Value;

    /// Returns where the description of the tool comes from.
    fn words(&self) -> Words {
        Words::FromPrompts
    }

    /// Returns whether a call with these arguments changes anything.
    fn effect(&self, arguments: &Arguments) -> Effect;

    /// Returns what happens to a call with these arguments after a crash.
    fn after_crash(&self, arguments: &Arguments) -> AfterCrash;

    /// Returns evidence by which a later run can tell whether this call has happened. The runtime records it with the
    /// start of the call, before [`Self::run`]. A refusal ends the call.
    fn prepare<'a>(&'a self, _invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        async { Ok(Value::Null) }.boxed()
    }

    /// Runs a call. A refusal is told to the model.
    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>>;
}
