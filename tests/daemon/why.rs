//! `polity why` explains why an artifact was described in words, why a call was refused or failed, why an agent halts
//! or waits, or why a request or a task has no answer. It also names the remedies.

use std::time::{Duration, Instant};

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::hiring::{Gate, boss_and_worker, heard_from_agents, hire, hired};
use crate::support::serving::Serving;
use crate::support::{app, events, home, json_lines, references, run, service};

/// The line above the first advice that needs a daemon, if none runs.
const SERVE_FIRST: &str = "  → first start a daemon: polity serve --data data\n";

const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
fn why(polity: &Polity, arguments: &[&str]) -> Value {
    let told = polity.run(&[&["why"], arguments, &["--json", "--data", "data"]].concat()).expect_code(0);
    serde_json::from_str(&told.stdout).expect("JSON")
}

#[track_caller]
fn why_in_words(polity: &Polity, arguments: &[&str]) -> String {
    polity.run(&[&["why"], arguments, &["--data", "data"]].concat()).expect_code(0).stdout
}

/// Returns the turn in which an agent sent a request.
#[track_caller]
fn turn_of(polity: &Polity, agent: &str, sent: &str) -> Value {
    let shown = polity.run(&["agent", agent, "--sent", sent, "--json", "--data", "data"]).expect_code(0);
    serde_json::from_str::<Value>(&shown.stdout).expect("JSON")["turn"].clone()
}

/// Plays a root that hires a seer, whose model can see, and a writer, whose model cannot see. Root sends the picture to
/// the writer. When another agent is introduced to the writer, the writer forwards the picture to this agent. If the
/// writer later gets a model that can see, the writer itself looks at the picture.
fn blind_writer(asked: &Conversation) -> Answer {
    match asked.role_name().as_str() {
        "seer" => match asked.image_urls().is_empty() {
            true => Answer::say("ready"),
            false => Answer::say("a red square"),
        },
        "writer" if !asked.image_urls().is_empty() => Answer::say("I see a blue circle"),
        "writer" => {
            if let Some(seen) = heard_from_agents(asked).into_iter().find(|said| said.contains("red square"))
            {
                return Answer::say(format!("it shows {seen}"));
            }
            let picture = &references(&asked.heard()[0].text)[0];
            let introduced = asked.heard().into_iter().find(|heard| heard.text.contains("seer-"));
            let Some(introduced) = introduced else { return Answer::say("I cannot see it") };
            if asked.has_called("send_message") {
                return Answer::say("one moment");
            }
            let seer = introduced.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            let seer = seer.into_iter().find(|word| word.starts_with("seer-")).unwrap_or_default();
            let payload = json!({"message_type": "collaboration_request", "text": "what is in it?", "attachments": [picture]});
            Answer::call("send_message", json!({"to": seer, "payload": payload}))
        }
        _ => {
            if let Some(answer) = hire_seer(asked) {
                return answer;
            }
            if hired(asked, "writer").is_none() {
                let message = json!({"text": "write about it", "attachments": [picture_of(asked)]});
                return hire(asked, "writer", &message.to_string()).unwrap_or_else(Answer::nothing);
            }
            let said = heard_from_agents(asked).pop();
            said.map_or_else(|| Answer::say("one moment"), Answer::say)
        }
    }
}

fn picture_of(asked: &Conversation) -> String {
    references(&asked.heard()[0].text).remove(0)
}

/// Hires a seer whose model can see.
fn hire_seer(asked: &Conversation) -> Option<Answer> {
    if asked.results_of("create_role").is_empty() {
        let role = json!({"name": "seer", "rolePrompt": "You look.", "serviceId": "eyes"});
        return Some(Answer::calls(vec![Call::new("create_role", role)]));
    }
    match hired(asked, "seer") {
        Some(_) => None,
        None => hire(asked, "seer", "be ready"),
    }
}

fn two_services(server: &ScriptedServer) -> Polity {
    let services = [service("scribe", server, &["text"]), service("eyes", server, &["text", "vision"])];
    Polity::new(&json!({"services": services}), &app(&json!({})))
}

