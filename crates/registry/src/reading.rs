//! Reads the raw content of all configuration files at one moment. A comparison with an earlier reading shows whether a
//! file has changed.

use crate::files;
use crate::problem::Problem;
use crate::prompts::{self, PromptFile};
use crate::settings::Settings;
use crate::{services, settings};
use std::path::Path;
use std::time::Duration;

/// For each file in use: its raw text, or the problem if the file could not be read. The texts contain API keys, so
/// this type has no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Reading(Vec<Result<Option<String>, Problem>>);

/// polity reads the files again after this time, to find out whether they still change. A program may write a file in
/// pieces. polity assumes that such a program writes the next piece within this time.
const SETTLING: Duration = Duration::from_millis(20);

/// Maximum number of repeated readings while a file keeps changing.
const SETTLING_ROUNDS: u32 = 50;

impl Reading {
    /// Reads the files in use. The settings name the directory of the prompts. polity does this before each model call.
    /// It costs little, because all files together contain a few kilobytes.
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

    /// Waits until the files stop changing, and returns their last content.
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
