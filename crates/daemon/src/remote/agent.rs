//! `polity agent ID`: shows one agent, its conversation, or the next request to its model.

use super::agents;
use super::words::{moment, name_of, now};
use super::{Shape, Source, named_task};
use crate::failure::Failure;
use crate::output::Page;
use crate::output::table::{BAD, Cell, DIM, HELD, NAME, PLAIN, block, painted, table, whole_line};
use crate::output::width::width;
use crate::output::{bytes, complain, print_json, show};
use clap::Args;
use polity_client::{Client, Media};
use polity_society::agent::Standing;
use polity_society::brief::TaskBrief;
use polity_society::id::{AgentId, TaskId};
use polity_view::{
    AgentDetail, CommandFilter, CommandView, ContactView, ConversationView, EntryView, MessageView,
    RequestPreview, RightView, SentRequest, elapsed,
};
use serde_json::Value;

/// `polity agent`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The id of the agent.
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    shape: Shape,
    /// Show the agent's conversation in a task: the stored records of what the agent received, said and did.
    #[arg(long)]
    conversation: bool,
    /// Show the request that the agent's model would get now, as JSON.
    #[arg(long, conflicts_with = "conversation")]
    request: bool,
    /// Show a request exactly as it was sent to the agent's model; `--conversation` and `polity events` name the
    /// numbers of the requests. Media are shown by reference.
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["conversation", "request", "task"])]
    sent: Option<i64>,
    /// The task of the conversation or request [default: the task that the agent was hired for; for root, the newest
    /// task].
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Include the bytes of pictures, sound and files in the request.
    #[arg(long, requires = "request")]
    full: bool,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let id = AgentId::new(arguments.id);
    let task = named_task(&client, arguments.task).await?;
    if let Some(number) = arguments.sent {
        let sent = client.sent(number).await?;
        if sent.agent != id {
            return Err(Failure::NotItsRequest { number, agent: sent.agent });
        }
        match arguments.shape.form() {
            crate::output::Form::Json => print_json(&sent)?,
            crate::output::Form::Text => {
                complain(&sent_in_words(&sent));
                show(&block("", &body_in_words(&sent)))?;
            }
        }
    } else if arguments.conversation {
        let conversation = whole_conversation(&client, &id, task).await?;
        arguments.shape.one(&conversation, conversation_in_words)?;
    } else if arguments.request {
        let media = if arguments.full { Media::Whole } else { Media::Measured };
        let preview = client.request(&id, task.as_ref(), media).await?;
        match arguments.shape.form() {
            crate::output::Form::Json => print_json(&preview)?,
            crate::output::Form::Text => {
                // Standard output gets only the request, so that other programs can parse it.
                complain(&facts_in_words(&preview));
                show(&block("", &format!("{:#}", preview.request)))?;
            }
        }
    } else {
        let detail = client.agent(&id).await?;
        let commands = client.commands(&CommandFilter { agent: Some(id), task: None }).await?;
        arguments.shape.one(&detail, |detail| in_words(detail, &commands, now(), width()))?;
    }
    Ok(0)
}

/// Fetches a whole conversation, page by page.
pub(crate) async fn whole_conversation(
    client: &Client,
    id: &AgentId,
    task: Option<TaskId>,
) -> Result<ConversationView, Failure> {
    let mut conversation = client.conversation(id, task.as_ref(), None).await?;
    // If no task was given, the daemon has chosen a task. The other pages must come from the same task.
    let task = Some(conversation.task.clone());
    while let Some(before) = conversation.next {
        let mut earlier = client.conversation(id, task.as_ref(), Some(before)).await?;
        earlier.entries.append(&mut conversation.entries);
        conversation = earlier;
    }
    Ok(conversation)
}

/// Follows a list that leaves out its older part.
const OLDER: &str = "and older ones";

