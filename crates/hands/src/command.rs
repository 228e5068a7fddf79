//! Runs the shell commands of agents in a sandbox.
//!
//! The stages of a command: `bash` reads the arguments; `commands` opens the workspace and reads the settings;
//! `plan` decides, without IO, which directories the command may read and write; `sources` decides from which outside
//! sources the output of the command may come; `polity_sandbox` runs the command; `report` describes the end to the
//! model.
//!
//! Polity writes a `note` about a background command to disk before the command starts. While the command runs, it has
//! an entry on the `board`. When the command ends, `background` writes the end into the note and calls the
//! [`Listener`], which records a notice for the agent. Polity closes the note only after this notice is committed to
//! the database. So if polity crashes before the commit, the end is not lost: at the next start, [`Commands::recover`]
//! returns the commands whose notes are still open.
//!
//! `live` lists all running commands, also for the person who watches ([`RunningCommand`]). `sums` decides whether the
//! commands of a task together exceed a limit of the task. If they do, `live` ends the command that uses most of the
//! limited resource, such as memory. `spent` keeps the sums of time and output over a whole task; when one reaches its
//! limit, `live` ends all commands of the task.

mod spent;

mod sums;

mod names;

mod plan;

mod sources;

mod excerpt;

mod running;

mod live;

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
pub use names::BASH;
pub use running::RunningCommand;
pub use told::{CommandEnded, Listener, Told};
pub use tools::CommandTools;
