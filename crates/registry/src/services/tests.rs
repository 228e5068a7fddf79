use super::*;
use polity_society::content::Kind;
use proptest::prelude::*;
use secrecy::ExposeSecret;
use serde_json::json;

const SEED_EXAMPLE: &str = r#"{
  "services": [
    {
      "id": "text-model",
      "name": "纯文本模型",
      "baseURL": "https://api.example.com/v1",
      "model": "gpt-4",
      "apiKey": "xxx",
      "capabilityTags": ["文本对话", "工具调用"],
      "capabilities": {
        "input": ["text"],
        "output": ["text", "structured_output", "tool_calling"]
      },
      "description": "纯文本对话模型"
    },
    {
      "id": "vision-model",
      "name": "视觉模型",
      "baseURL": "https://api.example.com/v1",
      "model": "gpt-4-vision",
      "apiKey": "xxx",
      "capabilityTags": ["视觉理解", "图像分析"],
      "capabilities": {
        "input": ["text", "vision"],
        "output": ["text", "structured_output"]
      },
      "description": "支持图片理解的模型"
    },
    {
      "id": "multimodal-model",
      "name": "多模态模型",
      "baseURL": "https://api.example.com/v1",
      "model": "gemini-pro",
      "apiKey": "xxx",
      "capabilityTags": ["多模态", "视觉理解", "音频理解"],
      "capabilities": {
        "input": ["text", "vision", "audio", "file"],
        "output": ["text", "structured_output", "tool_calling"]
      },
      "description": "支持多种输入类型的模型"
    }
  ]
}"#;