/// Formats all details of an agent, and its running commands. `now` is the time in milliseconds since 1970.
fn in_words(detail: &AgentDetail, commands: &[CommandView], now: i64, columns: Option<usize>) -> String {
    let agent = &detail.agent;
    let mut parts = vec![agents::one(agent, now, columns)];
    if let Some(parent) = &agent.parent {
        parts.push(line("hired by", &format!("{parent}, {}", moment(agent.created_at))));
    }
    if let Some(ended) = agent.ended_at {
        parts.push(line("ended", &moment(ended)));
    }
    if let (Some(service), Some(model)) = (&agent.service, &agent.model) {
        parts.push(line("model", &format!("{service}/{model}")));
    }
    if let Some(capabilities) = &agent.capabilities {
        let names = |side: &[polity_society::content::Capability]| {
            side.iter().map(|capability| capability.as_str()).collect::<Vec<_>>().join(", ")
        };
        parts.push(line("takes", &names(&capabilities.input)));
        parts.push(line("gives", &names(&capabilities.output)));
    }
    if !detail.rights.is_empty() {
        // What an agent may do must stay whole, so this line is not cut.
        let words = rights_in_words(&detail.rights);
        parts.push(format!("  {} {}", painted(DIM, "may use:"), whole_line(&words)));
    }
    if !detail.tasks.is_empty() {
        let older = detail.more_tasks.then_some(OLDER);
        let tasks: Vec<&str> = detail.tasks.iter().map(TaskId::as_str).chain(older).collect();
        parts.push(line("tasks", &tasks.join(", ")));
    }
    if !detail.children.is_empty() {
        let older = detail.more_children.then_some(OLDER);
        let children: Vec<&str> = detail.children.iter().map(AgentId::as_str).chain(older).collect();
        parts.push(line("has hired", &children.join(", ")));
    }
    for hold in &detail.holds {
        parts.push(format!("  {}", painted(HELD, &format!("parked in {}: {}", hold.task, hold.reason))));
    }
    if !commands.is_empty() {
        parts.push(painted(NAME, "running commands"));
        parts.extend(commands.iter().map(|command| command_in_words(command, now, columns)));
    }
    if let Some(prompt) = &detail.role_prompt {
        parts.push(format!("{}\n{}", painted(NAME, "role"), block("    ", prompt)));
    }
    if let Some(brief) = &detail.brief {
        parts.push(format!("{}\n{}", painted(NAME, "brief"), brief_in_words(brief)));
    }
    if !detail.contacts.is_empty() {
        let rows: Vec<Vec<Cell>> = detail.contacts.iter().map(contact).collect();
        let head = if detail.more_contacts { "contacts, without older ones" } else { "contacts" };
        parts.push(format!("{}\n{}", painted(NAME, head), table(&rows, columns)));
    }
    parts.join("\n")
}

fn line(name: &str, value: &str) -> String {
    format!("  {} {}", painted(DIM, &format!("{name}:")), painted(PLAIN, value))
}

/// Lists the groups of tools that an agent may use, then the forbidden groups. After each group, says what gives or
/// forbids it: a setting, or a role and the agent with this role.
fn rights_in_words(rights: &[RightView]) -> String {
    let (allowed, denied): (Vec<&RightView>, Vec<&RightView>) =
        rights.iter().partition(|right| right.allowed);
    let mut words: Vec<String> = allowed.iter().map(|right| granted_in_words(right)).collect();
    if words.is_empty() {
        words.push("no group of tools".to_owned());
    }
    let mut line = words.join(", ");
    for right in denied {
        let place = place_in_words(right.denied_in.as_deref(), right.denied_by.as_ref());
        line.push_str(&format!("; not {} ({place})", right.group));
    }
    line
}

/// Names a group that an agent may use, and what gives it. If the setting gives it by another name than its own, names
/// this name, too.
fn granted_in_words(right: &RightView) -> String {
    let place = place_in_words(right.granted_in.as_deref(), right.granted_by.as_ref());
    let group = right.group.to_string();
    match right.root_grant.as_deref().filter(|grant| right.granted_by.is_none() && *grant != group) {
        Some(grant) => format!("{group} ({place}: {grant})"),
        None => format!("{group} ({place})"),
    }
}

fn place_in_words(place: Option<&str>, by: Option<&AgentId>) -> String {
    let by = by.map_or_else(String::new, |agent| format!(" of {agent}"));
    format!("{}{by}", place.unwrap_or_default())
}

