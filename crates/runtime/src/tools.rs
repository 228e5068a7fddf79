//! The tools of an agent (docs/contract.md, section 8): their schemas, their arguments, and what they do.
//!
//! A society tool changes only rows, and runs inside the transaction that records its result. An outside tool has
//! effects elsewhere, so it runs in two steps (see [`crate::driver`]).

mod artifact;
mod cache;
mod communication;
mod copying;
mod organization;
mod schema;
mod search;

pub(crate) use artifact::{CONTENT, Incoming, PUT_ARTIFACT, incoming, make, show, store};
pub(crate) use cache::ToolCache;
pub(crate) use copying::{Copying, copied_from, made_of_file};
pub(crate) use schema::{Asker, Offering, offered, offered_outside};
pub(crate) use search::SearchTools;

use polity_artifacts::Prepared;
use polity_decide::arguments::{self, Call, Parsed};
use polity_decide::result::Misfit;
use polity_hands::table::Hands;
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_society::refusal::Refusal;
use polity_society::rules::{LastWord, Rights, Verdict};
use polity_society::tool_group::ToolGroup;
use polity_store::record::{Record, ToolResult};
use polity_store::{Conversation, Error, Stopped, Tx, agents, keep};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The context in which a society tool runs.
pub(crate) struct Context<'a> {
    /// The agent that calls the tool, and its task.
    pub(crate) caller: &'a Conversation,
    /// Whether a text to the person is final even if the caller still waits for other agents.
    pub(crate) last_word: LastWord,
    /// What happens to an answer that does not fit the requested schema.
    pub(crate) misfit: Misfit,
    /// The configuration in force.
    pub(crate) snapshot: &'a Snapshot,
    /// The refusal of a call that hires an agent with its own worktree; `None` if a worktree can be made.
    pub(crate) no_worktree: Option<Refusal>,
    /// The bytes of the `put_artifact` calls in the current batch, by call id. The bytes are on disk already.
    pub(crate) prepared: &'a HashMap<String, Result<Prepared, Refusal>>,
}

/// The argument of the hiring tools that demands a separate worktree for the new agent.
pub(crate) const WORKSPACE: &str = "workspace";

/// The result of a tool.
#[derive(Debug)]
pub(crate) struct Done {
    /// What the model is told.
    pub(crate) result: ToolResult,
    /// The code of the refusal, if the call was refused.
    pub(crate) refused: Option<&'static str>,
    /// An additional record, for tools that change the history itself.
    pub(crate) record: Option<Record>,
}

impl Done {
    fn json(value: Value) -> Self {
        Self { result: ToolResult::Json(value), refused: None, record: None }
    }

    /// Copies these fields from another result into this result.
    fn with(mut self, mut other: Value, fields: &[&str]) -> Self {
        if let ToolResult::Json(Value::Object(result)) = &mut self.result {
            let found = fields.iter().filter_map(|&name| Some((name, other.get_mut(name)?.take())));
            result.extend(found.map(|(name, value)| (name.to_owned(), value)));
        }
        self
    }

    /// Adds the names of arguments that were not understood, so that the model learns that these arguments had no
    /// effect.
    fn naming(mut self, names: Vec<String>) -> Self {
        if names.is_empty() {
            return self;
        }
        match &mut self.result {
            ToolResult::Json(Value::Object(result)) => {
                let before = result.remove("ignored").and_then(|before| serde_json::from_value(before).ok());
                let all = before.into_iter().flat_map(|before: Vec<String>| before).chain(names);
                result.insert("ignored".to_owned(), all.collect());
            }
            // A value that is not an object, such as `null`, cannot have a further field. So this code puts the value
            // into an object.
            ToolResult::Json(other) => *other = json!({"result": other.take(), "ignored": names}),
            ToolResult::Artifact { ignored, .. } => ignored.extend(names),
            // A tool that acts outside reports unknown arguments itself.
            ToolResult::Outside { .. } => {}
        }
        self
    }

    /// Adds notes about arguments that the model wrote in another way than the schema demands. Polity understood these
    /// arguments all the same.
    pub(crate) fn noting(mut self, words: Vec<String>) -> Self {
        if let ToolResult::Json(Value::Object(result)) = &mut self.result
            && !words.is_empty()
        {
            let before = result.remove("understood").and_then(|before| serde_json::from_value(before).ok());
            let all = words.into_iter().chain(before.into_iter().flat_map(|before: Vec<String>| before));
            result.insert("understood".to_owned(), all.collect());
        }
        self
    }

