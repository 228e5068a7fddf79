//! Records from which outside sources (such as the web or an MCP server) each agent has got content.

use polity_llm::{Arguments, ToolCall};
use polity_society::policy::{Reach, Source};
use polity_store::record::ToolResult;
use polity_store::seen::{self, Holder, Step};
use polity_store::{Conversation, Error, Tx};

/// The argument that makes several tools save what they get in a file of the workspace.
const SAVE_TO: &str = "saveTo";

/// The code of a refusal whose reason was written by an MCP server.
const SERVER_FAILED: &str = "mcp_failed";

/// Records from which sources a call brought content to its agent, and from which sources into the files of the
/// workspace. `reach` is what the call reached, if its tool acts outside. `refused` is the code of the refusal, if
/// there was one.
pub(crate) async fn note(
    tx: &mut Tx,
    caller: &Conversation,
    call: &ToolCall,
    reach: Option<&Reach>,
    refused: Option<&str>,
    result: &ToolResult,
) -> Result<(), Error> {
    // The server wrote the reason of the failure, so the agent has now read a text of the server.
    if let (Some(SERVER_FAILED), Some(Reach::Server { server, .. })) = (refused, reach) {
        seen::read(tx, caller, &Source::Server(server.clone()), &call.name).await?;
    }
    match result {
        ToolResult::Outside { source: Some(source), .. } => {
            // Skips a source of a kind that only a later version of polity knows.
            if let Ok(source) = source.parse::<Source>() {
                seen::read(tx, caller, &source, &call.name).await?;
            }
        }
        ToolResult::Artifact { artifact, .. } => {
            let from = Holder::Artifact(artifact.clone());
            let step = Step::Artifact { artifact: artifact.clone() };
            seen::pass(tx, &caller.task, &from, &Holder::Agent(caller.agent.clone()), &step).await?;
        }
        ToolResult::Outside { source: None, .. } | ToolResult::Json(_) => {}
    }
    note_files(tx, caller, call, reach).await
}

/// Returns whether a call saves what it gets in a file of the workspace.
fn call_saves(call: &ToolCall) -> bool {
    match &call.arguments {
        Arguments::Object(arguments) => arguments.get(SAVE_TO).is_some_and(|path| !path.is_null()),
        Arguments::Malformed(_) => false,
    }
}

/// Passes sources on through the files of the task, which its agents share: from the files to an agent that reads them,
/// and from an agent to the files that it changes.
async fn note_files(
    tx: &mut Tx,
    caller: &Conversation,
    call: &ToolCall,
    reach: Option<&Reach>,
) -> Result<(), Error> {
    let agent = Holder::Agent(caller.agent.clone());
    let task = &caller.task;
    if let Some(Reach::ReadsWorkspace | Reach::Command { .. }) = reach {
        seen::pass(tx, task, &Holder::Workspace, &agent, &Step::Files).await?;
    }
    let saves = call_saves(call);
    if saves || matches!(reach, Some(Reach::ChangesWorkspace | Reach::Command { .. })) {
        let step = Step::Agent { agent: caller.agent.clone() };
        seen::pass(tx, task, &agent, &Holder::Workspace, &step).await?;
    }
    Ok(())
}
