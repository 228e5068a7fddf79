//! Mistakes of the user. The error message must be short and clear, and must not look like a crash. No model is
//! called.

use std::time::Duration;

use polity_tests::{Answer, Output, Polity, ScriptedServer};
use serde_json::json;

use crate::support::database::Database;
use crate::support::files::{files_below, write};
use crate::support::{app, home, run, service, start};

const PATIENCE: Duration = Duration::from_secs(60);

fn answering() -> (ScriptedServer, Polity) {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    (server, polity)
}

/// Checks that a run was refused with a single line on the standard error. Returns this line without the program's
/// name.
#[track_caller]
fn complaint(ended: Output) -> String {
    let ended = ended.expect_code(2);
    assert_eq!(ended.stdout, "");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    let [line] = &ended.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("expected one line:\n{}", ended.stderr)
    };
    let complaint = line.strip_prefix("polity: ").expect("the name of the program");
    complaint.to_owned()
}

#[track_caller]
fn check(ended: Output, expected: &[&str]) {
    let complaint = complaint(ended);
    for expected in expected {
        assert!(complaint.contains(expected), "{expected:?} is not in: {complaint}");
    }
}

#[track_caller]
fn assert_works(polity: &Polity) {
    let ended = run(polity, &["what?"]).expect_code(0);
    assert_eq!(ended.stdout, "42\n");
}

#[test]
fn an_attachment_that_is_not_there() {
    let (server, polity) = answering();
    check(run(&polity, &["look", "--attach", "missing.png"]), &["missing.png", "check the path"]);
    assert!(server.requests().is_empty());
    assert_works(&polity);
}

#[test]
fn a_directory_as_attachment() {
    let (_server, polity) = answering();
    check(run(&polity, &["look", "--attach", "config"]), &["config", "not a regular file"]);
    assert_works(&polity);
}

#[test]
fn an_attachment_larger_than_an_artifact_may_be() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({"limits": {"maxArtifactBytes": 10}}));
    let path = write(&polity, "large.bin", &[7; 11]);
    check(run(&polity, &["look", "--attach", &path]), &["large.bin", "11", "maxArtifactBytes"]);
    assert_works(&polity);
}

#[test]
fn attachments_larger_than_the_artifacts_of_a_task_may_be() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({"limits": {"maxArtifactBytesPerTask": 10}}));
    let paths = [write(&polity, "six.bin", &[7; 6]), write(&polity, "five.bin", &[8; 5])];
    let both = ["look", "--attach", &paths[0], "--attach", &paths[1]];
    check(run(&polity, &both), &["maxArtifactBytesPerTask"]);
    run(&polity, &["look", "--attach", &paths[0]]).expect_code(0);
}

#[test]
fn a_prompt_that_says_nothing() {
    let (server, polity) = answering();
    for prompt in ["", "   ", " \n\t"] {
        check(run(&polity, &[prompt]), &["prompt is empty"]);
    }
    // The prompt `-` is read from standard input, which is empty here.
    check(run(&polity, &["-"]), &["prompt is empty"]);
    assert!(server.requests().is_empty());
    check(run(&polity, &["--resume"]), &["nothing to resume"]);
    assert_works(&polity);
}

#[test]
fn a_prompt_longer_than_a_message_may_be() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    // The message `{"text":"what?"}` has 16 characters, which is the limit. So the prompt `what??` is one character too
    // long.
    let polity = home(&server, &json!({"limits": {"maxMessageChars": 16}}));
    check(run(&polity, &["what??"]), &["17 characters", "maxMessageChars", "allows 16", "attach"]);
    assert!(!polity.data_dir().join("polity.db").exists());
    assert!(server.requests().is_empty());
    assert_works(&polity);
}

#[test]
fn what_is_refused_leaves_no_data_directory() {
    let (_server, polity) = answering();
    for arguments in [&[" "][..], &["what?", "--service", "two"], &["look", "--attach", "missing.png"]] {
        complaint(polity.run(&[&["run", "--data", "fresh"], arguments].concat()));
        assert!(!polity.home().join("fresh").exists(), "{arguments:?}");
    }
}

#[test]
fn a_configuration_that_does_not_parse() {
    let (_server, polity) = answering();
    let right = std::fs::read_to_string(polity.config_dir().join("llmservices.json")).expect("a file");
    polity.write_config("llmservices.json", "{\"services\": [\n  {\"id\": \"a\",, }\n]}");
    check(run(&polity, &["what?"]), &["llmservices.json:2:"]);
    polity.write_config("llmservices.json", &right);
    let app = std::fs::read_to_string(polity.config_dir().join("app.json")).expect("a file");
    polity.write_config("app.json", "{\n\n \"language\" \"zh\"}");
    check(run(&polity, &["what?"]), &["app.json:3:"]);
    polity.write_config("app.json", &app);
    assert_works(&polity);
}

