//! Faults in a value that somebody wrote. Each fault names its field, so that all faults can be reported at once.

use crate::written::{self, is_blank, says_something};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// One fault in one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldProblem {
    /// The path of the field, with dots for nesting: `taskBrief.outputs`.
    pub field: String,
    /// What is wrong with the field.
    #[serde(serialize_with = "as_text")]
    pub problem: Fault,
}

/// The kinds of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The field is required and missing.
    Missing,
    /// The field is there but has no content.
    Empty,
    /// The field has the wrong type. The text names the right type.
    NotA(&'static str),
    /// The value is not one of the listed values.
    NotOneOf(Vec<String>),
    /// The value breaks a rule, which the text states.
    Rule(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Empty => f.write_str("empty"),
            Self::NotA(expected) => write!(f, "must be {expected}"),
            Self::NotOneOf(values) => write!(f, "must be one of: {}", values.join(", ")),
            Self::Rule(rule) => f.write_str(rule),
        }
    }
}

fn as_text<S: Serializer>(fault: &Fault, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

impl FieldProblem {
    /// Returns a fault in a field.
    pub fn new(field: impl Into<String>, problem: Fault) -> Self {
        Self { field: field.into(), problem }
    }

    /// Returns the same fault with `parent` in front of its path.
    /// If the path is empty, the result is a fault of the whole `parent`.
    #[must_use]
    pub fn inside(self, parent: &str) -> Self {
        Self { field: path(parent, &self.field), problem: self.problem }
    }
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

/// Joins the path `inner` to the path `parent`.
pub fn path(parent: &str, inner: &str) -> String {
    let dot = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
    format!("{parent}{dot}{inner}")
}

/// A reader of the fields of a JSON object. It reads the fields one by one, and collects their faults.
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Value>,
    problems: Vec<FieldProblem>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(object: &'a Map<String, Value>) -> Self {
        Self { object, problems: Vec::new() }
    }

    pub(crate) fn fault(&mut self, field: &str, problem: Fault) {
        self.problems.push(FieldProblem::new(field, problem));
    }

    /// Returns whether the field is there, even if it is null.
    pub(crate) fn contains(&self, field: &str) -> bool {
        self.object.contains_key(field)
    }

    /// Returns the field if it is there and not null.
    pub(crate) fn optional(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    fn required(&mut self, field: &str) -> Option<&'a Value> {
        let value = self.optional(field);
        if value.is_none() {
            self.fault(field, Fault::Missing);
        }
        value
    }

    /// Returns a required text. If the field has no text or a blank text, notes the fault and returns an empty text.
    pub(crate) fn text(&mut self, field: &str) -> String {
        match self.required(field) {
            Some(Value::String(text)) if is_blank(text) => self.fault(field, Fault::Empty),
            Some(Value::String(text)) => return text.clone(),
            Some(_) => self.fault(field, Fault::NotA("a string")),
            None => {}
        }
        String::new()
    }

    /// Returns a required text or structure. If the field has another type or no content, notes the fault.
    pub(crate) fn text_or_structure(&mut self, field: &str) -> Value {
        const EXPECTED: Fault = Fault::NotA("a string, an array or an object");
        let Some(value) = self.required(field) else {
            return Value::Null;
        };
        if !says_something(value) {
            self.fault(field, Fault::Empty);
        } else if value.is_number() || value.is_boolean() {
            self.fault(field, EXPECTED);
        }
        value.clone()
    }

    /// Returns a required array of texts that are not blank. The array may be empty.
    pub(crate) fn texts(&mut self, field: &str) -> Vec<String> {
        const EXPECTED: Fault = Fault::NotA("an array of strings ([] says that there are none)");
        let Some(value) = self.required(field) else {
            return Vec::new();
        };
        let items = match (written::list(value), value) {
            (Some(items), _) => items,
            (None, Value::String(text)) if is_blank(text) => {
                self.fault(field, Fault::Empty);
                return Vec::new();
            }
            // A single text counts as an array with one text.
            (None, Value::String(_)) => vec![value.clone()],
            (None, _) => {
                self.fault(field, EXPECTED);
                return Vec::new();
            }
        };
        let mut texts = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            match item {
                Value::String(text) if !is_blank(&text) => texts.push(text),
                Value::String(_) => self.fault(&format!("{field}[{index}]"), Fault::Empty),
                _ => self.fault(&format!("{field}[{index}]"), Fault::NotA("a string")),
            }
        }
        texts
    }

    /// Returns whether no fault was found so far.
    pub(crate) fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// Returns the names of the fields that are there, are not null, and are not in `known`.
    pub(crate) fn others(&self, known: &[&str]) -> Vec<String> {
        let is_other =
            |(name, value): &(&String, &Value)| !value.is_null() && !known.contains(&name.as_str());
        self.object.iter().filter(is_other).map(|(name, _)| name.clone()).collect()
    }

    /// Takes the result of parsing the field `parent` of this object. If parsing succeeded, returns the value.
    /// Otherwise notes the faults, with `parent` in front of their paths.
    pub(crate) fn absorb<T>(&mut self, parent: &str, parsed: Result<T, Vec<FieldProblem>>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(problems) => {
                self.problems.extend(problems.into_iter().map(|problem| problem.inside(parent)));
                None
            }
        }
    }

    /// Returns the value if no fault was found, else all faults.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Vec<FieldProblem>> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }
}
