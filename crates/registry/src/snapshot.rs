//! One complete revision of the configuration.

use crate::catalogue::Catalogue;
use crate::problem::Problem;
use crate::prompts::Prompts;
use crate::settings::Settings;
use std::sync::Arc;

/// One complete revision of the configuration. A snapshot never changes, so the code that uses a snapshot never sees
/// one half of a change.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// A number that rises with every change of the catalogue, the settings or the prompts.
    pub revision: u64,
    /// The services. [`Catalogue::revision`] is the revision of the snapshot in which they last changed.
    pub catalogue: Arc<Catalogue>,
    /// The settings of `app.json`, with defaults for the fields that it does not contain.
    pub settings: Arc<Settings>,
    /// The prompts in the language of the settings, including the files that replace built-in ones.
    pub prompts: Arc<Prompts>,
    /// All problems in the current files, including the problems of files that polity cannot use and that are therefore
    /// not in force.
    pub problems: Vec<Problem>,
}
