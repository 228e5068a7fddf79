//! The latest valid catalogue of what files declare: services, settings, prompts.
//!
//! It must not know agents, the database, or how a model is called. Parsing and validation are plain functions over
//! text; only `registry`, `files`, `reading` and `watch` touch the disk. Data flows one way: *text → `fields` (one bad
//! field spoils no other; `similar` guesses what was meant) → `services`, `settings`, `prompts` → `sources` (which
//! services count) → `catalogue` → `registry` (one immutable snapshot after the other)*. Whatever is wrong on the way is
//! a [`Problem`], and all of them are collected.

mod problem;

mod similar;

mod fields;

mod services;
mod settings;

mod prompts;

mod sources;

mod catalogue;

mod difference;
mod files;
mod reading;
mod registry;
mod show;
mod watch;

pub use catalogue::{Catalogue, Chosen, ServiceWish, Why};
pub use files::{WriteDefaultsError, write_defaults};
pub use problem::{Place, Problem, Severity};
pub use prompts::{Language, Prompts, ToolText};
pub use registry::{Discovery, LoadError, Outcome, Registry, Reloaded, Report, Snapshot};
pub use services::{Declaration, Price, Service, StripMetadata, UnknownFields, parse as parse_services};
pub use settings::{Discover, Retention, Retry, Settings, Synchronous};
pub use sources::{Discovered, Environment, KeyPresence, Origin};
pub use watch::{Watch, WatchError};
