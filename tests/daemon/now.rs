//! What happens now: the route `/api/now` and the command `polity status`. In the societies of these tests, agents
//! work, or something is stuck. This can be a request, an agent, a service, or a task that counts as answered.

use std::fs;
use std::time::{Duration, Instant};

use polity_tests::{Answer, Conversation, Polity, ScriptedServer, Sender};
use serde_json::{Value, json};

use crate::support::hiring::{Gate, boss_and_worker, heard_from_agents, hire, hired};
use crate::support::serving::Serving;
use crate::support::{app, home, service};

const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon with one task.
struct Society {
    server: ScriptedServer,
    polity: Polity,
    daemon: Serving,
    /// Some scripts hold requests at this gate until the test opens the gate.
    gate: Gate,
    task: String,
}

impl Society {
    /// Starts a daemon, and gives root its task.
    #[track_caller]
    fn begin(server: ScriptedServer, polity: Polity, gate: Gate) -> Self {
        let daemon = Serving::start(&polity);
        let posted = daemon.call("POST /api/messages", br#"{"text": "please count the pages"}"#).json();
        let task = posted["task"].as_str().expect("a task").to_owned();
        Self { server, polity, daemon, gate, task }
    }

    /// Returns a society in which root waits for a worker. The worker's model answers only when the test opens the
    /// gate.
    #[track_caller]
    fn at_work() -> Self {
        let gate = Gate::default();
        let closed = gate.clone();
        let server = ScriptedServer::start(boss_and_worker(move |_| {
            closed.pass();
            Answer::say("it is done")
        }));
        let polity = home(&server, &json!({"language": "en"}));
        let society = Self::begin(server, polity, gate);
        // Wait until root's turn has ended and the worker's model has received its request.
        society.until("root waits for the worker, which works", |now| {
            now["working"].as_array().is_some_and(|cards| cards.len() == 2)
                && card(now, "root")["state"] == "waiting"
                && society
                    .server
                    .requests()
                    .iter()
                    .any(|request| request.conversation().role_name() == "worker")
        });
        society
    }

    /// Returns a society whose worker is parked, because its service refuses every request. Root has written to the
    /// parked worker. When root was then reminded, it wrote to the person. So the task counts as answered, although the
    /// worker is stuck.
    #[track_caller]
    fn with_a_parked_worker() -> Self {
        let server = ScriptedServer::start(stubborn_boss);
        let services = ["one", "broken", "spare"].map(|id| service(id, &server, &["text"]));
        let settings = app(&json!({"limits": {"maxFailedTurns": 1}}));
        let polity = Polity::new(&json!({"services": services}), &settings);
        let society = Self::begin(server, polity, Gate::default());
        society.until("the task counts as answered", |now| !stuck(now, "answered").is_null());
        society
    }

    fn now(&self) -> Value {
        self.daemon.call("GET /api/now", b"").json()
    }

    /// Reads `/api/now` until `holds` accepts the answer, and returns the answer.
    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let now = self.now();
            if holds(&now) {
                return now;
            }
            assert!(begin.elapsed() < PATIENCE, "this has not happened: {what}; {now:#}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn worker(&self) -> String {
        let agents = self.daemon.call("GET /api/agents", b"").json();
        let agents = agents["agents"].as_array().expect("agents").clone();
        let worker = agents.into_iter().find(|agent| agent["role"] == "worker").expect("a worker");
        worker["id"].as_str().expect("an id").to_owned()
    }

    /// Runs `polity status` on the data directory.
    #[track_caller]
    fn status(&self, more: &[&str]) -> String {
        let arguments = [&["status", "--data", "data"], more].concat();
        self.polity.run(&arguments).expect_code(0).stdout
    }
}

/// Plays a root that hires a worker on a broken service, and writes to the worker again when it hears that the worker is
/// parked.
fn stubborn_boss(asked: &Conversation) -> Answer {
    if asked.model() == "broken-model" {
        return Answer::error(400, json!({"error": {"message": "the model is broken"}}));
    }
    if asked.role_name() == "worker" {
        return Answer::say("it is done");
    }
    if asked.results_of("create_role").is_empty() {
        let role = json!({"name": "worker", "rolePrompt": "You are a worker.", "serviceId": "broken"});
        return Answer::call("create_role", role);
    }
    if let Some(answer) = hire(asked, "worker", "please work") {
        return answer;
    }
    if let Some(said) = heard_from_agents(asked).pop() {
        return Answer::say(format!("the worker says: {said}"));
    }
    let worker = hired(asked, "worker").unwrap_or_default();
    let is_told = |worker: &str| {
        let mut heard = asked.heard().into_iter();
        heard.any(|heard| heard.from == Sender::System && heard.text.contains(worker))
    };
    if is_told(&worker) && !asked.has_called("send_message") {
        let payload = json!({"text": "please try again"});
        return Answer::call("send_message", json!({"to": worker, "payload": payload}));
    }
    // polity does not send the same text to the person twice, so each text is different.
    Answer::say(format!("{} messages so far", asked.heard().len()))
}

/// Returns the first thing of this kind that is stuck; null if there is none.
fn stuck(now: &Value, kind: &str) -> Value {
    let mut things = now["stuck"].as_array().expect("things").iter();
    things.find(|thing| thing["stuck"] == kind).cloned().unwrap_or_default()
}

/// Returns the card of an agent in the answer of `/api/now`; null if the agent has no card.
fn card(now: &Value, agent: &str) -> Value {
    let cards = now["working"].as_array().expect("cards").iter();
    cards.clone().find(|card| card["id"] == agent).cloned().unwrap_or_default()
}

#[test]
fn now_shows_who_works_for_what_and_since_when() {
    let society = Society::at_work();
    let worker = society.worker();
    let now = society.now();
    assert_eq!((&now["running"], &now["stuck"], &now["workingTotal"]), (&json!(true), &json!([]), &json!(2)));
    let (root, worked) = (card(&now, "root"), card(&now, &worker));
    assert_eq!(root["objective"], "please count the pages");
    assert_eq!(root["doing"]["requests"][0]["agent"], worker);
    assert_eq!(root["last"]["did"], "said");
    assert_eq!(root["last"]["text"], "one moment");
    assert!(root["usage"]["calls"].as_u64() > Some(1), "{root}");
    assert_eq!(worked["objective"], "be a worker");
    assert_eq!((&worked["last"]["did"], &worked["last"]["from"]), (&json!("heard"), &json!("root")));
    assert_eq!(worked["last"]["text"], "please work");
    assert_eq!(worked["activeIn"], society.task);
    assert!(worked["doing"]["since"].as_i64() > Some(0), "{worked}");
    let one = society.daemon.call("GET /api/now?limit=1", b"").json();
    assert_eq!((one["working"].as_array().map(Vec::len), &one["workingTotal"]), (Some(1), &json!(2)));
    assert_eq!(society.daemon.call("GET /api/now?limit=0", b"").status, 400);

    society.gate.open();
    society.until("nobody works any more", |now| now["workingTotal"] == 0);
    society.server.assert_clean();
}

#[test]
fn a_request_to_a_paused_agent_is_stuck_until_the_remedy_is_carried_out() {
    let society = Society::at_work();
    let worker = society.worker();
    society.daemon.call(&format!("POST /api/agents/{worker}/pause?scope=agent"), b"").json();
    let now = society.until("the request is stuck", |now| now["stuckTotal"] == 1);
    let stuck = &now["stuck"][0];
    assert_eq!((&stuck["stuck"], &stuck["cause"]), (&json!("request"), &json!("paused")));
    assert_eq!((&stuck["from"], &stuck["to"]), (&json!("root"), &json!(worker)));
    assert_eq!((&stuck["text"], &stuck["title"]), (&json!("please work"), &json!("please count the pages")));
    assert_eq!(stuck["remedies"][0], json!({"remedy": "resume", "agent": worker, "scope": "subtree"}));
    assert_eq!(card(&now, &worker), Value::Null, "a paused agent is not at work");

    let text = society.status(&[]);
    assert!(text.contains(&format!("root waits for {worker}, which is paused")), "{text}");
    assert!(text.contains(&format!("→ polity resume {worker} --data data")), "{text}");

    society.gate.open();
    let agent = stuck["remedies"][0]["agent"].as_str().expect("an agent");
    assert_eq!(society.daemon.call(&format!("POST /api/agents/{agent}/resume?scope=agent"), b"").status, 200);
    // The task becomes idle a moment after its last turn has ended, so wait for that.
    society.until("nothing is stuck, and the task is answered", |now| {
        let task = society.daemon.call(&format!("GET /api/tasks/{}", society.task), b"").json();
        now["stuckTotal"] == 0 && now["workingTotal"] == 0 && task["outcome"] == "answered"
    });
}

#[test]
fn a_task_that_counts_as_answered_is_stuck_while_root_waits() {
    let society = Society::with_a_parked_worker();
    let (worker, task) = (society.worker(), &society.task);
    let shown = society.daemon.call(&format!("GET /api/tasks/{task}"), b"").json();
    assert_eq!((&shown["state"], &shown["outcome"]), (&json!("idle"), &json!("answered")), "{shown}");
    let answered = stuck(&society.now(), "answered");
    assert_eq!(
        (&answered["task"], &answered["title"]),
        (&json!(task), &json!("please count the pages")),
        "{answered}"
    );
    let requests = answered["requests"].as_array().expect("requests");
    assert_eq!((requests.len(), &requests[0]["agent"]), (1, &json!(worker)), "{answered}");
    let remedies = json!([
        {"remedy": "write", "to": "root", "task": task},
        {"remedy": "stop_task", "task": task},
    ]);
    assert_eq!(answered["remedies"], remedies);
    let text = society.status(&[]);
    assert!(
        text.contains(&format!("a task counts as answered, but root waits for {worker}")),
        "{worker} is not in: {text}"
    );

    assert_eq!(society.daemon.call(&format!("POST /api/tasks/{task}/stop"), b"").status, 200);
    society.until("root waits for nobody", |now| stuck(now, "answered").is_null());
    assert_eq!(stuck(&society.now(), "parked"), Value::Null, "the stopped worker is still parked");
    let shown = society.daemon.call(&format!("GET /api/tasks/{task}"), b"").json();
    assert_eq!(shown["outcome"], "answered", "{shown}");
}

#[test]
fn a_parked_agent_is_stuck_until_it_is_stopped() {
    let society = Society::with_a_parked_worker();
    let worker = society.worker();
    let parked = stuck(&society.now(), "parked");
    let stop = json!({"remedy": "stop_agent", "agent": worker});
    assert!(parked["remedies"].as_array().expect("remedies").contains(&stop), "{parked}");
    let stopped = society.daemon.call(&format!("POST /api/agents/{worker}/stop"), b"").json();
    assert_eq!(stopped["agents"], json!([worker]));
    // The daemon tells root that its request to the worker has failed. So root waits for nobody any more.
    society.until("nothing waits any more", |now| {
        let is_stuck = ["parked", "answered"].iter().any(|kind| !stuck(now, kind).is_null());
        !is_stuck && now["workingTotal"] == 0
    });
    let shown = society.daemon.call(&format!("GET /api/agents/{worker}"), b"").json();
    assert_eq!(shown["state"], "idle", "{shown}");
}

#[test]
fn a_parked_agent_goes_on_with_another_service() {
    let society = Society::with_a_parked_worker();
    let worker = society.worker();
    let parked = stuck(&society.now(), "parked");
    assert_eq!((&parked["agent"], &parked["askedBy"]), (&json!(worker), &json!(["root"])), "{parked}");
    assert!(parked["reason"].as_str().expect("a reason").contains("the model is broken"), "{parked}");
    assert_eq!(parked["remedies"][0], json!({"remedy": "resume", "agent": worker, "scope": "agent"}));
    let another = &parked["remedies"][1];
    assert_eq!(
        (&another["remedy"], &another["name"], &another["services"], &another["resume"]),
        (&json!("service"), &json!("worker"), &json!(["one", "spare"]), &json!(worker)),
        "{parked}"
    );
    let text = society.status(&[]);
    assert!(
        text.contains("→ give the role worker another service, such as one, spare: polity view --data data"),
        "{text}"
    );

    let role = another["role"].as_str().expect("a role");
    let change = json!({"serviceId": "spare"}).to_string();
    assert_eq!(society.daemon.call(&format!("PATCH /api/roles/{role}"), change.as_bytes()).status, 200);
    let agent = another["resume"].as_str().expect("an agent");
    assert_eq!(society.daemon.call(&format!("POST /api/agents/{agent}/resume?scope=agent"), b"").status, 200);
    society.until("the worker has answered, and nothing waits any more", |now| {
        let is_stuck = ["parked", "answered"].iter().any(|kind| !stuck(now, kind).is_null());
        !is_stuck && now["workingTotal"] == 0
    });
    let told = society.polity.run(&["messages", "--to", "user", "--data", "data"]).expect_code(0).stdout;
    assert!(told.contains("the worker says: it is done"), "{told}");
    let models: Vec<String> = society.server.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(models.iter().filter(|model| *model == "broken-model").count(), 1, "{models:?}");
    assert_eq!(models.iter().filter(|model| *model == "spare-model").count(), 1, "{models:?}");
}

/// For other agents, a person can change the service of their role. Root has no such role. So root's turn begins again
/// in a new task, with another service.
#[test]
fn a_turn_of_root_begins_again_with_another_service() {
    let server = ScriptedServer::start(|asked| match asked.model() {
        "one-model" => Answer::error(503, json!({"error": {"message": "try again"}})),
        _ => Answer::say("42"),
    });
    let services = ["one", "two"].map(|id| service(id, &server, &["text"]));
    let hour = 3_600_000;
    let retry = json!({"maxAttempts": 3, "baseDelayMs": hour, "maxDelayMs": hour});
    let polity = Polity::new(&json!({"services": services}), &app(&json!({"retry": retry})));
    let society = Society::begin(server, polity, Gate::default());
    let now = society.until("root pauses after a failure of its service", |now| {
        stuck(now, "service")["agents"] == json!(["root"]) && card(now, "root")["state"] == "retrying"
    });
    let (failing, task) = (stuck(&now, "service"), &society.task);
    let turn = failing["remedies"][0]["turn"].as_i64().expect("a turn");
    let remedies = json!([
        {"remedy": "run_again", "task": task, "turn": turn, "services": ["two"]},
        {"remedy": "try_again", "service": "one"},
        {"remedy": "check_service", "service": "one"},
        {"remedy": "stop_task", "task": task},
    ]);
    assert_eq!(failing["remedies"], remedies);
    let text = society.status(&[]);
    for command in [
        format!("→ polity fork {task} --turn {turn} --service two --data data\n"),
        "→ check one and its entry in llmservices.json: polity doctor --data data\n".to_owned(),
    ] {
        assert!(text.contains(&command), "{command:?} is not in: {text}");
    }
    let text = society.status(&["--config", "config"]);
    let check = "→ check one and its entry in llmservices.json: polity doctor --config config --data data\n";
    assert!(text.contains(check), "{text}");

    let turn = turn.to_string();
    let again = ["fork", task, "--turn", &turn, "--service", "two", "--wait", "--data", "data"];
    assert_eq!(society.polity.run(&again).expect_code(0).stdout, "42\n");

    // In the first task, root still pauses for an hour. A stop ends the pause.
    assert_eq!(society.daemon.call(&format!("POST /api/tasks/{task}/stop"), b"").status, 200);
    society.until("root pauses no longer", |now| now["workingTotal"] == 0 && card(now, "root").is_null());
}

/// After a failure, root would pause for an hour. The person does not want to wait, and does what `polity status`
/// suggests.
#[test]
fn a_service_that_works_again_is_tried_again_at_once() {
    let works = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_well = std::sync::Arc::clone(&works);
    let server = ScriptedServer::start(move |_| match is_well.load(std::sync::atomic::Ordering::SeqCst) {
        true => Answer::say("42"),
        false => Answer::error(503, json!({"error": {"message": "try again"}})),
    });
    let hour = 3_600_000;
    let retry = json!({"maxAttempts": 3, "baseDelayMs": hour, "maxDelayMs": hour});
    let polity = home(&server, &json!({"language": "en", "retry": retry}));
    let society = Society::begin(server, polity, Gate::default());
    society.until("root pauses after a failure of its service", |now| {
        card(now, "root")["state"] == "retrying" && !stuck(now, "service").is_null()
    });
    let text = society.status(&[]);
    let command = "polity services one --try-again --data data";
    assert!(text.contains(&format!("→ {command}\n")), "{text}");

    works.store(true, std::sync::atomic::Ordering::SeqCst);
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    society.polity.run(&arguments).expect_code(0);
    society.until("root has answered, and nothing is stuck", |now| {
        now["workingTotal"] == 0 && stuck(now, "service").is_null()
    });
    let told = society.polity.run(&["messages", "--to", "user", "--data", "data"]).expect_code(0).stdout;
    assert!(told.contains("42"), "{told}");
    let unknown = society.daemon.call("POST /api/services/nobody/try", b"");
    assert_eq!(unknown.status, 404, "{unknown:?}");
}

/// A call makes at most three attempts by itself. The person tries the service again more than three times. The fifth
/// failure opens the circuit, and the person still tries again.
#[test]
fn a_turn_does_not_give_up_because_the_person_tries_its_service_again() {
    let works = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_well = std::sync::Arc::clone(&works);
    let server = ScriptedServer::start(move |_| match is_well.load(std::sync::atomic::Ordering::SeqCst) {
        true => Answer::say("42"),
        false => Answer::error(503, json!({"error": {"message": "try again"}})),
    });
    let hour = 3_600_000;
    let retry = json!({"maxAttempts": 3, "baseDelayMs": hour, "maxDelayMs": hour});
    let polity = home(&server, &json!({"language": "en", "retry": retry}));
    let society = Society::begin(server, polity, Gate::default());
    for asked in 0..7 {
        society.until("root pauses after a failure of its service", |now| {
            let root = card(now, "root");
            let doing = &root["doing"];
            (&doing["attempt"], &doing["of"]) == (&json!(1 + asked), &json!(3 + asked))
        });
        works.store(asked == 6, std::sync::atomic::Ordering::SeqCst);
        assert_eq!(society.daemon.call("POST /api/services/one/try", b"").status, 200);
    }
    society.until("root has answered, and nothing is stuck", |now| {
        now["workingTotal"] == 0 && stuck(now, "service").is_null()
    });
    let told = society.polity.run(&["messages", "--to", "user", "--data", "data"]).expect_code(0).stdout;
    assert!(told.contains("42"), "{told}");
}

/// In one task, root asks the person about a call. For another task, the server holds a request of root.
#[test]
fn a_question_in_one_task_does_not_hide_a_request_at_the_server_for_another() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.text_contains("count the pages") {
            closed.pass();
            return Answer::say("42");
        }
        let file = json!({"command": "create", "path": "note.txt", "file_text": "a note\n"});
        match asked.results_of("str_replace_editor").is_empty() {
            true => Answer::call("str_replace_editor", file),
            false => Answer::say("it is written"),
        }
    });
    let mut one = service("one", &server, &["text"]);
    one["maxConcurrentRequests"] = json!(2);
    let policy = json!([{"group": "files", "write": true, "decide": "ask"}]);
    let settings = app(&json!({"language": "en", "tools": {"policy": policy}}));
    let polity = Polity::new(&json!({"services": [one]}), &settings);
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    let society = Society::begin(server, polity, gate);
    let prompt = json!({"text": "write a note", "workspace": project}).to_string();
    let posted = society.daemon.call("POST /api/messages", prompt.as_bytes()).json();
    let (first, second) = (json!(society.task), &posted["task"]);

    let now = society.until("root asks in one task and thinks in the other", |now| {
        !stuck(now, "approval").is_null() && card(now, "root")["state"] == "thinking"
    });
    let root = card(&now, "root");
    assert_eq!((&root["activeIn"], &root["doing"]["task"]), (&first, &first), "{root}");
    assert_eq!(root["objective"], "please count the pages", "{root}");
    assert_eq!((&now["workingTotal"], &now["atWorkTotal"]), (&json!(1), &json!(1)));
    let question = stuck(&now, "approval");
    assert_eq!(&question["task"], second, "{question}");
    assert_eq!(question["remedies"][0]["remedy"], "decide", "{question}");
    let prompt = posted["id"].as_str().expect("a message");
    let why = society.daemon.call(&format!("GET /api/why/{prompt}"), b"").json();
    assert_eq!(why["remedies"], json!([{"remedy": "decide", "approval": question["approval"]}]), "{why}");
    let metrics = society.daemon.call("GET /metrics", b"").body;
    for line in ["polity_agents{state=\"thinking\"} 1\n", "polity_agents{state=\"asking\"} 0\n"] {
        assert!(metrics.contains(line), "{line} is not in: {metrics}");
    }

    society.gate.open();
    let now = society.until("root only asks", |now| card(now, "root")["state"] == "asking");
    let root = card(&now, "root");
    assert_eq!((&root["activeIn"], &root["objective"]), (second, &json!("write a note")), "{root}");
    assert_eq!((&now["workingTotal"], &now["atWorkTotal"]), (&json!(1), &json!(0)));
    let task = second.as_str().expect("a task");
    let why = society.daemon.call(&format!("GET /api/why/{task}"), b"").json();
    assert_eq!(why["remedies"], json!([{"remedy": "decide", "approval": question["approval"]}]), "{why}");
    let approval = question["approval"].as_str().expect("an approval");
    let answer = format!("POST /api/approvals/{approval}");
    assert_eq!(society.daemon.call(&answer, br#"{"answer": "yes"}"#).status, 200);
    society.until("nobody works any more", |now| now["workingTotal"] == 0);
    assert_eq!(fs::read_to_string(project.join("note.txt")).expect("a file"), "a note\n");
}

#[test]
fn status_is_the_same_for_a_terminal_and_a_pipe_with_a_daemon_and_without() {
    let society = Society::at_work();
    let worker = society.worker();
    let text = society.status(&[]);
    let url = format!("daemon: http://{}/", society.daemon.address);
    let at_work = "1 agent is at work, 1 agent waits for an answer";
    for line in [url.as_str(), "data: data", at_work, "nothing is stuck", "for: be a worker"] {
        assert!(text.contains(line), "{line} is not in: {text}");
    }
    let json: Value = serde_json::from_str(&society.status(&["--json"])).expect("JSON");
    assert_eq!((&json["process"], &json["now"]["workingTotal"]), (&json!("daemon"), &json!(2)));
    assert_eq!(json["now"]["atWorkTotal"], 1);
    assert_eq!(json["config"]["problems"], json!([]));
    for columns in [40, 80, 200] {
        let terminal = society.polity.spawn_on_terminal_of(columns, &["status", "--data", "data"]);
        let shown = terminal.wait().expect_code(0).stdout;
        assert!(shown.contains(&worker), "{shown}");
        for line in shown.lines() {
            let line = without_styles(line);
            assert!(line.chars().count() <= usize::from(columns), "{line:?} at {columns} columns");
        }
    }

    // After a mistake in the configuration, the old configuration stays in force, and the status says so.
    society.polity.write_config("app.json", r#"{"limits": {"maxDepth": "deep"}}"#);
    society.daemon.call("POST /api/config/reload", b"");
    let text = society.status(&[]);
    assert!(text.contains("app.json: /limits/maxDepth"), "{text}");

    // Kill the daemon in the middle of the worker's turn.
    let Society { server: _server, polity, daemon, gate, .. } = society;
    daemon.running.kill9();
    polity.write_config("app.json", r#"{"discover": false}"#);
    let text = polity.run(&["status", "--data", "data"]).expect_code(0).stdout;
    assert!(text.starts_with("no daemon serves this data directory; nothing runs\n"), "{text}");
    let has_work = "1 agent has work, 1 agent waits for an answer";
    assert!(text.contains(has_work) && text.contains(&worker), "{text}");
    let json = polity.run(&["status", "--data", "data", "--json"]).expect_code(0).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&json["process"], &json["now"]["running"], &json["url"]),
        (&json!("nothing"), &json!(false), &Value::Null)
    );
    gate.open();
    let nowhere = polity.run(&["status", "--data", "nowhere"]).expect_code(2);
    assert!(nowhere.stderr.contains("there is no society in nowhere"), "{}", nowhere.stderr);
}

/// Removes the sequences that set a style.
fn without_styles(line: &str) -> String {
    let mut parts = line.trim_end_matches('\r').split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}
