//! Roles 岗位, and what the agents of a role do for other parties.

use crate::id::{AgentId, RoleId, ServiceId, TaskId};
use crate::name::Name;
use crate::problem::{Fault, FieldProblem, Fields};
use crate::tool_group::ToolGroup;
use crate::written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A role that agents are hired into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The id, made by the system.
    pub id: RoleId,
    /// The task in which the role was made. Tasks do not share roles.
    pub task: TaskId,
    /// The agent that made the role.
    pub creator: AgentId,
    /// The name, unique among the roles that the creator made in this task.
    pub name: Name,
    /// The prompt that tells the role's agents what their work is.
    pub prompt: String,
    /// What the role offers to other parties, if the creator described it.
    pub interface_spec: Option<InterfaceSpec>,
    /// The model service of the role's agents.
    pub service: ServiceId,
    /// The capabilities that the creator asked for.
    pub required_capabilities: Vec<String>,
    /// The groups of tools that the role's agents may use. If the list is empty, they may use the same groups as the
    /// creator of the role. The group `messages` is available to every agent.
    pub tool_groups: Vec<ToolGroup>,
}

/// What a role offers to other parties, and how they ask for it (seed "agent-communication", requirement 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceSpec {
    /// What the role does for others.
    pub services: Value,
    /// What a request to the role must contain.
    pub input_format: Value,
    /// What an answer of the role contains.
    pub output_format: Value,
    /// Examples of requests and answers.
    pub examples: Value,
}

impl InterfaceSpec {
    const FIELDS: [&'static str; 4] = ["services", "input_format", "output_format", "examples"];

    /// Reads an interface spec that a model wrote. All four fields are required.
    pub fn parse(value: &Value) -> Result<Self, Vec<FieldProblem>> {
        Self::read(value, &mut Vec::new())
    }

    /// Like [`Self::parse`]. Also adds the names of unknown fields to `ignored`.
    pub fn read(value: &Value, ignored: &mut Vec<String>) -> Result<Self, Vec<FieldProblem>> {
        let Some(object) = written::object(value) else {
            return Err(vec![FieldProblem::new("", Fault::NotA("an object"))]);
        };
        let object = written::with_names(object, &Self::FIELDS);
        let mut fields = Fields::new(&object);
        let spec = Self {
            services: fields.text_or_structure("services"),
            input_format: fields.text_or_structure("input_format"),
            output_format: fields.text_or_structure("output_format"),
            examples: fields.text_or_structure("examples"),
        };
        ignored.extend(fields.others(&Self::FIELDS));
        fields.finish(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_interface_spec_has_all_four_fields() {
        let full =
            json!({"services": ["read"], "input_format": "a file", "output_format": "text", "examples": "…"});
        assert!(InterfaceSpec::parse(&full).is_ok());
        let problems = InterfaceSpec::parse(&json!({"services": "read", "examples": ""})).unwrap_err();
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(said, ["input_format: missing", "output_format: missing", "examples: empty"]);
        let problems = InterfaceSpec::parse(&json!(7)).unwrap_err();
        assert_eq!(problems, [FieldProblem::new("", Fault::NotA("an object"))]);
    }

    #[test]
    fn a_spec_is_understood_in_another_style_and_what_it_does_not_have_is_named() {
        let wanted = json!({"services": "read", "inputFormat": "a file", "outputFormat": "text", "examples": "…", "price": 3, "note": null});
        let mut ignored = Vec::new();
        let spec = InterfaceSpec::read(&json!(wanted.to_string()), &mut ignored).unwrap();
        assert_eq!((spec.input_format, spec.output_format), (json!("a file"), json!("text")));
        assert_eq!(ignored, ["price"]);
    }
}
