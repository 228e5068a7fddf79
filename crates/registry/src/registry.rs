//! Holds the configuration snapshot in force, and replaces it when the files change.

use crate::catalogue::Catalogue;
use crate::difference::differences;
use crate::files;
use crate::problem::{Place, Problem, Severity};
use crate::prompts::{self, Overrides, PromptFile};
use crate::reading::Reading;
use crate::services;
use crate::settings::{self, Discover, Settings};
use crate::snapshot::Snapshot;
use crate::sources::{self, Declared, Discovered, Environment, Taken};
use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, broadcast};

/// Looks for model servers on this machine, and returns them with the most preferred server first. All their services
/// must have different ids. The registry calls this function only if no service is declared and the settings allow the
/// search.
pub type Discovery = Box<dyn Fn() -> BoxFuture<'static, Vec<Discovered>> + Send + Sync>;

/// Maximum number of reports that wait for a slow listener. If there are more, the listener loses the oldest reports.
const REPORTS: usize = 64;

/// Keeps the latest valid revision of the configuration that the files in a directory declare.
pub struct Registry {
    config_dir: PathBuf,
    environment: Environment,
    discovery: Discovery,
    current: ArcSwap<Snapshot>,
    /// The lock allows only one reload at a time. Otherwise an older reading could replace a newer one.
    accepted: Mutex<Accepted>,
    reports: broadcast::Sender<Report>,
}

/// A report to the listeners about a change of the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether the change took effect.
    pub outcome: ReloadOutcome,
    /// The revision in force after the change.
    pub revision: u64,
    /// The differences from the previous revision: at least one if the outcome is `Taken`, otherwise none.
    pub differences: Vec<String>,
    /// All problems of the files as they are now, including those that were reported before.
    pub problems: Vec<Problem>,
}

/// Whether a change of the files took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReloadOutcome {
    /// The configuration in force changed. If a part of the change is invalid, the problems name that part.
    Taken,
    /// The configuration in force did not change, because the change is invalid.
    Kept,
    /// The files changed in a way that has no effect on the configuration in force, and nothing in them was refused.
    /// For example, somebody restored the old content of a broken file, added a field with its default value, or caused
    /// a new warning.
    Unchanged,
}

/// The result of a reload.
#[derive(Clone, Debug)]
pub enum Reloaded {
    /// The configuration changed; this snapshot is in force from now on.
    Changed(Arc<Snapshot>),
    /// The configuration did not change; only the problems of this snapshot may be new.
    Unchanged(Arc<Snapshot>),
}

/// The configuration cannot be used, so the program cannot start.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the configuration in {config_dir}: {}", list(.problems))]
pub struct LoadError {
    /// The configuration directory.
    pub config_dir: PathBuf,
    /// All problems that were found, including problems that would not prevent a start.
    pub problems: Vec<Problem>,
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// The input that the current snapshot was built from. The texts contain API keys, so this type has no `Debug`.
struct Accepted {
    reading: Reading,
    app_text: Option<String>,
    services_text: Option<String>,
    taken: Taken,
    overrides: Overrides,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("config_dir", &self.config_dir).finish_non_exhaustive()
    }
}

impl Registry {
    /// Reads a configuration directory for the first time. Also returns the problems that the first snapshot
    /// contains.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or parsed, or if all declared services are invalid. The error contains all
    /// problems.
    pub async fn load(
        config_dir: &Path,
        environment: Environment,
        discovery: Discovery,
    ) -> Result<(Self, Vec<Problem>), LoadError> {
        let mut problems = Vec::new();
        let app = App::read(config_dir, &mut problems);
        let services = Services::read(config_dir, &environment, &mut problems);
        let (Some(app), Some(services)) = (app, services) else {
            return Err(LoadError { config_dir: config_dir.to_owned(), problems });
        };
        let taken = match services.declared {
            Declared::Services(taken) => taken,
            Declared::Nothing => found(app.settings.discover, &discovery).await,
        };
        let revision = 1;
        let (catalogue, problem) = Catalogue::new(revision, &taken, app.settings.default_service.as_ref());
        problems.extend(problem);
        let overrides = read_overrides(config_dir, &app.settings, &Overrides::new(), &mut problems);
        let (prompts, of_prompts) = prompts::build(app.settings.language, &overrides);
        problems.extend(of_prompts);
        let snapshot = Snapshot {
            revision,
            catalogue: Arc::new(catalogue),
            settings: Arc::new(app.settings),
            prompts: Arc::new(prompts),
            problems: problems.clone(),
        };
        let reading = Reading::of(config_dir, &snapshot.settings);
        let accepted =
            Accepted { reading, app_text: app.text, services_text: services.text, taken, overrides };
        let registry = Self {
            config_dir: config_dir.to_owned(),
            environment,
            discovery,
            current: ArcSwap::from_pointee(snapshot),
            accepted: Mutex::new(accepted),
            reports: broadcast::channel(REPORTS).0,
        };
        Ok((registry, problems))
    }

