//! Calls chat models: makes one attempt at a time and returns a reply or a classified failure.
//!
//! The crate knows the wire format of Chat Completions and the ways in which servers differ from it. It knows nothing
//! about agents, artifacts, capabilities or prompts, and it does not decide what to do after a failure.
//!
//! A call takes this path through the modules. `wire` writes a [`Request`] as the body that an [`Endpoint`] expects.
//! `target` resolves keys and addresses. `http` sends the body. `events` splits a streamed answer, `assemble` joins its
//! pieces, and `scrub` removes the key from the answer. If the call fails, `classify` interprets the failure. The
//! caller gets a [`Reply`] or a [`CallError`]. All these modules except `http` contain only plain functions over plain
//! data.
//!
//! Each service has a [`Gate`], which decides when a call may begin. [`spoken`] reads calls that a model wrote as text.
//! An [`Inquirer`] asks servers about themselves. [`discover_all`] looks for servers on this machine.

mod data;

mod chat;
mod endpoint;
mod estimate;
mod listen;
mod tokens;
mod tool;
mod wire;

mod events;

mod arguments;
mod assemble;
mod classify;
mod retry_after;
mod scrub;
mod tell;
mod variables;

mod target;

mod client;
mod discover;
mod http;
mod inquire;
mod network;
mod timing;

mod circuit;
mod gate;

// Circle: `spoken` imports its submodules. Each form of a call has its own submodule, and these submodules return the
// types that `spoken` defines.
pub mod spoken;

pub use chat::{
    Arguments, AudioFormat, Blame, CallError, ChatModel, FailureKind, Media, Message, Part, Reply, Request,
    ToolCall, ToolChoice, Usage, UsageSource,
};
pub use client::{SetupError, install_crypto_provider};
pub use data::Data;
pub use discover::{Found, ServerKind, Unusable, discover_all, discover_unusable};
pub use endpoint::{
    BridgeAfterTool, Dialect, Endpoint, MaxTokensField, Stream, StreamUsage, SystemRole, Timeouts,
    ToolCallIds, ToolResultMedia,
};
pub use estimate::{estimate_message_tokens, estimate_prompt_tokens};
pub use gate::{
    Gate, GateCircuit, GateStatus, Outlook, Pass, Patience, Shut, Ticket, TicketNumber, WhileOpen,
};
pub use http::HttpModel;
pub use inquire::{Inquirer, Question};
pub use listen::{Listener, Nobody, Piece};
pub use tokens::estimate_tokens;
pub use tool::{Tool, ToolDefinition};
pub use variables::{UnsetVariable, expand_variables};
pub use wire::Body;
pub use wire::pieces::pieces;

#[cfg(test)]
mod names;
