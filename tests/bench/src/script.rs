//! The rules by which the scripted model answers, one script for each scenario. The requests of the floor contain
//! everything that these rules look for, so the floor gets the same replies as polity.

use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::model::Script;
use crate::reply::{Call, Reply, contains};

/// The answer of a model that calls no tools.
const ANSWER: &str = "The harbour opens at six, and the first ferry leaves at half past.";
/// Maximum number of agents that root hires with one answer.
pub(crate) const BATCH: usize = 20;
/// The text of a hired agent that has done its work.
pub(crate) const REPORT: &str = "report: the shelf is counted.";

/// The person's request to hire the agents of a ring, and the request to begin.
pub(crate) const GATHER: &str = "gather the ring";
pub(crate) const BEGIN: &str = "begin the ring";

/// Answers every request with the same short text.
pub(crate) fn answering() -> Script {
    Box::new(|_| Reply::Text(ANSWER))
}

/// Answers every request with a text of this many pieces.
pub(crate) fn streaming(pieces: usize) -> Script {
    Box::new(move |_| Reply::Pieces(pieces))
}

/// Root hires `agents` agents, at most [`BATCH`] with one answer. Each agent reports to root at once.
pub(crate) fn hiring(agents: usize) -> Script {
    Box::new(move |request| {
        if !is_root(request) {
            return Reply::Text(REPORT);
        }
        if !contains(request, br#""tool_call_id":"role""#) {
            let arguments =
                json!({"name": "counter", "rolePrompt": "You count one shelf and report the number."});
            return Reply::Calls(vec![Call { id: "role".to_owned(), tool: "create_role", arguments }]);
        }
        let hired = count(request, br#""tool_call_id":"hire-"#);
        if hired >= agents {
            let all = count(request, REPORT.as_bytes()) >= agents;
            return Reply::Text(if all { "all have reported" } else { "waiting for reports" });
        }
        let batch = (hired..agents.min(hired + BATCH)).map(|number| {
            let arguments = json!({
                "roleId": "counter",
                "taskBrief": brief(number),
                "initialMessage": {"text": format!("please count shelf {number}")},
            });
            Call { id: format!("hire-{number}"), tool: "spawn_agent_with_task", arguments }
        });
        Reply::Calls(batch.collect())
    })
}

fn brief(number: usize) -> Value {
    json!({
        "objective": format!("count shelf {number}"),
        "constraints": [],
        "inputs": "the first message",
        "outputs": "one line of text",
        "completion_criteria": "the line is said",
    })
}

/// The agents pass a token to each other until it has made `hops` hops.
///
/// The agents form a line. The brief of each agent names the agent before it as a collaborator, so each agent can pass
/// the token to the agent before it. Whoever has received the token knows the sender, and can pass it back.
pub(crate) fn ring(agents: usize, hops: usize) -> Script {
    let line: Mutex<Vec<String>> = Mutex::default();
    Box::new(move |request| {
        if is_root(request) {
            let request: Value = serde_json::from_slice(request).unwrap_or_default();
            return lead(&request, agents, &mut line.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if ends_with_a_result(request) {
            return Reply::Text("passed on");
        }
        let Some(hop) = token(request).filter(|hop| *hop < hops) else { return Reply::Text("arrived") };
        let line = line.lock().unwrap_or_else(PoisonError::into_inner);
        let next = line.get(place(hop + 1, agents)).cloned().unwrap_or_default();
        Reply::Calls(vec![pass(&next, hop + 1)])
    })
}

/// Plays root in a ring: it hires one agent after the other, then gives the token to the last of them.
fn lead(request: &Value, agents: usize, line: &mut Vec<String>) -> Reply {
    let messages = request["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let said = |text: &str| {
        messages
            .iter()
            .any(|message| message["role"] == "user" && message["content"].to_string().contains(text))
    };
    *line = messages.iter().filter_map(hired).collect();
    let number = line.len();
    if number < agents {
        let mut brief = brief(number);
        if let Some(before) = line.last() {
            brief["collaborators"] = json!([{"agentId": before, "description": "gets the token from you"}]);
        }
        if number == 0 && !messages.iter().any(|message| message["role"] == "tool") {
            let arguments = json!({"name": "runner", "rolePrompt": "You pass the token on."});
            return Reply::Calls(vec![Call { id: "role".to_owned(), tool: "create_role", arguments }]);
        }
        let arguments = json!({"roleId": "runner", "taskBrief": brief});
        return Reply::Calls(vec![Call { id: format!("hire-{number}"), tool: "spawn_agent", arguments }]);
    }
    let began = messages.iter().any(|message| message["tool_call_id"] == "token-0");
    if said(BEGIN) && !began {
        return Reply::Calls(vec![pass(&line[place(0, agents)], 0)]);
    }
    Reply::Text(if began { "the token is on its way" } else { "the ring is complete" })
}

/// Returns the id of the agent that a tool result reports as hired.
fn hired(message: &Value) -> Option<String> {
    let id = message["tool_call_id"].as_str().filter(|id| id.starts_with("hire-"));
    let result: Value = serde_json::from_str(message["content"].as_str().filter(|_| id.is_some())?).ok()?;
    result["id"].as_str().map(str::to_owned)
}

/// Returns the place in the line of the agent that gets the token with this hop. The token begins at the last agent,
/// goes down the line to the first agent, and then up again.
pub(crate) fn place(hop: usize, agents: usize) -> usize {
    let last = agents - 1;
    let at = hop % (2 * last);
    last.abs_diff(at)
}

fn pass(to: &str, hop: usize) -> Call {
    let payload = json!({"message_type": "status_report", "text": format!("token {hop}.")});
    let arguments = json!({"to": to, "payload": payload});
    Call { id: format!("token-{hop}"), tool: "send_message", arguments }
}

/// Returns the hop number of the newest token in a request.
fn token(request: &[u8]) -> Option<usize> {
    let user = last(request, br#""role":"user""#)?;
    let begin = user + last(&request[user..], b"token ")? + b"token ".len();
    let digits = request[begin..].iter().take_while(|byte| byte.is_ascii_digit());
    String::from_utf8(digits.copied().collect()).ok()?.parse().ok()
}

/// Returns whether the last message of a request is the result of a tool.
fn ends_with_a_result(request: &[u8]) -> bool {
    last(request, br#""role":"tool""#) > last(request, br#""role":"user""#)
}

fn is_root(request: &[u8]) -> bool {
    contains(request, b"\\nagentId=root")
}

fn count(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).filter(|window| window == &wanted).count()
}

fn last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).rposition(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_down_the_line_and_up_again() {
        let places: Vec<usize> = (0..8).map(|hop| place(hop, 4)).collect();
        assert_eq!(places, [3, 2, 1, 0, 1, 2, 3, 2]);
    }

    #[test]
    fn an_agent_passes_the_last_token_that_it_heard_and_then_rests() {
        let script = ring(3, 5);
        let heard =
            br#"{"messages":[{"role":"user","content":"token 3."},{"role":"user","content":"token 4."}]}"#;
        let Reply::Calls(calls) = script(heard) else { panic!("expected a call") };
        assert_eq!(calls[0].arguments["payload"]["text"], "token 5.");
        let done = br#"{"messages":[{"role":"user","content":"token 4."},{"role":"tool","content":"sent"}]}"#;
        assert!(matches!(script(done), Reply::Text("passed on")));
        let end = br#"{"messages":[{"role":"user","content":"token 5."}]}"#;
        assert!(matches!(script(end), Reply::Text("arrived")));
    }
}
