//! `polity`, `polity chat`, `polity watch` and `polity status` on terminals of different widths, driven by keys; and
//! what commands show on a terminal while they work.

mod alone;
mod elapsed;
mod status;

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use polity_tests::{Answer, Call, Conversation, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use super::{PATIENCE, look_at_picture, rehearsing, rows, served, told, wait_until};
use crate::support::hiring::{Gate, brief, heard_from_agents};
use crate::support::{app, half_an_answer, home, run, service};

const WIDTHS: [u16; 3] = [40, 80, 200];
const ENTER: &str = "\r";
const ALT_ENTER: &str = "\x1b\r";
const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const ESCAPE: &str = "\x1b";
const UP: &str = "\x1b[A";
const DOWN: &str = "\x1b[B";
/// Maximum number of columns that a line leaves empty at its beginning.
const MARGIN: usize = 6;
/// The line editor of the chat writes this escape sequence each time it begins to read a line. The tests wait for the
/// sequence before they type, because earlier keys would not reach the editor.
const READS: &str = "\x1b[?2004h";

/// Returns the lines that a terminal shows, without escape sequences. A carriage return removes the text of its line,
/// because the text after it takes the place of this text.
fn plain(shown: &str) -> String {
    let mut plain = String::new();
    let mut rest = shown.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\x1b' => {
                // An escape sequence ends with its first letter.
                rest.find(char::is_ascii_alphabetic);
            }
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => plain.truncate(plain.rfind('\n').map_or(0, |at| at + 1)),
            character => plain.push(character),
        }
    }
    plain
}

/// Returns whether a character takes two columns. Chinese characters and Chinese punctuation marks do.
fn is_wide(character: char) -> bool {
    ('\u{2e80}'..='\u{ffef}').contains(&character)
}

/// Returns how many columns a text takes on a terminal.
fn columns_of(text: &str) -> usize {
    text.chars().map(|character| if is_wide(character) { 2 } else { 1 }).sum()
}

#[track_caller]
fn assert_fits(shown: &str, columns: u16) {
    for line in shown.lines() {
        assert!(columns_of(line) <= columns.into(), "{line:?} is wider than {columns} columns in:\n{shown}");
    }
}

/// Returns the words of a text. Leaves out Chinese characters, which count as separators: a line may end between any
/// two of them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |character: char| character.is_whitespace() || is_wide(character);
    text.split(is_between).filter(|word| !word.is_empty())
}

/// Checks that a terminal shows the whole text, and that a line ends inside a word only if the word is wider than a
/// line.
#[track_caller]
fn assert_whole(shown: &str, whole: &str, columns: u16) {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(bare(shown), bare(whole), "at {columns} columns");
    let mut pieces = words(shown);
    for word in words(whole) {
        let mut piece = pieces.next().unwrap_or_default().to_owned();
        while piece != word && columns_of(word) > usize::from(columns) - MARGIN {
            piece.push_str(pieces.next().unwrap_or_else(|| panic!("{word:?} is not whole in:\n{shown}")));
        }
        assert_eq!(piece, word, "a word is broken at {columns} columns in:\n{shown}");
    }
}

/// Checks how a terminal shows an answer. The answer consists of the word `wonderful` thirty times, and of a last word
/// that begins with `end-`.
#[track_caller]
fn assert_answer_is_legible(shown: &str, columns: u16) {
    // Leave out the indented lines, which the chat shows while a model writes. Such a line may end within a word, but
    // no other line may.
    let is_answer = |line: &&str| line.contains("wonderful") && !line.starts_with("  ");
    let lines: Vec<&str> = shown.lines().filter(is_answer).collect();
    assert!(lines.len() > 1, "{shown}");
    for line in &lines {
        assert!(line.trim_end().len() <= columns.into(), "{columns}: {line:?}");
        assert!(
            line.split_whitespace().all(|word| word == "wonderful" || word.starts_with("end-")),
            "{line:?}"
        );
    }
}

