//! Models and servers that fail in many ways. After each failure, the daemon sends a valid next request, or tells the
//! user what failed. The test's server checks every request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::{Gate, brief, hire};
use crate::support::{app, asked_by, events, home, json_lines, last_asked, letters, run, service};

/// Maximum number of attempts of a call in these tests.
const ATTEMPTS: u64 = 3;

/// Creates a home whose only service has these timeouts, in milliseconds.
fn home_within(server: &ScriptedServer, times: &Value) -> Polity {
    let mut only = service("one", server, &["text"]);
    for (name, value) in times.as_object().expect("fields") {
        only[name] = value.clone();
    }
    Polity::new(&json!({"services": [only]}), &app(&json!({})))
}

/// Returns the texts of all messages to the user, one per line.
fn told(lines: &[Value]) -> String {
    let texts: Vec<&str> = letters(lines).iter().filter_map(|letter| letter["text"].as_str()).collect();
    texts.join("\n")
}

/// Checks a permanent fault: the daemon uses all attempts, and then tells the user about the fault in these words.
#[track_caller]
fn stays(fault: impl Fn() -> Answer + Send + Sync + 'static, times: &Value, words: &[&str]) {
    let server = ScriptedServer::start(move |_| fault());
    let ended = run(&home_within(&server, times), &["go", "--json"]);
    let lines = json_lines(&ended.stdout);
    let told = told(&lines);
    for word in words {
        assert!(told.contains(word), "{word:?} is not in {told:?}\n{}", ended.stdout);
    }
    let next: Vec<&Value> = events(&lines, "model_failed").iter().map(|failed| &failed["next"]).collect();
    assert_eq!(next, ["retry", "retry", "give_up"], "{}", ended.stdout);
    assert_eq!(server.request_count() as u64, ATTEMPTS);
    assert!(matches!(ended.code, Some(3 | 5)), "{:?}", ended.code);
}

/// Checks a fault that occurs once: it costs one attempt, and then the daemon makes a valid request.
#[track_caller]
fn passes(fault: impl Fn() -> Answer + Send + Sync + 'static) {
    let asked = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => fault(),
        _ => Answer::say("done"),
    });
    let ended = run(&home(&server, &json!({})), &["go"]).expect_code(0);
    assert_eq!(ended.stdout, "done\n");
    assert_eq!(server.request_count(), 2);
}

#[track_caller]
fn stays_and_passes(fault: fn() -> Answer, words: &[&str]) {
    stays(fault, &json!({}), words);
    passes(fault);
}

#[test]
fn a_web_page_is_no_answer() {
    let page = || Answer::raw("text/html", "<!doctype html><title>Router login</title>");
    stays_and_passes(page, &["an HTML page (Router login) instead of a model's answer"]);
}

#[test]
fn a_web_page_about_a_failure_is_a_failure() {
    let page =
        || Answer::raw_with_status(502, "text/html", "<html><head><title>Bad Gateway</title></head></html>");
    stays_and_passes(page, &["HTTP 502 with an HTML page (Bad Gateway)"]);
}

