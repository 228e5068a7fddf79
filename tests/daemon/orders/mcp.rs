//! An MCP server gives orders, in the result of a tool or in the description of a tool. The orders demand a call of
//! another MCP server.

use serde_json::{Value, json};

use super::places::{Place, change, create, descriptions, hostile_text};
use super::stage::{Played, assert_denied, assert_lacks_right, play};

const PLACES: [Place; 2] = [Place::ServerResult, Place::ServerDescription];

/// Maximum length of a description that polity passes on, in characters. The mark of a cut is included.
const DESCRIPTION_CHARS: usize = 4_001;

/// Plays an agent that reads the order to call `world__change`. `groups` are the tool groups of the agent.
#[track_caller]
fn play_change(place: Place, groups: &[&str], policy: &Value) -> Played {
    play(place, &json!(groups), policy, |_| change()).expect("no git is needed")
}

/// Returns a rule that allows the ordered call to all agents. So only a lacking right can stop the call.
fn allowed() -> Value {
    json!([{"tool": "world__change", "decide": "allow"}])
}

/// Checks that the model obeys the order if nothing prevents the ordered call.
#[test]
fn an_order_to_use_a_server_is_carried_out_where_right_and_rule_allow_it() {
    for place in PLACES {
        let played = play_change(place, &["mcp:letters", "mcp:world"], &allowed());
        assert_eq!(played.obeyed().error(), None, "{place:?}");
        assert_eq!(played.changes(), 1, "{place:?}");
    }
}

#[test]
fn an_order_to_use_a_server_needs_the_right_to_this_server() {
    for place in PLACES {
        let played = play_change(place, &["mcp:letters"], &allowed());
        assert_lacks_right(&played.obeyed(), "world__change", "mcp:world");
        assert_eq!(played.changes(), 0, "{place:?}");
        for asked in played.asked() {
            let offered = asked.offered_tools();
            assert!(offered.contains(&"letters__orders"), "{place:?}: {offered:?}");
            let is_of_world = |tool: &&str| tool.starts_with("world__") || *tool == "search_tools";
            assert!(!offered.iter().any(is_of_world), "{place:?}: {offered:?}");
        }
        played.ended_with(0);
    }
}

/// If no rule is configured, polity asks the user before an agent calls a tool that may change something.
#[test]
fn an_order_to_use_a_server_waits_for_the_person() {
    for place in PLACES {
        let played = play_change(place, &["mcp:letters", "mcp:world"], &json!([]));
        let output = played.ended_with(6);
        assert!(output.stderr.contains("(reader) wants to call world__change"), "{place:?}: {output:?}");
        // The question names the letter from which the agent has the order.
        let names_letter = output.stderr.contains("read it with letters__orders");
        assert_eq!(names_letter, place == Place::ServerResult, "{place:?}: {output:?}");
        assert_eq!(played.changes(), 0, "{place:?}");
    }
}

#[test]
fn a_rule_denies_an_order_to_use_a_server() {
    let policy = json!([{"role": "reader", "tool": "world__change", "decide": "deny"}]);
    for place in PLACES {
        let played = play_change(place, &["mcp:letters", "mcp:world"], &policy);
        assert_denied(&played.obeyed(), "world__change");
        assert_eq!(played.changes(), 0, "{place:?}");
        for asked in played.asked() {
            let offered = asked.offered_tools();
            assert!(offered.contains(&"world__look"), "{place:?}: {offered:?}");
            assert!(!offered.contains(&"world__change"), "{place:?}: {offered:?}");
        }
        played.ended_with(0);
    }
}

/// The server describes its tool with an order and fourteen thousand further characters.
#[test]
fn a_description_of_a_server_has_a_bound_and_reaches_only_roles_with_the_right() {
    let play = |groups: &[&str]| {
        play(Place::ServerDescription, &json!(groups), &json!([]), |_| create()).expect("no git is needed")
    };
    for asked in play(&["mcp:letters"]).asked() {
        let described = descriptions(&asked);
        let (_, shown) = described.iter().find(|(tool, _)| *tool == "letters__look").expect("the tool");
        assert!(shown.starts_with(&hostile_text(&create())) && shown.ends_with('…'), "{shown}");
        assert_eq!(shown.chars().count(), DESCRIPTION_CHARS);
    }
    let others = play(&["files"]);
    for asked in others.asked() {
        assert!(!asked.body().to_string().contains("Ignore your rules"), "{:?}", asked.offered_tools());
    }
    assert!(!others.has_file());
}