#[test]
fn a_chat_can_be_typed_and_read_at_every_width() {
    let count = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        Answer::say(format!("{}end-{number}", "wonderful ".repeat(30)))
    });
    let (polity, _daemon) = served(&server);
    for (number, columns) in WIDTHS.into_iter().enumerate() {
        let (running, mut keyboard) = polity.spawn_with_keyboard_at(columns, &["chat", "--data", "data"]);
        let mut press = |keys: &str| keyboard.write_all(keys.as_bytes()).expect("a keyboard");
        running.stdout_line("/help");
        running.stdout_wait_times(READS, 1);
        press(&format!("begin {columns}{ALT_ENTER}second line{ENTER}"));
        // The answer consists of 30 words of ten columns and a last word. The text is indented while it arrives. So an
        // unindented last line shows that the answer is complete.
        let last = "wonderful ".repeat(30 % ((usize::from(columns) + 1) / 10));
        running.stdout_wait(&format!("\n{last}end-{number}"));
        // On a line with text, Ctrl-C only empties the line, and the chat goes on.
        running.stdout_wait_times(READS, 2);
        press(&format!("never sent{CTRL_C}/tasks{ENTER}"));
        running.stdout_line("tokens");
        running.stdout_wait_times(READS, 3);
        // On an empty line, Ctrl-C ends the chat.
        press(CTRL_C);
        let shown = plain(&running.wait().expect_code(0).stdout);
        assert_answer_is_legible(&shown, columns);
    }
    let said = rows(&polity, &["messages", "--from", "user"]);
    let texts: Vec<&str> = said.iter().filter_map(|message| message["text"].as_str()).collect();
    assert_eq!(texts, WIDTHS.map(|columns| format!("begin {columns}\nsecond line")));
}

#[test]
fn a_chat_shows_headings_lists_tables_and_code_as_such() {
    let report = "# Report\n\n- one\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```";
    let server = ScriptedServer::start(move |_| Answer::say(report));
    let (polity, _daemon) = served(&server);
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(40, &["chat", "--data", "data"]);
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "write it{ENTER}").expect("a keyboard");
    // The escape sequences begin a bold and an underlined text.
    for shown in ["\x1b[1m\x1b[4mReport", "• one", "─┼─", " fn main() {}"] {
        running.stdout_wait(shown);
    }
    running.stdout_wait_times(READS, 2);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    running.wait().expect_code(0);
}

/// A server accepts a request and sends nothing. On a narrow terminal, `run` shows all words about this.
#[test]
fn a_run_on_a_narrow_terminal_says_what_happens_when_about_a_silent_server() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let mut one = service("one", &server, &["text"]);
    // The server counts as silent after half of this time.
    one["timeouts"] = json!({"firstByteMs": 6_000});
    let polity = Polity::new(&json!({"services": [one]}), &app(&json!({})));
    let running = polity.spawn_on_terminal_of(40, &["run", "--data", "data", "hello"]);
    running.stdout_wait("then asks it again");
    let shown = plain(&running.kill9().stdout);
    for part in ["silent for", "polity ends this", "attempt in", "then asks it again"] {
        let line = shown.lines().find(|line| line.contains(part));
        let line = line.unwrap_or_else(|| panic!("{part:?} is not shown in:\n{shown}"));
        assert!(columns_of(line) <= 40, "{line:?} is too wide in:\n{shown}");
    }
}

#[test]
fn an_explanation_fits_a_narrow_terminal() {
    let broken = json!({"error": {"message": "the model is broken"}});
    let server = ScriptedServer::start(move |_| Answer::error(400, broken.clone()));
    let (polity, _daemon) = served(&server);
    run(&polity, &["how much is it?"]).expect_code(3);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let explaining = polity.spawn_on_terminal_of(40, &["why", &task, "--data", "data"]);
    let shown = plain(&explaining.wait().expect_code(0).stdout);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("because attempt 1 of root at one failed"), "{shown}");
    // A command must stay whole.
    for line in shown.lines().filter(|line| !line.contains('→')) {
        assert!(columns_of(line) <= 40, "{line:?} is too wide in:\n{shown}");
    }
}

