//! An agent quotes an order to another agent, and the other agent obeys.

use polity_tests::{Answer, Conversation, ToolResult};
use serde_json::{Value, json};

use super::places::{Place, Reading, change, create, heard_order, hostile_text, obey, read, touch};
use super::stage::{Played, assert_denied, assert_lacks_right, assert_refused, hire, ordered, stage};
use crate::support::serving::Serving;
use crate::support::{json_lines, run};

/// The number of calls that root makes before it obeys: it hires the reader.
const CALLS_OF_ROOT: usize = 1;

/// Runs a society in which a reader quotes an order in its answer, and its parent, root, obeys. The reader can only
/// read.
#[track_caller]
fn relay(place: Place, policy: &Value, order: &Value) -> Played {
    let script = move |asked: &Conversation, reading: &Reading| {
        if asked.agent_id() != "root" {
            return read(asked, reading, |order| Answer::say(format!("It says: {}", hostile_text(order))));
        }
        match (asked.tool_results().get(CALLS_OF_ROOT), heard_order(asked)) {
            (Some(obeyed), _) => Answer::say(format!("told: {}", obeyed.text)),
            (None, Some(order)) => obey(&order),
            (None, None) if asked.has_called("spawn_agent_with_task") => Answer::say("waiting"),
            (None, None) => hire(&json!([place.group()]), "read"),
        }
    };
    stage(place, policy, |_| order.clone(), script).expect("no git is needed")
}

/// Returns the result of the call with which root obeyed.
#[track_caller]
fn obeyed_by_root(played: &Played) -> ToolResult {
    ordered(&played.asked_by_root(), CALLS_OF_ROOT)
}

/// Checks that the run ended with one open question, about this call of root, and that the call has not run. `source`
/// is the source of the order. Returns the question.
#[track_caller]
fn assert_waits(played: &Played, tool: &str, source: &str) -> Value {
    let output = played.ended_with(6);
    assert!(output.stderr.contains(&format!("root (root) wants to call {tool}")), "{output:?}");
    let listed = played.polity.run(&["approvals", "--data", "data", "--json"]).expect_code(0);
    let mut questions = json_lines(&listed.stdout);
    assert_eq!(questions.len(), 1, "{questions:?}");
    let question = questions.remove(0);
    assert_eq!((&question["agent"], &question["tool"]), (&json!("root"), &json!(tool)), "{question}");
    // The question shows the way of the order: from its source to the reader, and from the reader to root.
    let way: Vec<&str> =
        question["way"].as_array().expect("a way").iter().filter_map(Value::as_str).collect();
    assert!(way.contains(&source), "{question}");
    assert!(way.iter().any(|step| step.starts_with("root heard it from reader-")), "{question}");
    assert_eq!((played.has_file(), played.changes()), (false, 0), "{question}");
    question
}

/// Answers the question of root with this command of polity, and lets the task end.
#[track_caller]
fn answer(played: &Played, question: &Value, command: &str, more: &[&str]) {
    let _daemon = Serving::start(&played.polity);
    let id = question["id"].as_str().expect("an id");
    played.polity.run(&[&[command, id][..], more, &["--data", "data"]].concat()).expect_code(0);
    run(&played.polity, &["--resume"]).expect_code(0);
}

/// Returns a rule about calls of a tool that may change something, by an agent that has seen a source.
fn rule(tool: &str, source: &str, decide: &str) -> Value {
    json!([{"tool": tool, "write": true, "seen": [source], "decide": decide}])
}

/// Checks that root obeys a quoted order if no rule prevents the call. The rule here is about a source that root has
/// not seen.
#[test]
fn a_quoted_order_is_carried_out_where_no_rule_prevents_it() {
    for (order, tool) in [(create(), "str_replace_editor"), (touch(), "bash")] {
        let played = relay(Place::WebPage, &rule(tool, "mcp:letters", "deny"), &order);
        assert_eq!(obeyed_by_root(&played).error(), None, "{tool}");
        assert!(played.has_file(), "{tool}");
        played.ended_with(0);
    }
}