#[test]
fn broken_json_is_no_answer() {
    stays_and_passes(|| Answer::raw("application/json", r#"{"choices": [{"#), &[r#"{"choices": [{"#]);
    stays_and_passes(|| Answer::raw("text/event-stream", "data: {\"choices\": [\n\n"), &["not an answer"]);
}

#[test]
fn json_of_another_shape_is_no_answer() {
    stays_and_passes(|| Answer::raw("application/json", r#"{"status":"ok"}"#), &[r#"{"status":"ok"}"#]);
}

#[test]
fn a_content_type_without_a_model_behind_it_is_no_answer() {
    stays_and_passes(
        || Answer::raw("text/plain", "It works!"),
        &["not the answer of a chat model: It works!"],
    );
    stays_and_passes(
        || Answer::raw("image/png", &b"\x89PNG\r\n\x1a\n"[..]),
        &["not the answer of a chat model"],
    );
}

#[test]
fn a_wrong_content_type_hides_no_answer() {
    let stream = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"done\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let whole =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"done"},"finish_reason":"stop"}]}"#;
    for (content_type, body) in [("application/json", stream), ("text/plain", whole)] {
        let server = ScriptedServer::start(move |_| Answer::raw(content_type, body));
        let ended = run(&home(&server, &json!({})), &["go"]).expect_code(0);
        assert_eq!(ended.stdout, "done\n", "{content_type}");
    }
}

#[test]
fn nothing_at_all_is_no_answer() {
    stays_and_passes(|| Answer::raw("application/json", ""), &["not an answer: an empty answer"]);
}

#[test]
fn an_answer_without_end_is_cut_and_told() {
    let piece = "x".repeat(1024 * 1024);
    let words = ["an answer of more than 32 MiB"];
    stays(move || Answer::endless("application/json", piece.clone()), &json!({}), &words);
}

#[test]
fn an_answer_that_is_too_large_is_told_as_such() {
    passes(|| {
        let content = "x".repeat(33 * 1024 * 1024);
        let message = json!({"role": "assistant", "content": content});
        let body = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
        Answer::raw("application/json", body.to_string())
    });
}

#[test]
fn a_stream_that_ends_early_is_told_as_broken_off() {
    let half = || Answer::say("a text that is of some length").half();
    stays_and_passes(half, &["answer broken off: the answer ended before it was finished"]);
}

#[test]
fn a_connection_that_breaks_in_the_middle_is_told_as_broken_off() {
    stays_and_passes(|| Answer::say("a text that is of some length").torn(), &["answer broken off"]);
}

#[test]
fn a_connection_that_is_reset_is_told_as_broken_off() {
    stays_and_passes(Answer::reset, &["answer broken off"]);
}

/// Returns calls as the API writes them.
fn written(calls: &[Call]) -> Vec<Value> {
    let write = |(index, Call { tool, arguments }): (usize, &Call)| {
        let function = json!({"name": tool, "arguments": arguments});
        json!({"index": index, "id": format!("cut_{index}"), "type": "function", "function": function})
    };
    calls.iter().enumerate().map(write).collect()
}

/// Streams the first call, and then half of the JSON with the second.
fn cut_stream(calls: &[Call]) -> Answer {
    let chunk = |call: &Value| {
        let choice = json!({"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null});
        json!({"choices": [choice]}).to_string()
    };
    let calls = written(calls);
    let (first, mut second) = (chunk(&calls[0]), chunk(&calls[1]));
    second.truncate(second.len() / 2);
    Answer::raw("text/event-stream", format!("data: {first}\n\ndata: {second}\n\n"))
}

/// Answers in one body, without the last third of it.
fn cut_body(calls: &[Call]) -> Answer {
    let message = json!({"role": "assistant", "content": null, "tool_calls": written(calls)});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let mut body = json!({"choices": [choice]}).to_string();
    body.truncate(body.len() / 3 * 2);
    Answer::raw("application/json", body)
}

/// In each round, the model makes three calls. The answer breaks off in another way each time; except for the reset,
/// the first call has arrived whole by then. Then the daemon asks again, and gets the whole answer.
#[test]
fn an_answer_that_breaks_off_runs_none_of_its_calls_and_the_next_one_runs_each_once() {
    const ROLES: [&str; 5] = ["baker", "carter", "dyer", "farrier", "mason"];
    let calls = |round: usize| -> Vec<Call> {
        let note = |which: &str| {
            let content = format!("the {which} note of round {round}, {}", "in plain words ".repeat(8));
            Call::new("put_artifact", json!({"type": "note", "content": content}))
        };
        let role = json!({"name": ROLES[round], "rolePrompt": "You do one thing. ".repeat(8)});
        vec![note("first"), note("second"), Call::new("create_role", role)]
    };
    let broken = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |asked: &Conversation| -> Answer {
        let round = asked.results_of("create_role").len();
        if round == ROLES.len() {
            return Answer::say("done");
        }
        let calls = calls(round);
        if broken.load(Ordering::SeqCst) > round {
            return Answer::calls(calls);
        }
        broken.fetch_add(1, Ordering::SeqCst);
        match round {
            0 => Answer::reset(),
            1 => Answer::calls(calls).half(),
            2 => Answer::calls(calls).torn(),
            3 => cut_stream(&calls),
            _ => cut_body(&calls),
        }
    });
    let polity = home(&server, &json!({}));
    let ended = run(&polity, &["go", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!(told(&lines), "done");
    let kinds: Vec<&Value> = events(&lines, "model_failed").iter().map(|failed| &failed["kind"]).collect();
    assert_eq!(kinds, ["broken_off", "broken_off", "broken_off", "not_an_answer", "not_an_answer"]);

    // The daemon asks again with the same request, so it has kept nothing of the broken answer.
    let requests = server.requests();
    assert_eq!(requests.len(), 2 * ROLES.len() + 1);
    for asked in requests.chunks_exact(2) {
        assert_eq!(asked[0].body, asked[1].body);
    }
    let results = last_asked(&server).tool_results();
    assert_eq!(results.len(), 3 * ROLES.len());
    assert!(results.iter().all(|result| result.error().is_none()), "{results:#?}");

    let mut database = Database::read(&polity.data_dir());
    let notes = 2 * ROLES.len() as i64;
    assert_eq!(database.number("SELECT count(*) FROM artifacts"), notes);
    assert_eq!(database.number("SELECT count(DISTINCT blob) FROM artifacts"), notes);
    let created = database.texts::<1>("SELECT name FROM roles WHERE creator = 'root' ORDER BY name");
    assert_eq!(created, ROLES.map(|role| [role.to_owned()]));
    let replies = "SELECT count(*) FROM records WHERE json_extract(body, '$.record') = 'replied'";
    assert_eq!(database.number(replies), ROLES.len() as i64 + 1);
}

#[test]
fn a_server_that_hangs_is_told_with_what_to_change() {
    let times = json!({"timeouts": {"firstByteMs": 100}});
    stays(
        Answer::hang,
        &times,
        &["no byte of an answer within 100ms", "timeouts.firstByteMs", "http://127.0.0.1"],
    );
}

#[test]
fn a_stream_that_stands_still_is_told_with_what_to_change() {
    let times = json!({"timeouts": {"betweenBytesMs": 100}});
    let stuck = || Answer::say("a text that is of some length").stuck();
    stays(stuck, &times, &["the answer stood still for 100ms", "timeouts.betweenBytesMs"]);
}

#[test]
fn a_stream_of_signs_of_life_is_told_with_what_to_change() {
    let times = json!({"timeoutMs": 300});
    let alive = || Answer::endless("text/event-stream", ": alive\n\n");
    stays(alive, &times, &["no complete answer within 300ms", "timeoutMs"]);
}

#[test]
fn a_server_that_fails_is_told_with_its_words() {
    for status in [408, 409, 429, 500, 503, 529] {
        let words = format!("no luck with {status}");
        let body = json!({"error": {"message": words.clone()}});
        stays(move || Answer::error(status, body.clone()), &json!({}), &[&words]);
    }
}

#[test]
fn what_is_refused_is_not_sent_again_and_told() {
    for status in [400, 401, 403, 404, 422] {
        let body = json!({"error": {"message": format!("never with {status}")}});
        let server = ScriptedServer::start(move |_| Answer::error(status, body.clone()));
        let ended = run(&home(&server, &json!({})), &["go", "--json"]);
        let told = told(&json_lines(&ended.stdout));
        assert!(told.contains(&format!("never with {status}")), "{told}");
        assert_eq!(server.request_count(), 1, "{status}");
    }
}

#[test]
fn empty_answers_are_told() {
    let server = ScriptedServer::start(|_| Answer::nothing());
    let ended = run(&home(&server, &json!({})), &["go", "--json"]).expect_code(3);
    let told = told(&json_lines(&ended.stdout));
    assert!(told.contains("the model gave an empty answer twice"), "{told}");
    passes(Answer::nothing);
}

/// Answers the first request with a batch of calls, and returns the request that follows it.
#[track_caller]
fn after(batch: fn() -> Answer) -> Conversation {
    let asked = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => batch(),
        _ => Answer::say("done"),
    });
    run(&home(&server, &json!({})), &["go"]).expect_code(0);
    server.assert_clean();
    assert_eq!(server.request_count(), 2);
    last_asked(&server)
}

#[test]
fn malformed_arguments_are_quoted_to_the_model() {
    let broken = |arguments: &str| Call { tool: "send_message".to_owned(), arguments: arguments.to_owned() };
    for arguments in ["{\"to\": \"user\", ", "[1, 2]", "\"to\"", "nonsense"] {
        let asked = AtomicUsize::new(0);
        let call = broken(arguments);
        let server = ScriptedServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::calls(vec![call.clone()]),
            _ => Answer::say("done"),
        });
        run(&home(&server, &json!({})), &["go"]).expect_code(0);
        let asked = last_asked(&server);
        let [result] = &asked.tool_results()[..] else { panic!("expected one result") };
        assert_eq!(result.error(), Some("invalid_arguments"), "{}", result.text);
        assert!(result.arguments.is_object(), "the history must contain an object");
    }
}

#[test]
fn a_tool_that_there_is_not_is_answered_with_those_that_there_are() {
    let asked = after(|| Answer::call("rm_rf", json!({})).and_call("list_contacts", json!({})));
    let results = asked.tool_results();
    assert_eq!((results[0].error(), results[1].error()), (Some("unknown_tool"), None));
    assert!(results[0].value["tools"].to_string().contains("send_message"), "{}", results[0].text);
}

/// Returns a stream of calls of the tool `name`. Each call has one of these ids.
fn calls_with(ids: &[&str], name: &str) -> Answer {
    let calls: Vec<Value> = (0..)
        .zip(ids)
        .map(|(index, id)| {
            json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": "{}"}})
        })
        .collect();
    let choice = json!({"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"});
    Answer::raw("text/event-stream", format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]})))
}

