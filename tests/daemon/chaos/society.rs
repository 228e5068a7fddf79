//! The script of the chaos tests: thirty agents, each of which adds its own number to the answer.
//!
//! Root hires an archivist and four leads, and each lead hires six workers. A worker stores its number as an
//! artifact, reads the artifact back and reports the number. The first worker of each team does not read its
//! artifact: this worker asks its lead for an introduction to the archivist, and asks the archivist to read the
//! artifact. Leads and root add up all reports that they receive, so a lost or doubled report changes the answer.

use polity_tests::{Answer, Call, Conversation, Heard, Sender, ToolResult};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::play::{WAITING, contact, introduced, send};
use crate::support::references;

/// Number of leads that root hires.
const LEADS: usize = 4;
/// Number of workers that each lead hires.
const WORKERS: usize = 6;
/// Number of all agents: root, the archivist, the leads and their workers.
pub(super) const AGENTS: usize = 2 + LEADS + LEADS * WORKERS;

/// Returns the final answer to the user: a sum to which each agent adds a different power of two.
pub(super) fn right_answer() -> String {
    format!("total {}", (1_u64 << AGENTS) - 1)
}

/// The answer that a model should give. [`Act::answer`] sends it unchanged; a fault may distort it.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Say(String),
    Call(Vec<Call>),
}

impl Act {
    pub(super) fn answer(self) -> Answer {
        match self {
            Self::Say(text) => Answer::say(text),
            Self::Call(calls) => Answer::calls(calls),
        }
    }

    fn wait() -> Self {
        Self::Say(WAITING.to_owned())
    }
}

/// Returns the name of the agent that asks: `root`, `archivist`, `lead 2` or `worker 2.5`. Ids are random, but the
/// names are the same in every run.
pub(super) fn name(asked: &Conversation) -> String {
    between(&asked.system(), "be [", "]").unwrap_or_else(|| "root".to_owned())
}

/// Returns the power of two that the agent of this name adds to the total.
fn number(name: &str) -> u64 {
    let (role, place) = name.split_once(' ').unwrap_or((name, ""));
    let mut places = place.split('.').map(|place| place.parse::<usize>().expect("a number"));
    let mut next = || places.next().expect("a place");
    let bit = match role {
        "root" => 0,
        "archivist" => 1,
        "lead" => 2 + next(),
        _ => 2 + LEADS + next() * WORKERS + next(),
    };
    1 << bit
}

/// Returns the answer that the model should give. The answer depends only on the request.
///
/// If a call was refused, the model makes the call again. So it does no harm if a fault adds a bad call.
pub(super) fn act(asked: &Conversation) -> Act {
    let name = name(asked);
    let role = name.split(' ').next().unwrap_or_default();
    match role {
        "archivist" => keep(asked),
        "lead" => lead(asked, &name),
        "worker" if name.ends_with(".0") => consult(asked, &name),
        "worker" => work(asked, &name),
        _ => root(asked),
    }
}

fn root(asked: &Conversation) -> Act {
    if let Some(call) = missing_role(asked, "archivist", &json!({})) {
        return call;
    }
    if let Some(call) = missing_role(asked, "lead", &json!({})) {
        return call;
    }
    let Some(archivist) = hired(asked, "archivist") else {
        return Act::Call(vec![hire(asked, "archivist", "archivist", &json!({}))]);
    };
    let archivist = json!({"collaborators": [{"agentId": archivist, "description": "keeps artifacts"}]});
    let missing: Vec<Call> = (0..LEADS)
        .map(|lead| format!("lead {lead}"))
        .filter(|lead| hired(asked, lead).is_none())
        .map(|lead| hire(asked, "lead", &lead, &archivist))
        .collect();
    if !missing.is_empty() {
        return Act::Call(missing);
    }
    // Root waits for a report from each lead and one from the archivist.
    match sum(asked) {
        (reports, sum) if reports > LEADS => Act::Say(format!("total {}", sum + number("root"))),
        _ => Act::wait(),
    }
}

