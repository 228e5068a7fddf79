//! The play: which part an agent has in it, and what it does next.

use crate::inbound::{Attachment, Form, Inbound, Sender};
use crate::reading::{Called, Outcome, Scene, Step};
use crate::words::Words;
use crate::{facts, lead, reader, root};
use polity_society::id::{AgentId, ArtifactId};
use serde_json::{Map, Value, json};

/// The most of a prompt that is quoted in a message, in characters.
const MOST_QUOTED_CHARS: usize = 20_000;

/// What an agent does next.
#[derive(Debug, PartialEq)]
pub(crate) enum Move {
    /// It ends its turn with these lines.
    Say(String),
    /// It calls tools.
    Call(Vec<Call>),
}

/// A tool to be called.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: Tool,
    pub(crate) arguments: Map<String, Value>,
}

/// The tools that the play needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    CreateRole,
    SpawnAgentWithTask,
    SendMessage,
    FindCapableAgents,
    PutArtifact,
}

impl Tool {
    /// The name that it is called by.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CreateRole => "create_role",
            Self::SpawnAgentWithTask => "spawn_agent_with_task",
            Self::SendMessage => "send_message",
            Self::FindCapableAgents => "find_capable_agents",
            Self::PutArtifact => "put_artifact",
        }
    }

    /// One call of it.
    pub(crate) fn with<const N: usize>(self, arguments: [(&str, Value); N]) -> Call {
        let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Call { tool: self, arguments }
    }
}

/// The parts in the play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Character {
    /// Talks to the person and hires the lead.
    Root,
    /// Hired by root: sees that all attachments are read, and reports.
    Lead,
    /// Anybody else: tells what it sees, and never hires, so that no play goes on for ever.
    Reader,
}

impl Character {
    fn of(scene: &Scene<'_>) -> Self {
        if scene.me.as_ref().is_some_and(AgentId::is_root) {
            return Self::Root;
        }
        if scene.parent.as_ref().is_some_and(AgentId::is_root) { Self::Lead } else { Self::Reader }
    }
}

/// What the agent does next.
pub(crate) fn next_move(scene: &Scene<'_>) -> Move {
    match Character::of(scene) {
        Character::Root => root::next_move(scene),
        Character::Lead => lead::next_move(scene),
        Character::Reader => Move::Say(reader::closing(scene)),
    }
}

/// What the agent says where it would like to call a tool and may not.
pub(crate) fn closing_without_tools(scene: &Scene<'_>) -> String {
    let words = scene.language.words();
    let known = match Character::of(scene) {
        Character::Root => root::known(scene),
        Character::Lead => lead::known(scene),
        Character::Reader => reader::closing(scene),
    };
    format!("{}\n{known}", words.say(&words.common.no_tools, &[]))
}

/// What another agent said, line by line: of a message only what carries the mark, since the rest is the system's.
/// All of it where nothing is marked, because then another model wrote it.
pub(crate) fn said_by_agent(inbound: &Inbound<'_>, words: &Words) -> String {
    let marked: Vec<&str> = inbound.lines.iter().filter_map(|line| marked_part(line, words)).collect();
    if marked.is_empty() { words.marked(&inbound.words().join("\n")) } else { marked.join("\n") }
}

/// The line from the mark on, where nothing but punctuation stands before it: the system puts a sign before lines
/// that open with a bracket.
pub(crate) fn marked_part<'a>(line: &'a str, words: &Words) -> Option<&'a str> {
    let (before, marked) = line.split_at(line.find(&words.mark)?);
    (!before.contains(char::is_alphanumeric)).then_some(marked)
}

/// Hires somebody into a role and gives it its work: the brief, and a first message with the attachments.
pub(crate) fn assign(role_id: &str, brief: &Value, text: &str, artifacts: &[ArtifactId]) -> Call {
    let message = json!({
        "message_type": "task_assignment",
        "taskBrief": brief,
        "text": text,
        "attachments": references(artifacts),
    });
    let arguments = [("roleId", json!(role_id)), ("taskBrief", json!(brief)), ("initialMessage", message)];
    Tool::SpawnAgentWithTask.with(arguments)
}

/// What went wrong with a call, if something did.
pub(crate) fn failure(called: &Called<'_>, words: &Words) -> Option<String> {
    let no_result = words.common.no_result.fill(&[]);
    let (error, message) = match called.outcome() {
        Outcome::Done(_) => return None,
        Outcome::Refused { error, message } => (error, message),
        Outcome::Missing => (no_result.as_str(), ""),
    };
    let values = [("tool", called.tool), ("error", error), ("message", message)];
    Some(words.say(&words.common.failed, &values).trim_end().to_owned())
}

/// What the system told in the last turn.
pub(crate) fn notices(scene: &Scene<'_>) -> Vec<String> {
    let words = scene.language.words();
    let notice = |step: &Step<'_>| match step {
        Step::Heard(inbound) if inbound.sender == Sender::System => {
            Some(words.say(&words.common.system_said, &[("text", &inbound.words().join("\n"))]))
        }
        Step::Heard(_) | Step::Called(_) | Step::Said => None,
    };
    scene.unsaid().iter().filter_map(notice).collect()
}

/// A line about one attachment.
pub(crate) fn attachment_line(attachment: &Attachment<'_>, words: &Words) -> String {
    let told = match &attachment.form {
        Form::Described { .. } => words.reader.unreadable.fill(&[]),
        Form::Text(lines) => facts::count(lines.join("\n").trim()).tell(words),
        Form::Medium { data, declared } => facts::look_at(data).tell(words, data.len(), declared),
    };
    let nameless = words.common.nameless.fill(&[]);
    let name = attachment.name.unwrap_or(&nameless);
    let reference = attachment.artifact.as_ref().map_or_else(|| "-".to_owned(), ArtifactId::reference);
    words.say(&words.common.attachment, &[("name", name), ("reference", &reference), ("facts", &told)])
}

/// References as a list for readers.
pub(crate) fn list_of(artifacts: &[ArtifactId], words: &Words) -> String {
    artifacts.iter().map(ArtifactId::reference).collect::<Vec<_>>().join(&words.comma)
}

/// References as a list for a call.
pub(crate) fn references(artifacts: &[ArtifactId]) -> Vec<String> {
    artifacts.iter().map(ArtifactId::reference).collect()
}

/// The lines of a prompt, quoted; what is too long is left out.
pub(crate) fn quotation(lines: &[&str], words: &Words) -> String {
    let mut left = MOST_QUOTED_CHARS;
    let mut quoted = Vec::new();
    for line in lines {
        let length = line.chars().count();
        if length > left {
            quoted.push("…");
            break;
        }
        left -= length;
        quoted.push(line);
    }
    words.quoted(&quoted)
}