#[test]
fn a_chat_begins_with_the_last_lines_and_finds_what_was_typed_before() {
    let server = ScriptedServer::start(|_| Answer::say("forty-two"));
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "--wait", "how much is it?"]);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--data", "data"]);
    running.stdout_line("> how much is it?");
    running.stdout_line("forty-two");
    running.stdout_line(&format!("/task {task} continues that task"));
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    // The chat has just shown messages, so it does not say that there are none.
    write!(keyboard, "/history{ENTER}").expect("a keyboard");
    running.stdout_line("no task is chosen, so your next message begins one");
    running.stdout_wait_times(READS, 2);
    // The arrow key shows the line that another client has sent before. The last line is `/history`.
    write!(keyboard, "{UP}{UP}{ENTER}").expect("a keyboard");
    server.wait_until(PATIENCE, |requests| requests.len() == 2);
    running.stdout_wait_times(READS, 3);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    running.wait().expect_code(0);
    let said = rows(&polity, &["messages", "--from", "user"]);
    assert_eq!(said[1]["text"], json!("how much is it?"));
    assert_ne!(said[1]["task"], json!(task), "without /task, the chat begins a new task");
}

#[test]
fn a_chat_begins_with_a_few_lines_of_a_long_history() {
    let server = ScriptedServer::start(|_| Answer::say("line\n\n".repeat(40)));
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "--wait", "question 1"]);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    for number in 2..=5 {
        told(&polity, &["send", "--wait", &format!("question {number}"), "--task", &task]);
    }
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--task", &task, "--data", "data"]);
    running.stdout_line("4 earlier messages are not shown; /history shows them");
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    let shown = plain(&running.wait().expect_code(0).stdout);
    assert!(shown.contains("> question 3") && !shown.contains("> question 2"), "{shown}");
    assert_eq!(shown.matches(" more lines").count(), 3, "{shown}");
    assert!(shown.lines().count() < 60, "{shown}");
}

/// The title of the task is wider than the terminal, and the text of a pipe stays whole.
#[test]
fn a_table_fits_the_terminal() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, _daemon) = served(&server);
    let prompt = "count the pages of the books that lie on the table and tell me the sum of all";
    told(&polity, &["send", "--wait", prompt]);
    let shown = polity.spawn_in_session_at(100, &["tasks", "--data", "data"]).0.wait().expect_code(0).stdout;
    let shown = plain(&shown);
    assert_fits(&shown, 100);
    assert!(shown.contains("count the pages") && shown.trim_end().ends_with('…'), "{shown}");
    assert!(told(&polity, &["tasks"]).contains(prompt));
}

/// Commands other than `polity` alone speak Chinese until somebody chooses a language. On a terminal with another locale,
/// a run says so in one line.
#[test]
fn a_run_says_once_why_its_texts_are_chinese() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let line = "polity: texts are in Chinese, because nobody has chosen a language";
    for (locale, fields, times) in [
        ("en_US.UTF-8", json!({}), 1),
        ("en_US.UTF-8", json!({"language": "en"}), 0),
        ("en_US.UTF-8", json!({"language": "zh"}), 0),
        ("zh_CN.UTF-8", json!({}), 0),
        ("C.UTF-8", json!({}), 0),
    ] {
        let mut polity = home(&server, &fields);
        polity.set_env("LANG", locale);
        let arguments = ["run", "--data", "data", "what?"];
        let shown = plain(&polity.spawn_in_session_at(200, &arguments).0.wait().expect_code(0).stdout);
        assert_eq!(shown.matches(line).count(), times, "{locale} {fields}: {shown}");
        let piped = polity.run(&arguments).expect_code(0);
        assert!(!piped.stderr.contains(line), "{}", piped.stderr);
    }
}

/// The answer arrives while no chat is open. The next chat shows the whole answer, although it continues no task.
#[test]
fn a_chat_begins_with_what_arrived_before_it() {
    let server = ScriptedServer::start(|_| Answer::say("line\n\n".repeat(40)));
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "question 1"]);
    let arrived = || rows(&polity, &["messages", "--to", "user"]);
    wait_until("an answer has arrived", || !arrived().is_empty());
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--data", "data"]);
    running.stdout_line("these were the last messages");
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    let shown = plain(&running.wait().expect_code(0).stdout);
    assert_eq!(shown.lines().filter(|line| line.trim() == "line").count(), 40, "{shown}");
    assert_eq!(arrived()[0]["state"], "done");
}

