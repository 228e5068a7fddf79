//! Runs the shell commands of agents in a sandbox.
//!
//! A command goes through these stages. `bash` reads the arguments. `commands` opens the workspace and reads the
//! settings. `plan` decides, without IO, which directories the command may read and write. `sources` decides from which
//! outside sources the output of the command may come. `polity_sandbox` runs the command. `report` tells the model how
//! the command ended.
//!
//! Polity writes a `note` about a background command to disk before the command starts. While the command runs, it has
//! an entry on the `board`. When the command ends, `background` writes the end into the note. Then `background` calls
//! the [`Listener`], which records a notice for the agent. The note stays open until this notice is committed to the
//! database. If polity crashes before that, [`Commands::recover`] finds the open note at the next start and returns its
//! command. So the end is not lost.
//!
//! `live` lists all running commands, and also shows them to the person who watches ([`RunningCommand`]). `sums` adds
//! up what the running commands of a task use of a resource such as memory. If the sum exceeds a limit of the task,
//! `live` ends the command that uses most of this resource. `spent` adds up the time and the output of all commands
//! over a whole task. If one of these sums reaches its limit, `live` ends all commands of the task.

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
