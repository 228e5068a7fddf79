//! An MCP server for a society: an editor or a desktop assistant gives root a task, follows it, answers questions,
//! reads artifacts and looks at agents.
//!
//! *JSON-RPC → [`server`] → [`tools`] or [`artifacts`] → `Society`.* The actions are in `tools`: plain functions over
//! plain types, from which the schemas are generated. The official SDK implements the protocol; only [`server`] uses
//! the SDK, because it changes fast. The server keeps no session: each request is independent, so a client does not
//! notice a restart of the daemon.
//!
//! This crate knows nothing about SQL, models, prompts or access control.

mod refusal;

mod artifacts;
// Circle: follow is one of the tools and returns their common output.
mod tools;

mod server;

pub use server::{StdioError, router, serve};
