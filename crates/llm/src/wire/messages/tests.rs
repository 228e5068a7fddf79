use super::*;
use crate::chat::{AudioFormat, Part};
use bytes::Bytes;
use serde_json::json;

fn check(messages: &[Message], dialect: &Dialect, expect: Value) {
    let arranged = serde_json::to_value(arrange(messages, dialect)).unwrap();
    assert_eq!(arranged, expect, "{arranged:#}");
}

fn system(text: &str) -> Message {
    Message::System(text.to_owned())
}

fn user(text: &str) -> Message {
    Message::User(vec![Part::Text(text.to_owned())])
}

fn image() -> Part {
    Part::Image { mime_type: "image/png".to_owned(), data: Bytes::from_static(b"png!").into() }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn said(text: &str) -> Message {
    Message::Assistant { text: Some(text.to_owned()), tool_calls: Vec::new(), extra: Map::new() }
}

fn call(id: &str) -> ToolCall {
    let arguments = Arguments::Object(object(json!({"ref": "artifact:1"})));
    ToolCall { id: id.to_owned(), name: "get_artifact".to_owned(), arguments, extra: Map::new() }
}

fn called(ids: &[&str]) -> Message {
    let tool_calls = ids.iter().map(|id| call(id)).collect();
    Message::Assistant { text: None, tool_calls, extra: Map::new() }
}

fn result(call_id: &str, media: Vec<Media>) -> Message {
    Message::Tool { call_id: call_id.to_owned(), content: "{}".to_owned(), media }
}

fn picture(label: &str) -> Media {
    Media { label: label.to_owned(), part: image() }
}

fn call_on_the_wire(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "get_artifact", "arguments": "{\"ref\":\"artifact:1\"}"}})
}

fn image_on_the_wire() -> Value {
    json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5nIQ=="}})
}

#[test]
fn one_text_is_a_plain_string() {
    check(
        &[system("be brief"), user("hi"), said("hello")],
        &Dialect::default(),
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
        ]),
    );
}