#[test]
fn calls_with_one_id_or_none_are_told_apart() {
    for asked in [
        after(|| calls_with(&["same", "same", "same"], "list_contacts")),
        after(|| calls_with(&["", " ", ""], "list_contacts")),
    ] {
        // The test's server has already checked that the ids are unique and that each call has a result.
        assert_eq!(asked.tool_results().len(), 3);
        assert!(asked.tool_results().iter().all(|result| result.error().is_none()));
    }
}

#[test]
fn a_call_of_a_tool_with_no_name_or_an_impossible_one_is_answered_and_can_be_told_to_the_server() {
    for asked in [after(|| calls_with(&["a"], "")), after(|| calls_with(&["a"], "发送 message!"))] {
        let [result] = &asked.tool_results()[..] else { panic!("expected one result") };
        assert_eq!(result.error(), Some("unknown_tool"), "{}", result.text);
    }
}

#[test]
fn the_failure_of_a_child_is_told_to_its_parent() {
    let server = ScriptedServer::start(|asked| {
        if asked.role_name() == "worker" {
            return Answer::raw("text/html", "<!doctype html><title>Router login</title>");
        }
        if let Some(answer) = hire(asked, "worker", "work") {
            return answer;
        }
        let heard = asked.heard().into_iter().find(|heard| heard.text.contains("Router login"));
        Answer::say(heard.map_or_else(|| "I wait".to_owned(), |heard| format!("I was told: {}", heard.text)))
    });
    let ended = run(&home(&server, &json!({})), &["go"]).expect_code(0);
    assert!(ended.stdout.contains("I was told: 智能体 worker-"), "{}", ended.stdout);
    assert!(ended.stdout.contains("服务 one）失败"), "{}", ended.stdout);
}

