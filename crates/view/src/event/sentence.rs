//! Describes events in sentences, for people who watch the society. A sentence is a list of spans: a terminal shows the
//! spans in different styles, and a program that shows plain text joins them.

use super::{Event, NextAttempt, SummarySource};
use crate::approval::ApprovalState;
use polity_society::content::Capability;
use polity_society::message::Finality;

/// Maximum length of a quoted text, in characters.
const QUOTED_CHARS: usize = 100;

/// What kind of text a span of a sentence contains. A terminal chooses a style for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    Plain,
    /// The name or id of an agent or a role.
    Name,
    /// Text that is less important than the rest of the sentence.
    Dim,
    /// Text that reports a failure.
    Bad,
}

/// A part of a sentence. The text is one line, but may quote a model or a server, so it may contain control
/// characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The kind of the text.
    pub tone: Tone,
    /// The text itself, with the spaces that separate it from its neighbours.
    pub text: String,
}

fn span(tone: Tone, text: impl Into<String>) -> Span {
    Span { tone, text: text.into() }
}

fn name(text: &str) -> Span {
    span(Tone::Name, text)
}

fn plain(text: impl Into<String>) -> Span {
    span(Tone::Plain, text)
}

fn dim(text: impl Into<String>) -> Span {
    span(Tone::Dim, text)
}

fn bad(text: impl Into<String>) -> Span {
    span(Tone::Bad, text)
}

impl Event {
    /// Formats the event as a line of plain text. Returns nothing for messages to the user, and for events of little
    /// interest, such as answers of models and changes of the configuration.
    pub fn line(&self) -> Option<String> {
        match self {
            Self::MessageAccepted { to, .. } if to.is_user() => None,
            Self::ModelAnswered { .. }
            | Self::ToolProgress { .. }
            | Self::ToolCalled { .. }
            | Self::TaskForgotten { .. }
            | Self::ConfigTaken { .. }
            | Self::ConfigRefused { .. } => None,
            event => event.sentence().map(|spans| spans.into_iter().map(|span| span.text).collect()),
        }
    }

