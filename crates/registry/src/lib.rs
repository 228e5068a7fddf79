//! Loads the configuration from its files. Keeps the latest valid services, settings and prompts.
//!
//! This crate must not know agents, the database, or how a model is called.
//! Parsing and validation are plain functions over text. Only `registry`, `files`, `reading` and `watch` use the disk.
//!
//! Data flows in one direction: text → `fields` → `services`, `settings`, `prompts` → `sources` → `catalogue` →
//! `registry`.
//! `fields` reads each field on its own, so that one bad field does not invalidate the others.
//! `similar` guesses what a misspelt name means. `before` shows where a text stops being valid. `sources` chooses where the services come from.
//! `registry` publishes the result as an immutable snapshot.
//! Each mistake becomes a [`Problem`]. Loading collects all problems instead of stopping at the first one.

mod problem;

mod similar;

mod before;

mod fields;

mod secret;

// Circle: `services` uses functions of its submodules `capabilities` and `variables`. The two submodules use types of
// `services`.
mod services;
mod settings;

mod prompts;

mod remedy;

mod sources;

mod catalogue;

mod snapshot;

mod difference;
mod files;
mod language;
mod reading;
mod registry;
mod show;
mod show_tools;
mod watch;

pub use catalogue::{Catalogue, Chosen, ServiceWish, Why};
pub use files::{DEFAULT_SETTINGS, WriteDefaultsError, config_text, write_defaults};
pub use language::{language_is_chosen, with_language};
pub use problem::{Place, Problem, Severity};
pub use prompts::{Prompts, ToolText, built_in_texts};
pub use registry::{Discovery, LoadError, Registry, ReloadOutcome, Reloaded, Report};
pub use remedy::{Remedy, larger_window, without_tools};
pub use secret::SecretText;
pub use services::{Declaration, Price, Service, StripMetadata, UnknownFields, parse as parse_services};
pub use settings::{
    Discover, Percent, Retention, Retry, SandboxSettings, SearchProvider, SearchSettings, ServerLaunch,
    ServerSandbox, ServerSettings, Settings, Synchronous, TaskLimits, ToolSettings, Unconfined, WebSettings,
};
pub use snapshot::Snapshot;
pub use sources::{Discovered, Environment, KeyPresence, Origin};
pub use watch::{Watch, WatchError};
