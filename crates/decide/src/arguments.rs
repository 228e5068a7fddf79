//! The arguments of each tool. The schemas that models see are generated from these types, and the same types read the
//! arguments that models send.

mod reading;
mod types;

pub use types::{
    ContentArgument, Encoding, FirstMessage, Meta, NewRole, OwnWorkspace, Receivers, ShortBrief, Words,
};

use crate::inline;
use polity_llm::{Arguments, ToolCall};
use polity_registry::Catalogue;
use polity_society::brief::TaskBrief;
use polity_society::content::{Capability, Direction};
use polity_society::id::ServiceId;
use polity_society::message::Payload;
use polity_society::name::Name;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::role::InterfaceSpec;
use polity_society::tool_group::ToolGroup;
use reading::{Argument, Reader};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};

/// Declares the tools: the name, the group, and the arguments with their names.
macro_rules! tools {
    ($($name:literal => $variant:ident, $group:ident, { $($field:ident: $type:ty = $key:literal,)* })*) => {
        /// The names of the tools, in the order in which models see them.
        pub const NAMES: &[&str] = &[$($name),*];

        $(
            #[doc = concat!("`", $name, "`")]
            pub struct $variant { $(pub $field: $type,)* }

            impl $variant {
                /// Reads all arguments before it fails, so that the refusal names every fault.
                fn read(reader: &mut Reader<'_>) -> Option<Self> {
                    let _ = &reader;
                    $(let $field = reader.take::<$type>($key);)*
                    Some(Self { $($field: $field?,)* })
                }
            }
        )*

        /// A call whose arguments were read without a fault.
        pub enum Call { $($variant($variant)),* }

        /// Returns the names of a tool's arguments, or `None` if there is no such tool.
        fn arguments_of(tool: &str) -> Option<&'static [&'static str]> {
            match tool {
                $($name => Some(&[$($key),*]),)*
                _ => None,
            }
        }

        /// Returns the group of a tool, or `None` if there is no such tool.
        pub fn group_of(tool: &str) -> Option<ToolGroup> {
            match tool {
                $($name => Some(ToolGroup::$group),)*
                _ => None,
            }
        }

        fn read(tool: &str, reader: &mut Reader<'_>) -> Option<Call> {
            match tool {
                $($name => $variant::read(reader).map(Call::$variant),)*
                _ => None,
            }
        }

        /// Returns the schema of each tool.
        pub fn schemas(generator: &mut SchemaGenerator) -> Vec<(&'static str, Schema)> {
            vec![$(($name, reading::object(vec![
                $(($key, <$type as Argument>::REQUIRED, <$type as Argument>::schema(generator)),)*
            ])),)*]
        }
    };
}

tools! {
    "create_role" => CreateRole, Organization, {
        name: Name = "name",
        role_prompt: Words = "rolePrompt",
        interface_spec: Option<InterfaceSpec> = "interface_spec",
        service_id: Option<ServiceId> = "serviceId",
        required_capabilities: Vec<String> = "requiredCapabilities",
        tool_groups: Vec<ToolGroup> = "toolGroups",
    }
    "find_role_by_name" => FindRoleByName, Organization, {
        name: String = "name",
    }
    "spawn_agent" => SpawnAgent, Organization, {
        role_id: String = "roleId",
        task_brief: ShortBrief = "taskBrief",
        name: Option<Name> = "name",
        workspace: Option<OwnWorkspace> = "workspace",
    }
    "spawn_agent_with_task" => SpawnAgentWithTask, Organization, {
        role_id: Option<String> = "roleId",
        role: Option<NewRole> = "role",
        task_brief: TaskBrief = "taskBrief",
        initial_message: FirstMessage = "initialMessage",
        name: Option<Name> = "name",
        workspace: Option<OwnWorkspace> = "workspace",
    }
    "terminate_agent" => TerminateAgent, Organization, {
        agent_id: String = "agentId",
        reason: Option<String> = "reason",
    }
    "get_org_structure" => GetOrgStructure, Organization, {}
    "send_message" => SendMessage, Messages, {
        to: Receivers = "to",
        payload: Payload = "payload",
        delay_ms: Option<u64> = "delayMs",
    }
    "list_contacts" => ListContacts, Messages, {}
    "find_capable_agents" => FindCapableAgents, Messages, {
        capability: Capability = "capability",
        direction: Option<Direction> = "direction",
    }
    "put_artifact" => PutArtifact, Artifacts, {
        label: String = "type",
        content: ContentArgument = "content",
        meta: Option<Meta> = "meta",
        encoding: Option<Encoding> = "encoding",
    }
    "get_artifact" => GetArtifact, Artifacts, {
        reference: String = "ref",
        offset: Option<u64> = "offset",
        limit: Option<u64> = "limit",
    }
    "list_artifacts" => ListArtifacts, Artifacts, {}
    "compress_context" => CompressContext, Context, {
        summary: Words = "summary",
        keep_recent_count: Option<u64> = "keepRecentCount",
    }
}

