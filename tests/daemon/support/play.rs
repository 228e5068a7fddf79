//! Scripts for societies: each role has a part, which is a sequence of steps. A step is a batch of tool calls.

use std::collections::BTreeMap;

use polity_tests::{Answer, Call, Conversation, Heard, Output, ScriptedServer, Sender};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::{home, json_lines, run};

/// A step is a function that returns one batch of calls. It returns `None` if the step must still wait for something.
pub(crate) type CallBatch = Box<dyn Fn(&Conversation) -> Option<Vec<Call>> + Send + Sync>;

/// The steps of an agent, and its answer after the last step. If a step must still wait for something, the agent
/// answers `…`.
struct Part {
    steps: Vec<CallBatch>,
    last_words: Box<dyn Fn(&Conversation) -> Answer + Send + Sync>,
}

/// The parts of a society, by the names of the roles. The part of root has the name `root`. Each answer depends only on
/// the request.
#[derive(Default)]
pub(crate) struct Play(BTreeMap<String, Part>);

/// The text that an agent says while it waits.
pub(crate) const WAITING: &str = "…";

impl Play {
    /// Adds a part. After its steps, the agent repeats the newest text from another agent. If no other agent has
    /// written yet, the agent answers `…` if it has hired somebody, and `done` if it has not.
    pub(crate) fn part(self, role: &str, steps: Vec<CallBatch>) -> Self {
        self.ending(role, steps, |asked| match newest_words(asked) {
            Some(said) => Answer::say(said),
            None if asked.has_called("spawn_agent_with_task") => Answer::say(WAITING),
            None => Answer::say("done"),
        })
    }

    /// Adds a part that ends with this answer.
    pub(crate) fn ending(
        mut self,
        role: &str,
        steps: Vec<CallBatch>,
        last_words: impl Fn(&Conversation) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let part = Part { steps, last_words: Box::new(last_words) };
        assert!(self.0.insert(role.to_owned(), part).is_none(), "{role} already has a part");
        self
    }

    /// Returns the script for a server.
    pub(crate) fn script(self) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
        move |asked| {
            let role = if asked.agent_id() == "root" { "root".to_owned() } else { asked.role_name() };
            let Some(part) = self.0.get(&role) else {
                return Answer::say(format!("{role} has no part"));
            };
            match part.steps.get(batches(asked)) {
                Some(step) => step(asked).map_or_else(|| Answer::say(WAITING), Answer::calls),
                None => (part.last_words)(asked),
            }
        }
    }

    /// Plays the society to its end with `--json`. Fails if the daemon sent an invalid request.
    #[track_caller]
    pub(crate) fn perform(self) -> Performed {
        self.perform_with(&json!({}))
    }

    /// Does the same as [`Play::perform`], but with these fields in `app.json`.
    #[track_caller]
    pub(crate) fn perform_with(self, app: &Value) -> Performed {
        let server = ScriptedServer::start(self.script());
        let polity = home(&server, app);
        let output = run(&polity, &["go", "--json"]).expect_code(0);
        server.assert_clean();
        Performed { lines: json_lines(&output.stdout), output, server, data: polity }
    }
}

/// A finished play.
pub(crate) struct Performed {
    /// The JSON lines that the run printed.
    pub(crate) lines: Vec<Value>,
    pub(crate) output: Output,
    /// The server, which has kept all requests.
    pub(crate) server: ScriptedServer,
    /// The home, whose data directory contains the database.
    pub(crate) data: polity_tests::Polity,
}

impl Performed {
    /// Returns the id of the first agent with this role that has called its model.
    #[track_caller]
    pub(crate) fn id(&self, role: &str) -> String {
        let requests = self.server.requests();
        let asked =
            requests.iter().map(|request| request.conversation()).find(|asked| asked.role_name() == role);
        asked.unwrap_or_else(|| panic!("{role} made no request\n{}", self.output.stdout)).agent_id()
    }

    /// Returns the requests of a role, oldest first; `root` stands for root.
    pub(crate) fn asked_by(&self, role: &str) -> Vec<Conversation> {
        let is_it = |asked: &Conversation| asked.role_name() == role || asked.agent_id() == role;
        self.server.requests().iter().map(|request| request.conversation()).filter(is_it).collect()
    }

    /// Returns the last request of a role, which contains the agent's whole history.
    #[track_caller]
    pub(crate) fn last_of(&self, role: &str) -> Conversation {
        self.asked_by(role).pop().unwrap_or_else(|| panic!("{role} made no request\n{}", self.output.stdout))
    }
}

