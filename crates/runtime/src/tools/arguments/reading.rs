//! Takes the arguments out of a call, one by one, and notes everything that is wrong with each.

use crate::decide::inline;
use polity_registry::Catalogue;
use polity_society::brief::{self, TaskBrief};
use polity_society::id::AgentId;
use polity_society::message::{MessageType, Payload};
use polity_society::problem::{Fault, FieldProblem, path};
use polity_society::refusal::Refusal;
use polity_society::written;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What an argument can be: how models are told of it, and how it is read.
pub(super) trait Argument: Sized {
    /// Whether a call cannot do without it.
    const REQUIRED: bool = true;

    /// The refusal that its faults belong to.
    const BLAME: Blame = Blame::Arguments;

    /// What models are told of it.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Reads a value that is there. A fault of the value as a whole has no field.
    fn read(value: Value, reading: &mut Reading<'_>) -> Result<Self, Vec<FieldProblem>>;

    /// What stands for a value that is not there.
    fn absent() -> Result<Self, Vec<FieldProblem>> {
        Err(vec![FieldProblem::new("", Fault::Missing)])
    }
}

/// The refusal that a fault belongs to. Where there are several, the first of these it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blame {
    /// `invalid_task_brief`
    Brief,
    /// `invalid_message`
    Message,
    /// `invalid_arguments`
    Arguments,
}

/// What is at hand where a value is read.
pub(super) struct Reading<'a> {
    /// The services that there are; `None` where they are not looked at.
    pub(super) catalogue: Option<&'a Catalogue>,
    /// The fields within the value that are not understood.
    pub(super) ignored: Vec<String>,
}

/// The arguments of a call while they are read.
pub(super) struct Reader<'a> {
    object: Map<String, Value>,
    catalogue: Option<&'a Catalogue>,
    faults: Vec<(Blame, &'static str, FieldProblem)>,
    ignored: Vec<String>,
    /// Other words that were understood.
    understood: Vec<String>,
    /// The message that was lent a brief, which is blamed where it stands and not here.
    lent_to: Option<&'static str>,
}

impl<'a> Reader<'a> {
    const ATTACHMENTS: &'static str = "attachments";

