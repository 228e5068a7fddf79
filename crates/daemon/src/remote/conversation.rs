//! A task as the person sees it: what agents say to the person, shown and noted; and how the task ends.

use crate::failure::{self, Failure};
use crate::output::{Form, Said, complain, print, print_json};
use polity_client::{Client, Follow, Followed, Side};
use polity_runtime::view::{EventFilter, MAX_PAGE, MessageFilter, MessageView, Order, TaskState};
use polity_runtime::{Entry, Event, Outcome};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::{Expects, MessageState};
use std::collections::BTreeSet;

/// A message to the person in words.
pub(crate) fn in_words(message: &MessageView) -> String {
    let artifacts = message.attachments.iter().map(|artifact| match &artifact.filename {
        Some(filename) => format!("{filename} ({})", artifact.reference),
        None => artifact.reference.clone(),
    });
    let said = Said {
        from: &message.from,
        from_role: &message.from_role,
        finality: message.finality,
        text: &message.text,
        artifacts: artifacts.collect(),
        title: None,
    };
    said.in_words()
}

/// What the person has not been shown of a task, oldest first; of all tasks where none is named.
pub(crate) async fn unshown(client: &Client, task: Option<&TaskId>) -> Result<Vec<MessageView>, Failure> {
    let mut filter = MessageFilter {
        task: task.cloned(),
        to: Some(AgentId::user()),
        unshown: true,
        order: Order::Oldest,
        limit: Some(MAX_PAGE),
        ..MessageFilter::default()
    };
    let mut all = Vec::new();
    loop {
        let page = client.messages(&filter).await?;
        all.extend(page.messages);
        if page.next.is_none() {
            return Ok(all);
        }
        filter.after = page.next;
    }
}

/// Tasks whose messages to the person are shown, each once, and noted when it was.
pub(crate) struct Telling<'a> {
    client: &'a Client,
    /// The last is the one whose outcome counts.
    tasks: &'a [TaskId],
    form: Form,
    /// What was told as JSON: by the stream of events, or before it by a look at what has happened.
    told: BTreeSet<MessageId>,
}

impl<'a> Telling<'a> {
    pub(crate) fn new(client: &'a Client, tasks: &'a [TaskId], form: Form) -> Self {
        Self { client, tasks, form, told: BTreeSet::new() }
    }

    /// Shows what the person has not been shown, and notes that it was. In JSON that is the events up to a number that the
    /// stream has not told; what came later is left to the stream.
    pub(crate) async fn show_unshown(&mut self, until: i64) -> Result<(), Failure> {
        for task in self.tasks {
            let messages = unshown(self.client, Some(task)).await?;
            let missing = untold(&messages, &self.told);
            let events = match self.form {
                Form::Json => accepted(self.client, task, missing, until).await?,
                Form::Text => Vec::new(),
            };
            for (message, entry) in events {
                print_json(&entry)?;
                self.told.insert(message);
            }
            for message in messages {
                if self.form == Form::Text {
                    print(&in_words(&message))?;
                }
                if self.form == Form::Text || self.told.contains(&message.id) {
                    self.client.mark_shown(&message.id).await?;
                }
            }
        }
        Ok(())
    }

    /// Notes what the stream has told; in words it is shown now. What the stream has yet to come to waits for it, so that
    /// nothing is noted that was not told.
    async fn show_new(&mut self) -> Result<(), Failure> {
        if self.form == Form::Text {
            return self.show_unshown(i64::MAX).await;
        }
        for task in self.tasks {
            for message in unshown(self.client, Some(task)).await? {
                if self.told.contains(&message.id) {
                    self.client.mark_shown(&message.id).await?;
                }
            }
        }
        Ok(())
    }

    /// Whether an event of the stream has yet to be told.
    fn is_new(&mut self, event: &Event) -> bool {
        match event {
            Event::MessageAccepted { message, .. } => self.told.insert(message.clone()),
            _ => true,
        }
    }

    /// How the last task stands, if nothing is left to do in any.
    pub(crate) async fn outcome(&self) -> Result<Option<Outcome>, Failure> {
        let mut last = None;
        for task in self.tasks {
            last = outcome(self.client, task).await?;
            if last.is_none() {
                break;
            }
        }
        Ok(last)
    }

    /// Shows what happens until nothing is left to do. The stream begins before the first event that was not shown.
    pub(crate) async fn follow(
        &mut self,
        follow: &mut Follow,
        show_event: impl Fn(&Entry) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        while let Some(followed) = follow.next().await {
            match followed {
                Followed::Entry(entry) => {
                    if self.is_new(&entry.event) {
                        show_event(&entry)?;
                    }
                    match &entry.event {
                        // Accepted long ago, perhaps before the stream began.
                        Event::MessageDue { .. } => self.show_unshown(entry.seq).await?,
                        event if is_for_person(event) => self.show_new().await?,
                        _ => {}
                    }
                    if matches!(entry.event, Event::TaskIdle { .. })
                        && let Some(outcome) = self.outcome().await?
                    {
                        return Ok(outcome);
                    }
                }
                Followed::Connected => {}
                Followed::Lost => complain("the daemon has gone; waiting for the next one (Ctrl-C leaves)"),
                Followed::Failed(error) => return Err(error.into()),
            }
        }
        Err(Failure::Defect("the event stream ended".to_owned()))
    }

