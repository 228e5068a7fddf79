//! Runs the society: a mailbox and, while there is work, a task per agent; turns; tools; limits; the database.
//!
//! *Row → bell → turn → record → commit → rows.* A message is accepted by the mailbox's [`door`] and committed; the
//! writer rings a bell; the [`supervisor`] starts the receiver's task; its [`driver`] replays the open [`turn`] from its
//! records, or begins one, and does what the turn says is next: [`ask`] the model for a request that [`render`] makes
//! out of the history, run [`tools`], end the turn. What happened becomes a [`record`], in one transaction with all
//! that it changes. [`Society`] is all that others see.
//!
//! It must not know: HTTP, the command line, how a model is spoken to.

mod clock;
mod in_full;
mod mint;
mod result;
mod said;

mod event;
mod exchange;
mod history;
mod record;
mod turn;

mod store;

mod door;
mod inline;
mod tools;

mod render;

mod ask;
mod budget;
mod fetch;
mod intake;
mod kept;
mod policy;
mod room;
mod trust;

mod driver;
mod guidance;
mod handles;

mod idle;
mod rest;
mod supervisor;

mod society;
mod steer;

pub mod maintenance;
pub mod view;

#[cfg(test)]
mod testing;

pub use ask::{By, Bytes, DirectAnswer, DirectError, Line};
pub use event::{Entry, Event, NextAttempt, Outcome, Shown, SummarySource};
pub use exchange::{Exchange, Exchanges, Given, NewExchange, State as ExchangeState};
pub use in_full::in_full;
pub use polity_artifacts::{BlobFile, NewArtifact};
pub use result::check_schema;
pub use society::{
    Attachment, Content, Letter, MAX_KEY_BYTES, Parts, Post, Prompt, PromptError, Society, WriteError,
};
pub use steer::{SteerError, Target};
pub use store::Error;
pub use tools::outside;
