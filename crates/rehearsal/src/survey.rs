//! The survey of a workspace: the lead lists the user's directory, searches it, reads one text in it, runs one command
//! there if it may, and writes the report there.

use crate::facts;
use crate::moves::{Call, Move, Tool, failure};
use crate::reading::{CallOutcome, Called, Scene};
use crate::shell::counting;
use crate::texts::{self, captures};
use crate::words::{Words, WorkspaceWords};
use polity_society::text::TextKey;
use polity_society::workspace::Access;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The name of the report, without its extension.
const REPORT_NAME: &str = "polity-report";

/// Maximum number of names that the lead tries for the report. A name may be taken by a file that the listing did not
/// show, and the lead then tries another name.
const MOST_NAMES_TRIED: usize = 3;

/// Maximum number of top-level names of the workspace in the report.
const MOST_NAMES_TOLD: usize = 8;

/// Maximum number of kinds of files that the report mentions.
const MOST_KINDS_TOLD: usize = 4;

/// Maximum number of characters that the report quotes from the output of the command.
const MOST_OUTPUT_CHARS: usize = 200;

/// The path of the workspace itself.
const TOP: &str = ".";

/// The glob of the search: all files, except those that the ignore files of the workspace exclude.
const ALL_FILES: &str = "*";

/// The highest limit that the tool `search_files` accepts.
const MOST_FILES: u64 = 1000;

/// Extensions of files that contain text.
const TEXT_EXTENSIONS: [&str; 20] = [
    "md", "txt", "rst", "toml", "json", "yaml", "yml", "rs", "py", "js", "ts", "go", "c", "h", "cpp", "java",
    "sh", "html", "css", "csv",
];

/// The survey of the workspace in which an agent works.
pub(crate) struct Survey<'s, 'a> {
    scene: &'s Scene<'a>,
    words: &'static Words,
    access: Access,
}

/// What the survey has found.
pub(crate) struct Surveyed {
    /// A line for each fact.
    pub(crate) facts: String,
    pub(crate) destination: Destination,
}

/// Where the report is stored.
pub(crate) enum Destination {
    /// As a file in the workspace. `taken` lists the names that the report cannot have.
    Workspace { taken: Vec<String> },
    /// As an artifact, because the workspace cannot be listed or written.
    Artifact,
}

impl<'s, 'a> Survey<'s, 'a> {
    /// Returns the survey if the agent works in a directory of the user and has the editor tool.
    pub(crate) fn of(scene: &'s Scene<'a>) -> Option<Self> {
        let access = scene.workspace.filter(|_| scene.offers(Tool::StrReplaceEditor.name()))?;
        Some(Self { scene, words: scene.words(), access })
    }

    /// Returns the facts about the workspace. If facts are missing, returns the next move to get them.
    pub(crate) fn surveyed(&self) -> Result<Surveyed, Move> {
        let Some(listed) = self.viewed(TOP) else {
            return Err(Move::Call(self.first_calls()));
        };
        let Some(quoted) = self.quoted(listed) else {
            let facts = failure(listed, self.words).unwrap_or_default();
            return Ok(Surveyed { facts, destination: Destination::Artifact });
        };
        let listing = Listing::read(&quoted.lines);
        let mut facts = vec![self.contents(&listing)];
        let text = listing.text();
        if let Some(path) = text {
            let Some(read) = self.viewed(path) else {
                return Err(Move::Call(vec![view(path)]));
            };
            facts.push(self.told_of_file(path, read));
        }
        facts.extend(self.ran(&counting(text))?);
        facts.extend(self.found());
        let destination = match self.access {
            Access::Write => Destination::Workspace { taken: listing.at_top() },
            Access::Read => {
                facts.push(self.words.say(&self.said().read_only, &[]));
                Destination::Artifact
            }
        };
        Ok(Surveyed { facts: facts.join("\n"), destination })
    }

