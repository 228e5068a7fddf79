//! A script that plays an organisation: root hires leads, leads hire workers, and all report to the agent that hired
//! them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::answer::{Answer, Call};
use crate::conversation::{Conversation, Heard, Sender};

/// Plays a society of root, `leads` leads, and `workers_per_lead` workers for each lead.
///
/// Root creates the role `lead` and hires the leads. Each lead creates the role `worker` and hires its workers. Each
/// worker stores the artifact `report of <id>` and says `worker <id> done`. A lead that has the reports of all its
/// workers says `lead <id> done`. When root has all reports, it says `all done`. Before that, leads and root say
/// `waiting: <n> of <m>`. After a refused tool call, an agent says `failed: <tool>: <error>`.
///
/// Each answer depends only on the request, so a request that is sent again gets the same answer.
pub fn society(
    leads: usize,
    workers_per_lead: usize,
) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| match asked.role_name().as_str() {
        "worker" => work(asked),
        "lead" => manage(asked, "worker", workers_per_lead, format!("lead {} done", asked.agent_id())),
        _ => manage(asked, "lead", leads, "all done".to_owned()),
    }
}

/// Lists the reports that the agent received more than once. In a [`society`], each report is sent only once.
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
        return Answer::call("put_artifact", json!({"type": "report", "content": format!("report of {id}")}));
    }
    // The report names the artifact. Otherwise the daemon would remind the worker to name the artifact that it has
    // stored.
    let reference = stored[0].value["ref"].as_str().unwrap_or_default();
    Answer::say(format!("{}\n{reference}", report("worker", &id)))
}