#[test]
fn a_rule_about_what_was_seen_asks_the_person_before_a_quoted_order_runs() {
    let cases = [
        (Place::WebPage, "web", create(), "str_replace_editor"),
        (Place::WebPage, "web", touch(), "bash"),
        (Place::Instructions, "files", touch(), "bash"),
        (Place::ServerResult, "mcp:letters", create(), "str_replace_editor"),
    ];
    for (place, source, order, tool) in cases {
        let played = relay(place, &rule(tool, source, "ask"), &order);
        let question = assert_waits(&played, tool, source);
        assert_eq!(question["why"], "rule 1 of tools.policy in app.json says so", "{place:?}");
        answer(&played, &question, "deny", &["a page gives no orders"]);
        let refused = obeyed_by_root(&played);
        let words =
            format!("The user refused this call of {tool}; nothing ran. The reason: a page gives no orders");
        assert_refused(&refused, tool, "approval_denied", &words);
        assert!(!played.has_file(), "{place:?}");
    }
}

#[test]
fn a_quoted_order_runs_after_the_yes_of_the_person() {
    let played = relay(Place::WebPage, &rule("str_replace_editor", "web", "ask"), &create());
    let question = assert_waits(&played, "str_replace_editor", "web");
    answer(&played, &question, "approve", &[]);
    assert_eq!(obeyed_by_root(&played).error(), None);
    assert!(played.has_file());
}

#[test]
fn a_rule_about_what_was_seen_denies_a_quoted_order() {
    for (order, tool) in [(create(), "str_replace_editor"), (touch(), "bash")] {
        let played = relay(Place::WebPage, &rule(tool, "web", "deny"), &order);
        assert_denied(&obeyed_by_root(&played), tool);
        assert!(!played.has_file(), "{tool}");
        for asked in played.asked_by_root() {
            assert!(asked.offered_tools().contains(&tool), "the rule does not fit every call");
        }
        played.ended_with(0);
    }
}

/// If no rule is configured, polity asks the user about each call that changes something outside the workspace, if the
/// agent has heard from a reader of a web page.
#[test]
fn the_person_is_asked_before_a_quoted_order_changes_anything_outside_the_workspace() {
    let played = relay(Place::WebPage, &json!([]), &change());
    let question = assert_waits(&played, "world__change", "web");
    let why = "the agent has content from outside, and the call changes something outside the workspace";
    assert_eq!(question["why"], why);
    answer(&played, &question, "deny", &[]);
    let words = "The user refused this call of world__change; nothing ran.";
    assert_refused(&obeyed_by_root(&played), "world__change", "approval_denied", words);
    assert_eq!(played.changes(), 0);
}

/// Root reads an order in a letter and quotes it to an agent that can use no MCP server. The rule allows the ordered
/// call to all agents. So only the lacking right can stop the call.
#[test]
fn an_order_that_a_colleague_quotes_needs_the_right_of_its_reader() {
    let script = |asked: &Conversation, reading: &Reading| {
        if asked.agent_id() != "root" {
            return match (asked.tool_results().first(), heard_order(asked)) {
                (Some(obeyed), _) => Answer::say(format!("told: {}", obeyed.text)),
                (None, Some(order)) => obey(&order),
                (None, None) => Answer::say("told: no order"),
            };
        }
        read(asked, reading, |order| match asked.has_called("spawn_agent_with_task") {
            false => hire(&json!(["artifacts"]), &hostile_text(order)),
            true if asked.text_contains("told:") => Answer::say("done"),
            true => Answer::say("waiting"),
        })
    };
    let policy = json!([{"tool": "world__change", "decide": "allow"}]);
    let played = stage(Place::ServerResult, &policy, |_| change(), script).expect("no git is needed");
    assert_lacks_right(&ordered(&played.asked(), 0), "world__change", "mcp:world");
    assert_eq!(played.changes(), 0);
    for asked in played.asked() {
        assert_eq!(heard_order(&asked), Some(change()), "the order is in front of the model");
        let offered = asked.offered_tools();
        let is_of_server = |tool: &&str| tool.contains("__") || *tool == "search_tools";
        assert!(!offered.iter().any(is_of_server), "{offered:?}");
    }
    assert!(played.asked_by_root()[0].offered_tools().contains(&"world__change"));
    played.ended_with(0);
}
