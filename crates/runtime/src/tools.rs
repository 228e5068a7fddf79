//! The tools of an agent (contract section 8): their schemas, their arguments, and what they do.
//!
//! Society tools change nothing but rows: each is run inside the transaction that records its result. Outside tools
//! leave traces elsewhere, and are two steps (see [`outside`]).

mod arguments;
mod artifact;
mod communication;
mod organization;
pub mod outside;
mod schema;

pub(crate) use artifact::{CONTENT, Incoming, PUT_ARTIFACT, incoming, store};
pub(crate) use schema::offered;

use crate::decide::result::Misfit;
use arguments::{Call, Parsed};
use polity_artifacts::Prepared;
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_society::refusal::Refusal;
use polity_society::rules::LastWord;
use polity_store::record::{Record, ToolResult};
use polity_store::{Conversation, Error, Tx};
use serde_json::{Value, json};
use std::collections::HashMap;

/// What a society tool works with.
pub(crate) struct Context<'a> {
    /// Who calls, in which task.
    pub(crate) caller: &'a Conversation,
    /// Whether what it tells the person is final even while it waits for others.
    pub(crate) last_word: LastWord,
    /// What becomes of an answer that does not fit the schema that was asked for.
    pub(crate) misfit: Misfit,
    /// The configuration in force.
    pub(crate) snapshot: &'a Snapshot,
    /// The bytes of this batch's `put_artifact` calls, already on disk, by call.
    pub(crate) prepared: &'a HashMap<String, Result<Prepared, Refusal>>,
}

/// What a tool did.
#[derive(Debug)]
pub(crate) struct Done {
    /// What the model is told.
    pub(crate) result: ToolResult,
    /// Whether it was refused, and with which code.
    pub(crate) refused: Option<&'static str>,
    /// A record beside the result, for tools that change the history itself.
    pub(crate) record: Option<Record>,
}

impl Done {
    fn json(value: Value) -> Self {
        Self { result: ToolResult::Json(value), refused: None, record: None }
    }

    /// The same, with some fields of another result.
    fn with(mut self, mut other: Value, fields: &[&str]) -> Self {
        if let ToolResult::Json(Value::Object(result)) = &mut self.result {
            let found = fields.iter().filter_map(|&name| Some((name, other.get_mut(name)?.take())));
            result.extend(found.map(|(name, value)| (name.to_owned(), value)));
        }
        self
    }

    /// The same, naming the arguments that were not understood, so that nothing is dropped in silence.
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
            // `null` has no room for a field.
            ToolResult::Json(other) => *other = json!({"result": other.take(), "ignored": names}),
            ToolResult::Artifact { ignored, .. } => ignored.extend(names),
        }
        self
    }

    /// The same, saying what was understood although it went by another word.
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

    /// A refusal, as the model is told it.
    pub(crate) fn refused(refusal: &Refusal, snapshot: &Snapshot) -> Self {
        let result = ToolResult::Json(refusal.to_json(&snapshot.prompts.texts));
        Self { result, refused: Some(refusal.code()), record: None }
    }
}

/// What became of a call: the tool said something, or the society said no.
type Ran = Result<Done, Refusal>;

/// Runs a society tool within a transaction.
pub(crate) async fn run(tx: &mut Tx, context: &Context<'_>, call: &ToolCall) -> Result<Done, Error> {
    let Parsed { call: parsed, ignored, understood } = Call::parse(call, Some(&context.snapshot.catalogue));
    let ran = match parsed {
        Ok(parsed) => dispatch(tx, context, &call.id, parsed).await?,
        Err(refusal) => Err(refusal),
    };
    let done = ran.unwrap_or_else(|refusal| Done::refused(&refusal, context.snapshot));
    Ok(done.noting(understood).naming(ignored))
}

async fn dispatch(tx: &mut Tx, context: &Context<'_>, id: &str, call: Call) -> Result<Ran, Error> {
    Ok(match call {
        Call::CreateRole(arguments) => organization::create_role(tx, context, arguments).await?,
        Call::FindRoleByName(arguments) => organization::find_role(tx, context, &arguments).await?,
        Call::SpawnAgent(arguments) => organization::spawn(tx, context, arguments).await?,
        Call::SpawnAgentWithTask(arguments) => {
            // The largest of them by far: without a box, every call of a tool would take its size.
            Box::pin(organization::spawn_with_task(tx, context, arguments)).await?
        }
        Call::TerminateAgent(arguments) => organization::terminate(tx, context, &arguments).await?,
        Call::GetOrgStructure(_) => organization::structure(tx, context).await?,
        Call::SendMessage(arguments) => communication::send_message(tx, context, arguments).await?,
        Call::ListContacts(_) => communication::list_contacts(tx, context).await?,
        Call::FindCapableAgents(arguments) => communication::find_capable(tx, context, arguments).await?,
        Call::PutArtifact(arguments) => artifact::put(tx, context, id, &arguments).await?,
        Call::GetArtifact(arguments) => artifact::get(tx, context, &arguments).await?,
        Call::ListArtifacts(_) => artifact::list(tx, context).await?,
        Call::CompressContext(arguments) => Ok(communication::compress(arguments)),
    })
}

/// Whether a society tool has that name.
pub(crate) fn is_society_tool(name: &str) -> bool {
    arguments::NAMES.contains(&name)
}

/// The refusal of a call to a tool that does not exist.
pub(crate) fn unknown(tool: &str) -> Refusal {
    Refusal::unknown_tool(tool, arguments::NAMES)
}

#[cfg(test)]
mod tests;
