use super::super::host::HostPattern;
use super::super::pattern::Pattern;
use super::super::remembered::remember;
use super::*;
use crate::tool_group::ServerName;
use proptest::prelude::*;
use serde_json::json;

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn call(tool: &str, group: &str, reach: Reach) -> CallFacts {
    let (tool, role) = (tool.to_owned(), "Writer".to_owned());
    CallFacts {
        tool,
        group: group.parse().unwrap(),
        role,
        reach,
        seen: BTreeSet::new(),
        servers: ServerGroups::default(),
    }
}

fn bash(command: &str, confinement: Confinement) -> CallFacts {
    call("bash", "command", Reach::Command { command: command.to_owned(), confinement })
}

fn request(host: &str, effect: Effect) -> CallFacts {
    call("http_request", "web", Reach::Web { host: Some(host.to_owned()), effect })
}

fn of_server(name: &str, effect: Effect) -> CallFacts {
    call("git__push", &format!("mcp:{name}"), Reach::Server { server: server(name), effect })
}

fn having_seen(mut call: CallFacts, source: Source) -> CallFacts {
    call.seen.insert(source);
    call
}

#[test]
fn without_a_rule_what_the_call_reaches_decides() {
    use Confinement::{Full, FullWithNetwork, None, Partial};
    use Effect::{Changes, Reads};
    let check = |call: CallFacts, expect: &str, expect_when_seen: &str| {
        let in_words = |decision: Decision| match decision {
            Decision::Allow => "allow",
            Decision::Ask(Reason::Seen { .. }, Often::EachTime) => "ask: seen",
            Decision::Ask(_, Often::EachTime) => "ask each time",
            Decision::Ask(_, Often::OncePerTask) => "ask once",
            Decision::Deny { .. } => "deny",
        };
        assert_eq!(in_words(decide(&call, &[], &[])), expect, "{call:?}");
        let call = having_seen(call, Source::Web);
        assert_eq!(in_words(decide(&call, &[], &[])), expect_when_seen, "{call:?}");
    };
    check(call("create_role", "organization", Reach::Society), "allow", "allow");
    check(call("search_files", "files", Reach::ReadsWorkspace), "allow", "allow");
    check(call("str_replace_editor", "files", Reach::ChangesWorkspace), "allow", "allow");
    check(bash("ls", Full), "allow", "allow");
    check(bash("ls", FullWithNetwork), "allow", "ask: seen");
    check(bash("ls", Partial), "ask each time", "ask: seen");
    check(bash("ls", None), "ask each time", "ask: seen");
    check(request("a.example", Reads), "allow", "allow");
    check(request("a.example", Changes), "ask each time", "ask: seen");
    check(of_server("git", Reads), "allow", "allow");
    check(of_server("git", Changes), "ask once", "ask: seen");
    check(call("own", "files", Reach::Other(Reads)), "allow", "allow");
    check(call("own", "files", Reach::Other(Changes)), "allow", "ask: seen");
}

#[test]
fn the_first_rule_that_fits_decides() {
    let rules = [
        Rule {
            tool: Some(Pattern::new("bash")),
            command: Some(Pattern::new("git push*")),
            ..Rule::of_everything(Verdict::Ask)
        },
        Rule {
            group: Some(Pattern::new("web")),
            host: HostPattern::parse("*.example.org").ok(),
            ..Rule::of_everything(Verdict::Allow)
        },
        Rule {
            role: Some(Pattern::new("Writer")),
            group: Some(Pattern::new("files")),
            write: Some(Effect::Changes),
            ..Rule::of_everything(Verdict::Deny)
        },
        Rule {
            seen: vec![Source::Server(server("mail")), Source::Files],
            ..Rule::of_everything(Verdict::Deny)
        },
        Rule { command: Some(Pattern::new("cargo *")), ..Rule::of_everything(Verdict::Allow) },
    ];
    let ask = |index: usize| Decision::Ask(Reason::Rule { index, unseen: None }, Often::EachTime);
    let deny = |index: usize| Decision::Deny { rule: index };
    let check =
        |call: CallFacts, expect: Decision| assert_eq!(decide(&call, &rules, &[]), expect, "{call:?}");
    check(bash("ls; git push", Confinement::Full), ask(0));
    let unseen = Some(Unseen::Substitution);
    check(
        bash("for i in $(seq 3); do echo a; done", Confinement::Full),
        Decision::Ask(Reason::Rule { index: 0, unseen }, Often::EachTime),
    );
    check(bash("ls", Confinement::Full), Decision::Allow);
    check(bash("cargo test", Confinement::None), Decision::Allow);
    check(bash("cargo test | tee x", Confinement::Full), Decision::Allow);
    check(bash("cargo test; ls", Confinement::Partial), decide(&bash("ls", Confinement::Partial), &[], &[]));
    check(request("a.example.org", Effect::Changes), Decision::Allow);
    check(having_seen(request("a.example.org", Effect::Changes), Source::Web), Decision::Allow);
    check(request("example.org", Effect::Changes), Decision::Ask(Reason::WebChange, Often::EachTime));
    check(call("str_replace_editor", "files", Reach::ChangesWorkspace), deny(2));
    check(call("str_replace_editor", "files", Reach::ReadsWorkspace), Decision::Allow);
    check(having_seen(bash("ls", Confinement::Full), Source::Files), deny(3));
    check(having_seen(bash("git push", Confinement::Full), Source::Files), ask(0));
    check(having_seen(call("send_message", "messages", Reach::Society), Source::Files), Decision::Allow);
}

