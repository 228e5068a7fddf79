use super::*;
use crate::prompts::{self, Overrides, Prompts};
use crate::sources::{self, Declared, Environment};
use crate::{services, settings};
use polity_society::text::Language;
use serde_json::json;
use std::sync::LazyLock;

/// Returns an `app.json` that sets every field to a value other than its default.
fn full_app() -> Value {
    json!({
        "language": "en", "defaultService": "a", "discover": false, "prompts": "mine",
        "limits": {
            "maxToolRounds": 1, "maxModelCallsPerTask": 2, "maxTokensPerTask": 3, "maxCostPerTask": 2.5,
            "maxSecondsPerTask": 3, "maxAgentsPerTask": 4, "maxDepth": 5, "maxChildren": 6, "maxPairExchanges": 7,
            "maxFailedTurns": 20, "maxQueue": 8, "maxMessageChars": 9, "toolResultChars": 10, "inlineTextChars": 11,
            "maxArtifactBytes": 12, "maxArtifactBytesPerTask": 24, "maxRequestBytes": 13
        },
        "synchronous": "normal", "shutdownGraceMs": 14,
        "retry": {"maxAttempts": 15, "baseDelayMs": 16, "maxDelayMs": 17},
        "retention": {"eventsDays": 18, "maxEvents": 19, "maxDatabaseBytes": 21},
        "tools": {
            "root": ["artifacts"], "policy": [{"decide": "deny"}], "approval": {"timeoutMs": 22}, "deferAbove": 23,
            "sandbox": {
                "network": "full", "read": ["/a"], "allowNone": true,
                "limits": {"timeMs": 60, "memoryBytes": 61, "processes": 62, "outputBytes": 63, "diskBytes": 64, "files": 65},
                "taskLimits": {"memoryBytes": 66, "processes": 67, "diskBytes": 68, "timeMs": 69, "outputBytes": 70}
            },
            "web": {"allowHosts": ["a.corp"], "search": "http://a.example/"}
        }
    })
}

/// Returns an `app.json` with the fields of `full_app`, each with another value.
fn other_app() -> Value {
    json!({
        "language": "zh", "defaultService": "b", "discover": true, "prompts": "others",
        "limits": {
            "maxToolRounds": 21, "maxModelCallsPerTask": 22, "maxTokensPerTask": 23, "maxCostPerTask": 2.25,
            "maxSecondsPerTask": 23, "maxAgentsPerTask": 24, "maxDepth": 25, "maxChildren": 26, "maxPairExchanges": 27,
            "maxFailedTurns": 40, "maxQueue": 28, "maxMessageChars": 29, "toolResultChars": 30, "inlineTextChars": 31,
            "maxArtifactBytes": 32, "maxArtifactBytesPerTask": 42, "maxRequestBytes": 33
        },
        "synchronous": "full", "shutdownGraceMs": 34,
        "retry": {"maxAttempts": 35, "baseDelayMs": 15, "maxDelayMs": 37},
        "retention": {"eventsDays": 38, "maxEvents": 39, "maxDatabaseBytes": 41},
        "tools": {
            "root": ["context"], "policy": [{"tool": "bash", "decide": "deny"}], "approval": {"timeoutMs": 24}, "deferAbove": 25,
            "sandbox": {
                "network": ["a.example"], "read": ["/b"], "allowNone": false,
                "limits": {"timeMs": 80, "memoryBytes": 81, "processes": 82, "outputBytes": 83, "diskBytes": 84, "files": 85},
                "taskLimits": {"memoryBytes": 86, "processes": 87, "diskBytes": 88, "timeMs": 89, "outputBytes": 90}
            },
            "web": {"allowHosts": ["b.corp"], "search": "http://b.example/"}
        }
    })
}

/// Returns an MCP server that sets every field to a value other than its default.
fn full_server() -> Value {
    json!({
        "command": "uvx", "args": ["mcp-server-git", "--key", "secret-1"], "env": {"TOKEN": "secret-1"}, "cwd": "a",
        "sandbox": true, "timeoutMs": 7, "groups": ["code"]
    })
}

