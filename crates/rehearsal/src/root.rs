//! Root: hires a lead for each prompt, answers requests for introductions, and passes the result to the person.

use crate::facts::shortened;
use crate::inbound::{Inbound, Sender};
use crate::moves::{Call, Move, Tool, assign, failure, list_of, notices, quotation, said_by_agent};
use crate::reading::{CallOutcome, Contact, PastEvent, Scene};
use crate::sample::sample;
use polity_society::id::AgentId;
use serde_json::json;

/// Maximum number of characters that an objective quotes from a prompt.
const OBJECTIVE_CHARS: usize = 500;

/// Decides what root does next.
pub(crate) fn next_move(scene: &Scene<'_>) -> Move {
    let introductions = introductions(scene);
    if !introductions.is_empty() {
        return Move::Call(introductions);
    }
    match hire(scene) {
        Some(call) => Move::Call(vec![call]),
        None => Move::Say(in_form(scene, closing(scene))),
    }
}

/// Returns the text. If the newest prompt asks for an answer in JSON, returns a JSON value that contains the text.
fn in_form(scene: &Scene<'_>, text: String) -> String {
    let newest = scene.heard().filter(|(_, inbound)| inbound.sender == Sender::Person).last();
    let schema = newest.and_then(|(_, prompt)| prompt.schema);
    match schema.and_then(|schema| serde_json::from_str(schema).ok()) {
        Some(schema) => sample(&schema, &text).to_string(),
        None => text,
    }
}

/// Returns what the leads have answered so far, as a text for the user.
pub(crate) fn known(scene: &Scene<'_>) -> String {
    let words = scene.words();
    let answers: Vec<String> = scene
        .heard()
        .filter(|(_, inbound)| is_answer(inbound))
        .map(|(_, inbound)| said_by_agent(inbound, words))
        .collect();
    if answers.is_empty() { words.say(&words.common.nothing_known, &[]) } else { answers.join("\n") }
}

/// A request that a lead has sent to root. The lead wants to be introduced to an agent with a certain capability.
struct Wish<'s> {
    requester: &'s AgentId,
    capability: &'s str,
    request_id: Option<&'s str>,
}

/// Reads a request for an introduction; returns `None` if the message is something else.
fn wish<'s>(inbound: &'s Inbound<'_>) -> Option<Wish<'s>> {
    let Sender::Agent(requester) = &inbound.sender else {
        return None;
    };
    let capability = inbound.lines.iter().find_map(|line| line.strip_prefix("required_capability: "))?;
    Some(Wish { requester, capability: capability.trim(), request_id: inbound.request })
}

fn is_answer(inbound: &Inbound<'_>) -> bool {
    matches!(inbound.sender, Sender::Agent(_)) && wish(inbound).is_none()
}

/// Returns calls that answer all open requests for an introduction.
fn introductions(scene: &Scene<'_>) -> Vec<Call> {
    let wishes: Vec<Wish<'_>> = scene.heard().filter_map(|(_, inbound)| wish(inbound)).collect();
    let mut calls = Vec::new();
    for (at, wish) in wishes.iter().enumerate() {
        let of_requester = |other: &&Wish<'_>| other.requester == wish.requester;
        let before = wishes.iter().take(at).filter(of_requester).count();
        let answered = scene.calls(Tool::SendMessage.name()).filter(|(_, called)| {
            called.argument(&["to"]) == Some(wish.requester.as_str())
                && called.argument(&["payload", "message_type"]) == Some("introduction_response")
        });
        if answered.count() <= before {
            calls.push(introduce(scene, wish));
        }
    }
    calls
}

/// Finds a contact of root that has the requested capability.
fn whom_to_introduce<'s>(scene: &'s Scene<'_>, wish: &Wish<'_>) -> Option<&'s Contact<'s>> {
    let fits = |contact: &&Contact<'_>| {
        contact.takes(wish.capability) && contact.id != *wish.requester && !contact.id.is_user()
    };
    scene.contacts.iter().find(fits)
}

fn introduce(scene: &Scene<'_>, wish: &Wish<'_>) -> Call {
    let words = scene.words();
    let capability = [("capability", wish.capability)];
    let mut payload = match whom_to_introduce(scene, wish) {
        Some(contact) => json!({
            "message_type": "introduction_response",
            "target_agent": {"id": contact.id},
            "usage_hint": words.say(&words.root.usage_hint, &capability),
        }),
        None => json!({
            "message_type": "introduction_response",
            "target_agent": null,
            "reason": words.say(&words.root.nobody, &capability),
        }),
    };
    if let (Some(request_id), Some(fields)) = (wish.request_id, payload.as_object_mut()) {
        fields.insert("request_id".to_owned(), json!(request_id));
    }
    Tool::SendMessage.with([("to", json!(wish.requester)), ("payload", payload)])
}

