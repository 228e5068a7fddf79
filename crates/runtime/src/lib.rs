//! Runs the society: mailboxes, turns, tools and limits. Each conversation that has work is driven by a tokio task.
//!
//! *Row → bell → turn → record → commit → rows.* The [`door`] admits a message and the store commits it. The store's
//! writer rings a bell, and the [`supervisor`] starts the receiver's [`driver`]. The driver replays the open turn from
//! its records, or begins a new turn, and does what the turn asks for next: it asks the model ([`ask`]), runs
//! [`tools`], or ends the turn. It writes what happened as a record, in one transaction with everything that the record
//! changes. Other crates work with the society through [`Society`].
//!
//! [`polity_decide`] decides what a turn does next, what a request contains, and what follows a failure. The modules of
//! this crate carry the decisions out.
//!
//! This crate must not know SQL, HTTP, the command line, or how a model is called.

mod door;
// Circle: `tools` imports its submodules, which contain the tools. The submodules import `Context` from `tools`.
mod tools;

mod approvals;
// Circle: `ask` imports its submodules, which are the steps of a model call. The submodules import types from `ask`.
mod ask;
// Circle: `board` imports types from its submodules. The submodules import the entries of the board from `board`.
mod board;
mod budget;
mod commands;
mod every;
mod fetch;
mod kept;
mod trust;

// Circle: `driver` imports its submodules, which are the steps of a turn. The submodules import functions from
// `driver`.
mod driver;
mod handles;
mod head;

mod rest;
mod supervisor;

// Circle: `society` imports types from its submodules. The submodules import the type `Society` and add methods to it.
mod society;
mod steer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use approvals::{AnswerError, PermissionError};
pub use ask::{By, Bytes, DirectAnswer, DirectError, Line};
pub use board::Glimpses;
pub use polity_artifacts::{BlobFile, NewArtifact};
pub use polity_decide::result::check_schema;
pub use polity_hands as hands;
pub use society::{
    ArtifactContent, Attachment, Explained, Fork, MAX_KEY_BYTES, MessageToUser, Parts, Prompt, PromptError,
    Society, UserMessage, WorkspaceError, WriteError,
};
pub use steer::{SteerError, Target};
