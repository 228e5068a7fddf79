//! `polity export`: writes a whole task into one file, as Markdown for people or as JSON for programs.

use super::Source;
use super::agent::whole_conversation;
use super::agents::tree;
use super::artifacts::{fetch, own_name};
use super::words::{name_of, usage, variant};
use crate::failure::Failure;
use crate::output::bytes;
use crate::output::terminal::harmless;
use crate::output::{Meter, complain, one_line, print};
use clap::Args;
use jiff::Timestamp;
use polity_client::Client;
use polity_society::id::{MessageId, TaskId};
use polity_society::message::Finality;
use polity_view::{
    AgentDetail, AgentFilter, AgentView, ArtifactFilter, ArtifactView, ConversationView, MAX_PAGE,
    MessageFilter, MessageView, Order, TaskFilter, TaskView, UsageFilter, UsageView,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// `polity export`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The task to export [default: the newest].
    #[arg(value_name = "TASK")]
    task: Option<String>,
    /// `md`, for people: the agents, messages and artifacts; or `json`, for programs: also the conversations of all
    /// agents and all details.
    #[arg(long, default_value = "md", value_parser = variant::<Format>)]
    format: Format,
    /// The file to write [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also write the artifacts into this directory.
    #[arg(long, value_name = "DIR")]
    with_artifacts: Option<PathBuf>,
    #[command(flatten)]
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Md,
    Json,
}

/// Everything about a task.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    task: TaskView,
    agents: Vec<AgentDetail>,
    messages: Vec<MessageView>,
    artifacts: Vec<ArtifactView>,
    conversations: Vec<ConversationView>,
    usage: UsageView,
    /// The files into which artifacts were written, by artifact id.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, PathBuf>,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let client = arguments.source.client().await?;
    let task = match arguments.task {
        Some(task) => client.task(&TaskId::new(task)).await?,
        None => {
            let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
            client.tasks(&filter).await?.tasks.pop().ok_or(Failure::NoTask)?
        }
    };
    let mut export = gather(&client, task, arguments.format).await?;
    let mut all = 0;
    if let Some(dir) = &arguments.with_artifacts {
        let artifacts = with_attached(&export);
        all = artifacts.len();
        export.files = write_artifacts(&client, &artifacts, dir).await?;
    }
    let failed = all - export.files.len();
    let text = match arguments.format {
        Format::Md => markdown(&export),
        Format::Json => {
            serde_json::to_string_pretty(&export).map_err(|error| Failure::Defect(error.to_string()))?
        }
    };
    match arguments.output {
        Some(path) => {
            std::fs::write(&path, format!("{text}\n"))
                .map_err(|source| Failure::Unwritable { path: path.clone(), source })?;
            complain(&format!("{}: {}", path.display(), bytes(text.len() as u64 + 1)));
        }
        None => print(&text)?,
    }
    match arguments.with_artifacts {
        Some(dir) if failed > 0 => Err(Failure::Incomplete { failed, all, dir }),
        Some(_) | None => Ok(0),
    }
}

async fn gather(client: &Client, task: TaskView, format: Format) -> Result<Export, Failure> {
    let meter = Meter::new("reading the task", None);
    let id = task.id.clone();
    let messages = all_messages(client, &id).await?;
    let artifacts = all_artifacts(client, &id).await?;
    let filter = AgentFilter { task: Some(id.clone()), include_ended: true, ..AgentFilter::default() };
    let there = client.all_agents(&filter).await?.agents;
    let mut agents = Vec::with_capacity(there.len());
    let mut conversations = Vec::new();
    let mut read = 0;
    for agent in there.into_iter().filter(|agent| !agent.id.is_user()) {
        if format == Format::Json
            && let Some(conversation) = conversation(client, &agent, &id).await?
        {
            read += conversation.entries.len() as u64;
            conversations.push(conversation);
        }
        let detail = client.agent(&agent.id).await?;
        // The list of agents was filtered by the task, so the values in `agent`, such as its usage, cover only this
        // task. The values in `detail.agent` cover all tasks.
        agents.push(AgentDetail { agent, ..detail });
        meter.at(read);
    }
    let usage = client.usage(&UsageFilter { task: Some(id), agent: None }).await?;
    Ok(Export { task, agents, messages, artifacts, conversations, usage, files: BTreeMap::new() })
}

