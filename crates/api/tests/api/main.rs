//! The routes over a society that lives in this process, without a socket where the socket is not the point. Every
//! answer is compared with the OpenAPI document that describes it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod artifacts;
mod events;
mod guard;
mod hostile;
mod pages;
mod read_only;
mod resources;
mod support;
