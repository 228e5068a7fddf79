use super::*;
use crate::chat::{Arguments, AudioFormat, Media, Message, Part, ToolCall};
use crate::data::Data;
use crate::endpoint::{BridgeAfterTool, Dialect, MaxTokensField, SystemRole, ToolCallIds};
use crate::tool::Tool;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jsonschema::Validator;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, json};
use std::sync::LazyLock;

static STRICT: LazyLock<Validator> = LazyLock::new(|| {
    let schema = include_str!("../../../../tests/openai_chat_request.strict.schema.json");
    jsonschema::validator_for(&serde_json::from_str(schema).unwrap()).unwrap()
});

fn body(request: &Request, endpoint: &Endpoint) -> Value {
    serde_json::from_slice(&serde_json::to_vec(&Body::new(request, endpoint)).unwrap()).unwrap()
}

fn endpoint() -> Endpoint {
    Endpoint::new("http://host/v1", "m")
}

fn request() -> Request {
    Request {
        messages: vec![
            Message::System("be brief".to_owned()),
            Message::User(vec![Part::Text("hi".to_owned())]),
        ],
        ..Request::default()
    }
}

fn tool() -> Tool {
    Tool::new("f", "does f", json!({"type": "object"}))
}

/// Compares the body, without its messages, with `expect`.
fn check(request: &Request, endpoint: &Endpoint, expect: Value) {
    let mut body = body(request, endpoint);
    body.as_object_mut().unwrap().shift_remove("messages");
    assert_eq!(body, expect);
}

#[test]
fn streamed_with_usage_by_default() {
    check(
        &request(),
        &endpoint(),
        json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}}),
    );
}

#[test]
fn switches_of_the_stream() {
    let dialect = Dialect { stream_usage: StreamUsage::NotAsked, ..Dialect::default() };
    check(&request(), &Endpoint { dialect, ..endpoint() }, json!({"model": "m", "stream": true}));
    let dialect = Dialect { stream: Stream::Whole, ..Dialect::default() };
    check(&request(), &Endpoint { dialect, ..endpoint() }, json!({"model": "m", "stream": false}));
}

#[test]
fn tools_and_choice() {
    let offered = Request { tools: vec![tool()], ..request() };
    let dialect = Dialect { stream: Stream::Whole, ..Dialect::default() };
    let endpoint = Endpoint { dialect, ..endpoint() };
    let tools = json!([{"type": "function",
        "function": {"name": "f", "description": "does f", "parameters": {"type": "object"}}}]);
    check(&offered, &endpoint, json!({"model": "m", "tools": tools, "stream": false}));
    let held_back = Request { tool_choice: ToolChoice::None, ..offered };
    check(
        &held_back,
        &endpoint,
        json!({"model": "m", "tools": tools, "tool_choice": "none", "stream": false}),
    );
    let without = Request { tool_choice: ToolChoice::None, ..request() };
    check(&without, &endpoint, json!({"model": "m", "stream": false}));
}

#[test]
fn the_field_that_bounds_the_answer() {
    let whole = Dialect { stream: Stream::Whole, ..Dialect::default() };
    let bounded = Endpoint { max_tokens: Some(9), dialect: whole.clone(), ..endpoint() };
    check(&request(), &bounded, json!({"model": "m", "max_tokens": 9, "stream": false}));
    let dialect = Dialect { max_tokens_field: MaxTokensField::MaxCompletionTokens, ..whole };
    let bounded = Endpoint { dialect, ..bounded };
    check(&request(), &bounded, json!({"model": "m", "max_completion_tokens": 9, "stream": false}));
}

