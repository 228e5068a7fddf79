//! What is wrong with a value that somebody wrote: every fault with the field it stands in, so that all can be
//! said at once.

use crate::written::{self, is_blank, says_something};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::fmt;

/// One fault in one field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldProblem {
    /// The field, with dots where it lies inside another: `taskBrief.outputs`.
    pub field: String,
    /// What is wrong with it.
    #[serde(serialize_with = "as_text")]
    pub problem: Fault,
}

/// The sorts of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is needed and not there.
    Missing,
    /// It is there and says nothing.
    Empty,
    /// It is of another type than it must be.
    NotA(&'static str),
    /// It is none of the values that there are.
    NotOneOf(Vec<String>),
    /// It breaks a rule that the text names.
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
    /// A fault in a field.
    pub fn new(field: impl Into<String>, problem: Fault) -> Self {
        Self { field: field.into(), problem }
    }

    /// The same fault, seen from the object that `parent` lies in. A fault without a field is one of `parent` as a whole.
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

/// The path of what lies at `inner` within `parent`.
pub fn path(parent: &str, inner: &str) -> String {
    let dot = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
    format!("{parent}{dot}{inner}")
}

/// Takes fields out of an object, one by one, and notes what is wrong with each.
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

    /// Whether the field is there at all, null included.
    pub(crate) fn contains(&self, field: &str) -> bool {
        self.object.contains_key(field)
    }

    /// A field that is there and not null.
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

    /// A text that says something.
    pub(crate) fn text(&mut self, field: &str) -> String {
        match self.required(field) {
            Some(Value::String(text)) if is_blank(text) => self.fault(field, Fault::Empty),
            Some(Value::String(text)) => return text.clone(),
            Some(_) => self.fault(field, Fault::NotA("a string")),
            None => {}
        }
        String::new()
    }

    /// A text, or any structured value, that says something.
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

    /// An array of texts, each of which says something; it may be empty, but it must be there.
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
            // One text is a list of one.
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

    /// Whether nothing was wrong so far.
    pub(crate) fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    /// The fields that are there, say something, and are none of these.
    pub(crate) fn others(&self, known: &[&str]) -> Vec<String> {
        let is_other =
            |(name, value): &(&String, &Value)| !value.is_null() && !known.contains(&name.as_str());
        self.object.iter().filter(is_other).map(|(name, _)| name.clone()).collect()
    }

    /// Notes the problems of something inside this object.
    pub(crate) fn absorb<T>(&mut self, parent: &str, parsed: Result<T, Vec<FieldProblem>>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(problems) => {
                self.problems.extend(problems.into_iter().map(|problem| problem.inside(parent)));
                None
            }
        }
    }

    /// The value, if nothing was wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Vec<FieldProblem>> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }
}
