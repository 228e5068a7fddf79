//! The decisions of the runtime, as plain functions over plain data.
//!
//! Nothing here knows tokio, SQL, files or the clock: the driver and its neighbours read what a decision needs, call it,
//! and carry out what it says. `tests/daemon/layers.rs` checks what these files name.
//!
//! *`history` (what a model is still shown) → `render` (the request) → `room` (does it fit?) → `policy` (what follows a
//! failure) → `turn` (what is done next)*. `intake` bounds how much new mail a request shows; `inline` finds files that a
//! model wrote as text; `result` compares an answer with its JSON Schema; `idle` decides when a task is over.

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
