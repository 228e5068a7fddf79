//! Commands without a daemon, and commands about things that do not exist.

use polity_tests::Polity;
use serde_json::json;

use super::{ask, rehearsing, told};
use crate::support::app;
use crate::support::files::files_below;

/// The commands that need a daemon, except `shutdown`. The commands that need no daemon are tested in `offline.rs`.
const COMMANDS: &[&[&str]] = &[
    &["send", "hello"],
    &["chat"],
    &["watch"],
    &["view"],
    &["artifact", "put", "config/app.json"],
    &["events", "--follow"],
    &["stop", "root"],
    &["pause", "root"],
    &["resume", "root"],
    &["config", "reload"],
];

fn check_all_say_how_to_start_one(polity: &Polity) {
    for command in COMMANDS {
        let ended = ask(polity, command).expect_code(2);
        let expect =
            "polity: no polity is serving data, and this needs one; start it: polity serve --data data\n";
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", expect), "{command:?}");
    }
}

#[test]
fn every_command_that_needs_a_daemon_says_how_to_start_one() {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({})));
    check_all_say_how_to_start_one(&polity);
    assert!(files_below(&polity.data_dir()).is_empty(), "a file was created");
}

#[test]
fn files_of_a_daemon_that_was_killed_do_no_harm() {
    let (polity, daemon) = rehearsing();
    daemon.kill9();
    assert!(polity.data_dir().join("daemon.json").exists());
    check_all_say_how_to_start_one(&polity);
    assert!(told(&polity, &["agents"]).contains("root"), "what the daemon has stored cannot be read");
}

#[test]
fn every_command_refuses_what_is_not_there() {
    let (polity, _daemon) = rehearsing();
    for command in [
        &["send", "--to", "nobody-1234", "hello"][..],
        &["send", "--task", "task-none", "hello"],
        &["send", "   "],
        &["send", "hello", "--attach", "none.png"],
        &["send", "hello", "--attach", "config"],
        &["chat", "--task", "task-none"],
        &["agent", "nobody-1234"],
        &["agent", ".."],
        &["agent", "nobody-1234", "--conversation"],
        &["agent", "nobody-1234", "--request"],
        &["agents", "--state", "asleep"],
        &["tasks", "--state", "lost"],
        &["messages", "m999999999"],
        &["messages", "--state", "lost"],
        &["messages", "--limit", "0"],
        &["artifacts", "--kind", "smell"],
        &["artifact", "get", "artifact:none"],
        &["artifact", "get", "../../etc/passwd"],
        &["artifact", "put", "none.png"],
        &["artifact", "put", "config"],
        &["services", "none"],
        &["usage", "--nothing"],
        &["agents", "--task", "task-none"],
        &["messages", "--task", "task-none"],
        &["messages", "--from", "nobody-1234"],
        &["messages", "--to", "nobody-1234"],
        &["messages", "--with", "nobody-1234"],
        &["approvals", "--task", "task-none"],
        &["approvals", "--all", "--task", "task-none"],
        &["artifacts", "--task", "task-none"],
        &["artifacts", "--owner", "nobody-1234"],
        &["search", "--task", "task-none", "it"],
        &["watch", "--task", "task-none"],
        &["agent", "root", "--conversation", "--task", "task-none"],
        &["agent", "root", "--request", "--task", "task-none"],
        &["agent", "root", "--task", "task-none"],
        &["why", "root", "--agent", "nobody-1234"],
        &["usage", "--task", "task-none"],
        &["usage", "--agent", "nobody-1234"],
        &["events", "--task", "task-none"],
        &["events", "--agent", "nobody-1234", "--follow"],
        &["events", "--limit", "many"],
        &["stop", "nobody-1234"],
        &["pause", "nobody-1234"],
        &["resume", "nobody-1234"],
        &["view", "now"],
        &["watch", "now"],
        &["config", "reload", "now"],
        &["export", "task-none"],
        &["export"],
        &["export", "--format", "pdf"],
    ] {
        let ended = ask(&polity, command).expect_code(2);
        assert_eq!(ended.stdout, "", "{command:?}");
        assert!(!ended.stderr.trim().is_empty(), "{command:?} gives no reason");
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        assert!(command[0] != "artifact" || !ended.stderr.contains("--attach"), "{}", ended.stderr);
    }
}

#[test]
fn shells_and_manuals_need_no_daemon() {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({})));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = polity.run(&["completions", shell]).expect_code(0).stdout;
        assert!(script.contains("polity") && script.contains("artifact"), "{shell}");
    }
    polity.run(&["completions", "cobol"]).expect_code(2);
    let page = polity.run(&["man"]).expect_code(0).stdout;
    assert!(page.contains(".TH polity 1") && page.contains("serve"), "{page}");
    polity.run(&["man", "--dir", "pages"]).expect_code(0);
    for page in ["polity.1", "polity-send.1", "polity-config-reload.1", "polity-artifact-get.1"] {
        assert!(polity.home().join("pages").join(page).is_file(), "{page}");
    }
    polity.run(&["man", "--dir", "config/app.json"]).expect_code(2);
}
