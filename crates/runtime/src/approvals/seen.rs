//! Notes the outside sources (such as the web or an MCP server) from which each agent has got content.

use crate::tools::copied_from;
use polity_hands::call::Place;
use polity_hands::merge_workspace::MERGE_WORKSPACE;
use polity_hands::places::trust_in;
use polity_llm::ToolCall;
use polity_society::id::ArtifactId;
use polity_society::policy::{Reach, Source};
use polity_store::record::ToolResult;
use polity_store::seen::{self, Holder, Step};
use polity_store::{Conversation, Error, Tx, tasks};

/// The code of a refusal whose reason was written by an MCP server.
const SERVER_FAILED: &str = "mcp_failed";

/// The code of a refusal whose reason may quote what a web server sent, if the call was a web request.
const TOOL_FAILED: &str = "tool_failed";

/// The code of a refusal that shows parts of files.
const MERGE_CONFLICT: &str = "merge_conflict";

/// Notes the sources of the content that a call brought to its agent, and of the content that it brought into the
/// workspace. `reaches` lists what the call reached. The list is empty for a society tool. `refused` is the code of the
/// refusal, if the call was refused.
pub(crate) async fn note(
    tx: &mut Tx,
    caller: &Conversation,
    call: &ToolCall,
    reaches: &[Reach],
    refused: Option<&str>,
    result: &ToolResult,
) -> Result<(), Error> {
    if let Some(code) = refused {
        for source in reaches.iter().filter_map(|reach| quoted_in(code, reach)) {
            seen::read(tx, caller, &source, &call.name).await?;
        }
    }
    let is_merge = match refused {
        Some(code) => code == MERGE_CONFLICT,
        None => call.name == MERGE_WORKSPACE,
    };
    if is_merge {
        note_shown_files(tx, caller, call).await?;
    }
    match result {
        ToolResult::Outside { sources, .. } => {
            // Skips a source of a kind that only a later version of polity knows.
            for source in sources.iter().filter_map(|source| source.parse::<Source>().ok()) {
                seen::read(tx, caller, &source, &call.name).await?;
            }
        }
        ToolResult::Artifact { artifact, .. } => note_opened(tx, caller, artifact).await?,
        ToolResult::Json(_) => {}
    }
    if let (None, Some(artifact)) = (refused, copied_from(call)) {
        note_opened(tx, caller, &artifact).await?;
    }
    note_files(tx, caller, reaches).await
}

/// Returns the source that a refusal with this code may quote. For example, the reason of a failed web request may
/// contain the address to which a server redirects.
fn quoted_in(code: &str, reach: &Reach) -> Option<Source> {
    match (code, reach) {
        (SERVER_FAILED, Reach::Server { server, .. }) => Some(Source::Server(server.clone())),
        (TOOL_FAILED, Reach::Web { .. }) => Some(Source::Web),
        _ => None,
    }
}

async fn note_opened(tx: &mut Tx, caller: &Conversation, artifact: &ArtifactId) -> Result<(), Error> {
    let from = Holder::Artifact(artifact.clone());
    let step = Step::Artifact { artifact: artifact.clone() };
    seen::pass(tx, &caller.task, &from, &Holder::Agent(caller.agent.clone()), &step).await
}

/// A merge has shown the names of files to its caller, and a conflict also shows parts of the files. Notes that they may
/// be files of the person. [`note_files`] notes the sources of the agents that chose the names and wrote the files.
async fn note_shown_files(tx: &mut Tx, caller: &Conversation, call: &ToolCall) -> Result<(), Error> {
    let root = tasks::workspace(&mut tx.connection, &caller.task).await?;
    if let Some(source) = trust_in(&Place { root, worktree: None }).source() {
        seen::read(tx, caller, &source, &call.name).await?;
    }
    Ok(())
}

/// The agents of a task share the files of the task's workspace. So if an agent reads the files, the sources of the
/// workspace are noted for the agent. If an agent changes the files, its sources are noted for the workspace. A call
/// that changes a file also shows parts of files: the lines around an edit, or the output of a command that it ends.
async fn note_files(tx: &mut Tx, caller: &Conversation, reaches: &[Reach]) -> Result<(), Error> {
    if reaches.iter().any(|reach| changes_files(reach) || *reach == Reach::ReadsWorkspace) {
        let agent = Holder::Agent(caller.agent.clone());
        seen::pass(tx, &caller.task, &Holder::Workspace, &agent, &Step::Files).await?;
    }
    // The call may have brought new sources to the agent, and their content into the files.
    pass_on(tx, caller, reaches).await
}

/// If a call changes the files of the workspace, notes the sources of its agent for the workspace. The runtime calls
/// this when the call starts: other agents may read the files while the call runs, and if the call is interrupted,
/// nothing is noted at its end.
pub(crate) async fn pass_on(tx: &mut Tx, caller: &Conversation, reaches: &[Reach]) -> Result<(), Error> {
    if !reaches.iter().any(changes_files) {
        return Ok(());
    }
    let (agent, step) = (Holder::Agent(caller.agent.clone()), Step::Agent { agent: caller.agent.clone() });
    seen::pass(tx, &caller.task, &agent, &Holder::Workspace, &step).await
}

/// If a call copies an artifact into the workspace, notes the sources of the artifact for the workspace. The runtime calls
/// this when the call starts, for the same reasons as [`pass_on`].
pub(crate) async fn pass_on_copied(tx: &mut Tx, caller: &Conversation, call: &ToolCall) -> Result<(), Error> {
    let Some(artifact) = copied_from(call) else { return Ok(()) };
    let (from, step) = (Holder::Artifact(artifact.clone()), Step::Artifact { artifact });
    seen::pass(tx, &caller.task, &from, &Holder::Workspace, &step).await
}

fn changes_files(reach: &Reach) -> bool {
    matches!(reach, Reach::ChangesWorkspace | Reach::Command { .. })
}
