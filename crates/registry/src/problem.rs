//! Problems in hand-written files. Each problem tells where it is, what is wrong, and what polity does because of it.

use serde::Serialize;
use std::fmt;

/// One mistake in the configuration. It never quotes a value, because any value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The name of the file, such as `app.json` or `prompts/en/base.txt`. Or the name of an environment variable, if
    /// the mistake is in its value.
    pub file: String,
    /// The place of the mistake in the file.
    pub place: Place,
    /// `Error` if polity cannot use a part of the file because of the mistake. Otherwise `Warning`.
    pub severity: Severity,
    /// What is wrong with the value at that place, such as `must not be empty`.
    pub what: String,
    /// The consequence, such as `the default is used`.
    pub done: String,
}

/// The place of a problem in its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// The problem concerns the whole file.
    Whole,
    /// The problem concerns one value. Contains its JSON pointer, or its dotted key in a TOML file.
    Pointer(String),
    /// The point in the text at which the JSON or TOML stops being valid.
    Position {
        /// The number of the line, starting at 1.
        line: usize,
        /// The number of the character in the line, starting at 1.
        column: usize,
    },
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Because of the problem, something that the file declares is not in force.
    Error,
    /// Everything is in force, but something looks like a mistake.
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Whole => write!(f, "{}", self.file)?,
            // A field name may contain a line break, but a problem is shown on one line.
            Place::Pointer(pointer) => {
                write!(f, "{}: {}", self.file, pointer.replace(char::is_control, "?"))?
            }
            Place::Position { line, column } => write!(f, "{}:{line}:{column}", self.file)?,
        }
        write!(f, ": {}; {}", self.what, self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_each() {
        let check = |place: Place, expect: &str| {
            let file = "llmservices.json".to_owned();
            let what = "missing".to_owned();
            let done = "the service \"x\" is left out".to_owned();
            let problem = Problem { file, place, severity: Severity::Error, what, done };
            assert_eq!(problem.to_string(), expect);
        };
        let pointer = Place::Pointer("/services/0/baseURL".to_owned());
        check(pointer, "llmservices.json: /services/0/baseURL: missing; the service \"x\" is left out");
        let pointer = Place::Pointer("/a\nb".to_owned());
        check(pointer, "llmservices.json: /a?b: missing; the service \"x\" is left out");
        let position = Place::Position { line: 3, column: 5 };
        check(position, "llmservices.json:3:5: missing; the service \"x\" is left out");
        check(Place::Whole, "llmservices.json: missing; the service \"x\" is left out");
    }
}
