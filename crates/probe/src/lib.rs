//! Examines a declared service: asks its server, makes a small call, and reports how the declaration differs from the
//! answers and from the result of the call.
//!
//! This crate must not know agents, the database, or the command line. Only `examine` and `trial` contact a server,
//! through `polity-llm`; everything else is plain functions over plain data. The path of data: *a server's answers →
//! `answers` (one file per kind of server; values that look wrong are dropped) → [`Facts`] → `judge` (compares the
//! declaration with the facts and the trial) → [`Finding`]s*. To correct the declaration: *facts → [`Correction`] →
//! `edit` → the text of the file with nothing else changed*.

mod finding;

mod facts;

mod answers;

mod judge;

mod trial;

mod examine;

mod correction;
// Circle: `edit` calls `list`, and `list` returns the replacements that `edit` defines.
mod edit;

pub use correction::{Correction, corrections};
pub use edit::{EditError, Edited, edit};
pub use examine::{Examination, Times, examine, window};
pub use facts::{Facts, Server, Support, Window};
pub use finding::{Finding, Severity};
pub use judge::{circles, of_declaration, small_window};
pub use trial::{ToolTrial, Trial};
