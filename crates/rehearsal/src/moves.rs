//! The moves that a rehearsing agent can make next, and the texts and calls that root, lead and reader share.

use crate::facts;
use crate::inbound::{Attachment, Form, Inbound, Sender};
use crate::reading::{CallOutcome, Called, PastEvent, Scene};
use crate::words::Words;
use polity_society::id::ArtifactId;
use serde_json::{Map, Value, json};
use strum::IntoStaticStr;

/// Maximum number of characters that a message quotes from a prompt.
const MOST_QUOTED_CHARS: usize = 20_000;

/// What a rehearsing agent does next.
#[derive(Debug, PartialEq)]
pub(crate) enum Move {
    /// The agent ends its turn with this text.
    Say(String),
    /// The agent calls tools.
    Call(Vec<Call>),
}

/// A tool that the agent calls, with the arguments.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: Tool,
    pub(crate) arguments: Map<String, Value>,
}

/// The tools that rehearsing agents call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Tool {
    CreateRole,
    SpawnAgentWithTask,
    SendMessage,
    FindCapableAgents,
    PutArtifact,
    StrReplaceEditor,
    SearchFiles,
    Bash,
}

impl Tool {
    /// Returns the name by which models call the tool.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Creates a call of the tool with these arguments.
    pub(crate) fn with<const N: usize>(self, arguments: [(&str, Value); N]) -> Call {
        let arguments = arguments.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Call { tool: self, arguments }
    }
}

/// Returns what another agent said in a message. If lines have the mark, returns only these, because the system has
/// added all other lines. If no line has the mark, the message is from a model other than the built-in one. Then
/// returns all lines, and puts the mark before each.
pub(crate) fn said_by_agent(inbound: &Inbound<'_>, words: &Words) -> String {
    let marked: Vec<&str> = inbound.lines.iter().filter_map(|line| marked_part(line, words)).collect();
    if marked.is_empty() { words.marked(&inbound.words().join("\n")) } else { marked.join("\n") }
}

/// Returns the part of the line that begins with the mark. Returns `None` if there is no mark, or if a letter or digit
/// stands before the mark. Other signs may stand before it: the mark begins with a bracket, and the system puts a sign
/// before each line that begins with a bracket.
pub(crate) fn marked_part<'a>(line: &'a str, words: &Words) -> Option<&'a str> {
    let (before, marked) = line.split_at(line.find(&words.mark)?);
    (!before.contains(char::is_alphanumeric)).then_some(marked)
}

/// Creates the call that hires an agent into a role. The arguments of the call are the brief and a first message with
/// the attachments.
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

/// Describes what went wrong with a call. Returns `None` if the call succeeded.
pub(crate) fn failure(called: &Called<'_>, words: &Words) -> Option<String> {
    let no_result = words.common.no_result.fill(&[]);
    let (error, message) = match called.outcome() {
        CallOutcome::Done(_) => return None,
        CallOutcome::Refused { error, message } => (error, message),
        CallOutcome::Missing => (no_result.as_str(), ""),
    };
    let values = [("tool", called.tool), ("error", error), ("message", message)];
    Some(words.say(&words.common.failed, &values).trim_end().to_owned())
}

/// Returns the notices of the system that came after the agent's last closing text.
pub(crate) fn notices(scene: &Scene<'_>) -> Vec<String> {
    let words = scene.words();
    let notice = |step: &PastEvent<'_>| match step {
        PastEvent::Heard(inbound) if inbound.sender == Sender::System => {
            Some(words.say(&words.common.system_said, &[("text", &inbound.words().join("\n"))]))
        }
        PastEvent::Heard(_) | PastEvent::Called(_) | PastEvent::Said => None,
    };
    scene.unsaid().iter().filter_map(notice).collect()
}

/// Describes one attachment in a line.
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

/// Writes references as a list within a text.
pub(crate) fn list_of(artifacts: &[ArtifactId], words: &Words) -> String {
    artifacts.iter().map(ArtifactId::reference).collect::<Vec<_>>().join(&words.comma)
}

/// Writes references as a list for the arguments of a call.
pub(crate) fn references(artifacts: &[ArtifactId]) -> Vec<String> {
    artifacts.iter().map(ArtifactId::reference).collect()
}

/// Quotes the lines of a prompt. Stops before the line with which the quotation would exceed [`MOST_QUOTED_CHARS`].
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
