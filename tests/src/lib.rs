//! Support for tests of the whole daemon: a chat server that plays a script, and a hand that runs the binary.
//!
//! It knows what anybody outside the daemon can know: the wire format of chat completions, the texts that models
//! read, the command line. It must not know the daemon's crates, so that no error of theirs is repeated here.
//!
//! The path of data: [`Polity`] starts the binary with a configuration whose services point at a
//! [`ScriptedServer`]. Each request is checked ([`schema_problems`], [`conversation_problems`]), kept as
//! [`Captured`], shown to the script as a [`Conversation`], and answered as the script's [`Answer`] says.
//! A [`Layer`] can stand between the binary and the machine.
//! [`society`] is a script that plays a whole organisation.

#![expect(clippy::expect_used, clippy::panic, reason = "test support: a failure here is a failed test")]

mod validity;

mod conversation;

mod answer;

mod connection;
mod server;

mod society;

mod process;

mod layer;

#[cfg(test)]
mod raw_http;

pub use answer::{Answer, Call};
pub use conversation::{Conversation, Heard, Sender, ToolResult};
pub use layer::{Layer, Order, Record};
pub use process::{Output, Polity, Running};
pub use server::{Captured, ScriptedServer};
pub use society::{doubled_reports, society};
pub use validity::{conversation_problems, schema_problems};
