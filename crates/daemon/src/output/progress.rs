//! Events as one line of text each, for people who watch the society at work.

use super::one_line;
use super::terminal::harmless;
use anstyle::{AnsiColor, Style};
use polity_society::content::Capability;
use polity_society::message::Finality;
use polity_view::{Event, NextAttempt, SummarySource};

const DIM: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// Maximum length of a quoted text in a line, in characters.
const SHOWN_CHARS: usize = 100;

/// Formats an event for the progress display on standard error. Returns nothing for events of little interest, and for
/// messages to the user, which go to standard output.
pub(crate) fn describe(event: &Event) -> Option<String> {
    match event {
        Event::MessageAccepted { to, .. } if to.is_user() => None,
        _ => in_words(event),
    }
}

/// Formats an event as a line for a terminal. Returns nothing for events of little interest. Every text of the event
/// passes through one of the four closures, which remove control characters, so the terminal obeys only our own styles.
pub(crate) fn in_words(event: &Event) -> Option<String> {
    let name = |text: &str| format!("{NAME}{}{NAME:#}", harmless(text));
    let dim = |text: &str| format!("{DIM}{}{DIM:#}", harmless(text));
    let bad = |text: &str| format!("{BAD}{}{BAD:#}", harmless(text));
    let beginning = |text: &str| harmless(&one_line(text, SHOWN_CHARS)).into_owned();
    Some(match event {
        Event::RoleCreated { name: role, creator, service, .. } => {
            format!(
                "{} made the role {} {}",
                name(creator.as_str()),
                name(role),
                dim(&format!("({service})"))
            )
        }
        Event::RoleChanged { name: role, fields, .. } => {
            format!("you changed the role {} {}", name(role), dim(&format!("({})", fields.join(", "))))
        }
        Event::AgentCreated { agent, parent, objective, .. } => {
            format!("{} hired {}: {}", name(parent.as_str()), name(agent.as_str()), beginning(objective))
        }
        Event::ContextCompacted { agent, tokens, kept, summary, .. } => {
            let how = match summary {
                SummarySource::Model => "summed up",
                SummarySource::Entries => "cut",
            };
            format!(
                "{} history {how} at {tokens} tokens {}",
                name(agent.as_str()),
                dim(&format!("({kept} entries kept)"))
            )
        }
        Event::AnswerSettled { agent, message, .. } => {
            format!("{} {}", name(agent.as_str()), dim(&format!("{message} is its final answer")))
        }
        Event::DeadlockFound { agents, .. } => {
            let agents: Vec<String> = agents.iter().map(|agent| name(agent.as_str())).collect();
            format!("{} wait for each other; each was notified", agents.join(", "))
        }
        Event::AgentParked { agent, reason, .. } => {
            format!("{} was parked {}", name(agent.as_str()), dim(&beginning(reason)))
        }
        Event::TaskForgotten { task } => dim(&format!("{task} was removed to make room")),
        Event::AgentPaused { agent } => format!("{} was paused", name(agent.as_str())),
        Event::AgentStopped { agent, .. } => format!("{} was stopped", name(agent.as_str())),
        Event::AgentResumed { agent } => format!("{} was resumed", name(agent.as_str())),
        Event::AgentEnded { agent, reason } => {
            format!("{} ended {}", name(agent.as_str()), dim(&beginning(reason)))
        }
        Event::ContactAdded { owner, agent, introduced_by: Some(introducer), .. } => {
            format!(
                "{} introduced {} to {}",
                name(introducer.as_str()),
                name(agent.as_str()),
                name(owner.as_str())
            )
        }
        Event::MessageAccepted { from, to, message_type, text, attachments, finality, .. } => {
            let with = match attachments.len() {
                0 => String::new(),
                count => dim(&format!(" (+{count} attached)")),
            };
            let interim = if *finality == Finality::Interim { dim(" interim") } else { String::new() };
            format!(
                "{} → {} {}{interim} {}{with}",
                name(from),
                name(to.as_str()),
                dim(message_type),
                beginning(text)
            )
        }
        Event::MessageBounced { message, to } => bad(&format!("{message} to {to} came back: {to} has ended")),
        Event::ArtifactStored { artifact, owner, mime_type, size, filename, .. } => {
            let called = filename.as_deref().unwrap_or(mime_type);
            format!(
                "{} stored {} {}",
                name(owner.as_str()),
                beginning(&artifact.reference()),
                dim(&format!("({}, {size} bytes)", beginning(called)))
            )
        }
        Event::ModelAnswered { agent, service, model, usage, .. } => {
            let tokens =
                format!("{service}/{model}, {} + {} tokens", usage.prompt_tokens, usage.completion_tokens);
            format!("{} {}", name(agent.as_str()), dim(&format!("heard from {tokens}")))
        }
        Event::ModelFailed { agent, service, attempt, reason, next, suspects, .. } => {
            let next = match next {
                NextAttempt::Retry => "trying again",
                NextAttempt::Compact => "trying again with older history summed up",
                NextAttempt::Reword => "trying again, saying how to call tools",
                NextAttempt::DescribeMedia => "trying again with media described",
                NextAttempt::Fallback => "asking its fallback",
                NextAttempt::GiveUp => "giving up",
            };
            let suspects: Vec<&str> = suspects.iter().map(Capability::as_str).collect();
            let advice = if suspects.is_empty() {
                String::new()
            } else {
                format!(
                    "; does {service} really take {}? See its capabilities in llmservices.json",
                    suspects.join(", ")
                )
            };
            bad(&format!(
                "{agent}: attempt {attempt} at {service} failed ({}); {next}{advice}",
                beginning(reason)
            ))
        }
        Event::ServiceSkipped { agent, service, fallback, reason, .. } => {
            bad(&format!("{agent}: {service} is not asked ({}); asking {fallback}", beginning(reason)))
        }
        Event::ToolCalled { agent, tool, error: Some(error), .. } => {
            format!("{} {}", name(agent.as_str()), bad(&format!("was refused {}: {error}", beginning(tool))))
        }
        Event::LimitReached { agent, limit, value, .. } => bad(&format!("{agent} reached {limit} ({value})")),
        Event::ArtifactUnreadable { artifact, reason } => {
            bad(&format!("{} cannot be read: {}", artifact.reference(), beginning(reason)))
        }
        Event::ConfigTaken { revision, differences, problems } => {
            let what = if differences.is_empty() { "no difference" } else { &*differences.join("; ") };
            let taken = format!("configuration {revision}: {}", beginning(what));
            if problems.is_empty() {
                taken
            } else {
                format!("{taken} {}", bad(&beginning(&problems.join("; "))))
            }
        }
        Event::ConfigRefused { revision, problems } => {
            bad(&format!("configuration {revision} stays in force: {}", beginning(&problems.join("; "))))
        }
        Event::TurnEnded { agent, failure: Some(failure), .. } => {
            bad(&format!("turn of {agent} failed: {}", beginning(failure)))
        }
        Event::TaskStarted { .. }
        | Event::TaskIdle { .. }
        | Event::MessageDue { .. }
        | Event::ContactAdded { .. }
        | Event::TurnStarted { .. }
        | Event::TurnEnded { failure: None, .. }
        | Event::ToolCalled { error: None, .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, ServiceId, TaskId};

    fn message(to: AgentId, text: &str) -> Event {
        Event::MessageAccepted {
            task: TaskId::new("task"),
            message: MessageId::from_sequence(1),
            from: "root".to_owned(),
            to,
            message_type: "general".to_owned(),
            text: text.to_owned(),
            attachments: vec![ArtifactId::new("abc")],
            in_reply_to: Vec::new(),
            finality: Finality::Final,
        }
    }

    #[track_caller]
    fn without_styles(event: &Event) -> String {
        anstream::adapter::strip_str(&describe(event).expect("a line")).to_string()
    }

    #[test]
    fn lines() {
        let check = |event: &Event, expect: &str| assert_eq!(without_styles(event), expect);
        check(
            &message(AgentId::new("reader-7k2f"), "look\nat it"),
            "root → reader-7k2f general look at it (+1 attached)",
        );
        let refused = Event::ToolCalled {
            task: TaskId::new("task"),
            agent: AgentId::root(),
            tool: "walk".to_owned(),
            error: Some("unknown_tool".to_owned()),
        };
        check(&refused, "root was refused walk: unknown_tool");
    }

    #[test]
    fn what_is_said_to_the_person_is_no_progress() {
        assert_eq!(describe(&message(AgentId::user(), "42")), None);
    }

    /// Tries a hostile text in every place that a model, a server or a file can fill.
    #[test]
    fn no_event_brings_its_own_escape_sequences_or_lines() {
        let hostile = || "a\u{1b}]0;title\u{7}\r\n\u{9b}2J\u{202E}b".to_owned();
        let (task, agent) = (TaskId::new("task"), AgentId::root());
        let events = [
            message(AgentId::root(), &hostile()),
            Event::RoleCreated {
                task: task.clone(),
                role: RoleId::new("role"),
                name: "a\u{1b}]0;title\u{7}\u{9b}2J\u{202E}b".to_owned(),
                creator: agent.clone(),
                service: ServiceId::new("a\u{1b}]0;title\u{7}"),
            },
            Event::AgentCreated {
                task: task.clone(),
                agent: agent.clone(),
                parent: agent.clone(),
                role: RoleId::new("role"),
                objective: hostile(),
            },
            Event::AgentEnded { agent: agent.clone(), reason: hostile() },
            Event::ToolCalled {
                task: task.clone(),
                agent: agent.clone(),
                tool: hostile(),
                error: Some("unknown_tool".to_owned()),
            },
            Event::ArtifactUnreadable { artifact: ArtifactId::new("abc"), reason: hostile() },
            Event::ConfigTaken { revision: 2, differences: vec![hostile()], problems: vec![hostile()] },
            Event::ConfigRefused { revision: 2, problems: vec![hostile()] },
            Event::TurnEnded { task, agent, failure: Some(hostile()) },
        ];
        for event in events {
            let line = describe(&event).expect("a line");
            assert!(!line.contains(['\n', '\r', '\u{7}', '\u{9b}', '\u{202E}']), "{line:?}");
            // Our own styles never begin with `ESC ]`.
            assert!(!line.contains("\u{1b}]"), "{line:?}");
            assert!(line.contains("<U+001B>]0;title<U+0007>"), "{line:?}");
        }
    }
}
