//! What happens, in a line each, for somebody who watches.

use anstyle::{AnsiColor, Style};
use polity_runtime::{Event, NextAttempt};
use polity_society::content::Capability;
use polity_society::message::Finality;

const DIM: Style = Style::new().dimmed();
const NAME: Style = AnsiColor::Cyan.on_default();
const BAD: Style = AnsiColor::Red.on_default();

/// A line for an event; none for those that a person would not miss.
pub(crate) fn describe(event: &Event) -> Option<String> {
    let name = |text: &str| format!("{NAME}{text}{NAME:#}");
    let dim = |text: &str| format!("{DIM}{text}{DIM:#}");
    let bad = |text: &str| format!("{BAD}{text}{BAD:#}");
    Some(match event {
        Event::RoleCreated { name: role, creator, service, .. } => {
            format!(
                "{} made the role {} {}",
                name(creator.as_str()),
                name(role),
                dim(&format!("({service})"))
            )
        }
        Event::AgentCreated { agent, parent, objective, .. } => {
            format!("{} hired {}: {}", name(parent.as_str()), name(agent.as_str()), one_line(objective))
        }
        Event::AgentEnded { agent, reason } => format!("{} ended {}", name(agent.as_str()), dim(reason)),
        Event::ContactAdded { owner, agent, introduced_by: Some(introducer), .. } => {
            format!(
                "{} introduced {} to {}",
                name(introducer.as_str()),
                name(agent.as_str()),
                name(owner.as_str())
            )
        }
        // What the person is told goes to standard output.
        Event::MessageAccepted { to, .. } if to.is_user() => return None,
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
                one_line(text)
            )
        }
        Event::MessageBounced { message, to } => bad(&format!("{message} to {to} came back: {to} has ended")),
        Event::ArtifactStored { artifact, owner, mime_type, size, filename, .. } => {
            let called = filename.as_deref().unwrap_or(mime_type);
            format!(
                "{} stored {} {}",
                name(owner.as_str()),
                artifact.reference(),
                dim(&format!("({called}, {size} bytes)"))
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
                one_line(reason)
            ))
        }
        Event::ToolCalled { agent, tool, error: Some(error), .. } => {
            format!("{} {}", name(agent.as_str()), bad(&format!("was refused {tool}: {error}")))
        }
        Event::LimitReached { agent, limit, value, .. } => bad(&format!("{agent} reached {limit} ({value})")),
        Event::ArtifactUnreadable { artifact, reason } => {
            bad(&format!("{} cannot be read: {}", artifact.reference(), one_line(reason)))
        }
        Event::ConfigTaken { revision, differences, problems } => {
            let taken = format!("configuration {revision}: {}", one_line(&differences.join("; ")));
            if problems.is_empty() {
                taken
            } else {
                format!("{taken} {}", bad(&one_line(&problems.join("; "))))
            }
        }
        Event::ConfigRefused { revision, problems } => {
            bad(&format!("configuration {revision} goes on: {}", one_line(&problems.join("; "))))
        }
        Event::TurnEnded { agent, failure: Some(failure), .. } => {
            bad(&format!("{agent} could not go on: {}", one_line(failure)))
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

/// How much of a text fits beside the rest of a line.
const SHOWN_CHARS: usize = 100;

fn one_line(text: &str) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if flat.chars().count() <= SHOWN_CHARS {
        return flat;
    }
    let mut cut: String = flat.chars().take(SHOWN_CHARS).collect();
    cut.push('…');
    cut
}
