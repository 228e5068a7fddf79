//! `polity messages`: lists messages, or shows one.

use super::words::{message_style, moment, name_of, variant};
use super::{Shape, Source, named_party, named_task};
use crate::failure::Failure;
use crate::output::Page;
use crate::output::table::{DIM, HELD, NAME, block, painted};
use clap::Args;
use polity_society::id::MessageId;
use polity_society::message::{Finality, MessageState};
use polity_view::{ArtifactView, MAX_PAGE, MessageFilter, MessageView, Order};

/// `polity messages`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Show only this message.
    #[arg(value_name = "ID", conflicts_with_all = ["task", "from", "to", "with", "state", "message_type", "unshown", "limit"])]
    id: Option<String>,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Only messages of this task.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only messages from this sender: the id of an agent, `user`, or `system`.
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// Only messages to this receiver: the id of an agent, or `user`.
    #[arg(long, value_name = "AGENT")]
    to: Option<String>,
    /// Only messages that this party sent or received: the id of an agent, or `user`.
    #[arg(long, value_name = "AGENT")]
    with: Option<String>,
    /// Only messages in this state: delayed, queued, in_turn, done, answered, failed or bounced.
    #[arg(long, value_parser = variant::<MessageState>)]
    state: Option<MessageState>,
    /// Only messages of this type, such as `general`; messages of the system have the type `notice`.
    #[arg(long = "type", value_name = "TYPE")]
    message_type: Option<String>,
    /// Only messages to you that you have not been shown yet.
    #[arg(long)]
    unshown: bool,
    /// Maximum number of messages; the newest are listed.
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGE)))]
    limit: u32,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    if let Some(id) = arguments.id {
        let message = client.message(&MessageId::new(id)).await?;
        arguments.shape.one(&message, |message| in_words(message, Page::now()))?;
        return Ok(0);
    }
    let filter = MessageFilter {
        task: named_task(&client, arguments.task).await?,
        from: named_party(&client, arguments.from).await?.map(|from| from.as_str().to_owned()),
        to: named_party(&client, arguments.to).await?,
        with: named_party(&client, arguments.with).await?,
        state: arguments.state,
        message_type: arguments.message_type,
        unshown: arguments.unshown,
        after: None,
        before: None,
        order: Order::Newest,
        limit: Some(arguments.limit),
    };
    let mut messages = client.messages(&filter).await?.messages;
    messages.reverse();
    arguments.shape.list(&messages, "there are no such messages", |messages| words(messages, Page::now()))?;
    Ok(0)
}

fn words(messages: &[MessageView], page: Page) -> String {
    let messages: Vec<String> = messages.iter().map(|message| in_words(message, page)).collect();
    messages.join("\n\n")
}

/// Formats a message: a line with its facts, then its text and attachments. Leaves out the field `payload`.
pub(crate) fn in_words(message: &MessageView, page: Page) -> String {
    let mut head = format!(
        "{} {} {} → {} {}",
        painted(DIM, &moment(message.created_at)),
        painted(DIM, message.id.as_str()),
        painted(NAME, &party(&message.from, &message.from_role)),
        painted(NAME, message.to.as_str()),
        painted(DIM, &message.message_type),
    );
    if message.finality == Finality::Interim {
        head.push_str(&format!(" {}", painted(DIM, "interim")));
    }
    let requests: Vec<&str> = message.in_reply_to.iter().map(MessageId::as_str).collect();
    let answers = (!requests.is_empty()).then(|| format!("answers {}", requests.join(", ")));
    let answered = message.answered_by.as_ref().map(|by| format!("answered by {by}"));
    for reference in [answers, answered].into_iter().flatten() {
        head.push_str(&format!(" {}", painted(DIM, &reference)));
    }
    if let Some(state) = state(message) {
        head.push_str(&format!(" {}", painted(message_style(message.state), &state)));
    }
    if let (Some(due), MessageState::Delayed) = (message.due_at, message.state) {
        head.push_str(&format!(" {}", painted(HELD, &format!("until {}", moment(due)))));
    }
    let mut words = head;
    if !message.text.is_empty() {
        words.push_str(&format!("\n{}", body(&message.text, page)));
    }
    for artifact in &message.attachments {
        words.push_str(&format!("\n    + {}", attached(artifact)));
    }
    words
}

/// Returns the state of a message in words; nothing if the line names the answer already.
fn state(message: &MessageView) -> Option<String> {
    match message.state {
        MessageState::Answered if message.answered_by.is_some() => None,
        MessageState::Queued if message.to.is_user() => Some("not shown yet".to_owned()),
        state => Some(name_of(&state)),
    }
}

/// Formats the text of a message, indented. For a terminal, `Page::written` adds styles and makes control characters
/// visible. `block` would destroy these styles, so it formats only texts for a pipe.
fn body(text: &str, page: Page) -> String {
    const INDENT: &str = "    ";
    match page {
        Page::Pipe => block(INDENT, text),
        Page::Terminal { .. } => {
            let text = page.narrower(INDENT.len()).written(text);
            let lines: Vec<String> =
                text.lines().map(|line| format!("{INDENT}{line}").trim_end().to_owned()).collect();
            lines.join("\n")
        }
    }
}

/// Formats a sender: its role and its id, or only the id if there is no role or both are equal.
fn party(id: &str, role: &str) -> String {
    if role.is_empty() || role == id { id.to_owned() } else { format!("{role} {id}") }
}

/// Formats an attachment: its reference, name and size.
pub(crate) fn attached(artifact: &ArtifactView) -> String {
    let called = artifact.filename.as_deref().unwrap_or(artifact.mime_type.as_str());
    format!(
        "{} {}",
        painted(NAME, &artifact.reference),
        painted(DIM, &format!("({called}, {})", crate::output::bytes(artifact.size)))
    )
}

#[cfg(test)]
mod tests {
    use super::super::examples::messages;
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn messages_in_words() {
        insta::assert_snapshot!(without_styles(&words(&messages(), Page::Pipe)), @r"
1970-01-01 00:00:00 m000000001 user → root general answered by m000000004
    看看这张图片
    + artifact:mmpqmm6wc2 (picture.png, 930 bytes)

1970-01-01 00:00:01 m000000002 root → user general interim not shown yet
    one moment

1970-01-01 00:00:02 m000000004 阅读者 reader-7k2f → user general answers m000000001 done
    red <U+001B>[31m<U+0007> and
    more

1970-01-01 00:00:03 m000000005 system → user notice bounced
    A model failed.
");
    }
}
