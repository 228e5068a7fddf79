//! Ends a question about a call when the person answers or when the time limit of the question has passed.

use polity_society::approval::{Answer, Judgement};
use polity_society::id::{ApprovalId, PermissionId};
use polity_store::approvals::{Approval, Ending, Scope, ToEnd};
use polity_store::record::Record;
use polity_store::{Bell, Error, Stopped, Store, Tx, approvals, events, records, tasks};
use polity_view::{ApprovalState, in_full};

/// Why the person's answer to a question was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// There is no question with this id.
    #[error("there is no question `{0}`; polity approvals lists the open ones")]
    Unknown(ApprovalId),
    /// The question had already ended.
    #[error("the question `{id}` has ended before: {}", in_words(id, *state))]
    Ended {
        /// The question that the answer was for.
        id: ApprovalId,
        /// How the question ended.
        state: ApprovalState,
    },
    /// The answer could not be stored.
    #[error("failed to store the answer")]
    Store(#[from] Error),
}

/// Returns how a question ended.
fn in_words(id: &ApprovalId, state: ApprovalState) -> String {
    match state {
        ApprovalState::Dropped => {
            format!("the turn that asked has ended, so nobody needs the answer; polity why {id} tells more")
        }
        ApprovalState::Open | ApprovalState::Allowed | ApprovalState::Denied | ApprovalState::Expired => {
            state.as_str().to_owned()
        }
    }
}

/// Why a permission was not removed.
#[derive(Debug, thiserror::Error)]
pub enum PermissionError {
    /// There is no permission with this id.
    #[error("there is no permission `{0}`; polity approvals --permissions lists them")]
    Unknown(PermissionId),
    /// The change could not be stored.
    #[error("failed to store the change")]
    Store(#[from] Error),
}

/// Accepts the person's answer to a question. The agent whose call caused the question then continues its turn.
pub(crate) async fn answer(
    store: &Store,
    id: ApprovalId,
    answer: Answer,
    reason: Option<String>,
) -> Result<Approval, AnswerError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            let Some(approval) = approvals::get(&mut tx.connection, &id).await? else {
                return Err(Stopped::Refused(AnswerError::Unknown(id)));
            };
            if approval.state != ApprovalState::Open {
                return Err(Stopped::Refused(AnswerError::Ended { id, state: approval.state }));
            }
            // The supervisor ends the question soon. Until then the question is open, but it is too late for an answer.
            if approval.asked.expires_at <= tx.now {
                return Err(Stopped::Refused(AnswerError::Ended { id, state: ApprovalState::Expired }));
            }
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            permit(tx, &approval, answer).await?;
            let state = if answer == Answer::No { ApprovalState::Denied } else { ApprovalState::Allowed };
            let ending = Ending { state, answer: Some(answer), note: reason.clone() };
            end(tx, &approval.to_end(), &ending, Judgement::of(answer, reason)).await?;
            let ended = approvals::get(&mut tx.connection, &id).await?;
            ended.ok_or(Stopped::Refused(AnswerError::Unknown(id)))
        })
    });
    write.await
}

/// Ends the open questions whose time limit has passed. If a question is too damaged for this, drops it, so that it
/// does not hold up the other questions and the delayed messages. Its turn then stays open until somebody stops it.
pub(crate) async fn expire(tx: &mut Tx) -> Result<(), Error> {
    let ending = |state| Ending { state, answer: None, note: None };
    for (id, question) in approvals::expired(tx).await? {
        let savepoint = tx.savepoint("question").await?;
        let ended = match question {
            Ok(question) => end(tx, &question, &ending(ApprovalState::Expired), Judgement::Expired).await,
            Err(error) => Err(error),
        };
        match ended {
            Ok(()) => {}
            Err(error) if error.may_pass() => return Err(error),
            Err(error) => {
                tracing::error!(question = %id, error = %in_full(&error), "failed to end an expired question; it is dropped; run `polity db check` for details");
                tx.undo(&savepoint).await?;
                approvals::end(tx, &id, &ending(ApprovalState::Dropped)).await?;
            }
        }
        tx.release(savepoint).await?;
    }
    Ok(())
}

/// Removes a permission. The person is then asked again before each call that the permission would have allowed.
pub(crate) async fn remove_permission(store: &Store, id: PermissionId) -> Result<(), PermissionError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            if approvals::remove_permission(tx, &id).await? {
                Ok(())
            } else {
                Err(Stopped::Refused(PermissionError::Unknown(id)))
            }
        })
    });
    write.await
}

/// If the answer also allows later calls (for example `Always`), stores the answer as a permission.
async fn permit(tx: &mut Tx, approval: &Approval, answer: Answer) -> Result<(), Error> {
    let asked = &approval.asked;
    let task = match (answer, asked.scope) {
        (Answer::Always, _) => None,
        (Answer::Task, _) | (Answer::Yes, Scope::Task) => Some(&approval.asker.task),
        (Answer::Yes, Scope::Call) | (Answer::No, _) => return Ok(()),
    };
    approvals::permit(tx, task, &asked.tool, &asked.role, &asked.remembered).await
}

/// Ends a question. Records the judgement in the turn that waits for it, and rings the bell of the turn's agent.
async fn end(tx: &mut Tx, question: &ToEnd, ending: &Ending, judgement: Judgement) -> Result<(), Error> {
    if !approvals::end(tx, &question.id, ending).await? {
        return Ok(());
    }
    let record = Record::Judged { call: question.call.clone(), judgement };
    records::append(tx, &question.asker, question.turn, &record).await?;
    events::append(tx, &question.ended(ending.state, ending.note.clone())).await?;
    tasks::wake(tx, &question.asker.task).await?;
    tx.ring(Bell::Mailbox(question.asker.clone()));
    Ok(())
}
