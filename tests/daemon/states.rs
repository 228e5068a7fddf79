//! The states of agents that the daemon shows. They must agree with the requests that are in progress at the model
//! server.

use std::io::BufRead;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::{Gate, brief};
use crate::support::serving::Serving;
use crate::support::{app, events, half_an_answer, home, json_lines, service};

/// Maximum wait for a state or an event that must come.
const PATIENCE: Duration = Duration::from_secs(120);

/// The number of agents that root hires.
const WORKERS: usize = 33;

/// A turnstile for the requests of workers. It holds the requests at the server, and the test lets the requests go one
/// by one.
#[derive(Clone, Default)]
struct Turnstile(Arc<(Mutex<Held>, Condvar)>);

#[derive(Default)]
struct Held {
    /// The agents whose requests are in progress at the server.
    agents: Vec<String>,
    /// Number of requests that the test has let go and that have not gone yet.
    may_go: usize,
    /// Number of requests that have gone.
    gone: usize,
}

impl Turnstile {
    fn pass(&self, agent: String) {
        let (held, changed) = &*self.0;
        let mut held = held.lock().expect("no panic before");
        held.agents.push(agent.clone());
        changed.notify_all();
        let wait = changed.wait_timeout_while(held, PATIENCE, |held| held.may_go == 0);
        held = wait.expect("no panic before").0;
        held.may_go = held.may_go.checked_sub(1).expect("the test lets every request go");
        held.agents.retain(|other| *other != agent);
        held.gone += 1;
        changed.notify_all();
    }

    /// Waits until this many requests have gone and the server holds a further one. Returns the agents of all held
    /// requests.
    fn held_after(&self, gone: usize) -> Vec<String> {
        let (held, changed) = &*self.0;
        let held = held.lock().expect("no panic before");
        let wait =
            changed.wait_timeout_while(held, PATIENCE, |held| held.gone < gone || held.agents.is_empty());
        let (held, waited) = wait.expect("no panic before");
        assert!(!waited.timed_out(), "no request is held after {gone}");
        held.agents.clone()
    }

    fn let_go(&self) {
        let (held, changed) = &*self.0;
        held.lock().expect("no panic before").may_go += 1;
        changed.notify_all();
    }
}

/// The script of a society: root hires all workers at once, and the turnstile holds each worker's request.
fn crew(turnstile: Turnstile) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| {
        if asked.role_name() == "worker" {
            turnstile.pass(asked.agent_id());
            return Answer::say("done");
        }
        let Some(role) = asked.results_of("create_role").pop() else {
            let role = json!({"name": "worker", "rolePrompt": "You are a worker."});
            return Answer::call("create_role", role);
        };
        if asked.has_called("spawn_agent_with_task") {
            return Answer::say("all done");
        }
        let hire = |number: usize| {
            let task = brief(&format!("be worker {number}"));
            let arguments =
                json!({"roleId": role.value["id"], "taskBrief": task, "initialMessage": "please work"});
            Call::new("spawn_agent_with_task", arguments)
        };
        Answer::calls((0..WORKERS).map(hire).collect())
    }
}

fn agents(serving: &Serving) -> Vec<Value> {
    let page = serving.call("GET /api/agents?limit=100", b"").json();
    let agents = page["agents"].as_array().expect("agents").iter();
    agents.filter(|agent| agent["id"] != "user").cloned().collect()
}

fn in_state<'a>(agents: &'a [Value], state: &str) -> Vec<&'a Value> {
    agents.iter().filter(|agent| agent["state"] == state).collect()
}

