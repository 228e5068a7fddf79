//! Asks the person whether an agent may make a call: writes the text of the question, and the form that the person
//! fills in.

use polity_society::approval::Answer;
use polity_view::{ApprovalAnswer, ApprovalView};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A question may also show what the call would change. Then it leaves out every argument that has more characters than
/// this.
const SHORT_CHARS: usize = 200;

/// Maximum length of an argument or of a preview in a question, in characters. If the text is longer, the question
/// shows only its beginning, and tells how many characters are missing.
const SHOWN_CHARS: usize = 10_000;

/// The names of the form's fields.
const DECISION: &str = "decision";
const REASON: &str = "reason";

/// What the person can choose in the form. The client shows the serialized names of the variants to the person,
/// unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr, EnumString)]
enum Choice {
    #[strum(serialize = "allow")]
    Allow,
    #[strum(serialize = "allow for this task")]
    AllowForTask,
    #[strum(serialize = "always allow")]
    AlwaysAllow,
    #[strum(serialize = "deny")]
    Deny,
}

/// How the person dealt with the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// The person filled in the form.
    Accept,
    /// The person refused.
    Decline,
    /// The person closed the form without a choice.
    Cancel,
}

/// What the person said to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Answer(ApprovalAnswer),
    /// The person neither allowed nor denied the call. The question stays open.
    PutOff,
}

/// Returns the question with everything that a person needs to answer it.
///
/// Texts that an agent wrote are indented. So the person cannot mistake such a text for a line of the question
/// itself.
pub(crate) fn question(approval: &ApprovalView) -> String {
    let mut lines = vec![format!(
        "{} ({}) wants to call {}. May it? ({} in task {})",
        line(approval.agent.as_str()),
        line(&approval.role),
        line(&approval.tool),
        approval.id,
        approval.task,
    )];
    for (name, value) in arguments(approval) {
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if approval.preview.is_some() && text.chars().count() > SHORT_CHARS {
            continue;
        }
        lines.push(block(&format!("{name}: {text}")));
    }
    if let Some(preview) = &approval.preview {
        lines.push(block(preview));
    }
    lines.push(format!("You are asked because {}.", line(&approval.why)));
    if !approval.way.is_empty() {
        lines.push(format!("How the content from outside reached it: {}.", line(&approval.way.join(" → "))));
    }
    lines.join("\n")
}

/// Returns the question in one line, for the result of a tool.
pub(crate) fn in_short(approval: &ApprovalView) -> String {
    format!(
        "{} ({}) wants to call {} ({}); only the user can allow it, with `polity approve {}` or in the live view",
        line(approval.agent.as_str()),
        line(&approval.role),
        line(&approval.tool),
        approval.id,
        approval.id,
    )
}

/// Returns the JSON schema of the form. The schema uses only features that all versions of the protocol have.
pub(crate) fn form() -> Map<String, Value> {
    let choices: Vec<&str> = Choice::VARIANTS.iter().map(|choice| (*choice).into()).collect();
    let decision = json!({"type": "string", "title": "Decision", "enum": choices});
    let reason = json!({
        "type": "string", "title": "Reason", "description": "If you deny it: why. The agent is told.",
    });
    let form = json!({
        "type": "object", "properties": {DECISION: decision, REASON: reason}, "required": [DECISION],
    });
    form.as_object().cloned().unwrap_or_default()
}

/// Reads the form that the client returned. If the person filled in the form but it contains no valid decision, nothing
/// is allowed and the question stays open.
pub(crate) fn reply(action: Action, content: Option<&Value>) -> Reply {
    let field = |name: &str| content.and_then(|content| content.get(name)).and_then(Value::as_str);
    let choice = match action {
        Action::Accept => field(DECISION).and_then(|decision| decision.parse().ok()),
        Action::Decline => Some(Choice::Deny),
        Action::Cancel => None,
    };
    let answer = match choice {
        None => return Reply::PutOff,
        Some(Choice::Allow) => Answer::Yes,
        Some(Choice::AllowForTask) => Answer::Task,
        Some(Choice::AlwaysAllow) => Answer::Always,
        Some(Choice::Deny) => Answer::No,
    };
    Reply::Answer(ApprovalAnswer { answer, reason: field(REASON).map(str::to_owned) })
}

fn arguments(approval: &ApprovalView) -> Vec<(&str, &Value)> {
    match &approval.arguments {
        Value::Object(arguments) => arguments.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        other => vec![("arguments", other)],
    }
}

