//! `follow_task`: what has happened in a task, and what was said to the person.

use super::arguments::FollowTask;
use super::{Outcome, Refusal, data, line};
use crate::artifacts::Block;
use polity_runtime::view::{ArtifactView, EventFilter, TaskState, TaskView};
use polity_runtime::{Event, Society};
use polity_society::id::MessageId;
use polity_society::message::{Expects, Finality};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long it waits where nothing is said: less than clients have patience for.
const WAIT_SECONDS: u64 = 20;

/// The longest that it waits.
const LONGEST_WAIT_SECONDS: u64 = 600;

/// How many events are read at once.
const PAGE: u32 = 200;

/// How many lines of what happened are told; of more the newest, because older ones matter least.
const LINES: usize = 200;

/// What has happened in a task.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Followed {
    /// How the task stands.
    pub(crate) task: TaskView,
    /// Whether nothing is left to do; the last final message is the answer.
    pub(crate) finished: bool,
    /// What was said to the user, oldest first.
    pub(crate) messages: Vec<Said>,
    /// What happened, a line each, oldest first.
    pub(crate) happened: Vec<String>,
    /// `after` for the next call.
    pub(crate) next: i64,
}

/// Something that was said to the user.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Said {
    /// The id of the message.
    pub(crate) id: MessageId,
    /// Who says it: an agent's id, or `system`.
    pub(crate) from: String,
    /// What it says.
    pub(crate) text: String,
    /// Whether it is the last word, or more follows.
    pub(crate) finality: Finality,
    /// Whether it is a question that waits for the user's answer.
    pub(crate) expects_answer: bool,
    /// The artifacts that go with it.
    pub(crate) attachments: Vec<ArtifactView>,
}

/// Waits until something is said to the person, the task is idle, or the time is over.
pub(crate) async fn follow(
    society: &Society,
    arguments: FollowTask,
    progress: &mpsc::Sender<String>,
) -> Result<Outcome, Refusal> {
    let task = super::task(&arguments.task);
    let unknown = || Refusal::unknown(&format!("there is no task `{task}`"));
    let wait = arguments.wait_seconds.unwrap_or(WAIT_SECONDS).min(LONGEST_WAIT_SECONDS);
    let deadline = Instant::now() + Duration::from_secs(wait);
    let filter = EventFilter { task: Some(task.clone()), ..EventFilter::default() };
    let mut newest = society.newest_event();
    let mut next = arguments.after.unwrap_or(0);
    let (mut happened, mut heard) = (Vec::new(), Vec::new());
    let stands = loop {
        newest.mark_unchanged();
        // In this order: all that a task has led to is written when it is idle.
        let stands = society.task(&task).await?.ok_or_else(unknown)?;
        loop {
            let page = society.events_after(next, PAGE, &filter).await?;
            for entry in &page.events {
                if let Event::MessageAccepted { message, to, .. } = &entry.event
                    && to.is_user()
                {
                    heard.push(message.clone());
                }
                if let Some(line) = entry.event.line() {
                    // A client that does not listen misses nothing: all is in the result.
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
        if stands.state == TaskState::Idle || !heard.is_empty() || Instant::now() >= deadline {
            break stands;
        }
        tokio::select! {
            changed = newest.changed() => if changed.is_err() { break stands },
            () = tokio::time::sleep_until(deadline) => {}
        }
    };
    let mut messages = Vec::with_capacity(heard.len());
    for id in heard {
        messages.extend(society.message(&id).await?.map(|message| Said {
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
    let followed = Followed { task: stands, finished, messages, happened, next };
    let text = told(&followed);
    Ok(Outcome { blocks: vec![Block::Text(text)], ..data(followed)? })
}

/// The same for a reader.
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
    let stands = if followed.finished { "nothing is left to do" } else { "agents are at work" };
    lines.push(format!("task {}: {stands}; next: {}", followed.task.id, followed.next));
    lines.join("\n")
}