    /// Returns the snapshot in force. Build each request from one snapshot, so that no request mixes two revisions.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Returns the directory that holds the files.
    pub fn config_dir(&self) -> &Path {
        &self.config_dir
    }

    /// Warns of environment variables that have no value. Uses the function `variable` to look up each `${NAME}` in the
    /// configured services, MCP servers and web search. Returns a warning for each variable that is unset. Also returns
    /// a warning for a variable that is empty, if a key or a header of a service uses it. A snapshot does not contain
    /// these warnings, because polity reads environment variables only when it uses them.
    pub async fn unset_variables(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
        let accepted = self.accepted.lock().await;
        let text = accepted.services_text.as_deref();
        let mut problems: Vec<Problem> =
            text.map(|text| services::unset_variables(text, &variable)).unwrap_or_default();
        problems.extend(self.current().settings.unset_variables(variable));
        problems
    }

    /// Subscribes to the reports of all later file changes.
    pub fn reports(&self) -> broadcast::Receiver<Report> {
        self.reports.subscribe()
    }

    /// Reloads the files if they have changed, and returns the snapshot in force.
    /// Without a change, this function only reads a few kilobytes. After a change, it first waits until the files
    /// stop changing, for about a second at most.
    pub async fn refresh(&self) -> Arc<Snapshot> {
        let current = self.current();
        let reading = Reading::of(&self.config_dir, &current.settings);
        if reading == self.accepted.lock().await.reading {
            return self.current();
        }
        let settled = reading.settled(&self.config_dir, &current.settings).await;
        if settled != self.accepted.lock().await.reading {
            self.reload().await;
        }
        self.current()
    }

    /// Reads the directory again and puts the valid parts in force. If a file cannot be used, its earlier content stays
    /// in force. The same is true if a file other than a prompt file was deleted, because tools that replace a file
    /// often delete the old file first. If a prompt file was deleted, the built-in prompt is used again.
    pub async fn reload(&self) -> Reloaded {
        let mut accepted = self.accepted.lock().await;
        let before = self.current();
        accepted.reading = Reading::of(&self.config_dir, &before.settings);
        let mut problems = Vec::new();
        let mut gone = Vec::new();

        let app = App::read(&self.config_dir, &mut problems);
        let app = app.filter(|app| is_there(settings::FILE, &app.text, &accepted.app_text, &mut gone));
        let settings = match app {
            Some(app) => {
                accepted.app_text = app.text;
                Arc::new(app.settings)
            }
            None => Arc::clone(&before.settings),
        };

        let services = Services::read(&self.config_dir, &self.environment, &mut problems);
        let services =
            services.filter(|read| is_there(services::FILE, &read.text, &accepted.services_text, &mut gone));
        let mut services_changed = false;
        if let Some(services) = services {
            // A change of comments or white space alone does not count as a change.
            let says_other = !services::same(services.text.as_deref(), accepted.services_text.as_deref());
            let taken = match services.declared {
                Declared::Services(taken) if says_other => Some(taken),
                // Search again only if the file or the setting `discover` has changed. Otherwise keep the servers that
                // an earlier search found. One of them may be restarting at this moment. A new search would not find
                // it, and the agents would get another model.
                Declared::Nothing if says_other || settings.discover != before.settings.discover => {
                    Some(found(settings.discover, &self.discovery).await)
                }
                Declared::Services(_) | Declared::Nothing => None,
            };
            services_changed = taken.is_some();
            accepted.services_text = services.text;
            accepted.taken = taken.unwrap_or_else(|| accepted.taken.clone());
        }

        let next = before.revision + 1;
        let (catalogue, problem) = Catalogue::new(next, &accepted.taken, settings.default_service.as_ref());
        problems.extend(problem);
        let same_default = catalogue.default_service().id == before.catalogue.default_service().id;
        let same_catalogue = same_default && !services_changed;
        let catalogue = if same_catalogue { Arc::clone(&before.catalogue) } else { Arc::new(catalogue) };

        let same_language = settings.language == before.settings.language;
        let previous = std::mem::take(&mut accepted.overrides);
        let none = Overrides::new();
        let same_directory = same_language && settings.prompts == before.settings.prompts;
        let kept = if same_directory { &previous } else { &none };
        let overrides = read_overrides(&self.config_dir, &settings, kept, &mut problems);
        let (prompts, of_prompts) = prompts::build(settings.language, &overrides);
        problems.extend(of_prompts);
        let same_prompts = same_language && overrides == previous;
        let prompts = if same_prompts { Arc::clone(&before.prompts) } else { Arc::new(prompts) };
        accepted.overrides = overrides;

        let same = same_catalogue && same_prompts && settings == before.settings;
        let revision = if same { before.revision } else { next };
        let is_refusal = |problem: &&Problem| problem.severity == Severity::Error;
        let refused =
            problems.iter().filter(is_refusal).chain(&gone).any(|problem| !before.problems.contains(problem));
        problems.extend(gone);
        let snapshot = Arc::new(Snapshot { revision, catalogue, settings, prompts, problems });
        self.current.store(Arc::clone(&snapshot));
        if snapshot.settings.prompts != before.settings.prompts || !same_language {
            // The new settings name another directory or another language, so other prompt files are in use now. Read
            // these files, because later comparisons need their content.
            accepted.reading = Reading::of(&self.config_dir, &snapshot.settings);
        }
        if !same || snapshot.problems != before.problems {
            let differences = differences(&before, &snapshot);
            let outcome = match (differences.is_empty(), refused) {
                (false, _) => ReloadOutcome::Taken,
                (true, true) => ReloadOutcome::Kept,
                (true, false) => ReloadOutcome::Unchanged,
            };
            let problems = snapshot.problems.clone();
            // Ignore an error: it only means that nobody listens to the reports.
            let _ = self.reports.send(Report { outcome, revision, differences, problems });
        }
        if same { Reloaded::Unchanged(snapshot) } else { Reloaded::Changed(snapshot) }
    }
}

