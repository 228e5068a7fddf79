//! The report of the doctor: as text for people, printed part by part, or as one JSON object.

use super::Mode;
use crate::failure::Failure;
use crate::output::{Elapsed, Form};
use crate::suggested::repeating;
use anstyle::{AnsiColor, Style};
use polity_probe::{Finding, Severity};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;

/// The value of `about` in a section about a service.
pub(super) const SERVICE: &str = "service";

/// The findings about one subject, such as one service or the data directory.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    about: &'static str,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    findings: Vec<Finding>,
}

impl Section {
    /// Creates a section from its topic (`about`), the name of its subject, and its findings.
    pub(super) fn new(about: &'static str, subject: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self { about, subject: subject.into(), detail: None, findings }
    }

    /// Adds a detail, which is printed in parentheses after the heading.
    pub(super) fn with(self, detail: String) -> Self {
        Self { detail: Some(detail), ..self }
    }

    /// Returns the id of a service and the findings about this service; nothing if the section is not about a service.
    pub(super) fn of_service(&mut self) -> Option<(&str, &mut [Finding])> {
        (self.about == SERVICE).then_some((&*self.subject, &mut *self.findings))
    }

    /// Makes the commands in the advice repeat the options of this command line.
    fn repeat_options(&mut self) {
        for advice in self.findings.iter_mut().filter_map(|finding| finding.advice.as_mut()) {
            *advice = repeating(advice).into_owned();
        }
    }

    /// Formats the section with colours. Control characters in texts from servers and files become visible, so only the
    /// report itself sets colours.
    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail, so the results are ignored.
        let bold = Style::new().bold();
        let _ = writeln!(text, "{bold}{}{bold:#}", harmless(&self.heading()));
        for finding in &self.findings {
            let style = style(finding.severity);
            let mut lines = finding.what.lines();
            let first = harmless(lines.next().unwrap_or_default());
            let _ = writeln!(text, "  {style}{:<7}{style:#}  {first}", finding.severity);
            for line in lines {
                let _ = writeln!(text, "           {}", harmless(line));
            }
            if let Some(advice) = &finding.advice {
                let _ = writeln!(text, "           → {}", harmless(advice));
            }
        }
        text
    }

    fn heading(&self) -> String {
        let detail = self.detail.as_ref().map(|detail| format!("({detail})")).unwrap_or_default();
        let words = [self.about, &self.subject, &detail];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// One change that `--fix` made.
#[derive(Debug, Serialize)]
pub(super) struct Mended {
    pub(super) file: String,
    /// The changed part of the file, such as `local: contextWindow` or `permissions`.
    pub(super) what: String,
    /// The old value; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
    /// The new value.
    pub(super) after: String,
}

/// Prints each section of a text report as soon as it is known.
pub(super) struct Teller<'e> {
    pub(super) elapsed: &'e Elapsed,
    pub(super) form: Form,
    pub(super) mode: Mode,
}

impl Teller<'_> {
    /// Completes a section, and prints it. A JSON report is one object, which [`Report::print`] prints at the end.
    pub(super) fn tell(&self, section: &mut Section) -> Result<(), Failure> {
        section.repeat_options();
        match self.form {
            Form::Json => Ok(()),
            Form::Text => match self.elapsed.aside(|| print(&section.text())) {
                // With `--fix`, the corrections are written even if nobody reads the report. The end of the report is
                // printed afterwards, and this fails in the same way.
                Err(Failure::OutputClosed) if self.mode == Mode::Mend => Ok(()),
                told => told,
            },
        }
    }
}

/// Prints a text with colours. `anstream` drops the colours unless standard output is a terminal.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = anstream::stdout().lock();
    write!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_output)
}

pub(super) struct Report {
    pub(super) sections: Vec<Section>,
    pub(super) mended: Vec<Mended>,
    pub(super) mode: Mode,
}

impl Report {
    /// Returns the severity that decides the exit code: the worst of all findings.
    pub(super) fn worst(&self) -> Severity {
        let findings = self.sections.iter().flat_map(|section| &section.findings);
        findings.map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
    }

