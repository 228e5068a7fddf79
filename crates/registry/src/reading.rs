//! What the files hold at one moment, to tell whether anything has changed since.

use crate::files;
use crate::problem::Problem;
use crate::prompts::{self, PromptFile};
use crate::settings::Settings;
use crate::{services, settings};
use std::path::Path;
use std::time::Duration;

/// The raw texts of all files that count, or why one could not be read. They hold keys, so this is never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Reading(Vec<Result<Option<String>, Problem>>);

/// Whoever writes a file in pieces is done with it, or comes back, within this time.
const SETTLING: Duration = Duration::from_millis(20);

/// How often a reading is repeated at most while a file keeps changing.
const SETTLING_ROUNDS: u32 = 50;

impl Reading {
    /// Reads the files that count under these settings. A few kilobytes: cheap enough to be done before each model call.
    pub(crate) fn of(config_dir: &Path, settings: &Settings) -> Self {
        let mut texts: Vec<_> = [settings::FILE, services::FILE]
            .into_iter()
            .map(|name| files::read(&config_dir.join(name), name))
            .collect();
        if let Some(directory) = &settings.prompts {
            let directory = config_dir.join(directory).join(settings.language.as_str());
            texts.extend(PromptFile::ALL.iter().map(|&file| {
                files::read(&directory.join(file.name()), &prompts::label(settings.language, file))
            }));
        }
        Self(texts)
    }

    /// Waits until the files no longer change.
    pub(crate) async fn settled(mut self, config_dir: &Path, settings: &Settings) -> Self {
        for _ in 0..SETTLING_ROUNDS {
            tokio::time::sleep(SETTLING).await;
            let again = Self::of(config_dir, settings);
            if again == self {
                break;
            }
            self = again;
        }
        self
    }
}
