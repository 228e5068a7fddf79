//! Helper functions for all tests of the daemon.

pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod hiring;
pub(crate) mod play;
pub(crate) mod router;
pub(crate) mod serving;

use polity_tests::{Answer, Conversation, Output, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

/// Returns a service at a scripted server. Its model takes these types of content, and calls tools.
pub(crate) fn service(id: &str, server: &ScriptedServer, input: &[&str]) -> Value {
    json!({
        "id": id,
        "baseURL": server.base_url(),
        "model": format!("{id}-model"),
        "capabilities": {"input": input, "output": ["text", "tool_calling"]},
    })
}

/// Returns an `app.json` with these fields. All pauses are a few milliseconds, so that the tests need not wait.
/// `fields` can contain other values for the pauses.
pub(crate) fn app(fields: &Value) -> Value {
    let mut app = json!({
        "discover": false,
        "shutdownGraceMs": 1,
        "retry": {"maxAttempts": 3, "baseDelayMs": 1, "maxDelayMs": 2},
    });
    for (name, value) in fields.as_object().expect("fields") {
        app[name] = value.clone();
    }
    app
}

/// Creates a home whose only service takes these types of content.
pub(crate) fn home_with(server: &ScriptedServer, input: &[&str]) -> Polity {
    Polity::new(&json!({"services": [service("one", server, input)]}), &app(&json!({})))
}

/// Creates a home whose only service is a text model, with these fields in `app.json`.
pub(crate) fn home(server: &ScriptedServer, fields: &Value) -> Polity {
    Polity::new(&json!({"services": [service("one", server, &["text"])]}), &app(fields))
}

/// Raises the limit of open files, so that this process can have `many` open connections.
pub(crate) fn allow_connections(many: u64) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let enough = many + 500;
    if limit.current.is_some_and(|current| current < enough) {
        let wanted = rustix::process::Rlimit { current: Some(enough), ..limit };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted).expect("enough descriptors");
    }
}

/// Starts `polity run` on the home's data directory.
pub(crate) fn start(polity: &Polity, arguments: &[&str]) -> Running {
    polity.spawn(&[&["run", "--data", "data"], arguments].concat())
}

/// Runs `polity run` on the home's data directory to its end.
#[track_caller]
pub(crate) fn run(polity: &Polity, arguments: &[&str]) -> Output {
    start(polity, arguments).wait()
}

/// Returns the level of the sandbox that this machine gives, as the doctor names it.
#[track_caller]
pub(crate) fn sandbox_level(polity: &Polity) -> String {
    let told = polity.run(&["doctor", "--offline", "--data", "data"]).stdout;
    let (_, level) = told.split_once("level `").unwrap_or_else(|| panic!("no level in {told}"));
    level.split('`').next().expect("a level").to_owned()
}

/// Parses the objects that `--json` printed.
#[track_caller]
pub(crate) fn json_lines(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
        .collect()
}

/// Returns the objects that are events of this kind.
pub(crate) fn events<'l>(lines: &'l [Value], event: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

/// Returns the messages to the user, oldest first.
pub(crate) fn letters(lines: &[Value]) -> Vec<&Value> {
    events(lines, "message_accepted").into_iter().filter(|message| message["to"] == "user").collect()
}

/// Returns a call that changes nothing. The calls alternate between two tools, because the daemon stops a model that
/// repeats the same call.
pub(crate) fn another_call(asked: &Conversation) -> Answer {
    let tool = if asked.tool_results().len().is_multiple_of(2) { "list_contacts" } else { "list_artifacts" };
    Answer::call(tool, json!({}))
}

/// Answers with a text, with reasoning or with a call. This depends on the newest message. The server stops in the
/// middle of each answer and keeps the connection open. The answer is never complete, so a client can show only the
/// part that has arrived.
pub(crate) fn half_an_answer(asked: &Conversation) -> Answer {
    let wanted = asked.last_user_text();
    let whole = if wanted.contains("say it") {
        Answer::say("wonderful ".repeat(30))
    } else if wanted.contains("think it over") {
        Answer::nothing().and_field("reasoning_content", json!("It may be blue."))
    } else {
        let prompt = "You are a worker. ".repeat(30);
        Answer::call("create_role", json!({"name": "worker", "rolePrompt": prompt}))
    };
    whole.stuck()
}

/// Returns the requests of one agent, oldest first.
pub(crate) fn asked_by(server: &ScriptedServer, agent: &str) -> Vec<Conversation> {
    let requests = server.requests().into_iter();
    requests.map(|request| request.conversation()).filter(|asked| asked.agent_id() == agent).collect()
}

/// Returns the newest request that the server received.
#[track_caller]
pub(crate) fn last_asked(server: &ScriptedServer) -> Conversation {
    server.requests().last().expect("a request").conversation()
}

/// Returns the text of a message, with several text parts joined by line breaks.
pub(crate) fn text_of(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// Returns the artifact references in a text, in order and without duplicates.
pub(crate) fn references(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("artifact:") {
        let id: String =
            text[at + "artifact:".len()..].chars().take_while(char::is_ascii_alphanumeric).collect();
        let reference = format!("artifact:{id}");
        if !found.contains(&reference) {
            found.push(reference);
        }
    }
    found
}
