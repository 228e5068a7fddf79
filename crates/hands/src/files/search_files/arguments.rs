//! Reads and checks the arguments of `search_files`.

use crate::arguments::{self, Argued};
use crate::call::Arguments as Written;
use crate::files::desk::refused;
use globset::{GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::written::{is_blank, says_something, with_synonyms};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Maximum number of matching lines, or of files, if the call sets no limit.
const DEFAULT_LIMIT: usize = 100;

/// The highest limit that a call can set.
const MAX_LIMIT: usize = 1000;

/// A call can ask for lines before and after each match, but for at most this many on each side.
const MAX_CONTEXT: usize = 20;

/// Maximum size in bytes of a compiled regular expression. Only an expression with large repetitions exceeds this.
const MAX_COMPILED_BYTES: usize = 10 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    pattern: Option<String>,
    glob: Option<String>,
    path: Option<String>,
    context: Option<usize>,
    limit: Option<usize>,
}

impl Argued for Arguments {
    const NAMES: &'static [&'static str] = &["pattern", "glob", "path", "context", "limit"];
}

/// Models sometimes use the name that an argument has in a similar tool. Each pair holds such a name and the name that
/// the argument has in this tool.
const SYNONYMS: &[(&str, &str)] = &[("regex", "pattern"), ("query", "pattern"), ("include", "glob")];

/// What a call asks for: matching lines, or only files.
pub(super) struct Wanted {
    /// The regular expression to search for. Absent if the call asks only for files that match the glob.
    pub(super) pattern: Option<(String, RegexMatcher)>,
    pub(super) glob: Option<Glob>,
    /// The directory or file to search, as the model wrote it.
    pub(super) path: String,
    pub(super) context: usize,
    pub(super) limit: usize,
}

/// A pattern for paths.
pub(super) struct Glob {
    pub(super) written: String,
    matcher: GlobMatcher,
}

impl Glob {
    fn parse(written: &str) -> Result<Self, Refusal> {
        let plain = written.trim_start_matches("./").trim_start_matches('/');
        // A glob without a `/` matches a file name in every directory, as in `.gitignore`.
        let anywhere = if plain.contains('/') { plain.to_owned() } else { format!("**/{plain}") };
        let glob = GlobBuilder::new(&anywhere).literal_separator(true).build();
        let glob = glob.map_err(|error| refused("glob", error.kind().to_string()))?;
        Ok(Self { written: written.to_owned(), matcher: glob.compile_matcher() })
    }

    /// Returns whether a path matches.
    pub(super) fn fits(&self, path: &str) -> bool {
        self.matcher.is_match(path)
    }
}

impl Wanted {
    pub(super) fn read(written: &Written) -> Result<Self, Refusal> {
        let given: Arguments = arguments::read(&tidied(written))?;
        let Arguments { pattern, glob, path, context, limit } = given;
        // Models write an empty text for an argument that they do not need, so an empty text counts as a missing
        // argument.
        let said = |text: Option<String>| text.filter(|text| !is_blank(text));
        let pattern = said(pattern).map(|pattern| {
            let matcher = matcher(&pattern)?;
            Ok::<_, Refusal>((pattern, matcher))
        });
        let glob = said(glob).map(|glob| Glob::parse(&glob));
        if pattern.is_none() && glob.is_none() {
            let problem = Fault::Rule("give a regular expression, or a glob to find files".to_owned());
            return Err(Refusal::InvalidArguments(vec![FieldProblem::new("pattern", problem)]));
        }
        Ok(Self {
            pattern: pattern.transpose()?,
            glob: glob.transpose()?,
            path: said(path).unwrap_or_else(|| ".".to_owned()),
            context: context.unwrap_or(0).min(MAX_CONTEXT),
            limit: limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
        })
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, Refusal> {
    let mut builder = RegexMatcherBuilder::new();
    // With `crlf`, `$` also matches before `\r\n`. The size limits bound the time that the search takes for one line.
    builder.crlf(true).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES);
    builder.build(pattern).map_err(|error| {
        refused("pattern", format!("{error}; put a \\ before each special character that is meant as itself"))
    })
}

/// Replaces synonyms of argument names, drops empty values, and reads numbers that a model wrote as text.
fn tidied(written: &Written) -> Written {
    let (mut tidied, _) = with_synonyms(written.clone(), SYNONYMS);
    tidied.retain(|_, value| says_something(value));
    for (name, value) in &mut tidied {
        let is_number = matches!(name.to_lowercase().as_str(), "context" | "limit");
        if let Some(number) =
            value.as_str().filter(|_| is_number).and_then(|text| text.trim().parse::<u64>().ok())
        {
            *value = Value::from(number);
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(arguments: &Value) -> Result<Wanted, Refusal> {
        Wanted::read(arguments.as_object().unwrap())
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let all = wanted(&json!({"pattern": "a"})).unwrap();
        assert_eq!((all.path.as_str(), all.context, all.limit), (".", 0, 100));
        assert!(all.glob.is_none());
        let filled = json!({"regex": "a", "glob": "", "path": "", "context": "2", "limit": 5000});
        let filled = wanted(&filled).unwrap();
        assert_eq!((filled.path.as_str(), filled.context, filled.limit), (".", 2, 1000));
        assert!(filled.glob.is_none());
        let files = wanted(&json!({"glob": "*.rs", "limit": 0, "context": 99})).unwrap();
        assert_eq!((files.pattern.is_none(), files.limit, files.context), (true, 1, 20));
    }

    #[test]
    fn faults_are_named() {
        let check = |arguments: Value, expect: &str| {
            let refusal = format!("{:?}", wanted(&arguments).err().unwrap());
            assert!(refusal.contains(expect), "{arguments}: {refusal}");
        };
        check(json!({}), "pattern");
        check(json!({"pattern": " ", "glob": null}), "pattern");
        check(json!({"pattern": "f("}), "unclosed group");
        check(json!({"pattern": "a\nb"}), "pattern");
        check(json!({"pattern": "(a{1000}){1000}"}), "size limit");
        check(json!({"glob": "a[", "pattern": "x"}), "glob");
        check(json!({"pattern": "x", "limit": "many"}), "limit");
    }

    #[test]
    fn globs_fit_as_in_ignore_files() {
        let check = |glob: &str, path: &str, expect: bool| {
            assert_eq!(Glob::parse(glob).unwrap().fits(path), expect, "{glob} {path}");
        };
        for path in ["a.rs", "src/a.rs", "src/deep/a.rs"] {
            check("*.rs", path, true);
            check("**/*.rs", path, true);
            check("a.{rs,ts}", path, true);
            check("*.ts", path, false);
        }
        check("src/*.rs", "src/a.rs", true);
        check("./src/*.rs", "src/a.rs", true);
        check("/src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/deep/a.rs", false);
        check("src/**/*.rs", "src/deep/a.rs", true);
        check("src/**/*.rs", "src/a.rs", true);
        check("src/**", "src/deep/a.rs", true);
    }
}
