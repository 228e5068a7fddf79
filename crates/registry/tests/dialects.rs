//! Snapshots of request bodies: polity sends the same conversation to each service of `llmservices.template.json`.

use polity_llm::{Arguments, Body, Data, Dialect, Media, Message, Part, Request, Tool, ToolCall, ToolChoice};
use polity_registry::{Environment, Registry};
use serde_json::{Map, Value, json};

const TEMPLATE: &str = include_str!("../../../config/llmservices.template.json");
const SCHEMA: &str = include_str!("../../../tests/openai_chat_request.strict.schema.json");

/// A conversation with all parts that dialects treat differently: instructions,
/// a batch of two tool calls, an image in the result of a call, and a user message after the results.
fn conversation() -> Request {
    let call = |id: &str, name: &str| ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: Arguments::Object(Map::from_iter([("ref".to_owned(), json!("artifact:k3v9x2ma"))])),
        extra: Map::new(),
    };
    let result = |id: &str, media: Vec<Media>| Message::Tool {
        call_id: id.to_owned(),
        content: "{\"status\":\"success\"}".to_owned(),
        media,
    };
    let picture = Media {
        label: "工件内容 a.png（artifact:k3v9x2ma，来自工具调用 call_1）:".to_owned(),
        part: Part::Image { mime_type: "image/png".to_owned(), data: Data::from(vec![1, 2, 3]) },
    };
    Request {
        messages: vec![
            Message::System("你是一个智能体。".to_owned()),
            Message::User(vec![Part::Text("【来自用户的消息】\n看图".to_owned())]),
            Message::Assistant {
                text: None,
                tool_calls: vec![call("call_1", "get_artifact"), call("call_2", "get_artifact")],
                extra: Map::new(),
            },
            result("call_1", vec![picture]),
            result("call_2", Vec::new()),
            Message::User(vec![Part::Text("【来自用户的消息】\n快一点".to_owned())]),
        ],
        tools: vec![Tool::new(
            "get_artifact",
            "打开工件。",
            json!({"type": "object", "properties": {"ref": {"type": "string"}}, "required": ["ref"]}),
        )],
        tool_choice: ToolChoice::Auto,
    }
}

#[tokio::test]
async fn each_service_of_the_template_gets_its_dialect() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("llmservices.json"), TEMPLATE).unwrap();
    let environment = Environment::look_up(|_| None);
    let nothing: polity_registry::Discovery = Box::new(|| Box::pin(async { Vec::new() }));
    let (registry, problems) = Registry::load(directory.path(), environment, nothing).await.unwrap();
    assert_eq!(problems, []);
    let schema = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
    let request = conversation();
    let mut plain = 0;
    for service in registry.current().catalogue.services() {
        let body = Body::new(&request, &service.endpoint).to_json().unwrap();
        let value: Value = serde_json::from_slice(&body).unwrap();
        let claims_plain =
            service.endpoint.dialect == Dialect::default() && service.endpoint.extra_body.is_empty();
        if claims_plain {
            plain += 1;
            let faults: Vec<String> = schema.iter_errors(&value).map(|fault| fault.to_string()).collect();
            assert_eq!(faults, [""; 0], "{}", service.id);
        }
        insta::assert_snapshot!(service.id.as_str(), serde_json::to_string_pretty(&value).unwrap());
    }
    assert!(plain > 0, "at least one service has the default dialect and no extra fields");
}
