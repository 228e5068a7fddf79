//! `follow_task`: reports the events of a task, and the messages that agents send to the person. Also asks the person
//! whether agents may make calls.

use super::arguments::FollowTask;
use super::asking::{Asking, Person};
use super::{Outcome, Questions, ToolOutput, data};
use crate::approval::in_short;
use crate::artifacts::Block;
use crate::artifacts::line;
use crate::refusal::Refusal;
use polity_runtime::Society;
use polity_society::id::{ApprovalId, MessageId};
use polity_society::message::{Expects, Finality};
use polity_view::Event;
use polity_view::{ApprovalView, ArtifactView, EventFilter, TaskState, TaskView};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Default waiting time in seconds. It is shorter than the timeouts of clients.
const WAIT_SECONDS: u64 = 20;

/// Longest waiting time, in seconds.
const LONGEST_WAIT_SECONDS: u64 = 600;

/// Maximum number of events that one read of the database returns.
const PAGE: u32 = 200;

/// Maximum number of event lines in a result. If there are more, the oldest are left out, because they matter least.
const LINES: usize = 200;

/// What has happened in a task.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Followed {
    /// The task and its state.
    pub(crate) task: TaskView,
    /// Whether the task has nothing left to do. Calls that wait for the user do not count. If true, the last final
    /// message is the answer.
    pub(crate) finished: bool,
    /// Messages to the user, oldest first.
    pub(crate) messages: Vec<TaskMessage>,
    /// Calls of agents that wait until the user allows or denies them, oldest first.
    pub(crate) approvals: Vec<ApprovalView>,
    /// What happened, one line per event, oldest first.
    pub(crate) happened: Vec<String>,
    /// `after` for the next call.
    pub(crate) next: i64,
}

/// A message to the user.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskMessage {
    /// The id of the message.
    pub(crate) id: MessageId,
    /// The sender: an agent's id, or `system`.
    pub(crate) from: String,
    /// The text of the message.
    pub(crate) text: String,
    /// Whether the message is final, or more follows.
    pub(crate) finality: Finality,
    /// Whether the message is a question that waits for the user's answer.
    pub(crate) expects_answer: bool,
    /// The attached artifacts.
    pub(crate) attachments: Vec<ArtifactView>,
}

/// Waits until the person gets a message, the task is idle, or the waiting time is over. While the client shows a
/// question about a call, the wait does not end for these reasons. It then ends at the latest [`LONGEST_WAIT_SECONDS`]
/// after it began.
pub(crate) async fn follow(
    society: &Society,
    arguments: FollowTask,
    progress: &mpsc::Sender<String>,
    person: Person,
) -> Result<Outcome, Refusal> {
    let task = super::task(&arguments.task);
    let unknown = || Refusal::unknown(&format!("there is no task `{task}`"));
    let wait = arguments.wait_seconds.unwrap_or(WAIT_SECONDS).min(LONGEST_WAIT_SECONDS);
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(wait);
    let last_deadline = begun + Duration::from_secs(LONGEST_WAIT_SECONDS);
    let filter = EventFilter { task: Some(task.clone()), ..EventFilter::default() };
    let mut newest = society.newest_event();
    let mut next = arguments.after.unwrap_or(0);
    let (mut happened, mut heard) = (Vec::new(), Vec::new());
    let (inquiries, before) = match person {
        Person::Absent => (None, None),
        // If the call does not wait, it asks no questions.
        Person::During(inquiries) => ((wait > 0).then_some(inquiries), None),
        Person::Between(told) => (None, Some(told)),
    };
    let mut asking = Asking::new(society, &task, inquiries);
    let put_off = match before {
        Some(before) => Some(asking.take_told(before).await?).filter(|_| wait > 0),
        None => None,
    };
    let (stands, approvals) = loop {
        newest.mark_unchanged();
        // Read the questions before the state of the task. An answer to a question removes the question and sets the
        // state to open. If the state were read first and then an answer came, the task would look idle and without
        // questions.
        let open = asking.look().await?;
        // Read the state before the events: if the task is idle, all its events are already in the database.
        let stands = society.task(&task).await?.ok_or_else(unknown)?;
        // Read the questions again. If the two lists differ, a question was asked or answered in the meantime. The loop
        // then starts again.
        let approvals = asking.look().await?;
        if let Some(put_off) = &put_off {
            let new: Vec<ApprovalView> =
                approvals.iter().filter(|approval| !put_off.contains(&approval.id)).cloned().collect();
            if !new.is_empty() {
                return Ok(Outcome::Ask(Questions { new, put_off: put_off.clone() }));
            }
        }
        loop {
            let page = society.events_after(next, PAGE, &filter).await?;
            for entry in &page.events {
                if let Event::MessageAccepted { message, to, .. } = &entry.event
                    && to.is_user()
                {
                    heard.push(message.clone());
                }
                if let Some(line) = entry.event.line() {
                    // If the queue is full, the line is dropped. The result contains the line in any case.
                    let _ = progress.try_send(line.clone());
                    happened.push(line);
                }
            }
            let more = page.events.len() == PAGE as usize;
            next = page.next.max(next);
            if !more {
                break;
            }
        }
        let ids = |approvals: &[ApprovalView]| -> Vec<ApprovalId> {
            approvals.iter().map(|approval| approval.id.clone()).collect()
        };
        if ids(&open) != ids(&approvals) {
            continue;
        }
        let has_news = stands.state == TaskState::Idle || !heard.is_empty();
        let until = if asking.is_waiting() { last_deadline } else { deadline };
        if (has_news && !asking.is_waiting()) || Instant::now() >= until {
            break (stands, approvals);
        }
        let replied = tokio::select! {
            changed = newest.changed() => {
                if changed.is_err() {
                    break (stands, approvals);
                }
                None
            }
            replied = asking.reply() => Some(replied),
            () = tokio::time::sleep_until(until) => None,
        };
        if let Some((id, reply)) = replied {
            asking.take(id, reply).await?;
        }
    };
    let mut messages = Vec::with_capacity(heard.len());
    for id in heard {
        messages.extend(society.message(&id).await?.map(|message| TaskMessage {
            expects_answer: message.expects == Expects::Answer && message.answered_by.is_none(),
            id: message.id,
            from: message.from,
            text: message.text,
            finality: message.finality,
            attachments: message.attachments,
        }));
    }
    happened.drain(..happened.len().saturating_sub(LINES));
    let finished = stands.state == TaskState::Idle;
    let followed = Followed { task: stands, finished, messages, approvals, happened, next };
    let text = told(&followed);
    Ok(Outcome::Done(ToolOutput { blocks: vec![Block::Text(text)], ..data(followed)? }))
}

/// Renders the result as text.
fn told(followed: &Followed) -> String {
    let mut lines = followed.happened.clone();
    for said in &followed.messages {
        let sort = match (said.expects_answer, said.finality) {
            (true, _) => " asks the user",
            (false, Finality::Interim) => " says meanwhile",
            (false, Finality::Final) => " says",
        };
        lines.push(format!("{}{sort} ({}): {}", said.from, said.id, said.text));
        lines.extend(said.attachments.iter().map(|artifact| format!("- {}", line(artifact))));
    }
    lines.extend(followed.approvals.iter().map(in_short));
    let stands = match (followed.finished, followed.approvals.is_empty()) {
        (true, true) => "nothing is left to do",
        (true, false) => "nothing is left to do until the user answers",
        (false, _) => "agents are at work",
    };
    lines.push(format!("task {}: {stands}; next: {}", followed.task.id, followed.next));
    lines.join("\n")
}
