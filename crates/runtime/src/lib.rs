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
// Circle: `tools` calls the file of each group of tools, and these files use the `Context` that `tools` defines.
mod tools;

mod approvals;
// Circle: `ask` calls the file of each step of a model call, and these files use the types that `ask` defines.
mod ask;
mod budget;
mod commands;
mod fetch;
mod kept;
mod trust;

// Circle: `driver` calls the file of each step of a turn, and these files call functions of `driver`.
mod driver;
mod handles;
mod head;

mod rest;
mod supervisor;

// Circle: `society` exports types of its files, and these files add methods to the type `Society`.
mod society;
mod steer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use approvals::{AnswerError, PermissionError};
pub use ask::{By, Bytes, DirectAnswer, DirectError, Line};
pub use polity_artifacts::{BlobFile, NewArtifact};
pub use polity_decide::result::check_schema;
pub use polity_hands as hands;
pub use society::{
    ArtifactContent, Attachment, MAX_KEY_BYTES, MessageToUser, Parts, Prompt, PromptError, Society,
    UserMessage, WorkspaceError, WriteError,
};
pub use steer::{SteerError, Target};
