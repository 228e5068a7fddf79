//! Examines a declared service: asks its server for facts and makes a small call. Then reports how the declaration
//! differs from the facts and from the result of the call.
//!
//! This crate must not know agents, the database, or the command line. Only `examine`, `found` and `trial` contact a
//! server, through `polity-llm`; everything else is plain functions over plain data.
//!
//! How data flows: `answers` reads a server's answers into [`Facts`], and drops values that look wrong. It has one file
//! for each kind of server. `judge` compares the declaration with the facts and the trial, and returns [`Finding`]s. To
//! correct a declaration, `correction` derives a [`Correction`] from the facts, and `edit` writes it into the text of
//! the file without changing anything else.

mod finding;

mod facts;

mod answers;

mod judge;

mod trial;

mod examine;

mod correction;

mod found;

// Circle: `edit` uses a function of its submodule `list`, and `list` uses the type `Splice` of `edit`.
mod edit;

pub use correction::{Correction, corrections};
pub use edit::{EditError, Edited, edit};
pub use examine::{Examination, Times, examine, glance};
pub use facts::{Facts, SMALL_WINDOW, Server, Support, Window};
pub use finding::{Field, Finding, Severity};
pub use found::{Candidate, choose, look, written};
pub use judge::{circles, of_declaration, small_window};
pub use trial::{ToolTrial, Trial};
