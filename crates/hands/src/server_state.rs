//! How an MCP server is doing.

use polity_society::tool_group::ServerName;

/// How an MCP server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The name of the server in the configuration.
    pub name: ServerName,
    /// How it is doing.
    pub standing: Standing,
}

/// How an MCP server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The server is being started for the first time.
    Starting,
    /// The server is connected.
    Connected {
        /// Number of its tools.
        tools: usize,
        /// Number of tools that agents do not get, because their number or size is above a bound.
        left_out: usize,
    },
    /// The server has never been connected since it was configured. It is tried again after a pause.
    Failed {
        /// Why the last start failed.
        why: String,
    },
    /// The server was connected, and is started again after a pause.
    Restarting {
        /// Why the connection ended, or why the last start failed.
        why: String,
    },
    /// The server is not started, because its configuration cannot be used.
    Unusable {
        /// What is wrong.
        why: String,
    },
}
