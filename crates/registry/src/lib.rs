//! Loads the configuration: keeps the latest valid services, settings and prompts that the files declare.
//!
//! This crate must not know agents, the database, or how a model is called. Parsing and validation are plain functions
//! over text; only `registry`, `files`, `reading` and `watch` touch the disk. Data flows one way: *text → `fields`
//! (reads each field on its own, so that one bad field does not invalidate the others; `similar` guesses what a
//! misspelt name means) → `services`, `settings`, `prompts` → `sources` (chooses where the services come from) →
//! `catalogue` → `registry` (publishes one immutable snapshot after the other)*. Each mistake found on the way becomes
//! a [`Problem`], and all problems are collected.

mod problem;

mod similar;

mod fields;

// Circle: capabilities and variables read parts of a service.
mod services;
mod settings;

mod prompts;

mod sources;

mod catalogue;

mod snapshot;

mod difference;
mod files;
mod reading;
mod registry;
mod show;
mod watch;

pub use catalogue::{Catalogue, Chosen, ServiceWish, Why};
pub use files::{WriteDefaultsError, write_defaults};
pub use problem::{Place, Problem, Severity};
pub use prompts::{Prompts, ToolText};
pub use registry::{Discovery, LoadError, Registry, ReloadOutcome, Reloaded, Report};
pub use services::{Declaration, Price, Service, StripMetadata, UnknownFields, parse as parse_services};
pub use settings::{Discover, Retention, Retry, Settings, Synchronous};
pub use snapshot::Snapshot;
pub use sources::{Discovered, Environment, KeyPresence, Origin};
pub use watch::{Watch, WatchError};
