//! Events as one line each, in the colours of a terminal.

use super::table::{BAD, DIM, NAME, PLAIN};
use super::terminal::harmless;
use anstyle::Style;
use polity_view::{Event, Tone};

/// Formats an event for the progress display on standard error. Returns nothing for events of little interest, for
/// messages to the user, which go to standard output, and for calls that were not allowed, because the event about the end
/// of the question says the same.
pub(crate) fn describe(event: &Event) -> Option<String> {
    match event {
        Event::MessageAccepted { to, .. } if to.is_user() => None,
        Event::ToolCalled { error: Some(code), .. } if code.starts_with("approval_") => None,
        _ => in_words(event),
    }
}

/// Formats an event as a line for a terminal. Returns nothing for events of little interest. In every text of the
/// event, control characters are made visible, so the terminal obeys only our own styles.
pub(crate) fn in_words(event: &Event) -> Option<String> {
    let spans = event.sentence()?.into_iter().filter(|span| !span.text.is_empty());
    let painted = spans.map(|span| {
        let (style, text) = (style(span.tone), harmless(&span.text));
        format!("{style}{text}{style:#}")
    });
    Some(painted.collect())
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => PLAIN,
        Tone::Name => NAME,
        Tone::Dim => DIM,
        Tone::Bad => BAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, ApprovalId, ArtifactId, MessageId, RoleId, ServiceId, TaskId};
    use polity_society::message::Finality;
    use polity_view::ApprovalState;

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
            call: None,
            error: Some("unknown_tool".to_owned()),
            duration_ms: None,
            head: None,
        };
        check(&refused, "root was refused walk: unknown_tool");
    }

    #[test]
    fn a_call_that_was_not_allowed_is_told_once() {
        let (task, agent, tool) = (TaskId::new("task"), AgentId::root(), "http_request".to_owned());
        let denied = Event::ApprovalEnded {
            task: task.clone(),
            agent: agent.clone(),
            approval: ApprovalId::from_number(3),
            tool: tool.clone(),
            state: ApprovalState::Denied,
            reason: None,
        };
        let error = Some("approval_denied".to_owned());
        let refused =
            Event::ToolCalled { task, agent, tool, call: None, error, duration_ms: None, head: None };
        let lines: Vec<String> = [denied, refused].iter().filter_map(describe).collect();
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    #[test]
    fn what_is_said_to_the_person_is_no_progress() {
        assert_eq!(describe(&message(AgentId::user(), "42")), None);
    }

    /// Puts a text with control characters into fields that a model, a server or a file can fill, in several kinds of
    /// events.
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
                call: None,
                error: Some("unknown_tool".to_owned()),
                duration_ms: None,
                head: Some(hostile()),
            },
            Event::ArtifactUnreadable { artifact: ArtifactId::new("abc"), reason: hostile() },
            Event::ConfigTaken { revision: 2, differences: vec![hostile()], problems: vec![hostile()] },
            Event::ConfigRefused { revision: 2, problems: vec![hostile()] },
            Event::TurnEnded { task, agent, failure: Some(hostile()) },
        ];
        for event in events {
            let line = describe(&event).expect("a line");
            assert!(!line.contains(['\n', '\r', '\u{7}', '\u{9b}', '\u{202E}']), "{line:?}");
            // Our own styles never begin with `ESC ]`, so this sequence could only come from the event.
            assert!(!line.contains("\u{1b}]"), "{line:?}");
            assert!(line.contains("<U+001B>]0;title<U+0007>"), "{line:?}");
        }
    }
}
