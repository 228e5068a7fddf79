//! An MCP server for a society. Its clients are programs such as an editor or a desktop assistant. A client gives root
//! a task, follows the task, answers questions, reads artifacts and looks at agents.
//!
//! *JSON-RPC → [`server`] → [`tools`] or [`artifacts`] → `Society`.* The actions are in `tools`. They are plain
//! functions over plain types, and the schemas are generated from these types. The official SDK implements the
//! protocol. The SDK changes fast, so only [`server`] uses it. The server keeps no state between requests, so a client
//! does not notice a restart of the daemon. There is one exception: a client that can ask its user gets a session, and
//! sends the user's answers through it. If a restart ends the session, the server creates the session again.
//!
//! This crate knows nothing about SQL, models, prompts or access control.

mod refusal;

mod approval;
mod artifacts;
// Circle: `tools` uses functions of `follow`, and `follow` returns the types of output that `tools` defines.
mod tools;

mod server;

pub use server::{StdioError, router, serve};
