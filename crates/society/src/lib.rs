//! The nouns and the rules of the society: agents, roles, briefs, contacts, messages; who may do what; how a message
//! is presented.
//!
//! Data goes one way through this crate: what somebody wrote is parsed into a type that cannot be wrong
//! ([`message::Payload`], [`brief::TaskBrief`], [`name::Name`]), then [`rules`] turn it and the facts it depends on
//! into [`change::Change`]s, which only need writing, or a [`refusal::Refusal`]. What was written is put into words by
//! [`present`], with the texts of the language in force.
//!
//! It must not know: async, SQL, files, HTTP, models, the clock, randomness. Ids and times come in as arguments.

pub mod id;

mod glyph;

pub mod content;
pub mod limits;
pub mod text;

pub mod name;
pub mod problem;
pub mod written;

pub mod agent;
pub mod brief;
pub mod contact;
pub mod message;
pub mod notice;
pub mod role;

pub mod change;
pub mod present;
pub mod refusal;
pub mod rules;