    /// If the report has been written, returns the first lines of the agent's answer. Otherwise returns, as the error,
    /// the call that writes the report into the workspace.
    pub(crate) fn written(&self, report: &str, taken: &[String]) -> Result<String, Call> {
        let tried: Vec<&Called<'_>> = self.edits("create").collect();
        let Some(last) = tried.last() else {
            return Err(create(&free_name(taken), report));
        };
        match (last.outcome(), last.argument(&["path"])) {
            (CallOutcome::Done(_), Some(path)) => Ok(self.words.say(&self.said().done, &[("path", path)])),
            // The listing did not show a file of this name, but such a file exists. Try another name.
            (CallOutcome::Refused { error: "file_changed", .. }, _) if tried.len() < MOST_NAMES_TRIED => {
                let before = tried.iter().filter_map(|call| call.argument(&["path"])).map(str::to_owned);
                let taken: Vec<String> = taken.iter().cloned().chain(before).collect();
                Err(create(&free_name(&taken), report))
            }
            (CallOutcome::Done(_) | CallOutcome::Refused { .. } | CallOutcome::Missing, _) => {
                let problem = failure(last, self.words).unwrap_or_default();
                let without = self.words.say(&self.words.lead.done_without_report, &[]);
                Ok(format!("{problem}\n{without}"))
            }
        }
    }

    fn said(&self) -> &'static WorkspaceWords {
        &self.words.workspace
    }

    fn first_calls(&self) -> Vec<Call> {
        let search = Tool::SearchFiles.with([("glob", json!(ALL_FILES)), ("limit", json!(MOST_FILES))]);
        let search = Some(search).filter(|_| self.scene.offers(Tool::SearchFiles.name()));
        std::iter::once(view(TOP)).chain(search).collect()
    }

    /// Returns the calls of the editor tool with this command, such as `create`.
    fn edits(&self, command: &'static str) -> impl Iterator<Item = &'s Called<'a>> + use<'s, 'a> {
        let calls = self.scene.calls(Tool::StrReplaceEditor.name());
        calls.map(|(_, called)| called).filter(move |called| called.argument(&["command"]) == Some(command))
    }

    fn viewed(&self, path: &str) -> Option<&'s Called<'a>> {
        self.edits("view").find(|called| called.argument(&["path"]) == Some(path))
    }

    /// Returns the text that a call returned; `None` if the call failed or returned something else.
    fn quoted<'r>(&self, called: &'r Called<'_>) -> Option<Quoted<'r>> {
        let CallOutcome::Done(Value::String(text)) = called.outcome() else {
            return None;
        };
        let (heading, text) = text.split_once('\n').unwrap_or((text, ""));
        let values = captures(texts::of(self.scene.language), TextKey::ToolQuoted, heading)?;
        Some(Quoted { origin: values.first().copied()?, lines: text.lines().collect() })
    }

    fn contents(&self, listing: &Listing<'_>) -> String {
        let at_top = listing.at_top();
        if at_top.is_empty() {
            return self.words.say(&self.said().empty, &[]);
        }
        let mut names =
            at_top.iter().take(MOST_NAMES_TOLD).cloned().collect::<Vec<_>>().join(&self.words.comma);
        if at_top.len() > MOST_NAMES_TOLD {
            names.push('…');
        }
        let (files, directories) = (listing.files.len().to_string(), listing.directories.len().to_string());
        let values = [("files", files.as_str()), ("directories", &directories), ("names", &names)];
        self.words.say(&self.said().contents, &values)
    }

    fn told_of_file(&self, path: &str, read: &Called<'_>) -> String {
        if let Some(problem) = failure(read, self.words) {
            return problem;
        }
        let said = self.said();
        let Some(Quoted { origin, lines }) = self.quoted(read) else {
            let facts = self.words.reader.unreadable.fill(&[]);
            return self.words.say(&said.file, &[("path", path), ("facts", &facts)]);
        };
        let unnumbered = |line: &&str| line.split_once('\t').map_or("", |(_, text)| text).to_owned();
        let text = lines.iter().map(unnumbered).collect::<Vec<_>>().join("\n");
        let facts = facts::look_at(text.as_bytes()).tell(self.words, text.len(), "text/plain");
        let phrase = if origin.contains(", lines ") { &said.part } else { &said.file };
        self.words.say(phrase, &[("path", path), ("facts", &facts)])
    }

    /// Describes what the command printed. If the command has not run yet, returns the move that runs it. Returns
    /// `None` if the lead may not run commands, or if this machine has no sandbox for commands.
    fn ran(&self, command: &str) -> Result<Option<String>, Move> {
        let Some((_, called)) = self.scene.calls(Tool::Bash.name()).next() else {
            if !self.scene.offers(Tool::Bash.name()) {
                return Ok(None);
            }
            return Err(Move::Call(vec![Tool::Bash.with([("command", json!(command))])]));
        };
        Ok(Some(self.told_of_command(called)))
    }

    fn told_of_command(&self, called: &Called<'_>) -> String {
        if let Some(problem) = failure(called, self.words) {
            return problem;
        }
        let CallOutcome::Done(result) = called.outcome() else {
            return String::new();
        };
        let command = called.argument(&["command"]).unwrap_or_default();
        let text = |field: &str| result.get(field).and_then(Value::as_str).unwrap_or_default();
        match result.get("exitCode").and_then(Value::as_i64) {
            Some(code) => {
                let code = code.to_string();
                let output = facts::shortened(text("output").trim(), MOST_OUTPUT_CHARS);
                let values = [("command", command), ("code", &code), ("output", &output)];
                self.words.say(&self.said().command, &values)
            }
            None => {
                let values = [("command", command), ("reason", text("ended"))];
                self.words.say(&self.said().command_stopped, &values)
            }
        }
    }

    /// Describes what the search found; `None` if the lead did not search.
    fn found(&self) -> Option<String> {
        let (_, called) = self.scene.calls(Tool::SearchFiles.name()).next()?;
        if let Some(problem) = failure(called, self.words) {
            return Some(problem);
        }
        let Some(Quoted { origin, lines }) = self.quoted(called) else {
            return Some(self.words.say(&self.said().found_nothing, &[]));
        };
        let kinds =
            kinds(&lines).into_iter().take(MOST_KINDS_TOLD).map(|(kind, count)| format!("{kind} {count}"));
        let kinds = kinds.collect::<Vec<_>>().join(&self.words.comma);
        let count = lines.len().to_string();
        let phrase =
            if origin.contains("; there are more") { &self.said().found_first } else { &self.said().found };
        Some(self.words.say(phrase, &[("count", &count), ("kinds", &kinds)]))
    }
}

