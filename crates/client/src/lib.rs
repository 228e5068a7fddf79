//! Speaks to a running daemon, for whoever has its data directory; or to the same API in this process.
//!
//! The daemon writes where it listens and what opens it into two files ([`FindError`] where they are not there). Each
//! call of [`Client`] reads them, asks the daemon over HTTP, and reads the answer as one of the types that the daemon
//! made it from ([`polity_runtime::view`]); what it refuses is a problem in [`Error`]. [`Client::follow`] passes on what
//! happens, as a stream of events that goes on with the next daemon where one has gone: each event once, in order.
//! [`Client::in_process`] asks routes that the caller hands in, without a socket; nothing else differs.
//!
//! It must not know: the command line, terminals, the database, how a daemon does what it is asked.

mod error;

mod in_process;
mod place;
mod sse;
mod transport;

mod client;
mod content;
mod follow;
mod relay;

pub use client::{Client, IdempotencyKey, Letter, Media, Scope, Side, Step};
pub use content::Progress;
pub use error::Error;
pub use follow::{Follow, Followed};
pub use place::FindError;
pub use relay::Relayed;