    /// Describes the event in a sentence. Returns nothing for events of little interest.
    pub fn sentence(&self) -> Option<Vec<Span>> {
        Some(match self {
            Self::ToolStarted { agent, tool, arguments, .. } => vec![
                name(agent.as_str()),
                plain(format!(" runs {} ", beginning(tool))),
                dim(beginning(arguments)),
            ],
            Self::ToolProgress { agent, tool, text, .. } => vec![
                name(agent.as_str()),
                plain(format!(": {} … ", beginning(tool))),
                dim(beginning(text.trim_end().lines().next_back().unwrap_or_default())),
            ],
            Self::ApprovalRequested { agent, approval, tool, arguments, .. } => vec![
                name(agent.as_str()),
                plain(format!(" asks you whether it may call {} ({approval}) ", beginning(tool))),
                dim(beginning(arguments)),
            ],
            Self::ApprovalEnded { agent, approval, tool, state, reason, .. } => {
                let ended = match state {
                    ApprovalState::Allowed => "was allowed to call",
                    ApprovalState::Denied => "was not allowed to call",
                    ApprovalState::Expired => "got no answer in time whether it may call",
                    ApprovalState::Open | ApprovalState::Dropped => "no longer asks whether it may call",
                };
                let reason =
                    reason.as_ref().map_or_else(String::new, |reason| format!(": {}", beginning(reason)));
                vec![
                    name(agent.as_str()),
                    plain(format!(" {ended} {} ({approval})", beginning(tool))),
                    dim(reason),
                ]
            }
            Self::RoleCreated { name: role, creator, service, .. } => vec![
                name(creator.as_str()),
                plain(" made the role "),
                name(&beginning(role)),
                dim(format!(" ({service})")),
            ],
            Self::RoleChanged { name: role, fields, .. } => vec![
                plain("you changed the role "),
                name(&beginning(role)),
                dim(format!(" ({})", fields.join(", "))),
            ],
            Self::AgentCreated { agent, parent, objective, .. } => vec![
                name(parent.as_str()),
                plain(" hired "),
                name(agent.as_str()),
                plain(format!(": {}", beginning(objective))),
            ],
            Self::AgentEnded { agent, reason } => happened(agent.as_str(), "ended", Some(reason)),
            Self::AgentParked { agent, reason, .. } => happened(agent.as_str(), "was parked", Some(reason)),
            Self::AgentPaused { agent } => happened(agent.as_str(), "was paused", None),
            Self::AgentResumed { agent } => happened(agent.as_str(), "was resumed", None),
            Self::AgentStopped { agent, .. } => happened(agent.as_str(), "was stopped", None),
            Self::ContextCompacted { agent, tokens, kept, summary, .. } => {
                let how = match summary {
                    SummarySource::Model => "summed up",
                    SummarySource::Entries => "cut",
                };
                vec![
                    name(agent.as_str()),
                    plain(format!(" history {how} at {tokens} tokens")),
                    dim(format!(" ({kept} entries kept)")),
                ]
            }
            Self::DeadlockFound { agents, .. } => {
                let mut spans = Vec::new();
                for agent in agents {
                    if !spans.is_empty() {
                        spans.push(plain(", "));
                    }
                    spans.push(name(agent.as_str()));
                }
                spans.push(plain(" wait for each other; each was notified"));
                spans
            }
            Self::TaskForked { task, from, turn } => {
                vec![plain(format!("you forked {from} at turn {turn} as {task}"))]
            }
            Self::TaskForgotten { task } => vec![dim(format!("{task} was removed to make room"))],
            Self::ContactAdded { owner, agent, introduced_by: Some(introducer), .. } => vec![
                name(introducer.as_str()),
                plain(" introduced "),
                name(agent.as_str()),
                plain(" to "),
                name(owner.as_str()),
            ],
            Self::MessageAccepted { from, to, message_type, text, attachments, finality, .. } => {
                let interim = if *finality == Finality::Interim { " interim" } else { "" };
                let with = match attachments.len() {
                    0 => String::new(),
                    count => format!(" (+{count} attached)"),
                };
                vec![
                    name(from),
                    plain(" → "),
                    name(to.as_str()),
                    dim(format!(" {message_type}{interim}")),
                    plain(format!(" {}", beginning(text))),
                    dim(with),
                ]
            }
            Self::AnswerSettled { agent, message, .. } => {
                vec![name(agent.as_str()), dim(format!(" {message} is its final answer"))]
            }
            Self::MessageBounced { message, to } => {
                vec![bad(format!("{message} to {to} came back: {to} has ended"))]
            }
            Self::ArtifactStored { artifact, owner, mime_type, size, filename, .. } => {
                let called = filename.as_deref().unwrap_or(mime_type.as_str());
                vec![
                    name(owner.as_str()),
                    plain(format!(" stored {}", artifact.reference())),
                    dim(format!(" ({}, {size} bytes)", beginning(called))),
                ]
            }
            Self::ArtifactUnreadable { artifact, reason } => {
                vec![bad(format!("{} cannot be read: {}", artifact.reference(), beginning(reason)))]
            }
            Self::ModelAnswered { agent, service, model, usage, .. } => {
                let (read, written) = (usage.prompt_tokens, usage.completion_tokens);
                vec![
                    name(agent.as_str()),
                    dim(format!(" heard from {service}/{model}, {read} + {written} tokens")),
                ]
            }
            Self::ModelFailed { agent, service, attempt, reason, next, suspects, .. } => {
                let advice = advice(service.as_str(), suspects);
                let (reason, next) = (beginning(reason), in_words(*next));
                vec![bad(format!(
                    "{agent}: attempt {attempt} at {service} failed ({reason}); {next}{advice}"
                ))]
            }
            Self::ServiceSkipped { agent, service, fallback, reason, .. } => {
                let reason = beginning(reason);
                vec![bad(format!("{agent}: {service} is not asked ({reason}); asking {fallback}"))]
            }
            Self::ToolCalled { agent, tool, error: Some(error), .. } => {
                vec![name(agent.as_str()), bad(format!(" was refused {}: {error}", beginning(tool)))]
            }
            Self::LimitReached { agent, limit, value, .. } => {
                vec![bad(format!("{agent} reached {limit} ({value})"))]
            }
            Self::ConfigTaken { revision, differences, problems } => {
                let what =
                    if differences.is_empty() { "no difference".to_owned() } else { differences.join("; ") };
                let mut spans = vec![plain(format!("configuration {revision}: {}", beginning(&what)))];
                if !problems.is_empty() {
                    spans.extend([plain(" "), bad(beginning(&problems.join("; ")))]);
                }
                spans
            }
            Self::ConfigRefused { revision, problems } => {
                let problems = beginning(&problems.join("; "));
                vec![bad(format!("configuration {revision} stays in force: {problems}"))]
            }
            Self::TurnEnded { agent, failure: Some(failure), .. } => {
                vec![bad(format!("turn of {agent} failed: {}", beginning(failure)))]
            }
            Self::TaskStarted { .. }
            | Self::TaskIdle { .. }
            | Self::MessageDue { .. }
            | Self::ContactAdded { .. }
            | Self::TurnStarted { .. }
            | Self::TurnEnded { failure: None, .. }
            | Self::ToolCalled { error: None, .. } => return None,
        })
    }
}