fn lead(asked: &Conversation, name: &str) -> Act {
    let team = name.strip_prefix("lead ").expect("a lead");
    // The workers of a lead with an odd number use service `two`, which has no fallback.
    let service = if team.ends_with(['1', '3']) { json!({"serviceId": "two"}) } else { json!({}) };
    if let Some(call) = missing_role(asked, "worker", &service) {
        return call;
    }
    let mut missing = Vec::new();
    for place in 0..WORKERS {
        let worker = format!("worker {team}.{place}");
        let substitute = format!("worker {team}.{place} again");
        if hired(asked, &worker).is_none() {
            missing.push(hire(asked, "worker", &worker, &json!({})));
        } else if has_failed(asked, &worker) && hired(asked, &substitute).is_none() {
            missing.push(hire(asked, "worker", &substitute, &json!({})));
        }
    }
    if !missing.is_empty() {
        return Act::Call(missing);
    }
    let introductions = introductions(asked);
    if !introductions.is_empty() {
        return Act::Call(introductions);
    }
    match sum(asked) {
        (reports, sum) if reports >= WORKERS => report(asked, sum + number(name)),
        _ => Act::wait(),
    }
}

/// Returns whether a notice has reported that the agent of this name failed.
fn has_failed(asked: &Conversation, name: &str) -> bool {
    let Some(id) = hired(asked, name) else { return false };
    let notices = asked.heard().into_iter().filter(|heard| heard.from == Sender::System);
    notices.into_iter().any(|heard| heard.text.starts_with(&format!("智能体 {id}（")))
}

/// Returns answers to all introduction requests that the agent has not answered yet.
fn introductions(asked: &Conversation) -> Vec<Call> {
    let mut introductions = Vec::new();
    for heard in asked.heard() {
        let request = requested_introduction(&heard);
        let (Some(request), Sender::Agent { id, .. }) = (request, &heard.from) else { continue };
        let is_answer = |sent: &ToolResult| sent.arguments["payload"]["request_id"] == request;
        if !sent(asked).iter().any(is_answer) {
            let archivist = contact(asked, "archivist");
            let answer = json!({"message_type": "introduction_response", "target_agent": {"id": archivist},
                "usage_hint": "one artifact at a time", "request_id": request});
            introductions.push(send(id.as_str(), answer));
        }
    }
    introductions
}

/// Returns the id of an introduction request; `None` for any other message.
fn requested_introduction(heard: &Heard) -> Option<&str> {
    let (_, id) = heard.kind.split_once("introduction_request，request_id: ")?;
    Some(id)
}

fn keep(asked: &Conversation) -> Act {
    if let Act::Call(calls) = report(asked, number("archivist")) {
        return Act::Call(calls);
    }
    let mut calls = Vec::new();
    for heard in asked.heard().iter().filter(|heard| heard.text.contains("please read")) {
        let Sender::Agent { id, .. } = &heard.from else { continue };
        if sent(asked).iter().any(|sent| sent.arguments["to"] == *id) {
            continue;
        }
        let reference = references(&heard.text).into_iter().next().expect("an artifact comes with it");
        calls.push(match content(asked, &reference) {
            Some(content) => {
                let text = format!("read {content}");
                send(id.as_str(), json!({"message_type": "collaboration_response", "text": text}))
            }
            None => Call::new("get_artifact", json!({"ref": reference})),
        });
    }
    if calls.is_empty() { Act::Say("done".to_owned()) } else { Act::Call(calls) }
}

fn work(asked: &Conversation, name: &str) -> Act {
    let Some(reference) = stored(asked) else {
        return store(name);
    };
    match content(asked, &reference) {
        Some(content) => Act::Say(format!("result {content}")),
        None => Act::Call(vec![Call::new("get_artifact", json!({"ref": reference}))]),
    }
}

fn consult(asked: &Conversation, name: &str) -> Act {
    let is_of_type =
        |wanted: &'static str| move |sent: &ToolResult| sent.arguments["payload"]["message_type"] == wanted;
    if !sent(asked).iter().any(is_of_type("introduction_request")) {
        let wish = json!({"message_type": "introduction_request", "reason": "to have an artifact read",
            "required_capability": "archive"});
        return Act::Call(vec![send(asked.parent_id(), wish)]);
    }
    if !asked.heard().iter().any(|heard| heard.text.contains("target_agent: {")) {
        return Act::wait();
    }
    let Some(reference) = stored(asked) else {
        return store(name);
    };
    if !sent(asked).iter().any(is_of_type("collaboration_request")) {
        let request = json!({"message_type": "collaboration_request", "text": "please read this",
            "attachments": [reference]});
        return Act::Call(vec![send(introduced(asked)["id"].clone(), request)]);
    }
    match said(asked, "read ").first() {
        Some(read) => report(asked, *read),
        None => Act::wait(),
    }
}

