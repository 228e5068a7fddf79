//! The client of the Model Context Protocol (MCP): keeps configured servers running and offers their tools to agents.
//!
//! [`Servers`] runs a Tokio task for each server. The task starts the server ([`Launcher`]) or connects to it over
//! HTTP, reads its list of tools, and starts it again after a pause when the connection ends. The tools are offered
//! as a [`polity_hands::table::Toolbox`]. [`Bounds`] limits everything that a server sends. So a server that dies,
//! hangs, sends too much or sends nonsense makes its own calls fail, and disturbs nothing else.
//!
//! This crate must not know the registry (the loaded configuration), SQL, models, or who may use which tool.

mod backoff;
mod bounds;
mod call;
mod config;
mod connect;
mod errors;
mod launch;
mod links;
mod list;
mod names;
mod pace;
mod plain;
mod result;
mod run;
mod server;
mod servers;
mod stderr;
mod text;
mod tool;
mod tree;
mod wire;

#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use config::{Config, Http, Launch, Process, Sandbox, Secret};
pub use launch::{Launcher, Started, Tree};
pub use plain::Plain;
pub use polity_hands::server_state::{ServerState, Standing};
pub use servers::Servers;
