//! What the person sees: messages on standard output, what happens on standard error; or everything as JSON lines.

mod progress;

use crate::failure::Failure;
use polity_registry::{Catalogue, Origin, Problem};
use polity_runtime::{Entry, Letter, Outcome, Society};
use polity_society::id::TaskId;
use polity_society::message::Finality;
use serde_json::{Value, json};
use std::io::{IsTerminal, Write};

/// Says on standard error what went wrong.
pub(crate) fn complain(text: &str) {
    let mut stderr = anstream::stderr();
    // Nothing can be done where even this cannot be printed.
    let _ = writeln!(stderr, "polity: {text}");
}

/// Where things are shown.
pub(crate) struct Output {
    form: Form,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
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
    pub(crate) fn new(json: bool) -> Self {
        let form = if json { Form::Json } else { Form::Text };
        let watched = std::io::stderr().is_terminal() && form == Form::Text;
        Self { form, progress: if watched { Progress::Shown } else { Progress::Quiet } }
    }

    /// Says what is wrong with the configuration but does not stand in the way.
    pub(crate) fn problems(&self, problems: &[Problem]) {
        for problem in problems {
            complain(&problem.to_string());
        }
    }

    /// Says where the models come from.
    pub(crate) fn origin(&mut self, catalogue: &Catalogue) -> Result<(), Failure> {
        let services: Vec<&str> = catalogue.services().iter().map(|service| service.id.as_str()).collect();
        if self.form == Form::Json {
            let origin = catalogue.origin().to_string();
            return line(&json!({"event": "services", "origin": origin, "services": services}));
        }
        // That no real model answers must not be missed, even where nobody watches.
        if self.progress == Progress::Shown || *catalogue.origin() == Origin::Rehearsal {
            complain(&format!("services: {} ({})", services.join(", "), catalogue.origin()));
        }
        Ok(())
    }

    /// Says that there was nothing to go on with.
    pub(crate) fn nothing_left(&self) {
        complain("nothing was left to do; this is how the latest task ended");
    }

    /// Shows something that was said to the person, once.
    pub(crate) async fn letter(&mut self, society: &Society, letter: &Letter) -> Result<(), Failure> {
        let artifacts = society
            .artifact_names(&letter.message)
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        match self.form {
            Form::Text => print_letter(letter, &artifacts)?,
            Form::Json => self.told_before(society, letter).await?,
        }
        // Shown first, noted then: a crash between the two shows it twice, which is better than never.
        let noted = society.mark_shown(letter.message.id.clone()).await;
        noted.map_err(|error| Failure::Broken(error.to_string()))
    }

    /// The events of this run tell what is said to the person; what was said before it has to be told now.
    async fn told_before(&self, society: &Society, letter: &Letter) -> Result<(), Failure> {
        let event =
            society.event_of(&letter.message).await.map_err(|error| Failure::Broken(error.to_string()))?;
        match event {
            Some(entry) if entry.seq <= society.first_event() => self.json(&entry),
            Some(_) | None => Ok(()),
        }
    }

    fn json(&self, entry: &Entry) -> Result<(), Failure> {
        let value = serde_json::to_value(entry).map_err(|error| Failure::Defect(error.to_string()))?;
        line(&value)
    }

    /// Shows something that happened.
    pub(crate) fn event(&mut self, entry: &Entry) -> Result<(), Failure> {
        match self.form {
            Form::Json => {
                let value =
                    serde_json::to_value(entry).map_err(|error| Failure::Defect(error.to_string()))?;
                line(&value)
            }
            Form::Text => {
                if self.progress == Progress::Shown
                    && let Some(text) = progress::describe(&entry.event)
                {
                    let mut stderr = anstream::stderr();
                    writeln!(stderr, "{text}")?;
                }
                Ok(())
            }
        }
    }

    /// Says how it ended.
    pub(crate) async fn outcome(
        &mut self,
        society: &Society,
        task: &TaskId,
        outcome: Outcome,
        code: u8,
    ) -> Result<(), Failure> {
        if self.form == Form::Json {
            return line(&json!({"event": "finished", "task": task, "outcome": outcome, "exitCode": code}));
        }
        match outcome {
            Outcome::Answered => {}
            Outcome::Unanswered => complain("nothing is left to do, and there is no answer"),
            Outcome::Limited => complain("a limit of app.json stopped the task"),
            Outcome::NoModel => {
                complain(
                    "no model could be reached; check baseURL, model and apiKey in llmservices.json, and that the server runs",
                );
            }
            Outcome::AwaitsUser => {
                let questions =
                    society.questions(task).await.map_err(|error| Failure::Broken(error.to_string()))?;
                for question in questions {
                    complain(&format!(
                        "{} waits for your answer: {}",
                        question.message.from.as_str(),
                        question.text
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Prints a message. Who says it is named unless it is root, whom everybody expects.
fn print_letter(letter: &Letter, artifacts: &[String]) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    let sender = letter.message.from.as_str();
    if sender != "root" && sender != "system" {
        writeln!(stdout, "[{} {sender}]", letter.message.from_role)?;
    }
    if letter.message.finality == Finality::Interim {
        write!(stdout, "… ")?;
    }
    writeln!(stdout, "{}", letter.text)?;
    for artifact in artifacts {
        writeln!(stdout, "+ {artifact}")?;
    }
    stdout.flush()?;
    Ok(())
}

fn line(value: &Value) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{value}")?;
    stdout.flush()?;
    Ok(())
}
