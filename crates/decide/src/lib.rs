//! The decisions of the runtime, as plain functions over plain data.
//!
//! This crate does not use tokio, SQL, files or the clock; `tests/daemon/layers.rs` checks this rule. The driver and
//! the modules around the driver read what a decision needs, call the decision, and carry out the result.
//!
//! A model call needs these decisions, in this order: `history` (which records the model is still shown) → `render`
//! (the request) → `room` (does it fit?) → `budget` (can the task pay for it?) → `policy` (how to go on after a failure)
//! → `understood` (what the model meant) → `turn` (the next step) → `arguments` (what a call to a tool says). `intake`
//! bounds how much new mail a request shows. `inline` finds files that a model wrote as text. `result` compares an
//! answer with its JSON Schema. `idle` decides when a task is over. `guidance` decides how much of the rules and tools
//! a request contains.

#![expect(missing_docs, reason = "a comment that only repeats the name of a field helps nobody")]

// Circle: a role can be an argument of another tool, so the types of arguments contain the arguments of `create_role`.
pub mod arguments;
pub mod budget;
pub mod found;
pub mod guidance;
pub mod history;
pub mod idle;
// Circle: the files below `inline` are the steps of its search, and use its types.
pub mod inline;
pub mod intake;
pub mod policy;
// Circle: `content` and `system` write parts of the request, and use the types that `render` defines.
pub mod render;
pub mod result;
pub mod room;
pub mod turn;
pub mod understood;

#[cfg(test)]
mod testing;