/// Describes an event of an agent and, if the reason is known, the reason.
fn happened(agent: &str, what: &str, reason: Option<&str>) -> Vec<Span> {
    let why = reason.map(|reason| dim(format!(" {}", beginning(reason))));
    [name(agent), plain(format!(" {what}"))].into_iter().chain(why).collect()
}

fn in_words(next: NextAttempt) -> &'static str {
    match next {
        NextAttempt::Retry => "trying again",
        NextAttempt::Compact => "trying again with older history summed up",
        NextAttempt::Reword => "trying again, saying how to call tools",
        NextAttempt::DescribeMedia => "trying again with media described",
        NextAttempt::Fallback => "asking its fallback",
        NextAttempt::GiveUp => "giving up",
    }
}

/// Returns the advice to check the declared capabilities of a service that seems to lack some of them.
fn advice(service: &str, suspects: &[Capability]) -> String {
    if suspects.is_empty() {
        return String::new();
    }
    let suspects = suspects.iter().map(Capability::as_str).collect::<Vec<_>>().join(", ");
    format!("; does {service} really take {suspects}? See its capabilities in llmservices.json")
}

/// Returns the beginning of a text as one line.
pub(crate) fn beginning(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(QUOTED_CHARS) {
        None => words,
        Some((end, _)) => format!("{}…", words[..end].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, MessageId, TaskId};

    fn message(to: AgentId, text: &str) -> Event {
        Event::MessageAccepted {
            task: TaskId::new("task"),
            message: MessageId::from_sequence(1),
            from: "root".to_owned(),
            to,
            message_type: "general".to_owned(),
            text: text.to_owned(),
            attachments: Vec::new(),
            in_reply_to: Vec::new(),
            finality: Finality::Final,
        }
    }

    #[test]
    fn lines() {
        let reader = AgentId::new("reader-7k2f");
        assert_eq!(
            message(reader.clone(), "look\nat it").line().as_deref(),
            Some("root → reader-7k2f general look at it")
        );
        let long = message(reader, &"图".repeat(200)).line().unwrap();
        assert_eq!(long, format!("root → reader-7k2f general {}…", "图".repeat(100)));
        assert_eq!(message(AgentId::user(), "42").line(), None);
    }
}
