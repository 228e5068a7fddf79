//! What each tool takes. The schemas that models see are made from these types, and the same types read what they send.

use crate::inline;
use polity_llm::{Arguments, ToolCall};
use polity_society::brief::TaskBrief;
use polity_society::content::Direction;
use polity_society::message::MessageType;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::role::ToolGroup;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

/// Declares the tools: name, arguments, and the group a role can leave out.
macro_rules! tools {
    ($($name:literal => $variant:ident, $group:expr;)*) => {
        /// The names of the tools, in the order in which models see them.
        pub(super) const NAMES: &[&str] = &[$($name),*];

        /// A call whose arguments were understood.
        pub(super) enum Call { $($variant($variant)),* }

        impl Call {
            fn read(name: &str, arguments: Value) -> Option<Result<Self, serde_path_to_error::Error<serde_json::Error>>> {
                match name {
                    $($name => Some(serde_path_to_error::deserialize(arguments).map(Self::$variant)),)*
                    _ => None,
                }
            }
        }

        /// The schema of each tool, with the group it belongs to; `None` is always there.
        pub(super) fn schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, Option<ToolGroup>, Schema)> {
            vec![$(($name, $group, <$variant>::json_schema(generator)),)*]
        }
    };
}

tools! {
    "create_role" => CreateRole, Some(ToolGroup::Organization);
    "find_role_by_name" => FindRoleByName, Some(ToolGroup::Organization);
    "spawn_agent" => SpawnAgent, Some(ToolGroup::Organization);
    "spawn_agent_with_task" => SpawnAgentWithTask, Some(ToolGroup::Organization);
    "terminate_agent" => TerminateAgent, Some(ToolGroup::Organization);
    "get_org_structure" => GetOrgStructure, Some(ToolGroup::Organization);
    "send_message" => SendMessage, None;
    "list_contacts" => ListContacts, None;
    "find_capable_agents" => FindCapableAgents, None;
    "put_artifact" => PutArtifact, Some(ToolGroup::Artifacts);
    "get_artifact" => GetArtifact, Some(ToolGroup::Artifacts);
    "list_artifacts" => ListArtifacts, Some(ToolGroup::Artifacts);
    "compress_context" => CompressContext, Some(ToolGroup::Context);
}

impl Call {
    /// Reads a call, or says what is wrong with it.
    pub(super) fn parse(call: &ToolCall) -> Result<Self, Refusal> {
        let invalid = |field: &str, problem: String| {
            // What is quoted may be bytes that somebody wrote down.
            let problem = inline::leave_out(&problem);
            Refusal::InvalidArguments(vec![FieldProblem::new(field, Fault::Rule(problem))])
        };
        let arguments = match &call.arguments {
            Arguments::Object(object) => Value::Object(object.clone()),
            // The text is quoted, so that the model sees what it wrote.
            Arguments::Malformed(text) => {
                let quoted: String = text.chars().take(500).collect();
                return Err(invalid("arguments", format!("not a JSON object: {quoted}")));
            }
        };
        let Some(read) = Self::read(&call.name, arguments) else {
            return Err(super::unknown(&call.name));
        };
        read.map_err(|error| {
            let path = error.path().to_string();
            invalid(if path == "." { "arguments" } else { &path }, error.into_inner().to_string())
        })
    }
}

/// `create_role`
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateRole {
    pub(super) name: String,
    pub(super) role_prompt: String,
    #[serde(default, rename = "interface_spec")]
    #[schemars(schema_with = "interface_spec")]
    pub(super) interface_spec: Option<Value>,
    pub(super) service_id: Option<String>,
    #[serde(default)]
    pub(super) required_capabilities: Vec<String>,
    #[serde(default)]
    #[schemars(schema_with = "tool_groups")]
    pub(super) tool_groups: Vec<ToolGroup>,
}

/// `find_role_by_name`
#[derive(Deserialize, JsonSchema)]
pub(super) struct FindRoleByName {
    pub(super) name: String,
}

/// `spawn_agent`
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpawnAgent {
    pub(super) role_id: String,
    /// Read by the rules, which name all of its faults at once.
    #[schemars(with = "TaskBrief", required)]
    pub(super) task_brief: Option<Value>,
    pub(super) name: Option<String>,
}

