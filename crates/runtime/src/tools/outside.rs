//! Tools that have effects outside the society: files, commands, other services.
//!
//! Such an effect cannot be part of a transaction. So the start of the call is committed first, then the tool runs, and
//! then its result is committed.

use futures::future::BoxFuture;
use polity_llm::Tool;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// What to do with a call that was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Run the call again with the same key; the tool ignores a repetition.
    Safe,
    /// Tell the model that the outcome is unknown.
    Unsafe,
}

/// The input of one run.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The arguments of the call, as the model gave them.
    pub arguments: Map<String, Value>,
    /// The same key for each run of the same call, so that the other side can recognise a repetition.
    pub idempotency_key: String,
}

/// Runs a tool. Returns its result, or why it failed.
pub type Run = dyn Fn(Invocation) -> BoxFuture<'static, Result<Value, String>> + Send + Sync;

/// A tool that has effects outside the society.
#[derive(Clone)]
pub struct OutsideTool {
    /// The name, description and schema that the model sees.
    pub tool: Tool,
    /// What to do if a call is interrupted.
    pub repeat: Repeat,
    /// The function that does the work.
    pub run: Arc<Run>,
}

impl fmt::Debug for OutsideTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideTool").field("name", &self.tool.name).field("repeat", &self.repeat).finish()
    }
}
