//! Scripts in which each agent has a part: what it calls, one step after the other.

use std::collections::BTreeMap;

use polity_tests::{Answer, Call, Conversation, Heard, Output, ScriptedServer, Sender};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::{home, json_lines, run};

/// One batch of calls; `None` while what it needs is not there yet.
pub(crate) type Step = Box<dyn Fn(&Conversation) -> Option<Vec<Call>> + Send + Sync>;

/// A part: steps, then last words. Between two steps, and where a step must wait, the agent says `…`.
struct Part {
    steps: Vec<Step>,
    last_words: Box<dyn Fn(&Conversation) -> Answer + Send + Sync>,
}

/// The parts of a society, by role; `root` plays root. It decides by the request alone.
#[derive(Default)]
pub(crate) struct Play(BTreeMap<String, Part>);

/// What is said while somebody waits.
pub(crate) const WAITING: &str = "…";

impl Play {
    /// Adds a part that ends with the newest words of another agent, or `done` where nobody was asked.
    pub(crate) fn part(self, role: &str, steps: Vec<Step>) -> Self {
        self.ending(role, steps, |asked| match newest_words(asked) {
            Some(said) => Answer::say(said),
            None if asked.has_called("spawn_agent_with_task") => Answer::say(WAITING),
            None => Answer::say("done"),
        })
    }

    /// Adds a part with last words of its own.
    pub(crate) fn ending(
        mut self,
        role: &str,
        steps: Vec<Step>,
        last_words: impl Fn(&Conversation) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let part = Part { steps, last_words: Box::new(last_words) };
        assert!(self.0.insert(role.to_owned(), part).is_none(), "{role} has a part");
        self
    }

    /// The script.
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

    /// Plays it to the end, with `--json`; every request was sound.
    #[track_caller]
    pub(crate) fn perform(self) -> Performed {
        self.perform_with(&json!({}))
    }

    /// Plays it with these fields in `app.json`.
    #[track_caller]
    pub(crate) fn perform_with(self, app: &Value) -> Performed {
        let server = ScriptedServer::start(self.script());
        let polity = home(&server, app);
        let output = run(&polity, &["go", "--json"]).expect_code(0);
        server.assert_clean();
        Performed { lines: json_lines(&output.stdout), output, server, data: polity }
    }
}

/// A play that was played.
pub(crate) struct Performed {
    /// What was printed.
    pub(crate) lines: Vec<Value>,
    /// The process.
    pub(crate) output: Output,
    /// The server, with all requests.
    pub(crate) server: ScriptedServer,
    /// The home, with the database.
    pub(crate) data: polity_tests::Polity,
}

impl Performed {
    /// The id of the agent of a role.
    #[track_caller]
    pub(crate) fn id(&self, role: &str) -> String {
        let requests = self.server.requests();
        let asked =
            requests.iter().map(|request| request.conversation()).find(|asked| asked.role_name() == role);
        asked.unwrap_or_else(|| panic!("{role} asked nothing\n{}", self.output.stdout)).agent_id()
    }

    /// The requests of a role, oldest first; `root` is root's.
    pub(crate) fn asked_by(&self, role: &str) -> Vec<Conversation> {
        let is_it = |asked: &Conversation| asked.role_name() == role || asked.agent_id() == role;
        self.server.requests().iter().map(|request| request.conversation()).filter(is_it).collect()
    }

    /// The last request of a role: all that it ever heard and did.
    #[track_caller]
    pub(crate) fn last_of(&self, role: &str) -> Conversation {
        self.asked_by(role).pop().unwrap_or_else(|| panic!("{role} asked nothing\n{}", self.output.stdout))
    }
}

/// How many batches of calls the agent has made.
fn batches(asked: &Conversation) -> usize {
    asked.messages().iter().filter(|message| message["tool_calls"].is_array()).count()
}

/// What another agent said last, without the lines of the system.
pub(crate) fn newest_words(asked: &Conversation) -> Option<String> {
    let mut said = asked.heard().into_iter().rev().filter(|heard| matches!(heard.from, Sender::Agent { .. }));
    said.next().map(|heard| words(&heard))
}