/// `spawn_agent_with_task`
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpawnAgentWithTask {
    pub(super) role_id: String,
    #[schemars(with = "TaskBrief", required)]
    pub(super) task_brief: Option<Value>,
    #[schemars(schema_with = "payload")]
    pub(super) initial_message: Value,
    pub(super) name: Option<String>,
}

/// `terminate_agent`
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TerminateAgent {
    pub(super) agent_id: String,
    pub(super) reason: Option<String>,
}

/// `get_org_structure`
#[derive(Deserialize, JsonSchema)]
pub(super) struct GetOrgStructure {}

/// `send_message`
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SendMessage {
    pub(super) to: Receivers,
    #[schemars(schema_with = "payload")]
    pub(super) payload: Value,
    pub(super) delay_ms: Option<u64>,
}

/// Whom a message is for.
#[derive(Deserialize)]
#[serde(from = "Value")]
pub(super) struct Receivers(pub(super) Vec<String>);

impl From<Value> for Receivers {
    /// One id, or several. What is neither names nobody, and is refused as such.
    fn from(value: Value) -> Self {
        match value {
            Value::Array(items) => Self(items.iter().map(in_words).collect()),
            one => Self(vec![in_words(&one)]),
        }
    }
}

fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

impl JsonSchema for Receivers {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Receivers".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
    }
}

/// `list_contacts`
#[derive(Deserialize, JsonSchema)]
pub(super) struct ListContacts {}

/// `find_capable_agents`
#[derive(Deserialize, JsonSchema)]
pub(super) struct FindCapableAgents {
    pub(super) capability: String,
    #[serde(default)]
    #[schemars(schema_with = "direction")]
    pub(super) direction: Option<Direction>,
}

/// `put_artifact`
#[derive(Deserialize, JsonSchema)]
pub(super) struct PutArtifact {
    #[serde(rename = "type")]
    pub(super) label: String,
    #[schemars(schema_with = "text_or_json")]
    pub(super) content: Value,
    #[serde(default)]
    #[schemars(schema_with = "object")]
    pub(super) meta: Option<Value>,
    #[serde(default)]
    #[schemars(schema_with = "encoding")]
    pub(super) encoding: Option<Encoding>,
}

/// How the content of an artifact is written.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encoding {
    /// Bytes, in base64.
    Base64,
    /// Text, as it stands.
    #[serde(rename = "utf-8", alias = "utf8", alias = "text")]
    Utf8,
}

/// `get_artifact`
#[derive(Deserialize, JsonSchema)]
pub(super) struct GetArtifact {
    #[serde(rename = "ref")]
    pub(super) reference: String,
    #[serde(default)]
    pub(super) offset: u64,
    pub(super) limit: Option<u64>,
}

/// `list_artifacts`
#[derive(Deserialize, JsonSchema)]
pub(super) struct ListArtifacts {}

/// `compress_context`
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompressContext {
    pub(super) summary: String,
    pub(super) keep_recent_count: Option<u64>,
}

fn interface_spec(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "services": {"type": "string"},
            "input_format": {"type": "string"},
            "output_format": {"type": "string"},
            "examples": {"type": "string"},
        },
        "required": ["services", "input_format", "output_format", "examples"],
    })
}

/// A text alone is taken as a payload too; the schema shows the form that can say everything.
fn payload(_: &mut SchemaGenerator) -> Schema {
    let types: Vec<&str> = MessageType::ALL.into_iter().map(MessageType::as_str).collect();
    json_schema!({
        "type": "object",
        "properties": {
            "message_type": {"type": "string", "enum": types},
            "text": {"type": "string"},
            "content": {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {}}]},
            "attachments": {"type": "array", "items": {"type": "string"}},
            "taskBrief": {"type": "object"},
            "reason": {"type": "string"},
            "required_capability": {"type": "string"},
            "target_agent": {"anyOf": [{"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}, {"type": "null"}]},
            "usage_hint": {"type": "string"},
            "request_id": {"type": "string"},
            "contact_reason": {"type": "string"},
        },
    })
}

fn tool_groups(_: &mut SchemaGenerator) -> Schema {
    let groups = ToolGroup::ALL.map(ToolGroup::as_str);
    json_schema!({"type": "array", "items": {"type": "string", "enum": groups}})
}

fn encoding(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["utf-8", "base64"]})
}

fn direction(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["input", "output", "both"]})
}

fn text_or_json(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {}}]})
}

fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object"})
}