/// The content of `app.json`.
struct App {
    text: Option<String>,
    settings: Settings,
}

impl App {
    /// Reads the file. If the file cannot be used, adds the reasons to `problems` and returns `None`.
    fn read(config_dir: &Path, problems: &mut Vec<Problem>) -> Option<Self> {
        let read = files::read(&config_dir.join(settings::FILE), settings::FILE).and_then(|text| {
            let parsed = text.as_deref().map(settings::parse).transpose()?;
            Ok((text, parsed.unwrap_or_default()))
        });
        match read {
            Ok((text, (settings, of_settings))) => {
                problems.extend(of_settings);
                Some(Self { text, settings })
            }
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    }
}

/// The content of `llmservices.json`.
struct Services {
    text: Option<String>,
    declared: Declared,
}

impl Services {
    /// Reads the file. If the file cannot be used, adds the reasons to `problems` and returns `None`.
    fn read(config_dir: &Path, environment: &Environment, problems: &mut Vec<Problem>) -> Option<Self> {
        let read =
            files::read(&config_dir.join(services::FILE), services::FILE).map_err(|problem| vec![problem]);
        let read = read.and_then(|text| {
            let (declared, of_services) = sources::declared(text.as_deref(), environment)?;
            Ok((text, declared, of_services))
        });
        match read {
            Ok((text, declared, of_services)) => {
                problems.extend(of_services);
                Some(Self { text, declared })
            }
            Err(of_services) => {
                problems.extend(of_services);
                None
            }
        }
    }
}

/// Returns `false` if a file was in use and has been deleted since then. In this case, also reports the deletion in
/// `problems`.
fn is_there(
    file: &str,
    text: &Option<String>,
    accepted: &Option<String>,
    problems: &mut Vec<Problem>,
) -> bool {
    let gone = text.is_none() && accepted.is_some();
    if gone {
        problems.push(Problem {
            file: file.to_owned(),
            place: Place::Whole,
            severity: Severity::Warning,
            what: "the file is gone".to_owned(),
            done: "its last content stays in force until the next start".to_owned(),
        });
    }
    !gone
}

/// Returns the services for a configuration that declares none. If the settings allow a search and the search finds
/// model servers on this machine, returns their services; otherwise returns the built-in models.
async fn found(discover: Discover, discovery: &Discovery) -> Taken {
    let discovered = match discover {
        Discover::On => discovery().await,
        Discover::Off => Vec::new(),
    };
    sources::undeclared(discovered)
}

/// Reads the prompt files that replace built-in ones. If a file cannot be used, its text in `kept` stays in force.
fn read_overrides(
    config_dir: &Path,
    settings: &Settings,
    kept: &Overrides,
    problems: &mut Vec<Problem>,
) -> Overrides {
    let Some(directory) = &settings.prompts else {
        return Overrides::new();
    };
    let directory = config_dir.join(directory);
    if !directory.is_dir() {
        problems.push(Problem {
            file: settings::FILE.to_owned(),
            place: Place::Pointer("/prompts".to_owned()),
            severity: Severity::Error,
            what: "is not a directory".to_owned(),
            done: "the built-in prompts are used".to_owned(),
        });
    }
    let language = settings.language;
    let mut overrides = Overrides::new();
    for &file in PromptFile::ALL {
        let path = directory.join(language.as_str()).join(file.name());
        let text = files::read(&path, &prompts::label(language, file));
        let checked = text.and_then(|text| match text {
            Some(text) => prompts::check(language, file, &text).map(|()| Some(text)),
            None => Ok(None),
        });
        let text = checked.unwrap_or_else(|problem| {
            problems.push(problem);
            kept.get(&file).cloned()
        });
        overrides.extend(text.map(|text| (file, text)));
    }
    overrides
}

#[cfg(test)]
mod tests;
