//! `polity` without arguments on terminals of different widths, driven by keys. As in a shell, the terminal controls
//! the session of the command. So Ctrl-C is a signal while a question is open.
//!
//! polity finds a model server only at the usual port of such a server. So the tests that need a model server run in
//! network namespaces of their own. On a machine that does not allow this, these tests print that they were skipped.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use axum::Router;
use axum::extract::Json;
use axum::routing::{get, post};
use polity_tests::{Answer, Output, Polity, Running, ScriptedServer, in_own_network};
use serde_json::{Value, json};

use super::{
    CTRL_C, CTRL_D, ENTER, READS, WIDTHS, assert_answer_is_legible, assert_fits, assert_whole, plain,
};
use crate::support::files::files_below;
use crate::support::router::Served;
use crate::support::{home, json_lines};

/// A terminal on which no line needs to be broken.
const WIDE: u16 = 1000;
/// The port at which polity looks for Ollama.
const OLLAMA: u16 = 11_434;
const MODEL: &str = "qwen3-vl:8b";
/// The first prompt that the dialogue suggests.
const SAMPLE: &str =
    "Let three experts discuss from different sides: should a small team write tests? Then conclude.";
/// The end of each question about a file.
const WRITE: &str = "[Y/n] ";
/// The end of the last question: chat, live view, or nothing.
const NEXT: &str = "end: ";
const YES: &str = "y\r";
const NO: &str = "n\r";

/// Starts a server that answers like Ollama. Its model has a small context window, of which the dialogue warns.
fn ollama() -> Served {
    let models = json!({"object": "list", "data": [{"id": MODEL, "owned_by": "library"}]});
    let info = json!({"general.architecture": "a", "a.context_length": 262_144});
    let capabilities = ["completion", "vision", "tools"];
    let shown = json!({"capabilities": capabilities, "model_info": info, "parameters": "num_ctx 4096"});
    let message =
        json!({"role": "assistant", "content": format!("{}end-of-answer", "wonderful ".repeat(30))});
    let answer = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let router = Router::new()
        .route("/v1/models", get(async move || Json(models)))
        .route("/api/show", post(async move || Json(shown)))
        .route("/api/ps", get(async || Json(json!({"models": []}))))
        .route("/v1/chat/completions", post(async move || Json(answer)));
    Served::start_at(OLLAMA, router)
}

/// Returns a home with this locale. Nothing is configured in it.
fn newcomer(locale: &str) -> Polity {
    let mut polity = Polity::new(&json!({}), &json!({}));
    fs::remove_dir_all(polity.config_dir()).expect("a directory");
    polity.set_env("LANG", locale);
    polity
}

/// Starts `polity` without arguments on a terminal, and presses keys. Each step is a text that the test waits for, and
/// the keys that it then presses.
#[track_caller]
fn begin(polity: &Polity, columns: u16, steps: &[(&str, &str)]) -> (Running, fs::File) {
    let (running, mut keyboard) = polity.spawn_in_session_at(columns, &[]);
    for (number, (awaited, keys)) in steps.iter().enumerate() {
        let times = steps[..=number].iter().filter(|(text, _)| text == awaited).count();
        running.stdout_wait_times(awaited, times);
        keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    }
    (running, keyboard)
}

/// Does the same as [`begin`], and waits until the command has ended. Removes escape sequences from the output. Also
/// removes each `^C` that the terminal shows for Ctrl-C, because its place differs: it may come after the next line of
/// polity.
#[track_caller]
fn lead(polity: &Polity, columns: u16, steps: &[(&str, &str)]) -> Output {
    let (running, _keyboard) = begin(polity, columns, steps);
    let ended = running.wait();
    Output { stdout: plain(&ended.stdout).replace("^C", ""), ..ended }
}

/// Returns the names of all files in the user's configuration directory, with their texts.
fn configured(polity: &Polity) -> Vec<(String, String)> {
    let directory = polity.home().join(".config");
    if !directory.exists() {
        return Vec::new();
    }
    let text = |path: &PathBuf| fs::read_to_string(path).expect("a text");
    let mut files: Vec<(String, String)> = files_below(&directory)
        .iter()
        .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), text(path)))
        .collect();
    files.sort();
    files
}

