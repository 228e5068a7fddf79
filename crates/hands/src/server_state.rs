//! The state of the MCP servers, for the person.

use polity_society::tool_group::ServerName;

/// The state of one MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// The name of the server in the configuration.
    pub name: ServerName,
    /// The state of the connection.
    pub standing: Standing,
}

/// The state of the connection to an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The server is being started for the first time.
    Starting,
    /// The server is connected, and its tools are known.
    Connected {
        /// Number of tools that agents can get.
        tools: usize,
        /// Number of tools that agents cannot get. Tools are left out if the server has too many tools, or if the
        /// definitions of the tools are too large.
        left_out: usize,
    },
    /// Every attempt to start the server has failed since it was configured. Polity tries again after a pause.
    Failed {
        /// Why the last start failed.
        why: String,
    },
    /// The connection was lost. Polity tries to start the server again after a pause.
    Restarting {
        /// Why the connection ended, or why the last start failed.
        why: String,
    },
    /// The configuration of the server cannot be used, so it is not started.
    Unusable {
        /// What is wrong with the configuration.
        why: String,
    },
}
