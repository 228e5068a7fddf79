//! The output of commands. The tests check what a command does if it cannot write its output, and that a pipe gets
//! the text of a model unchanged.

use polity_tests::{Answer, Output, Polity, ScriptedServer};
use serde_json::json;

use crate::support::{home, run};

const RUN: &[&str] = &["run", "what?", "--data", "data"];

fn answering(said: &'static str) -> (ScriptedServer, Polity) {
    let server = ScriptedServer::start(move |_| Answer::say(said));
    let polity = home(&server, &json!({}));
    (server, polity)
}

/// Runs a command whose standard output is a pipe without a reader.
#[track_caller]
fn run_closed(polity: &Polity, arguments: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    polity.spawn_into(arguments, writer).wait()
}

/// Checks that the next process prints the answer without asking the model again.
#[track_caller]
fn assert_kept(server: &ScriptedServer, polity: &Polity) {
    assert_eq!(run(polity, &["--resume"]).expect_code(0).stdout, "42\n");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_reader_that_has_gone_ends_it_in_silence_and_nothing_is_lost() {
    let (server, polity) = answering("42");
    let ended = run_closed(&polity, RUN).expect_code(130);
    assert_eq!(ended.stderr, "");
    assert_kept(&server, &polity);
}

#[test]
fn a_reader_that_has_gone_ends_json_before_anything_is_begun() {
    let (server, polity) = answering("42");
    let ended = run_closed(&polity, &["run", "what?", "--data", "data", "--json"]).expect_code(130);
    assert_eq!(ended.stderr, "");
    assert!(server.requests().is_empty());
}

#[test]
fn other_commands_end_in_silence_too() {
    let (_server, polity) = answering("42");
    for arguments in [&["config", "show"][..], &["config", "check"], &["--help"], &["--version"]] {
        let ended = run_closed(&polity, arguments).expect_code(130);
        assert_eq!(ended.stderr, "", "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
mod full {
    use std::fs::File;

    use super::*;

    #[track_caller]
    fn run_full(polity: &Polity, arguments: &[&str]) {
        let full = File::options().write(true).open("/dev/full").expect("a device that is always full");
        let ended = polity.spawn_into(arguments, full).wait().expect_code(1);
        let [line] = &ended.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("expected one line:\n{}", ended.stderr)
        };
        let complaint = "polity: cannot write to standard output: No space left on device";
        assert!(line.starts_with(complaint), "{arguments:?}: {line}");
    }

    #[test]
    fn a_full_disk_is_1_and_nothing_is_lost() {
        let (server, polity) = answering("42");
        run_full(&polity, RUN);
        assert_kept(&server, &polity);
    }

    #[test]
    fn so_it_is_for_every_command_that_prints() {
        let (_server, polity) = answering("42");
        let json = ["run", "what?", "--data", "data", "--json"];
        for arguments in [&json[..], &["config", "show"], &["config", "check"], &["--help"], &["--version"]] {
            run_full(&polity, arguments);
        }
    }
}

#[test]
fn a_pipe_gets_what_was_said_byte_for_byte() {
    const SAID: &str = "\u{1b}[31mred\u{1b}[0m\r\n\u{9b}2J\u{7f}\u{202e}x\ttab";
    let (_server, polity) = answering(SAID);
    let ended = run(&polity, &["what?"]).expect_code(0);
    assert_eq!(ended.stdout, format!("{SAID}\n"));
}

const REPORT: &str = "# Report\n\n| a | b |\n|---|---|\n| 1 | 词语 |\n\n1. x\n   - y\n\n```rust\nfn main() {}\n```\n\n**end** &#27;[2J";

#[test]
fn a_terminal_formats_markdown_and_a_pipe_gets_what_was_said() {
    let (_server, polity) = answering(REPORT);
    let ended = run(&polity, &["what?"]).expect_code(0);
    assert_eq!(ended.stdout, format!("{REPORT}\n"));
    let piped = polity.run(&["messages", "--from", "root", "--data", "data"]).expect_code(0);
    assert!(piped.stdout.contains("    | 1 | 词语 |\n"), "{}", piped.stdout);
    for arguments in
        [&["messages", "--from", "root", "--data", "data"][..], &["run", "again?", "--data", "data"]]
    {
        let shown = polity.spawn_on_terminal(arguments).wait().expect_code(0).stdout;
        for expect in [
            "\u{1b}[1m\u{1b}[4mReport",
            "1 │",
            "┼─",
            "1. x\r\n",
            "   • y\r\n",
            " fn main() {}\r\n",
            "<U+001B>[2J",
        ] {
            let found = shown.contains(expect) || without_styles(&shown).contains(expect);
            assert!(found, "{expect:?} is not in {shown:?}");
        }
        assert!(
            !shown.contains("|---|") && !shown.contains("```") && !shown.contains("\u{1b}[2J"),
            "{shown:?}"
        );
    }
}

/// Removes the escape sequences for styles from the output on a terminal.
fn without_styles(shown: &str) -> String {
    let mut pieces = shown.split('\u{1b}');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or(piece, |(_, rest)| rest))
}
