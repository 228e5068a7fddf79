//! Roles 岗位, and what they offer to others.

use crate::id::{AgentId, RoleId, ServiceId, TaskId};
use crate::name::Name;
use crate::problem::{Fault, FieldProblem, Fields};
use crate::written;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

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
    /// What the role offers to others, if the creator described it.
    pub interface_spec: Option<InterfaceSpec>,
    /// The model service of the role's agents.
    pub service: ServiceId,
    /// The capabilities that the creator asked for.
    pub required_capabilities: Vec<String>,
    /// The groups of tools that the role's agents have, besides those for writing to others. Empty means those
    /// of the role's creator.
    pub tool_groups: Vec<ToolGroup>,
}

/// A group of tools. Writing to others and looking at one's contacts is always there.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ToolGroup {
    /// Making roles, hiring and ending agents.
    Organization,
    /// Storing and reading artifacts.
    Artifacts,
    /// Compressing one's own history.
    Context,
}

impl ToolGroup {
    /// All groups.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a role does for others, and how it wants to be asked (seed agent-communication, requirement 4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceSpec {
    /// What it does.
    pub services: Value,
    /// What to send.
    pub input_format: Value,
    /// What comes back.
    pub output_format: Value,
    /// How that looks.
    pub examples: Value,
}

impl InterfaceSpec {
    const FIELDS: [&'static str; 4] = ["services", "input_format", "output_format", "examples"];

    /// Reads a spec that a model wrote. A spec needs all four fields.
    pub fn parse(value: &Value) -> Result<Self, Vec<FieldProblem>> {
        Self::read(value, &mut Vec::new())
    }

    /// Like [`Self::parse`], and adds to `ignored` the names of unknown fields.
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
