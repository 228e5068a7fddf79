//! An MCP server for a society: an editor or a desktop assistant gives root a task, follows it, answers questions,
//! reads artifacts and looks at agents.
//!
//! *JSON-RPC → [`server`] → [`tools`] or [`artifacts`] → `Society`.* The actions are in `tools`: plain functions over
//! plain types, from which the schemas are generated. The official SDK implements the protocol. The SDK changes fast,
//! so only [`server`] uses it. The server keeps no state between requests, so a client does not notice a restart of
//! the daemon. Only a client that can ask its user gets a session, through which it sends the user's answers. If a
//! restart ends the session, the server creates the session again.
//!
//! This crate knows nothing about SQL, models, prompts or access control.

mod refusal;

mod approval;
mod artifacts;
// Circle: `tools` uses functions of `follow`, and `follow` returns the types of output that `tools` defines.
mod tools;

mod server;

pub use server::{StdioError, router, serve};
