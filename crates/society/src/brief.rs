//! The task brief 任务委托书: what a parent must tell an agent that it hires.
//! See the seed "agent-communication", requirements 1 and 7.

use crate::problem::{Fault, FieldProblem, Fields, path};
use crate::written;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of the field in which a request gives the JSON Schema for its answer.
pub const RESULT_SCHEMA: &str = "result_schema";

/// A complete brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskBrief {
    /// The goal of the work.
    pub objective: String,
    /// Technical constraints; an empty list says that there are none.
    pub constraints: Vec<String>,
    /// The material to work with.
    #[schemars(schema_with = "text_or_structure")]
    pub inputs: Value,
    /// The results to deliver.
    #[schemars(schema_with = "text_or_structure")]
    pub outputs: Value,
    /// When the work counts as done.
    #[schemars(schema_with = "text_or_structure")]
    pub completion_criteria: Value,
    /// The parties that the child may write to from the start, in addition to its parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collaborators: Vec<Collaborator>,
    /// Pointers to further material.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub references: Vec<Value>,
    /// The priority of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub priority: Option<Value>,
    /// All other fields, under the names that the brief's writer gave them.
    #[serde(flatten)]
    #[schemars(skip)]
    pub more: Map<String, Value>,
}

/// A contact that the child gets from its brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collaborator {
    /// A contact of the parent: its id, or the name of its role if no other contact has that role.
    pub agent_id: String,
    /// What the child can ask this contact for.
    #[serde(default)]
    pub description: String,
}

/// Returns the schema of a string, because models are asked for a text. Parsing also accepts an array or an object.
fn text_or_structure(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string"})
}

impl TaskBrief {
    const REQUIRED: [&'static str; 5] =
        ["objective", "constraints", "inputs", "outputs", "completion_criteria"];
    const KNOWN: [&'static str; 8] = [
        "objective",
        "constraints",
        "inputs",
        "outputs",
        "completion_criteria",
        "collaborators",
        "references",
        "priority",
    ];

    /// Synonyms of the field names. A field under a synonym is used only if the field under the known name is missing.
    const SYNONYMS: [(&'static str, &'static str); 9] = [
        ("goal", "objective"),
        ("task", "objective"),
        ("input", "inputs"),
        ("output", "outputs"),
        ("expected_output", "outputs"),
        ("acceptance_criteria", "completion_criteria"),
        ("success_criteria", "completion_criteria"),
        ("criteria", "completion_criteria"),
        ("constraint", "constraints"),
    ];

    /// Returns the JSON Schema that the agent's result must fit, if the brief gives one.
    pub fn result_schema(&self) -> Option<Value> {
        schema_in(&self.more)
    }

    /// Reads a brief that a model wrote, and reports all faults at once.
    /// If there is no brief at all, every required field is missing.
    pub fn parse(value: Option<&Value>) -> Result<Self, Vec<FieldProblem>> {
        Self::read(value, &mut Vec::new())
    }

    /// Like [`Self::parse`]. Also collects the names of the fields that the child does not get, in `ignored`.
    pub fn read(value: Option<&Value>, ignored: &mut Vec<String>) -> Result<Self, Vec<FieldProblem>> {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Err(Self::REQUIRED.map(|field| FieldProblem::new(field, Fault::Missing)).to_vec());
        };
        let Some(object) = written::object(value) else {
            return Err(vec![FieldProblem::new("", Fault::NotA("an object"))]);
        };
        let object = written::with_names(object, &Self::KNOWN);
        // The renamed fields are not added to `ignored`, because the child gets them under the known names.
        let (object, _) = written::with_synonyms(object, &Self::SYNONYMS);
        let mut fields = Fields::new(&object);
        let others = fields.others(&Self::KNOWN);
        let brief = Self {
            objective: fields.text("objective"),
            constraints: fields.texts("constraints"),
            inputs: fields.text_or_structure("inputs"),
            outputs: fields.text_or_structure("outputs"),
            completion_criteria: fields.text_or_structure("completion_criteria"),
            collaborators: collaborators(&mut fields, ignored),
            references: match fields.optional("references") {
                Some(Value::Array(references)) => references.clone(),
                Some(one) => vec![one.clone()],
                None => Vec::new(),
            },
            priority: fields.optional("priority").cloned(),
            more: others.into_iter().filter_map(|name| object.get_key_value(&name)).map(entry).collect(),
        };
        fields.finish(brief)
    }
}

