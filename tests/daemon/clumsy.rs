//! Models that use tools clumsily, as small models do. Each society must end with the right answer or with a truthful
//! failure, and must never show a tool call or a thought as an answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use polity_tests::{Answer, Call, Conversation, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::{events, home, json_lines, last_asked, letters, run};

/// The error of llama.cpp for a tool call that it cannot parse.
const UNREADABLE: &str = "The model produced output that does not match the expected peg-native format";

fn unreadable() -> Answer {
    Answer::error(500, json!({"error": {"code": 500, "message": UNREADABLE, "type": "server_error"}}))
}

/// The beginning of the line that the daemon adds to the system message after a tool call that the server could not
/// read.
const HOW_TO_CALL: &str = "只有这些工具：";

#[test]
fn a_call_that_the_server_cannot_read_is_asked_for_again_with_the_tools_named() {
    let server = ScriptedServer::start(|asked| match asked.system().contains(HOW_TO_CALL) {
        true => Answer::say("done"),
        false => unreadable(),
    });
    let ended = run(&home(&server, &json!({})), &["go", "--json"]).expect_code(0);
    assert_eq!(server.request_count(), 2);
    let failed = json_lines(&ended.stdout);
    let failed = events(&failed, "model_failed");
    assert_eq!((&failed[0]["kind"], &failed[0]["next"]), (&json!("call_not_parsed"), &json!("reword")));
    assert!(
        last_asked(&server).system().contains("spawn_agent_with_task(roleId, role, "),
        "the system message does not name the tools"
    );
    server.assert_clean();
}

#[test]
fn calls_that_no_words_make_readable_end_truthfully() {
    let server = ScriptedServer::start(|_| unreadable());
    let ended = run(&home(&server, &json!({})), &["go", "--json"]).expect_code(3);
    assert_eq!(server.request_count(), 3, "the call must be asked for twice more, each time in other words");
    let lengths: Vec<usize> =
        server.requests().iter().map(|request| request.conversation().system().len()).collect();
    assert!(lengths[0] < lengths[1] && lengths[1] < lengths[2], "{lengths:?}");
    let lines = json_lines(&ended.stdout);
    let said = letters(&lines).iter().map(|letter| letter["text"].to_string()).collect::<String>();
    assert!(said.contains("chat template"), "{said}");
    assert!(!ended.stderr.contains("no model could be used"), "{}", ended.stderr);
}

#[test]
fn a_tool_that_was_called_by_another_name_is_run_and_that_is_noted() {
    let server = ScriptedServer::start(|asked| match asked.results_of("list_contacts").first() {
        None => Answer::call("get_contacts", json!({})),
        Some(result) => {
            assert_eq!(
                result.value["understood"],
                json!(["get_contacts → list_contacts"]),
                "{}",
                result.value
            );
            Answer::say("done")
        }
    });
    run(&home(&server, &json!({})), &["go"]).expect_code(0);
    assert_eq!(server.request_count(), 2);
    server.assert_clean();
}

#[test]
fn the_same_call_with_the_same_result_is_told_and_then_ends_the_turn() {
    let server = ScriptedServer::start(|_| Answer::call("list_contacts", json!({})));
    let ended = run(&home(&server, &json!({})), &["go", "--json"]).expect_code(3);
    assert_eq!(server.request_count(), 5);
    let heard = last_asked(&server).heard();
    assert!(heard.iter().any(|heard| heard.text.contains("已连续 3 次调用 list_contacts")), "{heard:#?}");
    let lines = json_lines(&ended.stdout);
    let said = letters(&lines).iter().map(|letter| letter["text"].to_string()).collect::<String>();
    assert!(said.contains("repeating"), "{said}");
}

/// Each call makes a new artifact. The results of the calls differ only in the ids of these artifacts, so the calls
/// count as repetitions.
#[test]
fn a_call_that_makes_the_same_again_and_again_is_a_repetition() {
    let server = ScriptedServer::start(|_| {
        Answer::call("put_artifact", json!({"type": "note", "content": "12 pencils"}))
    });
    run(&home(&server, &json!({})), &["go"]).expect_code(3);
    assert_eq!(server.request_count(), 5);
}

#[test]
fn the_person_is_told_the_same_once_in_a_turn() {
    let server = ScriptedServer::start(|asked| match asked.results_of("send_message").len() {
        count @ 0..3 => {
            let again = asked.results_of("send_message").last().map(|result| result.value.clone());
            let is_again = again.is_some_and(|value| value["messageIds"][0]["alreadySent"] == true);
            assert_eq!(is_again, count == 2, "only the second call must be reported as already sent");
            Answer::call("send_message", json!({"to": "user", "payload": {"text": "Paris."}}))
        }
        _ => Answer::nothing(),
    });
    let ended = run(&home(&server, &json!({})), &["go"]).expect_code(0);
    assert_eq!(ended.stdout, "Paris.\n");
    server.assert_clean();
}