/// If a prompt has no lead yet, returns the next call with which root hires one. The oldest such prompt comes first.
/// Returns `None` if all prompts have leads, or if the role for the lead could not be created.
fn hire(scene: &Scene<'_>) -> Option<Call> {
    let served = scene.calls(Tool::SpawnAgentWithTask.name()).count();
    let mut prompts = scene.heard().filter(|(_, inbound)| inbound.sender == Sender::Person);
    let (at, prompt) = prompts.nth(served)?;
    let words = scene.words();
    let role = scene.calls(Tool::CreateRole.name()).last();
    match role.map(|(created, called)| (created, called.gave("id"))) {
        Some((_, Some(role_id))) => Some(spawn_lead(scene, role_id, prompt)),
        Some((created, None)) if created > at => None,
        Some(_) | None => {
            let name = words.root.role_name.fill(&[]);
            let prompt = words.say(&words.root.role_prompt, &[]);
            Some(Tool::CreateRole.with([("name", json!(name)), ("rolePrompt", json!(prompt))]))
        }
    }
}

fn spawn_lead(scene: &Scene<'_>, role_id: &str, prompt: &Inbound<'_>) -> Call {
    let words = scene.words();
    let artifacts = prompt.artifacts();
    let said = prompt.words();
    let objective = shortened(&said.join(" "), OBJECTIVE_CHARS);
    let mut inputs = match artifacts.as_slice() {
        [] => words.say(&words.root.no_inputs, &[]),
        some => words.say(&words.root.inputs, &[("references", &list_of(some, words))]),
    };
    let (mut outputs, mut criteria) = (&words.root.outputs, &words.root.completion_criteria);
    if scene.workspace.is_some() {
        inputs = format!("{inputs}\n{}", words.say(&words.workspace.inputs, &[]));
        (outputs, criteria) = (&words.workspace.outputs, &words.workspace.completion_criteria);
    }
    let constraints: Vec<String> =
        words.root.constraints.iter().map(|phrase| words.say(phrase, &[])).collect();
    let brief = json!({
        "objective": words.say(&words.root.objective, &[("prompt", &objective)]),
        "constraints": constraints,
        "inputs": inputs,
        "outputs": words.say(outputs, &[]),
        "completion_criteria": words.say(criteria, &[]),
    });
    let text = format!("{}\n{}", words.say(&words.root.assignment, &[]), quotation(said, words));
    assign(role_id, &brief, text.trim_end(), &artifacts)
}

/// Returns root's closing text: the answers that arrived in this turn. If no answers arrived, the text says what root
/// did.
fn closing(scene: &Scene<'_>) -> String {
    let words = scene.words();
    let unsaid = scene.unsaid();
    let answers: Vec<String> = unsaid
        .iter()
        .filter_map(|step| match step {
            PastEvent::Heard(inbound) if is_answer(inbound) => Some(said_by_agent(inbound, words)),
            PastEvent::Heard(_) | PastEvent::Called(_) | PastEvent::Said => None,
        })
        .collect();
    let mut said = notices(scene);
    if !answers.is_empty() {
        said.push(words.say(&words.root.final_answer, &[]));
        said.extend(answers);
    } else if !said.is_empty() {
        said.push(known(scene));
    } else {
        said.extend(unsaid.iter().filter_map(|step| done(step, scene)));
    }
    said.extend(unsaid.iter().filter_map(|step| match step {
        PastEvent::Called(called) => failure(called, words),
        PastEvent::Heard(_) | PastEvent::Said => None,
    }));
    if said.is_empty() { words.say(&words.common.nothing_new, &[]) } else { said.join("\n") }
}

/// Describes in one line something that root did.
fn done(step: &PastEvent<'_>, scene: &Scene<'_>) -> Option<String> {
    let words = scene.words();
    match step {
        PastEvent::Called(called) if called.tool == Tool::SpawnAgentWithTask.name() => {
            let role = called.gave("roleName").map_or_else(|| words.root.role_name.fill(&[]), str::to_owned);
            Some(words.say(&words.root.interim, &[("role", &role), ("id", called.gave("id")?)]))
        }
        PastEvent::Heard(inbound) => {
            let wish = wish(inbound)?;
            let values = [("id", wish.requester.as_str()), ("capability", wish.capability)];
            match introduced(scene, &wish) {
                Some(target) => Some(
                    words.say(&words.root.introduced, &[values.as_slice(), &[("target", target)]].concat()),
                ),
                None => Some(words.say(&words.root.knew_nobody, &values)),
            }
        }
        PastEvent::Called(_) | PastEvent::Said => None,
    }
}

/// Finds the agent that root introduced to the requester.
fn introduced<'s>(scene: &'s Scene<'_>, wish: &Wish<'_>) -> Option<&'s str> {
    scene.calls(Tool::SendMessage.name()).find_map(|(_, called)| {
        let to_requester = called.argument(&["to"]) == Some(wish.requester.as_str());
        let arrived = matches!(called.outcome(), CallOutcome::Done(_));
        called.argument(&["payload", "target_agent", "id"]).filter(|_| to_requester && arrived)
    })
}
