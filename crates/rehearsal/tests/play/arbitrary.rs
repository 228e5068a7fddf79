//! Sends random requests to the built-in model, even requests that the runtime would never build. The model must
//! answer every request.

use bytes::Bytes;
use polity_llm::{Arguments, Media, Message, Part, Request, Tool, ToolCall, ToolChoice};
use polity_rehearsal::answer;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("【来自用户的消息】".to_owned()),
        Just("【Message from the user】".to_owned()),
        Just("【系统消息】".to_owned()),
        Just("【来自 组长（root）的消息】".to_owned()),
        Just("【来自 组长（lead-1）的消息】".to_owned()),
        Just("【收到附件】".to_owned()),
        Just("工件ID: artifact:p1".to_owned()),
        Just("MIME类型: image/png".to_owned()),
        Just("附件 a.txt（artifact:t1）:".to_owned()),
        Just("required_capability: vision".to_owned()),
        Just("请求编号 request_id: m1".to_owned()),
        Just("［演练］> 看".to_owned()),
        Just("【运行时信息】".to_owned()),
        Just("agentId=root".to_owned()),
        Just("agentId=lead-1".to_owned()),
        Just("parentAgentId=root".to_owned()),
        Just("parentAgentId=lead-1".to_owned()),
        Just("workspace=a directory of the user".to_owned()),
        Just("Quoted from ./ (material, not instructions):\nREADME.md\nsrc/\nsrc/… 3 more".to_owned()),
        Just("- viewer-1｜图｜输入: text, vision｜输出: text".to_owned()),
        any::<String>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(line(), 0..8).prop_map(|lines| lines.join("\n"))
}

fn part() -> impl Strategy<Value = Part> {
    let data = || prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from);
    prop_oneof![
        3 => text().prop_map(Part::Text),
        1 => data().prop_map(|data| Part::Image { mime_type: "image/png".into(), data: data.into() }),
        1 => data().prop_map(|data| Part::File { filename: "f".into(), mime_type: "a/b".into(), data: data.into() }),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("create_role".to_owned()),
        Just("spawn_agent_with_task".to_owned()),
        Just("send_message".to_owned()),
        Just("find_capable_agents".to_owned()),
        Just("put_artifact".to_owned()),
        Just("str_replace_editor".to_owned()),
        Just("search_files".to_owned()),
        Just("bash".to_owned()),
        any::<String>(),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"id": "lead-1", "roleName": "组长"})),
        Just(json!({"error": "limit_reached", "message": "no"})),
        Just(json!({"error": 7})),
        Just(json!({"refused": [{"error": "unknown_contact"}]})),
        Just(json!({"agents": [{"id": "viewer-1"}, {"id": 3}, 4], "ref": "artifact:r1"})),
        Just(
            json!({"to": "lead-1", "payload": {"message_type": "introduction_request"}, "capability": "vision"})
        ),
        Just(
            json!({"to": "lead-1", "payload": {"message_type": "introduction_response", "target_agent": null}})
        ),
        Just(json!({"to": "viewer-1", "payload": {"message_type": "collaboration_request"}})),
        Just(json!({"command": "view", "path": "."})),
        Just(json!({"command": "view", "path": "README.md"})),
        Just(json!({"command": "create", "path": "polity-report.md"})),
        Just(json!({"error": "file_changed"})),
        Just(json!({"command": "wc -l README.md"})),
        Just(json!({"exitCode": 0, "output": "3 README.md\n"})),
        Just(json!({"exitCode": null, "ended": "stopped"})),
        Just(json!([])),
        any::<String>().prop_map(Value::String),
    ]
}

fn arguments() -> impl Strategy<Value = Arguments> {
    value().prop_map(|value| match value {
        Value::Object(arguments) => Arguments::Object(arguments),
        other => Arguments::Malformed(other.to_string()),
    })
}

fn message() -> impl Strategy<Value = Message> {
    let id = || prop_oneof![Just("c1".to_owned()), Just("c2".to_owned()), Just(String::new())];
    let call = (id(), name(), arguments()).prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
        extra: Map::new(),
    });
    prop_oneof![
        1 => text().prop_map(Message::System),
        4 => prop::collection::vec(part(), 0..4).prop_map(Message::User),
        3 => (prop::option::of(text()), prop::collection::vec(call, 0..3))
            .prop_map(|(text, tool_calls)| Message::Assistant { text, tool_calls, extra: Map::new() }),
        3 => (id(), value(), part()).prop_map(|(call_id, value, part)| Message::Tool {
            call_id,
            content: value.to_string(),
            media: vec![Media { label: "x".into(), part }],
        }),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let tool = |name: String| Tool::new(name, "", json!({}));
    let tools = prop::collection::vec(name().prop_map(tool), 0..12);
    let choice = prop_oneof![3 => Just(ToolChoice::Auto), 1 => Just(ToolChoice::None)];
    (prop::collection::vec(message(), 0..12), tools, choice)
        .prop_map(|(messages, tools, tool_choice)| Request { messages, tools, tool_choice })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_request_is_answered_with_text_or_with_calls_that_are_allowed(request in request()) {
        let reply = answer(&request, "rehearsal-text");
        prop_assert_eq!(&reply, &answer(&request, "rehearsal-text"));
        prop_assert_ne!(reply.text.is_some(), !reply.tool_calls.is_empty());
        prop_assert!(reply.text.is_none_or(|text| !text.is_empty()));
        for call in &reply.tool_calls {
            prop_assert_eq!(request.tool_choice, ToolChoice::Auto);
            prop_assert!(request.tools.iter().any(|tool| tool.name == call.name));
            prop_assert!(matches!(call.arguments, Arguments::Object(_)));
        }
    }
}
