//! Tools that act outside the society: on the files of a workspace, with commands, on the web, on MCP servers.
//!
//! The runtime runs each call with this crate. First, the runtime finds the [`tool::Tool`] by name in [`table::Hands`],
//! and checks that the caller has the right to the group of the tool. Then it records the start of the call in the
//! database. Last, it runs the tool with a [`call::Invocation`]. The tool returns a [`call::Output`]: text or JSON, and
//! any number of files. The runtime stores the files as artifacts and routes them to the model like all other content.
//!
//! An implementation of a tool needs only [`tool`], [`call`], [`table`] and [`arguments`]. [`places`] opens the
//! workspace of the caller. The tools use the crates `files` (files of a workspace), `workspaces` (directories and
//! worktrees), `sandbox` (commands) and `web` (requests).
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
