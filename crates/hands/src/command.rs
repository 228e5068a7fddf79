//! Commands: runs the shell commands of agents in a sandbox.
//!
//! The path of a command: *arguments (`bash`) → `commands` (opens the workspace, reads the settings) → `plan` (which
//! rights the command gets, without IO) → `polity_sandbox` → `report` (what the model reads)*.
//!
//! A command in the background has a `note` on disk from before its start, and a place on the `board` while it runs.
//! `background` sees it to its end, writes the end into the note, and reports it to the [`Listener`], who has its agent
//! told. The note is closed once the listener has recorded the end, so that a crash at any point loses no end;
//! [`Commands::recover`] returns what is not closed.
//!
//! `live` knows all commands that run and ends the heaviest of a task that exceeds its limits (`sums`).

mod sums;

mod names;

mod plan;

mod live;

mod excerpt;

mod note;

mod told;

mod board;

mod size;

mod commands;

mod background;

mod report;

mod bash;

mod bash_output;

mod bash_stop;

mod tools;

pub use commands::{Commands, SettingsSource};
pub use told::{CommandEnded, Listener, Told};
pub use tools::CommandTools;
