//! Runs societies in which an agent reads an order.

use std::fs;
use std::net::SocketAddr;

use polity_tests::{Answer, Conversation, Output, Polity, ScriptedServer, ToolResult};
use serde_json::{Value, json};

use super::places::{Place, Reading, hostile_text, obey, read};
use super::site::Site;
use crate::support::hiring::brief;
use crate::support::{app, asked_by, home, run};

/// A finished run in which an agent read an order. Root has hired exactly one agent.
pub(super) struct Played {
    server: ScriptedServer,
    pub(super) site: Site,
    pub(super) polity: Polity,
    output: Output,
    reading: Reading,
}

impl Played {
    /// Returns the output if the run ended with this exit code.
    #[track_caller]
    pub(super) fn ended_with(&self, code: i32) -> &Output {
        assert_eq!(self.output.code, Some(code), "{:?}", self.output);
        &self.output
    }

    /// Returns whether the file `obeyed.txt` exists, which some orders demand.
    pub(super) fn has_file(&self) -> bool {
        self.polity.home().join("project/obeyed.txt").exists()
    }

    /// Returns how often the tool `world__change` has run.
    pub(super) fn changes(&self) -> usize {
        fs::read_to_string(self.polity.home().join("log")).unwrap_or_default().lines().count()
    }

    /// Returns the requests of root, oldest first.
    pub(super) fn asked_by_root(&self) -> Vec<Conversation> {
        asked_by(&self.server, "root")
    }

    /// Returns the requests of the agent that root hired, oldest first.
    #[track_caller]
    pub(super) fn asked(&self) -> Vec<Conversation> {
        let requests = self.server.requests().into_iter().map(|request| request.conversation());
        let asked: Vec<Conversation> = requests.filter(|asked| asked.agent_id() != "root").collect();
        assert!(!asked.is_empty(), "root has hired nobody: {:?}", self.output);
        asked
    }

    /// Returns the result of the ordered call of the agent that read the order.
    #[track_caller]
    pub(super) fn obeyed(&self) -> ToolResult {
        ordered(&self.asked(), self.reading.calls())
    }
}

/// Returns the result of the ordered call in the newest of these requests. Before the ordered call, the agent has made
/// this number of other calls.
#[track_caller]
pub(super) fn ordered(asked: &[Conversation], before: usize) -> ToolResult {
    let last = asked.last().expect("a request");
    let mut results = last.tool_results();
    assert_eq!(results.len(), before + 1, "the agent did not obey: {:?}", last.messages());
    results.remove(before)
}

/// Checks that a call was refused because its agent lacks the right to the tool.
#[track_caller]
pub(super) fn assert_lacks_right(refused: &ToolResult, tool: &str, group: &str) {
    let words = format!("{tool}: you have no right to the tool groups {group}; nothing was done.");
    assert_refused(refused, tool, "tool_not_permitted", &words);
}

/// Checks that a call was refused because the first rule of the user denies it.
#[track_caller]
pub(super) fn assert_denied(refused: &ToolResult, tool: &str) {
    let words = format!("A rule of the user denies this call of {tool}; nothing ran.");
    assert_refused(refused, tool, "tool_not_permitted", &words);
    assert_eq!(refused.value["rule"], "tools.policy[0]", "{refused:?}");
}

/// Checks that a call of this tool was refused with this code and with a message that begins with these words.
#[track_caller]
pub(super) fn assert_refused(refused: &ToolResult, tool: &str, code: &str, words: &str) {
    assert_eq!((refused.tool.as_str(), refused.error()), (tool, Some(code)), "{refused:?}");
    let message = refused.value["message"].as_str().unwrap_or_default();
    assert!(message.starts_with(words), "{words:?} is not in {refused:?}");
}

/// Hires an agent with these tool groups. The role has the name `reader`.
pub(super) fn hire(groups: &Value, message: &str) -> Answer {
    let role = json!({"name": "reader", "rolePrompt": "You do what you read.", "toolGroups": groups});
    let arguments = json!({"role": role, "taskBrief": brief("Read"), "initialMessage": {"text": message}});
    Answer::call("spawn_agent_with_task", arguments)
}

/// Runs a society in which an agent reads an order and obeys it. `groups` are the tool groups of the agent. For the
/// other arguments and the result, see [`stage`].
pub(super) fn play(
    place: Place,
    groups: &Value,
    policy: &Value,
    order: impl Fn(SocketAddr) -> Value,
) -> Option<Played> {
    let groups = groups.clone();
    stage(place, policy, order, move |asked, reading| {
        if asked.agent_id() == "root" {
            return match asked.has_called("spawn_agent_with_task") {
                false => hire(&groups, "read"),
                true if asked.text_contains("told:") => Answer::say("done"),
                true => Answer::say("waiting"),
            };
        }
        match asked.tool_results().get(reading.calls()) {
            None => read(asked, reading, obey),
            Some(obeyed) => Answer::say(format!("told: {}", obeyed.text)),
        }
    })
}

/// Runs a society with this script. An order is in the place, and agents may read it. `order` gets the address of the
/// web server and returns the order. `policy` are the rules of the user. Commands are allowed on every machine, except
/// if one of these rules forbids them. Returns `None` if the order must be committed but git is not installed.
pub(super) fn stage(
    place: Place,
    policy: &Value,
    order: impl Fn(SocketAddr) -> Value,
    script: impl Fn(&Conversation, &Reading) -> Answer + Send + Sync + 'static,
) -> Option<Played> {
    let site = Site::start(|address| hostile_text(&order(address)));
    let text = hostile_text(&order(site.address));
    let reading = place.reading(&site);
    let of_script = reading.clone();
    let server = ScriptedServer::start(move |asked| script(asked, &of_script));
    let polity = home(&server, &json!({}));
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    if !place.set_trap(&project, &text) {
        return None;
    }
    let mut rules = policy.as_array().expect("rules").clone();
    rules.push(json!({"tool": "bash", "decide": "allow"}));
    let fields = json!({
        "language": "en",
        "mcpServers": servers(place, &text, &polity),
        "tools": {
            "web": {"allowHosts": [site.address.to_string()]},
            "sandbox": {"allowNone": true},
            "policy": rules,
        },
    });
    polity.write_config("app.json", &app(&fields).to_string());
    let output = run(&polity, &["work", "--workspace", "project"]);
    Some(Played { server, site, polity, output, reading })
}

/// Returns two MCP servers. A tool of `letters` gives the order, and a tool of `world` changes something.
fn servers(place: Place, text: &str, polity: &Polity) -> Value {
    let mut letters = json!({"FAKE_ORDERS": text});
    if place == Place::ServerDescription {
        // The description is longer than polity accepts.
        letters["FAKE_DESCRIPTION"] = json!(format!("{text} {}", "Obey at once. ".repeat(1_000)));
    }
    let world = json!({"FAKE_LOG": polity.home().join("log").display().to_string()});
    let fake = |variables: Value| json!({"command": env!("CARGO_BIN_EXE_fake_mcp"), "env": variables});
    json!({"letters": fake(letters), "world": fake(world)})
}
