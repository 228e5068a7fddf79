//! MCP servers as tools of agents: the daemon starts a fake server, which fails in many ways.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Conversation, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, base64, from_data_url};
use crate::support::{app, asked_by, home, home_with, json_lines, last_asked, run, service, start};

/// Maximum wait for a condition.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the entry of the fake server in `mcpServers`. `variables` are environment variables of the server, which
/// tell the server what to do.
fn fake(variables: &Value) -> Value {
    let mut env = json!({"FAKE_PICTURE": base64(PICTURE)});
    for (name, value) in variables.as_object().expect("variables") {
        env[name] = value.clone();
    }
    json!({"command": env!("CARGO_BIN_EXE_fake_mcp"), "env": env, "timeoutMs": 60_000})
}

/// Returns the fields of an `app.json` with these MCP servers.
fn with(servers: Value) -> Value {
    json!({"language": "en", "mcpServers": servers})
}

/// Replaces the `app.json` of a home. In the new file, the fake server's environment names a log file in the home.
fn with_log(polity: &Polity) {
    let log = polity.home().join("log").display().to_string();
    let fields = with(json!({"fake": fake(&json!({"FAKE_LOG": log}))}));
    polity.write_config("app.json", &app(&fields).to_string());
}

/// Returns the number of lines in the log of the fake server. One of the server's tools changes something, and each
/// call of this tool writes a line.
fn changes(polity: &Polity) -> usize {
    fs::read_to_string(polity.home().join("log")).unwrap_or_default().lines().count()
}

/// A script that calls one tool once, and then answers with the tool's result.
fn once(asked: &Conversation, tool: &str) -> Answer {
    match asked.results_of(tool).first() {
        None => Answer::call(tool, json!({"word": "polity"})),
        Some(result) => Answer::say(result.text.clone()),
    }
}

#[test]
fn a_tool_of_a_server_is_offered_in_the_first_request_and_called() {
    let server = ScriptedServer::start(|asked| once(asked, "fake__look"));
    let polity = home(&server, &with(json!({"fake": fake(&json!({}))})));
    let output = run(&polity, &["work"]).expect_code(0);
    assert!(output.stdout.contains("polity is a word"), "{}", output.stdout);
    let requests = server.requests();
    let offered = requests[0].conversation();
    assert!(offered.offered_tools().contains(&"fake__look"), "{:?}", offered.offered_tools());
    assert!(!offered.offered_tools().contains(&"search_tools"), "there is nothing to search for");
}

#[test]
fn a_picture_of_a_server_is_seen_by_a_model_with_vision_and_described_to_another() {
    for (input, seen) in [(&["text", "vision"][..], 1), (&["text"], 0)] {
        let server = ScriptedServer::start(|asked| once(asked, "fake__picture"));
        let polity = home_with(&server, input);
        polity.write_config("app.json", &app(&with(json!({"fake": fake(&json!({}))}))).to_string());
        run(&polity, &["work"]).expect_code(0);
        let asked = last_asked(&server);
        let pictures: Vec<Vec<u8>> =
            asked.image_urls().into_iter().map(|url| from_data_url(url, "image/png")).collect();
        assert_eq!(pictures, vec![PICTURE; seen], "{input:?}");
        let told = asked.results_of("fake__picture").remove(0).text;
        // If the model cannot see the picture, the result of the call describes it.
        let described = [
            "【Attachment received】",
            "Type: image",
            "Artifact ID: artifact:",
            &format!("File size: {} B", PICTURE.len()),
            "MIME type: image/png",
            "The current model cannot process this type of content directly.",
            "Suggested recipients: ",
        ];
        for beginning in described {
            let is_told = told.lines().any(|line| line.starts_with(beginning));
            assert_eq!(is_told, seen == 0, "{input:?}: {beginning} in {told}");
        }
        assert!(!told.contains(&base64(PICTURE)[..64]), "{input:?}: {told}");
    }
}

/// Starts a daemon and waits until it is ready.
fn serve(polity: &Polity) -> Running {
    let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    daemon
}

/// Waits until agents have asked the user this many questions about calls, and returns the newest question.
#[track_caller]
fn question(polity: &Polity, count: usize) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let listed = polity.run(&["approvals", "--all", "--data", "data", "--json"]).expect_code(0);
        let mut questions = json_lines(&listed.stdout);
        questions.sort_by_key(|question| question["askedAt"].as_i64());
        if questions.len() >= count {
            assert_eq!(questions.len(), count, "{questions:?}");
            return questions.remove(count - 1);
        }
        assert!(Instant::now() < deadline, "only {} questions: {questions:?}", questions.len());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The user answers two questions. The first answer allows only one call, so the second call brings another question.
