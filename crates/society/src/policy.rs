//! The policy of tools that reach outside: what a call may do without the person, and what needs their answer.

mod facts;

mod pattern;

mod host;

mod rule;

mod shell;

mod command;

mod remembered;

mod decide;

pub use decide::{Decision, Often, Reason, decide, denies_all};
pub use facts::{CallFacts, Confinement, Effect, Reach, Source, UnknownSource};
pub use host::{HostPattern, NotAHost, host_name};
pub use pattern::Pattern;
pub use remembered::{Remembered, Thing, remember};
pub use rule::{Rule, Verdict};