#[test]
fn each_field_of_an_mcp_server_that_changes_is_told_by_its_name_and_no_secret_is() {
    let lines = |before: Value, after: Value| {
        let of = |servers: Value| snapshot(&json!({"mcpServers": servers}), &full_service());
        let (before, after) = (of(before), of(after));
        assert_eq!(after.problems, []);
        let shown = format!("{} {:?}", after.to_json(), after.settings);
        assert!(!shown.contains("secret-2"), "{shown}");
        differences(&before, &after)
    };
    let full = full_server();
    let http = json!({"url": "https://a.example/secret-2", "headers": {"Authorization": "Bearer secret-2"}});
    for (field, other) in [
        ("command", json!("npx")),
        ("args", json!(["mcp-server-git", "--key", "secret-2"])),
        ("env", json!({"TOKEN": "secret-2"})),
        ("env", json!({"TOKEN": "secret-1", "OTHER": "secret-2"})),
        ("cwd", json!("b")),
        ("sandbox", json!(false)),
        ("timeoutMs", json!(8)),
        ("groups", json!([])),
    ] {
        let mut changed = full.clone();
        changed[field] = other;
        let lines = lines(json!({"git": full}), json!({"git": changed}));
        assert_eq!(lines, [format!("MCP server git: {field} changed")]);
    }
    assert_eq!(lines(json!({"git": full}), json!({"git": full})), [""; 0]);
    assert_eq!(lines(json!({}), json!({"git": full})), ["MCP server git added"]);
    assert_eq!(lines(json!({"git": full, "a": full}), json!({"git": full})), ["MCP server a removed"]);
    let other = json!({"url": "https://a.example/secret-1", "headers": {"Authorization": "Bearer secret-1"}});
    let expect = ["MCP server web: headers changed", "MCP server web: url changed"];
    assert_eq!(lines(json!({"web": other}), json!({"web": http})), expect);
}

#[test]
fn a_changed_key_of_the_search_is_told_without_the_key() {
    let app = |key: &str| json!({"tools": {"web": {"search": {"provider": "brave", "key": key}}}});
    let service = full_service();
    let (before, after) = (snapshot(&app("secret-1"), &service), snapshot(&app("secret-2"), &service));
    assert_eq!(after.problems, []);
    assert_eq!(differences(&before, &after), ["tools.web.search changed"]);
    let shown = format!("{} {:?}", after.to_json(), after.settings);
    assert!(!shown.contains("secret-2"), "{shown}");
}

/// Returns a service that sets every field to a value other than its default.
fn full_service() -> Value {
    json!({
        "id": "a", "name": "first name", "baseURL": "http://first.example/v1", "model": "first", "apiKey": "sk-secret-1",
        "headers": {"X-Key": "Bearer secret-1"}, "description": "first description", "capabilityTags": ["fast"],
        "capabilities": {"input": ["text", "vision"], "output": ["text", "tool_calling"]},
        "maxConcurrentRequests": 2, "timeoutMs": 3,
        "timeouts": {"connectMs": 9, "firstByteMs": 10, "betweenBytesMs": 11}, "maxTokens": 4, "contextWindow": 5, "fallback": "b",
        "fileTypes": ["text/*"], "maxImageBytes": 6, "maxImageEdge": 7, "maxRequestBytes": 8, "stripMetadata": true,
        "price": {"input": 1.5, "output": 2.5}, "extraBody": {"user": "secret-1"},
        "dialect": {"toolResultMedia": "inline", "bridgeAfterTool": true, "systemRole": "user", "stream": false,
                    "toolCallIds": "alnum9", "maxTokensField": "max_completion_tokens", "streamUsage": false}
    })
}

/// Returns a service with the fields of `full_service`, each with another value.
fn other_service() -> Value {
    json!({
        "id": "z", "name": "other name", "baseURL": "http://other.example/v1", "model": "other", "apiKey": "sk-secret-2",
        "headers": {"X-Key": "Bearer secret-2"}, "description": "other description", "capabilityTags": ["slow"],
        "capabilities": {"input": ["text"], "output": ["text"]},
        "maxConcurrentRequests": 12, "timeoutMs": 13,
        "timeouts": {"connectMs": 19, "firstByteMs": 20, "betweenBytesMs": 21}, "maxTokens": 14, "contextWindow": 15, "fallback": "c",
        "fileTypes": ["*/*"], "maxImageBytes": 16, "maxImageEdge": 17, "maxRequestBytes": 18, "stripMetadata": false,
        "price": {"input": 11.5, "output": 12.5}, "extraBody": {"user": "secret-2"},
        "dialect": {"toolResultMedia": "after", "bridgeAfterTool": false, "systemRole": "developer", "stream": true,
                    "toolCallIds": "any", "maxTokensField": "max_tokens", "streamUsage": true}
    })
}