#[test]
fn the_extra_body_has_the_last_word() {
    let extra_body =
        json!({"temperature": 0, "model": "other", "stream": false}).as_object().unwrap().clone();
    let endpoint = Endpoint { extra_body, ..endpoint() };
    check(&request(), &endpoint, json!({"temperature": 0, "model": "other", "stream": false}));
    assert_eq!(stream_of(&endpoint), Stream::Whole);
    // Each field must occur only once. If a field occurred twice, a server could use the wrong one of the two values.
    let text = serde_json::to_string(&Body::new(&request(), &endpoint)).unwrap();
    assert_eq!(text.matches("\"model\"").count(), 1);
}

#[test]
fn the_schema_is_strict() {
    let mut body = body(&request(), &endpoint());
    assert!(STRICT.is_valid(&body));
    body["messages"][1]["surprise"] = json!(1);
    assert!(!STRICT.is_valid(&body));
}

fn part() -> impl Strategy<Value = Part> {
    let data = || vec(any::<u8>(), 0..3_000).prop_map(Data::from);
    prop_oneof![
        ".{0,40}".prop_map(Part::Text),
        data().prop_map(|data| Part::Image { mime_type: "image/png".to_owned(), data }),
        (data(), any::<bool>()).prop_map(|(data, wav)| Part::Audio {
            format: if wav { AudioFormat::Wav } else { AudioFormat::Mp3 },
            data
        }),
        (".{0,20}", data()).prop_map(|(filename, data)| Part::File {
            filename,
            mime_type: "application/pdf".to_owned(),
            data
        }),
    ]
}

fn medium() -> impl Strategy<Value = Media> {
    (".{1,20}", part()).prop_map(|(label, part)| Media { label, part })
}

/// The next messages of a conversation: a user message, an answer, or a batch of calls with their results.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let arguments = prop_oneof![
        "[a-z]{1,9}".prop_map(|name| Arguments::Object(Map::from_iter([(name, json!("值"))]))),
        ".{1,20}".prop_map(Arguments::Malformed),
    ];
    let called = ("[a-zA-Z0-9_:.-]{1,20}", "[a-zA-Z0-9_-]{1,64}", arguments, ".{0,30}", vec(medium(), 0..3));
    prop_oneof![
        vec(part(), 0..4).prop_map(|parts| vec![Message::User(parts)]),
        proptest::option::of(".{0,30}").prop_map(|text| vec![Message::Assistant {
            text,
            tool_calls: Vec::new(),
            extra: Map::new()
        }]),
        (proptest::option::of(".{0,30}"), vec(called, 1..4)).prop_map(|(text, called)| {
            let mut tool_calls = Vec::new();
            let mut results = Vec::new();
            for (id, name, arguments, content, media) in called {
                tool_calls.push(ToolCall { id: id.clone(), name, arguments, extra: Map::new() });
                results.push(Message::Tool { call_id: id, content, media });
            }
            let mut messages = vec![Message::Assistant { text, tool_calls, extra: Map::new() }];
            messages.extend(results);
            messages
        }),
    ]
}

fn conversation() -> impl Strategy<Value = Request> {
    let tool = ("[a-zA-Z0-9_-]{1,64}", ".{0,30}").prop_map(|(name, description)| {
        Tool::new(name, description, json!({"type": "object", "properties": {}}))
    });
    let choice = prop_oneof![Just(ToolChoice::Auto), Just(ToolChoice::None)];
    (".{0,40}", vec(exchange(), 0..6), vec(tool, 0..3), choice).prop_map(
        |(system, exchanges, tools, tool_choice)| {
            let messages =
                std::iter::once(Message::System(system)).chain(exchanges.into_iter().flatten()).collect();
            Request { messages, tools, tool_choice }
        },
    )
}

