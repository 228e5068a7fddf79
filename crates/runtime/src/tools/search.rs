//! The tool `search_tools`, which finds tools of MCP servers. An agent gets `search_tools` if the definitions of all
//! MCP tools would take too much of the context window.
//!
//! From the next model call on, requests contain the tools that a search has found. The function
//! `polity_decide::found::found_tools` reads the names of these tools from the history.

use super::schema::{Asker, is_of_server};
use futures::future::{BoxFuture, FutureExt};
use polity_decide::found::{FOUND, SEARCH_TOOLS};
use polity_hands::arguments::{self, Argued};
use polity_hands::call::{Arguments, Caller, Invocation, Output};
use polity_hands::deferred::{self, Definition};
use polity_hands::table::Hands;
use polity_hands::tool::{AfterCrash, Reach, Tool, Words};
use polity_registry::Registry;
use polity_society::refusal::Refusal;
use polity_society::rules::Rights;
use polity_society::tool_group::ToolGroup;
use polity_store::{Error, Store, agents};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// The maximum number of tools that one search returns. The number is small, because the definition of each returned
/// tool takes tokens in every later request.
const MOST_FOUND: usize = 8;

/// The tool `search_tools`.
pub(crate) struct SearchTools {
    hands: Hands,
    store: Store,
    registry: Arc<Registry>,
}

impl SearchTools {
    /// Makes the tool that searches the tools in `hands`.
    pub(crate) fn new(hands: Hands, store: Store, registry: Arc<Registry>) -> Self {
        Self { hands, store, registry }
    }

    /// Returns the rights of the caller at this moment. They limit the search: it finds only tools that its caller may
    /// use.
    async fn rights(&self, caller: &Caller) -> Result<Rights, Error> {
        let mut reader = self.store.reader().await?;
        let chain = agents::chain(&mut reader, &caller.agent).await?;
        Ok(self.registry.current().settings.rights(&chain))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
}

impl Argued for SearchArguments {
    const NAMES: &'static [&'static str] = &["query"];
}

impl Tool for SearchTools {
    fn name(&self) -> &str {
        SEARCH_TOOLS
    }

    fn group(&self) -> ToolGroup {
        // Every agent has this group. `search_tools` needs no right of its own, because a search finds only tools that
        // the caller may use.
        ToolGroup::Messages
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<SearchArguments>()
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::Society
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        AfterCrash::Repeat
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let SearchArguments { query } = arguments::read(&invocation.arguments)?;
            let rights = self.rights(&invocation.caller).await.map_err(|error| {
                tracing::error!(%error, "the rights of an agent cannot be read");
                Refusal::OutcomeUnknown { tool: SEARCH_TOOLS.to_owned() }
            })?;
            let snapshot = self.registry.current();
            let role = invocation.caller.role.as_str();
            let asker = Asker { rights: &rights, role, snapshot: &snapshot, hands: &self.hands };
            let mut tools = self.hands.tools();
            tools.retain(|tool| is_of_server(tool.as_ref()) && asker.may_call(tool.as_ref()));
            let described: Vec<(&str, String)> =
                tools.iter().map(|tool| (tool.name(), description(tool.as_ref()))).collect();
            // A search does not use the token counts of definitions, so every count is 0.
            let definitions: Vec<Definition<'_>> = described
                .iter()
                .map(|(name, description)| Definition { name, description, tokens: 0 })
                .collect();
            let found = deferred::search(&query, &definitions, MOST_FOUND);
            Ok(Output::json(json!({ FOUND: found })))
        }
        .boxed()
    }
}

/// Returns the description that a server gives of its tool.
fn description(tool: &dyn Tool) -> String {
    match tool.words() {
        Words::Own(description) => description,
        Words::FromPrompts => String::new(),
    }
}