/// Returns the JSON Schema in the field `result_schema`. A schema is an object or a boolean. Any other value in the
/// field is a description in words; then the result is `None`.
pub(crate) fn schema_in(fields: &Map<String, Value>) -> Option<Value> {
    let schema = fields.get(RESULT_SCHEMA)?;
    written::object(schema).map(Value::Object).or_else(|| schema.as_bool().map(Value::Bool))
}

/// If a brief lacks required fields, copies these fields from the message that is sent with the brief.
/// The message may contain a missing field among its own fields, in its `taskBrief`, or as a line of its text.
/// Returns the new brief and a note for each copied field.
/// Returns `None` if no field was copied or the brief cannot be read.
pub fn completed(brief: Option<&Value>, message: &Map<String, Value>) -> Option<(Value, Vec<String>)> {
    let read = |object| {
        let named = written::with_names(object, &TaskBrief::KNOWN);
        written::with_synonyms(named, &TaskBrief::SYNONYMS).0
    };
    let mut brief = match brief.filter(|brief| !brief.is_null()) {
        Some(brief) => read(written::object(brief)?),
        None => Map::new(),
    };
    let inner = message.get("taskBrief").and_then(written::object).map(read).unwrap_or_default();
    let beside = read(message.clone());
    let words = ["text", "content"].iter().find_map(|name| message.get(*name)?.as_str());
    let lines = words.map(stated).unwrap_or_default();
    let mut taken = Vec::new();
    let lacks = |brief: &Map<String, Value>, field: &str| brief.get(field).is_none_or(Value::is_null);
    for field in TaskBrief::REQUIRED {
        if !lacks(&brief, field) {
            continue;
        }
        let sources = [("taskBrief.", inner.get(field)), ("", beside.get(field)), ("", lines.get(field))];
        let mut stated = sources.into_iter().filter_map(|(place, value)| {
            Some((place, value.filter(|value| written::says_something(value))?))
        });
        let Some((place, value)) = stated.next() else { continue };
        // If the message contains different values for a field, it is unclear which value is right, so no value is
        // copied.
        if stated.all(|(_, other)| other == value) {
            brief.insert(field.to_owned(), value.clone());
            taken.push(format!("initialMessage.{place}{field} → taskBrief.{field}"));
        }
    }
    (!taken.is_empty()).then(|| (Value::Object(brief), taken))
}

/// Returns the fields of a brief that a text states in lines such as `Outputs: a report` or `- **constraints**: none`.
/// A field that the text states more than once is left out.
fn stated(text: &str) -> Map<String, Value> {
    let field = |line: &str| {
        let (name, value) = line.split_once([':', '：'])?;
        let is_sign = |character: char| matches!(character, '-' | '*' | '#' | '_' | '`' | ' ' | '\t');
        let value = value.trim_start_matches(['*', '_', '`']).trim();
        let name = name.trim_matches(is_sign);
        (!name.is_empty() && !value.is_empty()).then(|| (name.to_owned(), Value::from(value)))
    };
    let all: Vec<(String, Value)> = text.lines().filter_map(field).collect();
    let is_single = |(name, _): &&(String, Value)| {
        all.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).count() == 1
    };
    let named = written::with_names(all.iter().filter(is_single).cloned().collect(), &TaskBrief::KNOWN);
    written::with_synonyms(named, &TaskBrief::SYNONYMS).0
}