/// Builds the snapshot of an `app.json` and a service, with the problems of both.
fn snapshot(app: &Value, service: &Value) -> Snapshot {
    static PROMPTS: LazyLock<Arc<Prompts>> =
        LazyLock::new(|| Arc::new(prompts::build(Language::Zh, &Overrides::new()).0));
    let (settings, mut problems) = settings::parse(&app.to_string()).unwrap();
    let service_of = |id: &str| json!({"id": id, "baseURL": "rehearsal:", "model": "m"});
    let file = json!({"services": [service, service_of("b"), service_of("c")]});
    let declared = sources::declared(Some(&file.to_string()), &Environment::look_up(|_| None)).unwrap();
    let (Declared::Services(taken), of_services) = declared else { panic!("the file declares services") };
    problems.extend(of_services);
    Snapshot {
        revision: 1,
        catalogue: Arc::new(Catalogue::new(1, &taken, settings.default_service.as_ref()).0),
        settings: Arc::new(settings),
        prompts: Arc::clone(&PROMPTS),
        problems,
    }
}

/// Returns the JSON pointers of all values inside `value` that are not objects.
fn leaves(value: &Value) -> Vec<String> {
    let Value::Object(fields) = value else { return vec![String::new()] };
    let inner = |(name, value): (&String, &Value)| {
        leaves(value).into_iter().map(move |rest| format!("/{name}{rest}")).collect()
    };
    fields.iter().flat_map::<Vec<String>, _>(inner).collect()
}

/// Returns the words that a line about the field at `pointer` must contain.
fn name_of(pointer: &str) -> String {
    match pointer {
        "/id" => "service z added".to_owned(),
        "/headers/X-Key" => "headers changed".to_owned(),
        "/extraBody/user" => "extraBody changed".to_owned(),
        "/name" | "/description" | "/apiKey" => format!("{} changed", &pointer[1..]),
        _ => format!("{}: ", pointer[1..].replace('/', ".")),
    }
}

/// Returns `value` without the field at `pointer`.
fn without(value: &Value, pointer: &str) -> Value {
    let mut value = value.clone();
    let (object, name) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(object).and_then(Value::as_object_mut).and_then(|fields| fields.remove(name)).unwrap();
    value
}

#[track_caller]
fn check_line(lines: &[String], expect: &str) {
    assert!(lines.iter().any(|line| line.contains(expect)), "no {expect:?} in {lines:?}");
    assert!(!lines.iter().any(|line| line.contains("secret")), "{lines:?}");
}

#[test]
fn each_setting_that_changes_is_told_by_its_name() {
    let (full, other, service) = (full_app(), other_app(), full_service());
    let before = snapshot(&full, &service);
    assert_eq!(differences(&before, &snapshot(&full, &service)), [""; 0]);
    assert_eq!(leaves(&full), leaves(&show::settings(&before.settings)), "`full_app` has every setting");
    for pointer in leaves(&full) {
        let mut changed = full.clone();
        *changed.pointer_mut(&pointer).unwrap() = other.pointer(&pointer).unwrap().clone();
        let after = snapshot(&changed, &service);
        assert_eq!(after.problems, [], "{pointer}");
        check_line(&differences(&before, &after), &name_of(&pointer));
        let after = snapshot(&without(&full, &pointer), &service);
        check_line(&differences(&before, &after), &name_of(&pointer));
    }
}

#[test]
fn each_field_of_a_service_that_changes_is_told_by_its_name_and_no_secret_is() {
    let (app, full, other) = (json!({}), full_service(), other_service());
    let before = snapshot(&app, &full);
    assert_eq!((before.problems.len(), differences(&before, &snapshot(&app, &full)).len()), (0, 0));
    for pointer in leaves(&full) {
        let mut changed = full.clone();
        *changed.pointer_mut(&pointer).unwrap() = other.pointer(&pointer).unwrap().clone();
        let after = snapshot(&app, &changed);
        assert_eq!(after.problems, [], "{pointer}");
        check_line(&differences(&before, &after), &name_of(&pointer));
        if !["/id", "/baseURL", "/model"].contains(&pointer.as_str()) {
            let after = snapshot(&app, &without(&full, &pointer));
            check_line(&differences(&before, &after), &name_of(&pointer));
        }
    }
}

