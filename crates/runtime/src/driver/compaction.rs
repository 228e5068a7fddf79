//! Sums up the older part of a conversation that has outgrown its model's window.

use super::advance::Happened;
use super::goes_on;
use crate::ask::{Asked, ask_for_summary};
use crate::handles::Handles;
use polity_decide::history::bounded;
use polity_decide::inline::without_bytes;
use polity_decide::policy::Tried;
use polity_decide::room::{Compaction, without_a_model};
use polity_llm::FailureKind;
use polity_store::record::{Keeps, Record};
use polity_store::turns::OpenTurn;
use polity_store::{Conversation, Error, events, records, sent, usage};
use polity_view::{Event, SummarySource};
use tokio_util::sync::CancellationToken;

/// Replaces the older part of a conversation with a summary. Returns `None` if the turn can continue. If the summary
/// failed or was interrupted, or if a limit was reached, returns what happened.
pub(super) async fn compact(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    compaction: &Compaction,
    tried: &Tried,
    halt: &CancellationToken,
) -> Result<Option<Happened>, Error> {
    polity_points::point!("compaction::before_summary");
    let asked = ask_for_summary(handles, conversation, compaction, tried, halt).await?;
    let (text, answered, reservation) = match asked {
        Asked::Answered(answer) => {
            (answer.replied.text, Some((answer.served, answer.sent)), Some(answer.reservation))
        }
        Asked::Limited(reached) => return Ok(Some(Happened::Limited(reached))),
        Asked::Left => return Ok(Some(Happened::Nothing)),
        // The service works, but does not answer this request, so the summary is made without a model.
        Asked::Failed {
            kind: FailureKind::ContextOverflow | FailureKind::Refused | FailureKind::NotAnAnswer,
            ..
        }
        | Asked::TooLong(_) => (None, None, None),
        // The server is down. The summary can be made later, so the older part of the history is not replaced now.
        Asked::Failed { service, reason, .. } => return Ok(Some(Happened::Failed { service, reason })),
    };
    polity_points::point!("compaction::summed_up");
    let source = if text.is_some() { SummarySource::Model } else { SummarySource::Entries };
    let text = text.unwrap_or_else(|| without_a_model(compaction, &handles.registry.current()));
    let record = Record::Compacted {
        // Remove the bytes before the text is cut. A cut in the middle of the bytes could leave a piece that is not
        // recognized.
        summary: bounded(&without_bytes(text), compaction.summary_tokens.saturating_mul(2)),
        keep_recent: compaction.keep,
        keeps: Keeps::Newest,
    };
    let event = Event::ContextCompacted {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        tokens: compaction.tokens,
        kept: compaction.keep,
        summary: source,
    };
    let (owner, turn_now) = (conversation.clone(), open.clone());
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            let mut place = None;
            if goes_on(tx, &owner, &turn_now).await? {
                events::append(tx, &event).await?;
                place = Some(records::append(tx, &owner, turn_now.id, &record).await?);
            }
            if let Some((served, request)) = &answered {
                usage::insert(tx, &owner, turn_now.id, served).await?;
                sent::insert(tx, &owner, turn_now.id, request, place).await?;
            }
            Ok(())
        })
    });
    write.await?;
    // The reservation is held until the cost of the summary is committed.
    drop(reservation);
    polity_points::point!("compaction::written");
    Ok(None)
}
