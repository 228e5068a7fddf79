//! The calls that the person allowed *always* or *for this task*.

use super::facts::{CallFacts, Confinement, Effect, Reach, Source};
use crate::tool_group::ServerName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A permission that the person gave for more than one call. The permission covers calls of the same tool by the same
/// role that reach the same thing, for example the same host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remembered {
    /// The name of the tool.
    pub tool: String,
    /// The name of the caller's role.
    pub role: String,
    /// What the call reached.
    pub thing: Thing,
    /// The sources that the caller had seen. The permission covers only callers that have seen no other sources.
    pub seen: BTreeSet<Source>,
}

/// What a remembered call reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Thing {
    /// The society.
    Society,
    /// Files of the workspace.
    Workspace {
        /// Whether the call changed files.
        effect: Effect,
    },
    /// A command.
    Command {
        /// The exact text of the command.
        command: String,
        /// What separated the command from the machine. The permission does not cover a weaker confinement.
        confinement: Confinement,
    },
    /// A web request.
    Web {
        /// The host, in the form in which hosts are compared.
        host: Option<String>,
        /// Whether the request could change something.
        effect: Effect,
    },
    /// A tool of an MCP server.
    Server {
        /// The server.
        server: ServerName,
        /// Whether the tool could change something.
        effect: Effect,
    },
    /// Another tool that acts outside the society.
    Other {
        /// Whether the call could change something.
        effect: Effect,
    },
}

impl Thing {
    fn of(reach: &Reach) -> Self {
        match reach {
            Reach::Society => Self::Society,
            Reach::ReadsWorkspace | Reach::ChangesWorkspace => Self::Workspace { effect: reach.effect() },
            Reach::Command { command, confinement } => {
                Self::Command { command: command.clone(), confinement: *confinement }
            }
            Reach::Web { host, effect } => {
                let host =
                    host.as_ref().map(|host| super::host::host_name(host).unwrap_or_else(|| host.clone()));
                Self::Web { host, effect: *effect }
            }
            Reach::Server { server, effect } => Self::Server { server: server.clone(), effect: *effect },
            Reach::Other(effect) => Self::Other { effect: *effect },
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Command { command, confinement },
                Self::Command { command: other, confinement: other_confinement },
            ) => command == other && other_confinement <= confinement,
            _ => self == other,
        }
    }
}

impl Remembered {
    /// Returns whether the permission covers a call.
    pub fn covers(&self, call: &CallFacts) -> bool {
        self.tool == call.tool
            && self.role == call.role
            && self.thing.covers(&Thing::of(&call.reach))
            && call.seen.is_subset(&self.seen)
    }
}

/// Makes the permission that is stored when the person allows this call *always* or *for this task*.
pub fn remember(call: &CallFacts) -> Remembered {
    let CallFacts { tool, role, reach, seen, group: _, servers: _ } = call;
    Remembered { tool: tool.clone(), role: role.clone(), thing: Thing::of(reach), seen: seen.clone() }
}
