//! Tools that leave traces outside the society: files, commands, other services. What such a tool does cannot be part
//! of a transaction, so it is two steps: that it starts is committed first, then it runs, then its result is committed.

use futures::future::BoxFuture;
use polity_llm::Tool;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// What may be done with a call that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Run it again, with the same key: it does nothing twice.
    Safe,
    /// Tell the model that its outcome is unknown.
    Unsafe,
}

/// What a run works with.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The same for each run of the same call, so that the other side can tell a repetition.
    pub idempotency_key: String,
}

/// Runs a tool: its result, or why it failed.
pub type Run = dyn Fn(Invocation) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;

/// A tool that reaches outside.
#[derive(Clone)]
pub struct OutsideTool {
    /// What the model is told.
    pub tool: Tool,
    /// What may be done after an interruption.
    pub repeat: Repeat,
    /// What it does.
    pub run: Arc<Run>,
}

impl fmt::Debug for OutsideTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideTool").field("name", &self.tool.name).field("repeat", &self.repeat).finish()
    }
}