fn manage(asked: &Conversation, role: &str, wanted: usize, last_words: String) -> Answer {
    let results = asked.tool_results();
    if let Some((tool, error)) = results.iter().find_map(|result| Some((&result.tool, result.error()?))) {
        return Answer::say(format!("failed: {tool}: {error}"));
    }
    let made = results.iter().find(|result| result.tool == "create_role" && result.arguments["name"] == role);
    let Some(made) = made else {
        let prompt = format!("You are a {role}. Do what your brief says.");
        return Answer::call("create_role", json!({"name": role, "rolePrompt": prompt}));
    };
    let spawned: Vec<_> = results.iter().filter(|result| result.tool == "spawn_agent_with_task").collect();
    let missing: Vec<Call> = (1..=wanted)
        .map(|number| format!("be {role} {number} of {wanted}"))
        .filter(|objective| {
            !spawned.iter().any(|hired| hired.arguments["taskBrief"]["objective"] == *objective)
        })
        .map(|objective| hire(&made.value["id"], &objective))
        .collect();
    if !missing.is_empty() {
        return Answer::calls(missing);
    }
    let hired: BTreeSet<&str> = spawned.iter().filter_map(|result| result.value["id"].as_str()).collect();
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use fastrand::Rng;

    use super::*;
    use crate::answer::Rendered;
    use crate::validity::{conversation_problems, schema_problems};

    /// A society without a daemon, to test the script. It accepts every tool call, and the agents act in a random
    /// order.
    struct Rehearsal {
        lots: Rng,
        agents: BTreeMap<String, Agent>,
        artifacts: Vec<String>,
        heard_by_user: Vec<String>,
    }

    struct Agent {
        role: String,
        parent: String,
        messages: Vec<Value>,
        inbox: Vec<String>,
        open_requests: usize,
        in_turn: bool,
    }

    impl Rehearsal {
        fn new(seed: u64) -> Self {
            let mut rehearsal = Self {
                lots: Rng::with_seed(seed),
                agents: BTreeMap::new(),
                artifacts: Vec::new(),
                heard_by_user: Vec::new(),
            };
            rehearsal.join("root", "根智能体", "user", "【来自用户的消息】\nbuild it".to_owned());
            rehearsal
        }

        fn join(&mut self, id: &str, role: &str, parent: &str, first_message: String) {
            let system = format!("【运行时信息】\nagentId={id}\nparentAgentId={parent}\nroleName={role}");
            let agent = Agent {
                role: role.to_owned(),
                parent: parent.to_owned(),
                messages: vec![json!({"role": "system", "content": system})],
                inbox: vec![first_message],
                open_requests: 0,
                in_turn: false,
            };
            assert!(self.agents.insert(id.to_owned(), agent).is_none());
        }

        /// Plays until no agent has anything to do. The script gets each request twice, because the daemon may repeat
        /// a request after a crash.
        fn play(&mut self, script: impl Fn(&Conversation) -> Answer) {
            for _ in 0..10_000 {
                let ready: Vec<String> = self
                    .agents
                    .iter()
                    .filter(|(_, agent)| agent.in_turn || !agent.inbox.is_empty())
                    .map(|(id, _)| id.clone())
                    .collect();
                let Some(id) = self.lots.choice(ready) else { return };
                self.take_messages(&id);
                let asked = self.request(&id);
                let reply = message(script(&asked), &asked);
                assert_eq!(
                    reply,
                    message(script(&asked), &asked),
                    "the same request got two different answers"
                );
                self.hear(&id, reply);
            }
            panic!("this society has not ended after 10,000 requests");
        }

        /// Delivers the messages to the agent in random order. A random choice decides whether each message becomes a
        /// user message of its own in the request, or all of them together become one user message.
        fn take_messages(&mut self, id: &str) {
            let agent = self.agents.get_mut(id).expect("an agent");
            self.lots.shuffle(&mut agent.inbox);
            let inbox = std::mem::take(&mut agent.inbox);
            let batches = if self.lots.bool() && !inbox.is_empty() { vec![inbox.join("\n")] } else { inbox };
            agent.messages.extend(batches.into_iter().map(|text| json!({"role": "user", "content": text})));
            agent.in_turn = true;
        }

        fn request(&self, id: &str) -> Conversation {
            let body = json!({"model": "m", "messages": self.agents[id].messages});
            assert_eq!(schema_problems(&body), [""; 0]);
            assert_eq!(conversation_problems(&body), [""; 0]);
            Conversation::new(Arc::new(body))
        }

        fn hear(&mut self, id: &str, reply: Value) {
            self.agents.get_mut(id).expect("an agent").messages.push(reply.clone());
            let Some(calls) = reply["tool_calls"].as_array() else {
                return self.close(id, reply["content"].as_str().expect("text"));
            };
            for call in calls {
                let arguments = call["function"]["arguments"].as_str().expect("text");
                let arguments: Value = serde_json::from_str(arguments).expect("JSON");
                let result = self.grant(id, call["function"]["name"].as_str().expect("a name"), &arguments);
                let result =
                    json!({"role": "tool", "tool_call_id": call["id"], "content": result.to_string()});
                self.agents.get_mut(id).expect("an agent").messages.push(result);
            }
        }

        fn grant(&mut self, id: &str, tool: &str, arguments: &Value) -> Value {
            match tool {
                "create_role" => json!({"id": arguments["name"], "name": arguments["name"]}),
                "put_artifact" => {
                    self.artifacts.push(arguments["content"].as_str().expect("text").to_owned());
                    json!({"ref": "artifact:x"})
                }
                "spawn_agent_with_task" => {
                    for field in ["objective", "constraints", "inputs", "outputs", "completion_criteria"] {
                        assert!(!arguments["taskBrief"][field].is_null(), "the brief has no {field}");
                    }
                    let role = arguments["roleId"].as_str().expect("a role");
                    let child = format!("{role}-{}", self.agents.len());
                    let giver = &self.agents[id].role;
                    let text = arguments["initialMessage"]["text"].as_str().expect("text");
                    self.join(&child, role, id, format!("【来自 {giver}（{id}）的消息】\n{text}"));
                    self.agents.get_mut(id).expect("a parent").open_requests += 1;
                    json!({"id": child, "roleId": role, "roleName": role})
                }
                other => panic!("no agent should call {other}"),
            }
        }

        fn close(&mut self, id: &str, text: &str) {
            let agent = self.agents.get_mut(id).expect("an agent");
            agent.in_turn = false;
            if agent.parent == "user" {
                return self.heard_by_user.push(text.to_owned());
            }
            if agent.open_requests > 0 {
                return;
            }
            let (role, parent) = (agent.role.clone(), agent.parent.clone());
            let parent = self.agents.get_mut(&parent).expect("a parent");
            parent.open_requests -= 1;
            parent.inbox.push(format!("【来自 {role}（{id}）的消息】\n{text}\n如需回复，请使用 …"));
        }
    }

    fn message(answer: Answer, asked: &Conversation) -> Value {
        let Rendered::Respond(sent) = answer.render(asked) else { panic!("expected a response") };
        let completion: Value = serde_json::from_slice(&sent.pieces.concat()).expect("JSON");
        completion["choices"][0]["message"].clone()
    }

    #[track_caller]
    fn check(leads: usize, workers_per_lead: usize, seed: u64) {
        let mut rehearsal = Rehearsal::new(seed);
        rehearsal.play(society(leads, workers_per_lead));
        let workers = leads * workers_per_lead;
        assert_eq!(rehearsal.agents.len(), 1 + leads + workers);
        assert_eq!(rehearsal.artifacts.iter().collect::<BTreeSet<_>>().len(), workers);
        assert_eq!(rehearsal.artifacts.len(), workers);
        assert_eq!(rehearsal.heard_by_user.iter().filter(|text| *text == "all done").count(), 1);
        assert_eq!(rehearsal.heard_by_user.last().map(String::as_str), Some("all done"));
        for id in rehearsal.agents.keys() {
            assert_eq!(doubled_reports(&rehearsal.request_after(id)), []);
        }
    }

    impl Rehearsal {
        fn request_after(&self, id: &str) -> Conversation {
            Conversation::new(Arc::new(json!({"messages": self.agents[id].messages})))
        }
    }

    #[test]
    fn every_society_comes_to_its_end_in_whatever_order_its_messages_come() {
        for seed in 0..100 {
            check(2, 3, seed);
        }
        for (leads, workers) in [(1, 1), (0, 0), (1, 0), (4, 0), (1, 8), (5, 5)] {
            check(leads, workers, 7);
        }
    }

    fn asked(messages: Value) -> Conversation {
        Conversation::new(Arc::new(json!({"model": "m", "messages": messages})))
    }

    fn said(script: &dyn Fn(&Conversation) -> Answer, messages: Value) -> Value {
        let asked = asked(messages);
        message(script(&asked), &asked)["content"].clone()
    }

    #[test]
    fn a_refusal_is_told_and_not_tried_again() {
        let call =
            json!({"id": "a", "type": "function", "function": {"name": "create_role", "arguments": "{}"}});
        let messages = json!([
            {"role": "system", "content": "roleName=lead"},
            {"role": "user", "content": "【来自 根智能体（root）的消息】\nwork"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "{\"error\":\"limit_reached\"}"},
        ]);
        assert_eq!(said(&society(1, 1), messages), "failed: create_role: limit_reached");
    }

    #[test]
    fn only_the_reports_of_those_hired_count_and_each_once() {
        let call = |id: &str, tool: &str, arguments: Value| {
            let function = json!({"name": tool, "arguments": arguments.to_string()});
            json!({"id": id, "type": "function", "function": function})
        };
        let brief = |number: usize| json!({"taskBrief": {"objective": format!("be worker {number} of 2")}});
        let hired = json!([
            {"role": "system", "content": "roleName=lead\nagentId=l"},
            {"role": "user", "content": "【来自 根智能体（root）的消息】\nwork"},
            {"role": "assistant", "content": null, "tool_calls": [
                call("r", "create_role", json!({"name": "worker"})),
                call("a", "spawn_agent_with_task", brief(1)), call("b", "spawn_agent_with_task", brief(2)),
            ]},
            {"role": "tool", "tool_call_id": "r", "content": "{\"id\":\"w\"}"},
            {"role": "tool", "tool_call_id": "a", "content": "{\"id\":\"w-1\"}"},
            {"role": "tool", "tool_call_id": "b", "content": "{\"id\":\"w-2\"}"},
        ]);
        let report = |from: &str, about: &str| json!({"role": "user", "content": format!("【来自 worker（{from}）的消息】\nworker {about} done")});
        let check = |reports: &[Value], expect: &str, doubled: usize| {
            let mut messages = hired.clone();
            messages.as_array_mut().expect("messages").extend_from_slice(reports);
            assert_eq!(said(&society(1, 2), messages.clone()), expect);
            assert_eq!(doubled_reports(&asked(messages)).len(), doubled);
        };
        check(&[], "waiting: 0 of 2", 0);
        check(&[report("w-1", "w-1"), report("w-1", "w-1")], "waiting: 1 of 2", 1);
        check(&[report("w-1", "w-1"), report("w-1", "w-2")], "waiting: 1 of 2", 0);
        check(&[report("w-1", "w-1"), report("w-3", "w-3")], "waiting: 1 of 2", 0);
        check(&[report("w-2", "w-2"), report("w-1", "w-1")], "lead l done", 0);
    }
}
