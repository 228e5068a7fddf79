//! Asks the person, through the client, whether agents of a task may make calls.

use crate::approval::Reply;
use crate::refusal::Refusal;
use polity_runtime::{AnswerError, Society};
use polity_society::id::{ApprovalId, TaskId};
use polity_view::{ApprovalFilter, ApprovalState, ApprovalView, MAX_PAGE};
use std::collections::BTreeSet;
use tokio::sync::{mpsc, oneshot};

/// How the client can ask the person about a call of an agent.
#[derive(Debug)]
pub(crate) enum Person {
    /// The client cannot ask.
    Absent,
    /// The client asks the person while the client's call of a tool is waiting.
    During(mpsc::Sender<Inquiry>),
    /// The client gets the questions as the result of its call, and repeats the call with the answers.
    Between(Told),
}

/// A question that the client must show. If the receiver of `reply` is dropped, the tool no longer waits for the
/// reply.
#[derive(Debug)]
pub(crate) struct Inquiry {
    pub(crate) approval: ApprovalView,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// The replies that the person gave before the client repeated a call.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) replies: Vec<(ApprovalId, Reply)>,
    /// Questions that the person has put off.
    pub(crate) put_off: BTreeSet<ApprovalId>,
}

/// The questions about the calls of one task, which the client shows one after another.
pub(super) struct Asking<'a> {
    society: &'a Society,
    task: &'a TaskId,
    inquiries: Option<mpsc::Sender<Inquiry>>,
    /// The question that the client shows now.
    shown: Option<(ApprovalId, oneshot::Receiver<Reply>)>,
    /// Questions that the person has put off. The client does not show these questions again during this call.
    put_off: BTreeSet<ApprovalId>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        society: &'a Society,
        task: &'a TaskId,
        inquiries: Option<mpsc::Sender<Inquiry>>,
    ) -> Self {
        Self { society, task, inquiries, shown: None, put_off: BTreeSet::new() }
    }

    /// Returns the open questions of the task, oldest first. Also updates the question that the client shows. If this
    /// question is no longer open, makes the client remove it. If the client shows no question now, makes the client
    /// show the oldest open question that the person has not put off.
    pub(super) async fn look(&mut self) -> Result<Vec<ApprovalView>, Refusal> {
        let filter = ApprovalFilter {
            task: Some(self.task.clone()),
            state: Some(ApprovalState::Open),
            limit: Some(MAX_PAGE),
            after: None,
        };
        let mut open = self.society.approvals(&filter).await?.approvals;
        open.reverse();
        if self.shown.as_ref().is_some_and(|(id, _)| open.iter().all(|approval| approval.id != *id)) {
            self.shown = None;
        }
        if let (None, Some(inquiries)) = (&self.shown, &self.inquiries)
            && let Some(next) = open.iter().find(|approval| !self.put_off.contains(&approval.id))
        {
            let (reply, receiver) = oneshot::channel();
            // `send` fails only if the client has disconnected. In this case the call of the client ends too.
            if inquiries.send(Inquiry { approval: next.clone(), reply }).await.is_ok() {
                self.shown = Some((next.id.clone(), receiver));
            }
        }
        Ok(open)
    }

    /// Returns whether the client shows a question now.
    pub(super) fn is_waiting(&self) -> bool {
        self.shown.is_some()
    }

    /// Waits for the reply to the question that the client shows. If the client shows no question, waits for ever.
    pub(super) async fn reply(&mut self) -> (ApprovalId, Reply) {
        let Some((id, receiver)) = &mut self.shown else { return std::future::pending().await };
        let reply = receiver.await.unwrap_or(Reply::PutOff);
        let id = id.clone();
        self.shown = None;
        (id, reply)
    }

    /// Records a reply of the person. If the question already has an answer, the earlier answer counts.
    pub(super) async fn take(&mut self, id: ApprovalId, reply: Reply) -> Result<(), Refusal> {
        let answer = match reply {
            Reply::Answer(answer) => answer,
            Reply::PutOff => {
                self.put_off.insert(id);
                return Ok(());
            }
        };
        let asked = self.society.approval(&id).await?;
        if asked.is_none_or(|asked| asked.task != *self.task) {
            return Ok(());
        }
        match self.society.answer_approval(id, answer).await {
            Ok(_) | Err(AnswerError::Ended { .. } | AnswerError::Unknown(_)) => Ok(()),
            Err(AnswerError::Store(error)) => Err(error.into()),
        }
    }

    /// Records the replies that the person gave before this call. Returns the questions that the person has put off.
    pub(super) async fn take_told(&mut self, told: Told) -> Result<BTreeSet<ApprovalId>, Refusal> {
        self.put_off = told.put_off;
        for (id, reply) in told.replies {
            self.take(id, reply).await?;
        }
        Ok(self.put_off.clone())
    }
}
