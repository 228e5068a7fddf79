//! `polity events`: lists past events, and follows new ones.

use super::words::clock;
use super::{Shape, Source, named_party, named_task};
use crate::failure::Failure;
use crate::output::table::{DIM, NAME, painted};
use crate::output::{Form, complain, in_words, print_json, show};
use crate::signals::Interruption;
use clap::Args;
use polity_client::{Client, Follow, Followed, Side};
use polity_view::Entry;
use polity_view::{EventFilter, MAX_PAGE};
use serde_json::Value;

/// `polity events`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Keep printing new events, also after the daemon is restarted, until Ctrl-C. Needs a daemon.
    #[arg(long)]
    follow: bool,
    /// Only events after the event with this number; 0 lists all stored events.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    after: Option<i64>,
    /// Maximum number of events. With --after, the oldest events are listed, otherwise the newest [default: 50; with
    /// --after, all].
    #[arg(long, value_name = "COUNT")]
    limit: Option<u32>,
    /// Only events of this task, and events about its agents.
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Only events about this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only events of this kind, such as `message_accepted`; may be given several times.
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
}

/// Number of events to list by default.
const SHOWN: u32 = 50;

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client =
        if arguments.follow { arguments.source.daemon()? } else { arguments.source.client().await? };
    let filter = EventFilter {
        task: named_task(&client, arguments.task).await?,
        agent: named_party(&client, arguments.agent).await?,
        kinds: arguments.kind,
    };
    let form = arguments.shape.form();
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    let shown = async {
        let seen = match arguments.after {
            Some(after) => after_that(&client, after, arguments.limit, &filter, form).await?,
            None => newest(&client, arguments.limit.unwrap_or(SHOWN), &filter, form).await?,
        };
        if arguments.follow {
            follow(&mut client.follow(seen, filter), form).await?;
        }
        Ok(0)
    };
    tokio::select! {
        code = shown => code,
        // Ctrl-C is the normal end of following, so it is not a failure.
        () = interruption.happened() => if arguments.follow { Ok(0) } else { Err(Failure::Left) },
    }
}

/// Returns the number of the newest event, or 0 if there is none.
pub(crate) async fn newest_event(client: &Client) -> Result<i64, Failure> {
    let page = client.events(Side::Before(i64::MAX), 1, &EventFilter::default()).await?;
    Ok(page.events.last().map_or(0, |entry| entry.seq))
}

/// Prints the newest events that pass the filter; returns the number of the newest event, whether or not it passes.
async fn newest(client: &Client, limit: u32, filter: &EventFilter, form: Form) -> Result<i64, Failure> {
    // Read the number of the newest event before the pages of events. With `--follow`, the event stream then begins
    // after this number, so no event is missed.
    let last = newest_event(client).await?;
    let mut pages = Vec::new();
    let mut left = limit;
    let mut before = last.saturating_add(1);
    while left > 0 {
        let page = client.events(Side::Before(before), left.min(MAX_PAGE), filter).await?;
        let Some(first) = page.events.first() else { break };
        before = first.seq;
        left = left.saturating_sub(u32::try_from(page.events.len()).unwrap_or(u32::MAX));
        pages.push(page.events);
    }
    for entry in pages.iter().rev().flatten() {
        show_entry(entry, form)?;
    }
    Ok(last)
}

/// Prints the stored events after the event number `after`; returns the number of the last event that it has read.
async fn after_that(
    client: &Client,
    after: i64,
    limit: Option<u32>,
    filter: &EventFilter,
    form: Form,
) -> Result<i64, Failure> {
    let mut seen = after;
    let mut left = limit.unwrap_or(u32::MAX);
    while left > 0 {
        let page = client.events(Side::After(seen), left.min(MAX_PAGE), filter).await?;
        for entry in &page.events {
            show_entry(entry, form)?;
        }
        left = left.saturating_sub(u32::try_from(page.events.len()).unwrap_or(u32::MAX));
        if page.events.is_empty() {
            break;
        }
        seen = page.next.max(page.events.last().map_or(seen, |entry| entry.seq));
    }
    Ok(seen)
}

/// Prints new events until the stream fails.
pub(crate) async fn follow(follow: &mut Follow, form: Form) -> Result<(), Failure> {
    while let Some(followed) = follow.next().await {
        match followed {
            Followed::Entry(entry) => show_entry(&entry, form)?,
            Followed::Glimpse(_) | Followed::Connected => {}
            Followed::Lost(loss) => complain(loss.words()),
            Followed::Failed(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn show_entry(entry: &Entry, form: Form) -> Result<(), Failure> {
    match form {
        Form::Json => print_json(entry),
        Form::Text => show(&line(entry)),
    }
}

/// Formats an event as one line.
pub(crate) fn line(entry: &Entry) -> String {
    let what = in_words(&entry.event).unwrap_or_else(|| fields(entry));
    format!("{} {} {what}", painted(DIM, &entry.seq.to_string()), painted(DIM, &clock(entry.at)))
}

/// Formats an event that has no text of its own: its kind and its fields.
fn fields(entry: &Entry) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(&entry.event) else { return String::new() };
    let mut words = Vec::new();
    for (name, value) in &fields {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        words.push(if name == "event" {
            painted(NAME, &value)
        } else {
            painted(DIM, &format!("{name}={value}"))
        });
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::examples::entries;
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn every_event_has_a_line() {
        let lines: Vec<String> = entries().iter().map(|entry| without_styles(&line(entry))).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
1 00:00:01 task_started task=task-4x2k
2 00:00:02 user → root general 看看这张图片
3 00:00:03 turn_started task=task-4x2k agent=root message=m000000001
4 00:00:04 root heard from local/qwen3-vl:8b, 1660 + 27 tokens
5 00:00:05 root hired agent-sae2: red <U+001B>[31m<U+0007> and more
6 00:00:06 agent-sae2: attempt 1 at local failed (red <U+001B>[31m<U+0007> and more); trying again
7 00:00:07 agent-sae2 was paused
8 00:00:08 root → user general red <U+001B>[31m<U+0007> and more
9 00:00:09 turn_ended task=task-4x2k agent=root
10 00:00:10 task_idle task=task-4x2k outcome=answered
"#);
    }
}
