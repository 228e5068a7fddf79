//! One complete revision of the configuration.

use crate::catalogue::Catalogue;
use crate::problem::Problem;
use crate::prompts::Prompts;
use crate::settings::Settings;
use std::sync::Arc;

/// One complete revision of the configuration. A snapshot never changes. So code that uses a snapshot always sees a
/// change of the configuration completely or not at all.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// A number that rises with every change of the catalogue, the settings or the prompts.
    pub revision: u64,
    /// The services. When the services last changed, a new snapshot was made; [`Catalogue::revision`] is the revision
    /// of that snapshot.
    pub catalogue: Arc<Catalogue>,
    /// The settings of `app.json`, with defaults for the fields that it does not contain.
    pub settings: Arc<Settings>,
    /// The prompts in the language of the settings. Where the person has a file that replaces a built-in prompt, this
    /// is the text of that file.
    pub prompts: Arc<Prompts>,
    /// All problems in the current files. If polity cannot use a file, the file is not in force, but its problems are
    /// included.
    pub problems: Vec<Problem>,
}
