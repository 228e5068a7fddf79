//! Runs one shell command of an agent in a sandbox, and reports how it ended.
//!
//! This crate must not know tools, models, SQL, agents or tasks. It gets a [`Plan`]: the command, the directories
//! that the command may use, its network and its limits. Paths that a plan does not grant do not exist inside the
//! sandbox.
//!
//! The path of data: *[`Plan`] + facts about the host → `view` (what the command sees) and `walls` (what the command
//! may do), both without IO → a launch → the supervisor, a process of its own → bubblewrap → the process inside the
//! sandbox, which installs the walls (Landlock and seccomp) and becomes the shell → output → [`Ended`]*. The supervisor
//! enforces the limits, also when the daemon hangs. When the daemon dies, it kills all processes of the command. Both
//! the supervisor and the process inside run the daemon's own binary. This binary calls [`enter`] when it is started
//! with the arguments of [`Enter`].
//!
//! A sandbox does not protect against a fault of the kernel. At the sandbox level `partial`, a command shares the
//! machine's processes and files with the programs of the person, and only Landlock and seccomp separate the command
//! from these programs; see [`Level`].
//!
//! Only Linux has sandboxes. On other systems, [`probe`] returns the sandbox level `none`, and [`run`] returns an
//! error.

#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "what only the sandbox of Linux uses"))]

mod limits;

mod plan;
mod settings;

mod machine;

mod environment;

mod hidden;

mod host;

mod view;

mod bubblewrap;

mod domains;

mod output;

mod ended;

#[cfg(target_os = "linux")]
mod parts;

#[cfg(target_os = "linux")]
mod walls;

#[cfg(target_os = "linux")]
mod message;

#[cfg(target_os = "linux")]
mod tree;

#[cfg(target_os = "linux")]
mod groups;

#[cfg(target_os = "linux")]
mod guard;

#[cfg(target_os = "linux")]
mod proxy;

#[cfg(target_os = "linux")]
mod forward;

#[cfg(target_os = "linux")]
mod inside;

#[cfg(target_os = "linux")]
mod supervise;

#[cfg(target_os = "linux")]
mod launch;

#[cfg(target_os = "linux")]
mod run;

#[cfg(target_os = "linux")]
// Circle: `advice` explains what `probe` found, and uses its types.
mod probe;

#[cfg(target_os = "linux")]
mod enter;

#[cfg(not(target_os = "linux"))]
mod elsewhere;

pub use domains::{Domains, NotADomain};
#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Running, Viewer, enter, probe, run, spawn};
pub use ended::{Ended, Error, How, Usage};
#[cfg(target_os = "linux")]
pub use enter::enter;
pub use environment::{Directories, environment};
pub use limits::Limits;
pub use machine::{Finding, Level, Machine, OwnProc};
pub use output::Output;
pub use plan::{Access, Enter, Excerpt, Guarded, Network, Plan, Together};
#[cfg(target_os = "linux")]
pub use probe::probe;
#[cfg(target_os = "linux")]
pub use run::{Running, Viewer, run, spawn};
pub use settings::{Settings, TaskLimits, Unconfined};
pub use view::Refused;
