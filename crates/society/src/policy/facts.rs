//! The facts about a tool call that the policy needs for its decision.

use crate::tool_group::{ServerGroups, ServerName, ToolGroup};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Whether a call changes anything outside the society.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// The call only reads. If one answer of a model contains several such calls, they run at the same time.
    Reads,
    /// The call may change something. If one answer of a model contains several such calls, they run one after
    /// another, in the order in which the model wrote them.
    Changes,
}

/// The prefix of a source that is an MCP server.
const SERVER_PREFIX: &str = "mcp:";

/// A place outside the society where content comes from. An agent that has read content from a source has *seen* the
/// source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The web.
    Web,
    /// An MCP server.
    Server(ServerName),
    /// The files of a workspace, if the person does not trust the workspace.
    Files,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web => f.write_str("web"),
            Self::Server(server) => write!(f, "{SERVER_PREFIX}{server}"),
            Self::Files => f.write_str("files"),
        }
    }
}

/// The error for a text that does not name a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be \"web\", \"files\", or \"mcp:\" and the name of a server")]
pub struct UnknownSource;

impl FromStr for Source {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<Self, UnknownSource> {
        match text {
            "web" => Ok(Self::Web),
            "files" => Ok(Self::Files),
            _ => {
                let server = text.strip_prefix(SERVER_PREFIX).and_then(ServerName::new);
                server.map(Self::Server).ok_or(UnknownSource)
            }
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// What separates a command from the rest of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Confinement {
    /// The command runs in its own Linux namespaces, without a network.
    Full,
    /// The command runs in its own namespaces, and reaches the network of the machine or a list of domains.
    FullWithNetwork,
    /// The command runs in the namespaces of the machine; only Landlock and seccomp restrict it.
    Partial,
    /// The command runs without a sandbox.
    None,
}

/// What a call reads, changes or runs, in as much detail as the policy needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The call acts only within the society, such as `create_role` or `send_message`.
    Society,
    /// The call reads files of the workspace.
    ReadsWorkspace,
    /// The call changes files of the workspace.
    ChangesWorkspace,
    /// The call runs a command.
    Command {
        /// The text that the shell runs.
        command: String,
        /// What separates the command of this call from the machine.
        confinement: Confinement,
    },
    /// The call sends a request over the web.
    Web {
        /// The host of the request; `None` if the call names no host, for example because it is a search.
        host: Option<String>,
        /// Whether the request can change something.
        effect: Effect,
    },
    /// The call uses a tool of an MCP server.
    Server {
        /// The server.
        server: ServerName,
        /// `Reads` if the server declares the tool with `readOnlyHint`.
        effect: Effect,
    },
    /// The call uses another tool that acts outside the society.
    Other(Effect),
}

impl Reach {
    /// Returns whether the call can change anything, in the workspace or elsewhere.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Society | Self::ReadsWorkspace => Effect::Reads,
            Self::ChangesWorkspace | Self::Command { .. } => Effect::Changes,
            Self::Web { effect, .. } | Self::Server { effect, .. } | Self::Other(effect) => *effect,
        }
    }

    /// Returns whether the call can change something outside the workspace. A command that runs in a full sandbox
    /// without a network cannot change anything there.
    pub fn changes_outside(&self) -> bool {
        match self {
            Self::Society | Self::ReadsWorkspace | Self::ChangesWorkspace => false,
            Self::Command { confinement, .. } => *confinement != Confinement::Full,
            Self::Web { effect, .. } | Self::Server { effect, .. } | Self::Other(effect) => {
                *effect == Effect::Changes
            }
        }
    }
}

/// The facts about one tool call that the policy needs for its decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// The name of the tool.
    pub tool: String,
    /// The group of the tool.
    pub group: ToolGroup,
    /// The name of the caller's role.
    pub role: String,
    /// What the call reaches.
    pub reach: Reach,
    /// The sources that the caller has seen in this task.
    pub seen: BTreeSet<Source>,
    /// The groups that the person has put MCP servers into. A rule may name such a group instead of a server.
    pub servers: ServerGroups,
}
