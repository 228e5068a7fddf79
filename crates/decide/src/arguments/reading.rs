//! Takes each argument out of a call, and collects the faults of all arguments.

use crate::inline;
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

/// A type that an argument can have: it provides the schema, and reads the value that a model wrote.
pub(super) trait Argument: Sized {
    /// Whether a call must have the argument.
    const REQUIRED: bool = true;

    /// The refusal that reports faults of this argument.
    const BLAME: Blame = Blame::Arguments;

    /// Returns the schema that models see.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// Reads a value that is present. A fault of the whole value has an empty field path.
    fn read(value: Value, reading: &mut Reading<'_>) -> Result<Self, Vec<FieldProblem>>;

    /// Returns the value to use if the argument is missing. Fails with a fault if the argument must not be missing.
    fn absent() -> Result<Self, Vec<FieldProblem>> {
        Err(vec![FieldProblem::new("", Fault::Missing)])
    }
}

/// The refusal that reports a fault. A call gets only one refusal, which reports all its faults. If the faults belong
/// to different refusals, the call gets the refusal that comes first in this enum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Blame {
    /// `invalid_task_brief`
    Brief,
    /// `invalid_message`
    Message,
    /// `invalid_arguments`
    Arguments,
}

/// The context in which a value is read.
pub(super) struct Reading<'a> {
    /// The services that exist; `None` if services are not checked.
    pub(super) catalogue: Option<&'a Catalogue>,
    /// The paths of the unknown fields inside the value.
    pub(super) ignored: Vec<String>,
}

/// The arguments of a call. Each argument is taken out as soon as it is read.
pub(super) struct Reader<'a> {
    object: Map<String, Value>,
    catalogue: Option<&'a Catalogue>,
    faults: Vec<(Blame, &'static str, FieldProblem)>,
    ignored: Vec<String>,
    /// Notes about arguments that were understood although the model did not write them as the schema demands.
    understood: Vec<String>,
    /// The name of the message argument into which the brief was copied. Faults of the brief are reported only once,
    /// for the original.
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

    /// Renames arguments that were given by a synonym, if the argument itself is missing.
    pub(super) fn translate(&mut self, synonyms: &[(&str, &str)]) {
        let object = std::mem::take(&mut self.object);
        (self.object, self.understood) = written::with_synonyms(object, synonyms);
    }

    /// Returns notes about arguments that were understood although the model did not write them as the schema demands.
    pub(super) fn understood(&self) -> Vec<String> {
        self.understood.iter().map(|word| inline::leave_out(word)).collect()
    }

    /// If the model wrote attachments beside a message, moves the attachments into the message.
    /// A call that hires an agent has a brief. If the message of such a call assigns a task but contains no brief,
    /// copies the brief of the call into the message.
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

    /// If the message is an assignment to the person and has no brief, makes it an ordinary message.
    /// Nobody assigns a task to the person.
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

    /// Adds an assignment as the first message if the model wrote no message and the brief is complete.
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

    /// Fills in the missing fields of the brief, if the message states them.
    pub(super) fn complete(&mut self, name: &'static str, message: &'static str) {
        let Some(fields) = self.object.get(message).and_then(Payload::open) else { return };
        if let Some((completed, taken)) = brief::completed(self.object.get(name), &fields) {
            self.object.insert(name.to_owned(), completed);
            self.understood.extend(taken);
        }
    }

    /// Takes an argument out of the call and reads the argument. Collects the faults of the argument.
    pub(super) fn take<T: Argument>(&mut self, name: &'static str) -> Option<T> {
        let read = match self.object.shift_remove(name).filter(|value| !value.is_null()) {
            Some(value) => {
                let mut reading = Reading { catalogue: self.catalogue, ignored: Vec::new() };
                let read = T::read(value, &mut reading);
                self.ignored.extend(reading.ignored.into_iter().map(|field| match field.as_str() {
                    // `from` names the sender of a message. The system sets the sender, so models must not give it
                    // anywhere. So `from` is reported without its path; the other fields are reported with theirs.
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

    /// Returns the refusal with all faults, if there are any, and the arguments that were not understood.
    pub(super) fn finish(mut self) -> (Option<Refusal>, Vec<String>) {
        let others = self.object.into_iter().filter(|(_, value)| !value.is_null());
        self.ignored.extend(others.map(|(name, _)| name));
        let mut ignored: Vec<String> = Vec::with_capacity(self.ignored.len());
        for name in self.ignored {
            // A model may have written encoded bytes instead of the name of an argument.
            let name = inline::leave_out(&name);
            if !ignored.contains(&name) {
                ignored.push(name);
            }
        }

        let blames: BTreeSet<Blame> = self.faults.iter().map(|(blame, _, _)| *blame).collect();
        let details = self.faults.into_iter().map(|(blame, name, problem)| {
            // Usually a path begins with the name of the argument. The name is left out if all faults are in the brief,
            // or all are in the argument `payload`.
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

/// Returns the items of a list; a value that is not a list counts as one item.
fn items(value: Value) -> Vec<Value> {
    match written::list(&value) {
        Some(items) => items,
        None if value.is_null() => Vec::new(),
        None => vec![value],
    }
}

/// Returns the schema of an object with these fields. The flag tells whether a field is required.
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
