//! A society as an MCP server: an editor or a desktop assistant gives root a task, follows it, answers questions, reads
//! what was made, and looks at who is there.
//!
//! *JSON-RPC → [`server`] → [`tools`] or [`artifacts`] → `Society`.* What can be done is in `tools`: plain functions over
//! plain types, of which the schemas are made. The protocol is the official SDK's, and [`server`] alone knows it, because
//! it changes fast. No session is kept: each request stands for itself, so a client goes on after a restart of the
//! daemon as if nothing had been.
//!
//! It must not know SQL, models, prompts, or who may ask.

mod artifacts;
mod tools;

mod server;

pub use server::{StdioError, router, serve};