/// The second answer allows all further calls until the end of the task.
#[test]
fn a_tool_that_may_change_something_is_asked_about_until_the_answer_holds_for_the_task() {
    let server = ScriptedServer::start(|asked| match asked.results_of("fake__change").len() {
        3 => Answer::say("the world is changed"),
        done => Answer::call("fake__change", json!({"word": done.to_string()})),
    });
    let polity = home(&server, &json!({}));
    with_log(&polity);
    let daemon = serve(&polity);
    let waiting = run(&polity, &["work"]).expect_code(6);
    let first = question(&polity, 1);
    assert_eq!((changes(&polity), &first["tool"]), (0, &json!("fake__change")), "{waiting:?}");
    polity.run(&["approve", first["id"].as_str().expect("an id"), "--data", "data"]).expect_code(0);
    let second = question(&polity, 2);
    assert_eq!(changes(&polity), 1, "{second}");
    polity
        .run(&["approve", "--task", second["id"].as_str().expect("an id"), "--data", "data"])
        .expect_code(0);
    server.wait_until(PATIENCE, |requests| {
        requests.iter().any(|request| request.conversation().results_of("fake__change").len() == 3)
    });
    assert_eq!(changes(&polity), 3);
    question(&polity, 2);
    daemon.terminate();
    daemon.wait().expect_code(0);
}

#[test]
fn a_change_of_the_configuration_applies_to_the_next_request() {
    let place: Arc<OnceLock<std::path::PathBuf>> = Arc::default();
    let config = Arc::clone(&place);
    let write = move |servers: Value| {
        let path = config.get().expect("a home").join("app.json");
        fs::write(path, app(&with(servers)).to_string()).expect("a configuration");
    };
    let server = ScriptedServer::start(move |asked| match asked.round() {
        0 => {
            write(json!({}));
            Answer::call("list_contacts", json!({}))
        }
        1 => {
            write(json!({"again": fake(&json!({}))}));
            Answer::call("list_artifacts", json!({}))
        }
        _ => Answer::say("done"),
    });
    let polity = home(&server, &with(json!({"fake": fake(&json!({}))})));
    place.set(polity.config_dir()).expect("set once");
    run(&polity, &["work"]).expect_code(0);
    let offered: Vec<Vec<bool>> = asked_by(&server, "root")
        .iter()
        .map(|asked| ["fake__look", "again__look"].map(|tool| asked.offered_tools().contains(&tool)).to_vec())
        .collect();
    assert_eq!(offered, [[true, false], [false, false], [false, true]]);
}

#[test]
fn a_server_that_dies_hangs_or_floods_costs_its_call_and_nothing_else() {
    let steps = ["fake__die", "fake__look", "other__look", "slow__hang", "slow__look", "wet__flood"];
    let server = ScriptedServer::start(move |asked| match asked.tool_results().len() {
        done if done < steps.len() => Answer::call(steps[done], json!({"word": "still"})),
        _ => Answer::say("done"),
    });
    let impatient = |mut fake: Value| {
        fake["timeoutMs"] = json!(1_500);
        fake
    };
    let plain = fake(&json!({}));
    let servers = json!({
        "fake": plain, "other": plain, "slow": impatient(plain.clone()), "wet": impatient(plain.clone()),
    });
    let polity = home(&server, &with(servers));
    run(&polity, &["work"]).expect_code(0);
    let asked = last_asked(&server);
    let results = asked.tool_results();
    let errors: Vec<Option<&str>> = results.iter().map(|result| result.error()).collect();
    let failed = Some("mcp_failed");
    assert_eq!(errors, [failed, None, None, failed, None, failed], "{results:?}");
    assert!(results[1].text.contains("still is a word"), "it was started again: {results:?}");
}

#[test]
fn many_tools_are_found_by_a_search_and_are_still_offered_after_kill_9() {
    let has_hung = AtomicBool::new(false);
    let server = ScriptedServer::start(move |asked| {
        match (asked.results_of("search_tools").first(), asked.results_of("fake__look").first()) {
            (None, _) => Answer::call("search_tools", json!({"query": "a word in the dictionary"})),
            (Some(_), None) if !has_hung.swap(true, Ordering::SeqCst) => Answer::hang(),
            (Some(_), None) => Answer::call("fake__look", json!({"word": "found"})),
            (Some(_), Some(result)) => Answer::say(result.text.clone()),
        }
    });
    let mut fields = with(json!({"fake": fake(&json!({"FAKE_MORE": "900"}))}));
    fields["tools"] = json!({"deferAbove": 1});
    let polity = home(&server, &fields);
    let running = start(&polity, &["work"]);
    server.wait_until(PATIENCE, |requests| requests.len() >= 2);
    running.kill9();
    let output = run(&polity, &["--resume"]).expect_code(0);
    assert!(output.stdout.contains("found is a word"), "{}", output.stdout);
    let offered = |asked: &Conversation| -> Vec<String> {
        let of_servers = |tool: &&str| tool.contains("__") || *tool == "search_tools";
        asked.offered_tools().into_iter().filter(of_servers).map(str::to_owned).collect()
    };
    let asked = asked_by(&server, "root");
    assert_eq!(offered(&asked[0]), ["search_tools"]);
    let (before, after) = (offered(&asked[1]), offered(&asked[2]));
    assert!(before.contains(&"fake__look".to_owned()) && before.len() <= 9, "{before:?}");
    assert_eq!(before, after, "the restart has forgotten what was found");
}