/// After the second call that the server could not read, the daemon's requests to the server contain no tools. From
/// then on, the daemon itself finds the calls in the model's text.
#[test]
fn a_server_that_cannot_read_calls_twice_is_sent_no_tools() {
    let server = ScriptedServer::start(|asked| {
        if !asked.results_of("list_contacts").is_empty() {
            return Answer::say("done");
        }
        if !asked.offered_tools().is_empty() {
            return unreadable();
        }
        assert!(asked.system().contains("get_artifact(ref, offset, limit"), "{}", asked.system());
        Answer::say("<tool_call>{\"name\": \"list_contacts\", \"arguments\": {}}</tool_call>")
    });
    let ended = run(&home(&server, &json!({})), &["go"]).expect_code(0);
    assert_eq!(ended.stdout, "done\n");
    server.assert_clean();
}

#[test]
fn a_call_between_begins_the_count_anew() {
    let asked = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        12 => Answer::say("done"),
        number if number % 3 == 2 => Answer::call("list_artifacts", json!({})),
        _ => Answer::call("list_contacts", json!({})),
    });
    run(&home(&server, &json!({})), &["go"]).expect_code(0);
}

/// Decides at random how a clumsy model writes a call or a text.
struct Clumsy {
    random: fastrand::Rng,
}

impl Clumsy {
    /// Derives the random choices from the seed and the request, so that the same request always gets the same answer.
    fn at(seed: u64, asked: &Conversation) -> Self {
        let place = asked.messages().len() as u64;
        let agent: u64 = asked.role_name().bytes().map(u64::from).sum();
        Self { random: fastrand::Rng::with_seed(seed ^ (place << 32) ^ (agent << 16)) }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Answer {
        let call = json!({"name": tool, "arguments": arguments});
        let text = match self.random.u8(0..14) {
            0 => return unreadable(),
            1 => return Answer::call(&self.alias(tool), arguments.clone()),
            2 => return Answer::call(tool, self.clumsily(arguments)),
            3 => call.to_string(),
            4 => format!("```json\n{call}\n```"),
            5 => format!("<tool_call>\n{call}\n</tool_call>"),
            6 => format!("<think>I should use {tool}.</think>\n<tool_call>{call}</tool_call>"),
            7 => format!("[TOOL_CALLS][{call}]"),
            8 => format!("<|python_tag|>{}", json!({"name": tool, "parameters": arguments})),
            9 => format!(
                "<|channel|>commentary to=functions.{tool} <|constrain|>json<|message|>{arguments}<|call|>"
            ),
            10 => format!("<function={tool}>{arguments}</function>"),
            11 => {
                let whole = format!("<tool_call>{call}");
                let end = whole.floor_char_boundary(whole.len() * 2 / 3);
                whole[..end].to_owned()
            }
            // The model writes two calls: first a call that changes nothing, then the intended call.
            12 => {
                return Answer::calls(vec![
                    Call::new("list_contacts", json!({})),
                    Call::new(tool, arguments.clone()),
                ]);
            }
            _ => return Answer::call(tool, arguments.clone()),
        };
        Answer::say(text)
    }

    fn alias(&mut self, tool: &str) -> String {
        let names: &[&str] = match tool {
            "spawn_agent_with_task" => {
                &["hire_agent", "delegate", "spawnAgentWithTask", "functions.spawn_agent_with_task"]
            }
            "put_artifact" => &["save_artifact", "Put-Artifact"],
            other => return other.to_owned(),
        };
        names[self.random.usize(0..names.len())].to_owned()
    }

    /// Writes some of the objects in the arguments as strings that contain JSON, as careless models do.
    fn clumsily(&mut self, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        let Some(fields) = arguments.as_object_mut() else { return arguments };
        for (_, value) in fields.iter_mut().filter(|(_, value)| value.is_object()) {
            if self.random.bool() {
                *value = json!(value.to_string());
            }
        }
        arguments
    }

    fn say(&mut self, text: &str) -> Answer {
        match self.random.u8(0..4) {
            0 => Answer::say(format!("<think>What do I say?</think>\n\n{text}")),
            1 => Answer::say(format!("That was easy.\n</think>\n{text}")),
            _ => Answer::say(text),
        }
    }
}

/// Root hires a worker to find a number, and answers with that number.
fn society(seed: u64) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| {
        let mut clumsy = Clumsy::at(seed, asked);
        // The model writes its calls correctly if the system message has the added line (`HOW_TO_CALL`). Real models do
        // the same.
        let is_careful = asked.system().contains(HOW_TO_CALL);
        let call = |clumsy: &mut Clumsy, tool: &str, arguments: Value| match is_careful {
            true => Answer::call(tool, arguments),
            false => clumsy.call(tool, &arguments),
        };
        let done = |tool: &str| asked.results_of(tool).iter().any(|result| result.error().is_none());
        if asked.agent_id() != "root" {
            if !done("put_artifact") {
                return call(&mut clumsy, "put_artifact", json!({"type": "number", "content": "42"}));
            }
            return clumsy.say("the number is 42");
        }
        if asked.text_contains("the number is 42") {
            return clumsy.say("it is 42");
        }
        if done("spawn_agent_with_task") {
            return clumsy.say("one moment");
        }
        let role = json!({"name": "worker", "rolePrompt": "Find numbers."});
        let arguments =
            json!({"role": role, "taskBrief": brief("find the number"), "initialMessage": {"text": "go"}});
        call(&mut clumsy, "spawn_agent_with_task", arguments)
    }
}

