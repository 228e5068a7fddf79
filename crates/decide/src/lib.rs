//! The decisions of the runtime, as plain functions over plain data.
//!
//! This crate does not use tokio, SQL, files or the clock; `tests/daemon/layers.rs` checks this rule. The driver and
//! the modules around the driver read what a decision needs, call the decision, and carry out the result.
//!
//! A model call needs these decisions, in this order: `history` (which records the model is still shown) → `render`
//! (the request) → `room` (does it fit?) → `budget` (can the task pay for it?) → `policy` (what to do after a failure)
//! → `understood` (what the model meant) → `turn` (the next step) → `arguments` (what a call to a tool says). `intake`
//! bounds how much new mail a request shows. `inline` finds files that a model wrote as text. `result` compares an
//! answer with its JSON Schema. `idle` decides when a task is over. `foresee` decides which warnings the person gets
//! about a message. `stuck` finds what cannot continue without the person, and `why` explains what happened. `fork`
//! decides what a copy of a task contains. `guidance` decides how much of the rules and tools a request contains.

#![expect(missing_docs, reason = "a comment that only repeats the name of a field helps nobody")]

// Circle: `arguments` imports its submodules, which contain the types of arguments, and one of them imports `CreateRole`
// from `arguments`.
pub mod arguments;
pub mod budget;
pub mod foresee;
pub mod fork;
pub mod found;
pub mod guidance;
pub mod history;
pub mod idle;
// Circle: `inline` imports its submodules, which are the steps of its search, and they import types from `inline`.
pub mod inline;
pub mod intake;
pub mod policy;
// Circle: `render` imports `content` and `system`, which write parts of the request and import types from `render`.
pub mod render;
pub mod result;
pub mod room;
pub mod stuck;
pub mod turn;
pub mod understood;
// Circle: `why` imports its submodules, each of which explains one kind of thing with functions of `why`.
pub mod why;

#[cfg(test)]
mod testing;
