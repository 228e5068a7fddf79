//! What the doctor says: for people, or as one JSON object.

use super::Mode;
use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use polity_probe::{Finding, Severity};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;

/// Findings about one thing.
#[derive(Debug, Serialize)]
pub(super) struct Section {
    about: &'static str,
    subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    findings: Vec<Finding>,
}

impl Section {
    /// What was found about something that has a name.
    pub(super) fn new(about: &'static str, subject: impl Into<String>, findings: Vec<Finding>) -> Self {
        Self { about, subject: subject.into(), detail: None, findings }
    }

    /// The same, with what else it is.
    pub(super) fn with(self, detail: String) -> Self {
        Self { detail: Some(detail), ..self }
    }

    fn heading(&self) -> String {
        let detail = self.detail.as_ref().map(|detail| format!("({detail})")).unwrap_or_default();
        let words = [self.about, &self.subject, &detail];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }
}

/// Something that was mended.
#[derive(Debug, Serialize)]
pub(super) struct Mended {
    /// The file.
    pub(super) file: String,
    /// What of it.
    pub(super) what: String,
    /// How it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<String>,
    /// How it is.
    pub(super) after: String,
}

/// Everything.
pub(super) struct Report {
    pub(super) sections: Vec<Section>,
    pub(super) mended: Vec<Mended>,
    pub(super) mode: Mode,
}

impl Report {
    /// The worst that was found.
    pub(super) fn worst(&self) -> Severity {
        let findings = self.sections.iter().flat_map(|section| &section.findings);
        findings.map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
    }

    /// Prints it on standard output.
    pub(super) fn print(&self, as_json: bool) -> Result<(), Failure> {
        if as_json {
            let whole = json!({"severity": self.worst(), "sections": self.sections, "mended": self.mended});
            return crate::output::print(&format!("{whole:#}"));
        }
        let text = self.text();
        // Colours only where somebody sees them.
        let mut stdout = anstream::stdout().lock();
        write!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(Failure::of_output)
    }

    /// The report with colours. Whatever comes from elsewhere has none of its own.
    fn text(&self) -> String {
        let mut text = String::new();
        // Cannot fail: a text takes everything.
        for section in &self.sections {
            let bold = Style::new().bold();
            let _ = writeln!(text, "{bold}{}{bold:#}", harmless(&section.heading()));
            for finding in &section.findings {
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
        }
        self.tell_mended(&mut text);
        let count = |severity: Severity| {
            let findings = self.sections.iter().flat_map(|section| &section.findings);
            findings.filter(|finding| finding.severity == severity).count()
        };
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
            let _ = writeln!(text, "nothing to mend");
        }
        let mut file = "";
        for mended in &self.mended {
            if mended.file != file {
                file = &mended.file;
                let bold = Style::new().bold();
                let _ = writeln!(text, "{bold}mended {}{bold:#}", harmless(file));
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

/// A text in which there is nothing that a terminal would obey. Servers write some of it.
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

    fn plain(report: &Report) -> String {
        anstream::adapter::strip_str(&report.text()).to_string()
    }

    #[test]
    fn what_people_read() {
        let expect = "service local (m at http://h)\n  ok       answers a small call in 0.4 s\n  warning  says <U+001B>[31mred\n           \
                      → do this\n  problem  cannot use it:\n           line 1\n           line 2\n           → correct it\n\
                      ports\nproblems: 1, warnings: 1, hints: 0\n";
        assert_eq!(plain(&report(Mode::Look, Vec::new())), expect);
        assert_eq!(report(Mode::Look, Vec::new()).worst(), Severity::Problem);
        assert!(report(Mode::Look, Vec::new()).text().contains("\u{1b}["), "there are colours");
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
        assert!(
            text.contains("mended llmservices.json\n  - a: 1\n  + a: 2\n  + b: 2\nproblems: 1"),
            "{text}"
        );
        assert!(plain(&report(Mode::Mend, Vec::new())).contains("nothing to mend\nproblems"));
    }
}