/// Returns the call that reports the result to the parent. If the agent has already made this call, returns a text that
/// ends the turn.
fn report(asked: &Conversation, result: u64) -> Act {
    let text = format!("result {result}");
    let parent = asked.parent_id();
    if sent(asked).iter().any(|sent| sent.arguments["payload"]["text"] == text) {
        return Act::Say("done".to_owned());
    }
    Act::Call(vec![send(parent, json!({"message_type": "status_report", "text": text}))])
}

/// Returns the number and the sum of all reports. A report that arrived twice counts twice, so that the sum is wrong
/// and the test fails.
fn sum(asked: &Conversation) -> (usize, u64) {
    let results = said(asked, "result ");
    (results.len(), results.iter().sum())
}

/// Returns the numbers on all lines that begin with this word, in messages from other agents.
fn said(asked: &Conversation, word: &str) -> Vec<u64> {
    let is_agent = |heard: &Heard| matches!(heard.from, Sender::Agent { .. });
    let heard: Vec<Heard> = asked.heard().into_iter().filter(is_agent).collect();
    let lines = heard.iter().flat_map(|heard| heard.text.lines());
    lines.filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
}

fn missing_role(asked: &Conversation, role: &str, more: &Value) -> Option<Act> {
    if made(asked, role).is_some() {
        return None;
    }
    let mut arguments = json!({"name": role, "rolePrompt": format!("You are one {role} of several.")});
    for (name, value) in more.as_object().expect("fields") {
        arguments[name] = value.clone();
    }
    Some(Act::Call(vec![Call::new("create_role", arguments)]))
}

fn made(asked: &Conversation, role: &str) -> Option<Value> {
    let made = done(asked, "create_role").into_iter().find(|made| made.arguments["name"] == role)?;
    Some(made.value["id"].clone())
}

fn hire(asked: &Conversation, role: &str, name: &str, more: &Value) -> Call {
    let mut brief = brief(&objective(name));
    for (field, value) in more.as_object().expect("fields") {
        brief[field] = value.clone();
    }
    let role = made(asked, role).expect("a role");
    let arguments = json!({"roleId": role, "taskBrief": brief, "initialMessage": {"text": "please begin"}});
    Call::new("spawn_agent_with_task", arguments)
}

/// Returns the id of the hired agent with this name.
fn hired(asked: &Conversation, name: &str) -> Option<String> {
    let objective = objective(name);
    let is_it = |hired: &ToolResult| hired.arguments["taskBrief"]["objective"] == objective;
    let hired = done(asked, "spawn_agent_with_task").into_iter().find(is_it)?;
    hired.value["id"].as_str().map(str::to_owned)
}

fn objective(name: &str) -> String {
    // A substitute has the same name as the agent that it replaces, so it adds the same number.
    match name.strip_suffix(" again") {
        Some(name) => format!("be [{name}] in its stead"),
        None => format!("be [{name}]"),
    }
}

fn store(name: &str) -> Act {
    let content = number(name).to_string();
    Act::Call(vec![Call::new("put_artifact", json!({"type": "number", "content": content}))])
}

fn stored(asked: &Conversation) -> Option<String> {
    let stored = done(asked, "put_artifact").into_iter().next()?;
    stored.value["ref"].as_str().map(str::to_owned)
}

/// Returns the content of an artifact, if the agent has read it.
fn content(asked: &Conversation, reference: &str) -> Option<String> {
    let got = done(asked, "get_artifact").into_iter().find(|got| got.arguments["ref"] == reference)?;
    got.value["content"].as_str().map(str::to_owned)
}

fn sent(asked: &Conversation) -> Vec<ToolResult> {
    done(asked, "send_message")
}

/// Returns the calls of a tool that were not refused.
fn done(asked: &Conversation, tool: &str) -> Vec<ToolResult> {
    asked.results_of(tool).into_iter().filter(|result| result.error().is_none()).collect()
}

fn between(text: &str, before: &str, after: &str) -> Option<String> {
    let (_, rest) = text.split_once(before)?;
    Some(rest.split_once(after)?.0.to_owned())
}
