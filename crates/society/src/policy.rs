//! The policy of tools that act outside the society: which calls run at once, which calls need an answer of the
//! person first, and which calls are refused.

mod facts;

mod pattern;

mod host;

mod rule;

mod shell;

mod command;

mod remembered;

mod decide;

pub use command::Unseen;
pub use decide::{Decision, Often, Reason, decide, denies_all};
pub use facts::{CallFacts, Confinement, Effect, Reach, Source, UnknownSource};
pub use host::{HostPattern, NotAHost, host_name};
pub use pattern::Pattern;
pub use remembered::{Remembered, Thing, remember};
pub use rule::{Rule, Verdict};