/// Fetches the conversation of an agent in a task; returns nothing if the agent took no part in it.
async fn conversation(
    client: &Client,
    agent: &AgentView,
    task: &TaskId,
) -> Result<Option<ConversationView>, Failure> {
    match whole_conversation(client, &agent.id, Some(task.clone())).await {
        Ok(conversation) => Ok(Some(conversation)),
        Err(Failure::Client(polity_client::Error::Refused(problem))) if problem.status == 404 => Ok(None),
        Err(failure) => Err(failure),
    }
}

async fn all_messages(client: &Client, task: &TaskId) -> Result<Vec<MessageView>, Failure> {
    let mut filter = MessageFilter {
        task: Some(task.clone()),
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

async fn all_artifacts(client: &Client, task: &TaskId) -> Result<Vec<ArtifactView>, Failure> {
    let mut filter =
        ArtifactFilter { task: Some(task.clone()), limit: Some(MAX_PAGE), ..ArtifactFilter::default() };
    let mut all = Vec::new();
    loop {
        let page = client.artifacts(&filter).await?;
        all.extend(page.artifacts);
        if page.next.is_none() {
            // The API lists the newest artifacts first, but the export lists everything oldest first.
            all.reverse();
            return Ok(all);
        }
        filter.after = page.next;
    }
}

/// Returns the artifacts of a task, and artifacts of other tasks that are attached to messages of this task.
fn with_attached(export: &Export) -> Vec<ArtifactView> {
    let attached = export.messages.iter().flat_map(|message| &message.attachments);
    let mut seen = BTreeSet::new();
    export.artifacts.iter().chain(attached).filter(|artifact| seen.insert(&artifact.id)).cloned().collect()
}

/// Writes artifacts into files; returns the files by artifact id. If writing one artifact fails, still writes the
/// other artifacts.
async fn write_artifacts(
    client: &Client,
    artifacts: &[ArtifactView],
    dir: &Path,
) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let unwritable = |source| Failure::Unwritable { path: dir.to_owned(), source };
    std::fs::create_dir_all(dir).map_err(unwritable)?;
    let mut files = BTreeMap::new();
    for artifact in artifacts {
        let path = dir.join(file_name(artifact));
        match fetch(client, artifact, &path).await {
            Ok(()) => {
                files.insert(artifact.id.to_string(), path);
            }
            Err(failure) => complain(&format!("{}: {failure}", artifact.reference)),
        }
    }
    Ok(files)
}

/// Returns the file name for an artifact. The name contains the id, so no two artifacts get the same name.
fn file_name(artifact: &ArtifactView) -> PathBuf {
    let own = own_name(artifact);
    let id = artifact.id.as_str();
    if own == Path::new(id) { own } else { PathBuf::from(format!("{id}-{}", own.display())) }
}

fn markdown(export: &Export) -> String {
    let task = &export.task;
    let title = if task.title.is_empty() { task.id.as_str() } else { &task.title };
    let mut parts = vec![format!("# {}", line(title))];
    let standing = task.outcome.map_or_else(|| name_of(&task.state), |outcome| name_of(&outcome));
    let mut facts = vec![
        format!("- task: {}", code(task.id.as_str())),
        format!("- begun: {}", when(task.created_at)),
        format!("- state: {standing}"),
    ];
    if let Some(by) = &task.stopped_by {
        facts.push(format!("- stopped by: {}", line(by)));
    }
    if task.forgotten_at.is_some() {
        facts.push("- its messages and records were removed to make room".to_owned());
    }
    let spent = usage(&export.usage.total);
    if !spent.is_empty() {
        facts.push(format!("- spent: {spent}"));
    }
    parts.push(facts.join("\n"));
    parts.push("## Agents".to_owned());
    parts.push(agents(&export.agents));
    parts.push("## Messages".to_owned());
    parts.extend(export.messages.iter().map(|said| message(said, &export.files)));
    if !export.artifacts.is_empty() {
        parts.push("## Artifacts".to_owned());
        let artifacts: Vec<String> = export
            .artifacts
            .iter()
            .map(|artifact| format!("- {}", stored(artifact, &export.files)))
            .collect();
        parts.push(artifacts.join("\n"));
    }
    parts.join("\n\n")
}

/// Formats the agents as a nested list, each with the objective that it was hired for.
fn agents(details: &[AgentDetail]) -> String {
    let views: Vec<AgentView> = details.iter().map(|detail| detail.agent.clone()).collect();
    let mut lines = Vec::new();
    for branch in tree(&views) {
        let agent = branch.agent;
        let depth = branch.before.chars().count() / 3;
        let role =
            if agent.role == agent.id.as_str() { String::new() } else { format!(" {}", line(&agent.role)) };
        let model = match (&agent.service, &agent.model) {
            (Some(service), Some(model)) => format!(", {}", line(&format!("{service}/{model}"))),
            _ => String::new(),
        };
        let spent = usage(&agent.usage);
        let spent = if spent.is_empty() { spent } else { format!(", {spent}") };
        let brief =
            details.iter().find(|detail| detail.agent.id == agent.id).and_then(|found| found.brief.as_ref());
        let brief = brief.map_or_else(String::new, |brief| format!(": {}", line(&brief.objective)));
        lines.push(format!("{}- {}{role}{model}{spent}{brief}", "  ".repeat(depth), code(agent.id.as_str())));
    }
    lines.join("\n")
}

fn message(message: &MessageView, files: &BTreeMap<String, PathBuf>) -> String {
    let interim = if message.finality == Finality::Interim { ", interim" } else { "" };
    let requests: Vec<&str> = message.in_reply_to.iter().map(MessageId::as_str).collect();
    let answers =
        if requests.is_empty() { String::new() } else { format!(", answers {}", requests.join(", ")) };
    let mut parts = vec![format!(
        "### {} → {}\n\n{}, {}, {}{interim}{answers}",
        line(&message.from),
        line(message.to.as_str()),
        message.id,
        when(message.created_at),
        line(&message.message_type),
    )];
    if !message.text.is_empty() {
        parts.push(quoted(&message.text));
    }
    if let Some(payload) = &message.payload {
        parts.push(fenced("json", &format!("{:#}", serde_json::json!(payload))));
    }
    if !message.attachments.is_empty() {
        let attached: Vec<String> =
            message.attachments.iter().map(|artifact| format!("- {}", stored(artifact, files))).collect();
        parts.push(attached.join("\n"));
    }
    parts.join("\n\n")
}

fn stored(artifact: &ArtifactView, files: &BTreeMap<String, PathBuf>) -> String {
    let called = artifact.filename.as_deref().or(artifact.label.as_deref());
    let called = called.map_or_else(String::new, |called| format!("{}, ", line(called)));
    let facts = format!("{called}{}, {}", line(artifact.mime_type.as_str()), bytes(artifact.size));
    let file = files.get(artifact.id.as_str());
    let file = file.map_or_else(String::new, |path| {
        format!(": <{}>", path.to_string_lossy().replace(['<', '>', '\n'], "_"))
    });
    format!("{} ({facts}){file}", code(&artifact.reference))
}

/// Puts a text on one line and escapes it, so that Markdown does not interpret anything in it.
fn line(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in harmless(&one_line(text, usize::MAX)).chars() {
        if matches!(character, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Formats a name as inline code.
fn code(name: &str) -> String {
    format!("`{}`", name.replace(['`', '\n', '\r'], "_"))
}

/// Formats a text as a block quotation. The text may contain Markdown, but none of its lines can end the quotation.
fn quoted(text: &str) -> String {
    // Markdown treats a carriage return as a line break, too.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Formats a text as a code block, with a fence that is longer than any run of backticks in the text.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Formats a time in UTC, so that the export does not depend on the time zone of the machine.
fn when(at: i64) -> String {
    Timestamp::from_millisecond(at)
        .map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
        .unwrap_or_else(|_| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::examples::{artifact, artifacts, conversation, detail, messages, tasks, usage};
    use super::*;
    use proptest::prelude::*;

    fn export() -> Export {
        Export {
            task: tasks().remove(3),
            agents: vec![detail()],
            messages: messages(),
            artifacts: artifacts(),
            conversations: vec![conversation()],
            usage: usage(),
            files: BTreeMap::from([("mmpqmm6wc2".to_owned(), PathBuf::from("out/mmpqmm6wc2-picture.png"))]),
        }
    }

    #[test]
    fn a_task_as_markdown() {
        // The text for a file contains control characters. `harmless` makes them visible in the snapshot.
        insta::assert_snapshot!(harmless(&markdown(&export())), @r#"
# 看看这张图片

- task: `task-4x2k`
- begun: 1970-01-01 00:00:00 UTC
- state: open
- spent: 15 calls, 24000 + 405 tokens, 0.0123

## Agents

- `agent-sae2` 组长, local/qwen3-vl:8b, 12 calls, 19200 + 324 tokens: Read the picture.

## Messages

### user → root

m000000001, 1970-01-01 00:00:00 UTC, general

> 看看这张图片

- `artifact:mmpqmm6wc2` (picture.png, image/png, 930 bytes): <out/mmpqmm6wc2-picture.png>

### root → user

m000000002, 1970-01-01 00:00:01 UTC, general, interim

> one moment

### reader-7k2f → user

m000000004, 1970-01-01 00:00:02 UTC, general, answers m000000001

> red <U+001B>[31m<U+0007> and
> more

```json
{
  "facts": [
    "480 × 270"
  ]
}
```

### system → user

m000000005, 1970-01-01 00:00:03 UTC, notice

> A model failed.

## Artifacts

- `artifact:mmpqmm6wc2` (picture.png, image/png, 930 bytes): <out/mmpqmm6wc2-picture.png>
- `artifact:z67sthacvx` (report, text/markdown, 12.3 kB)
- `artifact:abc` (red \<U+001B\>\[31m\<U+0007\> and more, image/png, 930 bytes)
"#);
    }

    #[test]
    fn a_task_as_json_has_all_of_it() {
        let json = serde_json::to_value(export()).unwrap();
        let names: Vec<&String> = json.as_object().unwrap().keys().collect();
        assert_eq!(names, ["task", "agents", "messages", "artifacts", "conversations", "usage", "files"]);
        assert_eq!(json["messages"].as_array().map(Vec::len), Some(4));
        assert_eq!(json["conversations"][0]["entries"].as_array().map(Vec::len), Some(5));
    }

    #[test]
    fn no_two_artifacts_have_one_file() {
        let names: Vec<PathBuf> = artifacts().iter().map(file_name).collect();
        assert_eq!(
            names,
            [Path::new("mmpqmm6wc2-picture.png"), Path::new("z67sthacvx"), Path::new("abc-red [31m andmore")]
        );
    }

    #[test]
    fn what_messages_brought_along_is_written_too() {
        let mut export = export();
        let others = artifact("elsewhere", None);
        export.messages[0].attachments.push(others.clone());
        let all: Vec<_> = with_attached(&export).into_iter().map(|artifact| artifact.id).collect();
        let mut expect: Vec<_> = artifacts().into_iter().map(|artifact| artifact.id).collect();
        expect.push(others.id);
        assert_eq!(all, expect);
    }

    proptest! {
        #[test]
        fn what_was_said_stays_in_its_quotation(text in "[a`>#\n\r -]{0,40}") {
            prop_assert!(quoted(&text).split(['\n', '\r']).all(|line| line.is_empty() || line.starts_with('>')));
            prop_assert!(!line(&text).contains(['\n', '\r']));
            let whole = fenced("", &text);
            let fence = whole.split('\n').next().unwrap();
            prop_assert!(!text.contains(fence));
        }
    }
}