/// Generates dialects that send no media in tool results. The schema that checks the bodies does not allow media there.
fn dialect() -> impl Strategy<Value = Dialect> {
    let role = prop_oneof![Just(SystemRole::System), Just(SystemRole::Developer), Just(SystemRole::User)];
    let field = prop_oneof![Just(MaxTokensField::MaxTokens), Just(MaxTokensField::MaxCompletionTokens)];
    let ids = prop_oneof![Just(ToolCallIds::Any), Just(ToolCallIds::Alnum9)];
    (role, field, ids, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(system_role, max_tokens_field, tool_call_ids, bridge, stream, usage)| Dialect {
            system_role,
            max_tokens_field,
            tool_call_ids,
            bridge_after_tool: BridgeAfterTool::from(bridge),
            stream: Stream::from(stream),
            stream_usage: StreamUsage::from(usage),
            ..Dialect::default()
        },
    )
}

fn any_endpoint() -> impl Strategy<Value = Endpoint> {
    (dialect(), proptest::option::of(1..10_000_u32)).prop_map(|(dialect, max_tokens)| Endpoint {
        dialect,
        max_tokens,
        ..endpoint()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_request_is_valid_for_the_strictest_server(request in conversation(), endpoint in any_endpoint()) {
        let body = body(&request, &endpoint);
        let errors: Vec<String> = STRICT.iter_errors(&body).map(|error| format!("{} at {}", error, error.instance_path())).collect();
        prop_assert!(errors.is_empty(), "{errors:?} in {body:#}");
    }

    #[test]
    fn every_call_is_answered_before_anybody_else_speaks(request in conversation(), endpoint in any_endpoint()) {
        let body = body(&request, &endpoint);
        let mut open: Vec<&str> = Vec::new();
        for message in body["messages"].as_array().unwrap() {
            if message["role"] == "tool" {
                let answered = message["tool_call_id"].as_str().unwrap();
                let place = open.iter().position(|id| *id == answered);
                prop_assert!(place.is_some(), "{answered} was not called");
                open.remove(place.unwrap());
                prop_assert!(message["content"].is_string());
            } else {
                prop_assert!(open.is_empty(), "{open:?} not answered");
                let calls = message["tool_calls"].as_array();
                open = calls.into_iter().flatten().map(|call| call["id"].as_str().unwrap()).collect();
                prop_assert!(message["role"] != "assistant" || calls.is_some() || !message["content"].as_str().unwrap().trim().is_empty());
            }
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn no_user_message_follows_a_result_where_a_bridge_is_wanted(request in conversation(), endpoint in any_endpoint()) {
        let dialect = Dialect { bridge_after_tool: BridgeAfterTool::Bridge, ..endpoint.dialect.clone() };
        let body = body(&request, &Endpoint { dialect, ..endpoint });
        let roles: Vec<&Value> = body["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
        prop_assert!(roles.windows(2).all(|pair| pair != ["tool", "user"]), "{roles:?}");
    }

    #[test]
    fn bytes_come_back_whatever_their_number(data in vec(any::<u8>(), 0..5_000)) {
        let image = Part::Image { mime_type: "image/webp".to_owned(), data: data.clone().into() };
        let request = Request { messages: vec![Message::User(vec![image])], ..Request::default() };
        let body = body(&request, &endpoint());
        let url = body["messages"][0]["content"][0]["image_url"]["url"].as_str().unwrap();
        let encoded = url.strip_prefix("data:image/webp;base64,").unwrap();
        prop_assert_eq!(BASE64_STANDARD.decode(encoded).unwrap(), data);
    }
}

#[test]
fn a_body_takes_few_instructions() {
    polity_instructions::guard("body", "wire::tests::a_body_takes_few_instructions", 10, |times| {
        let text = "The report has three parts.\n\"Part one\" 在附件里。\n".repeat(5);
        let said = Message::Assistant { text: Some(text.clone()), tool_calls: Vec::new(), extra: Map::new() };
        let turn = [Message::User(vec![Part::Text(text)]), said];
        let messages = std::iter::repeat_n(turn, 50).flatten().collect();
        let request = Request { messages, tools: vec![tool(); 13], ..request() };
        for _ in 0..times {
            std::hint::black_box(serde_json::to_vec(&Body::new(&request, &endpoint())).unwrap());
        }
    });
}
