//! Tests of the routes. The society runs in the process of the test, and most tests use no socket.
//!
//! The tests check every answer against the OpenAPI document.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod approvals;
mod artifacts;
mod events;
mod guard;
mod hostile;
mod pages;
mod read_only;
mod resources;
mod scripted;
mod support;
mod workspaces;
