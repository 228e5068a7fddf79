//! `polity status` on terminals of different widths, with a daemon and without a daemon. In the society of the daemon,
//! one agent works and something is stuck.

use std::time::{Duration, Instant};

use polity_tests::{Answer, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use super::{WIDTHS, assert_fits, assert_whole, plain};
use crate::cli::{rows, serve, told};
use crate::support::hiring::boss_and_worker;
use crate::support::home;

const PATIENCE: Duration = Duration::from_secs(60);
/// An address that is wider than the narrowest terminal.
const ADDRESS: &str = "https://example.org/a-directory-with-a-long-name/and-a-page-with-a-long-name.html";
/// A text with Latin words between Chinese characters, without spaces.
const CHINESE: &str =
    "请看看这张图片，然后用markdown说出上面写了什么，并说明internationalisation是什么意思。";
/// A text that status shows only in part, because it is long.
const LONG: &str = "and tell me everything about each of the hundred pages";

/// A daemon with two tasks. In the first, root waits for a worker, and the worker is paused. In the second, root's call
/// has failed, and root waits for an hour before it calls again. So this state stays the same for an hour.
struct Society {
    polity: Polity,
    daemon: Running,
    worker: String,
    server: ScriptedServer,
}

impl Society {
    #[track_caller]
    fn in_trouble() -> Self {
        let work = boss_and_worker(|_| Answer::hang());
        let reason = format!("the model at {ADDRESS} is overloaded by many other requests; {CHINESE}");
        let server = ScriptedServer::start(move |asked| {
            if asked.text_contains("the second question") {
                return Answer::error(503, json!({"error": {"message": reason}}));
            }
            work(asked)
        });
        let hour = 3_600_000;
        let retry = json!({"maxAttempts": 3, "baseDelayMs": hour, "maxDelayMs": hour});
        let polity = home(&server, &json!({"language": "en", "retry": retry}));
        let daemon = serve(&polity);
        told(&polity, &["send", &format!("{CHINESE} and count the pages of {ADDRESS}")]);
        let now = until(&polity, "root waits for the worker", |now| state_of(now, "root") == "waiting");
        let working = now["working"].as_array().expect("agents").iter();
        let worker = working.filter_map(|agent| agent["id"].as_str()).find(|id| *id != "root");
        let worker = worker.expect("a worker").to_owned();
        told(&polity, &["pause", &worker]);
        told(&polity, &["send", &format!("the second question: {}", format!("{LONG} ").repeat(20))]);
        until(&polity, "root pauses after its failure, and two things are stuck", |now| {
            state_of(now, "root") == "retrying" && now["stuckTotal"] == 2
        });
        Self { polity, daemon, worker, server }
    }
}

/// Asks for the status until `holds` accepts it, and returns it.
#[track_caller]
fn until(polity: &Polity, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let now = rows(polity, &["status"])[0]["now"].clone();
        if holds(&now) {
            return now;
        }
        assert!(begin.elapsed() < PATIENCE, "this has not happened: {what}; {now:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the state of an agent; null if the agent is not at work.
fn state_of(now: &Value, agent: &str) -> Value {
    let mut working = now["working"].as_array().expect("agents").iter();
    working.find(|card| card["id"] == agent).map_or(Value::Null, |card| card["state"].clone())
}

/// Leaves out times, such as `1 min 2 s` or `(now)`, because they differ between two runs of a command.
fn timeless(text: &str) -> String {
    let is_time = |word: &&str| {
        let word = word.trim_matches(|character: char| !character.is_alphanumeric());
        let is_number = !word.is_empty() && word.chars().all(|character| character.is_ascii_digit());
        is_number || ["s", "min", "h", "now", "ago"].contains(&word)
    };
    // Also remove the comma before a time and the semicolon behind it. If there is no time yet, the semicolon stands
    // behind the word before.
    let words = text.split_whitespace().filter(|word| !is_time(word));
    let words = words.map(|word| word.trim_end_matches([',', ';']));
    words.collect::<Vec<_>>().join(" ")
}

/// Checks that the command shows the same text on terminals of all widths as it writes to a pipe.
#[track_caller]
fn assert_legible(polity: &Polity) {
    let whole = told(polity, &["status"]);
    for columns in WIDTHS {
        let running = polity.spawn_in_session_at(columns, &["status", "--data", "data"]).0;
        let shown = plain(&running.wait().expect_code(0).stdout);
        assert_fits(&shown, columns);
        assert_whole(&timeless(&shown), &timeless(&whole), columns);
    }
}

#[test]
fn a_status_of_work_and_trouble_can_be_read_at_every_width() {
    let Society { polity, worker, daemon: _daemon, server: _server } = Society::in_trouble();
    let whole = told(&polity, &["status"]);
    for words in [
        "1 agent is at work\n",
        "    retrying one in ",
        // Root also waits for the worker, in its other task.
        "    and in t-",
        "2 things are stuck\n",
        &format!("  root waits for {worker}, which is paused"),
        &format!("    → polity resume {worker} --data data\n"),
        "  service one fails",
        CHINESE,
    ] {
        assert!(whole.contains(words), "{words:?} is not in: {whole}");
    }
    // A line that shows only a part of the text ends with `…`.
    for line in whole.lines().filter(|line| line.contains(LONG)) {
        assert!(line.ends_with('…'), "{line:?}");
    }
    assert_legible(&polity);
    // A terminal that does not report its width breaks the lines itself.
    let shown = polity.spawn_on_terminal(&["status", "--data", "data"]).wait().expect_code(0).stdout;
    assert_eq!(timeless(&plain(&shown)), timeless(&whole));
    assert_eq!(plain(&shown).lines().count(), whole.lines().count(), "{shown}");
}

#[test]
fn a_status_without_a_daemon_can_be_read_at_every_width() {
    let Society { polity, worker, daemon, server: _server } = Society::in_trouble();
    daemon.kill9();
    let whole = told(&polity, &["status"]);
    for words in [
        "no daemon serves this data directory; nothing runs\n",
        "`polity run --data data --resume` or `polity serve --data data` goes on with the work\n",
        "1 agent has work\n",
        "1 thing is stuck\n",
        &format!("  root waits for {worker}, which is paused"),
        &format!(
            "    → first start a daemon: polity serve --data data\n    → polity resume {worker} --data data\n"
        ),
    ] {
        assert!(whole.contains(words), "{words:?} is not in: {whole}");
    }
    assert_legible(&polity);
}
