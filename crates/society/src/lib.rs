//! The types and rules of the society: agents, roles, briefs, contacts, messages, and how a message is presented.
//!
//! Data flows one way through this crate.
//! Texts of models and people are parsed into types whose values are always valid
//! ([`message::Payload`], [`brief::TaskBrief`], [`name::Name`]).
//! The [`rules`] are functions that take a parsed value and the facts that they need for a decision. A rule returns a
//! [`refusal::Refusal`], or a list of [`change::Change`]s, which only need to be written.
//! [`present`] makes texts from stored messages, in the current language.
//!
//! Comments cite two sorts of documents: the contract, and the seeds in `docs/seeds`, from which the contract was made.
//! This crate must not know about async, SQL, files, HTTP, models, the clock or randomness. Callers pass ids and times
//! as arguments.

pub mod id;
pub mod time;

mod glyph;

mod form;

pub mod defuse;

pub mod content;
pub mod limits;
pub mod mime;
pub mod text;

pub mod name;
pub mod problem;
pub mod written;

pub mod agent;
pub mod approval;
pub mod brief;
pub mod command;
pub mod contact;
pub mod message;
pub mod notice;
pub mod role;
pub mod tool_group;

pub mod policy;

pub mod workspace;

pub mod change;
pub mod present;
pub mod refusal;
// Circle: `rules` imports its submodules. Three of them, `closing`, `door` and `rest`, import types such as `Pending`
// from `rules`.
pub mod rules;

#[cfg(test)]
mod names;