/// What somebody said, without the hint and the self-introduction.
pub(crate) fn words(heard: &Heard) -> String {
    let is_of_system = |line: &&str| line.starts_with("如需回复") || line.starts_with("（自我介绍）");
    heard.text.lines().filter(|line| !is_of_system(line)).collect::<Vec<_>>().join("\n")
}

/// A step that can always be made.
pub(crate) fn step(make: impl Fn(&Conversation) -> Call + Send + Sync + 'static) -> Step {
    Box::new(move |asked| Some(vec![make(asked)]))
}

/// A step of several calls.
pub(crate) fn batch(make: impl Fn(&Conversation) -> Vec<Call> + Send + Sync + 'static) -> Step {
    Box::new(move |asked| Some(make(asked)))
}

/// A step that waits until the agent has heard these words from somebody.
pub(crate) fn after(
    heard: &'static str,
    make: impl Fn(&Conversation) -> Call + Send + Sync + 'static,
) -> Step {
    Box::new(move |asked| hears(asked, heard).then(|| vec![make(asked)]))
}

/// Whether the agent has heard these words from somebody.
pub(crate) fn hears(asked: &Conversation, words: &str) -> bool {
    asked.heard().iter().any(|heard| heard.text.contains(words))
}

/// Makes a role.
pub(crate) fn role(name: &str) -> Step {
    role_with(name, json!({}))
}

/// Makes a role with more than its name and its prompt.
pub(crate) fn role_with(name: &str, more: Value) -> Step {
    let mut arguments = json!({"name": name, "rolePrompt": format!("You are a {name}.")});
    for (key, value) in more.as_object().expect("fields") {
        arguments[key] = value.clone();
    }
    step(move |_| Call::new("create_role", arguments.clone()))
}

/// Hires an agent for a role that was made, with a first message.
pub(crate) fn spawn(role: &'static str) -> Step {
    spawn_with(role, |_| brief("do what you are asked"))
}

/// Hires an agent with a brief.
pub(crate) fn spawn_with(
    role: &'static str,
    brief: impl Fn(&Conversation) -> Value + Send + Sync + 'static,
) -> Step {
    step(move |asked| {
        let arguments = json!({"roleId": role, "taskBrief": brief(asked), "initialMessage": "begin"});
        Call::new("spawn_agent_with_task", arguments)
    })
}

/// A message.
pub(crate) fn send(to: impl Into<Value>, payload: Value) -> Call {
    Call::new("send_message", json!({"to": to.into(), "payload": payload}))
}

/// The id that the newest request for an introduction in a history shows.
#[track_caller]
pub(crate) fn request_id(asked: &Conversation) -> String {
    let heard = asked.heard();
    let kinds = heard.iter().rev().map(|heard| heard.kind.as_str());
    let id = kinds
        .filter_map(|kind| kind.strip_prefix("（消息类型）请求 introduction_request，request_id: "))
        .next();
    id.unwrap_or_else(|| panic!("no request for an introduction in {heard:#?}")).to_owned()
}

/// The id of a contact, by its role, as the list in the system message shows it.
#[track_caller]
pub(crate) fn contact(asked: &Conversation, role: &str) -> String {
    let system = asked.system();
    let line =
        system.lines().rev().find_map(|line| line.strip_prefix("- ")?.split_once(&format!("｜{role}｜")));
    line.unwrap_or_else(|| panic!("{role} is no contact in\n{system}")).0.to_owned()
}

/// The id of whoever introduces are told of last.
#[track_caller]
pub(crate) fn introduced(asked: &Conversation) -> Value {
    let heard = asked.heard();
    let line = heard
        .iter()
        .rev()
        .flat_map(|heard| heard.text.lines())
        .find_map(|line| line.strip_prefix("target_agent: "));
    let line = line.unwrap_or_else(|| panic!("no introduction in {heard:#?}"));
    serde_json::from_str(line).expect("JSON")
}