/// The result of reading the arguments of a call.
pub struct Parsed {
    /// The call, or the refusal that reports all faults of the call.
    pub call: Result<Call, Refusal>,
    /// The paths of the arguments that were not understood.
    pub ignored: Vec<String>,
    /// Notes about arguments that were understood although the model did not write them as the schema demands.
    pub understood: Vec<String>,
}

/// Returns the synonyms for a tool's arguments as pairs: the synonym, and the name of the argument. If the call also
/// contains the argument itself, the synonym does not count.
pub fn synonyms_of(tool: &str) -> &'static [(&'static str, &'static str)] {
    match tool {
        "create_role" => &[
            ("prompt", "rolePrompt"),
            ("description", "rolePrompt"),
            ("roleName", "name"),
            ("capabilities", "requiredCapabilities"),
        ],
        "spawn_agent" => &[("brief", "taskBrief"), ("agentName", "name")],
        "spawn_agent_with_task" => &[
            ("brief", "taskBrief"),
            ("agentName", "name"),
            ("message", "initialMessage"),
            ("firstMessage", "initialMessage"),
        ],
        "terminate_agent" => &[("agent", "agentId"), ("id", "agentId")],
        "send_message" => &[
            ("recipient", "to"),
            ("receiver", "to"),
            ("agentId", "to"),
            ("message", "payload"),
            ("content", "payload"),
            ("text", "payload"),
            ("body", "payload"),
        ],
        "put_artifact" => &[("text", "content"), ("data", "content"), ("label", "type"), ("kind", "type")],
        "get_artifact" => &[("artifact", "ref"), ("reference", "ref"), ("artifactId", "ref"), ("id", "ref")],
        _ => &[],
    }
}

impl Call {
    /// Reads a call, or returns all its faults. If a catalogue is given, every service that the call names must be in
    /// the catalogue.
    pub fn parse(call: &ToolCall, catalogue: Option<&Catalogue>) -> Parsed {
        let refused = |refusal| Parsed { call: Err(refusal), ignored: Vec::new(), understood: Vec::new() };
        let Some(names) = arguments_of(&call.name) else {
            return refused(Refusal::unknown_tool(&call.name, NAMES));
        };
        let object = match &call.arguments {
            Arguments::Object(object) => object.clone(),
            // The refusal quotes the text, so that the model sees what it wrote. The quotation omits encoded bytes.
            Arguments::Malformed(text) => {
                let quoted: String = text.chars().take(500).collect();
                let problem = inline::leave_out(&format!("not a JSON object: {quoted}"));
                let problem = FieldProblem::new("arguments", Fault::Rule(problem));
                return refused(Refusal::InvalidArguments(vec![problem]));
            }
        };
        let mut reader = Reader::new(object, names, catalogue);
        reader.translate(synonyms_of(&call.name));
        match call.name.as_str() {
            "send_message" => {
                reader.write_to_person("to", "payload");
                reader.gather("payload", None);
            }
            "spawn_agent_with_task" => {
                reader.complete("taskBrief", "initialMessage");
                reader.assign("initialMessage", "taskBrief");
                reader.gather("initialMessage", Some("taskBrief"));
            }
            _ => {}
        }
        let understood = reader.understood();
        let read = read(&call.name, &mut reader);
        let (refusal, ignored) = reader.finish();
        let call = match (refusal, read) {
            (Some(refusal), _) => Err(refusal),
            (None, Some(read)) => Ok(read),
            // This cannot happen. An argument that cannot be read has a fault, and then there is a refusal.
            (None, None) => Err(Refusal::InvalidArguments(Vec::new())),
        };
        Parsed { call, ignored, understood }
    }
}

impl CreateRole {
    /// Reads a role inside another call. Returns three things: the role, if it has no faults; its faults; and the
    /// arguments that were not understood.
    fn within(
        object: Map<String, Value>,
        catalogue: Option<&Catalogue>,
    ) -> (Option<Self>, Vec<FieldProblem>, Vec<String>) {
        let names = arguments_of("create_role").unwrap_or_default();
        let mut reader = Reader::new(object, names, catalogue);
        reader.translate(synonyms_of("create_role"));
        let role = Self::read(&mut reader);
        let (refusal, ignored) = reader.finish();
        let problems = match refusal {
            Some(Refusal::InvalidArguments(problems)) => problems,
            // A role contains neither a brief nor a message, so only the refusal `InvalidArguments` is possible.
            Some(_) | None => Vec::new(),
        };
        (role.filter(|_| problems.is_empty()), problems, ignored)
    }
}

#[cfg(test)]
mod tests;