#[test]
fn a_description_names_service_revision_and_a_remedy_that_works() {
    let server = ScriptedServer::start(blind_writer);
    let polity = two_services(&server);
    let path = write(&polity, "picture.png", PICTURE);
    let lines = json_lines(&run(&polity, &["look", "--attach", &path, "--json"]).expect_code(0).stdout);
    let created = events(&lines, "agent_created");
    let id = |role: &str| {
        let ids = created.iter().filter_map(|event| event["agent"].as_str());
        ids.into_iter().find(|id| id.starts_with(role)).expect("an agent").to_owned()
    };
    let (seer, writer) = (id("seer"), id("writer"));
    let task = created[0]["task"].as_str().expect("a task");
    let picture = references(&server.requests()[0].conversation().last_user_text()).remove(0);

    let about = why(&polity, &[&picture, "--agent", &writer]);
    let chain = about["chain"].as_array().expect("a chain");
    assert_eq!(
        (&chain[0]["fact"], &chain[0]["agent"], &chain[0]["filename"]),
        (&json!("described"), &json!(writer), &json!("picture.png"))
    );
    let number = chain[0]["sent"].as_i64().expect("a number").to_string();
    assert_eq!(
        chain[1..],
        [
            json!({"fact": "service_takes", "service": "scribe", "revision": 1, "takes": ["text"]}),
            json!({"fact": "others_can", "services": ["eyes"]}),
            json!({"fact": "no_contact_on", "agent": writer, "services": ["eyes"]}),
        ]
    );
    let introduce =
        json!({"remedy": "introduce", "agent": seer, "service": "eyes", "to": writer, "task": task});
    assert_eq!(about["remedies"][0], introduce);
    assert_eq!(about["remedies"][1]["remedy"], "use_service");
    let turn = turn_of(&polity, &writer, &number);
    let again =
        json!({"remedy": "run_again", "agent": writer, "task": task, "turn": turn, "service": "eyes"});
    assert_eq!(about["remedies"][2], again);
    assert_eq!(
        why_in_words(&polity, &[&picture, "--sent", &number]).lines().next().expect("a line"),
        format!("picture.png ({picture}) was described to {writer} in request {number}")
    );
    let command = format!("polity fork {task} --turn {turn} --service eyes");
    let told = why_in_words(&polity, &[&picture, "--sent", &number]);
    assert!(
        told.contains(&format!("  → run turn {turn} of {writer} again with eyes: {command}"))
            && told.matches(SERVE_FIRST).count() == 1,
        "{told}"
    );

    // Carry out the remedy: the person introduces the seer to the writer, and the writer sends the picture to the seer.
    let serving = Serving::start(&polity);
    let payload = json!({"message_type": "introduction_response", "target_agent": {"id": seer}, "usage_hint": "it can see"});
    let letter = json!({"to": writer, "task": task, "payload": payload}).to_string();
    let posted = serving.call("POST /api/messages", letter.as_bytes());
    assert_eq!(posted.status, 201, "{posted:?}");
    server.wait_until(PATIENCE, |requests| {
        let asked = requests.iter().map(|request| request.conversation());
        asked
            .filter(|asked| asked.role_name() == "writer")
            .any(|asked| heard_from_agents(&asked).iter().any(|said| said.contains("a red square")))
    });
    let about = serving.call(&format!("GET /api/why/{picture}?agent={writer}"), b"").json();
    assert_eq!(about["remedies"][0]["remedy"], "write", "the writer knows the seer now: {about}");

    // Carry out another remedy. Its command runs the writer's turn again in a fork, and in this fork the writer can
    // see.
    let arguments: Vec<&str> = command.split(' ').skip(1).chain(["--data", "data"]).collect();
    polity.run(&arguments).expect_code(0);
    server.wait_until(PATIENCE, |requests| {
        let asked = requests.iter().map(|request| request.conversation());
        asked
            .filter(|asked| asked.role_name() == "writer" && asked.agent_id() != writer)
            .any(|asked| asked.model() == "eyes-model" && !asked.image_urls().is_empty())
    });
}

