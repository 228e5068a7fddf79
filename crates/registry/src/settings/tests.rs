use super::*;
use crate::SecretText;
use polity_sandbox::Network;
use polity_society::policy::{Effect, HostPattern, Pattern, Rule, Source, Verdict};
use polity_society::tool_group::Grant;
use polity_web::{Search, SearchKey};
use secrecy::ExposeSecret;
use serde_json::json;
use std::collections::BTreeSet;

fn parsed(text: &str) -> (Settings, Vec<String>) {
    let (settings, problems) = parse(text).unwrap();
    (settings, problems.iter().map(Problem::to_string).collect())
}

#[test]
fn the_shipped_file_says_the_defaults() {
    assert_eq!(parsed(include_str!("../../../../config/app.json")), (Settings::default(), Vec::new()));
    assert_eq!(parsed("{}"), (Settings::default(), Vec::new()));
}

#[test]
fn the_shipped_file_names_every_limit() {
    let root = fields::parse_object(FILE, include_str!("../../../../config/app.json")).unwrap();
    assert_eq!(root["limits"], serde_json::to_value(Limits::default()).unwrap());
}

#[test]
fn everything_can_be_set() {
    let text = r#"{
        "language": "en", "defaultService": " local ", "discover": false, "prompts": "my prompts",
        "limits": {
            "maxToolRounds": 1, "maxModelCallsPerTask": 2, "maxTokensPerTask": null, "maxCostPerTask": 2.5,
            "maxSecondsPerTask": 3, "maxAgentsPerTask": 4, "maxDepth": 5, "maxChildren": 6,
            "maxPairExchanges": 7, "maxFailedTurns": 18, "maxQueue": 8, "maxMessageChars": 9, "toolResultChars": 10,
            "inlineTextChars": 11, "maxArtifactBytes": 12, "maxArtifactBytesPerTask": 20, "maxRequestBytes": 13
        },
        "synchronous": "normal", "shutdownGraceMs": 14,
        "retry": {"maxAttempts": 15, "baseDelayMs": 16, "maxDelayMs": 17},
        "retention": {"eventsDays": 18, "maxEvents": null, "maxDatabaseBytes": 19},
        "tools": {
            "root": ["artifacts", "messages", "mcp:git", "mcp:code", "mcp:*"],
            "policy": [
                {"tool": "bash", "command": "git push*", "decide": "ask"},
                {"group": "web", "host": "*.Example.org", "decide": "allow"},
                {"role": "Reviewer", "group": "mcp:git", "write": true, "seen": ["web", "mcp:git"], "decide": "deny"},
                {"tool": "git__*", "write": false, "decide": "allow"}
            ],
            "approval": {"timeoutMs": 20}, "deferAbove": "25%",
            "sandbox": {
                "network": ["example.org", "*.example.org"], "read": ["/opt"], "allowNone": true,
                "limits": {"timeMs": 21, "memoryBytes": 22, "processes": 23, "outputBytes": 24, "diskBytes": 25, "files": 26},
                "taskLimits": {"memoryBytes": 27, "processes": 28, "diskBytes": 29, "timeMs": 31, "outputBytes": 32}
            },
            "web": {"allowHosts": ["*.corp", "10.0.0.0/8"], "search": {"provider": "tavily", "key": "${KEY}"}}
        },
        "mcpServers": {
            "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN": "${TOKEN}"}, "cwd": "/srv",
                    "sandbox": true, "timeoutMs": 30, "groups": ["code"]},
            "far": {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
        }
    }"#;
    let name = |name: &str| ServerName::new(name).unwrap();
    let pattern = |text: &str| Some(Pattern::new(text));
    let secret = SecretText::new;
    let git = ServerSettings {
        launch: ServerLaunch::Process {
            command: secret("uvx"),
            args: vec![secret("mcp-server-git")],
            env: BTreeMap::from([("TOKEN".to_owned(), secret("${TOKEN}"))]),
            cwd: Some(secret("/srv")),
            sandbox: ServerSandbox::On,
        },
        timeout: Duration::from_millis(30),
        groups: BTreeSet::from([name("code")]),
    };
    let far = ServerSettings {
        launch: ServerLaunch::Http {
            url: secret("https://${HOST}/mcp"),
            headers: BTreeMap::from([("Authorization".to_owned(), secret("Bearer ${TOKEN}"))]),
        },
        timeout: Duration::from_secs(60),
        groups: BTreeSet::new(),
    };
    let host = HostPattern::parse("*.example.org").unwrap();
    let tools = ToolSettings {
        root: vec![
            Grant::Group(ToolGroup::Artifacts),
            Grant::Group(ToolGroup::Server(name("git"))),
            Grant::Group(ToolGroup::Server(name("code"))),
            Grant::EveryServer,
        ],
        policy: vec![
            Rule {
                tool: pattern("bash"),
                command: pattern("git push*"),
                ..Rule::of_everything(Verdict::Ask)
            },
            Rule { group: pattern("web"), host: Some(host), ..Rule::of_everything(Verdict::Allow) },
            Rule {
                role: pattern("Reviewer"),
                group: pattern("mcp:git"),
                write: Some(Effect::Changes),
                seen: vec![Source::Web, Source::Server(name("git"))],
                ..Rule::of_everything(Verdict::Deny)
            },
            Rule {
                tool: pattern("git__*"),
                write: Some(Effect::Reads),
                ..Rule::of_everything(Verdict::Allow)
            },
        ],
        approval_timeout: Duration::from_millis(20),
        defer_above: Percent::new(25).unwrap(),
        sandbox: SandboxSettings {
            network: Network::Domains(vec!["example.org".to_owned(), "*.example.org".to_owned()]),
            read: vec![PathBuf::from("/opt")],
            allow_none: Unconfined::Allowed,
            limits: polity_sandbox::Limits {
                timeout_ms: 21,
                memory_bytes: 22,
                processes: 23,
                output_bytes: 24,
                disk_bytes: 25,
                files: 26,
            },
            task_limits: TaskLimits {
                memory_bytes: 27,
                processes: 28,
                disk_bytes: 29,
                time_ms: 31,
                output_bytes: 32,
            },
        },
        web: WebSettings {
            allow_hosts: vec!["*.corp".parse().unwrap(), "10.0.0.0/8".parse().unwrap()],
            search: Some(SearchSettings::WithKey { provider: SearchProvider::Tavily, key: secret("${KEY}") }),
        },
    };
    let expect = Settings {
        language: Language::En,
        default_service: Some(ServiceId::new("local")),
        discover: Discover::Off,
        prompts: Some(PathBuf::from("my prompts")),
        limits: Limits {
            max_tool_rounds: 1,
            max_model_calls_per_task: Some(2),
            max_tokens_per_task: None,
            max_cost_per_task: Some(2.5),
            max_seconds_per_task: Some(3),
            max_agents_per_task: 4,
            max_depth: 5,
            max_children: 6,
            max_pair_exchanges: 7,
            max_failed_turns: 18,
            max_queue: 8,
            max_message_chars: 9,
            tool_result_chars: 10,
            inline_text_chars: 11,
            max_artifact_bytes: 12,
            max_artifact_bytes_per_task: 20,
            max_request_bytes: 13,
        },
        synchronous: Synchronous::Normal,
        shutdown_grace: Duration::from_millis(14),
        retry: Retry {
            max_attempts: 15,
            base_delay: Duration::from_millis(16),
            max_delay: Duration::from_millis(17),
        },
        retention: Retention { events_days: Some(18), max_events: None, max_database_bytes: Some(19) },
        tools,
        servers: BTreeMap::from([(name("git"), git), (name("far"), far)]),
    };
    assert_eq!(parsed(text), (expect, Vec::new()));
}

