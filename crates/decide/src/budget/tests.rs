use super::*;
use polity_llm::{Endpoint, UsageSource};
use polity_society::id::ServiceId;
use proptest::prelude::*;

fn limits(calls: Option<u64>, tokens: Option<u64>, cost: Option<f64>) -> Limits {
    Limits {
        max_model_calls_per_task: calls,
        max_tokens_per_task: tokens,
        max_cost_per_task: cost,
        ..Limits::default()
    }
}

const NOTHING: Spent = Spent { calls: 0, tokens: 0, cost: 0.0 };

fn call(tokens: u64, cost: f64) -> Spent {
    Spent { calls: 1, tokens, cost }
}

fn refused(limit: &'static str, value: impl Into<Number>) -> Leave {
    Leave::Refused(Reached { limit, value: value.into() })
}

#[test]
fn what_is_let_through() {
    let check = |spent: Spent, reserved: Spent, limits: &Limits, expect: Leave| {
        assert_eq!(judge(spent, reserved, call(100, 0.5), limits), expect, "{spent:?} {reserved:?}");
    };
    let none = limits(None, None, None);
    check(call(1_000_000, 1e9), call(1, 1.0), &none, Leave::Granted);
    let tokens = limits(None, Some(250), None);
    check(call(150, 0.0), NOTHING, &tokens, Leave::Granted);
    check(call(151, 0.0), NOTHING, &tokens, refused("maxTokensPerTask", 250));
    check(call(100, 0.0), call(100, 0.0), &tokens, Leave::Later);
    let calls = limits(Some(2), None, None);
    check(call(0, 0.0), NOTHING, &calls, Leave::Granted);
    check(call(0, 0.0), call(0, 0.0), &calls, Leave::Later);
    check(call(0, 0.0) + call(0, 0.0), NOTHING, &calls, refused("maxModelCallsPerTask", 2));
    let cost = limits(None, None, Some(1.0));
    check(call(0, 0.5), NOTHING, &cost, Leave::Granted);
    check(call(0, 0.6), NOTHING, &cost, refused("maxCostPerTask", Number::from_f64(1.0).unwrap()));
    check(call(0, 0.3), call(0, 0.3), &cost, Leave::Later);
    // This call could wait because of the cost limit. But it can never fit into the token limit, so it is refused at
    // once.
    check(
        call(151, 0.3),
        call(0, 0.3),
        &limits(None, Some(250), Some(1.0)),
        refused("maxTokensPerTask", 250),
    );
}

fn service(max_tokens: Option<u32>, price: Option<Price>) -> Service {
    let mut service = Service::new(ServiceId::new("s"), Endpoint::new("http://127.0.0.1:9/v1", "m"));
    service.endpoint.max_tokens = max_tokens;
    service.price = price;
    service
}

#[test]
fn a_call_needs_its_prompt_and_its_longest_answer() {
    let price = Some(Price { input: 2.0, output: 10.0 });
    assert_eq!(need(1_000, &service(None, None)), Spent { calls: 1, tokens: 1_000, cost: 0.0 });
    assert_eq!(need(1_000, &service(Some(500), price)), Spent { calls: 1, tokens: 1_500, cost: 0.007 });
    let usage = Usage { prompt_tokens: 1_000, completion_tokens: 100, source: UsageSource::Reported };
    assert_eq!(cost(&usage, &service(Some(500), price)), Some(0.003));
    assert_eq!(cost(&usage, &service(Some(500), None)), None);
}

fn share(agent: &str, tokens: u64, cost: Option<f64>) -> Share {
    Share { agent: AgentId::new(agent), calls: 1, tokens, cost }
}

#[test]
fn what_is_spent_below_an_agent_counts_for_its_branch() {
    let parents = [("a", "root"), ("a1", "a"), ("a2", "a1"), ("b", "root")]
        .map(|(child, parent)| (AgentId::new(child), AgentId::new(parent)));
    let shares =
        [share("root", 5, None), share("a", 10, Some(0.1)), share("a2", 30, Some(0.2)), share("b", 20, None)];
    let told: Vec<String> = branches(&shares, &HashMap::from(parents))
        .into_iter()
        .map(|branch| format!("{} {} {} {:?}", branch.agent, branch.calls, branch.tokens, branch.cost))
        .collect();
    assert_eq!(told, ["a 2 40 Some(Number(0.3))", "b 1 20 None", "root 1 5 None"]);
}

#[test]
fn a_circle_of_parents_ends() {
    let parents = [("a", "b"), ("b", "a")].map(|(child, parent)| (AgentId::new(child), AgentId::new(parent)));
    assert_eq!(branches(&[share("a", 1, None)], &HashMap::from(parents)).len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// If no call costs more than its estimate, the spent amount plus the reserved amount never exceeds a limit, in any
    /// order of calls. A call that must wait is granted as soon as no other call is in progress.
    #[test]
    fn no_limit_is_passed(
        acts in proptest::collection::vec((0u64..400, 0u64..100, any::<proptest::sample::Index>()), 1..60),
        max_calls in 1u64..20, max_tokens in 1u64..2_000, max_cost in 0.0f64..2.0,
    ) {
        let limits = limits(Some(max_calls), Some(max_tokens), Some(max_cost));
        let (mut spent, mut open): (Spent, Vec<Spent>) = (NOTHING, Vec::new());
        for (tokens, percent, which) in acts {
            let need = call(tokens, tokens as f64 / 1000.0);
            let reserved = open.iter().fold(NOTHING, |sum, one| sum + *one);
            match judge(spent, reserved, need, &limits) {
                Leave::Granted => open.push(need),
                Leave::Later => {
                    prop_assert!(!open.is_empty());
                    prop_assert_eq!(judge(spent, NOTHING, need, &limits), Leave::Granted);
                    let one = open.swap_remove(which.index(open.len()));
                    spent = spent + Spent { calls: 1, tokens: one.tokens * percent / 100, cost: one.cost * percent as f64 / 100.0 };
                }
                Leave::Refused(_) => {}
            }
            let all = open.iter().fold(spent, |sum, one| sum + *one);
            prop_assert!(all.calls <= max_calls && all.tokens <= max_tokens);
            prop_assert!(all.cost <= max_cost + 1e-9);
        }
    }
}
