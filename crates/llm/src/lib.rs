//! Speaks to chat models: one attempt at a time, with a reply or a classified failure.
//!
//! It knows the wire format of Chat Completions, the ways in which servers differ from it, and nothing else: no
//! agents, artifacts, capabilities or prompts, and no decision about what follows a failure.
//!
//! The path of a call: [`Request`] and [`Endpoint`] are written as a body by `wire`; `target` resolves keys and
//! addresses; `http` sends it; what comes back is put together by `assemble` or understood by `classify`; the caller
//! gets a [`Reply`] or a [`CallError`]. All of them but `http` and [`discover`] are plain functions over plain data. A
//! [`Gate`] per service says when a call may begin. [`spoken`] reads calls that a model wrote as text. Beside that, an [`Inquirer`] asks servers about themselves.

mod data;

mod chat;
mod endpoint;
mod estimate;
mod wire;

mod arguments;
mod assemble;
mod classify;
mod retry_after;
mod scrub;
mod target;

mod client;
mod discover;
mod http;
mod inquire;
mod timing;

mod circuit;
mod gate;

pub mod spoken;

pub use chat::{
    Arguments, AudioFormat, Blame, CallError, ChatModel, FailureKind, Media, Message, Part, Reply, Request,
    Tool, ToolCall, ToolChoice, Usage, UsageSource,
};
pub use client::{SetupError, install_crypto_provider};
pub use data::Data;
pub use discover::{Found, ServerKind, discover, discover_all};
pub use endpoint::{
    BridgeAfterTool, Dialect, Endpoint, MaxTokensField, Stream, StreamUsage, SystemRole, Timeouts,
    ToolCallIds, ToolResultMedia,
};
pub use estimate::{estimate_message_tokens, estimate_prompt_tokens, estimate_tokens};
pub use gate::{Gate, GateCircuit, GateStatus, Pass, Patience, Shut, WhileOpen};
pub use http::HttpModel;
pub use inquire::{Inquirer, Question};
pub use wire::Body;
