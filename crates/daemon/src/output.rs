//! What the person sees: messages on standard output, what happens on standard error; or everything as JSON lines.
//!
//! Whatever cannot be written to standard output ends the program, which loses nothing; whatever cannot be written to
//! standard error is let go.

mod meter;
mod progress;
pub(crate) mod table;
pub(crate) mod terminal;
mod text;

pub(crate) use meter::Meter;
pub(crate) use progress::in_words;
pub(crate) use terminal::harmless;
pub(crate) use text::{bytes, one_line};

use crate::config::small_window;
use crate::failure::Failure;
use crate::places::ConfigDirectory;
use polity_client::Client;
use polity_registry::{Catalogue, Origin, Problem};
use polity_society::id::{ServiceId, TaskId};
use polity_view::{Entry, Outcome};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Says something to the person on standard error, each line under the name of the program.
pub(crate) fn complain(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let lines: String = fit(text, &stderr).lines().map(|line| format!("polity: {line}\n")).collect();
    // Nothing can be done where even this cannot be printed.
    let _ = stderr.write_all(lines.as_bytes());
}

/// Prints lines on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let text = fit(text, &stdout);
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_output)
}

/// Prints lines in which every text is harmless already, with styles where standard output shows them.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_output)
}

/// A text as a stream may get it: byte for byte, but for what a terminal would obey.
fn fit<'t>(text: &'t str, stream: &impl IsTerminal) -> Cow<'t, str> {
    if stream.is_terminal() { terminal::harmless(text) } else { Cow::Borrowed(text) }
}

/// Which files count, and where the models come from.
pub(crate) struct Sources<'a> {
    /// The configuration directory, with why it counts.
    pub(crate) config: &'a str,
    /// The configuration directory.
    pub(crate) config_dir: &'a str,
    /// The data directory.
    pub(crate) data: &'a Path,
    /// The services.
    pub(crate) services: Vec<&'a str>,
    /// Where they come from.
    pub(crate) origin: &'a str,
    /// Whether they are the built-in ones.
    pub(crate) is_rehearsal: bool,
    /// What there is to say of the context window of the default service, where it is small.
    pub(crate) small_window: Option<String>,
}

/// Where things are shown.
pub(crate) struct Output {
    form: Form,
    progress: Progress,
}

/// What standard output is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Messages, as text.
    Text,
    /// Everything, one JSON object a line.
    Json,
}

/// Whether what happens is shown on standard error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Shown,
    Quiet,
}

impl Output {
    /// An output; what happens is shown only where somebody looks.
    pub(crate) fn new(form: Form) -> Self {
        let watched = std::io::stderr().is_terminal() && form == Form::Text;
        let progress = if watched { Progress::Shown } else { Progress::Quiet };
        Self { form, progress }
    }

    /// Says what is wrong with the configuration but does not stand in the way.
    pub(crate) fn problems(&self, problems: &[Problem]) {
        for problem in problems {
            complain(&problem.to_string());
        }
    }

    /// Says which files count and where the models come from.
    pub(crate) fn sources(&self, sources: &Sources<'_>) -> Result<(), Failure> {
        let Sources { config, config_dir, data, services, origin, is_rehearsal, small_window } = sources;
        if self.form == Form::Json {
            return print_json(&json!({
                "event": "services",
                "origin": origin,
                "services": services,
                "configDir": config_dir,
                "dataDir": data.to_string_lossy(),
                "warning": small_window,
            }));
        }
        if self.progress == Progress::Shown {
            complain(&format!("configuration: {config}"));
            complain(&format!("data: {}", data.display()));
        }
        // That no real model answers must not be missed, even where nobody watches.
        if self.progress == Progress::Shown || *is_rehearsal {
            complain(&format!("services: {} ({origin})", services.join(", ")));
        }
        if let Some(small) = small_window {
            complain(&format!("warning: {small}"));
        }
        Ok(())
    }

    /// Says which files count for a society of this process, and where its models come from.
    pub(crate) fn own_sources(
        &self,
        config: &ConfigDirectory,
        data: &Path,
        catalogue: &Catalogue,
    ) -> Result<(), Failure> {
        let origin = catalogue.origin();
        self.sources(&Sources {
            config: &config.to_string(),
            config_dir: &config.path.to_string_lossy(),
            data,
            services: catalogue.services().iter().map(|service| service.id.as_str()).collect(),
            origin: &origin.to_string(),
            is_rehearsal: *origin == Origin::Rehearsal,
            small_window: {
                let first = catalogue.default_service();
                small_window(&first.id, first.context_window)
            },
        })
    }

    /// Prints which files a daemon uses and where its models come from.
    pub(crate) async fn sources_of_daemon(&self, client: &Client, data: &Path) -> Result<(), Failure> {
        let config = client.config().await?;
        let directory = config.directory.clone().unwrap_or_default();
        // The default service may be gone: the configuration may have changed between the two requests.
        let first = client.service(&config.default_service).await.ok();
        self.sources(&Sources {
            config: &format!("{directory} (of the daemon at {})", client.url()?),
            config_dir: &directory,
            data,
            services: config.services.iter().map(ServiceId::as_str).collect(),
            origin: &config.origin,
            is_rehearsal: config.origin == Origin::Rehearsal.to_string(),
            small_window: first.and_then(|first| small_window(&first.id, first.context_window)),
        })
    }

    /// Returns whether messages are printed as text or as JSON.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Says that there was nothing to go on with.
    pub(crate) fn nothing_left(&self, task: &TaskId) {
        complain(&format!("nothing was left to do; the latest task is {task}: polity messages --task {task}"));
    }

    /// Shows something that happened.
    pub(crate) fn event(&self, entry: &Entry) -> Result<(), Failure> {
        if self.form == Form::Json {
            return print_json(entry);
        }
        if self.progress == Progress::Shown
            && let Some(text) = progress::describe(&entry.event)
        {
            // Nothing can be done where even this cannot be printed.
            let _ = writeln!(anstream::stderr(), "{text}");
        }
        Ok(())
    }
}

/// How a task ended, where that needs words; questions to the person speak for themselves.
pub(crate) fn outcome_in_words(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Answered | Outcome::AwaitsUser => None,
        Outcome::Unanswered => Some("nothing is left to do, and there is no answer"),
        Outcome::Limited => Some("a limit of app.json stopped the task"),
        Outcome::NoModel => Some(
            "no model could be reached; the message above says why: check baseURL, model and apiKey in llmservices.json, and that the server runs",
        ),
    }
}

/// Prints an object on a line of its own.
pub(crate) fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(object).map_err(|error| Failure::Defect(error.to_string()))?;
    print(&terminal::harmless_json(&json))
}