/// Formats a running command: its id, how long it has been running, what it uses, and the end of its output.
fn command_in_words(command: &CommandView, now: i64, columns: Option<usize>) -> String {
    let id = command.id.as_ref().map_or("in the foreground", |id| id.as_str());
    let plural = if command.processes == 1 { "" } else { "es" };
    let uses = format!("{} process{plural}, {} of memory", command.processes, bytes(command.memory_bytes));
    let facts: Vec<String> = elapsed(command.since, now).into_iter().chain([uses]).collect();
    let row = vec![
        Cell::new(NAME, id).after("    "),
        Cell::new(PLAIN, &command.command),
        Cell::new(DIM, &facts.join(", ")),
    ];
    let output = block("        ", &command.output);
    let lines = [table(&[row], columns), output];
    lines.into_iter().filter(|lines| !lines.is_empty()).collect::<Vec<_>>().join("\n")
}

fn contact(contact: &ContactView) -> Vec<Cell> {
    let by = contact.introduced_by.as_ref().map_or_else(String::new, |by| format!("introduced by {by}"));
    let (style, standing) = match contact.standing {
        Standing::Active => (NAME, ""),
        Standing::Ended => (DIM, "ended"),
    };
    vec![
        Cell::new(style, contact.agent.as_str()).after("    "),
        Cell::new(PLAIN, &contact.role),
        Cell::new(DIM, &name_of(&contact.source)),
        Cell::new(DIM, &by),
        Cell::new(DIM, standing),
    ]
}

fn brief_in_words(brief: &TaskBrief) -> String {
    let mut lines = vec![block("    ", &brief.objective)];
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            lines.push(format!("    {} {}", painted(DIM, &format!("{name}:")), painted(PLAIN, &value)));
        }
    };
    field("constraints", brief.constraints.join("; "));
    field("inputs", text_of(&brief.inputs));
    field("outputs", text_of(&brief.outputs));
    field("done when", text_of(&brief.completion_criteria));
    for (name, value) in &brief.more {
        field(name, text_of(value));
    }
    lines.join("\n")
}

/// Returns a string as it is, and any other value as JSON.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Formats a conversation, oldest record first.
pub(crate) fn conversation_in_words(conversation: &ConversationView) -> String {
    let entries: Vec<String> = conversation.entries.iter().map(entry_in_words).collect();
    entries.join("\n")
}

/// Formats one record of a conversation.
pub(crate) fn entry_in_words(entry: &EntryView) -> String {
    let record = &entry.record;
    let sort = record.get("record").and_then(Value::as_str).unwrap_or_default();
    let head = |words: &str| format!("{} {}", painted(DIM, &moment(entry.at)), painted(NAME, words));
    let text = |name: &str| record.get(name).map(text_of).unwrap_or_default();
    match sort {
        "heard" => match record.get("message").cloned().map(serde_json::from_value::<MessageView>) {
            Some(Ok(message)) => super::messages::in_words(&message, Page::Pipe),
            _ => head(&format!("heard {}, which was removed", text("message"))),
        },
        "replied" => {
            let mut words = head("replied");
            if let Some(number) = entry.sent {
                words.push_str(&format!(" {}", painted(DIM, &format!("request {number}"))));
            }
            if let Some(said) = record.get("text").and_then(Value::as_str) {
                words.push_str(&format!("\n{}", block("    ", said)));
            }
            let calls = record.get("calls").and_then(Value::as_array);
            for call in calls.into_iter().flatten() {
                words.push_str(&format!("\n{}", block("    ", &format!("→ {call}"))));
            }
            words
        }
        "failed" | "stopped" => {
            format!("{} {}", head(sort), painted(BAD, &text("reason")))
        }
        other => {
            let rest: serde_json::Map<String, Value> = record
                .iter()
                .filter(|(name, _)| *name != "record")
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            format!("{}\n{}", head(other), block("    ", &Value::Object(rest).to_string()))
        }
    }
}