/// A text from a file or a directory. The tool also says where the text comes from; `origin` contains these words.
struct Quoted<'r> {
    origin: &'r str,
    lines: Vec<&'r str>,
}

/// The paths that a listing of the workspace shows, two levels deep.
struct Listing<'r> {
    files: Vec<&'r str>,
    directories: Vec<&'r str>,
    /// Symbolic links and special files.
    others: Vec<&'r str>,
}

impl<'r> Listing<'r> {
    fn read(lines: &[&'r str]) -> Self {
        let mut listing = Self { files: Vec::new(), directories: Vec::new(), others: Vec::new() };
        for &line in lines {
            let name = line.rsplit_once('/').map_or(line, |(_, name)| name);
            if name.starts_with("… ") && name.ends_with(" more") {
                continue;
            }
            if let Some((link, _)) = line.split_once(" -> ") {
                listing.others.push(link);
            } else if let Some(directory) = line.strip_suffix('/') {
                listing.directories.push(directory);
            } else if line.ends_with(')') {
                listing.others.push(line);
            } else {
                listing.files.push(line);
            }
        }
        listing
    }

    /// Returns the names at the top of the workspace: directories first.
    fn at_top(&self) -> Vec<String> {
        let directories =
            self.directories.iter().filter(|path| is_at_top(path)).map(|path| format!("{path}/"));
        let others = self.files.iter().chain(&self.others).filter(|path| is_at_top(path));
        directories.chain(others.map(|path| (*path).to_owned())).collect()
    }

    /// Returns the file to read: the README, else another text at the top, else a text in a subdirectory.
    fn text(&self) -> Option<&'r str> {
        let find = |fits: &dyn Fn(&str) -> bool| self.files.iter().copied().find(|path| fits(path));
        find(&|path| is_at_top(path) && is_readme(path))
            .or_else(|| find(&|path| is_at_top(path) && is_text(path)))
            .or_else(|| find(&is_text))
    }
}

fn is_at_top(path: &str) -> bool {
    !path.contains('/')
}

