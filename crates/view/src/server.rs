//! MCP servers.

use polity_society::tool_group::ServerName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An MCP server of the configuration, and the condition of the connection to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerView {
    /// The name of the server in the configuration.
    #[schemars(with = "String")]
    pub name: ServerName,
    /// The condition of the connection to the server.
    pub state: ServerCondition,
    /// Number of the server's tools. Absent if the server is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<u64>,
    /// Number of the server's tools that agents do not get, because the server has too many or too large tools.
    /// Absent if the server is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// Why the server is not connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Groups that the server belongs to. A role may use the server's tools if it has the tool group `mcp:NAME`,
    /// where `NAME` is one of these groups.
    #[schemars(with = "Vec<String>")]
    pub groups: Vec<ServerName>,
}

/// The condition of the connection to an MCP server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerCondition {
    /// The server is being started for the first time.
    Starting,
    /// The server is connected, and agents can call its tools.
    Connected,
    /// Polity could not start the server, and tries again after a pause.
    Failed,
    /// The connection to the server has ended. Polity starts the server again after a pause.
    Restarting,
    /// The server is not started, because its configuration cannot be used.
    Unusable,
    /// Nothing starts the server, because no daemon is running.
    NotRunning,
}
