//! Scripts in which root hires one agent, and parts of such scripts.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use polity_tests::{Answer, Conversation, Output, Polity, Sender, ToolResult};
use serde_json::{Value, json};

use crate::support::start;

/// Maximum time for a test to open its gate. Before that, a test may begin a thousand turns.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// A gate at which a script waits until the test opens the gate.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Opens the gate for ever: all callers of [`Gate::pass`] go on.
    pub(crate) fn open(&self) {
        let (is_open, changed) = &*self.0;
        *is_open.lock().expect("no panic before") = true;
        changed.notify_all();
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.0.0.lock().expect("no panic before")
    }

    /// Waits until the gate is open; fails after [`LONGEST_WAIT`].
    pub(crate) fn pass(&self) {
        let (is_open, changed) = &*self.0;
        let closed = is_open.lock().expect("no panic before");
        let waited = changed.wait_timeout_while(closed, LONGEST_WAIT, |is_open| !*is_open);
        assert!(*waited.expect("no panic before").0, "nobody opened the gate");
    }

    /// Runs `polity run` to its end. Opens the gate when the command has printed a line with this text.
    #[track_caller]
    pub(crate) fn open_after(&self, text: &str, polity: &Polity, arguments: &[&str]) -> Output {
        let running = start(polity, arguments);
        running.stdout_line(text);
        self.open();
        running.wait()
    }
}

/// Returns a brief with only the required fields.
pub(crate) fn brief(objective: &str) -> Value {
    json!({
        "objective": objective,
        "constraints": [],
        "inputs": "the first message",
        "outputs": "one line of text",
        "completion_criteria": "the line is said",
    })
}

/// Returns the next call that root needs to hire an agent: it creates the role, then hires with `message` as the
/// first message. Returns `None` if the agent is hired.
pub(crate) fn hire(asked: &Conversation, role: &str, message: &str) -> Option<Answer> {
    let make =
        || Answer::call("create_role", json!({"name": role, "rolePrompt": format!("You are a {role}.")}));
    let Some(made) = find(asked, "create_role", |result| result.value["name"] == role) else {
        return Some(make());
    };
    if hired(asked, role).is_some() {
        return None;
    }
    let arguments = json!({
        "roleId": made.value["id"],
        "taskBrief": brief(&format!("be a {role}")),
        "initialMessage": message,
    });
    Some(Answer::call("spawn_agent_with_task", arguments))
}

/// Returns the id of the agent that was hired for a role.
pub(crate) fn hired(asked: &Conversation, role: &str) -> Option<String> {
    let is_of_role = |result: &ToolResult| result.value["roleName"] == role;
    let hired = find(asked, "spawn_agent_with_task", is_of_role)
        .or_else(|| find(asked, "spawn_agent", is_of_role))?;
    hired.value["id"].as_str().map(str::to_owned)
}

fn find(asked: &Conversation, tool: &str, is_it: impl Fn(&ToolResult) -> bool) -> Option<ToolResult> {
    asked.results_of(tool).into_iter().find(is_it)
}

/// Returns the texts of all messages in a request that have an agent as their sender. Leaves out the reply hint, a line
/// of the system that tells the receiver how to answer.
pub(crate) fn heard_from_agents(asked: &Conversation) -> Vec<String> {
    let heard = asked.heard().into_iter();
    let from_agents = heard.filter(|heard| matches!(heard.from, Sender::Agent { .. }));
    from_agents
        .map(|heard| {
            let lines: Vec<&str> = heard.text.lines().filter(|line| !line.starts_with("如需回复")).collect();
            lines.join("\n")
        })
        .collect()
}

/// A script in which root hires one worker, waits, and passes on the worker's answer. `work` plays the worker.
pub(crate) fn boss_and_worker(
    work: impl Fn(&Conversation) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| {
        if asked.role_name() == "worker" {
            return work(asked);
        }
        if let Some(answer) = hire(asked, "worker", "please work") {
            return answer;
        }
        match heard_from_agents(asked).pop() {
            Some(said) => Answer::say(format!("the worker says: {said}")),
            None => Answer::say("one moment"),
        }
    }
}