#[test]
fn a_service_without_an_address() {
    let (server, polity) = answering();
    let bad = json!({"id": "bad", "model": "m"});
    let alone = json!({"services": [bad]});
    polity.write_config("llmservices.json", &alone.to_string());
    for arguments in [&["run", "what?", "--data", "data"][..], &["config", "check"], &["config", "show"]] {
        let ended = polity.run(arguments).expect_code(2);
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(
            lines,
            [
                "polity: cannot use the configuration in ./config:",
                "polity: llmservices.json: /services/0/baseURL: missing; the service \"bad\" is left out",
                "polity: llmservices.json: /services: none of the services is valid; the file is not used",
            ]
        );
        assert_eq!(ended.stdout, "");
    }

    let both = json!({"services": [bad, service("good", &server, &["text"])]});
    polity.write_config("llmservices.json", &both.to_string());
    let ended = run(&polity, &["what?"]).expect_code(0);
    assert_eq!(ended.stdout, "42\n");
    let [line] = &ended.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("expected one line:\n{}", ended.stderr)
    };
    assert!(line.contains("/services/0/baseURL"), "{line}");
}

#[test]
fn a_key_never_shows() {
    const KEY: &str = "sk-secret-12345678";
    let server = ScriptedServer::start(|_| {
        Answer::error(401, json!({"error": {"message": format!("bad key {KEY}")}}))
    });
    let mut service = service("one", &server, &["text"]);
    service["apiKey"] = json!(KEY);
    let mut polity = Polity::new(&json!({"services": [service, {"apiKey": KEY}]}), &app(&json!({})));
    polity.set_env("POLITY_LOG", "trace");
    let ended = run(&polity, &["what?", "--json"]).expect_code(5);
    assert_eq!(server.requests()[0].headers["authorization"], format!("Bearer {KEY}"));
    assert!(ended.stderr.contains("TRACE"), "the log has no TRACE lines");
    for written in [&ended.stdout, &ended.stderr] {
        assert!(!written.contains(KEY), "{written}");
    }
    let files = files_below(&polity.data_dir());
    assert!(files.contains(&polity.data_dir().join("polity.db")), "{files:?}");
    for file in files {
        let stored = std::fs::read(&file).expect("a file");
        let found = stored.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key is in {}", file.display());
    }
}

#[test]
fn a_configuration_directory_that_is_not_there() {
    let (_server, polity) = answering();
    check(run(&polity, &["what?", "--config", "elsewhere"]), &["elsewhere", "--config"]);
    assert!(!polity.home().join("elsewhere").exists());
    assert_works(&polity);
}

#[test]
fn a_file_in_the_place_of_the_data_directory() {
    let (_server, polity) = answering();
    write(&polity, "taken", b"mine");
    for place in ["taken", "taken/below"] {
        check(polity.run(&["run", "what?", "--data", place]), &[place, "--data"]);
    }
    let kept = std::fs::read(polity.home().join("taken")).expect("the file");
    assert_eq!(kept, b"mine");
    assert_works(&polity);
}

#[test]
fn a_database_of_a_newer_version() {
    let (_server, polity) = answering();
    assert_works(&polity);
    let mut database = Database::write(&polity.data_dir());
    database.execute(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'of a later time', 1, x'00', 0)",
    );
    drop(database);
    check(run(&polity, &["what?"]), &["newer", "9999"]);
    check(run(&polity, &["--resume"]), &["newer", "9999"]);
    let mut database = Database::write(&polity.data_dir());
    database.execute("DELETE FROM _sqlx_migrations WHERE version = 9999");
    drop(database);
    assert_works(&polity);
    let mut database = Database::read(&polity.data_dir());
    assert_eq!(database.number("SELECT count(*) FROM tasks"), 2, "a task was lost");
}

#[test]
fn a_file_that_is_no_database() {
    let (_server, polity) = answering();
    let path = polity.data_dir().join("polity.db");
    let letter = "Dear reader, this is a letter. ".repeat(200);
    std::fs::write(&path, &letter).expect("a file");
    check(run(&polity, &["what?"]), &["polity.db"]);
    let kept = std::fs::read_to_string(&path).expect("the letter");
    assert_eq!(kept, letter, "the file was changed");
    std::fs::remove_file(&path).expect("the letter");
    assert_works(&polity);
}

#[test]
fn a_service_that_nobody_knows() {
    let (server, polity) = answering();
    check(run(&polity, &["what?", "--service", "two"]), &["`two`", "there are: one"]);
    assert!(server.requests().is_empty());
    assert_works(&polity);
}

#[test]
fn a_data_directory_that_another_process_uses() {
    let server = ScriptedServer::start(|asked| match asked.text_contains("wait") {
        true => Answer::hang(),
        false => Answer::say("42"),
    });
    let polity = home(&server, &json!({}));
    let first = start(&polity, &["wait"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    for arguments in [&["what?"][..], &["--resume"]] {
        check(run(&polity, arguments), &["another polity", "--data"]);
    }
    polity.run(&["run", "what?", "--data", "elsewhere"]).expect_code(0);
    first.kill9();
    let after = start(&polity, &["--resume"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 3);
    drop(after);
}
