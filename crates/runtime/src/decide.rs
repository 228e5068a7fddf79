//! The decisions of the runtime, as plain functions over plain data.
//!
//! Nothing here knows tokio, SQL, files or the clock; `tests/daemon/layers.rs` checks this. The driver and the modules
//! around it read what a decision needs, call the decision, and carry out the result.
//!
//! *`history` (what a model is still shown) → `render` (the request) → `room` (does it fit?) → `policy` (what follows a
//! failure) → `turn` (what to do next)*. `intake` bounds how much new mail a request shows. `inline` finds files that a
//! model wrote as text. `result` compares an answer with its JSON Schema. `idle` decides when a task is over.
//! `guidance` decides how much of the rules and tools a request contains.

pub(crate) mod guidance;
pub(crate) mod history;
pub(crate) mod idle;
pub(crate) mod inline;
pub(crate) mod intake;
pub(crate) mod policy;
pub(crate) mod render;
pub(crate) mod result;
pub(crate) mod room;
pub(crate) mod turn;
