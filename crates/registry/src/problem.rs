//! What is wrong with a file that people wrote: where, what, and what was done about it.

use serde::Serialize;
use std::fmt;

/// One thing that is wrong with a configuration file. It never quotes a value, because any value may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file, as it is called in the configuration directory; or the environment variable.
    pub file: String,
    /// Where in the file.
    pub place: Place,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
    /// What was done about it.
    pub done: String,
}

/// Where in a file a problem is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Place {
    /// Nowhere in particular.
    Whole,
    /// At a value of a JSON file, named by its JSON pointer; in a TOML file, by its dotted key.
    Pointer(String),
    /// Where the text stops being JSON or TOML. Both numbers count from 1; columns count characters.
    Position {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something that was declared is not in force.
    Error,
    /// Everything is in force, but something looks like a mistake.
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Whole => write!(f, "{}", self.file)?,
            // The name of a field may hold a line break, and a problem has one line.
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
