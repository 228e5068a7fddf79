//! The interface that each tool implements.

use crate::call::{Arguments, Invocation, Output, Source};
use crate::server_state::ServerState;
use futures::future::{BoxFuture, FutureExt};
pub use polity_society::policy::{Confinement, Effect, Reach};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_society::written;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the runtime does with a call that was running when polity crashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCrash {
    /// Runs the call again, with the same idempotency key.
    Repeat,
    /// Runs the call again, and gives the tool the value that [`Tool::prepare`] returned before the first run. From
    /// this value, the tool finds out whether the call has already happened.
    Verify,
    /// Does not run the call again. The model is told that the outcome is unknown.
    Never,
}

/// Where the description of a tool comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Words {
    /// The files in `prompts/` describe the tool, in the current language.
    FromPrompts,
    /// The tool brings its own description, which is the same in every language.
    Own(String),
}

/// One action of a call. Some arguments need a further group ([`Needs`]), and each of them adds an act to the call. For
/// example, a web request has a second act if it saves the answer in a file. For each act, the caller needs the right
/// to the group of the act, and the policy decides about the act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The group to which the caller needs the right.
    pub group: ToolGroup,
    /// What the act reaches.
    pub reach: Reach,
}

/// An argument that needs the right to a further group. If an agent lacks this right, the agent does not see the
/// argument, and its calls with the argument are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The name of the argument, as in the schema.
    pub argument: &'static str,
    /// The tool group that the agent needs.
    pub group: ToolGroup,
    /// If a call has this argument, the call reaches this in addition to [`Tool::reach`].
    pub reach: Reach,
}

/// Returns all acts of a call with these arguments. The act of the tool itself comes first.
pub fn acts(tool: &dyn Tool, arguments: &Arguments) -> Vec<Act> {
    // The tool also accepts the name of an argument in another style, such as `oldStr` for `old_str`. So the other
    // style counts here, too.
    let is_given = |needs: &&Needs| {
        let given = written::with_names(arguments.clone(), &[needs.argument]);
        given.get(needs.argument).is_some_and(|value| !value.is_null())
    };
    let further = tool.needs().iter().filter(is_given);
    let further = further.map(|needs| Act { group: needs.group.clone(), reach: needs.reach.clone() });
    [Act { group: tool.group(), reach: tool.reach(arguments) }].into_iter().chain(further).collect()
}

/// A description of a call. The person sees it and then decides whether the call may run. The default shows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// A text such as a diff. Empty if the call would change nothing.
    pub text: String,
    /// Names what the text was made of, such as the hash of files that other agents may change before the person
    /// answers. The runtime keeps it with the question, and passes it to [`Tool::run`] after a yes
    /// ([`crate::call::Consent::Given`]). A tool with such a state must not run on another one. `Null` if the tool needs
    /// no such check.
    pub state: Value,
}

impl Shown {
    /// Makes a value without a state.
    pub fn text(text: String) -> Self {
        Self { text, state: Value::Null }
    }
}

/// A tool that acts outside the society.
pub trait Tool: Send + Sync {
    /// Returns the name by which models call the tool.
    fn name(&self) -> &str;

    /// Returns the tool group that an agent needs.
    fn group(&self) -> ToolGroup;

    /// Returns the arguments for which an agent needs a further tool group. These arguments are optional.
    fn needs(&self) -> &[Needs] {
        &[]
    }

    /// Returns the JSON Schema of the arguments. If the prompts describe the arguments ([`Words::FromPrompts`]), the
    /// schema contains no descriptions.
    fn parameters(&self) -> Value;

    /// Returns where the description of the tool comes from.
    fn words(&self) -> Words {
        Words::FromPrompts
    }

    /// Returns what a call with these arguments reaches, for example a host. The policy uses this to decide about
    /// the call.
    fn reach(&self, arguments: &Arguments) -> Reach;

    /// Returns the effect of [`Self::reach`] if it is the same for all arguments. If rules deny this effect, no request
    /// offers the tool.
    fn always(&self) -> Option<Effect> {
        None
    }

    /// Returns whether a call with these arguments only reads, or also changes something.
    fn effect(&self, arguments: &Arguments) -> Effect {
        self.reach(arguments).effect()
    }

    /// Returns what happens to a call with these arguments after a crash. By default, only calls that read are
    /// repeated.
    fn after_crash(&self, arguments: &Arguments) -> AfterCrash {
        match self.effect(arguments) {
            Effect::Reads => AfterCrash::Repeat,
            Effect::Changes => AfterCrash::Never,
        }
    }

    /// Returns a value such as the hash of a file. After a crash, the next run of the call uses the value to tell
    /// whether the call has already happened. The runtime commits the value to the database together with the start of
    /// the call, and then calls [`Self::run`]. If this method returns a refusal, the call does not run.
    fn prepare<'a>(&'a self, _invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        async { Ok(Value::Null) }.boxed()
    }

    /// Returns the sources outside the society from which a call can bring content into the files of the workspace. The
    /// runtime notes them when the call starts, because a call that is interrupted has no result that names them.
    fn brings<'a>(&'a self, _invocation: &'a Invocation) -> BoxFuture<'a, BTreeSet<Source>> {
        async { BTreeSet::new() }.boxed()
    }

    /// Returns what the person who must approve the call sees of it, such as a diff. Changes nothing.
    fn preview<'a>(&'a self, _invocation: &'a Invocation) -> BoxFuture<'a, Option<Shown>> {
        async { None }.boxed()
    }

    /// Runs a call. If this method returns a refusal, the model reads it.
    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>>;
}

/// A set of tools that may change while agents work, such as those of an MCP server.
pub trait Toolbox: Send + Sync {
    /// Returns the tools that exist now, for example those of the servers that are connected.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// MCP servers may still be starting, and their tools are then not known yet. Waits briefly for these servers.
    fn settled(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }

    /// Returns the state of the MCP servers that provide these tools.
    fn servers(&self) -> Vec<ServerState> {
        Vec::new()
    }

    /// Ends all background work of these tools, and waits until it has ended.
    fn shut_down(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}