#[test]
fn parts_have_the_shapes_of_the_api() {
    let parts = vec![
        Part::Text("look".to_owned()),
        image(),
        Part::Audio { format: AudioFormat::Mp3, data: Bytes::from_static(b"mp3").into() },
        Part::File {
            filename: "a \"b\".pdf".to_owned(),
            mime_type: "application/pdf".to_owned(),
            data: Bytes::from_static(b"%PDF").into(),
        },
    ];
    check(
        &[Message::User(parts)],
        &Dialect::default(),
        json!([{"role": "user", "content": [
            {"type": "text", "text": "look"},
            image_on_the_wire(),
            {"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}},
            {"type": "file", "file": {"filename": "a \"b\".pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        ]}]),
    );
}

#[test]
fn one_medium_alone_is_an_array() {
    check(
        &[Message::User(vec![image()])],
        &Dialect::default(),
        json!([{"role": "user", "content": [image_on_the_wire()]}]),
    );
}

#[test]
fn the_role_of_the_instructions() {
    let with = |system_role| Dialect { system_role, ..Dialect::default() };
    check(
        &[system("be brief"), user("hi")],
        &with(SystemRole::Developer),
        json!([{"role": "developer", "content": "be brief"}, {"role": "user", "content": "hi"}]),
    );
    check(
        &[system("be brief"), user("hi"), user("again")],
        &with(SystemRole::User),
        json!([{"role": "user", "content": "be brief\n\nhi"}, {"role": "user", "content": "again"}]),
    );
    check(
        &[system("be brief"), Message::User(vec![image()])],
        &with(SystemRole::User),
        json!([{"role": "user", "content": [{"type": "text", "text": "be brief"}, image_on_the_wire()]}]),
    );
    check(
        &[system("be brief"), said("hello"), user("hi")],
        &with(SystemRole::User),
        json!([
            {"role": "user", "content": "be brief"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "hi"},
        ]),
    );
    check(&[system("be brief")], &with(SystemRole::User), json!([{"role": "user", "content": "be brief"}]));
}

#[test]
fn media_of_a_batch_stand_in_one_message_after_it() {
    check(
        &[
            called(&["a", "b"]),
            result("a", vec![picture("artifact:1 one.png, call a")]),
            result("b", vec![picture("artifact:2 two.png, call b")]),
            user("meanwhile"),
        ],
        &Dialect::default(),
        json!([
            {"role": "assistant", "tool_calls": [call_on_the_wire("a"), call_on_the_wire("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "{}"},
            {"role": "tool", "tool_call_id": "b", "content": "{}"},
            {"role": "user", "content": [
                {"type": "text", "text": "artifact:1 one.png, call a"}, image_on_the_wire(),
                {"type": "text", "text": "artifact:2 two.png, call b"}, image_on_the_wire(),
            ]},
            {"role": "user", "content": "meanwhile"},
        ]),
    );
}

#[test]
fn each_batch_has_its_own_media_message() {
    check(
        &[
            called(&["a"]),
            result("a", vec![picture("one")]),
            called(&["b"]),
            result("b", vec![picture("two")]),
        ],
        &Dialect::default(),
        json!([
            {"role": "assistant", "tool_calls": [call_on_the_wire("a")]},
            {"role": "tool", "tool_call_id": "a", "content": "{}"},
            {"role": "user", "content": [{"type": "text", "text": "one"}, image_on_the_wire()]},
            {"role": "assistant", "tool_calls": [call_on_the_wire("b")]},
            {"role": "tool", "tool_call_id": "b", "content": "{}"},
            {"role": "user", "content": [{"type": "text", "text": "two"}, image_on_the_wire()]},
        ]),
    );
}

#[test]
fn media_may_stand_in_the_result_itself() {
    check(
        &[called(&["a"]), result("a", vec![picture("one")]), user("next")],
        &Dialect { tool_result_media: ToolResultMedia::Inline, ..Dialect::default() },
        json!([
            {"role": "assistant", "tool_calls": [call_on_the_wire("a")]},
            {"role": "tool", "tool_call_id": "a", "content": [
                {"type": "text", "text": "{}"}, {"type": "text", "text": "one"}, image_on_the_wire(),
            ]},
            {"role": "user", "content": "next"},
        ]),
    );
}

#[test]
fn a_bridge_stands_between_a_result_and_a_user_message_only() {
    let bridged = Dialect { bridge_after_tool: BridgeAfterTool::Bridge, ..Dialect::default() };
    check(
        &[called(&["a"]), result("a", vec![picture("one")]), user("next"), said("yes"), user("more")],
        &bridged,
        json!([
            {"role": "assistant", "tool_calls": [call_on_the_wire("a")]},
            {"role": "tool", "tool_call_id": "a", "content": "{}"},
            {"role": "assistant", "content": "."},
            {"role": "user", "content": [{"type": "text", "text": "one"}, image_on_the_wire()]},
            {"role": "user", "content": "next"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "more"},
        ]),
    );
    check(
        &[called(&["a"]), result("a", vec![]), said("done")],
        &bridged,
        json!([
            {"role": "assistant", "tool_calls": [call_on_the_wire("a")]},
            {"role": "tool", "tool_call_id": "a", "content": "{}"},
            {"role": "assistant", "content": "done"},
        ]),
    );
}

#[test]
fn nothing_said_is_no_message() {
    let blank = Message::Assistant {
        text: Some(" \n".to_owned()),
        tool_calls: Vec::new(),
        extra: object(json!({"reasoning": "hm"})),
    };
    check(
        &[user("hi"), blank, Message::User(Vec::new()), user("there?")],
        &Dialect::default(),
        json!([{"role": "user", "content": "hi"}, {"role": "user", "content": "there?"}]),
    );
}

#[test]
fn garbage_in_arguments_goes_out_as_an_empty_object() {
    let garbage = ToolCall { arguments: Arguments::Malformed("{\"re".to_owned()), ..call("a") };
    let message = Message::Assistant { text: None, tool_calls: vec![garbage], extra: Map::new() };
    check(
        &[message],
        &Dialect::default(),
        json!([{"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "get_artifact", "arguments": "{}"}}
        ]}]),
    );
}

#[test]
fn opaque_fields_go_back_beside_the_others() {
    let extra = object(json!({"signature": "sig", "id": "other"}));
    let message = Message::Assistant {
        text: Some("let me see".to_owned()),
        tool_calls: vec![ToolCall { extra, ..call("a") }],
        extra: object(json!({"reasoning_content": "hm", "role": "user"})),
    };
    let mut call = call_on_the_wire("a");
    call["signature"] = json!("sig");
    check(
        &[message],
        &Dialect::default(),
        json!([{"role": "assistant", "content": "let me see", "tool_calls": [call], "reasoning_content": "hm"}]),
    );
}

#[test]
fn short_ids_are_the_same_in_the_call_and_its_result() {
    let dialect = Dialect { tool_call_ids: ToolCallIds::Alnum9, ..Dialect::default() };
    let messages = [
        called(&["functions.get:0", "abcDEF123"]),
        result("functions.get:0", vec![]),
        result("abcDEF123", vec![]),
    ];
    let wire = serde_json::to_value(arrange(&messages, &dialect)).unwrap();
    let mapped = wire[0]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(mapped.len(), 9);
    assert!(mapped.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(wire[1]["tool_call_id"], mapped);
    assert_eq!(wire[0]["tool_calls"][1]["id"], "abcDEF123");
    assert_eq!(wire[2]["tool_call_id"], "abcDEF123");
}

#[test]
fn different_ids_stay_different() {
    let mapped: std::collections::HashSet<_> =
        (0..10_000).map(|number| nine_characters(&format!("call_{number}"))).collect();
    assert_eq!(mapped.len(), 10_000);
}

#[test]
fn a_name_that_no_server_takes_goes_out_as_one_that_every_server_takes() {
    let check = |name: &str, expect: &str| assert_eq!(wire_name(name), expect);
    check("get_artifact", "get_artifact");
    check("Look-up_2", "Look-up_2");
    check("", "unnamed");
    check("发送 message!", "___message_");
    check(&"x".repeat(65), &"x".repeat(64));
    let nameless = ToolCall { name: String::new(), ..call("a") };
    let messages = [
        Message::Assistant { text: None, tool_calls: vec![nameless], extra: Map::new() },
        result("a", Vec::new()),
    ];
    let arranged = serde_json::to_value(arrange(&messages, &Dialect::default())).unwrap();
    assert_eq!(arranged[0]["tool_calls"][0]["function"]["name"], "unnamed");
}