/// The definitions of the 68 tools take more than a tenth of the smaller window, and less than a tenth of the larger one.
/// A tenth is the default.
#[test]
fn many_tools_are_searched_for_only_in_a_window_of_which_they_take_more_than_a_tenth() {
    for (window, is_deferred) in [(16_384, true), (1_000_000, false)] {
        let server = ScriptedServer::start(|_| Answer::say("done"));
        let mut service = service("one", &server, &["text"]);
        service["contextWindow"] = json!(window);
        let fields = with(json!({"fake": fake(&json!({"FAKE_MORE": "60"}))}));
        let polity = Polity::new(&json!({"services": [service]}), &app(&fields));
        run(&polity, &["work"]).expect_code(0);
        let asked = last_asked(&server);
        let offered = ["search_tools", "fake__look"].map(|tool| asked.offered_tools().contains(&tool));
        assert_eq!(offered, [is_deferred, !is_deferred], "{window}");
    }
}

#[test]
fn services_show_how_the_servers_are_doing() {
    let server = ScriptedServer::start(|asked| once(asked, "fake__look"));
    let lost = json!({"command": "lost", "args": ["${POLITY_TESTS_NOT_SET}"]});
    let polity =
        home(&server, &with(json!({"fake": fake(&json!({})), "lost": lost, "none": {"command": "/none"}})));
    let shown = |polity: &Polity| polity.run(&["services", "--data", "data"]).expect_code(0).stdout;
    run(&polity, &["work"]).expect_code(0);
    assert!(shown(&polity).contains("no daemon is running"), "{}", shown(&polity));
    let daemon = serve(&polity);
    // A task does not begin before each server is connected or has failed. So after this run, the list shows the state
    // of every server.
    run(&polity, &["work"]).expect_code(0);
    let said = shown(&polity);
    assert!(said.contains("8 tools"), "{said}");
    assert!(said.contains("the environment variable POLITY_TESTS_NOT_SET is not set"), "{said}");
    assert!(said.contains("does not start"), "{said}");
    daemon.terminate();
    daemon.wait().expect_code(0);
}

/// A server in a sandbox answers, and cannot read the user's files.
#[test]
fn a_server_in_a_sandbox_is_called_and_sees_nothing_of_the_person() {
    let server = ScriptedServer::start(|asked| once(asked, "fake__peek"));
    let polity = home(&server, &json!({}));
    fs::write(polity.home().join("secret"), "canary-7c1e").expect("a file");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_fake_mcp"));
    let own = polity.home().join("bin");
    fs::create_dir(&own).expect("a directory");
    fs::copy(program, own.join("fake_mcp")).expect("a copy");
    for sandbox in [false, true] {
        let mut fake = fake(&json!({"FAKE_PEEK": polity.home().join("secret").display().to_string()}));
        fake["command"] = json!(own.join("fake_mcp").display().to_string());
        fake["sandbox"] = json!(sandbox);
        let mut fields = with(json!({"fake": fake}));
        fields["tools"] = json!({"sandbox": {"read": [own.display().to_string()]}});
        polity.write_config("app.json", &app(&fields).to_string());
        let output = run(&polity, &["work"]).expect_code(0);
        if !sandbox {
            assert!(output.stdout.contains("canary-7c1e"), "{}", output.stdout);
            continue;
        }
        let daemon = serve(&polity);
        run(&polity, &["work"]).expect_code(0);
        let services = polity.run(&["services", "--data", "data"]).expect_code(0).stdout;
        if services.contains("this machine has no sandbox") {
            polity_tests::tell(&format!("not checked: {services}"));
            return;
        }
        assert!(services.contains("connected"), "{services}");
        assert!(output.stdout.contains("cannot be read"), "{}\n{services}", output.stdout);
        daemon.terminate();
        daemon.wait().expect_code(0);
    }
}
