//! What is really behind a declared service: asks its server, tries a small call, and says where the two differ.
//!
//! It must not know agents, the database, or the command line. Only `examine` and `trial` reach a server, through
//! `polity-llm`; all else is plain functions over plain data. The path of data: *what a server answers → `answers`
//! (one file per kind of server; whatever does not look right is not told) → [`Facts`] → `judge` (what was declared,
//! against the facts and the trial) → [`Finding`]s*; and, for whoever wants the declaration corrected, *facts →
//! [`Correction`] → `edit` → the text of the file with nothing else changed*.

mod finding;

mod facts;

mod answers;

mod judge;

mod trial;

mod examine;

mod correction;
mod edit;

pub use correction::{Correction, corrections};
pub use edit::{EditError, Edited, edit};
pub use examine::{Examination, Times, examine, window};
pub use facts::{Facts, Server, Support, Window};
pub use finding::{Finding, Severity};
pub use judge::{circles, of_declaration, small_window};
pub use trial::{ToolTrial, Trial};
