use super::*;
use secrecy::ExposeSecret;

const FILE: &str = r#"{"services": [{"id": "a", "baseURL": "http://a.example/v1", "model": "m"},
                                   {"id": "b", "baseURL": "http://b.example/v1", "model": "m"}]}"#;

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::look_up(|name| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

fn declared_by(text: Option<&str>, variables: &[(&str, &str)]) -> Option<Taken> {
    match declared(text, &environment(variables)).unwrap() {
        (Declared::Services(taken), problems) if problems.is_empty() => Some(taken),
        (Declared::Nothing, problems) if problems.is_empty() => None,
        (_, problems) => panic!("{problems:?}"),
    }
}

#[test]
fn the_file_comes_before_the_environment() {
    let check = |text: Option<&str>, variables: &[(&str, &str)], expect: Option<Origin>| {
        assert_eq!(declared_by(text, variables).map(|taken| taken.origin), expect);
    };
    let key = [("OPENAI_API_KEY", "sk-1")];
    check(Some(FILE), &key, Some(Origin::File));
    check(Some("{\"services\": []}"), &key, Some(Origin::Environment));
    check(None, &key, Some(Origin::Environment));
    check(None, &[("OPENAI_API_KEY", " ")], None);
    check(None, &[("OPENAI_BASE_URL", "http://x.example")], None);
    check(None, &[], None);
    assert_eq!(declared_by(Some(FILE), &[]).unwrap().others.len(), 1);
}

#[test]
fn the_service_of_the_environment_reads_its_key_when_it_is_called() {
    let taken = declared_by(None, &[("OPENAI_API_KEY", "sk-1")]).unwrap();
    let service = &taken.first;
    assert_eq!(service.endpoint.api_key.expose_secret(), "${OPENAI_API_KEY}");
    assert_eq!(service.endpoint.base_url, "https://api.openai.com/v1");
    assert_eq!(service.endpoint.dialect.max_tokens_field, MaxTokensField::MaxCompletionTokens);
    assert_eq!(serde_json::json!(service.file_types), serde_json::json!(["application/pdf"]));
    assert_eq!(service.declared, Declaration::Declared);
    assert!(service.capabilities.input.contains(&Capability::VISION) && service.tools_allowed());
    let variables =
        [("OPENAI_API_KEY", "sk-1"), ("OPENAI_BASE_URL", "http://x.example/v1/"), ("OPENAI_MODEL", "big")];
    let endpoint = &declared_by(None, &variables).unwrap().first.endpoint;
    assert_eq!((endpoint.base_url.as_str(), endpoint.model.as_str()), ("http://x.example/v1", "big"));
}

#[test]
fn a_declaration_that_cannot_be_used_is_an_error_and_no_other_source_stands_in() {
    let check = |text: Option<&str>, variables: &[(&str, &str)], expect: &str| {
        let problems = declared(text, &environment(variables)).unwrap_err();
        assert_eq!(problems.last().unwrap().to_string(), expect);
    };
    let wrong_url = [("OPENAI_API_KEY", "sk-1"), ("OPENAI_BASE_URL", "api.example.com")];
    check(None, &wrong_url, "OPENAI_BASE_URL: must be an http or https URL; the OpenAI service is left out");
    check(
        Some("{\"services\": [{}]}"),
        &[("OPENAI_API_KEY", "sk-1")],
        "llmservices.json: /services: none of the services is valid; the file is not used",
    );
}

#[test]
fn a_found_server_comes_before_rehearsal() {
    let discovered = Discovered {
        server_name: "Ollama".to_owned(),
        first: Service {
            context_window: Some(4_096),
            ..Service::new(ServiceId::new("local"), Endpoint::new("http://127.0.0.1:11434/v1", "qwen3"))
        },
        others: vec![Service::new(
            ServiceId::new("eyes"),
            Endpoint::new("http://127.0.0.1:11434/v1", "qwen3-vl"),
        )],
    };
    let taken = undeclared(vec![discovered]);
    assert_eq!(taken.first.declared, Declaration::Assumed);
    assert_eq!(taken.first.endpoint.model, "qwen3");
    assert_eq!(
        taken.first.context_window,
        Some(4_096),
        "the window that the server reports for the model is used"
    );
    assert_eq!(taken.others[0].endpoint.model, "qwen3-vl");
    assert_eq!(taken.origin.to_string(), "the Ollama server found on this machine");

    let taken = undeclared(Vec::new());
    assert_eq!(taken.origin, Origin::Rehearsal);
    let ids: Vec<_> =
        std::iter::once(&taken.first).chain(&taken.others).map(|service| service.id.as_str()).collect();
    assert_eq!(ids, ["rehearsal-text", "rehearsal-multimodal"]);
    assert!(taken.others.iter().all(|service| service.endpoint.base_url == "rehearsal:"));
    assert_eq!(taken.first.declared, Declaration::Declared);
    assert_eq!(taken.first.capabilities.input, [Capability::TEXT]);
    assert!(taken.first.tools_allowed());
}

#[test]
fn the_services_of_all_found_servers_are_used() {
    let service = |id: &str, port: u16| {
        Service::new(ServiceId::new(id), Endpoint::new(format!("http://127.0.0.1:{port}/v1"), "m"))
    };
    let ollama = Discovered {
        server_name: "Ollama".to_owned(),
        first: service("local", 11_434),
        others: vec![service("local-vision", 11_434)],
    };
    let lm_studio = Discovered {
        server_name: "LM Studio".to_owned(),
        first: service("lm-studio", 1_234),
        others: Vec::new(),
    };
    let taken = undeclared(vec![ollama, lm_studio]);
    assert_eq!(taken.first.id.as_str(), "local", "the first server has the default service");
    let others: Vec<_> = taken.others.iter().map(|service| service.id.as_str()).collect();
    assert_eq!(others, ["local-vision", "lm-studio"]);
    assert_eq!(taken.origin.to_string(), "the model servers found on this machine: Ollama, LM Studio");
}