/// Creates a home with two services on two servers; the second is the fallback of the first.
fn with_fallback(first: &ScriptedServer, second: &ScriptedServer, fields: &Value) -> Polity {
    let mut one = service("one", first, &["text"]);
    one["fallback"] = json!("two");
    Polity::new(&json!({"services": [one, service("two", second, &["text"])]}), &app(fields))
}

#[test]
fn all_attempts_of_a_call_are_counted_together_and_the_fallback_has_its_share() {
    let down = || ScriptedServer::start(|_| Answer::error(500, json!({"error": "down"})));
    let (first, second) = (down(), down());
    let retry = json!({"retry": {"maxAttempts": 6, "baseDelayMs": 1, "maxDelayMs": 2}});
    let ended = run(&with_fallback(&first, &second, &retry), &["go", "--json"]);
    assert_eq!((first.request_count(), second.request_count()), (3, 3));
    let lines = json_lines(&ended.stdout);
    let attempts: Vec<&Value> =
        events(&lines, "model_failed").iter().map(|failed| &failed["attempt"]).collect();
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_pause_of_an_hour_leads_to_the_fallback_at_once_and_is_remembered() {
    let limited = || Answer::error(429, json!({"error": {"message": "quota"}})).retry_after(3_600);
    let first = ScriptedServer::start(move |_| limited());
    let second = ScriptedServer::start(|asked| match asked.has_called("list_contacts") {
        true => Answer::say("done"),
        false => Answer::call("list_contacts", json!({})),
    });
    let ended = run(&with_fallback(&first, &second, &json!({})), &["go", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!((first.request_count(), second.request_count()), (1, 2));
    assert_eq!(events(&lines, "model_failed")[0]["next"], "fallback");
    let skipped = events(&lines, "service_skipped");
    assert_eq!(
        (skipped.len(), &skipped[0]["service"], &skipped[0]["fallback"]),
        (1, &json!("one"), &json!("two"))
    );
    let reason = skipped[0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("it has asked to be left alone; it may be asked again in "), "{reason}");
}

#[test]
fn a_pause_of_an_hour_is_told_with_its_end_where_there_is_nobody_else() {
    let server = ScriptedServer::start(|_| {
        Answer::error(429, json!({"error": {"message": "quota"}})).retry_after(3_600)
    });
    let ended = run(&home(&server, &json!({})), &["go", "--json"]);
    let told = told(&json_lines(&ended.stdout));
    assert!(told.contains("rate limited: quota; it may be asked again in 1h, at 20"), "{told}");
    assert_eq!(server.request_count(), 1);
}

#[test]
fn a_pause_holds_for_those_who_wait_until_their_task_may_spend_more() {
    let (arrivals, told) = (Arc::new(Mutex::new(Vec::new())), Arc::new(OnceLock::new()));
    let both_are_here = Gate::default();
    let (arriving, telling) = (Arc::clone(&arrivals), Arc::clone(&told));
    let server = ScriptedServer::start(move |asked| {
        let number = {
            let mut arrivals = arriving.lock().expect("no panic before");
            arrivals.push(Instant::now());
            arrivals.len()
        };
        if number == 4 {
            both_are_here.open();
        }
        if asked.role_name() == "worker" && asked.messages().len() == 2 && telling.get().is_none() {
            both_are_here.pass();
            // Give the third agent time to reach the limit and wait. If it is late, the test checks less, but does
            // not fail.
            std::thread::sleep(Duration::from_millis(300));
            if telling.set(Instant::now()).is_ok() {
                return Answer::error(429, json!({"error": {"message": "slow down"}})).retry_after(1);
            }
        }
        if asked.role_name() == "worker" {
            return Answer::say("done");
        }
        let Some(made) = asked.results_of("create_role").pop() else {
            return Answer::call("create_role", json!({"name": "worker", "rolePrompt": "You work."}));
        };
        if asked.has_called("spawn_agent_with_task") {
            return Answer::say("one moment");
        }
        let arguments =
            json!({"roleId": made.value["id"], "taskBrief": brief("work"), "initialMessage": "begin"});
        Answer::calls(vec![Call::new("spawn_agent_with_task", arguments); 2])
    });
    // The limit is four calls. Root has made two of them when root and both workers want to make a call. So only two of
    // the three can make it, and one waits.
    let polity = home(&server, &json!({"limits": {"maxModelCallsPerTask": 4}}));
    run(&polity, &["go"]).expect_code(4);
    let told = *told.get().expect("a pause");
    let arrivals = arrivals.lock().expect("no panic before").clone();
    let after: Vec<Duration> =
        arrivals.iter().filter_map(|arrival| arrival.checked_duration_since(told)).collect();
    assert!(!after.is_empty() && after.iter().all(|after| *after >= Duration::from_secs(1)), "{after:?}");
}

#[test]
fn what_was_tried_is_not_forgotten_while_the_history_is_summed_up() {
    let server = ScriptedServer::start(|asked| {
        if asked.agent_id().is_empty() {
            return Answer::say("it was long");
        }
        match asked.has_called("list_contacts") || asked.text_contains("it was long") {
            false => Answer::call("list_contacts", json!({})),
            true => Answer::error(400, json!({"error": {"message": "maximum context length exceeded"}})),
        }
    });
    let ended = run(&home(&server, &json!({})), &["go", "--json"]);
    let lines = json_lines(&ended.stdout);
    let failed = events(&lines, "model_failed");
    let attempts: Vec<&Value> = failed.iter().map(|failed| &failed["attempt"]).collect();
    assert!(attempts.len() > 1 && attempts.len() as u64 <= ATTEMPTS, "{}", ended.stdout);
    let counted: Vec<Value> = (1..=attempts.len()).map(|number| json!(number)).collect();
    assert_eq!(attempts, counted.iter().collect::<Vec<_>>(), "{}", ended.stdout);
    assert!(!events(&lines, "context_compacted").is_empty(), "{}", ended.stdout);
    assert!(!asked_by(&server, "root").is_empty());
}

#[test]
fn a_server_that_is_down_is_left_alone_by_all() {
    let down = ScriptedServer::start(|_| Answer::error(500, json!({"error": "down"})));
    let up = ScriptedServer::start(polity_tests::society(2, 4));
    // A call has two attempts: one at the first service, and one at its fallback. After several failures, the daemon
    // skips the first service for a pause. This pause is longer than the test, so the daemon never tries the first
    // service again.
    let retry = json!({"retry": {"maxAttempts": 2, "baseDelayMs": 600_000, "maxDelayMs": 600_000}});
    let polity = with_fallback(&down, &up, &retry);
    let ended = run(&polity, &["go", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    // After five failed calls, the first service gets only the calls that were already under way.
    let failed = events(&lines, "model_failed").len();
    assert_eq!(failed, down.request_count());
    assert!((5..=11).contains(&failed), "{failed} attempts\n{}", ended.stdout);
    let skipped = events(&lines, "service_skipped");
    assert!(skipped.len() > 10, "{}", skipped.len());
    let reason = skipped[0]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("its last 5 calls failed: server error: down"), "{reason}");
}
