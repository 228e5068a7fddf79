//! Tools that act outside the society: on the files of a workspace, with commands, on the web, on MCP servers.
//!
//! The runtime records a call and asks this crate to act. It finds the [`tool::Tool`] by its name in [`table::Hands`],
//! checks the caller's right to the tool's group, commits that the call starts, and then runs it with an
//! [`call::Invocation`]. The tool returns an [`call::Output`]: text or JSON, and any number of files, which the runtime
//! stores as artifacts and routes to the model like every other content.
//!
//! [`tool`], [`call`], [`table`] and [`arguments`] are the seam: whatever implements a tool needs only these. [`places`]
//! opens the caller's workspace. The crates `files` and `workspaces` know the files and the worktrees, `sandbox` runs the
//! commands, and `web` sends the requests.
//!
//! This crate must not know SQL, models, turns or messages. It does not decide who may do what.

pub mod arguments;
pub mod call;
pub mod command;
pub mod deferred;
pub mod files;
pub mod merge_workspace;
pub mod places;
pub mod server_state;
pub mod shipped;
pub mod table;
pub mod tool;
pub mod views;
pub mod web;