/// Removes everything that polity has written, so that the next command runs as for a new user.
fn forget(polity: &Polity) {
    for directory in [".config", ".local"] {
        let path = polity.home().join(directory);
        if path.exists() {
            fs::remove_dir_all(path).expect("a directory");
        }
    }
}

/// Checks that both configuration files are complete, and that there are no other files.
#[track_caller]
fn assert_both_written(polity: &Polity) {
    let files = configured(polity);
    let [(app, settings), (llmservices, services)] = files.as_slice() else {
        panic!("not two files: {files:?}");
    };
    assert_eq!((app.as_str(), llmservices.as_str()), ("app.json", "llmservices.json"));
    assert!(settings.contains("\"language\": \"en\"") && settings.trim_end().ends_with('}'), "{settings}");
    let services: Value = serde_json::from_str(services).expect("JSON");
    assert_eq!(services["services"][0]["model"], MODEL);
}

/// Checks that no line is wider than the terminal, except for commands: these are on one line each, so that a person can
/// copy them.
#[track_caller]
fn assert_all_but_commands_fit(shown: &str, columns: u16) {
    let others: Vec<&str> = shown.lines().filter(|line| !line.starts_with("  polity ")).collect();
    assert_fits(&others.join("\n"), columns);
}

#[track_caller]
fn assert_nothing_runs(polity: &Polity) {
    let status = polity.run(&["status"]).expect_code(0).stdout;
    assert!(status.starts_with("no daemon serves this data directory; nothing runs\n"), "{status}");
}