fn entry((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

fn collaborators(fields: &mut Fields<'_>, ignored: &mut Vec<String>) -> Vec<Collaborator> {
    const KNOWN: [&str; 2] = ["agentId", "description"];
    let Some(value) = fields.optional("collaborators") else {
        return Vec::new();
    };
    let Some(items) = written::list(value) else {
        fields.fault("collaborators", Fault::NotA("an array of {agentId, description}"));
        return Vec::new();
    };
    let mut collaborators = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let place = format!("collaborators[{index}]");
        match item {
            Value::String(id) if written::is_blank(&id) => fields.fault(&place, Fault::Empty),
            // Models write only the id, not an object, when they have no description.
            Value::String(id) => {
                collaborators.push(Collaborator { agent_id: id, description: String::new() })
            }
            Value::Object(object) => {
                let object = written::with_names(object, &KNOWN);
                let mut inner = Fields::new(&object);
                let agent_id = inner.text("agentId");
                let description = inner.optional("description").map(written::in_words).unwrap_or_default();
                // The system knows the role and the interface spec of each collaborator, so it ignores what the
                // writer of the brief says about them.
                ignored.extend(inner.others(&KNOWN).iter().map(|name| path(&place, name)));
                let parsed = inner.finish(Collaborator { agent_id, description });
                collaborators.extend(fields.absorb(&place, parsed));
            }
            _ => fields.fault(&place, Fault::NotA("an object {agentId, description}")),
        }
    }
    collaborators
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn full() -> Value {
        json!({"objective": "o", "constraints": [], "inputs": "i", "outputs": {"a": 1}, "completion_criteria": ["done"]})
    }

    fn problems(value: &Value) -> String {
        let problems = TaskBrief::parse(Some(value)).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn what_a_brief_lacks_is_taken_from_the_message_that_states_it() {
        let full = json!({"objective": "o", "constraints": [], "inputs": "i", "outputs": "u", "completion_criteria": "c"});
        let without = |fields: &[&str]| {
            let mut brief = full.clone();
            fields.iter().for_each(|field| {
                brief.as_object_mut().unwrap().remove(*field);
            });
            brief
        };
        let check = |brief: Value, message: Value, expect: Option<(&str, Value, &str)>| {
            let completed = completed(Some(&brief), message.as_object().unwrap());
            let Some((field, value, note)) = expect else { return assert_eq!(completed, None, "{message}") };
            let (brief, notes) = completed.unwrap();
            assert_eq!((&brief[field], notes), (&value, vec![note.to_owned()]), "{message}");
            assert!(TaskBrief::parse(Some(&brief)).is_ok());
        };
        let lacks_outputs = || without(&["outputs"]);
        check(
            lacks_outputs(),
            json!({"text": "go", "outputs": "a report"}),
            Some(("outputs", json!("a report"), "initialMessage.outputs → taskBrief.outputs")),
        );
        check(
            lacks_outputs(),
            json!({"text": "go", "taskBrief": {"expected_output": "a report"}}),
            Some(("outputs", json!("a report"), "initialMessage.taskBrief.outputs → taskBrief.outputs")),
        );
        check(
            lacks_outputs(),
            json!({"text": "Read it.\n- **Expected output**: a report"}),
            Some(("outputs", json!("a report"), "initialMessage.outputs → taskBrief.outputs")),
        );
        // In each of these cases, nothing is copied. First the message contains different values for the field, then it
        // lacks the field. At the end, the brief lacks no field, or cannot be read.
        check(lacks_outputs(), json!({"text": "Input: 3\nOutput: 9\nInput: 4\nOutput: 16"}), None);
        check(lacks_outputs(), json!({"text": "outputs: a report", "outputs": "a table"}), None);
        check(lacks_outputs(), json!({"text": "read it"}), None);
        check(without(&["objective"]), json!({"text": "read it"}), None);
        check(full.clone(), json!({"text": "outputs: another"}), None);
        check(json!("read it"), json!({"text": "outputs: a report"}), None);
    }

    #[test]
    fn a_full_brief_is_taken() {
        let mut value = full();
        value["collaborators"] = json!([{"agentId": "b-1", "description": "knows CSS"}, "c-2"]);
        value["priority"] = json!("high");
        let brief = TaskBrief::parse(Some(&value)).unwrap();
        assert_eq!(brief.collaborators.len(), 2);
        assert_eq!(
            serde_json::from_value::<TaskBrief>(serde_json::to_value(&brief).unwrap()).unwrap(),
            brief
        );
    }

    #[test]
    fn all_faults_are_said_at_once() {
        insta::assert_snapshot!(problems(&json!({"objective": " ", "inputs": {}, "constraints": 7, "collaborators": [{}, 3, ""]})),
            @"objective: empty; constraints: must be an array of strings ([] says that there are none); inputs: empty; outputs: missing; completion_criteria: missing; collaborators[0].agentId: missing; collaborators[1]: must be an object {agentId, description}; collaborators[2]: empty");
        assert_eq!(TaskBrief::parse(None).unwrap_err().len(), 5);
        assert_eq!(problems(&json!("do it")), ": must be an object");
    }

    #[test]
    fn a_required_field_says_something_in_words_or_structure() {
        let fault_of = |field: &str, value: Value| {
            let mut brief = full();
            brief[field] = value;
            TaskBrief::parse(Some(&brief)).map_or_else(|_| problems(&brief), |_| "none".to_owned())
        };
        for field in TaskBrief::REQUIRED {
            for bare in [json!(0), json!(7), json!(false), json!(true)] {
                let said = fault_of(field, bare);
                assert!(said.starts_with(&format!("{field}: must be")), "{said}");
            }
            for nothing in [json!(""), json!(" \u{200B}")] {
                assert_ne!(fault_of(field, nothing), "none");
            }
        }
        for field in ["inputs", "outputs", "completion_criteria"] {
            for nothing in [json!([]), json!({}), json!([""]), json!([null, [" "]])] {
                assert_eq!(fault_of(field, nothing), format!("{field}: empty"));
            }
            for something in [json!("x"), json!(["", "x"]), json!([3]), json!({"pages": 3})] {
                assert_eq!(fault_of(field, something), "none");
            }
        }
        assert_eq!(
            fault_of("constraints", json!(["a", "", 3, null])),
            "constraints[1]: empty; constraints[2]: must be a string; constraints[3]: must be a string"
        );
        assert_eq!(fault_of("constraints", json!([])), "none");
    }

    #[test]
    fn what_else_is_said_is_kept_under_its_own_name() {
        let mut value = full();
        value["globalConstraints"] = json!(["no network"]);
        value["deadline"] = Value::Null;
        value["context"] = json!({"a": 1});
        let brief = TaskBrief::parse(Some(&value)).unwrap();
        let names: Vec<&String> = brief.more.keys().collect();
        assert_eq!(names, ["globalConstraints", "context"]);
        let stored = serde_json::to_value(&brief).unwrap();
        assert_eq!(stored["globalConstraints"], json!(["no network"]));
        assert_eq!(serde_json::from_value::<TaskBrief>(stored).unwrap(), brief);
    }

    #[test]
    fn a_brief_is_understood_as_it_was_meant() {
        let written = json!({"objective": "o", "constraints": "[\"a\"]", "inputs": "i", "outputs": "p", "completionCriteria": "c",
            "collaborators": [{"agent_id": "b-1", "description": {"for": "CSS"}, "role": "king"}]});
        let mut ignored = Vec::new();
        let brief = TaskBrief::read(Some(&json!(written.to_string())), &mut ignored).unwrap();
        assert_eq!((brief.constraints, brief.completion_criteria), (vec!["a".to_owned()], json!("c")));
        assert_eq!(
            (brief.collaborators[0].agent_id.as_str(), brief.collaborators[0].description.as_str()),
            ("b-1", "{\"for\":\"CSS\"}")
        );
        assert_eq!(ignored, ["collaborators[0].role"]);
        assert!(brief.more.is_empty());
    }

    proptest! {
        /// A brief that lacks required fields is refused, and the refusal names exactly the missing fields
        /// (seed "agent-communication", requirement 1.4).
        #[test]
        fn missing_fields_are_refused_and_named(missing in proptest::collection::btree_set(0usize..5, 0..5)) {
            let mut value = full();
            for index in &missing {
                value.as_object_mut().unwrap().remove(TaskBrief::REQUIRED[*index]);
            }
            let named: Vec<String> = match TaskBrief::parse(Some(&value)) {
                Ok(_) => Vec::new(),
                Err(problems) => problems.into_iter().map(|problem| problem.field).collect(),
            };
            let expected: Vec<&str> = missing.iter().map(|index| TaskBrief::REQUIRED[*index]).collect();
            prop_assert_eq!(named, expected);
        }
    }
}
