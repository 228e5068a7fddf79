//! An event in a plain line, for programs that show what happens as text.

use super::{Event, NextAttempt, SummarySource};
use polity_society::message::Finality;

/// How much of a text fits beside the rest of a line, in characters.
const SHOWN_CHARS: usize = 100;

impl Event {
    /// A line that tells it; none for those that a person would not miss, and for what is said to the person.
    pub fn line(&self) -> Option<String> {
        Some(match self {
            Self::RoleCreated { name, creator, service, .. } => {
                format!("{creator} made the role {} ({service})", beginning(name))
            }
            Self::RoleChanged { name, fields, service, .. } => {
                format!("the role {} was changed: {} ({service})", beginning(name), fields.join(", "))
            }
            Self::AgentCreated { agent, parent, objective, .. } => {
                format!("{parent} hired {agent}: {}", beginning(objective))
            }
            Self::AgentEnded { agent, reason } => format!("{agent} ended ({})", beginning(reason)),
            Self::ContextCompacted { agent, kept, summary, .. } => {
                let how = match summary {
                    SummarySource::Model => "summed up",
                    SummarySource::Entries => "cut",
                };
                format!("{agent}: history {how}, {kept} entries stay")
            }
            Self::DeadlockFound { agents, .. } => {
                let agents: Vec<&str> = agents.iter().map(|agent| agent.as_str()).collect();
                format!("{} wait for each other; each was told", agents.join(", "))
            }
            Self::AgentParked { agent, reason, .. } => format!("{agent} was parked ({})", beginning(reason)),
            Self::AgentPaused { agent } => format!("{agent} was paused"),
            Self::AgentResumed { agent } => format!("{agent} goes on"),
            Self::AgentStopped { agent, .. } => format!("{agent} was stopped"),
            Self::ContactAdded { owner, agent, introduced_by: Some(introducer), .. } => {
                format!("{introducer} introduced {agent} to {owner}")
            }
            Self::MessageAccepted { to, .. } if to.is_user() => return None,
            Self::MessageAccepted { from, to, text, attachments, finality, .. } => {
                let interim = if *finality == Finality::Interim { " (interim)" } else { "" };
                let with = match attachments.len() {
                    0 => String::new(),
                    count => format!(" (+{count} attached)"),
                };
                format!("{from} → {to}{interim}: {}{with}", beginning(text))
            }
            Self::AnswerSettled { agent, message, .. } => format!("{agent}: {message} is its answer"),
            Self::MessageBounced { message, to } => format!("{message} to {to} came back: {to} has ended"),
            Self::ArtifactStored { artifact, owner, mime_type, size, filename, .. } => {
                let called = filename.as_deref().unwrap_or(mime_type);
                format!("{owner} stored {} ({}, {size} bytes)", artifact.reference(), beginning(called))
            }
            Self::ModelFailed { agent, service, attempt, reason, next, .. } => {
                let next = match next {
                    NextAttempt::Retry => "trying again",
                    NextAttempt::Compact => "trying again with older history summed up",
                    NextAttempt::Reword => "trying again, saying how to call tools",
                    NextAttempt::DescribeMedia => "trying again with media described",
                    NextAttempt::Fallback => "asking its fallback",
                    NextAttempt::GiveUp => "giving up",
                };
                format!("{agent}: attempt {attempt} at {service} failed ({}); {next}", beginning(reason))
            }
            Self::ServiceSkipped { agent, service, fallback, reason, .. } => {
                format!("{agent}: {service} is not asked ({}); asking {fallback}", beginning(reason))
            }
            Self::LimitReached { agent, limit, value, .. } => format!("{agent} reached {limit} ({value})"),
            Self::ArtifactUnreadable { artifact, reason } => {
                format!("{} cannot be read: {}", artifact.reference(), beginning(reason))
            }
            Self::TurnEnded { agent, failure: Some(failure), .. } => {
                format!("{agent} could not go on: {}", beginning(failure))
            }
            Self::TaskStarted { .. }
            | Self::TaskIdle { .. }
            | Self::TaskForgotten { .. }
            | Self::MessageDue { .. }
            | Self::ContactAdded { .. }
            | Self::TurnStarted { .. }
            | Self::TurnEnded { failure: None, .. }
            | Self::ModelAnswered { .. }
            | Self::ToolCalled { .. }
            | Self::ConfigTaken { .. }
            | Self::ConfigRefused { .. } => return None,
        })
    }
}

/// The beginning of a text, in one line.
fn beginning(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(SHOWN_CHARS) {
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
            Some("root → reader-7k2f: look at it")
        );
        let long = message(reader, &"图".repeat(200)).line().unwrap();
        assert_eq!(long, format!("root → reader-7k2f: {}…", "图".repeat(100)));
        assert_eq!(message(AgentId::user(), "42").line(), None);
    }
}