/// Puts a short text on one line.
fn line(text: &str) -> String {
    visible(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Indents each line of a text. If the text is too long, cuts off its end.
fn block(text: &str) -> String {
    let left_out = text.chars().count().saturating_sub(SHOWN_CHARS);
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    let mut lines: Vec<String> =
        visible(&shown).lines().map(|line| format!("  {line}").trim_end().to_owned()).collect();
    if left_out > 0 {
        lines.push(format!("({left_out} more characters: `polity approvals` and the live view show all)"));
    }
    lines.join("\n")
}

/// Some characters can hide text or change its direction. Replaces each of them with its code point, such as
/// `<U+202E>`. Line breaks and tabs stay.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        let stays = matches!(character, '\n' | '\t');
        let hides = character.is_control()
            || matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        if hides && !stays {
            shown.push_str(&format!("<U+{:04X}>", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, ApprovalId, TaskId};
    use polity_view::ApprovalState;

    fn asked(arguments: Value, preview: Option<&str>) -> ApprovalView {
        ApprovalView {
            id: ApprovalId::new("q3"),
            task: TaskId::new("t-abc"),
            agent: AgentId::new("coder-abc"),
            role: "coder".to_owned(),
            tool: "bash".to_owned(),
            arguments,
            preview: preview.map(str::to_owned),
            why: "rule 1 of tools.policy in app.json says so".to_owned(),
            way: vec!["web".to_owned(), "coder-abc read it with fetch_page".to_owned()],
            state: ApprovalState::Open,
            answer: None,
            reason: None,
            asked_at: 0,
            expires_at: 0,
            answered_at: None,
        }
    }

    #[test]
    fn a_question_shows_the_whole_call() {
        let shown =
            question(&asked(json!({"command": "git push\nYou are asked because all is well."}), None));
        assert_eq!(
            shown,
            "coder-abc (coder) wants to call bash. May it? (q3 in task t-abc)\n  \
             command: git push\n  You are asked because all is well.\n\
             You are asked because rule 1 of tools.policy in app.json says so.\n\
             How the content from outside reached it: web → coder-abc read it with fetch_page."
        );
    }

    #[test]
    fn a_preview_replaces_long_arguments() {
        let long = "x".repeat(SHORT_CHARS + 1);
        let shown = question(&asked(json!({"path": "a.md", "file_text": long}), Some("+x\n")));
        assert!(shown.contains("  path: a.md\n  +x\n") && !shown.contains("file_text"), "{shown}");
    }

    #[test]
    fn a_question_is_bounded_and_says_what_it_leaves_out() {
        let shown = question(&asked(json!({"command": "y".repeat(SHOWN_CHARS * 2)}), None));
        assert!(shown.contains("(10009 more characters: "), "{shown}");
        assert!(shown.len() < SHOWN_CHARS + 1_000);
    }

    #[test]
    fn nothing_in_a_question_is_hidden() {
        assert_eq!(block("a\u{202e}b\u{1b}[2Jc\r\nd\u{e0041}"), "  a<U+202E>b<U+001B>[2Jc\n  d<U+E0041>");
        assert_eq!(line("a\nb\u{0}"), "a b<U+0000>");
    }

    #[test]
    fn only_a_clear_decision_is_an_answer() {
        let answer = |answer, reason: Option<&str>| {
            Reply::Answer(ApprovalAnswer { answer, reason: reason.map(str::to_owned) })
        };
        let check = |action, content: Value, expect: Reply| {
            assert_eq!(reply(action, Some(&content)), expect, "{content}");
        };
        check(Action::Accept, json!({"decision": "allow"}), answer(Answer::Yes, None));
        check(Action::Accept, json!({"decision": "allow for this task"}), answer(Answer::Task, None));
        check(Action::Accept, json!({"decision": "always allow"}), answer(Answer::Always, None));
        let content = json!({"decision": "deny", "reason": "use a branch"});
        check(Action::Accept, content, answer(Answer::No, Some("use a branch")));
        check(Action::Accept, json!({"decision": "Allow"}), Reply::PutOff);
        check(Action::Accept, json!({"decision": true}), Reply::PutOff);
        check(Action::Accept, json!({}), Reply::PutOff);
        check(Action::Cancel, json!({"decision": "allow"}), Reply::PutOff);
        assert_eq!(reply(Action::Accept, None), Reply::PutOff);
        assert_eq!(reply(Action::Decline, None), answer(Answer::No, None));
    }

    #[test]
    fn every_choice_of_the_form_is_understood() {
        let form = form();
        for choice in form["properties"][DECISION]["enum"].as_array().unwrap() {
            let content = json!({DECISION: choice});
            assert_ne!(reply(Action::Accept, Some(&content)), Reply::PutOff, "{choice}");
        }
    }
}
