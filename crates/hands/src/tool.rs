//! What a tool is.

use crate::call::{Arguments, Invocation, Output};
use crate::server_state::ServerState;
use futures::future::{BoxFuture, FutureExt};
pub use polity_society::policy::{Confinement, Effect, Reach};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_society::written;
use serde_json::Value;
use std::sync::Arc;

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

/// One thing that a call does. A call with an argument of [`Needs`] does several. The caller needs the right to each
/// group, and the policy is asked about each act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The group to which the caller needs the right.
    pub group: ToolGroup,
    /// What the act reaches.
    pub reach: Reach,
}

/// An argument that needs the right to a further group. An agent without this right is not offered the argument, and its
/// calls with the argument are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The name of the argument.
    pub argument: &'static str,
    /// The group.
    pub group: ToolGroup,
    /// What a call with this argument reaches besides.
    pub reach: Reach,
}

/// Returns everything that a call with these arguments does: first what the tool itself does.
pub fn acts(tool: &dyn Tool, arguments: &Arguments) -> Vec<Act> {
    // The names may be written in another style, as the tool reads them.
    let is_given = |needs: &&Needs| {
        let given = written::with_names(arguments.clone(), &[needs.argument]);
        given.get(needs.argument).is_some_and(|value| !value.is_null())
    };
    let further = tool.needs().iter().filter(is_given);
    let further = further.map(|needs| Act { group: needs.group.clone(), reach: needs.reach.clone() });
    [Act { group: tool.group(), reach: tool.reach(arguments) }].into_iter().chain(further).collect()
}

/// A tool that acts outside the society.
pub trait Tool: Send + Sync {
    /// Returns the name that models call.
    fn name(&self) -> &str;

    /// Returns the group to which an agent needs the right.
    fn group(&self) -> ToolGroup;

    /// Returns the arguments that need the right to a further group. They are optional.
    fn needs(&self) -> &[Needs] {
        &[]
    }

    /// Returns the JSON Schema of the arguments, without descriptions if [`Words::FromPrompts`] describes them.
    fn parameters(&self) -> Value;

    /// Returns where the description of the tool comes from.
    fn words(&self) -> Words {
        Words::FromPrompts
    }

    /// Returns what a call with these arguments reaches. The policy decides by it.
    fn reach(&self, arguments: &Arguments) -> Reach;

    /// Returns whether a call with these arguments changes anything.
    fn effect(&self, arguments: &Arguments) -> Effect {
        self.reach(arguments).effect()
    }

    /// Returns what happens to a call with these arguments after a crash. Unless a tool knows better, only calls that read
    /// run again.
    fn after_crash(&self, arguments: &Arguments) -> AfterCrash {
        match self.effect(arguments) {
            Effect::Reads => AfterCrash::Repeat,
            Effect::Changes => AfterCrash::Never,
        }
    }

    /// Returns evidence by which a later run can tell whether this call has happened. The runtime records it with the
    /// start of the call, before [`Self::run`]. A refusal ends the call.
    fn prepare<'a>(&'a self, _invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        async { Ok(Value::Null) }.boxed()
    }

    /// Returns what a call would change, such as a diff, for a person who must allow it. Changes nothing.
    fn preview<'a>(&'a self, _invocation: &'a Invocation) -> BoxFuture<'a, Option<String>> {
        async { None }.boxed()
    }

    /// Runs a call. A refusal is told to the model.
    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>>;
}

/// A set of tools that may change while agents work, such as those of an MCP server.
pub trait Toolbox: Send + Sync {
    /// Returns the tools that exist now.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Waits until the tools of servers that are being started are known, but only for a short time.
    fn settled(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    /// Returns how the MCP servers that have these tools are doing, by name.
    fn servers(&self) -> Vec<ServerState> {
        Vec::new()
    }

    /// Ends everything that these tools keep running, and waits for the end.
    fn shut_down(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}
