//! The built-in model: plays a small society on the real prompt and the real attachments, without any network.
//!
//! It is what answers where no service is configured, so that `polity run` shows at once how agents are hired, briefed,
//! introduced and heard. It gets what any model gets, a [`Request`](polity_llm::Request), and nothing else: it must not
//! know the store, the agents or the clock, and it keeps nothing between calls. The same conversation asked again
//! gives the same answer, so a crash in the middle of a play changes nothing.
//!
//! The path of one call: the request is read into a `Scene` (who am I, what was I told, what did I do); the
//! part that the agent plays (root, lead or reader) decides the next `Move`; the facts that it tells come from the
//! bytes in the request alone. What it says is in `prompts/<language>/rehearsal.toml`, and each line of it carries a mark, so
//! that nobody takes a rehearsal for the performance.

mod model;

mod inbound;
mod reading;

mod lead;
mod play;
mod reader;
mod root;

mod facts;
mod sample;
mod texts;
mod words;

pub use model::{BuiltIn, RehearsalModel, SCHEME, answer};
