//! Configuration that changes while agents work: the next call has the change, whole, however the file was replaced.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::{app, events, json_lines, run};

const TIMES: u32 = 200;
const FILE: &str = "llmservices.json";

/// A catalogue whose only service sees, or does not; its id tells which.
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

/// Changes the file before each answer, and expects each request to be wholly of the newest file.
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
        if turn == TIMES {
            return Answer::say("well");
        }
        now.store(turn + 1, Ordering::SeqCst);
        replace(config, &catalogue(base_url, turn + 1).to_string(), turn + 1);
        Answer::call("list_contacts", json!({}))
    });
    let limits = json!({"limits": {"maxToolRounds": 1000}});
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
        assert!(why.contains(expected), "{expected} in {why}");
    }
    let taken = events(&lines, "config_taken");
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert!(taken[0]["differences"].to_string().contains("service seeing added"), "{taken:?}");
}