#[test]
fn a_failure_is_followed_from_the_task_to_the_request() {
    let server =
        ScriptedServer::start(|_| Answer::error(400, json!({"error": {"message": "the model is broken"}})));
    let polity = home(&server, &json!({}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(3).stdout);
    let task = events(&lines, "task_started")[0]["task"].as_str().expect("a task");
    let about = why(&polity, &[task]);
    let facts: Vec<&str> =
        about["chain"].as_array().expect("a chain").iter().filter_map(|fact| fact["fact"].as_str()).collect();
    assert_eq!(facts, ["task_ended", "unanswered", "turn_failed", "attempt_failed", "then"]);
    let failed = &about["chain"][3];
    assert_eq!((&failed["status"], &failed["service"]), (&json!(400), &json!("one")));
    assert!(failed["reason"].as_str().expect("a reason").contains("the model is broken"), "{failed}");
    let remedies = about["remedies"].as_array().expect("remedies");
    assert!(remedies.contains(&json!({"remedy": "write", "agent": "root", "task": task})), "{about}");
    assert!(remedies.contains(&json!({"remedy": "check_service", "service": "one"})), "{about}");
    let sent = failed["sent"].to_string();
    let turn = turn_of(&polity, "root", &sent);
    let again = json!({"remedy": "run_again", "agent": "root", "task": task, "turn": turn});
    assert!(remedies.contains(&again), "{about}");
    let shown = polity.run(&["agent", "root", "--sent", &sent, "--json", "--data", "data"]).expect_code(0);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(shown["body"].as_str().expect("a body").as_bytes(), &server.requests()[0].raw[..]);
    // `polity why` gives the same reason for the event of the failed attempt.
    let event = events(&lines, "model_failed")[0]["seq"].to_string();
    assert_eq!(why(&polity, &[&event])["chain"][0], *failed);
    server.take_violations();
}

#[test]
fn a_failed_turn_runs_again_with_a_service_that_has_not_failed() {
    let broken =
        ScriptedServer::start(|_| Answer::error(400, json!({"error": {"message": "the model is broken"}})));
    let sound = ScriptedServer::start(|_| Answer::say("42"));
    let services = [service("one", &broken, &["text"]), service("two", &sound, &["text"])];
    let polity = Polity::new(&json!({"services": services}), &app(&json!({})));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(3).stdout);
    let task = events(&lines, "task_started")[0]["task"].as_str().expect("a task");
    let about = why(&polity, &[task]);
    let remedies = about["remedies"].as_array().expect("remedies");
    let again = remedies.iter().find(|remedy| remedy["remedy"] == "run_again").expect("a remedy");
    assert_eq!(again["service"], "two", "{about}");
    let command = format!("polity fork {task} --turn {} --service two --data data", again["turn"]);
    let told = why_in_words(&polity, &[task]);
    assert!(
        told.contains(&format!("  → run turn {} of root again with two: {command}", again["turn"]))
            && told.matches(SERVE_FIRST).count() == 1,
        "{told}"
    );

    // Carry out the remedy: its command is complete.
    let _serving = Serving::start(&polity);
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    polity.run(&arguments).expect_code(0);
    sound.wait_until(PATIENCE, |requests| !requests.is_empty());
    broken.take_violations();
}