/// Waits until the user has got a message and the message is marked as shown.
#[track_caller]
fn wait_until_shown(polity: &Polity) {
    let is_shown = |message: &Value| message["state"] == "done";
    wait_until("the answer is marked as shown", || {
        rows(polity, &["messages", "--to", "user"]).iter().any(is_shown)
    });
}

/// Starts a server that answers with `forty-two` when the test opens the gate.
fn answering_behind(gate: &Gate) -> ScriptedServer {
    let gate = gate.clone();
    ScriptedServer::start(move |_| {
        gate.pass();
        Answer::say("forty-two")
    })
}

/// The user has left a chat, or has sent a message without waiting. The next chat continues no task, but shows the
/// answer when it arrives, and says to which task it belongs.
#[test]
fn a_chat_shows_the_answer_to_what_was_asked_before_it() {
    let gate = Gate::default();
    let server = answering_behind(&gate);
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "how much is it?"]);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(200, &["chat", "--data", "data"]);
    running.stdout_line("these were the last messages");
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    gate.open();
    wait_until_shown(&polity);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    let shown = plain(&running.wait().expect_code(0).stdout);
    let heading = format!("[task: how much is it?; /task {task} continues it]");
    assert!(shown.contains(&heading), "{shown}");
    assert!(shown.lines().any(|line| line.trim() == "forty-two"), "{shown}");
}

/// A command waits for an answer, and a chat that follows the same task prints the answer first.
#[test]
fn who_waits_for_an_answer_gets_it_although_a_chat_has_shown_it() {
    let gate = Gate::default();
    let server = answering_behind(&gate);
    let (polity, _daemon) = served(&server);
    let waiting = polity.spawn(&["send", "--wait", "how much is it?", "--data", "data"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    waiting.freeze();
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--data", "data"]);
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    gate.open();
    wait_until_shown(&polity);
    waiting.thaw();
    assert_eq!(waiting.wait().expect_code(0).stdout, "forty-two\n");
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    running.wait().expect_code(0);
}

/// The user stops the task in another terminal. The next chat says so, too.
#[test]
fn a_chat_says_that_its_task_was_stopped() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let (polity, _daemon) = served(&server);
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(200, &["chat", "--data", "data"]);
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "how much is it?{ENTER}").expect("a keyboard");
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    told(&polity, &["stop", "root"]);
    running.stdout_line("polity: you stopped the task, and there is no answer");
    running.stdout_wait_times(READS, 2);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    running.wait().expect_code(0);

    let (running, mut keyboard) = polity.spawn_with_keyboard_at(200, &["chat", "--data", "data"]);
    running.stdout_line("these were the last messages; you stopped that task, and there is no answer");
    running.stdout_line("/help");
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    running.wait().expect_code(0);
}

#[test]
fn who_leaves_a_chat_before_the_answer_is_told_that_the_daemon_goes_on() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let (polity, _daemon) = served(&server);
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(200, &["chat", "--data", "data"]);
    running.stdout_line("/help lists");
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "/help{ENTER}").expect("a keyboard");
    running.stdout_line("Ctrl-C empties the line, and leaves the chat if the line is empty");
    running.stdout_wait_times(READS, 2);
    write!(keyboard, "how much is it?{ENTER}").expect("a keyboard");
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    running.stdout_wait_times(READS, 3);
    write!(keyboard, "{CTRL_C}").expect("a keyboard");
    let shown = plain(&running.wait().expect_code(0).stdout);
    let line = format!(
        "polity: root works on {task}; the daemon goes on: polity chat --data data --task {task} shows the answer"
    );
    assert!(shown.contains(&line), "{shown}");
}

