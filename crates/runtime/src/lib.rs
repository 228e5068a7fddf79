//! Runs the society: mailboxes, turns, tools and limits. Each conversation that has work is driven by a tokio task.
//!
//! *Row → bell → turn → record → commit → rows.* The [`door`] admits a message and the store commits it. The store's
//! writer rings a bell, and the [`supervisor`] starts the receiver's [`driver`]. The driver replays the open turn from
//! its records, or begins a new turn, and does what the turn asks for next: it asks the model ([`ask`]), runs
//! [`tools`], or ends the turn. It writes what happened as a record, in one transaction with everything that the record
//! changes. Other crates work with the society through [`Society`].
//!
//! [`polity_decide`] holds the decisions: what a turn does next, what a request contains, what follows a failure. The other
//! modules carry them out.
//!
//! This crate must not know SQL, HTTP, the command line, or how a model is called.

mod door;
// Circle: each group of tools is a file and takes the context of tools.
mod tools;

// Circle: each step of a model call is a file and takes the inputs that ask has loaded.
mod ask;
mod budget;
mod fetch;
mod kept;
mod trust;

// Circle: each step of a turn is a file and takes the state of the driver.
mod driver;
mod handles;

mod rest;
mod supervisor;

// Circle: reading and writing are methods of Society.
mod society;
mod steer;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use ask::{By, Bytes, DirectAnswer, DirectError, Line};
pub use polity_artifacts::{BlobFile, NewArtifact};
pub use polity_decide::result::check_schema;
pub use society::{
    ArtifactContent, Attachment, MAX_KEY_BYTES, MessageToUser, Parts, Prompt, PromptError, Society,
    UserMessage, WriteError,
};
pub use steer::{SteerError, Target};
pub use tools::outside;
