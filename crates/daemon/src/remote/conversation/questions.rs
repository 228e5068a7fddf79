//! What the agents ask the user: messages that need an answer, and calls that the user must allow.

use crate::failure::Failure;
use crate::output::complain;
use crate::remote::advice::{Advice, Process, answering, deciding, lines};
use crate::remote::approvals;
use crate::remote::words::now;
use crate::suggested::repeating;
use polity_client::Client;
use polity_society::id::{AgentId, TaskId};
use polity_society::message::{Expects, MessageState};
use polity_view::{
    ApprovalState, ApprovalView, MAX_PAGE, MessageFilter, MessageView, NowFilter, Order, Stuck, StuckView,
};

/// What the agents of a task ask the user.
pub(super) struct OpenQuestions {
    /// The messages that ask for an answer.
    messages: Vec<MessageView>,
    /// The questions that ask the user to allow a call.
    approvals: Vec<ApprovalView>,
}

impl OpenQuestions {
    pub(super) async fn of(client: &Client, task: &TaskId) -> Result<Self, Failure> {
        let messages = questions(client, task).await?;
        let approvals = approvals::all(client, Some(task.clone()), Some(ApprovalState::Open)).await?;
        Ok(Self { messages, approvals })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.approvals.is_empty()
    }

    /// Prints each question, and how to answer it once this command has ended.
    pub(super) fn tell(&self, client: &Client) {
        let process = Process::after(client);
        let tell = |advice: Vec<Advice>| {
            complain("to answer:");
            for line in lines(process, advice) {
                complain(&repeating(&format!("→ {line}")));
            }
        };
        for question in &self.messages {
            complain(&format!("{} waits for your answer: {}", question.from, question.text));
            let how = answering(&AgentId::new(question.from.as_str()), &question.task);
            tell(vec![Advice::WithDaemon(how)]);
        }
        for approval in &self.approvals {
            complain(&anstream::adapter::strip_str(&approvals::in_words(approval, now())).to_string());
            tell(deciding(process, &approval.id, ""));
        }
    }
}

/// Fetches the tasks in which an agent waits for an answer of the user: one for each question, oldest question first.
pub(crate) async fn asking_tasks(client: &Client) -> Result<Vec<TaskId>, Failure> {
    let now = client.now(&NowFilter { limit: Some(MAX_PAGE) }).await?;
    let asks = |thing: &StuckView| matches!(thing.stuck, Stuck::Question { .. } | Stuck::Approval { .. });
    Ok(now.stuck.into_iter().filter(asks).filter_map(|thing| thing.task).collect())
}

/// Fetches the unanswered questions to the user in a task, oldest first.
async fn questions(client: &Client, task: &TaskId) -> Result<Vec<MessageView>, Failure> {
    let filter = MessageFilter {
        task: Some(task.clone()),
        to: Some(AgentId::user()),
        order: Order::Newest,
        limit: Some(MAX_PAGE),
        ..MessageFilter::default()
    };
    let mut asked = client.messages(&filter).await?.messages;
    asked.retain(is_open_question);
    asked.reverse();
    Ok(asked)
}

fn is_open_question(message: &MessageView) -> bool {
    message.expects == Expects::Answer
        && message.answered_by.is_none()
        && matches!(message.state, MessageState::Queued | MessageState::Done)
}
