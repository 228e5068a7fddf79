//! Talks to the running daemon of a data directory, or to the same API in this process.
//!
//! The daemon writes its address and its token into two files of the data directory. Each call of [`Client`] reads
//! these files, sends an HTTP request to the daemon, and parses the answer into the type that the daemon serialized
//! ([`polity_view`]). If the files are missing, the call returns a [`FindError`]; if the daemon refuses the request,
//! the call returns [`Error::Refused`]. [`Client::follow`] streams events: each event once, in order, and if the
//! daemon restarts, the stream continues with the new daemon. A client made by [`Client::in_process`] calls routes in
//! this process instead of a daemon; all other behaviour is the same.
//!
//! This crate knows nothing about the command line, terminals, the database or how a daemon does its work.

mod error;
mod form;

mod in_process;
mod place;
mod sse;
mod transport;

mod client;
mod content;
mod follow;
mod relay;

pub use client::{Client, IdempotencyKey, Media, NewMessage, Scope, Side, SteerAction};
pub use content::Progress;
pub use error::{Error, Loss};
pub use follow::{Follow, Followed};
pub use place::FindError;
pub use relay::{Relayed, SESSION};