    /// Prints the whole report, or what follows the sections of a text report.
    pub(super) fn print(&self, form: Form) -> Result<(), Failure> {
        match form {
            Form::Json => {
                let whole =
                    json!({"severity": self.worst(), "sections": self.sections, "mended": self.mended});
                crate::output::print(&format!("{whole:#}"))
            }
            Form::Text => print(&self.end()),
        }
    }

    /// Formats what was mended, and the number of findings.
    fn end(&self) -> String {
        let mut text = String::new();
        self.tell_mended(&mut text);
        let count = |severity: Severity| {
            let findings = self.sections.iter().flat_map(|section| &section.findings);
            findings.filter(|finding| finding.severity == severity).count()
        };
        // Writing to a string cannot fail, so the result is ignored.
        let _ = writeln!(
            text,
            "problems: {}, warnings: {}, hints: {}",
            count(Severity::Problem),
            count(Severity::Warning),
            count(Severity::Hint)
        );
        text
    }

    fn tell_mended(&self, text: &mut String) {
        if self.mode == Mode::Look {
            return;
        }
        if self.mended.is_empty() {
            let _ = writeln!(text, "nothing to fix");
        }
        let mut file = "";
        for mended in &self.mended {
            if mended.file != file {
                file = &mended.file;
                let bold = Style::new().bold();
                let _ = writeln!(text, "{bold}fixed {}{bold:#}", harmless(file));
            }
            let what = harmless(&mended.what);
            let (gone, new) = (AnsiColor::Red.on_default(), AnsiColor::Green.on_default());
            if let Some(before) = &mended.before {
                let _ = writeln!(text, "  {gone}- {what}: {}{gone:#}", harmless(before));
            }
            let _ = writeln!(text, "  {new}+ {what}: {}{new:#}", harmless(&mended.after));
        }
    }
}

fn style(severity: Severity) -> Style {
    match severity {
        Severity::Ok => AnsiColor::Green.on_default(),
        Severity::Hint => AnsiColor::Cyan.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Problem => AnsiColor::Red.on_default().bold(),
    }
}

/// Returns the text on one line and without characters that control a terminal, because some texts come from
/// servers.
fn harmless(text: &str) -> String {
    crate::output::harmless(text).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(mode: Mode, mended: Vec<Mended>) -> Report {
        let findings = vec![
            Finding::ok("answers", "answers a small call in 0.4 s"),
            Finding::warning("x", "says \u{1b}[31mred", "do\nthis"),
            Finding::problem("y", "cannot use it:\nline 1\nline 2", "correct it"),
        ];
        let service = Section::new("service", "local", findings).with("m at http://h".to_owned());
        let sections = vec![service, Section::new("ports", "", Vec::new())];
        Report { sections, mended, mode }
    }

    fn whole(report: &Report) -> String {
        report.sections.iter().map(Section::text).chain([report.end()]).collect()
    }

    fn plain(report: &Report) -> String {
        anstream::adapter::strip_str(&whole(report)).to_string()
    }

    #[test]
    fn what_people_read() {
        let expect = "service local (m at http://h)\n  ok       answers a small call in 0.4 s\n  warning  says <U+001B>[31mred\n           \
                      → do this\n  problem  cannot use it:\n           line 1\n           line 2\n           → correct it\n\
                      ports\nproblems: 1, warnings: 1, hints: 0\n";
        assert_eq!(plain(&report(Mode::Look, Vec::new())), expect);
        assert_eq!(report(Mode::Look, Vec::new()).worst(), Severity::Problem);
        assert!(whole(&report(Mode::Look, Vec::new())).contains("\u{1b}["), "there are colours");
    }

    #[test]
    fn what_was_mended_is_a_diff() {
        let mended = |what: &str, before: Option<&str>| Mended {
            file: "llmservices.json".to_owned(),
            what: what.to_owned(),
            before: before.map(str::to_owned),
            after: "2".to_owned(),
        };
        let text = plain(&report(Mode::Mend, vec![mended("a", Some("1")), mended("b", None)]));
        assert!(text.contains("fixed llmservices.json\n  - a: 1\n  + a: 2\n  + b: 2\nproblems: 1"), "{text}");
        assert!(plain(&report(Mode::Mend, Vec::new())).contains("nothing to fix\nproblems"));
    }
}