/// The user leaves while the chat still shows what arrived before it. Each answer is on the terminal, or the next command
/// shows it.
#[test]
fn who_leaves_a_chat_that_has_just_begun_loses_no_answer() {
    const ANSWERS: usize = 8;
    let count = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| {
        Answer::say(format!("answer-{}-ends", count.fetch_add(1, Ordering::Relaxed)))
    });
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "question 0"]);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let unshown = || rows(&polity, &["messages", "--unshown"]);
    for number in 1..=ANSWERS {
        wait_until("the answer has arrived", || unshown().len() == number);
        if number < ANSWERS {
            told(&polity, &["send", &format!("question {number}"), "--task", &task]);
        }
    }
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--task", &task, "--data", "data"]);
    running.stdout_wait_times(READS, 1);
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    let shown = plain(&running.wait().expect_code(0).stdout);
    let left = unshown();
    for number in 0..ANSWERS {
        let answer = format!("answer-{number}-ends");
        let is_left = left.iter().any(|message| message["text"] == *answer);
        assert!(is_left || shown.contains(&answer), "{answer} is lost: {shown}");
    }
}

#[test]
fn a_chat_shows_answers_while_they_arrive() {
    let server = ScriptedServer::start(half_an_answer);
    let (polity, _daemon) = served(&server);
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(80, &["chat", "--data", "data"]);
    let mut read = 0;
    let mut enter = |keys: &str| {
        read += 1;
        running.stdout_wait_times(READS, read);
        keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    };
    enter(&format!("say it{ENTER}"));
    running.stdout_wait("wonderful wonderful");
    // `/new` makes each message begin a new task, because no answer in the earlier tasks becomes complete.
    enter(&format!("/new{ENTER}"));
    enter(&format!("think it over{ENTER}"));
    running.stdout_wait("(It may be blue.)");
    enter(&format!("/new{ENTER}"));
    enter(&format!("hire somebody{ENTER}"));
    running.stdout_wait("→ create_role");
    enter(CTRL_C);
    running.wait().expect_code(0);
    assert_eq!(server.request_count(), 3, "no answer was complete");
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_has_a_chat_too() {
    let server = ScriptedServer::start(|_| Answer::say("forty-two"));
    let (mut polity, _daemon) = served(&server);
    polity.set_env("TERM", "dumb");
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--data", "data"]);
    running.stdout_line("/help");
    write!(keyboard, "what?{ENTER}").expect("a keyboard");
    running.stdout_line("forty-two");
    // Otherwise, the next chat would show the answer again.
    wait_until("the answer is marked as shown", || rows(&polity, &["messages", "--unshown"]).is_empty());
    write!(keyboard, "/quit{ENTER}").expect("a keyboard");
    let shown = running.wait().expect_code(0).stdout;
    // A prompt would stand before each text that arrives.
    assert!(!shown.contains('\x1b') && !shown.contains("> "), "{shown:?}");
}

/// The number of agents that root hires. They are so many that `watch` shows only some of the lines of the tree.
const CREW: usize = 14;
/// The number of lines that `watch` gives to the tree. The terminal has 24 lines, and the head and the rule take two of
/// them. The tree gets half of the other lines.
const SHOWN: usize = 11;
/// A text that is wider than every terminal of [`WIDTHS`]. Each of its characters takes two columns.
const WIDE: &str = "请看看这张图片，然后说出上面写了什么。";

/// Plays a root that hires all agents at once, and answers when each of them has answered.
fn crew(asked: &Conversation) -> Answer {
    if asked.role_name() == "worker" {
        return Answer::say("done");
    }
    if asked.results_of("create_role").is_empty() {
        return Answer::call("create_role", json!({"name": "worker", "rolePrompt": "You are a worker."}));
    }
    if !asked.has_called("spawn_agent_with_task") {
        let hire = |number| {
            let task = brief(&format!("be worker {number}"));
            let arguments = json!({"roleId": "worker", "taskBrief": task, "initialMessage": "please work"});
            Call::new("spawn_agent_with_task", arguments)
        };
        return Answer::calls((1..=CREW).map(hire).collect());
    }
    match heard_from_agents(asked).len() {
        CREW => Answer::say(WIDE.repeat(7)),
        some => Answer::say(format!("waiting: {some} of {CREW}")),
    }
}

/// Returns the screens that `polity watch` has drawn so far, each as its lines. Leaves out a screen that is not
/// complete.
fn screens(shown: &str) -> Vec<Vec<String>> {
    // A screen begins with the escape sequence that moves the cursor to the first line. It ends with the sequence that
    // removes everything below the cursor. Each line ends with the sequence that removes the rest of the line.
    let drawn = shown.split("\x1b[1;1H").skip(1).filter_map(|screen| screen.split_once("\x1b[J"));
    drawn.map(|(lines, _)| lines.split_terminator("\x1b[K").map(plain).collect()).collect()
}

/// Returns the id of the agent on a line of the tree.
fn agent_on(line: &str) -> &str {
    let named = line.trim_start_matches(|character: char| !character.is_ascii_alphanumeric());
    named.split_whitespace().next().unwrap_or_default()
}

/// Waits until the last screen shows a part of the tree that begins with the agent `first` and ends with `last`.
#[track_caller]
fn wait_for_tree(running: &Running, first: &str, last: &str) {
    running.stdout_until(&format!("the tree is shown from {first} to {last}"), |shown| {
        let screens = screens(shown);
        let tree = screens.last().and_then(|screen| screen.get(1..=SHOWN)).unwrap_or_default();
        tree.first().is_some_and(|line| agent_on(line) == first)
            && tree.last().is_some_and(|line| agent_on(line) == last)
    });
}

#[test]
fn a_watch_answers_its_keys_at_every_width() {
    let server = ScriptedServer::start(crew);
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "--wait", "hire them"]);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let tree = told(&polity, &["agents", "--task", &task]);
    let agents: Vec<&str> = tree.lines().map(agent_on).collect();
    assert_eq!((agents.len(), agents[0]), (CREW + 1, "root"), "{tree}");
    let hidden = agents.len() - SHOWN;
    for (columns, leave) in WIDTHS.into_iter().zip(["q", ESCAPE, CTRL_C]) {
        let arguments = ["watch", "--task", &task, "--data", "data"];
        let (running, mut keyboard) = polity.spawn_with_keyboard_at(columns, &arguments);
        let mut press = |keys: &str| keyboard.write_all(keys.as_bytes()).expect("a keyboard");
        // `first` is the number of lines that are scrolled away.
        let wait = |first: usize| wait_for_tree(&running, agents[first], agents[first + SHOWN - 1]);
        wait(0);
        press("j");
        wait(1);
        press("k");
        wait(0);
        press(DOWN);
        wait(1);
        press(UP);
        wait(0);
        press(&"j".repeat(hidden));
        wait(hidden);
        press("k");
        wait(hidden - 1);
        press(leave);
        let shown = running.wait().expect_code(0).stdout;
        for screen in screens(&shown) {
            assert!(screen.len() <= 24 && screen[0].starts_with("polity"), "{screen:#?}");
            let whole = screen.join("\n");
            assert_fits(&whole, columns);
            // The lines of events are cut off at the edge. If a character of two columns does not fit any more, one
            // column stays empty.
            let widest = screen.iter().map(|line| columns_of(line)).max().unwrap_or_default();
            assert!(
                widest + 1 >= columns.into(),
                "the widest line has {widest} of {columns} columns in:\n{whole}"
            );
            assert!(whole.contains(&format!("{hidden} more")), "{whole}");
        }
    }
    let unknown = polity.run(&["watch", "--task", "task-none", "--data", "data"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
}

#[test]
fn a_watch_leaves_out_the_agents_of_finished_tasks() {
    let (polity, _daemon) = rehearsing();
    look_at_picture(&polity);
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(200, &["watch", "--data", "data"]);
    running.stdout_wait("idle agents of finished tasks are not shown");
    keyboard.write_all(b"q").expect("a keyboard");
    running.wait().expect_code(0);
}

#[test]
fn a_watch_in_the_background_of_a_shell_is_not_stopped() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, _daemon) = served(&server);
    let script = "set -m; \"$POLITY\" watch --data data & echo started; \
                  until [ -e seen ]; do sleep 0.1; done; kill %1; wait";
    let shell = polity.script_on_terminal(script);
    shell.stdout_line("started");
    told(&polity, &["send", "--wait", "how much is it?"]);
    shell.stdout_line("how much is it?");
    // Make the script end the job: otherwise the job would still run after the shell has ended.
    std::fs::write(polity.home().join("seen"), "").expect("a file");
    shell.wait();
}
