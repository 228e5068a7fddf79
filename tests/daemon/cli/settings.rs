//! If a daemon serves the data directory, the commands about the configuration use the configuration of this daemon.

use serde_json::{Value, json};

use super::{ask, rehearsing, told};
use polity_tests::{Polity, Running};

/// Starts a daemon whose configuration is in the directory `elsewhere`. By default, commands in this home would use
/// another directory.
#[track_caller]
fn elsewhere() -> (Polity, Running) {
    let (polity, daemon) = rehearsing();
    drop(daemon);
    let directory = polity.home().join("elsewhere");
    std::fs::create_dir(&directory).expect("a directory");
    std::fs::write(directory.join("app.json"), r#"{"discover": false, "language": "en"}"#).expect("a file");
    declare(&polity, "far");
    let daemon =
        polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0", "--config", "elsewhere"]);
    daemon.stderr_line("ready");
    (polity, daemon)
}

/// Declares one service with this id in the daemon's configuration.
fn declare(polity: &Polity, id: &str) {
    let service = json!({"id": id, "baseURL": "http://127.0.0.1:9/v1", "model": "m",
        "capabilities": {"input": ["text"], "output": ["text"]}});
    let services = json!({"services": [service]}).to_string();
    std::fs::write(polity.home().join("elsewhere/llmservices.json"), services).expect("a file");
}

#[test]
fn commands_look_at_the_configuration_of_the_daemon_and_say_so() {
    let (polity, daemon) = elsewhere();
    let shown = ask(&polity, &["config", "show"]).expect_code(0);
    let json: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!((&json["services"][0]["id"], &json["revision"]), (&json!("far"), &json!(1)));
    assert!(
        shown.stderr.contains("the daemon on data uses") && shown.stderr.contains("elsewhere"),
        "{}",
        shown.stderr
    );
    let checked = ask(&polity, &["config", "check"]).expect_code(0);
    assert!(checked.stdout.contains("elsewhere: good"), "{}", checked.stdout);
    assert!(checked.stderr.contains("configuration 1 is in force"), "{}", checked.stderr);
    let examined = ask(&polity, &["doctor", "--offline", "--json"]);
    let report: Value = serde_json::from_str(&examined.stdout).expect("JSON");
    let report = report.to_string();
    assert!(report.contains("daemon_configuration") && report.contains("elsewhere"), "{report}");
    // If the user names a directory, the command reads this directory instead.
    let named = ask(&polity, &["config", "check", "config"]).expect_code(0);
    assert!(!named.stderr.contains("the daemon"), "{}", named.stderr);

    // The daemon prints each change of its configuration, and each problem of the files.
    declare(&polity, "near");
    daemon.stderr_line("configuration 2 is in force");
    std::fs::write(polity.home().join("elsewhere/llmservices.json"), "{").expect("a file");
    daemon.stderr_line("configuration 2 stays in force");
    daemon.stderr_line("llmservices.json");
    let json: Value = serde_json::from_str(&told(&polity, &["config", "show"])).expect("JSON");
    assert_eq!((&json["services"][0]["id"], &json["revision"]), (&json!("near"), &json!(2)));
    let broken = ask(&polity, &["config", "check"]).expect_code(2);
    assert!(
        broken.stderr.contains("llmservices.json") && broken.stderr.contains("elsewhere"),
        "{}",
        broken.stderr
    );
    // Without the daemon, the commands use the same configuration as `polity run`.
    drop(daemon);
    let here = ask(&polity, &["config", "check"]).expect_code(0);
    assert!(!here.stderr.contains("the daemon"), "{}", here.stderr);
}
