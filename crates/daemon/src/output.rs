//! The output for the user has one of two forms. As text, messages go to standard output and progress goes to standard
//! error. As JSON lines, both go to standard output.
//!
//! The program ends if it cannot write to standard output; no data is lost then, because the society stores its data
//! itself. The program ignores failures to write to standard error.

mod elapsed;
pub(crate) mod foot;
mod markdown;
mod meter;
mod page;
mod progress;
pub(crate) mod table;
pub(crate) mod terminal;
mod text;
pub(crate) mod width;
pub(crate) mod wrap;
pub(crate) mod wrapped;

pub(crate) use elapsed::Elapsed;
pub(crate) use foot::Foot;
pub(crate) use meter::Meter;
pub(crate) use page::Page;
pub(crate) use progress::in_words;
pub(crate) use terminal::harmless;
pub(crate) use text::{bytes, one_line, shortened};

use crate::config::small_window;
use crate::failure::Failure;
use crate::locale;
use crate::places::ConfigDirectory;
use crate::suggested::repeating;
use polity_client::Client;
use polity_registry::{Catalogue, Origin, Problem};
use polity_society::id::{ServiceId, TaskId};
use polity_view::{Entry, Outcome};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Prints a text on standard error, with the name of the program before each line.
pub(crate) fn complain(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let lines: String = fit(text, &stderr).lines().map(|line| format!("polity: {line}\n")).collect();
    // Ignore a failure: an error message about standard error could not be printed either.
    let _ = stderr.write_all(lines.as_bytes());
}

/// Prints lines on standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let text = fit(text, &stdout);
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_output)
}

/// Prints lines with styles; removes the styles if standard output cannot show them. Apart from styles, the lines must
/// contain no character that controls a terminal.
pub(crate) fn show(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_output)
}

/// Prints a text that was formatted for this page, which is a terminal or a pipe.
pub(crate) fn print_on(page: Page, words: &str) -> Result<(), Failure> {
    match page {
        Page::Terminal { .. } => show(words),
        Page::Pipe => print(words),
    }
}

/// Makes a text safe for a stream: on a terminal, replaces the characters that control the terminal; otherwise
/// changes nothing.
fn fit<'t>(text: &'t str, stream: &impl IsTerminal) -> Cow<'t, str> {
    if stream.is_terminal() { terminal::harmless(text) } else { Cow::Borrowed(text) }
}

/// The directories that are in use, and the origin of the services.
pub(crate) struct Sources<'a> {
    /// The configuration directory, and the reason why it is used.
    pub(crate) config: &'a str,
    /// The path of the configuration directory.
    pub(crate) config_dir: &'a str,
    pub(crate) data: &'a Path,
    pub(crate) services: Vec<&'a str>,
    /// Where the services come from, in words.
    pub(crate) origin: &'a str,
    /// Whether the services are the built-in rehearsal models.
    pub(crate) is_rehearsal: bool,
    /// A warning if the context window of the default service is small; absent otherwise.
    pub(crate) small_window: Option<String>,
}

/// The output of a command: prints messages, events and outcomes in the chosen form.
pub(crate) struct Output {
    form: Form,
    progress: Progress,
}

/// What standard output contains.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Only the messages to the user, as text.
    Text,
    /// Everything, one JSON object per line.
    Json,
}

/// Whether events are printed on standard error.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Shown,
    Quiet,
}

impl Output {
    /// Creates an output. It prints events on standard error, but only if standard error is a terminal and the form
    /// is text.
    pub(crate) fn new(form: Form) -> Self {
        let watched = std::io::stderr().is_terminal() && form == Form::Text;
        let progress = if watched { Progress::Shown } else { Progress::Quiet };
        Self { form, progress }
    }

    /// Prints problems of the configuration that do not prevent the start.
    pub(crate) fn problems(&self, problems: &[Problem]) {
        for problem in problems {
            complain(&problem.to_string());
        }
    }

    /// Prints which directories are in use, and where the models come from.
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
        // Print this for rehearsal models even if no progress is printed: the user must learn that no real model
        // answers.
        if self.progress == Progress::Shown || *is_rehearsal {
            complain(&format!("services: {} ({origin})", services.join(", ")));
        }
        if let Some(small) = small_window {
            complain(&format!("warning: {small}"));
        }
        // The directory of a daemon may be unknown.
        if self.progress == Progress::Shown
            && !config_dir.is_empty()
            && let Some(line) = locale::unchosen(Path::new(config_dir))
        {
            complain(&line);
        }
        Ok(())
    }

    /// Prints which files a society in this process uses, and where its models come from.
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
                small_window(&first.id, first.context_window, &first.endpoint.base_url)
            },
        })
    }

    /// Prints which files a daemon uses and where its models come from.
    pub(crate) async fn sources_of_daemon(&self, client: &Client, data: &Path) -> Result<(), Failure> {
        let config = client.config().await?;
        let directory = config.directory.clone().unwrap_or_default();
        self.sources(&Sources {
            config: &format!("{directory} (of the daemon at {})", client.url()?),
            config_dir: &directory,
            data,
            services: config.services.iter().map(ServiceId::as_str).collect(),
            origin: &config.origin,
            is_rehearsal: config.is_rehearsal,
            small_window: config
                .default_service_url
                .and_then(|url| small_window(&config.default_service, config.default_context_window, &url)),
        })
    }

    /// Returns whether messages are printed as text or as JSON.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Tells the user that there was no work to continue.
    pub(crate) fn nothing_left(&self, task: &TaskId) {
        let words =
            format!("nothing was left to do; the latest task is {task}: polity messages --task {task}");
        complain(&repeating(&words));
    }

    /// Prints an event. In text form, prints it only if progress is shown.
    pub(crate) fn event(&self, entry: &Entry) -> Result<(), Failure> {
        if self.form == Form::Json {
            return print_json(entry);
        }
        if self.progress == Progress::Shown
            && let Some(text) = progress::describe(&entry.event)
        {
            // Ignore a failure: the society does not depend on the progress display.
            let _ = writeln!(anstream::stderr(), "{text}");
        }
        Ok(())
    }
}

/// Describes how a task ended. Returns nothing if the task was answered or waits for the user, because the messages to
/// the user show that.
pub(crate) fn outcome_in_words(outcome: Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Answered | Outcome::AwaitsUser => None,
        Outcome::Unanswered => Some("nothing is left to do, and there is no answer"),
        Outcome::Limited => Some("a limit of app.json stopped the task"),
        Outcome::NoModel => Some("no model could be used; the message above says why, and what to do"),
    }
}

/// Prints an object as one line of JSON.
pub(crate) fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    let json = serde_json::to_string(object).map_err(|error| Failure::Defect(error.to_string()))?;
    print(&terminal::harmless_json(&json))
}
