//! Support for tests of the whole daemon: a chat server that plays a script, and a runner for the binary.
//!
//! This crate relies only on what is visible outside the daemon: the wire format of chat completions, the texts that
//! models read, the command line. It must not use the daemon's crates. Otherwise, an error in such a crate would also
//! be in the tests, and they would not find it.
//!
//! How data flows: [`Polity`] starts the binary with a configuration whose services point at a [`ScriptedServer`].
//! The server checks each request ([`schema_problems`], [`conversation_problems`]), keeps it as [`Captured`], shows
//! it to the script as a [`Conversation`], and sends the [`Answer`] that the script returns. A [`Layer`] can make
//! system calls of the binary fail, and record what they do. [`society`] is a script that plays a whole organisation.

#![expect(clippy::expect_used, clippy::panic, reason = "test support: a failure here is a failed test")]

mod validity;

mod conversation;

mod answer;

mod connection;
mod server;

mod society;

mod process;

mod layer;

mod network;

mod told;

#[cfg(test)]
mod raw_http;

pub use answer::{Answer, Call};
pub use conversation::{Conversation, Heard, Sender, ToolResult};
pub use layer::{Layer, Order, Record};
pub use network::{in_own_network, in_own_network_with_names};
pub use process::{Output, Polity, Running};
pub use server::{Captured, ScriptedServer};
pub use society::{doubled_reports, society};
pub use told::tell;
pub use validity::{conversation_problems, schema_problems};
