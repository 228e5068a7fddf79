//! `polity` without arguments on a terminal: finds the models, offers to write the configuration, says what the society
//! can do, and offers to begin. No file is written before the person has answered all questions about files, so Ctrl-C
//! during these questions changes no file.

mod begin;
mod words;

use crate::config::{self, DISCOVERY};
use crate::failure::Failure;
use crate::locale;
use crate::output::width::width;
use crate::output::wrap::wrapped;
use crate::output::{Elapsed, complain, harmless, print};
use crate::places;
use crate::signals::Interruption;
use polity_disk::write_private;
use polity_llm::{Inquirer, discover_unusable};
use polity_registry::{
    Discover, Discovered, Environment, Origin, Registry, Service, built_in_texts, config_text,
    language_is_chosen, with_language,
};
use polity_rehearsal::SCHEME;
use polity_society::text::{TextKey, Texts};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use words::Glance;

const APP: &str = "app.json";
const SERVICES: &str = "llmservices.json";
/// Columns that [`complain`] takes at the beginning of each line.
const NAME: usize = "polity: ".len();
/// The beginning of a line with a command that the person can copy.
const COMMAND: &str = "  ";
/// Columns that stay free for the answer after a question.
const ANSWER: usize = " yes".len();

/// Returns whether a person can be asked: standard input and output are a terminal.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Runs the dialogue; returns the exit code.
pub(crate) async fn run() -> Result<u8, Failure> {
    let mut person = Person::new()?;
    let directory = places::config_as_it_is(None)?.path;
    let locale = locale::language();
    let nobody: polity_registry::Discovery = Box::new(|| Box::pin(async { Vec::new() }));
    let environment = Environment::look_up(|name| std::env::var(name).ok());
    let (registry, problems) = Registry::load(&directory, environment, nobody).await?;
    let current = registry.current();
    let texts = built_in_texts(locale.unwrap_or(current.settings.language));
    for problem in &problems {
        complain(&broken(&problem.to_string(), NAME));
    }
    tell(texts.get(TextKey::FirstWelcome))?;

    let mut found = Vec::new();
    match current.catalogue.origin() {
        Origin::File => tell(&words::declared(TextKey::FirstOfFile, &texts))?,
        Origin::Environment => tell(&words::declared(TextKey::FirstOfEnvironment, &texts))?,
        Origin::Discovered(_) | Origin::Rehearsal if current.settings.discover == Discover::On => {
            let searching = Elapsed::begin(texts.get(TextKey::FirstSearching));
            found = config::discover().await;
            drop(searching);
            if found.is_empty() {
                tell_nothing_found(&texts).await?;
            }
        }
        Origin::Discovered(_) | Origin::Rehearsal => tell(texts.get(TextKey::FirstNothing))?,
    }
    let services: Vec<&Service> = match current.catalogue.origin() {
        Origin::File | Origin::Environment => {
            current.catalogue.services().iter().map(AsRef::as_ref).collect()
        }
        // The rehearsal models are built in, to try polity out. They claim capabilities, but give no real answers, so
        // they do not count as services here.
        Origin::Discovered(_) | Origin::Rehearsal => found.iter().flat_map(Discovered::services).collect(),
    };
    let lines: Vec<String> = if found.is_empty() {
        services.iter().map(|service| words::of_service(service, &texts)).collect()
    } else {
        words::of_servers(&found, &texts)
    };
    for line in &lines {
        tell(line)?;
    }
    let glances = match current.catalogue.origin() {
        Origin::File | Origin::Environment => glances(&services, &texts).await,
        // The search has just asked these servers.
        Origin::Discovered(_) | Origin::Rehearsal => Vec::new(),
    };
    for warning in words::warnings(&services, &glances, &texts) {
        tell(&warning)?;
    }

    let mut files = Vec::new();
    if !found.is_empty() {
        let path = directory.join(SERVICES);
        if person.agrees(&texts.fill(TextKey::FirstWrite, &[("path", &path.display().to_string())])).await? {
            files.push((path, polity_probe::written(services.iter().copied())));
        }
    }
    let path = directory.join(APP);
    let used = current.settings.language;
    let question = texts.fill(TextKey::FirstLanguage, &[("path", &path.display().to_string())]);
    if let Some(language) = locale.filter(|language| *language != used)
        && let Some(before) = settings_text(&path).filter(|text| !language_is_chosen(text))
        && let Some(with_own) = with_language(&before, language)
        // Nothing is written at the end of the input, because nobody has answered.
        && let Some(line) = person.answers(&question).await?
    {
        // A no is written too, so that the question is not asked again.
        let text = if words::is_yes(&line) { Some(with_own) } else { with_language(&before, used) };
        files.extend(text.map(|text| (path, text)));
    }
    write(&directory, &files, &texts)?;

    // If root gets no answer, each suggested command would fail.
    if words::root_may_work(&services, &glances, &current.catalogue.default_service().id) {
        let usable = words::usable(&services, &glances);
        if let Some(line) = words::abilities(&usable, &texts) {
            tell(&line)?;
        }
        tell(&words::samples(&usable, &texts))?;
    }
    begin::offer(&mut person, &texts).await
}

/// Asks the servers of declared services whether they answer, all at the same time. Takes no longer than twice the time
/// limit [`DISCOVERY`].
async fn glances(services: &[&Service], texts: &Texts) -> Vec<Glance> {
    let Ok(inquirer) = Inquirer::new(DISCOVERY) else { return Vec::new() };
    let _asking = Elapsed::begin(texts.get(TextKey::FirstAsking));
    let inquirer = &inquirer;
    let asked = services.iter().map(|service| async move {
        if service.endpoint.base_url.starts_with(SCHEME) {
            return Glance::Answers(None);
        }
        Glance::of(polity_probe::glance(inquirer, service, DISCOVERY).await)
    });
    futures::future::join_all(asked).await
}

