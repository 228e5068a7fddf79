//! The configuration changes while agents work. Each call must use the newest file, and never a part of it, no matter
//! how the file is replaced.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use polity_tests::{Answer, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::hiring::{Gate, hire, hired};
use crate::support::{app, asked_by, events, json_lines, run};

/// How often each test replaces the configuration file: 200 times, or as often as the variable `POLITY_SWAPS` says. The
/// command `just swaps` sets it to 1,000.
fn times() -> u32 {
    std::env::var("POLITY_SWAPS").map_or(200, |times| times.parse().expect("a number"))
}

const FILE: &str = "llmservices.json";

/// Returns an `llmservices.json` with one service. If `turn` is odd, this is the service `seeing`, which has vision. If
/// `turn` is even, this is the service `blind`, which has no vision.
fn catalogue(base_url: &str, turn: u32) -> Value {
    let sees = sees(turn);
    let input: &[&str] = if sees { &["text", "vision"] } else { &["text"] };
    json!({"services": [{
        "id": if sees { "seeing" } else { "blind" },
        "baseURL": base_url,
        "model": format!("model-{turn}"),
        "description": "x".repeat(20_000),
        "capabilities": {"input": input, "output": ["text", "tool_calling"]},
    }]})
}

fn sees(turn: u32) -> bool {
    turn % 2 == 1
}

/// Replaces `llmservices.json` before each answer of the model. Each request must use exactly the newest file.
#[track_caller]
fn replaced_by(replace: fn(&Path, &str, u32)) {
    let turn = Arc::new(AtomicU32::new(0));
    let place: Arc<OnceLock<(PathBuf, String)>> = Arc::default();
    let (now, at) = (Arc::clone(&turn), Arc::clone(&place));
    let server = ScriptedServer::start(move |asked| {
        let (config, base_url) = at.get().expect("the place of the configuration");
        let turn = now.load(Ordering::SeqCst);
        let id = if sees(turn) { "serviceId=seeing" } else { "serviceId=blind" };
        let is_whole = asked.model() == format!("model-{turn}")
            && asked.system().contains(id)
            && asked.image_urls().len() == usize::from(sees(turn));
        if !is_whole {
            return Answer::say("mixed up");
        }
        // Each turn before this one sent a message. Check that all these messages have arrived exactly once.
        if said(asked, "message number") != turn as usize {
            return Answer::say("a message was lost or doubled");
        }
        if turn == times() {
            return Answer::say("well");
        }
        now.store(turn + 1, Ordering::SeqCst);
        replace(config, &catalogue(base_url, turn + 1).to_string(), turn + 1);
        let payload = json!({"message_type": "status_report", "text": format!("message number {turn}")});
        Answer::call("send_message", json!({"to": "root", "payload": payload}))
    });
    let limits = json!({"limits": {"maxToolRounds": 10_000, "maxPairExchanges": 10_000}});
    let polity = Polity::new(&catalogue(&server.base_url(), 0), &app(&limits));
    place.set((polity.config_dir(), server.base_url())).expect("set once");
    let path = write(&polity, "picture.png", PICTURE);
    let ended = run(&polity, &["look", "--attach", &path]).expect_code(0);
    assert_eq!(ended.stdout.trim(), "well", "at turn {}", turn.load(Ordering::SeqCst));
}

#[test]
fn written_in_place() {
    replaced_by(|config, text, _| fs::write(config.join(FILE), text).expect("written"));
}

#[test]
fn written_beside_and_renamed() {
    replaced_by(|config, text, _| {
        fs::write(config.join("new.tmp"), text).expect("written");
        fs::rename(config.join("new.tmp"), config.join(FILE)).expect("renamed");
    });
}

#[test]
fn deleted_and_written_anew() {
    replaced_by(|config, text, _| {
        fs::remove_file(config.join(FILE)).expect("deleted");
        fs::write(config.join(FILE), text).expect("written");
    });
}

/// Some editors, such as vim, save a file in this way.
#[test]
fn moved_aside_and_written_anew() {
    replaced_by(|config, text, _| {
        let old = config.join(format!("{FILE}~"));
        fs::rename(config.join(FILE), &old).expect("moved aside");
        fs::write(config.join(FILE), text).expect("written");
        fs::remove_file(&old).expect("deleted");
    });
}

#[test]
fn reached_through_a_link_that_is_swapped() {
    replaced_by(|config, text, turn| {
        let version = format!("..version-{turn}");
        fs::create_dir(config.join(&version)).expect("a directory");
        fs::write(config.join(&version).join(FILE), text).expect("written");
        symlink(&version, config.join("..new")).expect("a link");
        fs::rename(config.join("..new"), config.join("..data")).expect("swapped");
        if turn == 1 {
            fs::remove_file(config.join(FILE)).expect("deleted");
            symlink(Path::new("..data").join(FILE), config.join(FILE)).expect("a link");
        }
    });
}

