//! Speaks to chat models. (see chat.rs, endpoint.rs)

mod chat;
mod endpoint;

pub use chat::{
    Arguments, AudioFormat, CallError, ChatModel, FailureKind, Media, Message, Part, Reply, Request, Tool,
    ToolCall, ToolChoice, Usage, UsageSource,
};
pub use endpoint::{
    BridgeAfterTool, Dialect, Endpoint, MaxTokensField, Stream, StreamUsage, SystemRole, ToolCallIds,
    ToolResultMedia,
};