#[test]
fn a_refused_call_is_explained_in_the_words_of_the_society() {
    let server = ScriptedServer::start(|asked| match asked.has_called("get_artifact") {
        false => Answer::call("get_artifact", json!({"ref": "artifact:nothing123"})),
        true => Answer::say("42"),
    });
    let polity = home(&server, &json!({"language": "en"}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(0).stdout);
    let refused = events(&lines, "tool_called").into_iter().find(|event| event.get("error").is_some());
    let refused = refused.expect("a refusal");
    let about = why(&polity, &[&refused["seq"].to_string()]);
    assert_eq!(about["chain"][0]["code"], "artifact_not_found");
    assert!(about["chain"][1]["text"].as_str().expect("a text").contains("does not exist"), "{about}");
    let about = why(&polity, &[refused["task"].as_str().expect("a task")]);
    assert_eq!((facts_of(&about), &about["chain"][0]["outcome"]), (vec!["task_ended"], &json!("answered")));
}

/// Plays a root that hires a clerk, whose role names one group of tools. The clerk tries to create a role for each message
/// that it hears.
fn clerk_without_rights(asked: &Conversation) -> Answer {
    if asked.role_name() == "clerk" {
        return match asked.heard().len() > asked.results_of("create_role").len() {
            true => {
                Answer::call("create_role", json!({"name": "helper", "rolePrompt": "You help the clerk."}))
            }
            false => Answer::say("I have tried it"),
        };
    }
    if asked.results_of("create_role").is_empty() {
        let role = json!({"name": "clerk", "rolePrompt": "You note.", "toolGroups": ["artifacts"]});
        return Answer::call("create_role", role);
    }
    hire(asked, "clerk", "find a helper").unwrap_or_else(|| Answer::say("42"))
}

#[test]
fn a_call_without_a_right_names_the_group_and_the_role_and_the_remedy_works() {
    let server = ScriptedServer::start(clerk_without_rights);
    let polity = home(&server, &json!({}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(0).stdout);
    let refused = events(&lines, "tool_called").into_iter().find(|event| event.get("error").is_some());
    let refused = refused.expect("a refusal");
    let (event, clerk, task) = (refused["seq"].to_string(), &refused["agent"], &refused["task"]);
    let about = why(&polity, &[&event]);
    assert_eq!(
        (&about["chain"][0]["code"], facts_of(&about)),
        (&json!("tool_not_permitted"), vec!["call_refused", "said"])
    );
    let role = about["remedies"][0]["role"].as_str().expect("a role").to_owned();
    let remedies = json!([
        {
            "remedy": "allow_groups", "role": role, "agent": clerk,
            "groups": ["organization"], "toolGroups": ["artifacts", "organization"],
        },
        {"remedy": "write", "agent": clerk, "task": task},
    ]);
    assert_eq!(about["remedies"], remedies);
    let told = why_in_words(&polity, &[&event]);
    let clerk = clerk.as_str().expect("an agent");
    assert!(
        told.contains(&format!("{SERVE_FIRST}  → give the role of {clerk} the tools of organization")),
        "{told}"
    );

    // Carry out the remedies: the role gets the group, and the clerk is told to try again.
    let serving = Serving::start(&polity);
    let groups = json!({"toolGroups": about["remedies"][0]["toolGroups"]}).to_string();
    let patched = serving.call(&format!("PATCH /api/roles/{role}"), groups.as_bytes());
    assert_eq!(patched.status, 200, "{patched:?}");
    let letter = json!({"to": clerk, "task": task, "text": "try again"}).to_string();
    let posted = serving.call("POST /api/messages", letter.as_bytes());
    assert_eq!(posted.status, 201, "{posted:?}");
    server.wait_until(PATIENCE, |requests| {
        let asked = requests.iter().map(|request| request.conversation());
        asked
            .filter(|asked| asked.role_name() == "clerk")
            .any(|asked| asked.results_of("create_role").iter().any(|made| made.value["name"] == "helper"))
    });
    let about = serving.call(&format!("GET /api/why/{event}"), b"").json();
    assert_eq!(about.get("remedies"), None, "nothing denies the group any more: {about}");
}

/// Plays a root that hires a reader and a clerk. The clerk greets the reader at each of the first two messages that it
/// hears, whether or not it knows the reader.
fn strangers(asked: &Conversation) -> Answer {
    match asked.role_name().as_str() {
        "reader" => Answer::say("I am reading"),
        "clerk" => {
            let greetings = asked.results_of("send_message").len();
            match greetings < 2 && asked.heard().len() > greetings {
                true => Answer::call("send_message", json!({"to": "reader", "text": "good morning"})),
                false => Answer::say("I have tried it"),
            }
        }
        _ => hire(asked, "reader", "be ready")
            .or_else(|| hire(asked, "clerk", "greet the reader"))
            .unwrap_or_else(|| Answer::say("42")),
    }
}

#[test]
fn a_caller_that_does_not_know_the_receiver_is_introduced_to_it() {
    let server = ScriptedServer::start(strangers);
    let polity = home(&server, &json!({}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(0).stdout);
    let refused = events(&lines, "tool_called").into_iter().find(|event| event.get("error").is_some());
    let refused = refused.expect("a refusal");
    let (event, clerk, task) = (refused["seq"].to_string(), &refused["agent"], &refused["task"]);
    let created = events(&lines, "agent_created").into_iter().map(|event| &event["agent"]);
    let reader = created.filter_map(Value::as_str).find(|id| id.starts_with("reader")).expect("a reader");
    let about = why(&polity, &[&event]);
    assert_eq!(about["chain"][0]["code"], "unknown_contact");
    let introduce = json!([{"remedy": "introduce", "agent": reader, "to": clerk, "task": task}]);
    assert_eq!(about["remedies"], introduce);

    // Carry out the remedy. Then the reader hears the greeting.
    let serving = Serving::start(&polity);
    let payload = json!({"message_type": "introduction_response", "target_agent": {"id": reader}, "usage_hint": "it reads"});
    let letter = json!({"to": clerk, "task": task, "payload": payload}).to_string();
    let posted = serving.call("POST /api/messages", letter.as_bytes());
    assert_eq!(posted.status, 201, "{posted:?}");
    server.wait_until(PATIENCE, |requests| {
        let asked = requests.iter().map(|request| request.conversation());
        asked
            .filter(|asked| asked.role_name() == "reader")
            .any(|asked| heard_from_agents(&asked).iter().any(|said| said.contains("good morning")))
    });
    let about = serving.call(&format!("GET /api/why/{event}"), b"").json();
    assert_eq!(about.get("remedies"), None, "the clerk knows the reader now: {about}");
}

/// Plays a root that hires a lead, who hires a clerk. The clerk greets root at each of the first two messages that it
/// hears, whether or not it knows root.
fn far_from_root(asked: &Conversation) -> Answer {
    match asked.role_name().as_str() {
        "clerk" => {
            let greetings = asked.results_of("send_message").len();
            match greetings < 2 && asked.heard().len() > greetings {
                true => Answer::call("send_message", json!({"to": "root", "text": "good morning"})),
                false => Answer::say("I have tried it"),
            }
        }
        "lead" => hire(asked, "clerk", "greet root").unwrap_or_else(|| Answer::say("it is done")),
        _ => hire(asked, "lead", "hire a clerk").unwrap_or_else(|| Answer::say("42")),
    }
}

#[test]
fn a_caller_that_does_not_know_root_is_introduced_to_it() {
    let server = ScriptedServer::start(far_from_root);
    let polity = home(&server, &json!({}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(0).stdout);
    let refused = events(&lines, "tool_called").into_iter().find(|event| event.get("error").is_some());
    let refused = refused.expect("a refusal");
    let (event, clerk, task) = (refused["seq"].to_string(), &refused["agent"], &refused["task"]);
    let about = why(&polity, &[&event]);
    assert_eq!(about["chain"][0]["code"], "unknown_contact");
    let introduce = json!([{"remedy": "introduce", "agent": "root", "to": clerk, "task": task}]);
    assert_eq!(about["remedies"], introduce);

    // Carry out the remedy. Then root hears the greeting.
    let serving = Serving::start(&polity);
    let payload = json!({"message_type": "introduction_response", "target_agent": {"id": "root"}, "usage_hint": "it leads"});
    let letter = json!({"to": clerk, "task": task, "payload": payload}).to_string();
    let posted = serving.call("POST /api/messages", letter.as_bytes());
    assert_eq!(posted.status, 201, "{posted:?}");
    server.wait_until(PATIENCE, |requests| {
        let asked = requests.iter().map(|request| request.conversation());
        asked
            .filter(|asked| !["lead", "clerk"].contains(&asked.role_name().as_str()))
            .any(|asked| heard_from_agents(&asked).iter().any(|said| said.contains("good morning")))
    });
    let about = serving.call(&format!("GET /api/why/{event}"), b"").json();
    assert_eq!(about.get("remedies"), None, "the clerk knows root now: {about}");
}

#[test]
fn an_unknown_id_is_told_apart_from_one_with_nothing_to_explain() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(0).stdout);
    let refused = |id: &str| polity.run(&["why", id, "--data", "data"]).expect_code(2).stderr;
    for id in ["nothing", "t-nothing", "m000000099", "artifact:nothing123", "q99", "999999"] {
        let said = refused(id);
        assert!(
            said.contains(&format!("there is no event, task, agent, message, question or artifact `{id}`")),
            "{said}"
        );
        assert!(said.contains("polity tasks --data data, polity agents --data data"), "{said}");
        assert!(said.contains("polity approvals --data data --all"), "{said}");
    }
    let message = events(&lines, "message_accepted")[0];
    let known = [message["message"].as_str().expect("an id").to_owned(), message["seq"].to_string()];
    for id in known.iter().map(String::as_str).chain(["root"]) {
        let said = refused(id);
        assert!(said.contains(&format!("there is nothing to explain about `{id}`")), "{said}");
    }
}

fn facts_of(about: &Value) -> Vec<&str> {
    let chain = about["chain"].as_array().into_iter().flatten();
    chain.filter_map(|fact| fact["fact"].as_str()).collect()
}

/// Asks for an explanation again and again, until it is as expected.
#[track_caller]
fn why_once(serving: &Serving, id: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let about = serving.call(&format!("GET /api/why/{id}"), b"").json();
        if is_expected(&about) {
            return about;
        }
        assert!(Instant::now() < deadline, "the explanation is not as expected: {about}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_waits_what_is_open_and_who_works_is_explained() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(boss_and_worker(move |_| {
        closed.pass();
        Answer::say("it is done")
    }));
    let polity = home(&server, &json!({}));
    let serving = Serving::start(&polity);
    let posted = serving.call("POST /api/messages", br#"{"text": "go"}"#).json();
    let task = posted["task"].as_str().expect("a task");

    let about = why_once(&serving, "root", |about| {
        let state = |place: usize| &about["chain"][place]["doing"]["state"];
        facts_of(about) == ["does", "unanswered", "does"] && state(0) == "waiting" && state(2) == "thinking"
    });
    let asked = &about["chain"][1];
    let (worker, request) =
        (asked["to"].as_str().expect("an agent"), asked["message"].as_str().expect("a message"));
    assert_eq!((&asked["from"], &about["chain"][2]["agent"]), (&json!("root"), &json!(worker)));
    assert!(asked["since"].is_i64(), "{about}");
    assert_eq!(about["remedies"], json!([{"remedy": "stop", "agent": worker}]));
    let told = why_in_words(&polity, &["root"]);
    for part in [
        format!("root is waiting for {worker}"),
        format!("because {worker} has not answered {request} of root"),
        format!("because {worker} is thinking at one"),
        format!("→ stop the work of {worker}, so that nobody waits for it: polity stop {worker} --data data"),
    ] {
        assert!(told.contains(&part), "{part} is not in {told}");
    }

    let about = why(&polity, &[request]);
    assert_eq!(facts_of(&about), ["unanswered", "does"], "{about}");
    assert_eq!((&about["chain"][0]["to"], &about["chain"][1]["agent"]), (&json!(worker), &json!(worker)));
    let about = why(&polity, &[task]);
    assert_eq!(facts_of(&about)[..4], ["task_open", "does", "unanswered", "does"], "{about}");
    assert_eq!((&about["chain"][0]["task"], &about["chain"][1]["agent"]), (&json!(task), &json!("root")));
    assert_eq!(about["chain"][3]["agent"], worker, "{about}");

    // Once the worker has answered, the task has an answer, and nothing is left to explain about the request.
    gate.open();
    why_once(&serving, task, |about| about["chain"][0]["outcome"] == "answered");
    let nothing = polity.run(&["why", request, "--data", "data"]).expect_code(2);
    assert!(nothing.stderr.contains("nothing to explain"), "{}", nothing.stderr);
}

/// Returns the id of the only agent that root has hired.
fn only_hired(lines: &[Value]) -> String {
    let created = events(lines, "agent_created");
    assert_eq!(created.len(), 1, "{created:?}");
    created[0]["agent"].as_str().expect("an agent").to_owned()
}

#[test]
fn a_parked_agent_is_explained_by_its_failures_until_it_is_resumed() {
    let broken = json!({"error": {"message": "the model is broken"}});
    let server = ScriptedServer::start(boss_and_worker(move |_| Answer::error(400, broken.clone())));
    let polity = home(&server, &json!({"limits": {"maxFailedTurns": 1}}));
    let lines = json_lines(&run(&polity, &["go", "--json"]).stdout);
    let worker = only_hired(&lines);
    let parked = events(&lines, "agent_parked")[0];
    let about = why(&polity, &[&worker]);
    let chain = about["chain"].as_array().expect("a chain");
    assert_eq!(
        facts_of(&about),
        ["parked", "failed_turns", "turn_failed", "attempt_failed", "then"],
        "{about}"
    );
    assert_eq!((&chain[0]["agent"], &chain[0]["task"]), (&json!(worker), &parked["task"]));
    assert!(chain[0]["reason"].as_str().expect("a reason").contains("the model is broken"), "{about}");
    let limit =
        json!({"fact": "failed_turns", "agent": worker, "count": 1, "limit": "maxFailedTurns", "value": 1});
    assert_eq!(chain[1], limit);
    assert_eq!(chain[2]["reason"], chain[0]["reason"], "{about}");
    assert!(chain[2]["at"].is_i64(), "{about}");
    assert_eq!((&chain[3]["agent"], &chain[3]["status"]), (&json!(worker), &json!(400)));
    let turn = turn_of(&polity, &worker, &chain[3]["sent"].to_string());
    assert_eq!(
        about["remedies"],
        json!([
            {"remedy": "resume", "agent": worker, "scope": "agent"},
            {"remedy": "check_service", "service": "one"},
            {"remedy": "run_again", "agent": worker, "task": parked["task"], "turn": turn},
        ])
    );
    assert_eq!(why(&polity, &[&parked["seq"].to_string()]), about, "the event has the same reason");
    let told = why_in_words(&polity, &[&worker]);
    assert!(told.starts_with(&format!("{worker} is parked in ")), "{told}");
    assert!(
        told.contains(&format!("{SERVE_FIRST}  → go on: polity resume {worker} --alone --data data\n")),
        "{told}"
    );

    // Carry out the remedy. The worker is not parked any more, and its failures no longer count. Only the event of the
    // parking still tells them, without the remedy.
    let _serving = Serving::start(&polity);
    polity.run(&["resume", &worker, "--alone", "--data", "data"]).expect_code(0);
    let nothing = polity.run(&["why", &worker, "--data", "data"]).expect_code(2);
    assert!(nothing.stderr.contains("nothing to explain"), "{}", nothing.stderr);
    let about = why(&polity, &[&parked["seq"].to_string()]);
    assert_eq!(facts_of(&about), ["failed_turns", "turn_failed", "attempt_failed", "then"], "{about}");
    assert_eq!(about["remedies"][0]["remedy"], "check_service", "{about}");
}

#[test]
fn a_task_that_was_answered_later_is_explained_by_its_answer() {
    let is_down = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let down = is_down.clone();
    let server = ScriptedServer::start(move |_| match down.load(std::sync::atomic::Ordering::SeqCst) {
        true => Answer::error(400, json!({"error": {"message": "the model is broken"}})),
        false => Answer::say("42"),
    });
    let polity = home(&server, &json!({}));
    let lines = json_lines(&run(&polity, &["hello", "--json"]).expect_code(3).stdout);
    let idle = events(&lines, "task_idle")[0];
    let (task, seq) = (idle["task"].as_str().expect("a task"), idle["seq"].to_string());
    let failure = ["turn_failed", "attempt_failed", "then"];
    assert_eq!(facts_of(&why(&polity, &[&seq]))[2..], failure);

    is_down.store(false, std::sync::atomic::Ordering::SeqCst);
    let _serving = Serving::start(&polity);
    polity.run(&["send", "again", "--task", task, "--wait", "--data", "data"]).expect_code(0);
    let about = why(&polity, &[task]);
    assert_eq!(
        (&about["chain"][0]["outcome"], &facts_of(&about)[..1]),
        (&json!("answered"), &["task_ended"][..])
    );
    assert!(!facts_of(&about).contains(&"turn_failed"), "{about}");
    // The earlier end keeps its reason, and needs no remedy but the fork.
    let about = why(&polity, &[&seq]);
    assert_eq!(facts_of(&about), [&["task_ended"][..], &failure].concat(), "{about}");
    let remedies = about["remedies"].as_array().expect("remedies").iter().map(|one| &one["remedy"]);
    assert_eq!(remedies.collect::<Vec<_>>(), ["run_again"], "{about}");
    server.take_violations();
}

#[test]
fn a_paused_agent_is_explained_until_it_is_resumed() {
    let server = ScriptedServer::start(boss_and_worker(|_| Answer::say("it is done")));
    let polity = home(&server, &json!({}));
    let worker = only_hired(&json_lines(&run(&polity, &["go", "--json"]).expect_code(0).stdout));
    let _serving = Serving::start(&polity);
    polity.run(&["pause", &worker, "--data", "data"]).expect_code(0);
    let about = why(&polity, &[&worker]);
    assert_eq!(about["chain"], json!([{"fact": "paused", "agent": worker}]));
    assert_eq!(about["remedies"], json!([{"remedy": "resume", "agent": worker, "scope": "subtree"}]));
    let told = why_in_words(&polity, &[&worker]);
    assert!(told.starts_with(&format!("you paused {worker}\n")), "{told}");
    assert!(told.contains(&format!("→ go on: polity resume {worker} --data data")), "{told}");

    // If everybody is paused, the remedy resumes everybody. Carry it out: then nothing is left to explain.
    polity.run(&["pause", "root", "--data", "data"]).expect_code(0);
    let told = why_in_words(&polity, &["root"]);
    assert!(told.contains("→ go on: polity resume root --data data"), "{told}");
    polity.run(&["resume", "root", "--data", "data"]).expect_code(0);
    let nothing = polity.run(&["why", &worker, "--data", "data"]).expect_code(2);
    assert!(nothing.stderr.contains("nothing to explain"), "{}", nothing.stderr);
}

/// Plays a root that writes a file, which the user must allow.
fn asks_to_write(asked: &Conversation) -> Answer {
    match asked.results_of("str_replace_editor").is_empty() {
        true => {
            let file = json!({"command": "create", "path": "note.txt", "file_text": "made by an agent\n"});
            Answer::call("str_replace_editor", file)
        }
        false => Answer::say("it is done"),
    }
}

#[test]
fn a_question_about_a_call_is_explained_while_it_is_open_and_when_it_has_ended() {
    let server = ScriptedServer::start(asks_to_write);
    let rule = json!({"group": "files", "write": true, "decide": "ask"});
    let polity = home(&server, &json!({"tools": {"policy": [rule]}}));
    let _serving = Serving::start(&polity);
    for _ in 0..2 {
        polity.run(&["run", "write", "--data", "data"]).expect_code(6);
    }
    let about = why(&polity, &["q1"]);
    assert_eq!(facts_of(&about), ["call_asked", "said"], "{about}");
    let (asked, task) = (&about["chain"][0], about["chain"][0]["task"].as_str().expect("a task"));
    assert_eq!(
        (&asked["agent"], &asked["tool"], &asked["state"]),
        (&json!("root"), &json!("str_replace_editor"), &json!("open"))
    );
    assert!(asked["arguments"].as_str().expect("arguments").contains("note.txt"), "{about}");
    assert!(about["chain"][1]["text"].as_str().expect("a text").contains("tools.policy"), "{about}");
    let told = why_in_words(&polity, &["q1"]);
    for command in ["→ allow the call: polity approve q1", "→ refuse the call: polity deny q1"] {
        assert!(told.contains(&format!("{command} --data data")), "{told}");
    }

    polity.run(&["deny", "q2", "not there", "--data", "data"]).expect_code(0);
    let told = why_in_words(&polity, &["q2"]);
    assert!(told.starts_with("you did not allow root to call str_replace_editor"), "{told}");
    assert!(told.contains(": not there"), "{told}");

    // A stop drops the question, and takes back the prompt.
    polity.run(&["stop", task, "--data", "data"]).expect_code(0);
    let about = why(&polity, &["q1"]);
    assert_eq!(facts_of(&about), ["call_asked", "agent_stopped"], "{about}");
    assert_eq!(about["chain"][0]["state"], "dropped");
    let late = polity.run(&["approve", "q1", "--data", "data"]).expect_code(2).stderr;
    assert!(late.contains("the turn that asked has ended"), "{late}");
    assert!(late.contains("polity why --data data q1"), "{late}");
    let prompt = json_lines(
        &polity.run(&["messages", "--task", task, "--json", "--data", "data"]).expect_code(0).stdout,
    )
    .into_iter()
    .find(|message| message["from"] == "user")
    .expect("the prompt");
    let about = why(&polity, &[prompt["id"].as_str().expect("an id")]);
    assert_eq!(facts_of(&about), ["withdrawn", "stopped_by_user"], "{about}");
    assert_eq!(about["chain"][1]["task"], task);
}

/// Root ends its worker, and a message of the person has not been read.
#[test]
fn a_message_that_came_back_is_explained_by_the_end_of_its_receiver() {
    let gate = Gate::default();
    let closed = gate.clone();
    let work = boss_and_worker(move |_| {
        closed.pass();
        Answer::say("it is done")
    });
    let server = ScriptedServer::start(move |asked| {
        if asked.role_name() == "worker" || !asked.text_contains("nobody is needed") {
            return work(asked);
        }
        match hired(asked, "worker").filter(|_| !asked.has_called("terminate_agent")) {
            Some(worker) => {
                Answer::call("terminate_agent", json!({"agentId": worker, "reason": "not needed"}))
            }
            None => Answer::say("it has ended"),
        }
    });
    let polity = home(&server, &json!({}));
    let serving = Serving::start(&polity);
    let send = |letter: Value| serving.call("POST /api/messages", letter.to_string().as_bytes()).json();
    let task = send(json!({"text": "go"}))["task"].clone();
    let about = why_once(&serving, "root", |about| {
        facts_of(about) == ["does", "unanswered", "does"] && about["chain"][2]["doing"]["state"] == "thinking"
    });
    let worker = about["chain"][1]["to"].as_str().expect("an agent");
    let letter = send(json!({"to": worker, "text": "one more thing"}))["id"].clone();
    let letter = letter.as_str().expect("an id");
    send(json!({"text": "nobody is needed", "task": task}));
    why_once(&serving, letter, |about| facts_of(about) == ["bounced"]);
    let told = why_in_words(&polity, &[letter]);
    assert_eq!(told, format!("{letter} came back, because {worker} has ended\n"));
    gate.open();
}

#[test]
fn the_stop_of_a_worker_explains_what_it_left() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(boss_and_worker(move |_| {
        closed.pass();
        Answer::say("it is done")
    }));
    let polity = home(&server, &json!({}));
    let serving = Serving::start(&polity);
    let posted = serving.call("POST /api/messages", br#"{"text": "go"}"#).json();
    let task = posted["task"].as_str().expect("a task");
    let about = why_once(&serving, "root", |about| {
        facts_of(about) == ["does", "unanswered", "does"] && about["chain"][2]["doing"]["state"] == "thinking"
    });
    let asked = &about["chain"][1];
    let (worker, request) =
        (asked["to"].as_str().expect("an agent"), asked["message"].as_str().expect("a message"));
    let more = json!({"to": worker, "text": "one more thing"}).to_string();
    let more = serving.call("POST /api/messages", more.as_bytes()).json();
    polity.run(&["stop", worker, "--data", "data"]).expect_code(0);
    gate.open();
    // Root hears of the stop, and ends the task.
    let about = why_once(&serving, task, |about| facts_of(about)[0] == "task_ended");
    let chain = about["chain"].as_array().expect("a chain");
    let left = chain.iter().position(|fact| fact["message"] == request).expect("the request of root");
    assert_eq!(facts_of(&about)[left..left + 2], ["unanswered", "agent_stopped"], "{about}");
    assert_eq!(facts_of(&why(&polity, &[request])), ["unanswered", "agent_stopped"]);
    let own = why(&polity, &[more["id"].as_str().expect("an id")]);
    assert_eq!(facts_of(&own), ["withdrawn", "agent_stopped"], "{own}");
    assert_eq!(facts_of(&why(&polity, &[worker])), ["agent_stopped"]);
    let told = why_in_words(&polity, &[worker]);
    assert!(told.starts_with(&format!("you stopped the work of {worker} in {task}")), "{told}");
}