/// Returns how many batches of calls the agent has made.
fn batches(asked: &Conversation) -> usize {
    asked.messages().iter().filter(|message| message["tool_calls"].is_array()).count()
}

/// Returns the newest text from another agent, without the lines that the system adds.
pub(crate) fn newest_words(asked: &Conversation) -> Option<String> {
    let mut said = asked.heard().into_iter().rev().filter(|heard| matches!(heard.from, Sender::Agent { .. }));
    said.next().map(|heard| words(&heard))
}

/// Returns the text of a message. Leaves out two lines that the system adds: the reply hint and the sender's
/// self-introduction.
pub(crate) fn words(heard: &Heard) -> String {
    let is_of_system = |line: &&str| line.starts_with("如需回复") || line.starts_with("（自我介绍）");
    heard.text.lines().filter(|line| !is_of_system(line)).collect::<Vec<_>>().join("\n")
}

/// Returns a step with one call. The step never waits.
pub(crate) fn step(make: impl Fn(&Conversation) -> Call + Send + Sync + 'static) -> CallBatch {
    Box::new(move |asked| Some(vec![make(asked)]))
}

/// Returns a step with several calls. The step never waits.
pub(crate) fn batch(make: impl Fn(&Conversation) -> Vec<Call> + Send + Sync + 'static) -> CallBatch {
    Box::new(move |asked| Some(make(asked)))
}

/// Returns a step with one call. The step waits until the agent has received a message with these words.
pub(crate) fn after(
    heard: &'static str,
    make: impl Fn(&Conversation) -> Call + Send + Sync + 'static,
) -> CallBatch {
    Box::new(move |asked| hears(asked, heard).then(|| vec![make(asked)]))
}

/// Returns whether the agent has received a message with these words.
pub(crate) fn hears(asked: &Conversation, words: &str) -> bool {
    asked.heard().iter().any(|heard| heard.text.contains(words))
}

pub(crate) fn role(name: &str) -> CallBatch {
    role_with(name, json!({}))
}

/// Returns a step that creates a role with additional fields.
pub(crate) fn role_with(name: &str, more: Value) -> CallBatch {
    let mut arguments = json!({"name": name, "rolePrompt": format!("You are a {name}.")});
    for (key, value) in more.as_object().expect("fields") {
        arguments[key] = value.clone();
    }
    step(move |_| Call::new("create_role", arguments.clone()))
}

/// Returns a step that hires an agent for a role, with a standard brief and a first message.
pub(crate) fn spawn(role: &'static str) -> CallBatch {
    spawn_with(role, |_| brief("do what you are asked"))
}

/// Returns a step that hires an agent for a role with this brief and a first message.
pub(crate) fn spawn_with(
    role: &'static str,
    brief: impl Fn(&Conversation) -> Value + Send + Sync + 'static,
) -> CallBatch {
    step(move |asked| {
        let arguments = json!({"roleId": role, "taskBrief": brief(asked), "initialMessage": "begin"});
        Call::new("spawn_agent_with_task", arguments)
    })
}

/// Returns a call that sends a message.
pub(crate) fn send(to: impl Into<Value>, payload: Value) -> Call {
    Call::new("send_message", json!({"to": to.into(), "payload": payload}))
}

/// Returns the id of the newest introduction request that the agent has received.
#[track_caller]
pub(crate) fn request_id(asked: &Conversation) -> String {
    let heard = asked.heard();
    let kinds = heard.iter().rev().map(|heard| heard.kind.as_str());
    let id = kinds
        .filter_map(|kind| kind.strip_prefix("（消息类型）请求 introduction_request，request_id: "))
        .next();
    id.unwrap_or_else(|| panic!("there is no introduction request in {heard:#?}")).to_owned()
}

/// Returns the id of the contact with this role, from the contact list in the system message.
#[track_caller]
pub(crate) fn contact(asked: &Conversation, role: &str) -> String {
    let system = asked.system();
    let line =
        system.lines().rev().find_map(|line| line.strip_prefix("- ")?.split_once(&format!("｜{role}｜")));
    line.unwrap_or_else(|| panic!("{role} is not a contact in\n{system}")).0.to_owned()
}

/// Returns the `target_agent` field of the newest introduction that the agent has received.
#[track_caller]
pub(crate) fn introduced(asked: &Conversation) -> Value {
    let heard = asked.heard();
    let line = heard
        .iter()
        .rev()
        .flat_map(|heard| heard.text.lines())
        .find_map(|line| line.strip_prefix("target_agent: "));
    let line = line.unwrap_or_else(|| panic!("there is no introduction in {heard:#?}"));
    serde_json::from_str(line).expect("JSON")
}