#[test]
fn what_cannot_be_taken_changes_nothing_and_says_why_and_a_good_file_later_is_taken() {
    let place: Arc<OnceLock<(PathBuf, String)>> = Arc::default();
    let at = Arc::clone(&place);
    let server = ScriptedServer::start(move |asked| {
        let (config, base_url) = at.get().expect("the place of the configuration");
        let good = catalogue(base_url, 1).to_string();
        let next = match asked.tool_results().len() {
            0 => Some(good[..good.len() / 2].to_owned()),
            1 => Some(r#"{"services": [{"id": "nowhere"}]}"#.to_owned()),
            2 => None,
            3 => Some(good),
            _ => return Answer::say(if asked.image_urls().is_empty() { "blind" } else { "seeing" }),
        };
        if asked.model() != "model-0" {
            return Answer::say("a bad file was taken");
        }
        match next {
            Some(text) => fs::write(config.join(FILE), text).expect("written"),
            None => fs::remove_file(config.join(FILE)).expect("deleted"),
        }
        Answer::call("list_contacts", json!({}))
    });
    let polity = Polity::new(&catalogue(&server.base_url(), 0), &app(&json!({})));
    place.set((polity.config_dir(), server.base_url())).expect("set once");
    let path = write(&polity, "picture.png", PICTURE);
    let ended = run(&polity, &["look", "--attach", &path, "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    let said = lines.iter().filter(|line| line["event"] == "message_accepted" && line["to"] == "user");
    assert_eq!(said.map(|message| &message["text"]).collect::<Vec<_>>(), ["seeing"]);
    let refused = events(&lines, "config_refused");
    let why = refused.iter().map(|event| event["problems"].to_string()).collect::<Vec<_>>().join("\n");
    for expected in ["llmservices.json:1:", "/services/0", "the file is gone"] {
        assert!(why.contains(expected), "{expected:?} is not in {why}");
    }
    let taken = events(&lines, "config_taken");
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert!(taken[0]["differences"].to_string().contains("service seeing added"), "{taken:?}");
}

/// Plays a society in which root has a picture and a helper. The helper answers each message of root with a line.
///
/// `before_answer` runs before each answer of the helper. Returns the requests of root.
#[track_caller]
fn conversation(
    replies: usize,
    before_answer: impl Fn(usize, &Path, &str) + Send + Sync + 'static,
) -> Vec<Conversation> {
    let place: Arc<OnceLock<(PathBuf, String)>> = Arc::default();
    let at = Arc::clone(&place);
    // Each gate holds back one answer of the helper. Root opens the gate just before root ends its turn to wait for
    // this answer. So root makes no calls between this moment and the arrival of the answer.
    let gates: Vec<Gate> = (0..replies).map(|_| Gate::default()).collect();
    let server = ScriptedServer::start(move |asked| {
        let (config, base_url) = at.get().expect("the place of the configuration");
        let sent = asked.results_of("send_message").len();
        if asked.agent_id() != "root" {
            let answer = said(asked, "this");
            gates[answer - 1].pass();
            before_answer(answer, config, base_url);
            return Answer::say("noted");
        }
        if let Some(hiring) = hire(asked, "helper", "note this") {
            return hiring;
        }
        let answers = answers_heard(asked);
        if answers == replies {
            return Answer::say("done");
        }
        if answers > sent {
            let helper = hired(asked, "helper").expect("a helper");
            return Answer::call("send_message", json!({"to": helper, "payload": "and this"}));
        }
        gates[answers].open();
        Answer::say("waiting")
    });
    let polity = Polity::new(&catalogue(&server.base_url(), 0), &app(&json!({})));
    place.set((polity.config_dir(), server.base_url())).expect("set once");
    let path = write(&polity, "picture.png", PICTURE);
    run(&polity, &["look", "--attach", &path]).expect_code(0);
    asked_by(&server, "root")
}

/// Counts the messages of a request that have the role `user` and contain `words`. The language of their headers does
/// not matter.
fn said(asked: &Conversation, words: &str) -> usize {
    let messages = asked.messages().iter().filter(|message| message["role"] == "user");
    messages.filter(|message| message["content"].to_string().contains(words)).count()
}

/// Counts the answers of the helper in a request.
fn answers_heard(asked: &Conversation) -> usize {
    said(asked, "noted")
}

#[test]
fn a_service_that_is_switched_to_vision_and_back_between_messages_shows_the_picture_in_between() {
    let requests = conversation(2, |answer, config, base_url| {
        // The file for turn 1 declares a service with vision, and the file for turn 2 a service without vision.
        let turn = u32::try_from(answer).expect("a small number");
        fs::write(config.join(FILE), catalogue(base_url, turn).to_string()).expect("written");
    });
    for (answers, pictures) in [(0, 0), (1, 1), (2, 0)] {
        let of_phase: Vec<&Conversation> =
            requests.iter().filter(|asked| answers_heard(asked) == answers).collect();
        assert!(!of_phase.is_empty());
        for asked in of_phase {
            assert_eq!(asked.image_urls().len(), pictures, "after {answers} answers");
            assert_eq!(asked.text_contains("【收到附件】"), pictures == 0, "after {answers} answers");
        }
    }
}

#[test]
fn prompts_and_settings_that_change_between_messages_are_in_the_next_call() {
    let requests = conversation(3, |answer, config, _| match answer {
        1 => {
            let directory = config.join("my-prompts/en");
            fs::create_dir_all(&directory).expect("a directory");
            fs::write(directory.join("base.txt"), "You are the first edition.").expect("written");
            let settings = app(&json!({"language": "en", "prompts": "my-prompts"}));
            fs::write(config.join("app.json"), settings.to_string()).expect("written");
        }
        2 => {
            fs::write(config.join("my-prompts/en/base.txt"), "You are the second edition.").expect("written")
        }
        _ => fs::remove_file(config.join("my-prompts/en/base.txt")).expect("deleted"),
    });
    let expected =
        ["你是", "You are the first edition.", "You are the second edition.", "You are one agent in"];
    for (answers, expected) in expected.into_iter().enumerate() {
        let of_phase: Vec<&Conversation> =
            requests.iter().filter(|asked| answers_heard(asked) == answers).collect();
        assert!(!of_phase.is_empty());
        for asked in of_phase {
            assert!(asked.system().starts_with(expected), "after {answers} answers: {}", asked.system());
        }
    }
}