fn is_readme(path: &str) -> bool {
    path.to_lowercase().starts_with("readme") && (!path.contains('.') || is_text(path))
}

fn is_text(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    extension.is_some_and(|extension| TEXT_EXTENSIONS.contains(&extension.as_str()))
}

/// Counts the files of each extension. Returns the most frequent extension first. If a file has no extension, its whole
/// name counts as the extension.
fn kinds(paths: &[&str]) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in paths {
        let name = path.rsplit_once('/').map_or(*path, |(_, name)| name);
        let kind = match name.rsplit_once('.') {
            Some((before, extension)) if !before.is_empty() => format!(".{extension}"),
            Some(_) | None => name.to_owned(),
        };
        *counts.entry(kind).or_default() += 1;
    }
    let mut kinds: Vec<(String, usize)> = counts.into_iter().collect();
    kinds.sort_by_key(|(_, count)| Reverse(*count));
    kinds
}

/// Chooses a name for the report: a name that no file has yet. Names that differ only in case count as the same name,
/// as in some file systems.
fn free_name(taken: &[String]) -> String {
    let is_free = |name: &String| {
        taken.iter().all(|other| other.trim_end_matches('/').to_lowercase() != name.to_lowercase())
    };
    let numbered = (2..).map(|number: u64| format!("{REPORT_NAME}-{number}.md"));
    let mut names = std::iter::once(format!("{REPORT_NAME}.md")).chain(numbered);
    // This cannot fail: there are more possible names than files.
    names.find(is_free).unwrap_or_default()
}

fn view(path: &str) -> Call {
    Tool::StrReplaceEditor.with([("command", json!("view")), ("path", json!(path))])
}

fn create(path: &str, text: &str) -> Call {
    let arguments = [("command", json!("create")), ("path", json!(path)), ("file_text", json!(text))];
    Tool::StrReplaceEditor.with(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_readme_comes_first_then_another_text() {
        let check = |lines: &[&str], expect: Option<&str>| assert_eq!(Listing::read(lines).text(), expect);
        check(&["a.md", "docs/", "docs/README.md", "readme.txt"], Some("readme.txt"));
        check(&["a.png", "README"], Some("README"));
        check(&["README.pdf", "a.md"], Some("a.md"));
        check(&["src/", "src/main.rs", "z.toml"], Some("z.toml"));
        check(&["src/", "src/main.rs"], Some("src/main.rs"));
        check(&["README.md -> /etc/passwd", "pipe (fifo)", "b.png", "README.d/"], None);
        check(&[], None);
    }

    #[test]
    fn a_listing_is_counted() {
        let listing = Listing::read(&["b", "l -> b", "src/", "src/x", "src/… 3 more", "… 10 more"]);
        assert_eq!((listing.files.len(), listing.directories.len()), (2, 1));
        assert_eq!(listing.at_top(), ["src/", "b", "l"]);
    }

    #[test]
    fn the_most_frequent_kinds_come_first() {
        let check = |paths: &[&str], expect: &str| assert_eq!(format!("{:?}", kinds(paths)), expect);
        check(
            &["Makefile", "a.b.rs", "d.x/e.rs", ".gitignore", "z.md"],
            r#"[(".rs", 2), (".gitignore", 1), (".md", 1), ("Makefile", 1)]"#,
        );
        check(&[], "[]");
    }

    #[test]
    fn the_report_takes_a_free_name() {
        let check = |taken: &[&str], expect: &str| {
            assert_eq!(free_name(&taken.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()), expect);
        };
        check(&["README.md"], "polity-report.md");
        check(&["Polity-Report.md", "polity-report-2.md/"], "polity-report-3.md");
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_is_never_chosen(
            numbers in prop::collection::vec(0_u64..6, 0..8),
            other in "\\PC{0,20}",
        ) {
            let name = |number: u64| match number {
                0 | 1 => "polity-report.md".to_owned(),
                number => format!("polity-report-{number}.md"),
            };
            let taken: Vec<String> = numbers.into_iter().map(name).chain([other]).collect();
            let free = free_name(&taken);
            prop_assert!(!taken.contains(&free));
            prop_assert!(free.starts_with(REPORT_NAME) && free.ends_with(".md"));
        }
    }
}
