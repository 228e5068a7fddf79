use super::*;
use crate::correction::corrections;
use crate::facts::Window;
use crate::finding::Severity;
use polity_llm::Endpoint;
use polity_society::content::Capabilities;
use proptest::prelude::*;

fn service(id: &str) -> Service {
    Service::new(ServiceId::new(id), Endpoint::new("http://127.0.0.1:11434/v1", "qwen3:8b"))
}

fn declared(input: &[Capability], output: &[Capability]) -> Service {
    let capabilities = Capabilities { input: input.to_vec(), output: output.to_vec() };
    Service { capabilities, declared: Declaration::Declared, ..service("s") }
}

fn answered() -> Trial {
    Trial { answer: Ok(Duration::from_millis(400)), tools: ToolTrial::NotTried }
}

fn failed(kind: FailureKind, status: Option<u16>, message: &str) -> Trial {
    let error = CallError { kind, message: message.to_owned(), status, retry_after: None };
    Trial { answer: Err(error), tools: ToolTrial::NotTried }
}

fn shown(findings: &[Finding]) -> String {
    let lines = findings.iter().map(|finding| {
        let Finding { severity, code, what, advice, settled_by: _ } = finding;
        format!("{severity} {code}: {what} → {}", advice.as_deref().unwrap_or("-"))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn codes(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(|finding| finding.code).collect()
}

const TEXT: Capability = Capability::TEXT;
const VISION: Capability = Capability::VISION;
const TOOLS: Capability = Capability::TOOL_CALLING;

#[test]
fn what_differs_is_told_in_both_directions() {
    let mut service = declared(&[TEXT, VISION], &[TEXT, TOOLS]);
    service.context_window = Some(32_768);
    let facts = Facts {
        server: Server::Ollama,
        models: Some(vec!["qwen3:8b".to_owned()]),
        input: [(VISION, Support::HasNot), (Capability::AUDIO, Support::Has)].into(),
        output: [(TEXT, Support::Has), (TOOLS, Support::HasNot)].into(),
        window: Window { in_force: Some(4096), largest: Some(40_960) },
    };
    insta::assert_snapshot!(shown(&judge(&service, &facts, &answered())));
}

#[test]
fn a_window_is_compared_with_what_is_known_of_it() {
    let check = |declared: Option<u64>, in_force: Option<u64>, largest: Option<u64>, expect: &[&str]| {
        let service = Service { context_window: declared, ..service("s") };
        let facts = Facts { window: Window { in_force, largest }, ..Facts::default() };
        assert_eq!(codes(&of_window(&service, &facts)), expect, "{declared:?} {in_force:?} {largest:?}");
    };
    check(None, None, None, &[]);
    check(None, None, Some(4096), &[]);
    check(None, Some(32_768), None, &["window_not_declared"]);
    check(None, Some(4096), None, &["window_not_declared", "window_small"]);
    check(Some(8192), None, None, &[]);
    check(Some(8191), None, None, &["window_small"]);
    check(Some(32_768), Some(32_768), None, &[]);
    check(Some(32_768), Some(65_536), None, &[]);
    check(Some(65_536), Some(32_768), Some(131_072), &["window_too_large"]);
    check(Some(65_536), Some(4096), None, &["window_too_large", "window_small"]);
    check(Some(65_536), None, Some(32_768), &["window_too_large"]);
    check(Some(4096), Some(16_384), None, &["window_outgrown"]);
    check(Some(2048), Some(4096), Some(262_144), &["window_outgrown", "window_small"]);
}

#[test]
fn a_server_that_was_started_again_with_a_larger_window_is_not_to_be_started_once_more() {
    let service = Service { context_window: Some(4096), ..service("local") };
    let window = Window { in_force: Some(16_384), largest: None };
    let facts = Facts { server: Server::Ollama, window, ..Facts::default() };
    insta::assert_snapshot!(
        shown(&of_window(&service, &facts)),
        @"warning window_outgrown: contextWindow is 4096, but Ollama now gives the model 16384 tokens → set contextWindow to 16384"
    );
}

#[test]
fn a_model_that_is_not_there_is_told_with_what_could_be_meant() {
    let listed = |models: &[&str]| Facts {
        server: Server::Ollama,
        models: Some(models.iter().map(|model| (*model).to_owned()).collect()),
        ..Facts::default()
    };
    let missing = failed(FailureKind::NoSuchModel, Some(404), "model \"qwen3:8b\" not found");
    let told = |facts: &Facts, trial: &Trial| shown(&of_answer(&service("s"), facts, trial));
    insta::assert_snapshot!(
        told(&listed(&["llama3:70b", "qwen3:4b", "Qwen3:8b"]), &missing),
        @r#"problem model_missing: there is no model "qwen3:8b" on this server (model "qwen3:8b" not found) → run `ollama pull qwen3:8b`, or set model of service "s" in llmservices.json to a model that the server has; perhaps you mean "Qwen3:8b" or "qwen3:4b""#
    );
    insta::assert_snapshot!(
        told(&listed(&[]), &missing),
        @r#"problem model_missing: there is no model "qwen3:8b" on this server (model "qwen3:8b" not found) → run `ollama pull qwen3:8b`, or set model of service "s" in llmservices.json to a model that the server has; the server lists no models"#
    );
    // First case: the model is not in the server's list, but the server has answered. Second case: the model is not in
    // the list, but the server only limits the rate. Third case: the model is in the list, but the server says that
    // there is no such model.
    assert_eq!(
        codes(&of_answer(&service("s"), &listed(&["other"]), &answered())),
        ["answers", "model_not_listed"]
    );
    let limited = failed(FailureKind::RateLimited, Some(429), "slow down");
    assert_eq!(codes(&of_answer(&service("s"), &listed(&["other"]), &limited)), ["rate_limited"]);
    assert_eq!(codes(&of_answer(&service("s"), &listed(&["qwen3:8b"]), &missing)), ["model_missing"]);
}

#[test]
fn tools_are_asked_for_only_where_they_are_allowed() {
    let refused = || {
        let message = "m does not support tools".to_owned();
        ToolTrial::Refused(CallError {
            kind: FailureKind::Refused,
            message,
            status: Some(400),
            retry_after: None,
        })
    };
    let check = |service: &Service, told: Option<Support>, trial: ToolTrial, expect: &[&str]| {
        let facts =
            Facts { output: told.map(|support| (TOOLS, support)).into_iter().collect(), ..Facts::default() };
        let found: Vec<Finding> = of_tools(service, &facts, &trial).into_iter().collect();
        assert_eq!(codes(&found), expect);
    };
    let assumed = service("s");
    check(&assumed, None, ToolTrial::Taken, &["tools"]);
    check(&assumed, None, ToolTrial::Unclear, &[]);
    check(&assumed, None, refused(), &["no_tools"]);
    check(&assumed, Some(Support::Has), ToolTrial::NotTried, &["tools"]);
    check(&assumed, Some(Support::HasNot), ToolTrial::NotTried, &["no_tools"]);
    let without = declared(&[TEXT], &[TEXT]);
    check(&without, None, ToolTrial::NotTried, &["tools_not_declared"]);
    check(&without, Some(Support::HasNot), ToolTrial::NotTried, &["tools_not_declared"]);
}

/// doctor has not tried tools: the server has answered its questions, but not the call.
#[test]
fn a_report_of_the_server_is_not_told_like_a_result_of_a_call() {
    let facts = Facts { server: Server::Ollama, output: [(TOOLS, Support::Has)].into(), ..Facts::default() };
    let service = declared(&[TEXT], &[TEXT, TOOLS]);
    let silent = failed(FailureKind::TimedOut, None, "nothing for 60s");
    let told = judge(&service, &facts, &silent);
    assert_eq!(codes(&told), ["timed_out", "tools"]);
    assert_eq!(told[1].what, "Ollama reports that the model calls tools");
}

#[test]
fn every_failure_has_advice() {
    let kinds = [
        FailureKind::Unreachable,
        FailureKind::TimedOut,
        FailureKind::RateLimited,
        FailureKind::Passing,
        FailureKind::Unauthorized,
        FailureKind::ContextOverflow,
        FailureKind::MediaRefused,
        FailureKind::Refused,
        FailureKind::BrokenOff,
        FailureKind::NotAnAnswer,
        FailureKind::Misconfigured,
    ];
    let all: Vec<Finding> = kinds
        .into_iter()
        .flat_map(|kind| of_answer(&service("s"), &Facts::default(), &failed(kind, None, "why")))
        .collect();
    insta::assert_snapshot!(shown(&all));
}

#[test]
fn fallbacks_that_go_in_circles() {
    let all = |fallbacks: &[(&str, &str)]| {
        let services: Vec<Service> = fallbacks
            .iter()
            .map(|(id, to)| Service {
                fallback: Some(ServiceId::new(*to)).filter(|to| !to.as_str().is_empty()),
                ..service(id)
            })
            .collect();
        circles(&services).into_iter().map(|finding| finding.what).collect::<Vec<_>>()
    };
    assert_eq!(all(&[("a", "b"), ("b", "c"), ("c", "")]), Vec::<String>::new());
    assert_eq!(all(&[("b", "a"), ("a", "b")]), ["fallbacks go in a circle: a → b → a"]);
    assert_eq!(
        all(&[("a", "b"), ("b", "c"), ("c", "b"), ("d", "gone")]),
        ["fallbacks go in a circle: b → c → b"]
    );
}

fn capability() -> impl Strategy<Value = Capability> {
    "text|vision|audio|video|file|smell|tool_calling".prop_map(|name| Capability::new(&name).unwrap())
}

fn told() -> impl Strategy<Value = BTreeMap<Capability, Support>> {
    let support = prop_oneof![Just(Support::Has), Just(Support::HasNot)];
    prop::collection::btree_map(capability(), support, 0..6)
}

proptest! {
    #[test]
    fn what_is_not_told_is_not_judged(
        input in prop::collection::vec(capability(), 0..5),
        output in prop::collection::vec(capability(), 0..5),
    ) {
        let findings = judge(&declared(&input, &output), &Facts::default(), &answered());
        let about_it = findings.iter().filter(|finding| !["answers", "tools_not_declared"].contains(&finding.code));
        prop_assert_eq!(about_it.count(), 0);
    }

    /// Each difference between facts and declaration causes one finding. After the correction of the declaration, none
    /// of these findings remains.
    #[test]
    fn a_corrected_declaration_is_not_told_again(
        input in prop::collection::vec(capability(), 0..5),
        output in prop::collection::vec(capability(), 0..5),
        told_input in told(),
        told_output in told(),
        window in prop::option::of(1_u64..100_000),
    ) {
        let mut service = declared(&input, &output);
        let mut facts = Facts { input: told_input, output: told_output, ..Facts::default() };
        facts.window.in_force = window;
        facts.output.remove(&TEXT);
        facts.input.remove(&TEXT);
        let differs = |service: &Service| {
            let side = |told: &BTreeMap<Capability, Support>, direction| {
                told.iter().filter(|(capability, support)| {
                    service.capabilities.has(capability, direction) != (**support == Support::Has)
                }).count()
            };
            side(&facts.input, Direction::Input) + side(&facts.output, Direction::Output)
        };
        let of_differences = |service: &Service| {
            let codes = codes(&judge(service, &facts, &answered()));
            codes.into_iter().filter(|code| ["not_declared", "not_there", "no_tools", "window_not_declared"].contains(code)).count()
        };
        let tools_in = facts.input.get(&TOOLS) == Some(&Support::HasNot) && service.capabilities.has(&TOOLS, Direction::Input);
        let expected = differs(&service) - usize::from(tools_in) + usize::from(window.is_some());
        prop_assert_eq!(of_differences(&service), expected);
        if let Some(correction) = corrections(&service, &facts) {
            let read = |names: Vec<String>| names.iter().filter_map(|name| Capability::new(name)).collect();
            if let Some(list) = correction.input { service.capabilities.input = read(list); }
            if let Some(list) = correction.output { service.capabilities.output = read(list); }
            service.context_window = correction.context_window.or(service.context_window);
        }
        prop_assert_eq!(of_differences(&service), 0);
        prop_assert!(judge(&service, &facts, &answered()).iter().all(|finding| finding.severity != Severity::Problem));
    }
}
