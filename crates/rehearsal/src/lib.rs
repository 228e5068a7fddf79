//! The built-in model: plays a small society on the real prompt and the real attachments, without any network.
//!
//! The built-in model answers if no service is configured, so that `polity run` shows at once how agents are hired,
//! get their briefs, are introduced, and answer. Like any model, it gets only a [`Request`](polity_llm::Request): it
//! must not know the store, the agents or the clock, and it keeps nothing between calls. The same conversation always
//! gets the same answer, so a crash in the middle of a rehearsal changes nothing.
//!
//! How the model answers one request: `reading` turns the request into a `Scene` (who the agent is, what it heard, what
//! it did). Each agent plays one of three characters: root, lead or reader. The code of the character decides the next
//! `Move`: a closing text or tool calls. If the user has given the task a directory, the lead surveys this directory
//! and writes its report there. If commands may run on this machine, the lead also runs one command that only reads.
//! All facts in the report come from the bytes in the request. The model's texts are in
//! `prompts/<language>/rehearsal.toml`. Each line that the model says begins with a mark, so that nobody mistakes a
//! rehearsal for real work.

mod model;

mod inbound;
mod reading;

mod moves;

mod lead;
mod play;
mod reader;
mod root;
mod shell;
mod survey;

mod facts;
mod sample;
mod texts;
mod words;

pub use model::{BuiltIn, RehearsalModel, SCHEME, answer};