/// Checks that `full_service` has every field of a service. The compiler ensures that `show::service` shows them all.
#[test]
fn the_service_of_these_tests_has_every_field() {
    let shown = show::service(
        &services::parse(
            &json!({"services": [full_service(), {"id": "b", "baseURL": "rehearsal:", "model": "m"}]})
                .to_string(),
        )
        .unwrap()
        .0[0],
    );
    let names = |value: &Value| -> Vec<String> {
        // Compare only the names `headers` and `extraBody`, not the fields inside them: any fields are allowed there.
        let outer = |pointer: &str| pointer.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        let is_open = |pointer: &str| pointer.starts_with("/headers") || pointer.starts_with("/extraBody");
        let derived = ["/capabilitiesDeclared", "/givenTools"];
        let mut names: Vec<String> = leaves(value)
            .into_iter()
            .filter(|pointer| !derived.contains(&pointer.as_str()))
            .map(|pointer| if is_open(&pointer) { outer(&pointer) } else { pointer })
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(&full_service()), names(&shown));
    assert_eq!(leaves(&full_service()), leaves(&other_service()));
}

#[test]
fn what_is_said() {
    let service = |more: Value| {
        let mut service = json!({"id": "a", "baseURL": "http://a.example", "model": "m"});
        service.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        service
    };
    let before = snapshot(
        &json!({"limits": {"maxTokensPerTask": 5}}),
        &service(json!({"capabilities": {"input": ["text"]}})),
    );
    let after = snapshot(
        &json!({"defaultService": "b", "limits": {"maxTokensPerTask": null}, "retry": {"maxAttempts": 2}}),
        &service(json!({
            "capabilities": {"input": ["text", "vision"], "output": ["text"]}, "apiKey": "sk-secret", "fileTypes": [],
            "price": {"input": 0.3, "output": 2.5}, "dialect": {"stream": false}, "colour": "secret",
        })),
    );
    insta::assert_snapshot!(differences(&before, &after).join("\n"), @r"
    defaultService: none → b
    limits.maxTokensPerTask: 5 → none
    retry.maxAttempts: 6 → 2
    service a: capabilities.input: text → text,vision
    service a: givenTools: true → false
    service a: dialect.stream: true → false
    service a: fileTypes: */* → none
    service a: price.input: none → 0.3
    service a: price.output: none → 2.5
    service a: apiKey changed
    service a: unknown fields changed
    default service: a → b
    ");
}

#[test]
fn what_is_declared_counts_even_where_it_is_what_was_assumed() {
    let service = |capabilities: Value| json!({"id": "a", "baseURL": "http://a.example", "model": "m", "capabilities": capabilities});
    let check = |before: Value, after: Value, expect: &[&str]| {
        let app = json!({});
        assert_eq!(differences(&snapshot(&app, &service(before)), &snapshot(&app, &service(after))), expect);
    };
    let tools = "service a: givenTools: true → false";
    let declared = "service a: capabilitiesDeclared: false → true";
    check(Value::Null, json!({"output": ["text"]}), &[declared, tools]);
    check(Value::Null, json!({"input": ["text"]}), &[declared]);
    check(json!({"input": ["text"]}), json!({"input": ["text"], "output": ["text"]}), &[tools]);
}

#[test]
fn services_that_come_go_and_change_places() {
    let catalogue = |ids: &[&str]| {
        let services: Vec<Value> =
            ids.iter().map(|id| json!({"id": id, "baseURL": "rehearsal:", "model": "m"})).collect();
        let text = json!({"services": services}).to_string();
        let Ok((Declared::Services(taken), _)) =
            sources::declared(Some(&text), &Environment::look_up(|_| None))
        else {
            panic!("the file declares services")
        };
        Catalogue::new(1, &taken, None).0
    };
    let check = |before: &[&str], after: &[&str], expect: &[&str]| {
        let mut lines = Vec::new();
        super::services(&catalogue(before), &catalogue(after), &mut lines);
        assert_eq!(lines, expect);
    };
    check(&["a", "b"], &["a", "b"], &[]);
    check(&["a", "b"], &["a", "c", "b"], &["service c added"]);
    check(&["a", "b", "c"], &["a", "c"], &["service b removed"]);
    check(&["a", "b"], &["b"], &["service a removed", "default service: a → b"]);
    check(&["a", "b", "c"], &["a", "c", "b"], &["the order of the services changed"]);
    check(&["a", "b"], &["b", "a"], &["the order of the services changed", "default service: a → b"]);
}