    pub(super) fn new(
        object: Map<String, Value>,
        names: &[&'static str],
        catalogue: Option<&'a Catalogue>,
    ) -> Self {
        let names: Vec<&'static str> = names.iter().copied().chain([Self::ATTACHMENTS]).collect();
        let object = written::with_names(object, &names);
        let (understood, lent_to) = (Vec::new(), None);
        Self { object, catalogue, faults: Vec::new(), ignored: Vec::new(), understood, lent_to }
    }

    /// Takes arguments that go by other words for those that are missing.
    pub(super) fn translate(&mut self, synonyms: &[(&str, &str)]) {
        let object = std::mem::take(&mut self.object);
        (self.object, self.understood) = written::with_synonyms(object, synonyms);
    }

    /// What was understood although it went by another word.
    pub(super) fn understood(&self) -> Vec<String> {
        self.understood.iter().map(|word| inline::leave_out(word)).collect()
    }

    /// Puts into a message what stands beside it and belongs to it: attachments; and the brief, which an assignment that
    /// is sent along with the hiring need not repeat.
    pub(super) fn gather(&mut self, message: &'static str, brief: Option<&'static str>) {
        let Some(mut fields) = self.object.get(message).and_then(Payload::open) else { return };
        let mut is_changed = false;
        if let Some(beside) = self.object.shift_remove(Self::ATTACHMENTS).filter(|value| !value.is_null()) {
            let mut all = fields.remove(Self::ATTACHMENTS).map(items).unwrap_or_default();
            all.extend(items(beside));
            fields.insert(Self::ATTACHMENTS.to_owned(), Value::Array(all));
            is_changed = true;
        }
        let assigns =
            fields.get("message_type").and_then(Value::as_str) == Some(MessageType::TaskAssignment.as_str());
        let lacks_brief = fields.get("taskBrief").is_none_or(Value::is_null);
        if let Some(brief) = brief.filter(|_| assigns && lacks_brief) {
            let brief = self.object.get(brief).cloned().unwrap_or_default();
            fields.insert("taskBrief".to_owned(), brief);
            self.lent_to = Some(message);
            is_changed = true;
        }
        if is_changed {
            self.object.insert(message.to_owned(), Value::Object(fields));
        }
    }

    /// Nobody assigns the person a task: an assignment to it that has no brief is a message.
    pub(super) fn write_to_person(&mut self, to: &'static str, message: &'static str) {
        let is_person = |name: &Value| name.as_str().is_some_and(|name| AgentId::new(name.trim()).is_user());
        let to_person = match self.object.get(to) {
            Some(Value::Array(all)) => !all.is_empty() && all.iter().all(is_person),
            Some(one) => is_person(one),
            None => false,
        };
        let Some(mut fields) = self.object.get(message).and_then(Payload::open).filter(|_| to_person) else {
            return;
        };
        let assigns =
            fields.get("message_type").and_then(Value::as_str) == Some(MessageType::TaskAssignment.as_str());
        if assigns && fields.get("taskBrief").is_none_or(Value::is_null) {
            fields.shift_remove("message_type");
            self.object.insert(message.to_owned(), Value::Object(fields));
            self.understood.push(format!("{message}.message_type: task_assignment → general"));
        }
    }

    /// A brief that says everything needs no other words with it.
    pub(super) fn assign(&mut self, message: &'static str, brief: &'static str) {
        let is_missing = self.object.get(message).is_none_or(Value::is_null);
        if is_missing && TaskBrief::parse(self.object.get(brief)).is_ok() {
            let assignment = Map::from_iter([(
                "message_type".to_owned(),
                Value::from(MessageType::TaskAssignment.as_str()),
            )]);
            self.object.insert(message.to_owned(), Value::Object(assignment));
            self.understood.push(format!("{brief} → {message}"));
        }
    }

    /// Takes what the brief lacks from the message that goes with it, where that states it.
    pub(super) fn complete(&mut self, name: &'static str, message: &'static str) {
        let Some(fields) = self.object.get(message).and_then(Payload::open) else { return };
        if let Some((completed, taken)) = brief::completed(self.object.get(name), &fields) {
            self.object.insert(name.to_owned(), completed);
            self.understood.extend(taken);
        }
    }

    /// Takes an argument; notes what is wrong with it.
    pub(super) fn take<T: Argument>(&mut self, name: &'static str) -> Option<T> {
        let read = match self.object.shift_remove(name).filter(|value| !value.is_null()) {
            Some(value) => {
                let mut reading = Reading { catalogue: self.catalogue, ignored: Vec::new() };
                let read = T::read(value, &mut reading);
                self.ignored.extend(reading.ignored.into_iter().map(|field| match field.as_str() {
                    // The system says who sends; where in the call it was said otherwise is no matter.
                    "from" => field,
                    field => path(name, field),
                }));
                read
            }
            None => T::absent(),
        };
        let is_lent = self.lent_to == Some(name);
        let problems = match read {
            Ok(value) => return Some(value),
            Err(problems) => problems,
        };
        for problem in problems {
            if is_lent && problem.field.starts_with("taskBrief") {
                continue;
            }
            let is_absent = problem.field.is_empty() && problem.problem == Fault::Missing;
            let blame = if is_absent { Blame::Arguments } else { T::BLAME };
            self.faults.push((blame, name, problem));
        }
        None
    }

    /// All that was wrong, and what was not understood.
    pub(super) fn finish(mut self) -> (Option<Refusal>, Vec<String>) {
        let others = self.object.into_iter().filter(|(_, value)| !value.is_null());
        self.ignored.extend(others.map(|(name, _)| name));
        let mut ignored: Vec<String> = Vec::with_capacity(self.ignored.len());
        for name in self.ignored {
            // A name may be bytes that somebody wrote down.
            let name = inline::leave_out(&name);
            if !ignored.contains(&name) {
                ignored.push(name);
            }
        }

        let blames: BTreeSet<Blame> = self.faults.iter().map(|(blame, _, _)| *blame).collect();
        let details = self.faults.into_iter().map(|(blame, name, problem)| {
            // A refusal of the brief, or of the message, has the fields as they are named there.
            let is_inside = blame == Blame::Brief || (blame == Blame::Message && name == "payload");
            if is_inside && blames.len() == 1 && !problem.field.is_empty() {
                problem
            } else {
                problem.inside(name)
            }
        });
        let details: Vec<FieldProblem> = details.collect();
        let refusal = blames.first().map(|blame| match blame {
            Blame::Brief => Refusal::InvalidTaskBrief(details),
            Blame::Message => Refusal::InvalidMessage(details),
            Blame::Arguments => Refusal::InvalidArguments(details),
        });
        (refusal, ignored)
    }
}

/// The items of a list; what is none is one item.
fn items(value: Value) -> Vec<Value> {
    match written::list(&value) {
        Some(items) => items,
        None if value.is_null() => Vec::new(),
        None => vec![value],
    }
}

/// The schema of an object with these fields, required or not.
pub(super) fn object(fields: Vec<(&'static str, bool, Schema)>) -> Schema {
    let required: Vec<&str> =
        fields.iter().filter(|(_, required, _)| *required).map(|(name, _, _)| *name).collect();
    let mut schema = json_schema!({"type": "object"});
    let required = Value::from(required);
    let properties: Map<String, Value> =
        fields.into_iter().map(|(name, _, schema)| (name.to_owned(), schema.to_value())).collect();
    schema.insert("properties".to_owned(), Value::Object(properties));
    if written::says_something(&required) {
        schema.insert("required".to_owned(), required);
    }
    schema
}
