//! The built-in model: plays a small society on the real prompt and the real attachments, without any network.
//!
//! The built-in model answers if no service is configured, so that `polity run` shows at once how agents are hired, get
//! their briefs, are introduced, and answer. Like any model it gets a [`Request`](polity_llm::Request) and nothing
//! else: it must not know the store, the agents or the clock, and it keeps nothing between calls. The same conversation
//! always gets the same answer, so a crash in the middle of a play changes nothing.
//!
//! The path of one call: the request is read into a `Scene` (who the agent is, what it heard, what it did). The part
//! that the agent plays (root, lead or reader) decides the next `Move`. In a directory of the person, the lead surveys the
//! directory and writes its report there. The facts that it reports come only from the
//! bytes in the request. The model's texts are in `prompts/<language>/rehearsal.toml`. Each line that it says carries a
//! mark, so that nobody mistakes a rehearsal for real work.

mod model;

mod inbound;
mod reading;

mod moves;

mod lead;
mod play;
mod reader;
mod root;
mod survey;

mod facts;
mod sample;
mod texts;
mod words;

pub use model::{BuiltIn, RehearsalModel, SCHEME, answer};
