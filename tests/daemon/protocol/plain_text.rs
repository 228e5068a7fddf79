//! Models that never call `send_message` and answer only in plain text. Even so, their results must reach the user.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polity_tests::{Answer, Conversation, ScriptedServer, Sender};
use serde_json::json;

use crate::support::hiring::brief;
use crate::support::play::{Play, WAITING, role, spawn, words};
use crate::support::{home, letters, run, start};

/// Returns the newest text from each of these roles. Returns `None` if the request does not yet contain a text from
/// each of them.
fn results(asked: &Conversation, roles: &[&str]) -> Option<String> {
    let heard = asked.heard();
    let said = roles.iter().map(|role| {
        let is_it = |from: &Sender| matches!(from, Sender::Agent { role: name, .. } if name == role);
        heard.iter().rfind(|heard| is_it(&heard.from)).map(words)
    });
    said.collect::<Option<Vec<String>>>().map(|said| said.join(" and "))
}

fn speak(asked: &Conversation, roles: &[&str]) -> Answer {
    results(asked, roles).map_or_else(|| Answer::say(WAITING), Answer::say)
}

/// Root hires two leads, and each lead hires two workers. Each agent passes on the texts of the agents that it has
/// hired.
fn organisation() -> Play {
    let lead = |play: Play, name: &'static str, first: &'static str, second: &'static str| {
        play.ending(name, vec![role(first), spawn(first), role(second), spawn(second)], move |asked| {
            speak(asked, &[first, second])
        })
    };
    let play = Play::default().ending(
        "root",
        vec![role("east"), spawn("east"), role("west"), spawn("west")],
        |asked| speak(asked, &["east", "west"]),
    );
    let play = lead(play, "east", "sun", "moon");
    let play = lead(play, "west", "sea", "sand");
    ["sun", "moon", "sea", "sand"]
        .into_iter()
        .fold(play, |play, name| play.ending(name, vec![], move |_| Answer::say(format!("the {name}"))))
}

/// No agent calls `send_message`, and still all texts arrive.
/// Tests criteria 9.2 and 5.4 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn plain_text_alone_brings_the_result_up_to_the_person() {
    let performed = organisation().perform();
    let said = letters(&performed.lines);
    let last = said.last().expect("an answer");
    assert_eq!(last["finality"], "final");
    assert_eq!(last["text"], "the sun and the moon and the sea and the sand");
    let finals = said.iter().filter(|letter| letter["finality"] == "final").count();
    assert_eq!(finals, 1, "{said:#?}");
    for request in performed.server.requests() {
        assert!(!request.conversation().has_called("send_message"));
    }
}

/// Two tasks run at the same time in one society: each has its own agents, messages and answer.
#[test]
fn two_tasks_at_once_never_mix() {
    const MARKS: [&str; 2] = ["ALPHA", "BETA"];
    let mark =
        |asked: &Conversation| MARKS.into_iter().find(|mark| asked.text_contains(mark)).expect("a mark");
    let answers = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&answers);
    // Every role prompt and every message contains the mark of its task: `ALPHA` or `BETA`.
    let server = ScriptedServer::start(move |asked| {
        if !switch.load(Ordering::SeqCst) {
            return Answer::hang();
        }
        let mark = mark(asked);
        if asked.role_name() == "worker" {
            return Answer::say(format!("{mark} is done"));
        }
        if asked.results_of("create_role").is_empty() {
            return Answer::call(
                "create_role",
                json!({"name": "worker", "rolePrompt": format!("Do {mark}.")}),
            );
        }
        if !asked.has_called("spawn_agent_with_task") {
            let brief = brief(mark);
            let arguments =
                json!({"roleId": "worker", "taskBrief": brief, "initialMessage": format!("do {mark}")});
            return Answer::call("spawn_agent_with_task", arguments);
        }
        speak(asked, &["worker"])
    });
    let polity = home(&server, &json!({}));
    for (left, mark) in MARKS.iter().enumerate() {
        let before = server.request_count();
        let running = start(&polity, &[&format!("please do {mark}")]);
        server.wait_until(Duration::from_secs(60), |requests| requests.len() == before + left + 1);
        running.kill9();
    }
    answers.store(true, Ordering::SeqCst);
    let printed = run(&polity, &["--resume"]).expect_code(0).stdout;
    for mark in MARKS {
        let answer = format!("[task: please do {mark}]\n{mark} is done\n");
        assert!(printed.contains(&answer), "{printed}");
    }
    let mut workers = Vec::new();
    for request in server.requests() {
        let asked = request.conversation();
        let body = asked.body().to_string();
        assert!(!MARKS.iter().all(|mark| body.contains(mark)), "both tasks in one request: {body}");
        if asked.role_name() == "worker" {
            workers.push(asked.agent_id());
        }
    }
    workers.sort_unstable();
    workers.dedup();
    assert_eq!(workers.len(), 2);
}