#[test]
fn a_remembered_answer_has_the_same_json_everywhere() {
    let answer =
        remember(&having_seen(request("A.example.", Effect::Changes), Source::Server(server("mail"))));
    let written = json!({
        "tool": "http_request", "role": "Writer", "thing": {"kind": "web", "host": "a.example", "effect": "changes"},
        "seen": ["mcp:mail"]
    });
    assert_eq!(json!(answer), written);
    assert_eq!(serde_json::from_value::<Remembered>(written).unwrap(), answer);
    let answer = remember(&bash("ls", Confinement::FullWithNetwork));
    assert_eq!(
        json!(answer)["thing"],
        json!({"kind": "command", "command": "ls", "confinement": "fullWithNetwork"})
    );
}

#[test]
fn an_answer_does_not_hold_for_a_weaker_sandbox() {
    let answer = remember(&bash("ls", Confinement::Partial));
    assert!(
        answer.covers(&bash("ls", Confinement::Partial)) && answer.covers(&bash("ls", Confinement::Full))
    );
    assert!(!answer.covers(&bash("ls", Confinement::None)));
}

fn effect() -> impl Strategy<Value = Effect> {
    prop::sample::select(vec![Effect::Reads, Effect::Changes])
}

fn source() -> impl Strategy<Value = Source> {
    prop::sample::select(vec![
        Source::Web,
        Source::Files,
        Source::Server(server("git")),
        Source::Server(server("mail")),
    ])
}

fn reach() -> impl Strategy<Value = Reach> {
    let command = prop::sample::select(vec!["ls", "git push", "ls; git push", "cargo test", "a 'b"]);
    let confinement = prop::sample::select(vec![
        Confinement::Full,
        Confinement::FullWithNetwork,
        Confinement::Partial,
        Confinement::None,
    ]);
    let host =
        prop::sample::select(vec![None, Some("example.org"), Some("a.example.org"), Some("b.example")]);
    let name = prop::sample::select(vec!["git", "mail"]);
    prop_oneof![
        Just(Reach::Society),
        Just(Reach::ReadsWorkspace),
        Just(Reach::ChangesWorkspace),
        (command, confinement)
            .prop_map(|(command, confinement)| Reach::Command { command: command.to_owned(), confinement }),
        (host, effect()).prop_map(|(host, effect)| Reach::Web { host: host.map(str::to_owned), effect }),
        (name, effect()).prop_map(|(name, effect)| Reach::Server { server: server(name), effect }),
        effect().prop_map(Reach::Other),
    ]
}

#[test]
fn a_rule_names_a_server_by_each_of_its_groups() {
    let servers = ServerGroups::new([(server("git"), BTreeSet::from([server("code")]))]);
    let of_group = Rule { group: Some(Pattern::new("mcp:code")), ..Rule::of_everything(Verdict::Deny) };
    let having_seen_it = Rule {
        tool: Some(Pattern::new("bash")),
        seen: vec![Source::Server(server("code"))],
        ..Rule::of_everything(Verdict::Deny)
    };
    let rules = [of_group, having_seen_it];
    let check = |call: CallFacts, expect: Option<usize>| {
        let denied = expect.map_or(Decision::Allow, |rule| Decision::Deny { rule });
        assert_eq!(decide(&CallFacts { servers: servers.clone(), ..call }, &rules, &[]), denied);
    };
    check(of_server("git", Effect::Reads), Some(0));
    check(of_server("mail", Effect::Reads), None);
    check(having_seen(bash("ls", Confinement::Full), Source::Server(server("git"))), Some(1));
    check(having_seen(bash("ls", Confinement::Full), Source::Server(server("mail"))), None);
    assert!(denies_all("git__log", &servers.of(&"mcp:git".parse().unwrap()), "Writer", None, &rules));
    assert!(!denies_all("mail__read", &servers.of(&"mcp:mail".parse().unwrap()), "Writer", None, &rules));
}

#[test]
fn a_rule_about_an_effect_denies_every_call_of_a_tool_that_always_has_it() {
    let of_files = |write: Option<Effect>, decide| Rule {
        group: Some(Pattern::new("files")),
        write,
        ..Rule::of_everything(decide)
    };
    let changes = of_files(Some(Effect::Changes), Verdict::Deny);
    let check = |rules: &[Rule], always: Option<Effect>, expect: bool| {
        assert_eq!(
            denies_all("x", &[ToolGroup::Files], "Writer", always, rules),
            expect,
            "{rules:?} {always:?}"
        );
    };
    let only_changes = [changes.clone()];
    check(&only_changes, Some(Effect::Changes), true);
    check(&only_changes, Some(Effect::Reads), false);
    check(&only_changes, None, false);
    // No call of a tool that always changes something fits a rule about reading.
    let reading_first = [of_files(Some(Effect::Reads), Verdict::Allow), changes.clone()];
    check(&reading_first, Some(Effect::Changes), true);
    check(&reading_first, None, false);
    let allowed_first = [of_files(Some(Effect::Changes), Verdict::Allow), changes];
    check(&allowed_first, Some(Effect::Changes), false);
}

