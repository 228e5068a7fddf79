//! A script that plays an organisation: root hires leads, leads hire workers, and all report upwards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::answer::{Answer, Call};
use crate::conversation::{Conversation, Heard, Sender};

/// Plays a society of one root, `leads` leads and `workers_per_lead` workers for each of them.
///
/// Root makes the role `lead` and hires the leads, each lead makes the role `worker` and hires its workers, each
/// worker stores the artifact `report of <id>` and says `worker <id> done`. Who has heard of all whom it hired says
/// `lead <id> done`, and root `all done`; before that, `waiting: <n> of <m>`. A refusal is said as `failed: …`.
///
/// It decides by the request alone, so a request that is sent again gets the same answer.
pub fn society(
    leads: usize,
    workers_per_lead: usize,
) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| match asked.role_name().as_str() {
        "worker" => work(asked),
        "lead" => manage(
            asked,
            "worker",
            workers_per_lead,
            format!("lead {} done", asked.agent_id()),
        ),
        _ => manage(asked, "lead", leads, "all done".to_owned()),
    }
}

/// Lists what the agent heard more than once: reports of a society are said once each.
pub fn doubled_reports(conversation: &Conversation) -> Vec<Heard> {
    let mut seen: Vec<Heard> = Vec::new();
    let mut doubled = Vec::new();
    for heard in conversation.heard() {
        let is_report =
            matches!(&heard.from, Sender::Agent { role, id } if heard.text.contains(&report(role, id)));
        if !is_report {
            continue;
        }
        match seen.iter().any(|seen| seen.from == heard.from) {
            true => doubled.push(heard),
            false => seen.push(heard),
        }
    }
    doubled
}

fn report(role: &str, id: &str) -> String {
    format!("{role} {id} done")
}

fn work(asked: &Conversation) -> Answer {
    let id = asked.agent_id();
    let stored = asked.results_of("put_artifact");
    if let Some(error) = stored.iter().find_map(|result| result.error()) {
        return Answer::say(format!("failed: put_artifact: {error}"));
    }
    if stored.is_empty() {
        return Answer::call(
            "put_artifact",
            json!({"type": "report", "content": format!("report of {id}")}),
        );
    }
    Answer::say(report("worker", &id))
}

fn manage(asked: &Conversation, role: &str, wanted: usize, last_words: String) -> Answer {
    let results = asked.tool_results();
    if let Some((tool, error)) = results
        .iter()
        .find_map(|result| Some((&result.tool, result.error()?)))
    {
        return Answer::say(format!("failed: {tool}: {error}"));
    }
    let made = results
        .iter()
        .find(|result| result.tool == "create_role" && result.arguments["name"] == role);
    let Some(made) = made else {
        let prompt = format!("You are a {role}. Do what your brief says.");
        return Answer::call("create_role", json!({"name": role, "rolePrompt": prompt}));
    };
    let spawned: Vec<_> = results
        .iter()
        .filter(|result| result.tool == "spawn_agent_with_task")
        .collect();
    let missing: Vec<Call> = (1..=wanted)
        .map(|number| format!("be {role} {number} of {wanted}"))
        .filter(|objective| {
            !spawned
                .iter()
                .any(|hired| hired.arguments["taskBrief"]["objective"] == *objective)
        })
        .map(|objective| hire(&made.value["id"], &objective))
        .collect();
    if !missing.is_empty() {
        return Answer::calls(missing);
    }
    let hired: BTreeSet<&str> = spawned
        .iter()
        .filter_map(|result| result.value["id"].as_str())
        .collect();
    let heard = asked.heard();
    let reported = hired.iter().filter(|hired| {
        let expected = report(role, hired);
        heard.iter().any(|heard| {
            matches!(&heard.from, Sender::Agent { id, .. } if id == *hired) && heard.text.contains(&expected)
        })
    });
    match reported.count() {
        all if all >= wanted => Answer::say(last_words),
        some => Answer::say(format!("waiting: {some} of {wanted}")),
    }
}

fn hire(role_id: &Value, objective: &str) -> Call {
    Call::new(
        "spawn_agent_with_task",
        json!({
            "roleId": role_id,
            "taskBrief": {
                "objective": objective,
                "constraints": ["only what is asked"],
                "inputs": "the first message",
                "outputs": "one line of text",
                "completion_criteria": "the line is said",
            },
            "initialMessage": {"text": format!("please {objective}")},
        }),
    )
}
