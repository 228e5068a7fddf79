use super::texts::TEXTS;
use crate::spoken::has_remains;

/// Texts that are failed calls.
const REMAINS: &[&str] = &[
    "<tool_call>{\"name\": \"fly\", \"arguments\": {\"to\": \"root\"}}</tool_call>\nI have asked root.",
    "I ask now.\n<tool_call>\n{\"name\": \"fly\", \"arguments\": {}}\n</tool_call>\nDone.",
    "<think>whom?</think>\n<tool_call>[{\"name\": \"fly\"}]</tool_call> and so on",
    "[TOOL_CALLS] [{\"name\": \"fly\", \"arguments\": {}}]\nThen I wait.",
    "{\"name\": \"fly\", \"arguments\": {\"to\": \"root\"}}",
    "[{\"name\": \"fly\", \"arguments\": {}}, {\"tool\": \"swim\", \"arguments\": {}}]",
    "{\"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": {\"name\": \"fly\", \"arguments\": {}}}]}",
];

/// Ordinary texts that look like failed calls, but are not.
const QUOTED: &[&str] = &[
    "```\n<tool_call>{\"name\": \"fly\", \"arguments\": {}}</tool_call>\n```",
    "```json\n{\"name\": \"fly\", \"arguments\": {}}\n```",
    "Write `<tool_call>{\"name\": \"fly\"}</tool_call>` to fly.",
    "<tool_call> is a mark.\n{\"name\": \"fly\"}",
    "{\"name\": \"Ada\", \"arguments\": \"for and against\"}",
    "{\"name\": \"fly\", \"arguments\": {}, \"result\": 3}",
];

#[test]
fn failed_calls_are_told_from_texts() {
    for text in REMAINS {
        assert!(has_remains(text), "{text}");
    }
    for text in QUOTED {
        assert!(!has_remains(text), "{text}");
    }
}

/// In `TEXTS`, some texts are failed calls: a call that was written as text, and then prose. These are the beginnings
/// of those texts.
const FAILED: [&str; 3] = [
    "<tool_call>{",
    "[{\"name\": \"list_agents\", \"arguments\": {}}",
    "{\"name\": \"list_agents\", \"arguments\": {}}\nThen",
];

#[test]
fn ordinary_texts_have_no_remains() {
    for text in TEXTS {
        let is_failed = FAILED.iter().any(|begins| text.starts_with(begins));
        assert_eq!(has_remains(text), is_failed, "{text}");
    }
}