/// Reads the list of agents until `wanted` accepts it, and returns it.
#[track_caller]
fn until(serving: &Serving, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let agents = agents(serving);
        if wanted(&agents) {
            return agents;
        }
        assert!(Instant::now() < deadline, "the agents are still {agents:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Root and 33 workers use one service, which takes one request at a time. At every check, the only agent that is
/// thinking is the agent whose request the server holds.
#[test]
fn as_many_agents_think_as_requests_are_at_the_server() {
    let turnstile = Turnstile::default();
    let server = ScriptedServer::start(crew(turnstile.clone()));
    let mut one = service("one", &server, &["text"]);
    one["maxConcurrentRequests"] = json!(1);
    let polity = Polity::new(&json!({"services": [one]}), &app(&json!({"limits": {"maxChildren": 40}})));
    let serving = Serving::start(&polity);
    serving.call("POST /api/messages", br#"{"text": "hire them"}"#);
    let mut most = 0;
    for gone in 0..WORKERS {
        let held = turnstile.held_after(gone);
        assert_eq!(held.len(), 1, "the service has one place");
        if gone == 0 {
            // All other workers are queued. Root is queued too, or has ended its turn already.
            until(&serving, |agents| in_state(agents, "queued").len() >= WORKERS - 1);
        }
        let agents = agents(&serving);
        let thinking = in_state(&agents, "thinking");
        let ids: Vec<&str> = thinking.iter().filter_map(|agent| agent["id"].as_str()).collect();
        assert_eq!(ids, [held[0].as_str()], "{agents:#?}");
        assert_eq!(thinking[0]["doing"]["service"], "one");
        let queued = in_state(&agents, "queued");
        most = most.max(queued.len());
        let mut places: Vec<u64> =
            queued.iter().filter_map(|agent| agent["doing"]["place"].as_u64()).collect();
        places.sort_unstable();
        assert_eq!(places, (1..=places.len() as u64).collect::<Vec<_>>(), "{agents:#?}");
        let states = ["thinking", "queued", "ready", "waiting", "idle"];
        let counted: usize = states.iter().map(|state| in_state(&agents, state).len()).sum();
        assert_eq!((counted, agents.len()), (WORKERS + 1, WORKERS + 1), "{agents:#?}");
        if gone % 8 == 0 {
            let metrics = serving.call("GET /metrics", b"").body;
            assert!(metrics.contains("polity_agents{state=\"thinking\"} 1\n"), "{metrics}");
        }
        turnstile.let_go();
    }
    assert!(most >= WORKERS - 1, "{most}");
    let agents = until(&serving, |agents| in_state(agents, "idle").len() == WORKERS + 1);
    assert!(in_state(&agents, "thinking").is_empty());
}

/// The role of each worker that root hires in [`staff`], and its service.
const STAFF: [(&str, &str); 6] = [
    ("first", "slow"),
    ("second", "slow"),
    ("unlucky", "busy"),
    ("clumsy", "broken"),
    ("quick", "one"),
    ("resting", "one"),
];

/// Plays a root that hires workers on different services. A slow service never answers, a busy one asks to try again,
/// and a broken one refuses every request.
fn staff(asked: &Conversation) -> Answer {
    match asked.model() {
        "slow-model" => return Answer::hang(),
        "busy-model" => return Answer::error(503, json!({"error": {"message": "try again"}})),
        "broken-model" => return Answer::error(400, json!({"error": {"message": "the model is broken"}})),
        _ if asked.agent_id() != "root" => return Answer::say("done"),
        _ => {}
    }
    if asked.results_of("create_role").is_empty() {
        let role = |(name, service)| {
            let prompt = format!("You are {name}.");
            Call::new("create_role", json!({"name": name, "rolePrompt": prompt, "serviceId": service}))
        };
        return Answer::calls(STAFF.map(role).into());
    }
    if !asked.has_called("spawn_agent_with_task") {
        let hire = |(name, _)| {
            let arguments =
                json!({"roleId": name, "taskBrief": brief("work"), "initialMessage": "please work"});
            Call::new("spawn_agent_with_task", arguments)
        };
        return Answer::calls(STAFF.map(hire).into());
    }
    Answer::say(format!("{} messages so far", asked.heard().len()))
}

/// There are seven states with exactly one agent each, and the metrics say so. For example, the slow service has two
/// workers but takes only one call at a time. So one of these workers is thinking, and the other is queued. Root waits
/// for both.
#[test]
fn the_metrics_count_the_agents_in_each_state() {
    let server = ScriptedServer::start(staff);
    let mut services = ["one", "slow", "busy", "broken"].map(|id| service(id, &server, &["text"]));
    services[1]["maxConcurrentRequests"] = json!(1);
    let retry = json!({"maxAttempts": 2, "baseDelayMs": 3_600_000, "maxDelayMs": 3_600_000});
    let settings = app(&json!({"retry": retry, "limits": {"maxFailedTurns": 1}}));
    let polity = Polity::new(&json!({"services": services}), &settings);
    let serving = Serving::start(&polity);
    serving.call("POST /api/messages", br#"{"text": "hire them"}"#);
    let agents = until(&serving, |agents| in_state(agents, "idle").len() == 2);
    let resting = agents.iter().find(|agent| agent["role"] == "resting").expect("a worker");
    let resting = resting["id"].as_str().expect("an id");
    serving.call(&format!("POST /api/agents/{resting}/pause?scope=agent"), b"");
    let states = ["thinking", "queued", "retrying", "waiting", "parked", "paused", "idle"];
    until(&serving, |agents| states.iter().all(|state| in_state(agents, state).len() == 1));
    let metrics = serving.call("GET /metrics", b"").body;
    for (states, count) in [(&states[..], 1), (&["running", "ready", "asking"][..], 0)] {
        for state in states {
            let line = format!("polity_agents{{state=\"{state}\"}} {count}\n");
            assert!(metrics.contains(&line), "{line} is not in: {metrics}");
        }
    }
}

/// A server accepts a request and sends nothing. The agent's state shows this silence, then the retry, and then the
/// pause of the service.
#[test]
fn a_silent_server_shows_as_such() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let mut one = service("one", &server, &["text"]);
    one["timeouts"] = json!({"firstByteMs": 3_000});
    let retry = json!({"retry": {"maxAttempts": 2, "baseDelayMs": 600_000, "maxDelayMs": 600_000}});
    let polity = Polity::new(&json!({"services": [one]}), &app(&retry));
    let serving = Serving::start(&polity);
    serving.call("POST /api/messages", br#"{"text": "hello"}"#);
    let root =
        |agents: &[Value]| agents.iter().find(|agent| agent["id"] == "root").expect("root")["doing"].clone();
    let doing = root(&until(&serving, |agents| root(agents)["silence"].is_object()));
    assert_eq!((&doing["state"], &doing["attempt"]), (&json!("thinking"), &json!(1)), "{doing}");
    let silence = &doing["silence"];
    assert_eq!(silence["then"], "retry", "{doing}");
    let allowed = silence["until"].as_i64().expect("a time") - silence["since"].as_i64().expect("a time");
    assert_eq!(allowed, 3_000, "{doing}");
    let doing = root(&until(&serving, |agents| root(agents)["state"] == "retrying"));
    assert_eq!((&doing["attempt"], &doing["of"], &doing["service"]), (&json!(1), &json!(2), &json!("one")));
    assert!(doing["why"].as_str().expect("a reason").contains("no byte of an answer within 3s"), "{doing}");
    let pause = doing["until"].as_i64().expect("a time") - doing["since"].as_i64().expect("a time");
    assert!((300_000..=600_000).contains(&pause), "{doing}");
    let shown = polity.run(&["agents", "--data", "data"]).stdout;
    assert!(shown.contains("retrying one in") && shown.contains("after failure 1 of 2"), "{shown}");
}

/// A service refuses a request, and its fallback gets the request. Then the daemon must show the fallback as the
/// agent's service, and not the service that was chosen for the agent.
#[test]
fn the_service_that_is_shown_is_the_one_that_is_called() {
    let server = ScriptedServer::start(|asked| match asked.model() {
        "two-model" => Answer::hang(),
        _ => Answer::error(400, json!({"error": {"message": "the model is broken"}})),
    });
    let mut one = service("one", &server, &["text"]);
    one["fallback"] = json!("two");
    let two = service("two", &server, &["text"]);
    let polity = Polity::new(&json!({"services": [one, two]}), &app(&json!({})));
    let serving = Serving::start(&polity);
    serving.call("POST /api/messages", br#"{"text": "hello", "service": "one"}"#);
    server.wait_until(PATIENCE, |requests| requests.last().is_some_and(|last| last.model == "two-model"));
    let agents = until(&serving, |agents| in_state(agents, "thinking").len() == 1);
    let root = in_state(&agents, "thinking")[0];
    assert_eq!((&root["doing"]["service"], &root["doing"]["attempt"]), (&json!("two"), &json!(2)), "{root}");
    assert_eq!(root["service"], "two", "{root}");
    let shown = polity.run(&["agents", "--data", "data"]).stdout;
    assert!(shown.contains("thinking at two"), "{shown}");
}

/// A command of root runs until the test creates a file. Meanwhile, root must not count as thinking.
#[test]
fn an_agent_whose_tool_runs_shows_this_tool() {
    let server = ScriptedServer::start(|asked| match asked.results_of("bash").pop() {
        None => {
            Answer::call("bash", json!({"command": "until [ -e go.txt ]; do sleep 0.05; done; echo gone"}))
        }
        Some(result) => Answer::say(result.text),
    });
    let tools = json!({"sandbox": {"allowNone": true}, "policy": [{"tool": "bash", "decide": "allow"}]});
    let polity = home(&server, &json!({"language": "en", "tools": tools}));
    let project = polity.home().join("project");
    std::fs::create_dir(&project).expect("a directory");
    let serving = Serving::start(&polity);
    let prompt = json!({"text": "wait for the file", "workspace": project}).to_string();
    serving.call("POST /api/messages", prompt.as_bytes());
    let agents = until(&serving, |agents| in_state(agents, "running").len() == 1);
    let root = in_state(&agents, "running")[0];
    assert_eq!((&root["id"], &root["doing"]["tools"]), (&json!("root"), &json!(["bash"])), "{root}");
    assert!(root["doing"]["since"].is_i64(), "{root}");
    let shown = polity.run(&["agents", "--data", "data"]).stdout;
    assert!(shown.contains("running bash"), "{shown}");
    let metrics = serving.call("GET /metrics", b"").body;
    assert!(metrics.contains("polity_agents{state=\"running\"} 1\n"), "{metrics}");

    std::fs::write(project.join("go.txt"), "").expect("a file");
    until(&serving, |agents| in_state(agents, "idle").len() == agents.len());
    let told = polity.run(&["messages", "--to", "user", "--data", "data"]).expect_code(0).stdout;
    assert!(told.contains("gone"), "{told}");
}

/// A client can ask the event stream for glimpses: transient events with the newest piece of a model's text. Such a
/// client gets each piece of an answer as soon as the piece arrives from the model. Other clients get no glimpses.
#[test]
fn an_answer_is_streamed_while_it_arrives() {
    let server = ScriptedServer::start(|_| {
        Answer::say("One moment, this takes a while. ".repeat(20))
            .and_field("reasoning_content", json!("Well then."))
            .stuck()
    });
    let polity = Polity::new(&json!({"services": [service("one", &server, &["text"])]}), &app(&json!({})));
    let serving = Serving::start(&polity);
    let head = "accept: text/event-stream\r\n";
    let live = serving.stream("GET /api/events?live=true", head, "", "retry:");
    let plain = serving.stream("GET /api/events", head, "", "retry:");
    serving.call("POST /api/messages", br#"{"text": "hello"}"#);
    let (mut text, mut reasoning, mut thinking, mut name) = (String::new(), String::new(), 0, String::new());
    for line in live.lines().map(|line| line.expect("a line")) {
        assert!(!(name == "glimpse" && line.starts_with("id:")), "a glimpse has an id");
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let Some(data) = line.strip_prefix("data: ").filter(|_| name == "glimpse") else { continue };
        let glimpse: Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(glimpse["agent"], "root", "{glimpse}");
        thinking += usize::from(glimpse["doing"]["state"] == "thinking");
        text.push_str(glimpse["said"]["text"].as_str().unwrap_or_default());
        reasoning.push_str(glimpse["said"]["reasoning"].as_str().unwrap_or_default());
        if text.contains("takes a while. One moment") && reasoning == "Well then." {
            break;
        }
    }
    assert!(thinking > 0 && text.starts_with("One moment, this takes a while."), "{text}");
    serving.call("POST /api/agents/root/stop", b"");
    let lines = plain.lines().map(|line| line.expect("a line"));
    let seen: Vec<String> = lines.take_while(|line| line != "event: agent_stopped").collect();
    assert!(!seen.iter().any(|line| line.contains("glimpse")), "{seen:#?}");
}

/// Returns the glimpses that an event stream brings within [`PATIENCE`].
fn glimpses(stream: impl BufRead) -> impl Iterator<Item = Value> {
    let deadline = Instant::now() + PATIENCE;
    let mut name = String::new();
    let lines = stream.lines().map(|line| line.expect("a line"));
    lines.take_while(move |_| Instant::now() < deadline).filter_map(move |line| {
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let data = line.strip_prefix("data: ").filter(|_| name == "glimpse")?;
        Some(serde_json::from_str(data).expect("JSON"))
    })
}

/// A model begins to call a tool, and the server stops in the middle of the arguments. A client that asks for glimpses
/// gets the name of the tool, although the call is never complete.
#[test]
fn a_call_is_streamed_by_its_name_before_it_is_complete() {
    let server = ScriptedServer::start(half_an_answer);
    let polity = Polity::new(&json!({"services": [service("one", &server, &["text"])]}), &app(&json!({})));
    let serving = Serving::start(&polity);
    let head = "accept: text/event-stream\r\n";
    let live = serving.stream("GET /api/events?live=true", head, "", "retry:");
    serving.call("POST /api/messages", br#"{"text": "hire somebody"}"#);
    let calling = glimpses(live).find(|glimpse| glimpse["said"]["calls"] == json!(["create_role"]));
    let calling = calling.expect("a glimpse of the call");
    assert_eq!((&calling["agent"], &calling["doing"]["state"]), (&json!("root"), &json!("thinking")));
    let stored = polity.run(&["events", "--after", "0", "--json", "--data", "data"]).expect_code(0).stdout;
    let stored = json_lines(&stored);
    assert_eq!(events(&stored, "turn_started").len(), 1, "{stored:#?}");
    for later in ["model_answered", "tool_called", "role_created"] {
        assert_eq!(events(&stored, later), [&Value::Null; 0], "{later}");
    }
}

/// On a terminal, `polity run` shows at every moment what root is doing. In a pipe, it prints no such lines.
#[test]
fn a_terminal_shows_what_root_does_and_a_pipe_does_not() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ScriptedServer::start(move |_| {
        held.pass();
        Answer::say("42")
    });
    let polity = Polity::new(&json!({"services": [service("one", &server, &["text"])]}), &app(&json!({})));
    let _serving = Serving::start(&polity);
    let piped = polity.spawn(&["run", "hello", "--data", "data"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    let shown = polity.spawn_on_terminal(&["run", "hello again", "--data", "data"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 2);
    shown.stdout_line("thinking at one");
    gate.open();
    assert!(shown.wait().expect_code(0).stdout.contains("42"));
    let piped = piped.wait().expect_code(0);
    assert_eq!(piped.stdout.trim(), "42");
    assert!(!piped.stderr.contains("thinking"), "{}", piped.stderr);
}

/// On a terminal, `polity run` shows the part of an answer that has arrived. This is the text, or the reasoning if
/// there is no text yet, and the names of the called tools. In a pipe, the command prints only whole answers.
#[test]
fn a_terminal_shows_an_answer_while_it_arrives_and_a_pipe_does_not() {
    let server = ScriptedServer::start(half_an_answer);
    let polity = Polity::new(&json!({"services": [service("one", &server, &["text"])]}), &app(&json!({})));
    let serving = Serving::start(&polity);
    let piped = polity.spawn(&["run", "say it", "--data", "data"]);
    for (prompt, arriving) in [
        ("say it", "wonderful wonderful"),
        ("think it over", "(It may be blue.)"),
        ("hire somebody", "→ create_role"),
    ] {
        let shown = polity.spawn_on_terminal(&["run", prompt, "--data", "data"]);
        shown.stdout_wait(arriving);
    }
    server.wait_until(PATIENCE, |requests| requests.len() == 4);
    serving.call("POST /api/agents/root/stop", b"");
    let piped = piped.wait();
    let told = piped.stdout + &piped.stderr;
    assert!(!told.contains("wonderful"), "{told}");
}
