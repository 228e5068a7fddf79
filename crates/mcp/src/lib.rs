//! An MCP server for a society: an editor or a desktop assistant gives root a task, follows it, answers questions,
//! reads artifacts and looks at agents.
//!
//! *JSON-RPC → [`server`] → [`tools`] or [`artifacts`] → `Society`.* The actions are in `tools`: plain functions over
//! plain types, from which the schemas are generated. The official SDK implements the protocol. The SDK changes fast,
//! so only [`server`] uses it. The server keeps no session: each request is independent, so a client does not notice a
//! restart of the daemon.
//!
//! This crate knows nothing about SQL, models, prompts or access control.

mod refusal;

mod artifacts;
// Circle: `tools` calls `follow`, and `follow` returns the type of output that `tools` defines.
mod tools;

mod server;

pub use server::{StdioError, router, serve};
