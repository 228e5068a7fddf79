//! Pausing, resuming, stopping, and reading the configuration again.

use serde_json::json;

use super::{ask, refused, rehearsing, rows, told};

#[test]
fn a_paused_root_is_said_and_goes_on_when_it_is_resumed() {
    let (polity, daemon) = rehearsing();
    assert_eq!(told(&polity, &["pause", "root"]), "paused: root\n");
    let again = ask(&polity, &["pause", "root"]).expect_code(0);
    assert_eq!((&*again.stdout, &*again.stderr), ("", "polity: everybody there was paused already\n"));
    let advice = refused(&polity, &["run", "hello"]);
    assert!(
        advice.contains("root is paused and does nothing until it is resumed: polity resume root"),
        "{advice}"
    );
    assert!(rows(&polity, &["tasks"]).is_empty(), "nothing was begun");

    daemon.terminate();
    daemon.wait().expect_code(0);
    let alone = refused(&polity, &["run", "hello"]);
    assert!(alone.contains("until it is resumed: polity run --resume"), "{alone}");

    let _daemon = super::serve(&polity);
    assert_eq!(rows(&polity, &["resume", "root"]), [json!({"agents": ["root"]})]);
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
    assert_eq!((&*idle.stdout, &*idle.stderr), ("", "polity: nobody there had any work\n"));
}

#[test]
fn the_configuration_is_read_again() {
    let (polity, _daemon) = rehearsing();
    let good = told(&polity, &["config", "reload"]);
    assert!(good.contains("is in force; services: rehearsal-text, rehearsal-multimodal"), "{good}");
    polity.write_config("app.json", "{");
    let bad = ask(&polity, &["config", "reload"]).expect_code(2);
    assert!(bad.stderr.contains("app.json"), "{}", bad.stderr);
    assert!(bad.stdout.contains("rehearsal-text"), "the last good one goes on: {}", bad.stdout);
}