/// Returns the text of a file with one service. The service has the required fields and the fields of `more`.
fn file_with(more: Value) -> String {
    let mut service = json!({"id": "a", "baseURL": "https://a.example/v1", "model": "m"});
    if let (Value::Object(service), Value::Object(more)) = (&mut service, more) {
        service.extend(more);
    }
    json!({"services": [service]}).to_string()
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_of_the_seed_loads_unchanged() {
    let (services, problems) = parse(SEED_EXAMPLE).unwrap();
    assert_eq!(lines(&problems), "");
    let summary = |service: &Service| {
        let reads_images = service.capabilities.reads(Kind::Image);
        format!(
            "{} {} {} tags={} images={reads_images} tools={} key={}",
            service.id,
            service.name,
            service.endpoint.model,
            service.capability_tags.join(","),
            service.tools_allowed(),
            service.endpoint.api_key.expose_secret(),
        )
    };
    let summaries: Vec<_> = services.iter().map(summary).collect();
    insta::assert_snapshot!(summaries.join("\n"), @r"
    text-model 纯文本模型 gpt-4 tags=文本对话,工具调用 images=false tools=true key=xxx
    vision-model 视觉模型 gpt-4-vision tags=视觉理解,图像分析 images=true tools=false key=xxx
    multimodal-model 多模态模型 gemini-pro tags=多模态,视觉理解,音频理解 images=true tools=true key=xxx
    ");
}

#[test]
fn the_shipped_files_load_without_problems() {
    let (services, problems) = parse(include_str!("../../../../config/llmservices.json")).unwrap();
    assert_eq!((services.len(), lines(&problems)), (0, String::new()));
    let (services, problems) = parse(include_str!("../../../../config/llmservices.template.json")).unwrap();
    assert_eq!(lines(&problems), "");
    let ids: Vec<_> = services.iter().map(|service| service.id.as_str()).collect();
    assert_eq!(
        ids,
        ["openai", "ollama", "lm-studio", "llama-cpp", "vllm", "openrouter", "dashscope", "deepseek"]
    );
    assert!(
        services.iter().all(|service| service.declared == Declaration::Declared && service.tools_allowed())
    );
}

#[test]
fn every_field_is_read() {
    let text = r#"{"services": [
        {"id": " a ", "name": "A", "baseURL": "https://a.example/v1/", "model": " m ", "apiKey": " ${A_KEY} ",
         "capabilityTags": ["fast", " "], "capabilities": {"input": ["text", "smell"]}, "description": "does it",
         "maxConcurrentRequests": 2, "timeoutMs": 1500,
         "timeouts": {"connectMs": 21, "firstByteMs": 22, "betweenBytesMs": 23}, "maxTokens": 100, "contextWindow": 8000, "fallback": "b",
         "dialect": {"toolResultMedia": "inline", "bridgeAfterTool": true, "systemRole": "developer", "stream": false,
                     "toolCallIds": "alnum9", "maxTokensField": "max_completion_tokens", "streamUsage": false},
         "fileTypes": ["Application/PDF", "text/*", "*/*"], "maxImageBytes": 5, "maxImageEdge": 6,
         "maxRequestBytes": 7, "stripMetadata": true, "price": {"input": 0, "output": 2.5},
         "extraBody": {"seed": 1}, "headers": {"X-Title": "t"}},
        {"id": "b", "baseURL": "rehearsal:", "model": "m", "capabilities": null, "apiKey": null}
    ]}"#;
    let (services, problems) = parse(text).unwrap();
    assert_eq!(lines(&problems), "");
    assert_eq!(services[0].endpoint.api_key.expose_secret(), "${A_KEY}");
    insta::assert_debug_snapshot!(services[0], @r#"
    Service {
        id: ServiceId(a),
        name: "A",
        description: "does it",
        capability_tags: [
            "fast",
        ],
        capabilities: Capabilities {
            input: [
                Capability(text),
                Capability(smell),
            ],
            output: [
                Capability(text),
            ],
        },
        declared: InputOnly,
        endpoint: Endpoint {
            base_url: "https://a.example/v1",
            model: "m",
            api_key: SecretBox<str>([REDACTED]),
            headers: [
                (
                    "X-Title",
                    SecretBox<str>([REDACTED]),
                ),
            ],
            timeout: 1.5s,
            timeouts: Timeouts {
                connect: 21ms,
                first_byte: Some(
                    22ms,
                ),
                between_bytes: 23ms,
            },
            max_tokens: Some(
                100,
            ),
            extra_body: {
                "seed": Number(1),
            },
            dialect: Dialect {
                tool_result_media: Inline,
                bridge_after_tool: Bridge,
                system_role: Developer,
                stream: Whole,
                tool_call_ids: Alnum9,
                max_tokens_field: MaxCompletionTokens,
                stream_usage: NotAsked,
            },
        },
        max_concurrent: Some(
            2,
        ),
        context_window: Some(
            8000,
        ),
        fallback: Some(
            ServiceId(b),
        ),
        file_types: [
            "application/pdf",
            "text/*",
            "*/*",
        ],
        max_image_bytes: Some(
            5,
        ),
        max_image_edge: Some(
            6,
        ),
        max_request_bytes: Some(
            7,
        ),
        strip_metadata: Strip,
        price: Some(
            Price {
                input: 0.0,
                output: 2.5,
            },
        ),
        unknown: {},
    }
    "#);
    assert_eq!(format!("{:?}", services[1]), {
        let endpoint = Endpoint::new("rehearsal:", "m");
        format!("{:?}", Service::new(ServiceId::new("b"), endpoint))
    });
}

#[test]
fn every_problem_is_told_and_the_other_services_load() {
    let text = r#"{"services": [
        {"baseURL": "ftp://a", "name": "without an id"},
        {"id": "a", "baseURL": "https://a.example", "model": ""},
        {"id": "a", "baseURL": "https://a.example", "model": "m", "fallback": "a", "colour": 1,
         "capabilities": {"input": ["text", ""], "output": "text", "both": []}},
        {"id": "a", "baseURL": "not a url", "model": "m"},
        {"id": "b", "baseURL": "https://b.example", "model": "m", "fallback": "nobody", "name": 3, "description": [],
         "capabilityTags": "fast", "capabilities": {}, "apiKey": "a\nb", "timeoutMs": 0,
         "timeouts": {"connectMs": 0, "firstByteMs": "1s", "betweenByteMs": 5}, "maxTokens": -1,
         "contextWindow": "8k", "maxConcurrentRequests": 0, "fileTypes": ["pdf"], "maxImageBytes": 1.5,
         "maxImageEdge": 99999999999, "maxRequestBytes": true, "stripMetadata": "yes", "price": {"input": -1},
         "extraBody": [], "headers": {"bad name": "x", "X-Ok": 3},
         "dialect": {"toolResultMedia": "before", "bridgeAfterTool": 1, "systemRole": "root", "stream": "on",
                     "toolCallIds": 9, "maxTokensField": "maxTokens", "streamUsage": null, "extra": 1}},
        "c",
        {"id": "d", "baseURL": "https://user:pw@d.example", "model": "m", "apiKey": "${}"},
        {"id": "e", "baseURL": "https://e.example?key=1", "model": "m"},
        {"id": "f", "baseURL": "https://f.example", "model": "m", "capabilities": ["text"], "apiKey": "${A} "},
        {"id": "g", "baseURL": "https://g.example", "model": "m", "apiKey": "${A B}"}
    ], "version": 2}"#;
    let (services, problems) = parse(text).unwrap();
    let ids: Vec<_> = services.iter().map(|service| service.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "f", "g"]);
    assert!(services.iter().all(|service| service.capabilities == Capabilities::default()));
    assert!(services.iter().all(|service| service.fallback.is_none()));
    assert_eq!(services[1].endpoint.dialect, polity_llm::Dialect::default());
    assert!(services[0].unknown.as_map().contains_key("colour"));
    insta::assert_snapshot!(lines(&problems), @r#"
    llmservices.json: /version: there is no such field; it has no effect
    llmservices.json: /services/0/id: missing; the service is left out
    llmservices.json: /services/0/baseURL: must be an http or https URL; the service is left out
    llmservices.json: /services/0/model: missing; the service is left out
    llmservices.json: /services/1/model: must not be empty; the service "a" is left out
    llmservices.json: /services/2/capabilities/input/1: must be a non-empty string; the service "a" is assumed to support only text
    llmservices.json: /services/2/capabilities/output: must be a list of capabilities; the service "a" is assumed to support only text
    llmservices.json: /services/2/capabilities/both: there is no such field; it has no effect
    llmservices.json: /services/2/colour: there is no such field; it is kept and has no effect
    llmservices.json: /services/3/baseURL: must be an http or https URL; the service "a" is left out
    llmservices.json: /services/3/id: is already the id of an earlier service; the service "a" is left out
    llmservices.json: /services/4/apiKey: must be printable ASCII on one line; the service "b" is called without a key
    llmservices.json: /services/4/headers/bad name: is not a valid header name; the header is left out
    llmservices.json: /services/4/headers/X-Ok: must be a string; the header is left out
    llmservices.json: /services/4/timeoutMs: must be a whole number above zero; the default is used
    llmservices.json: /services/4/timeouts/connectMs: must be a whole number above zero; the default is used
    llmservices.json: /services/4/timeouts/firstByteMs: must be a whole number above zero; the default is used
    llmservices.json: /services/4/timeouts/betweenByteMs: there is no such field (did you mean "betweenBytesMs"?); it has no effect
    llmservices.json: /services/4/maxTokens: must be a whole number above zero; the server sets the limit
    llmservices.json: /services/4/extraBody: must be an object; no fields are added
    llmservices.json: /services/4/dialect/toolResultMedia: must be "after" or "inline"; the default is used
    llmservices.json: /services/4/dialect/bridgeAfterTool: must be true or false; the default is used
    llmservices.json: /services/4/dialect/systemRole: must be "system", "developer" or "user"; the default is used
    llmservices.json: /services/4/dialect/stream: must be true or false; the default is used
    llmservices.json: /services/4/dialect/toolCallIds: must be "any" or "alnum9"; the default is used
    llmservices.json: /services/4/dialect/maxTokensField: must be "max_tokens" or "max_completion_tokens"; the default is used
    llmservices.json: /services/4/dialect/extra: there is no such field; it has no effect
    llmservices.json: /services/4/name: must be a string; the default is used
    llmservices.json: /services/4/description: must be a string; the default is used
    llmservices.json: /services/4/capabilityTags: must be a list of strings; the default is used
    llmservices.json: /services/4/capabilities: has neither input nor output; the service "b" is assumed to support only text
    llmservices.json: /services/4/maxConcurrentRequests: must be a whole number above zero; there is no limit
    llmservices.json: /services/4/contextWindow: must be a whole number above zero; it is treated as unknown
    llmservices.json: /services/4/fileTypes: must be MIME types such as image/png, image/* or */*; the default is used
    llmservices.json: /services/4/maxImageBytes: must be a whole number above zero; there is no limit
    llmservices.json: /services/4/maxImageEdge: is too large; there is no limit
    llmservices.json: /services/4/maxRequestBytes: must be a whole number above zero; limits.maxRequestBytes of app.json is used
    llmservices.json: /services/4/stripMetadata: must be true or false; the default is used
    llmservices.json: /services/4/price/input: must be a number, zero or above; the price is treated as unknown
    llmservices.json: /services/4/price/output: missing; the price is treated as unknown
    llmservices.json: /services/5: must be an object; the service is left out
    llmservices.json: /services/6/baseURL: must not contain a user name or password (use apiKey or headers); the service "d" is left out
    llmservices.json: /services/7/baseURL: must not contain a query or a fragment; the service "e" is left out
    llmservices.json: /services/8/capabilities: must be an object; the service "f" is assumed to support only text
    llmservices.json: /services/9/apiKey: must be exactly one variable, such as ${OPENAI_API_KEY}, if it begins with ${; the service "g" is called without a key
    llmservices.json: /services/2/fallback: is the id of the service itself; the service "a" has no fallback
    llmservices.json: /services/4/fallback: is not the id of a valid service; the service "b" has no fallback
    "#);
}

#[test]
fn what_looks_like_something_else_is_asked_about_and_kept() {
    let text = r#"{"Services": [], "services": [
        {"id": "a", "baseURL": "https://a.example", "model": "m", "api_key": "sk-1", "contextwindow": 8000,
         "capabilities": {"input": ["text", "Vision", "images", "tools", "smell"], "output": ["text", "tool_use", "json"],
                          "inputs": ["audio"]},
         "dialect": {"system_role": "user"}},
        {"id": "b", "base_url": "https://b.example", "modelName": "m"}
    ]}"#;
    let (services, problems) = parse(text).unwrap();
    let words = |side: &[Capability]| side.iter().map(Capability::as_str).collect::<Vec<_>>().join(",");
    assert_eq!(words(&services[0].capabilities.input), "text,Vision,images,tools,smell");
    assert_eq!(words(&services[0].capabilities.output), "text,tool_use,json");
    assert!(!services[0].capabilities.reads(Kind::Image));
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    assert_eq!(errors, 2, "service b lacks two required fields, and nothing else is an error");
    insta::assert_snapshot!(lines(&problems), @r#"
    llmservices.json: /Services: there is no such field (did you mean "services"?); it has no effect
    llmservices.json: /services/0/dialect/system_role: there is no such field (did you mean "systemRole"?); it has no effect
    llmservices.json: /services/0/capabilities/input/1: is not a known capability (did you mean "vision"?); it is kept as it is
    llmservices.json: /services/0/capabilities/input/2: is not a known capability (did you mean "vision"?); it is kept as it is
    llmservices.json: /services/0/capabilities/input/3: is not a known capability (did you mean "tool_calling" in "output"?); it is kept as it is
    llmservices.json: /services/0/capabilities/output/1: is not a known capability (did you mean "tool_calling"?); it is kept as it is
    llmservices.json: /services/0/capabilities/output/2: is not a known capability (did you mean "structured_output"?); it is kept as it is
    llmservices.json: /services/0/capabilities/inputs: there is no such field (did you mean "input"?); it has no effect
    llmservices.json: /services/0/api_key: there is no such field (did you mean "apiKey"?); it is kept and has no effect
    llmservices.json: /services/0/contextwindow: there is no such field (did you mean "contextWindow"?); it is kept and has no effect
    llmservices.json: /services/1/baseURL: missing (rename "base_url" to "baseURL"?); the service "b" is left out
    llmservices.json: /services/1/model: missing (rename "modelName" to "model"?); the service "b" is left out
    "#);
}

