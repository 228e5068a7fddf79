//! The snapshot that is in force, and how it is replaced.

use crate::catalogue::Catalogue;
use crate::difference::differences;
use crate::files;
use crate::problem::{Place, Problem, Severity};
use crate::prompts::{self, Overrides, PromptFile, Prompts};
use crate::reading::Reading;
use crate::services;
use crate::settings::{self, Discover, Settings};
use crate::sources::{self, Declared, Discovered, Environment, Taken};
use arc_swap::ArcSwap;
use futures::future::BoxFuture;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{Mutex, broadcast};

/// Looks for a model server on this machine. Asked only where no service is declared and the settings allow it.
pub type Discovery = Box<dyn Fn() -> BoxFuture<'static, Option<Discovered>> + Send + Sync>;

/// How many reports a slow listener may be behind.
const REPORTS: usize = 64;

/// What the files of a configuration directory declare, in the latest revision that was valid.
pub struct Registry {
    config_dir: PathBuf,
    environment: Environment,
    discovery: Discovery,
    current: ArcSwap<Snapshot>,
    /// One reload at a time, so that an older reading never replaces a newer one.
    accepted: Mutex<Accepted>,
    reports: broadcast::Sender<Report>,
}

/// What a change of the files led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Whether it was taken.
    pub outcome: Outcome,
    /// The revision in force.
    pub revision: u64,
    /// What differs from the revision before; something exactly where the outcome is `Taken`.
    pub differences: Vec<String>,
    /// What is wrong with the files as they are now.
    pub problems: Vec<Problem>,
}

/// Whether a change of the files was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something in force differs. The problems say what of the change was not taken, if anything.
    Taken,
    /// Nothing in force differs, because of what is wrong with the change: the last good configuration goes on.
    Kept,
    /// Nothing in force differs, and nothing had to be refused: the file was mended, something changed that means
    /// nothing, or there is a new warning.
    Unchanged,
}

/// One whole revision of everything. It never changes, so whoever holds one sees no half-made change.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Rises with every change of the catalogue, the settings or the prompts.
    pub revision: u64,
    /// The services. Their own revision is that of the snapshot in which they last changed.
    pub catalogue: Arc<Catalogue>,
    /// The settings.
    pub settings: Arc<Settings>,
    /// The prompts.
    pub prompts: Arc<Prompts>,
    /// What is wrong with the files as they are now, those included that could not be taken.
    pub problems: Vec<Problem>,
}

/// What a reload did.
#[derive(Clone, Debug)]
pub enum Reloaded {
    /// Something changed; this is in force from now on.
    Changed(Arc<Snapshot>),
    /// Nothing changed; the problems of this snapshot may be new.
    Unchanged(Arc<Snapshot>),
}

/// A configuration that a program cannot start with.
#[derive(Debug, thiserror::Error)]
#[error("failed to load the configuration in {config_dir}: {}", list(.problems))]
pub struct LoadError {
    /// The directory.
    pub config_dir: PathBuf,
    /// Everything that is wrong, not only what makes it useless.
    pub problems: Vec<Problem>,
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

/// What the current snapshot was made from. The texts hold keys, so this is never printed.
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
    /// Reads a configuration directory for the first time. The problems that come with the registry are those of its
    /// first snapshot.
    ///
    /// # Errors
    ///
    /// Every problem, where a file cannot be read or parsed, or declares only services that cannot be used.
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

    /// The snapshot that is in force. Whoever builds a request takes one and uses nothing else.
    pub fn current(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Where the files are.
    pub fn config_dir(&self) -> &Path {
        &self.config_dir
    }

    /// Warns of each `${NAME}` in a key or a header of the services in force whose variable is not set, or is empty.
    /// `variable` looks one up. These are no problems of a snapshot, because the variables are read when a call is made.
    pub async fn unset_variables(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
        let accepted = self.accepted.lock().await;
        let text = accepted.services_text.as_deref();
        text.map(|text| services::unset_variables(text, variable)).unwrap_or_default()
    }

    /// What changes of the files lead to, from now on.
    pub fn reports(&self) -> broadcast::Receiver<Report> {
        self.reports.subscribe()
    }

    /// The snapshot that is in force once everything that the files say at this moment is. Costs a reading of a few
    /// kilobytes where nothing has changed; where something has, it waits until the files are no longer being written.
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

    /// Reads the directory again and puts what is valid in force. A file that cannot be taken changes nothing, and
    /// neither does one that is gone: tools that replace a file often delete it first. Only the prompts that
    /// stand in for built-in ones go out of force with their files.
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
            // Comments and white space alone change nothing.
            let says_other = !services::same(services.text.as_deref(), accepted.services_text.as_deref());
            let taken = match services.declared {
                Declared::Services(taken) if says_other => Some(taken),
                // What was found once stays: a server that restarts must not hand its agents to another model.
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
            // Other files count from now on.
            accepted.reading = Reading::of(&self.config_dir, &snapshot.settings);
        }
        if !same || snapshot.problems != before.problems {
            let differences = differences(&before, &snapshot);
            let outcome = match (differences.is_empty(), refused) {
                (false, _) => Outcome::Taken,
                (true, true) => Outcome::Kept,
                (true, false) => Outcome::Unchanged,
            };
            let problems = snapshot.problems.clone();
            // Nobody may be listening.
            let _ = self.reports.send(Report { outcome, revision, differences, problems });
        }
        if same { Reloaded::Unchanged(snapshot) } else { Reloaded::Changed(snapshot) }
    }
}

/// `app.json` as it was read.
struct App {
    text: Option<String>,
    settings: Settings,
}

impl App {
    /// Reads the file; nothing where it cannot be taken.
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

/// `llmservices.json` as it was read.
struct Services {
    text: Option<String>,
    declared: Declared,
}

impl Services {
    /// Reads the file; nothing where it cannot be taken.
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

/// Whether a file is there, or never was. One that is gone is reported.
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
            done: "what it said last stays in force until the next start".to_owned(),
        });
    }
    !gone
}

/// What is on this machine: a server, where one may be looked for; else the built-in models.
async fn found(discover: Discover, discovery: &Discovery) -> Taken {
    let discovered = match discover {
        Discover::On => discovery().await,
        Discover::Off => None,
    };
    sources::undeclared(discovered)
}

/// Reads the prompts that stand in for built-in ones. For a file that cannot be taken the one that was in force stays.
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
            done: "the built-in prompts count".to_owned(),
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
