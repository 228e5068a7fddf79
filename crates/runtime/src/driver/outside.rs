//! Runs tools that reach outside. The start of a tool is committed before it runs.

use super::advance::Happened;
use super::bytes::take_result_out;
use super::goes_on;
use crate::handles::Handles;
use crate::tools::outside::{Invocation, OutsideTool};
use polity_decide::turn::Turn;
use polity_llm::{Arguments, ToolCall};
use polity_society::id::CallId;
use polity_society::refusal::Refusal;
use polity_store::record::{Record, ToolResult};
use polity_store::turns::OpenTurn;
use polity_store::{Conversation, Error, records};
use tokio_util::sync::CancellationToken;

/// Returns the tool that a call names, if that tool reaches outside.
pub(super) fn outside_tool<'h>(handles: &'h Handles, call: &ToolCall) -> Option<&'h OutsideTool> {
    handles.outside.iter().find(|outside| outside.tool.name == call.name)
}

/// Whether this is the first run of a tool call, according to the records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Yes,
    No,
}

/// Commits the start of a tool that reaches outside, and then runs the tool. Returns `Happened::Nothing` if the driver
/// is halted meanwhile.
pub(super) async fn run_outside(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: &mut Turn,
    call: &ToolCall,
    first: First,
    halt: &CancellationToken,
) -> Result<Happened, Error> {
    let Some(outside) = outside_tool(handles, call) else {
        return Err(Error::Damaged { table: "records", what: format!("tool {} has gone", call.name) });
    };
    if first == First::Yes {
        let started = Record::ToolStarted { call: CallId::new(call.id.clone()) };
        let (owner, turn_now, record) = (conversation.clone(), open.clone(), started.clone());
        let write = handles.store.write(move |tx| {
            Box::pin(async move {
                let still = goes_on(tx, &owner, &turn_now).await?;
                if still {
                    records::append(tx, &owner, turn_now.id, &record).await?;
                }
                Ok(still)
            })
        });
        if !write.await? {
            return Ok(Happened::Nothing);
        }
        turn.apply(&started);
        polity_points::point!("outside::started");
    }
    let snapshot = handles.registry.current();
    let tool = call.name.clone();
    let done = match &call.arguments {
        Arguments::Object(arguments) => {
            // Call ids are unique only among visible calls: calls that were summed up may have had the same.
            let idempotency_key = format!("{}-{}-{}", open.id, turn.rounds(), call.id);
            let invocation = Invocation { arguments: arguments.clone(), idempotency_key };
            let ran = tokio::select! {
                // If the tool has ended, its outcome is known and must be kept, so this branch is checked first.
                biased;
                ran = (outside.run)(invocation) => ran,
                () = halt.cancelled() => return Ok(Happened::Nothing),
            };
            ran.map_err(|reason| Refusal::ToolFailed { tool, reason })
        }
        Arguments::Malformed(text) => {
            Err(Refusal::ToolFailed { tool, reason: format!("the arguments are not a JSON object: {text}") })
        }
    };
    polity_points::point!("outside::ran");
    let (mut result, refused) = match done {
        Ok(value) => (value, None),
        Err(refusal) => (refusal.to_json(&snapshot.prompts.texts), Some(refusal.code())),
    };
    let stored = take_result_out(handles, conversation, &snapshot, &mut result).await?;
    Ok(Happened::ToolEnded { call: call.clone(), result: ToolResult::Json(result), refused, stored })
}
