//! A task as the person sees it: what agents say to the person, shown and noted; and how the task ends.

use crate::failure::{self, Failure};
use crate::output::{Form, Said, complain, print, print_json};
use polity_client::{Client, Follow, Followed};
use polity_runtime::view::{MAX_PAGE, MessageFilter, MessageView, Order, TaskState};
use polity_runtime::{Entry, Event, Outcome};
use polity_society::id::{AgentId, TaskId};
use polity_society::message::{Expects, MessageState};

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

/// Shows what the person has not been shown of a task, and notes that it was.
pub(crate) async fn show_unshown(client: &Client, task: &TaskId, form: Form) -> Result<(), Failure> {
    for message in unshown(client, Some(task)).await? {
        if form == Form::Text {
            print(&in_words(&message))?;
        }
        client.mark_shown(&message.id).await?;
    }
    Ok(())
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

/// Shows what happens in a task until nothing is left to do in it. The stream begins before the task's first event that
/// was not shown.
pub(crate) async fn follow_task(
    client: &Client,
    follow: &mut Follow,
    task: &TaskId,
    form: Form,
    show_event: impl Fn(&Entry) -> Result<(), Failure>,
) -> Result<Outcome, Failure> {
    while let Some(followed) = follow.next().await {
        match followed {
            Followed::Entry(entry) => {
                show_event(&entry)?;
                if is_for_person(&entry.event) {
                    show_unshown(client, task, form).await?;
                }
                if matches!(entry.event, Event::TaskIdle { .. })
                    && let Some(outcome) = outcome(client, task).await?
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