/// Formats the facts about the next request to a model, such as its size. Also says in which form the request contains
/// each artifact: for example the picture itself, or only a description.
fn facts_in_words(preview: &RequestPreview) -> String {
    let mut parts = vec![format!(
        "{}/{}, configuration {}, about {} tokens",
        preview.service, preview.model, preview.revision, preview.estimated_tokens
    )];
    for shown in &preview.shown {
        parts.push(format!("{} as {}", shown.artifact.reference(), shown.routing.as_str()));
    }
    parts.join("\n")
}

/// Formats the facts about a request that was sent: for example, to which service it went, and in which form it
/// contained each artifact.
fn sent_in_words(sent: &SentRequest) -> String {
    let (number, agent, turn) = (sent.number, &sent.agent, sent.turn);
    let mut parts = vec![format!(
        "request {number} of {agent}, turn {turn}, to {}/{}, configuration {}, {}",
        sent.service,
        sent.model,
        sent.revision,
        sent.outcome.as_str()
    )];
    for shown in &sent.shown {
        parts.push(format!("{} as {}", shown.artifact.reference(), shown.routing.as_str()));
    }
    parts.join("\n")
}

/// Formats the body of a request as indented JSON.
fn body_in_words(sent: &SentRequest) -> String {
    let Some(body) = &sent.body else {
        return "The body was not kept, because the task has too many texts of requests.".to_owned();
    };
    serde_json::from_str::<Value>(body).map_or_else(|_| body.clone(), |body| format!("{body:#}"))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{NOW, commands, conversation, detail, preview};
    use super::*;
    use crate::output::table::without_styles;

    #[test]
    fn an_agent_in_words() {
        insta::assert_snapshot!(without_styles(&in_words(&detail(), &commands(), NOW, None)), @r#"
agent-sae2  组长  thinking at local, 12 s, 81 tokens, waits for agent-7cwh  2 messages wait  local  12 calls, 19200 + 324 tokens
  hired by: root, 1970-01-01 00:00:00
  model: local/qwen3-vl:8b
  takes: text
  gives: text
  may use: organization (red <U+001B>[31m<U+0007> and more of lead-2k7f), files (tools.root), mcp:git (tools.root: mcp:*); not artifacts (red <U+001B>[31m<U+0007> and more of lead-2k7f); not context (tools.root)
  tasks: task-4x2k
  has hired: agent-7cwh, writer-11aa, and older ones
  parked in task-4x2k: red <U+001B>[31m<U+0007> and more
running commands
    cmd-0f3a91c2  cargo test  1 min 5 s, 3 processes, 104.8 MB of memory
        running 12 tests
        red <U+001B>[31m<U+0007> and
        more
    in the foreground  red <U+001B>[31m<U+0007> and more  1 process, 0 bytes of memory
role
    Lead the work.
    red <U+001B>[31m<U+0007> and
    more
brief
    Read the picture.
    constraints: no guessing
    inputs: artifact:mmpqmm6wc2
    outputs: {"facts":"list"}
    done when: every fact is checked
    deadline: noon
contacts, without older ones
    agent-7cwh  阅读者  introduction  introduced by root  ended
"#);
    }

    #[test]
    fn a_conversation_in_words() {
        insta::assert_snapshot!(without_styles(&conversation_in_words(&conversation())), @r#"
1970-01-01 00:00:00 m000000001 user → root general answered by m000000004
    看看这张图片
    + artifact:mmpqmm6wc2 (picture.png, 930 bytes)
1970-01-01 00:00:02 heard m000000009, which was removed
1970-01-01 00:00:03 replied request 17
    red <U+001B>[31m<U+0007> and
    more
    → {"id":"c1","name":"send_message","arguments":"{}"}
1970-01-01 00:00:04 tool_finished
    {"call":"c1","result":{"json":{"ok":true}}}
1970-01-01 00:00:05 failed red <U+001B>[31m<U+0007> and more
"#);
    }

    #[test]
    fn facts_about_a_request_in_words() {
        insta::assert_snapshot!(without_styles(&facts_in_words(&preview())), @r"
local/qwen3-vl:8b, configuration 3, about 1660 tokens
artifact:mmpqmm6wc2 as image_url
");
    }
}