#[test]
fn the_first_minute_can_be_read_and_typed_at_every_width() {
    in_own_network("cli::terminals::alone::inside_the_first_minute");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_the_first_minute() {
    let _server = ollama();
    let polity = newcomer("en_US.UTF-8");
    let whole = first_minute(&polity, WIDE);
    for words in [
        "Found Ollama at http://127.0.0.1:11434/v1:\n",
        "warning: the context window of service local has only 4096 tokens",
        "llmservices.json? [Y/n] y\n",
        "app.json)? After n, polity writes to you, the models and the agents in Chinese. [Y/n] \nwrote ",
        "This society can: read and write text, see pictures, use tools",
        SAMPLE,
        "\nNow: 1 chat, 2 the live view in a browser, Enter to end: 1",
    ] {
        assert!(whole.contains(words), "{words:?} is not in {whole}");
    }
    for columns in WIDTHS {
        let shown = first_minute(&polity, columns);
        assert_all_but_commands_fit(&shown, columns);
        assert_whole(&shown, &whole, columns);
        let command = format!("\n  polity run \"{SAMPLE}\"\n");
        assert!(shown.contains(&command), "the command is broken at {columns} columns in:\n{shown}");
    }
}

/// Waits until nothing is left to do. Before that, the chat would not end at once.
#[track_caller]
fn wait_until_idle(polity: &Polity) {
    for _ in 0..1_200 {
        let tasks = json_lines(&polity.run(&["tasks", "--json"]).expect_code(0).stdout);
        if !tasks.is_empty() && tasks.iter().all(|task| task["state"] == "idle") {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("a task stays open");
}

/// Says yes to both files, chooses the chat, sends a sample prompt, reads the answer, and ends. Returns what the
/// terminal showed before the chat.
#[track_caller]
fn first_minute(polity: &Polity, columns: u16) -> String {
    let (running, mut keyboard) = begin(polity, columns, &[(WRITE, YES)]);
    running.stdout_wait_times(WRITE, 2);
    assert_eq!(configured(polity), [], "a file was written before the last question about files");
    let mut press = |keys: &str| keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    press(ENTER);
    running.stdout_wait(NEXT);
    assert_both_written(polity);
    press("1\r");
    running.stdout_wait_times(READS, 1);
    press(&format!("{SAMPLE}{ENTER}"));
    running.stdout_wait("end-of-answer");
    running.stdout_wait_times(READS, 2);
    wait_until_idle(polity);
    press(CTRL_C);
    let shown = plain(&running.wait().expect_code(0).stdout);
    assert_nothing_runs(polity);
    forget(polity);
    let chosen = shown.find("end: 1\n").expect("the choice") + "end: 1".len();
    if columns < WIDE {
        assert_answer_is_legible(&shown[chosen..], columns);
    }
    shown[..chosen].to_owned()
}

#[test]
fn who_says_no_or_ends_the_input_gets_no_services_at_every_width() {
    in_own_network("cli::terminals::alone::inside_no_and_ctrl_d");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_no_and_ctrl_d() {
    let _server = ollama();
    let english = [WRITE, WRITE, NEXT].as_slice();
    for (locale, questions) in [("en_US.UTF-8", english), ("zh_CN.UTF-8", &[WRITE, "结束："])] {
        let polity = newcomer(locale);
        for (key, typed) in [(NO, "n"), (CTRL_D, "")] {
            let steps: Vec<(&str, &str)> = questions.iter().map(|question| (*question, key)).collect();
            let said_no = |columns| {
                let ended = lead(&polity, columns, &steps).expect_code(0);
                let written = configured(&polity);
                if (locale, key) == ("en_US.UTF-8", NO) {
                    // A no to English is remembered. Otherwise the question would come again at each start.
                    let [(app, settings)] = written.as_slice() else { panic!("not one file: {written:?}") };
                    assert!(app == "app.json" && settings.contains("\"language\": \"zh\""), "{settings}");
                    forget(&polity);
                } else {
                    assert_eq!(written, []);
                }
                ended.stdout
            };
            let whole = said_no(WIDE);
            // After each question and its answer, a new line begins. This is so even if the user ended the input
            // instead of typing a line break.
            for line in whole.lines().filter(|line| questions.iter().any(|question| line.contains(question)))
            {
                assert!(
                    questions.iter().any(|question| line.ends_with(&format!("{question}{typed}"))),
                    "{whole}"
                );
            }
            assert!(whole.ends_with('\n'), "{whole:?}");
            for columns in WIDTHS {
                let shown = said_no(columns);
                assert_all_but_commands_fit(&shown, columns);
                assert_whole(&shown, &whole, columns);
            }
        }
    }
}

#[test]
fn ctrl_c_at_a_question_leaves_no_half_of_the_files_at_every_width() {
    in_own_network("cli::terminals::alone::inside_ctrl_c");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_ctrl_c() {
    let _server = ollama();
    let polity = newcomer("en_US.UTF-8");
    for columns in WIDTHS {
        let check = |steps: &[(&str, &str)]| {
            let ended = lead(&polity, columns, steps).expect_code(130);
            assert_all_but_commands_fit(&ended.stdout, columns);
            assert!(ended.stdout.ends_with("\npolity: interrupted\n"), "{}", ended.stdout);
        };
        check(&[(WRITE, CTRL_C)]);
        // The answer is typed, but Enter is not pressed.
        check(&[(WRITE, "y\x03")]);
        check(&[(WRITE, YES), (WRITE, CTRL_C)]);
        assert_eq!(configured(&polity), []);
        check(&[(WRITE, YES), (WRITE, YES), (NEXT, CTRL_C)]);
        assert_both_written(&polity);
        assert!(!polity.home().join(".local").exists(), "no daemon was started, so there is no data");
        forget(&polity);
    }
}

#[test]
fn a_configuration_with_a_mistake_is_told_at_every_width() {
    let server = ScriptedServer::start(|_| Answer::say("never asked"));
    let mut polity = home(&server, &json!({"colourOfTheWholeSocietyAndOfEverythingThatBelongsToIt": "blue"}));
    polity.set_env("LANG", "en_US.UTF-8");
    let before = fs::read_to_string(polity.config_dir().join("app.json")).expect("a file");
    let steps = [(WRITE, CTRL_D), (NEXT, ENTER)];
    let whole = lead(&polity, WIDE, &steps).expect_code(0).stdout;
    assert!(whole.contains("Configured already: ") && whole.contains("colourOfTheWhole"), "{whole}");
    for columns in WIDTHS {
        let shown = lead(&polity, columns, &steps).expect_code(0).stdout;
        assert_all_but_commands_fit(&shown, columns);
        assert_whole(&shown.replace("polity: ", ""), &whole.replace("polity: ", ""), columns);
    }
    assert_eq!(fs::read_to_string(polity.config_dir().join("app.json")).expect("a file"), before);
    assert!(server.requests().is_empty());
}

#[test]
fn a_configuration_that_is_there_is_told_in_the_language_of_the_person() {
    let server = ScriptedServer::start(|_| Answer::say("never asked"));
    let mut polity = home(&server, &json!({"language": "zh"}));
    polity.set_env("LANG", "zh_CN.UTF-8");
    let shown = lead(&polity, WIDE, &[("结束：", ENTER)]).expect_code(0).stdout;
    assert!(shown.contains("\n已有配置：llmservices.json 中的服务。\n"), "{shown}");
    assert!(server.requests().is_empty());
}

/// The model never answers. At each width, the person leaves the chat that `polity` has begun, and each time with other
/// keys.
#[test]
fn who_leaves_the_chat_before_the_answer_ends_the_daemon_and_loses_nothing() {
    for (columns, keys) in WIDTHS.into_iter().zip([CTRL_C, CTRL_D, "/quit\r"]) {
        let server = ScriptedServer::start(|_| Answer::hang());
        let polity = home(&server, &json!({"language": "en"}));
        let (running, mut keyboard) = begin(&polity, columns, &[(NEXT, "1\r"), (READS, "how much is it?\r")]);
        server.wait_until(Duration::from_secs(60), |requests| requests.len() == 1);
        running.stdout_wait_times(READS, 2);
        keyboard.write_all(keys.as_bytes()).expect("a keyboard");
        // The society would end with unfinished work. So the chat says what is unfinished, and waits for the same keys.
        running.stdout_wait("1 task is unfinished");
        running.stdout_wait_times(READS, 3);
        keyboard.write_all(keys.as_bytes()).expect("a keyboard");
        let shown = plain(&running.wait().expect_code(0).stdout);
        let in_one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(in_one_line.contains("at work: root") && in_one_line.contains("nothing is lost"), "{shown}");
        assert_nothing_runs(&polity);
        let status = polity.run(&["status"]).expect_code(0).stdout;
        assert!(status.contains("1 agent has work\n") && status.contains("for: how much is it?"), "{status}");
    }
}

#[test]
fn the_live_view_that_polity_alone_opens_ends_with_ctrl_c() {
    let server = ScriptedServer::start(|_| Answer::say("never asked"));
    let mut polity = home(&server, &json!({"language": "en"}));
    let programs = polity.home().join("programs");
    fs::create_dir(&programs).expect("a directory");
    let browser = "#!/bin/sh\necho \"the browser opens $1\" > /dev/tty\n";
    for name in ["xdg-open", "open"] {
        fs::write(programs.join(name), browser).expect("a file");
        let executable = fs::Permissions::from_mode(0o700);
        fs::set_permissions(programs.join(name), executable).expect("an executable file");
    }
    let path = std::env::var("PATH").expect("a path");
    polity.set_env("PATH", &format!("{}:{path}", programs.display()));
    for columns in WIDTHS {
        let (running, mut keyboard) = begin(&polity, columns, &[(NEXT, "2\r")]);
        let address = running.stdout_line("http://127.0.0.1:");
        let opened = running.stdout_line("the browser opens ");
        // On a slow machine, the line of the start may be drawn between the words and the address.
        assert!(opened.ends_with(&address), "{opened:?} does not end with {address:?}");
        running.stdout_line("Ctrl-C ends the live view.");
        running.stdout_wait("\n  polity view");
        keyboard.write_all(CTRL_C.as_bytes()).expect("a keyboard");
        running.wait().expect_code(0);
        assert_nothing_runs(&polity);
    }
}