    /// Builds the result of a refused call.
    pub(crate) fn refused(refusal: &Refusal, snapshot: &Snapshot) -> Self {
        let result = ToolResult::Json(refusal.to_json(&snapshot.prompts.texts));
        Self { result, refused: Some(refusal.code()), record: None }
    }
}

/// The result of a tool, the refusal of the society, or an error of the database.
type Ran = Result<Done, Stopped>;

/// Runs a society tool within a transaction. A refusal becomes the result of the tool.
pub(crate) async fn run(tx: &mut Tx, context: &Context<'_>, call: &ToolCall) -> Result<Done, Error> {
    let Parsed { call: parsed, ignored, understood } = Call::parse(call, Some(&context.snapshot.catalogue));
    let rights = rights(tx, context).await?;
    let group = arguments::group_of(&call.name);
    let ran = match (not_permitted(&rights, context.snapshot, &call.name, group.as_ref()), parsed) {
        (Some(refusal), _) | (None, Err(refusal)) => Err(refusal),
        (None, Ok(parsed)) => keep(dispatch(tx, context, &call.id, parsed).await)?,
    };
    let done = ran.unwrap_or_else(|refusal| Done::refused(&refusal, context.snapshot));
    Ok(done.noting(understood).naming(ignored))
}

/// If the caller has no right to the group of a tool, returns the refusal of a call to this tool.
pub(crate) fn not_permitted(
    rights: &Rights,
    snapshot: &Snapshot,
    tool: &str,
    group: Option<&ToolGroup>,
) -> Option<Refusal> {
    let group = group.filter(|group| rights.decide(group) == Verdict::Deny)?;
    Some(Refusal::ToolNotPermitted {
        tool: tool.to_owned(),
        groups: vec![group.clone()],
        allowed: rights.among(snapshot.settings.groups()),
    })
}

/// Returns the rights of the caller at this moment.
async fn rights(tx: &mut Tx, context: &Context<'_>) -> Result<Rights, Error> {
    let chain = agents::chain(&mut tx.connection, &context.caller.agent).await?;
    Ok(context.snapshot.settings.rights(&chain))
}

async fn dispatch(tx: &mut Tx, context: &Context<'_>, id: &str, call: Call) -> Ran {
    match call {
        Call::CreateRole(arguments) => organization::create_role(tx, context, arguments).await,
        Call::FindRoleByName(arguments) => organization::find_role(tx, context, &arguments).await,
        Call::SpawnAgent(arguments) => organization::spawn(tx, context, arguments).await,
        Call::SpawnAgentWithTask(arguments) => {
            // The future of `spawn_with_task` is by far the largest future in this function. Without a box, the future
            // of this function would be as large for every call.
            Box::pin(organization::spawn_with_task(tx, context, arguments)).await
        }
        Call::TerminateAgent(arguments) => organization::terminate(tx, context, &arguments).await,
        Call::GetOrgStructure(_) => organization::structure(tx, context).await,
        Call::SendMessage(arguments) => communication::send_message(tx, context, arguments).await,
        Call::ListContacts(_) => communication::list_contacts(tx, context).await,
        Call::FindCapableAgents(arguments) => communication::find_capable(tx, context, arguments).await,
        Call::PutArtifact(arguments) => artifact::put(tx, context, id, &arguments).await,
        Call::GetArtifact(arguments) => artifact::get(tx, context, &arguments).await,
        Call::ListArtifacts(_) => artifact::list(tx, context).await,
        Call::CompressContext(arguments) => Ok(communication::compress(arguments)),
    }
}

/// Returns whether there is a society tool with this name.
pub(crate) fn is_society_tool(name: &str) -> bool {
    arguments::NAMES.contains(&name)
}

/// Returns the refusal of a call to a tool that does not exist.
pub(crate) fn unknown(tool: &str, hands: &Hands) -> Refusal {
    let outside = hands.tools();
    let names: Vec<&str> =
        arguments::NAMES.iter().copied().chain(outside.iter().map(|tool| tool.name())).collect();
    Refusal::unknown_tool(tool, &names)
}

#[cfg(test)]
mod tests;
