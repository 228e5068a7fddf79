//! The commands that pause, resume and stop agents, and the command that reloads the configuration.

use std::time::Duration;

use polity_tests::{Answer, ScriptedServer};
use serde_json::json;

use super::{ask, refused, rehearsing, rows, served, told, wait_until};
use crate::support::hiring::{Gate, boss_and_worker};

#[test]
fn a_paused_root_is_said_and_goes_on_when_it_is_resumed() {
    let (polity, daemon) = rehearsing();
    assert_eq!(told(&polity, &["pause", "root"]), "paused: root\n");
    let again = ask(&polity, &["pause", "root"]).expect_code(0);
    assert_eq!((&*again.stdout, &*again.stderr), ("", "polity: nothing to pause: already paused\n"));
    let advice = refused(&polity, &["run", "hello"]);
    assert!(
        advice
            .contains("root is paused and does nothing until it is resumed: polity resume --data data root"),
        "{advice}"
    );
    assert!(rows(&polity, &["tasks"]).is_empty(), "a task was begun");
    let status = told(&polity, &["status"]);
    let stuck = "1 thing is stuck\n  root is paused and takes no prompts";
    assert!(
        status.contains(stuck) && status.contains("\n    → polity resume root --data data\n"),
        "{status}"
    );
    let (now, agents) = (rows(&polity, &["status"]), rows(&polity, &["agents"]));
    let root = agents.iter().find(|agent| agent["id"] == "root").expect("root");
    assert!(root["doing"]["since"].is_i64(), "{root}");
    assert_eq!(now[0]["now"]["stuck"][0]["since"], root["doing"]["since"]);

    daemon.terminate();
    daemon.wait().expect_code(0);
    let alone = refused(&polity, &["run", "hello"]);
    assert!(alone.contains("until it is resumed: polity run --data data --resume"), "{alone}");

    let _daemon = super::serve(&polity);
    assert_eq!(rows(&polity, &["resume", "root"]), [json!({"agents": ["root"]})]);
    assert!(told(&polity, &["status"]).contains("nothing is stuck"));
    let answer = told(&polity, &["run", "hello"]);
    assert!(answer.contains("[rehearsal]"), "{answer}");
}

#[test]
fn one_agent_alone() {
    let (polity, _daemon) = rehearsing();
    super::look_at_picture(&polity);
    let below = rows(&polity, &["agents"]).len() - 2;
    assert!(below >= 2);
    assert_eq!(told(&polity, &["pause", "root", "--alone"]), "paused: root\n");
    let others = rows(&polity, &["pause", "root"]);
    assert_eq!(others[0]["agents"].as_array().map(Vec::len), Some(below));
    assert!(told(&polity, &["agents"]).contains("paused"));
    assert_eq!(rows(&polity, &["resume", "root"])[0]["agents"].as_array().map(Vec::len), Some(below + 1));
    let idle = ask(&polity, &["stop", "root"]).expect_code(0);
    assert_eq!((&*idle.stdout, &*idle.stderr), ("", "polity: nothing to stop: there was no work\n"));
}

/// Root works on two tasks. The user stops one of these tasks, and root answers the other.
#[test]
fn a_task_is_stopped_and_the_others_go_on() {
    let gate = Gate::default();
    let pass = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.text_contains("the second") {
            pass.pass();
            return Answer::say("the second is done");
        }
        Answer::hang()
    });
    let (polity, _daemon) = served(&server);
    let begin = |prompt: &str| -> String {
        let sent = rows(&polity, &["send", prompt]);
        sent[0]["task"].as_str().expect("a task").to_owned()
    };
    let (first, second) = (begin("the first"), begin("the second"));
    server.wait_until(Duration::from_secs(60), |requests| requests.len() == 2);

    assert_eq!(told(&polity, &["stop", &first]), format!("stopped task {first}: root\n"));
    let state = |id: &str| {
        let tasks = rows(&polity, &["tasks"]);
        tasks.into_iter().find(|task| task["id"] == id).expect("the task")
    };
    assert_eq!(state(&second)["state"], "open");
    gate.open();
    let followed = ask(&polity, &["run", "--resume"]).expect_code(0);
    assert!(followed.stdout.contains("the second is done"), "{}", followed.stdout);
    let stopped = state(&first);
    assert_eq!((&stopped["state"], &stopped["stoppedBy"]), (&json!("idle"), &json!("user")));
    assert_eq!(state(&second)["outcome"], "answered");
    let unknown = refused(&polity, &["stop", "t-nothing"]);
    assert!(unknown.contains("no task `t-nothing`: `polity agents --data data` and"), "{unknown}");
    let idle = ask(&polity, &["stop", &first]).expect_code(0);
    assert_eq!(idle.stderr, "polity: nothing to stop: there was no work\n");
}

/// The task of the worker has an answer that the user has not seen. The user asks the worker something else, and stops
/// the worker.
#[test]
fn who_waits_for_an_agent_that_is_stopped_gets_no_answer_of_others() {
    let server = ScriptedServer::start(boss_and_worker(|asked| match asked.text_contains("count to ten") {
        true => Answer::hang(),
        false => Answer::say("done"),
    }));
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "work"]);
    wait_until("the task is answered", || rows(&polity, &["tasks"])[0]["outcome"] == "answered");
    let agents = rows(&polity, &["agents"]);
    let worker = agents.iter().filter_map(|agent| agent["id"].as_str()).find(|id| id.starts_with("worker-"));
    let worker = worker.expect("a worker");
    let before = server.request_count();
    let waiting = polity.spawn(&["send", "--to", worker, "--wait", "count to ten", "--data", "data"]);
    server.wait_until(Duration::from_secs(60), |requests| requests.len() > before);
    told(&polity, &["stop", worker]);
    let ended = waiting.wait().expect_code(3);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains(&format!("{worker} does not accept m0")), "{}", ended.stderr);
}

#[test]
fn the_configuration_is_read_again() {
    let (polity, _daemon) = rehearsing();
    let good = told(&polity, &["config", "reload"]);
    assert!(good.contains("is in force; services: rehearsal-text, rehearsal-multimodal"), "{good}");
    polity.write_config("app.json", "{");
    let bad = ask(&polity, &["config", "reload"]).expect_code(2);
    assert!(bad.stderr.contains("app.json"), "{}", bad.stderr);
    assert!(
        bad.stdout.contains("rehearsal-text"),
        "the last good configuration must stay in force: {}",
        bad.stdout
    );
}

#[test]
fn who_waits_for_a_task_that_is_stopped_is_told_so() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let (polity, _daemon) = served(&server);
    let waiting = polity.spawn(&["send", "--wait", "hello", "--data", "data"]);
    server.wait_until(Duration::from_secs(60), |requests| requests.len() == 1);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    told(&polity, &["stop", &task]);
    let ended = waiting.wait().expect_code(3);
    assert!(ended.stderr.contains("you stopped the task, and there is no answer"), "{}", ended.stderr);
}