#[test]
fn a_bad_field_costs_its_own_value_only() {
    let text = r#"{
        "language": "fr", "defaultService": "", "discover": "yes", "prompts": 3, "synchronous": true,
        "shutdownGraceMs": -1, "colour": "red",
        "limits": {"maxToolRounds": 0, "maxDepth": -3, "maxChildren": 1.5, "maxTokensPerTask": "many",
                   "maxCostPerTask": 0, "maxQueue": 7, "maxPears": 3},
        "retry": {"maxAttempts": 99999999999, "baseDelayMs": 900, "maxDelayMs": 800},
        "retention": {"eventsDays": 0, "maxEvents": -1, "records": 3},
        "tools": {"root": ["organization", "artifacts", "context", "files", "command", "web", "mcp:*", "memory", "hammers"], "leaf": []}
    }"#;
    let (settings, problems) = parsed(text);
    let limits = Limits { max_queue: 7, ..Limits::default() };
    let pause = Duration::from_millis(900);
    let retry = Retry { base_delay: pause, max_delay: pause, ..Retry::default() };
    assert_eq!(settings, Settings { limits, retry, ..Settings::default() });
    insta::assert_snapshot!(problems.join("\n"), @r#"
    app.json: /language: must be "zh" or "en"; the default is used
    app.json: /defaultService: must not be empty; the first service is the default
    app.json: /discover: must be true or false; the default is used
    app.json: /prompts: must be a string; the built-in prompts are used
    app.json: /limits/maxToolRounds: must be a whole number above zero; the default is used
    app.json: /limits/maxTokensPerTask: must be a whole number above zero; the default is used
    app.json: /limits/maxCostPerTask: must be a number above zero; the default is used
    app.json: /limits/maxDepth: must be a whole number above zero; the default is used
    app.json: /limits/maxChildren: must be a whole number above zero; the default is used
    app.json: /limits/maxPears: there is no such field; it has no effect
    app.json: /synchronous: must be "full" or "normal"; the default is used
    app.json: /shutdownGraceMs: must be a whole number above zero; the default is used
    app.json: /retry/maxAttempts: is too large; the default is used
    app.json: /retry/maxDelayMs: is less than baseDelayMs; baseDelayMs is used for both
    app.json: /retention/eventsDays: must be a whole number above zero; the default is used
    app.json: /retention/maxEvents: must be a whole number above zero; the default is used
    app.json: /retention/records: there is no such field; it has no effect
    app.json: /tools/root: this version does not have the tool group "memory" yet; it has no effect
    app.json: /tools/root: "hammers" is not a tool group; it has no effect
    app.json: /tools/leaf: there is no such field; it has no effect
    app.json: /colour: there is no such field; it has no effect
    "#);
}

