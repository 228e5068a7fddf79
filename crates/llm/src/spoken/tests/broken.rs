use super::OFFERED;
use crate::spoken::{Spoken, read};

/// Each text with the expected tool and a part of the expected problem.
#[rustfmt::skip]
pub(crate) const BROKEN: &[(&str, Option<&str>, &str)] = &[
    (r#"{"name": "send_message", "arguments": {"to": "root", "payload": {"text": "I wan"#, Some("send_message"), "the end of a string"),
    (r#"{"name": "send_message", "arguments": {"to":"#, Some("send_message"), "breaks off"),
    (r#"{"name": "send_message", "arguments": {"to": "root","#, Some("send_message"), "breaks off"),
    (r#"{"name": "run", "arguments": {"command": "ls", "args": 12"#, Some("run"), "number"),
    (r#"{"name": "send_message", "arguments": {"to": root}}"#, Some("send_message"), "`root}}`"),
    (r#"{"name": "send_message", "arguments": "to root"}"#, Some("send_message"), "one JSON object"),
    (r#"{"tool_calls": [{"type": "function", "function": {"name": "send_message", "arguments": "{\"to\": "#, Some("send_message"), "breaks off"),
    (r#"[{"name": "send_message", "arguments": {"to": "root"}]"#, Some("send_message"), "closing bracket"),
    ("{\"send_message\": {\"to\": \"ro", Some("send_message"), "breaks off"),
    ("```json\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"he said \"no\"\"}}\n```", Some("send_message"), "cannot be read at `no"),
    ("<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"ro", Some("send_message"), "breaks off"),
    ("I ask root.\n<tool_call>\n{\"name\": \"send_message\", \"arguments\": {\"to\": \"ro", Some("send_message"), "breaks off"),
    ("<tool_call>\n{\"to\": \"root\", \"payload\": {}}\n</tool_call>", Some("send_message"), "probably of `send_message`"),
    ("<tool_call>\n{\"query\": \"rust\"}\n</tool_call>", Some("web_search"), "probably of `web_search`"),
    ("<tool_call>\n{\"foo\": 1}\n</tool_call>", None, "names no tool"),
    ("<tool_call></tool_call>", None, "empty"),
    ("<tool_call>I would like to ask root.</tool_call>", None, "holds no call"),
    ("[TOOL_CALLS]send_message{\"to\": \"ro", Some("send_message"), "breaks off"),
    ("<function=send_message>", Some("send_message"), "breaks off"),
    ("<function=send_message>\n<parameter=to>\nro", Some("send_message"), "never closed"),
    ("<tool_call>send_message\n<arg_key>to</arg_key>\n<arg_value>ro", Some("send_message"), "never closed"),
    ("<|channel|>commentary to=functions.send_message<|message|>{\"to\": \"ro", Some("send_message"), "breaks off"),
    ("{\"to\": \"root\", \"payload\": {\"text\": \"hi\"}}", Some("send_message"), "probably of `send_message`"),
    ("send_message(\"root\", {\"text\": \"hi\"})", Some("send_message"), "need names"),
    ("send_message(to=root, payload={\"text\": \"hi\"})", Some("send_message"), "`root, payload"),
    ("send_message(to=\"root\", payload={\"text\": \"hi", Some("send_message"), "breaks off"),
    ("Action: send_message\nAction Input: root, hi", Some("send_message"), "one JSON object"),
    ("{\"name\": \"list_agents\", \"arguments\": {}}\n{\"name\": \"send_message\", \"arguments\": \"hi\"}", Some("send_message"), "one JSON object"),
    ("{\"name\": \"send_message\", \"arguments\": \"hi\"}\n{\"name\": \"list_agents\", \"arguments\": {}}", Some("send_message"), "one JSON object"),
];

#[test]
fn what_is_meant_as_a_call_is_said_to_be_broken() {
    for (text, expected, part) in BROKEN {
        match read(text, &OFFERED) {
            Spoken::Broken { tool, problem } => {
                assert_eq!(tool.as_deref(), *expected, "{text}");
                assert!(problem.contains(part), "{problem} for {text}");
            }
            other => panic!("{other:?} for {text}"),
        }
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"name": "run", "arguments": {{"args": {open}{close}}}}}"#);
        read(&text, &OFFERED)
    };
    assert!(matches!(nested(62), Spoken::Calls(_)));
    assert!(matches!(nested(63), Spoken::Broken { problem, .. } if problem.contains("64")));
}