#[test]
fn comments_and_white_space_are_no_change() {
    let check = |one: Option<&str>, other: Option<&str>, expect: bool| {
        assert_eq!((same(one, other), same(other, one)), (expect, expect), "{one:?} {other:?}");
    };
    let (plain, commented) =
        (r#"{"services": [{"id": "a"}]}"#, "// mine\n{\"services\" : [{ \"id\": \"a\" /* it */ }] }");
    check(Some(plain), Some(commented), true);
    check(Some(plain), Some(r#"{"services": [{"id": "b"}]}"#), false);
    check(Some(plain), None, false);
    check(None, None, true);
    check(Some("{"), Some("{"), true);
    check(Some("{"), Some("["), false);
    check(Some("{"), None, false);
}

#[test]
fn whole_files() {
    let check = |text: &str, expect: Result<usize, &str>| match (parse(text), expect) {
        (Ok((services, problems)), Ok(count)) => {
            assert_eq!(services.len(), count);
            assert_eq!(lines(&problems), "");
        }
        (Err(problems), Err(expect)) => assert_eq!(lines(&problems), expect),
        (result, _) => panic!("{result:?}"),
    };
    check("{}", Ok(0));
    check("\u{feff}{\"services\": [] /* none */}", Ok(0));
    check("{\"services\": null}", Ok(0));
    check("", Err("llmservices.json: the file is empty; the file is not used"));
    check("{\"services\": {}}", Err("llmservices.json: /services: must be a list; the file is not used"));
    check(
        "{\"services\": [}",
        Err("llmservices.json:1:15: Unexpected close brace (after `{\"services\": [`); the file is not used"),
    );
    check(
        "{\"services\": [1]}",
        Err("llmservices.json: /services/0: must be an object; the service is left out\n\
             llmservices.json: /services: none of the services is valid; the file is not used"),
    );
}

#[test]
fn tools_are_given_unless_a_declared_output_lacks_them() {
    let check = |capabilities: Value, expect: bool| {
        let (services, _) = parse(&file_with(json!({"capabilities": capabilities}))).unwrap();
        assert_eq!(services[0].tools_allowed(), expect, "{capabilities}");
    };
    check(Value::Null, true);
    check(json!({"output": ["text", "tool_calling"]}), true);
    check(json!({"output": ["text"]}), false);
    check(json!({"input": ["text", "vision"]}), true);
    check(json!({"input": ["tool_calling"], "output": []}), false);
    check(json!({"output": "nonsense"}), true);
}

#[test]
fn no_secret_is_ever_shown() {
    let secret = "sk-1234567890";
    let text = json!({"services": [
        {"id": "a", "baseURL": "https://a.example", "model": "m", "apiKey": secret, "api_key": secret,
         "headers": {"Authorization": secret}},
        {"id": "b", "baseURL": "https://b.example", "model": "m", "apiKey": format!("{secret}\u{7}"),
         "headers": {"X-Bad": format!("é{secret}")}, "dialect": {"systemRole": secret}, "price": secret,
         "capabilities": secret, "timeoutMs": secret, "fileTypes": [secret], "headres": {"Authorization": secret}},
        {"id": "g", "baseURL": "https://g.example", "model": "m", "apikey": secret,
         "capabilities": {"input": ["text", "Vision", secret], "output": ["tools"]}},
        {"id": "c", "baseURL": format!("https://x:{secret}@c.example"), "model": "m"},
        {"id": "d", "baseURL": format!("https://d.example/?key={secret}"), "model": "m"},
        {"id": "e", "baseURL": secret, "model": "m"},
        {"id": "f", "baseURL": "https://f.example", "model": "m", "apiKey": format!("${{{secret}")}
    ]});
    let (services, problems) = parse(&text.to_string()).unwrap();
    assert_eq!(services[0].endpoint.api_key.expose_secret(), secret);
    assert!(services[0].unknown.as_map()["api_key"] == secret);
    assert!(problems.len() >= 12, "{}", lines(&problems));
    // The secret must not be in the `Debug` text of any service except `g`. That service has the secret among its
    // capabilities, and `Debug` shows capabilities. The problems of all services, including `g`, must not show the
    // secret.
    let debugged = services.iter().filter(|service| service.id.as_str() != "g");
    let shown = format!("{:?} {problems:?} {}", debugged.collect::<Vec<_>>(), lines(&problems));
    assert!(!shown.contains(secret), "{shown}");
    // If a file ends in the middle of the key, its problems must not reveal the key either.
    let broken = text.to_string();
    for end in (0..broken.len()).filter(|end| broken.is_char_boundary(*end)) {
        let problems = parse(&broken[..end]).unwrap_err();
        assert!(!lines(&problems).contains(&secret[..6]), "{}", lines(&problems));
    }
}

/// The value of `input` or `output` in `capabilities`: absent, valid or wrong.
#[derive(Clone, Debug)]
enum WrittenSide {
    Absent,
    Valid(Vec<String>),
    /// The value, and the JSON pointer to the bad entry inside the value.
    Bad(Value, String),
}

fn valid_side() -> impl Strategy<Value = Vec<String>> {
    let standard =
        prop::sample::select(Capability::STANDARD.map(|capability| capability.to_string()).to_vec());
    prop::collection::vec(prop_oneof![standard, "[a-z_]{1,8}", "[能力嗅觉]{1,4}"], 0..5)
}

fn written_side() -> impl Strategy<Value = WrittenSide> {
    let bad_item =
        prop_oneof![Just(json!("")), Just(json!("  ")), Just(json!(7)), Just(Value::Null), Just(json!([]))];
    let bad_list = (valid_side(), bad_item, any::<prop::sample::Index>()).prop_map(|(valid, bad, at)| {
        let mut items: Vec<_> = valid.into_iter().map(Value::from).collect();
        let at = at.index(items.len() + 1);
        items.insert(at, bad);
        (Value::Array(items), format!("/{at}"))
    });
    let no_list = prop_oneof![Just(json!("text")), Just(json!(1)), Just(json!({"text": true}))];
    let bad = prop_oneof![bad_list, no_list.prop_map(|value| (value, String::new()))];
    prop_oneof![
        Just(WrittenSide::Absent),
        valid_side().prop_map(WrittenSide::Valid),
        bad.prop_map(|(value, pointer)| WrittenSide::Bad(value, pointer))
    ]
}

fn expected_side(side: &WrittenSide) -> Vec<Capability> {
    match side {
        WrittenSide::Valid(names) => names.iter().filter_map(|name| Capability::new(name)).collect(),
        WrittenSide::Absent | WrittenSide::Bad(..) => vec![Capability::TEXT],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Capability seed (`docs/seeds/capability-routing.design.md`), Property 1:
    /// valid `capabilities` have `input`, `output` or both, each a list of non-empty names.
    /// For any other value, a problem reports the place and the reason, and the service gets text as input and output.
    #[test]
    fn capability_property_1_configuration_validation_rejects_what_is_invalid_with_descriptive_messages(
        input in written_side(), output in written_side(),
    ) {
        let mut declared = Map::new();
        let mut bad = Vec::new();
        for (name, side) in [("input", &input), ("output", &output)] {
            match side {
                WrittenSide::Absent => {}
                WrittenSide::Valid(names) => drop(declared.insert(name.to_owned(), json!(names))),
                WrittenSide::Bad(value, pointer) => {
                    declared.insert(name.to_owned(), value.clone());
                    bad.push(format!("/services/0/capabilities/{name}{pointer}"));
                }
            }
        }
        if declared.is_empty() {
            bad.push("/services/0/capabilities".to_owned());
        }
        let (services, problems) = parse(&file_with(json!({"capabilities": declared.clone()}))).unwrap();
        let service = &services[0];
        // A custom capability that resembles a known one causes a warning, not an error.
        let errors: Vec<&Problem> = problems.iter().filter(|problem| problem.severity == Severity::Error).collect();
        if bad.is_empty() {
            prop_assert!(errors.is_empty(), "{}", lines(&problems));
            let says_output = declared.contains_key("output");
            let expected = if says_output { Declaration::Declared } else { Declaration::InputOnly };
            prop_assert_eq!(service.declared, expected);
            // The model gets tools, except if the file declares an `output` without `tool_calling`.
            let gives_tools = service.capabilities.has(&Capability::TOOL_CALLING, Direction::Output);
            prop_assert_eq!(service.tools_allowed(), gives_tools || !says_output);
            prop_assert_eq!(&service.capabilities.input, &expected_side(&input));
            prop_assert_eq!(&service.capabilities.output, &expected_side(&output));
        } else {
            let places: Vec<Place> = errors.iter().map(|problem| problem.place.clone()).collect();
            prop_assert_eq!(places, bad.into_iter().map(Place::Pointer).collect::<Vec<_>>());
            for problem in errors {
                prop_assert!(problem.what.starts_with("must be ") || problem.what == "has neither input nor output");
                prop_assert_eq!(&problem.done, "the service \"a\" is assumed to support only text");
            }
            prop_assert_eq!(service.declared, Declaration::Assumed);
            prop_assert_eq!(&service.capabilities, &Capabilities::default());
        }
    }

    /// Capability seed (`docs/seeds/capability-routing.design.md`), Property 6:
    /// services without `capabilities` still load without a problem, and get text as input and output.
    #[test]
    fn capability_property_6_backward_compatibility_defaults_to_text_without_capabilities(
        services in prop::collection::btree_map(
            "[a-z0-9-]{1,12}",
            ("[^\\p{C}]{1,20}", "[a-z0-9./:-]{1,20}", "[ -~]{0,20}", prop::collection::vec("[^\\p{C}\\s]{1,8}", 0..4)),
            1..6,
        ),
    ) {
        let written: Vec<_> = services.iter().map(|(id, (name, model, key, tags))| json!({
            "id": id, "name": format!("N{name}"), "baseURL": "http://127.0.0.1:1/v1", "model": model,
            "apiKey": format!("k{key}"), "capabilityTags": tags, "description": name,
        })).collect();
        let (loaded, problems) = parse(&json!({"services": written}).to_string()).unwrap();
        prop_assert_eq!(lines(&problems), "");
        prop_assert_eq!(loaded.len(), services.len());
        for (service, (id, (name, model, key, tags))) in loaded.iter().zip(&services) {
            prop_assert_eq!(service.id.as_str(), id);
            prop_assert_eq!(&service.name, &format!("N{}", name.trim_end()));
            prop_assert_eq!(&service.endpoint.model, model);
            prop_assert_eq!(service.endpoint.api_key.expose_secret(), &format!("k{}", key.trim_end()));
            prop_assert_eq!(&service.capability_tags, tags);
            prop_assert_eq!(&service.capabilities, &Capabilities::default());
            prop_assert_eq!(service.declared, Declaration::Assumed);
            prop_assert!(service.tools_allowed());
            for capability in Capability::STANDARD {
                let is_text = capability == Capability::TEXT;
                prop_assert_eq!(service.capabilities.has(&capability, Direction::Input), is_text);
                prop_assert_eq!(service.capabilities.has(&capability, Direction::Output), is_text);
            }
        }
    }

    #[test]
    fn ids_are_unique_and_fallbacks_exist(
        services in prop::collection::vec(("[abc ]{0,1}", prop::option::of("[abcd]")), 1..8),
    ) {
        let written: Vec<_> = services.iter().map(|(id, fallback)| json!({
            "id": id, "baseURL": "rehearsal:", "model": "m", "fallback": fallback,
        })).collect();
        let first_of_each: Vec<_> = {
            let mut seen = BTreeSet::new();
            services.iter().map(|(id, _)| id.trim()).filter(|id| !id.is_empty() && seen.insert(id.to_string())).collect()
        };
        match parse(&json!({"services": written}).to_string()) {
            Ok((loaded, _)) => {
                let ids: Vec<_> = loaded.iter().map(|service| service.id.as_str()).collect();
                prop_assert_eq!(&ids, &first_of_each);
                for service in &loaded {
                    if let Some(fallback) = &service.fallback {
                        prop_assert!(ids.contains(&fallback.as_str()) && *fallback != service.id);
                    }
                }
            }
            Err(problems) => {
                prop_assert!(first_of_each.is_empty());
                prop_assert!(problems.len() > services.len());
            }
        }
    }

    #[test]
    fn no_text_whatever_brings_the_parser_down(text in "[\\PC\\n]{0,60}|[\\[\\]{}\",:a1 /*.-]{0,40}") {
        if let Err(problems) = parse(&text) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| problem.to_string().lines().count() == 1));
        }
    }
}