    /// Says how the last task ended; gives the exit code.
    pub(crate) async fn tell_outcome(&mut self, outcome: Outcome) -> Result<u8, Failure> {
        // Something may have been said between the last look and the question whether anything is left to do.
        self.show_unshown(i64::MAX).await?;
        let Some(task) = self.tasks.last() else { return Ok(failure::exit_code(outcome)) };
        tell_outcome(self.client, task, outcome, self.form).await
    }
}

/// The messages that were not told.
fn untold(messages: &[MessageView], told: &BTreeSet<MessageId>) -> BTreeSet<MessageId> {
    messages.iter().map(|message| &message.id).filter(|id| !told.contains(*id)).cloned().collect()
}

/// The events up to a number by which messages of a task were accepted, in their order. Of those that are old enough to have been removed
/// there are none.
async fn accepted(
    client: &Client,
    task: &TaskId,
    mut missing: BTreeSet<MessageId>,
    until: i64,
) -> Result<Vec<(MessageId, Entry)>, Failure> {
    let kinds = vec!["message_accepted".to_owned()];
    let filter = EventFilter { task: Some(task.clone()), kinds, ..EventFilter::default() };
    let mut found = Vec::new();
    let mut before = until.saturating_add(1);
    while !missing.is_empty() {
        let page = client.events(Side::Before(before), MAX_PAGE, &filter).await?;
        let Some(first) = page.events.first() else { break };
        before = first.seq;
        found.extend(page.events.into_iter().rev().filter_map(|entry| {
            let Event::MessageAccepted { message, .. } = &entry.event else { return None };
            missing.take(message).map(|message| (message, entry))
        }));
    }
    found.reverse();
    Ok(found)
}

/// Whether an event says that there may be something new for the person.
pub(crate) fn is_for_person(event: &Event) -> bool {
    match event {
        Event::MessageAccepted { to, .. } => to.is_user(),
        Event::MessageDue { .. } | Event::TaskIdle { .. } => true,
        _ => false,
    }
}

/// How a task stands, if nothing is left to do in it.
pub(crate) async fn outcome(client: &Client, task: &TaskId) -> Result<Option<Outcome>, Failure> {
    let view = client.task(task).await?;
    Ok(match view.state {
        TaskState::Open => None,
        TaskState::Idle => view.outcome,
    })
}

/// Says how a task ended; gives the exit code.
pub(crate) async fn tell_outcome(
    client: &Client,
    task: &TaskId,
    outcome: Outcome,
    form: Form,
) -> Result<u8, Failure> {
    let code = failure::exit_code(outcome);
    match form {
        Form::Json => print_json(&serde_json::json!({
            "event": "finished", "task": task, "outcome": outcome, "exitCode": code
        }))?,
        Form::Text if outcome == Outcome::AwaitsUser => {
            for question in questions(client, task).await? {
                complain(&format!("{} waits for your answer: {}", question.from, question.text));
            }
        }
        Form::Text => {
            if let Some(words) = crate::output::outcome_in_words(outcome) {
                complain(words);
            }
        }
    }
    Ok(code)
}

/// What agents have asked the person in a task and not been told, oldest first.
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

#[cfg(test)]
mod tests {
    use super::super::examples::messages;
    use super::*;
    use crate::output::terminal::harmless;

    #[test]
    fn what_was_told_is_not_told_again() {
        let messages = messages();
        let ids: BTreeSet<MessageId> = messages.iter().map(|message| message.id.clone()).collect();
        assert_eq!(untold(&messages, &BTreeSet::new()), ids);
        let told = BTreeSet::from([messages[1].id.clone()]);
        let left = untold(&messages, &told);
        assert!(!left.contains(&messages[1].id));
        assert_eq!(left.len(), ids.len() - 1);
        assert!(untold(&messages, &ids).is_empty());
    }

    #[test]
    fn messages_to_the_person() {
        let words: Vec<String> = messages().iter().map(in_words).collect();
        // As a terminal gets it; a pipe gets every byte.
        insta::assert_snapshot!(harmless(&words.join("\n---\n")), @r#"
[user user]
看看这张图片
+ picture.png (artifact:mmpqmm6wc2)
---
… one moment
---
[阅读者 reader-7k2f]
red <U+001B>[31m<U+0007> and
more
---
A model failed.
"#);
    }
}