fn any_call() -> impl Strategy<Value = CallFacts> {
    let tool = prop::sample::select(vec!["bash", "http_request", "git__push", "send_message"]);
    let group = prop::sample::select(vec!["command", "web", "mcp:git", "files", "messages"]);
    let role = prop::sample::select(vec!["Writer", "Reviewer"]);
    (tool, group, role, reach(), prop::collection::btree_set(source(), 0..3)).prop_map(
        |(tool, group, role, reach, seen)| CallFacts {
            tool: tool.to_owned(),
            group: group.parse().unwrap(),
            role: role.to_owned(),
            reach,
            seen,
            servers: ServerGroups::default(),
        },
    )
}

fn pattern(of: &[&'static str]) -> impl Strategy<Value = Option<Pattern>> + use<> {
    prop::option::of(prop::sample::select(of.to_vec()).prop_map(Pattern::new))
}

fn rule() -> impl Strategy<Value = Rule> {
    let names = (
        pattern(&["bash", "*", "git__*", "http_request"]),
        pattern(&["command", "web", "mcp:*", "*"]),
        pattern(&["Writer", "R*"]),
    );
    let host = prop::option::of(prop::sample::select(vec!["*.example.org", "example.org", "*"]));
    let decide = prop::sample::select(vec![Verdict::Allow, Verdict::Ask, Verdict::Deny]);
    let seen = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(source(), 1..3)];
    (names, pattern(&["git push*", "ls", "*"]), host, prop::option::of(effect()), seen, decide).prop_map(
        |((tool, group, role), command, host, write, seen, decide)| {
            let host = host.map(|host| HostPattern::parse(host).unwrap());
            Rule { tool, group, role, command, host, write, seen, decide }
        },
    )
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    prop::collection::vec(rule(), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_deny_is_never_beaten(call in any_call(), rules in rules(), others in prop::collection::vec(any_call(), 0..3)) {
        let alone = decide(&call, &rules, &[]);
        let answers: Vec<Remembered> = others.iter().chain([&call]).map(remember).collect();
        let answered = decide(&call, &rules, &answers);
        match alone {
            Decision::Deny { .. } => prop_assert_eq!(answered, alone),
            // `answers` contains the answer about exactly this call, so the person is not asked again.
            Decision::Ask(..) | Decision::Allow => prop_assert_eq!(answered, Decision::Allow),
        }
    }

    #[test]
    fn an_answer_allows_nothing_that_differs(one in any_call(), other in any_call(), rules in rules()) {
        let answer = remember(&one);
        let same_thing = match (&one.reach, &other.reach) {
            (
                Reach::Command { command, confinement },
                Reach::Command { command: other, confinement: other_confinement },
            ) => command == other && other_confinement <= confinement,
            (Reach::ReadsWorkspace, Reach::ChangesWorkspace) => false,
            (one, other) => one == other,
        };
        let same = one.tool == other.tool && one.role == other.role && same_thing && other.seen.is_subset(&one.seen);
        prop_assert_eq!(answer.covers(&other), same);
        if !same {
            prop_assert_eq!(decide(&other, &rules, &[answer]), decide(&other, &rules, &[]));
        }
    }

    #[test]
    fn more_seen_sources_never_widen_without_a_rule(call in any_call(), more in source(), answers in prop::collection::vec(any_call(), 0..3)) {
        let answers: Vec<Remembered> = answers.iter().map(remember).collect();
        let wider = having_seen(call.clone(), more);
        if decide(&call, &[], &answers) != Decision::Allow {
            prop_assert_ne!(decide(&wider, &[], &answers), Decision::Allow);
        }
    }

    #[test]
    fn a_tool_that_is_not_offered_has_no_call_that_is_not_denied(call in any_call(), rules in rules(), effect in prop::option::of(Just(()))) {
        let always = effect.map(|()| call.reach.effect());
        let all = denies_all(&call.tool, std::slice::from_ref(&call.group), &call.role, always, &rules);
        if all {
            let denied = matches!(decide(&call, &rules, &[]), Decision::Deny { .. });
            prop_assert!(denied);
        }
        // Rules about effects decide about all calls of a tool if its calls always have the same effect.
        let on_tools = rules.iter().all(|rule| {
            let is_certain = rule.write.is_none() || always.is_some();
            rule.command.is_none() && rule.host.is_none() && is_certain && rule.seen.is_empty()
        });
        if on_tools {
            prop_assert_eq!(all, matches!(decide(&call, &rules, &[]), Decision::Deny { .. }));
        }
    }
}
