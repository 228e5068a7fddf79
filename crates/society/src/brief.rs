//! The task brief 任务委托书: what a parent must say to whom it hires (seed agent-communication, requirements 1 and 7).

use crate::problem::{Fault, FieldProblem, Fields};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A complete brief.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskBrief {
    /// What is to be reached.
    pub objective: String,
    /// Technical constraints; an empty list says that there are none.
    pub constraints: Vec<String>,
    /// What there is to work with.
    #[schemars(schema_with = "text_or_structure")]
    pub inputs: Value,
    /// What is to come out.
    #[schemars(schema_with = "text_or_structure")]
    pub outputs: Value,
    /// When the work counts as done.
    #[schemars(schema_with = "text_or_structure")]
    pub completion_criteria: Value,
    /// Whom the child may write to from the start, beside its parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collaborators: Vec<Collaborator>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub references: Vec<Value>,
    /// How much it matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub priority: Option<Value>,
}

/// A contact that the brief brings along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Collaborator {
    /// A contact of the parent: an id, or the name of its role where that is unique.
    pub agent_id: String,
    /// What this one is for.
    #[serde(default)]
    pub description: String,
}

fn text_or_structure(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {}}]})
}

impl TaskBrief {
    const REQUIRED: [&'static str; 5] =
        ["objective", "constraints", "inputs", "outputs", "completion_criteria"];

    /// Reads a brief that a model wrote; every fault is found at once. A brief that is not there at all lacks every field.
    pub fn parse(value: Option<&Value>) -> Result<Self, Vec<FieldProblem>> {
        let object = match value {
            Some(Value::Object(object)) => object,
            Some(Value::Null) | None => {
                return Err(Self::REQUIRED.map(|field| FieldProblem::new(field, Fault::Missing)).to_vec());
            }
            Some(_) => return Err(vec![FieldProblem::new("taskBrief", Fault::NotA("an object"))]),
        };
        let mut fields = Fields::new(object);
        let brief = Self {
            objective: fields.text("objective"),
            constraints: fields.texts("constraints"),
            inputs: fields.text_or_structure("inputs"),
            outputs: fields.text_or_structure("outputs"),
            completion_criteria: fields.text_or_structure("completion_criteria"),
            collaborators: collaborators(&mut fields),
            references: match fields.optional("references") {
                Some(Value::Array(references)) => references.clone(),
                Some(one) => vec![one.clone()],
                None => Vec::new(),
            },
            priority: fields.optional("priority").cloned(),
        };
        fields.finish(brief)
    }
}

fn collaborators(fields: &mut Fields<'_>) -> Vec<Collaborator> {
    let items = match fields.optional("collaborators") {
        Some(Value::Array(items)) => items.as_slice(),
        Some(_) => {
            fields.fault("collaborators", Fault::NotA("an array of {agentId, description}"));
            return Vec::new();
        }
        None => return Vec::new(),
    };
    let mut collaborators = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item {
            // The id alone is what models write when there is nothing to describe.
            Value::String(id) => {
                collaborators.push(Collaborator { agent_id: id.clone(), description: String::new() })
            }
            Value::Object(object) => {
                let mut inner = Fields::new(object);
                let agent_id = inner.text("agentId");
                let description =
                    inner.optional("description").and_then(Value::as_str).unwrap_or_default().to_owned();
                let parsed = inner.finish(Collaborator { agent_id, description });
                collaborators.extend(fields.absorb(&format!("collaborators[{index}]"), parsed));
            }
            _ => fields
                .fault(&format!("collaborators[{index}]"), Fault::NotA("an object {agentId, description}")),
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
        insta::assert_snapshot!(problems(&json!({"objective": " ", "inputs": {}, "constraints": "none", "collaborators": [{}, 3]})),
            @"objective: empty; constraints: must be an array of strings ([] says that there are none); inputs: empty; outputs: missing; completion_criteria: missing; collaborators[0].agentId: missing; collaborators[1]: must be an object {agentId, description}");
        assert_eq!(TaskBrief::parse(None).unwrap_err().len(), 5);
        assert_eq!(problems(&json!("do it")), "taskBrief: must be an object");
    }

    proptest! {
        /// Requirement 1.4: a brief that lacks any required field is refused, and the refusal names exactly those.
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