/// Prints a text, broken to the width of the terminal.
fn tell(text: &str) -> Result<(), Failure> {
    print(&broken(text, 0))
}

/// Breaks lines so that at least `taken` columns of the terminal stay free for other text.
fn broken(text: &str, taken: usize) -> String {
    match width() {
        Some(columns) => broken_at(&harmless(text), columns.saturating_sub(taken)),
        None => text.to_owned(),
    }
}

/// Breaks all lines that are wider than `columns`, except for commands. The terminal wraps a long command itself, and a
/// person who copies the command gets it without a line break.
fn broken_at(text: &str, columns: usize) -> String {
    let line_broken = |line: &str| match line.starts_with(COMMAND) {
        true => line.to_owned(),
        false => wrapped(line, columns),
    };
    text.split('\n').map(line_broken).collect::<Vec<_>>().join("\n")
}

/// Prints that no model server was found, or that a server without any model is running. Names the ports on which
/// something listens but says nothing.
async fn tell_nothing_found(texts: &Texts) -> Result<(), Failure> {
    let searching = Elapsed::begin(texts.get(TextKey::FirstSearching));
    let unusable = discover_unusable(DISCOVERY).await;
    drop(searching);
    for line in words::of_unusable(&unusable, texts) {
        tell(&line)?;
    }
    Ok(())
}

/// Returns the text of `app.json`, or the default text if there is no such file. Returns `None` if the file cannot be
/// read, because polity must not replace such a file.
fn settings_text(path: &Path) -> Option<String> {
    match config_text(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Some(polity_registry::DEFAULT_SETTINGS.to_owned())
        }
        Err(_) => None,
    }
}

/// Writes each file atomically. If a path is a symbolic link, the target of the link is written and the link stays.
fn write(directory: &Path, files: &[(PathBuf, String)], texts: &Texts) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(directory)
        .map_err(|source| Failure::Unwritable { path: directory.to_owned(), source })?;
    for (path, text) in files {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        write_private(&real, text).map_err(|source| Failure::Unwritable { path: path.clone(), source })?;
        tell(&texts.fill(TextKey::FirstWritten, &[("path", &path.display().to_string())]))?;
    }
    Ok(())
}

/// The person at the terminal.
pub(crate) struct Person {
    interruption: Interruption,
}

impl Person {
    fn new() -> Result<Self, Failure> {
        let interruption = Interruption::listen()
            .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
        Ok(Self { interruption })
    }

    /// Waits until the person presses Ctrl-C.
    pub(crate) async fn interrupts(&mut self) {
        self.interruption.happened().await;
    }

    /// Asks a question. Returns the line that the person writes; nothing at the end of the input.
    pub(crate) async fn answers(&mut self, question: &str) -> Result<Option<String>, Failure> {
        let mut out = io::stdout().lock();
        write!(out, "{}", broken(question, ANSWER)).and_then(|()| out.flush()).map_err(Failure::of_output)?;
        drop(out);
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().read_line(&mut line).map(|length| (length > 0).then(|| line.trim().to_owned()))
        });
        let answer = tokio::select! {
            read = read => match read {
                Ok(Ok(line)) => Ok(line),
                Ok(Err(error)) => Err(Failure::StandardInput(error)),
                Err(error) => Err(Failure::Defect(error.to_string())),
            },
            () = self.interruption.happened() => Err(Failure::Left),
        };
        if !matches!(answer, Ok(Some(_))) {
            // The person has not ended the line of the question with Enter, so end it here.
            print("")?;
        }
        answer
    }

    /// Asks a question; returns whether the person agrees. An empty line means yes.
    async fn agrees(&mut self, question: &str) -> Result<bool, Failure> {
        Ok(self.answers(question).await?.is_some_and(|line| words::is_yes(&line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::Endpoint;
    use polity_society::id::ServiceId;
    use polity_society::text::Language;

    #[test]
    fn a_command_stays_on_one_line() {
        let command = "  polity run \"Name the best reasons for and against.\"";
        let text = format!("You can begin with one of these:\n{command}");
        assert_eq!(broken_at(&text, 20), format!("You can begin with\none of these:\n{command}"));
    }

    #[tokio::test]
    async fn the_built_in_models_are_not_asked_whether_they_answer() {
        let endpoint = Endpoint::new(SCHEME, "rehearsal-text");
        let service = Service::new(ServiceId::new("rehearsal"), endpoint);
        let texts = built_in_texts(Language::En);
        assert_eq!(glances(&[&service], &texts).await, [Glance::Answers(None)]);
    }

    #[test]
    fn settings_that_cannot_be_read_are_not_taken_for_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(APP);
        assert_eq!(settings_text(&path).as_deref(), Some(polity_registry::DEFAULT_SETTINGS));
        fs::write(&path, "{}").unwrap();
        assert_eq!(settings_text(&path).as_deref(), Some("{}"));
        fs::write(&path, [0xFF]).unwrap();
        assert_eq!(settings_text(&path), None);
        fs::File::create(&path).unwrap().set_len(5 << 20).unwrap();
        assert_eq!(settings_text(&path), None);
        fs::remove_file(&path).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(settings_text(&path), None);
    }
}