#[test]
fn what_is_no_json_object_is_not_taken() {
    let check = |text: &str, expect: &str| assert_eq!(parse(text).unwrap_err().to_string(), expect);
    check("", "app.json: the file is empty; the file is not used");
    check(
        "{\"language\": \"en\"",
        "app.json:1:18: Unterminated object (after `{\"language\": \"…\"`); the file is not used",
    );
    check("[]", "app.json: must contain one JSON object; the file is not used");
}

/// Returns the settings of an `app.json` with these tools and servers, and the problems of this file as text.
fn of_tools(tools: Value, servers: Value) -> (Settings, String) {
    let (settings, problems) = parsed(&json!({"tools": tools, "mcpServers": servers}).to_string());
    (settings, problems.join("\n"))
}

#[test]
fn a_mistake_in_the_tools_costs_its_own_value_only() {
    let tools = json!({
        "root": ["files", "mcp:lost"], "deferAbove": "101%", "approval": {"timeoutMs": 0, "ms": 1},
        "sandbox": {
            "network": ["https://example.org", "a.example"], "read": ["src", "/opt"], "allowNone": "no",
            "limits": {"timeMs": "1s", "processes": 7}, "taskLimits": {"files": 1}
        },
        "web": {"allowHosts": ["a b", "wiki.corp"], "search": {"provider": "altavista"}}
    });
    let (settings, problems) = of_tools(tools, json!({}));
    insta::assert_snapshot!(problems, @r#"
    app.json: /tools/root: mcpServers has no server or group for "mcp:lost"; it has no effect
    app.json: /tools/approval/timeoutMs: must be a whole number above zero; the default is used
    app.json: /tools/approval/ms: there is no such field; it has no effect
    app.json: /tools/deferAbove: must be a whole number of percent from 0 to 100, such as 10 or "10%"; the default is used
    app.json: /tools/sandbox/network/0: must be a domain such as example.org, or *.example.org for all names below it; it is left out
    app.json: /tools/sandbox/read/0: must be an absolute path; it is left out
    app.json: /tools/sandbox/allowNone: must be true or false; the default is used
    app.json: /tools/sandbox/limits/timeMs: must be a whole number above zero; the default is used
    app.json: /tools/sandbox/taskLimits/files: there is no such field; it has no effect
    app.json: /tools/web/allowHosts/0: must be a name (wiki.corp), names below one (*.corp), an address (10.0.0.7, [::1]) or a range (10.0.0.0/8), with :port behind it for a single port; it is left out
    app.json: /tools/web/search/provider: must be "brave" or "tavily"; there is no search
    app.json: /tools/web/search/key: missing; there is no search
    "#);
    let expect = ToolSettings {
        root: vec!["files".parse().unwrap(), "mcp:lost".parse().unwrap()],
        sandbox: SandboxSettings {
            network: Network::Domains(vec!["a.example".to_owned()]),
            read: vec![PathBuf::from("/opt")],
            limits: polity_sandbox::Limits { processes: 7, ..Default::default() },
            ..SandboxSettings::default()
        },
        web: WebSettings { allow_hosts: vec!["wiki.corp".parse().unwrap()], search: None },
        ..ToolSettings::default()
    };
    assert_eq!(settings.tools, expect);
}

#[test]
fn a_mistake_in_a_rule_never_widens_what_agents_may_do() {
    let check = |rule: Value, expect: Option<Verdict>| {
        let (settings, problems) = of_tools(json!({"policy": [rule]}), json!({}));
        assert_eq!(settings.tools.policy.first().map(|rule| rule.decide), expect, "{rule}");
        assert!(problems.starts_with("app.json: /tools/policy/0"), "{rule}: {problems}");
        settings.tools.policy.into_iter().next()
    };
    for (field, wrong) in [
        ("tool", json!(1)),
        ("group", json!([])),
        ("role", json!("")),
        ("command", json!(false)),
        ("host", json!("https://example.org")),
        ("write", json!("yes")),
        ("seen", json!(["radio"])),
        ("seen", json!([])),
        ("commnad", json!("git push*")),
    ] {
        check(json!({(field): wrong, "decide": "allow"}), None);
        for verdict in [Verdict::Ask, Verdict::Deny] {
            let rule = check(json!({(field): wrong, "decide": verdict}), Some(verdict));
            assert_eq!(rule, Some(Rule::of_everything(verdict)));
        }
    }
    check(json!({"tool": "bash"}), Some(Verdict::Ask));
    check(json!({"tool": "bash", "decide": "permit"}), Some(Verdict::Ask));
    check(json!("deny"), None);
}

#[test]
fn a_rule_that_never_fits_is_warned_of() {
    let policy = json!([
        {"tool": "hammer", "decide": "deny"}, {"group": "hammers", "decide": "deny"}, {"tool": "lost__x", "decide": "deny"},
        {"group": "mcp:lost", "decide": "deny"}, {"seen": ["mcp:lost"], "decide": "deny"},
        {"tool": "*", "decide": "deny"}, {"tool": "git__*", "decide": "deny"}, {"group": "mcp:*", "decide": "deny"},
        {"tool": "str_replace_editor", "decide": "deny"}, {"group": "mcp:code", "seen": ["mcp:git"], "decide": "deny"}
    ]);
    let servers = json!({"git": {"command": "git", "groups": ["code"]}});
    let (settings, problems) = of_tools(json!({"policy": policy}), servers);
    assert_eq!(settings.tools.policy.len(), 10);
    insta::assert_snapshot!(problems, @r#"
    app.json: /tools/policy/0/tool: there is no such tool; the rule never fits
    app.json: /tools/policy/1/group: there is no such tool group; the rule never fits
    app.json: /tools/policy/2/tool: there is no such tool; the rule never fits
    app.json: /tools/policy/3/group: there is no such tool group; the rule never fits
    app.json: /tools/policy/4/seen: names an MCP server that mcpServers does not have; nobody can have seen it
    "#);
}

#[test]
fn a_server_with_a_mistake_in_its_start_is_left_out() {
    let servers = json!({
        "a b": {"command": "x"}, "both": {"command": "x", "url": "http://a.example"}, "neither": {"args": []},
        "text": "npx", "empty": {"command": " "}, "args": {"command": "x", "args": ["a", 1]},
        "env": {"command": "x", "env": {"A-B": "1"}}, "port": {"command": "x", "env": {"PORT": 80}},
        "scheme": {"url": "ftp://a.example"}, "header": {"url": "http://a.example", "headers": {"A B": "x"}},
        "dollar": {"command": "x", "args": ["${A B}"]}, "old": {"type": "sse", "url": "http://a.example"},
        "kept": {"command": "x", "timeoutMs": 0, "sandbox": 1, "groups": ["a b", "other", "code"], "disabled": true},
        "other": {"url": "http://a.example", "sandbox": true}
    });
    let (settings, problems) = of_tools(json!({}), servers);
    assert_eq!(settings.servers.keys().map(ServerName::as_str).collect::<Vec<_>>(), ["kept", "other"]);
    let kept = &settings.servers[&ServerName::new("kept").unwrap()];
    assert_eq!(kept.groups.iter().map(ServerName::as_str).collect::<Vec<_>>(), ["code"]);
    insta::assert_snapshot!(problems, @r#"
    app.json: /mcpServers/a b: is not a valid name (use at most 32 letters, digits, - and single _); the MCP server "a b" is left out
    app.json: /mcpServers/both/url: stands beside command (keep one of them); the MCP server "both" is left out
    app.json: /mcpServers/neither/command: missing (write the program of the server, or its address as url); the MCP server "neither" is left out
    app.json: /mcpServers/text: must be an object; the MCP server "text" is left out
    app.json: /mcpServers/empty/command: must not be empty; the MCP server "empty" is left out
    app.json: /mcpServers/args/args: must be a string; the MCP server "args" is left out
    app.json: /mcpServers/env/env/A-B: is not the name of an environment variable; the MCP server "env" is left out
    app.json: /mcpServers/port/env/PORT: must be a string; the MCP server "port" is left out
    app.json: /mcpServers/scheme/url: must be an http or https URL; the MCP server "scheme" is left out
    app.json: /mcpServers/header/headers/A B: is not a valid header name; the MCP server "header" is left out
    app.json: /mcpServers/dollar/args: must use ${ only to name an environment variable, such as ${GITHUB_TOKEN}; the MCP server "dollar" is left out
    app.json: /mcpServers/old/type: the transport sse is not spoken (remove the field if the server speaks streamable HTTP); the MCP server "old" is left out
    app.json: /mcpServers/kept/sandbox: must be true or false; the default is used
    app.json: /mcpServers/kept/timeoutMs: must be a whole number above zero; the default is used
    app.json: /mcpServers/kept/groups/0: is not a valid name (use at most 32 letters, digits, - and single _, without mcp:); it is left out
    app.json: /mcpServers/kept/disabled: there is no such field; it has no effect
    app.json: /mcpServers/other/sandbox: there is no such field; it has no effect
    app.json: /mcpServers/kept/groups: names a group that is the name of another server; it is left out
    "#);
}

#[test]
fn a_search_has_an_address_or_a_provider_with_a_key() {
    let read = |search: &Value| {
        let web = json!({"allowHosts": ["wiki.corp"], "search": search});
        let (settings, problems) = of_tools(json!({"web": web}), json!({}));
        let resolved = settings.tools.web.resolve(|name| (name == "KEY").then(|| "k3y".to_owned()));
        (resolved.unwrap(), problems)
    };
    let with = |search: Option<Search>| {
        let allow_hosts = vec!["wiki.corp".parse().unwrap()];
        polity_web::Settings { allow_hosts, search, ..polity_web::Settings::default() }
    };
    let address = "http://127.0.0.1:8888/searx";
    for (written, expect) in [
        (json!(null), None),
        (json!(address), Some(Search::Searxng { url: address.parse().unwrap() })),
        (json!({"provider": "brave", "key": "${KEY}"}), Some(Search::Brave { key: SearchKey::new("k3y") })),
        (json!({"provider": "tavily", "key": "own"}), Some(Search::Tavily { key: SearchKey::new("own") })),
    ] {
        assert_eq!(read(&written), (with(expect), String::new()), "{written}");
    }
    for wrong in ["a.example", "ftp://a.example", "http://user:password@a.example"] {
        let (settings, problems) = read(&json!(wrong));
        assert_eq!(settings, with(None), "{wrong}");
        assert!(problems.starts_with("app.json: /tools/web/search: "), "{wrong}: {problems}");
    }
}

#[test]
fn an_unset_variable_costs_its_own_server_only() {
    let servers = json!({
        "git": {"command": "uvx", "args": ["--token", "${TOKEN}"], "env": {"A": "x ${LOST} ${TOKEN}"}},
        "far": {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    });
    let web = json!({"search": {"provider": "brave", "key": "${LOST}"}});
    let (settings, problems) = of_tools(json!({"web": web}), servers);
    assert_eq!(problems, "");
    let lookup = |name: &str| match name {
        "TOKEN" => Some("secret".to_owned()),
        "HOST" => Some("a.example".to_owned()),
        _ => None,
    };
    let resolved = |name: &str| settings.servers[&ServerName::new(name).unwrap()].resolve(lookup);
    assert_eq!(resolved("git").map_err(|unset| unset.name).map(drop), Err("LOST".to_owned()));
    let ServerLaunch::Http { url, headers } = resolved("far").unwrap() else {
        panic!("a server by its address")
    };
    assert_eq!(url.expose_secret(), "https://a.example/mcp");
    assert_eq!(headers["Authorization"].expose_secret(), "Bearer secret");
    assert!(settings.tools.web.resolve(lookup).is_err());
    let lines: Vec<String> = settings.unset_variables(lookup).iter().map(Problem::to_string).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    app.json: /mcpServers/git/env/A: the environment variable LOST is not set; the MCP server "git" does not start until it is
    app.json: /tools/web/search/key: the environment variable LOST is not set; there is no search until it is
    "#);
}

#[test]
fn a_share_is_a_whole_number_of_percent() {
    for (written, expect) in [(json!(0), 0), (json!(10), 10), (json!("25%"), 25), (json!(" 100 % "), 100)] {
        let (settings, problems) = of_tools(json!({"deferAbove": written}), json!({}));
        assert_eq!((settings.tools.defer_above.get(), problems), (expect, String::new()));
    }
    for wrong in [json!(101), json!(-1), json!(1.5), json!("10"), json!("ten%"), json!(true)] {
        let (settings, problems) = of_tools(json!({"deferAbove": wrong}), json!({}));
        assert_eq!(settings.tools.defer_above.get(), 10);
        assert!(problems.contains("/tools/deferAbove: must be a whole number of percent"), "{problems}");
    }
    assert_eq!(Percent::new(10).map(|percent| percent.of(u64::MAX)), Some(u64::MAX / 10));
    assert_eq!(Percent::new(100).map(|percent| percent.of(u64::MAX)), Some(u64::MAX));
}