/// Plays a society, and returns whether it reached the right answer. A society without the right answer must have ended
/// with a truthful failure. Otherwise, this function panics.
#[track_caller]
fn play(seed: u64) -> bool {
    let server = ScriptedServer::start(society(seed));
    let ended =
        run(&home(&server, &json!({"retry": {"baseDelayMs": 1, "maxDelayMs": 2}})), &["go", "--json"]);
    let lines = json_lines(&ended.stdout);
    let said: Vec<String> =
        letters(&lines).iter().map(|letter| letter["text"].as_str().unwrap_or_default().to_owned()).collect();
    for text in &said {
        for wrong in
            ["<think", "</think", "tool_call", "TOOL_CALLS", "python_tag", "<function", "\"arguments\""]
        {
            assert!(!text.contains(wrong), "seed {seed}: {wrong} in {text:?}\n{}", ended.stdout);
        }
    }
    server.assert_clean();
    match ended.code {
        Some(0) => {
            assert_eq!(said.last().map(String::as_str), Some("it is 42"), "seed {seed}\n{}", ended.stdout);
            true
        }
        Some(3) => {
            assert!(
                !events(&lines, "turn_ended").is_empty(),
                "seed {seed}: exit code 3 without a failed turn\n{}",
                ended.stdout
            );
            false
        }
        other => panic!("seed {seed}: ended with {other:?}\n{}\n{}", ended.stdout, ended.stderr),
    }
}

/// Plays one society for each seed. Several societies run at the same time. At least 80 % of all societies must reach
/// the right answer.
#[expect(clippy::print_stdout, reason = "prints how many societies reached the answer")]
fn play_all(first: u64, societies: u64) {
    let well = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for share in 0..4 {
            let well = &well;
            scope.spawn(move || {
                for seed in (first..first + societies).filter(|seed| seed % 4 == share) {
                    well.fetch_add(usize::from(play(seed)), Ordering::SeqCst);
                }
            });
        }
    });
    let well = well.into_inner();
    println!("{well} of {societies} societies reached the answer");
    assert!(well as u64 * 10 >= societies * 8, "only {well} of {societies} reached the answer");
}

#[test]
fn clumsy_models_come_to_the_answer_or_to_a_truthful_failure() {
    play_all(1, 40);
}

#[test]
#[ignore = "takes minutes: `just clumsy`"]
fn clumsy_models_with_many_seeds() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    play_all(number("POLITY_CLUMSY_FIRST").unwrap_or(1), number("POLITY_CLUMSY_SOCIETIES").unwrap_or(500));
}

/// Answers the first request with `first` and all others with `then`. Returns the server, and how the run ended.
fn first_and_then(first: &'static str, then: &'static str) -> (ScriptedServer, polity_tests::Output) {
    let asked = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => Answer::say(first),
        _ => Answer::say(then),
    });
    let ended = run(&home(&server, &json!({"language": "en"})), &["go"]);
    server.assert_clean();
    (server, ended)
}

#[test]
fn thoughts_alone_are_sent_back_once_and_then_fail_the_turn() {
    let thoughts = "<think>What shall I say?</think>";
    let (server, ended) = first_and_then(thoughts, thoughts);
    let ended = ended.expect_code(3);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(told.contains("the model wrote nothing but thoughts, twice"), "{told}");
    assert_eq!(server.request_count(), 2);
    let hint = "Your last answer was nothing but thoughts";
    assert!(last_asked(&server).messages().iter().any(|message| message.to_string().contains(hint)));

    let (_, ended) = first_and_then(thoughts, "42");
    assert_eq!(ended.expect_code(0).stdout, "42\n");
}

#[test]
fn a_call_that_is_no_call_is_not_delivered_as_an_answer() {
    let call = r#"{"name": "no_such_tool", "arguments": {"to": "user"}}"#;
    let (server, ended) = first_and_then(call, call);
    let ended = ended.expect_code(3);
    let told = format!("{}{}", ended.stdout, ended.stderr);
    assert!(told.contains("a failed tool call in place of an answer, twice"), "{told}");
    assert!(!ended.stdout.contains("no_such_tool"), "{}", ended.stdout);
    assert_eq!(server.request_count(), 2);
    let hint = "Your last answer was a tool call written as text";
    assert!(last_asked(&server).messages().iter().any(|message| message.to_string().contains(hint)));

    let (_, ended) = first_and_then(call, "42");
    assert_eq!(ended.expect_code(0).stdout, "42\n");
}
