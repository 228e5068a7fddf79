//! The types of arguments.

use super::CreateRole;
use super::reading::{Argument, Blame, Reading};
use polity_society::brief::TaskBrief;
use polity_society::content::{Capability, Direction};
use polity_society::id::ServiceId;
use polity_society::message::{MessageType, Payload};
use polity_society::name::Name;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::role::InterfaceSpec;
use polity_society::tool_group::ToolGroup;
use polity_society::written;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

type Read<T> = Result<T, Vec<FieldProblem>>;

/// Returns a fault that concerns the whole value and not one of its fields.
fn fault<T>(fault: Fault) -> Read<T> {
    Err(vec![FieldProblem::new("", fault)])
}

/// Some models fill in every field that they see, and write a blank text if they have no value. So a blank text for an
/// optional argument counts as a missing argument.
impl<T: Argument> Argument for Option<T> {
    const REQUIRED: bool = false;
    const BLAME: Blame = T::BLAME;

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        T::schema(generator)
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        if value.as_str().is_some_and(written::is_blank) {
            return Ok(None);
        }
        T::read(value, reading).map(Some)
    }

    fn absent() -> Read<Self> {
        Ok(None)
    }
}

impl<T: Argument> Argument for Vec<T> {
    const REQUIRED: bool = false;

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let items = T::schema(generator);
        json_schema!({"type": "array", "items": items})
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        if value.as_str().is_some_and(written::is_blank) {
            return Ok(Self::new());
        }
        let items = match (written::list(&value), &value) {
            (Some(items), _) => items,
            // No item of a list of this type can contain a comma, so each comma separates two items.
            (None, Value::String(text)) => text.split(',').map(|item| Value::from(item.trim())).collect(),
            (None, _) => return fault(Fault::NotA("an array")),
        };
        let (mut read, mut problems) = (Self::with_capacity(items.len()), Vec::new());
        for (index, item) in items.into_iter().enumerate() {
            match T::read(item, reading) {
                Ok(item) => read.push(item),
                Err(inner) => {
                    problems.extend(inner.into_iter().map(|problem| problem.inside(&format!("[{index}]"))));
                }
            }
        }
        if problems.is_empty() { Ok(read) } else { Err(problems) }
    }

    fn absent() -> Read<Self> {
        Ok(Self::new())
    }
}

impl Argument for String {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }

    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        match value {
            Value::String(text) => Ok(text),
            _ => fault(Fault::NotA("a string")),
        }
    }
}

/// A text that is not blank.
pub struct Words(pub String);

impl Argument for Words {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <String as Argument>::schema(generator)
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        let text = String::read(value, reading)?;
        if written::is_blank(&text) { fault(Fault::Empty) } else { Ok(Self(text)) }
    }
}

impl Argument for u64 {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer"})
    }

    /// A number in a string is accepted too.
    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        let number = match &value {
            Value::String(text) => serde_json::from_str(text.trim()).unwrap_or_default(),
            other => other.clone(),
        };
        // A number whose fraction is zero, such as `5.0`, counts as a whole number.
        let whole = number.as_f64().filter(|number| number.fract() == 0.0 && (0.0..9e15).contains(number));
        match number.as_u64().or(whole.map(|number| number as Self)) {
            Some(number) => Ok(number),
            None => fault(Fault::NotA("a whole number, 0 or more")),
        }
    }
}

impl Argument for Name {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <String as Argument>::schema(generator)
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        Self::parse(&String::read(value, reading)?).or_else(fault)
    }
}

impl Argument for ServiceId {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <String as Argument>::schema(generator)
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        let id = Self::new(String::read(value, reading)?);
        match reading.catalogue {
            Some(catalogue) if catalogue.service(&id).is_none() => {
                let known = catalogue.services().iter().map(|service| service.id.to_string()).collect();
                fault(Fault::NotOneOf(known))
            }
            _ => Ok(id),
        }
    }
}

impl Argument for Capability {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <String as Argument>::schema(generator)
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        Self::new(&String::read(value, reading)?).map_or_else(|| fault(Fault::Empty), Ok)
    }
}

/// Returns the schema of a text that must be one of these names.
fn one_of_names<T: Copy + Into<&'static str>>(all: &[T]) -> Schema {
    let names: Vec<&str> = all.iter().map(|member| (*member).into()).collect();
    json_schema!({"type": "string", "enum": names})
}

/// Reads one of the known values. Upper and lower case do not matter.
fn one_of<T>(value: &Value, all: impl Iterator<Item = (&'static str, T)> + Clone) -> Read<T> {
    let is_meant = |(name, _): &(&str, T)| {
        value.as_str().is_some_and(|written| written.trim().eq_ignore_ascii_case(name))
    };
    match all.clone().find(is_meant) {
        Some((_, meant)) => Ok(meant),
        None => fault(Fault::NotOneOf(all.map(|(name, _)| name.to_owned()).collect())),
    }
}

impl Argument for ToolGroup {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        // This schema does not list the tool groups. Each request to a model lists the groups that the agent may give
        // to a role.
        json_schema!({"type": "string"})
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        let written = value.as_str().unwrap_or_default().trim();
        let group: Option<Self> = written.parse().or_else(|_| written.to_lowercase().parse()).ok();
        let Some(group) = group else {
            let known = Self::BUILT_IN.iter().filter(|group| !group.is_later()).map(ToString::to_string);
            return fault(Fault::NotOneOf(known.chain(["mcp:<server>".to_owned()]).collect()));
        };
        if group.is_later() {
            reading.ignored.push(group.to_string());
        }
        Ok(group)
    }
}

impl Argument for Direction {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        one_of_names(Self::ALL)
    }

    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        one_of(&value, Self::ALL.iter().map(|direction| (direction.as_str(), *direction)))
    }
}

/// The caller wants the new agent to have its own worktree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct OwnWorkspace;

impl Argument for OwnWorkspace {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": [OWN]})
    }

    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        one_of(&value, [(OWN, Self)].into_iter())
    }
}

/// The only value of the argument `workspace`.
const OWN: &str = "own";

/// How the content of an artifact is encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Plain text.
    Utf8,
    /// Bytes in base64.
    Base64,
}

impl Argument for Encoding {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ["utf-8", "base64"]})
    }

    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        let all =
            [("utf-8", Self::Utf8), ("base64", Self::Base64), ("utf8", Self::Utf8), ("text", Self::Utf8)];
        one_of(&value, all.into_iter())
    }
}

/// The receivers of a message: one id or several.
pub struct Receivers(pub Vec<String>);

impl Argument for Receivers {
    /// The schema shows only a string. A list is accepted too, even if the model encoded the list as a string.
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        let ids = match written::list(&value) {
            Some(items) => Vec::<String>::read(Value::Array(items), reading)?,
            None if value.is_string() => vec![String::read(value, reading)?],
            None => return fault(Fault::NotA("an id, or an array of ids")),
        };
        if ids.is_empty() {
            return fault(Fault::Empty);
        }
        Ok(Self(ids.into_iter().map(|id| id.trim().to_owned()).collect()))
    }
}

/// Any JSON value. The schema asks models for a text.
pub struct ContentArgument(pub Value);

impl Argument for ContentArgument {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string"})
    }

    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        Ok(Self(value))
    }
}

/// An object with any fields.
pub struct Meta(pub Map<String, Value>);

impl Argument for Meta {
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }

    fn read(value: Value, _: &mut Reading<'_>) -> Read<Self> {
        written::object(&value).map_or_else(|| fault(Fault::NotA("an object")), |object| Ok(Self(object)))
    }
}

impl Argument for InterfaceSpec {
    /// Most roles have no interface spec, so the schema is short and lists no fields. The tool's description names the
    /// four fields.
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        Self::read(&value, &mut reading.ignored)
    }
}

impl Argument for TaskBrief {
    const BLAME: Blame = Blame::Brief;

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Self::json_schema(generator)
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        Self::read(Some(&value), &mut reading.ignored)
    }

    fn absent() -> Read<Self> {
        Self::read(None, &mut Vec::new())
    }
}

/// A task brief with a short schema. The schema lists no fields, because the schema of another tool already lists them.
pub struct ShortBrief(pub TaskBrief);

impl Argument for ShortBrief {
    const BLAME: Blame = TaskBrief::BLAME;

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        <TaskBrief as Argument>::read(value, reading).map(Self)
    }

    fn absent() -> Read<Self> {
        <TaskBrief as Argument>::absent().map(Self)
    }
}

/// The first message to a new agent. Any payload is accepted, though most are a text with attachments.
pub struct FirstMessage(pub Payload);

impl Argument for FirstMessage {
    const BLAME: Blame = Payload::BLAME;

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "attachments": {"type": "array", "items": {"type": "string"}},
            },
        })
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        <Payload as Argument>::read(value, reading).map(Self)
    }
}

/// A role that is created together with the agent that is hired into it.
pub struct NewRole(pub Box<CreateRole>);

impl Argument for NewRole {
    /// The schema shows the fields that most roles have. All arguments of `create_role` are accepted.
    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "rolePrompt": {"type": "string"},
                "requiredCapabilities": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["name", "rolePrompt"],
        })
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        let Some(object) = written::object(&value) else { return fault(Fault::NotA("an object")) };
        let (role, problems, ignored) = CreateRole::within(object, reading.catalogue);
        reading.ignored.extend(ignored);
        role.map(|role| Self(Box::new(role))).ok_or(problems)
    }
}

impl Argument for Payload {
    const BLAME: Blame = Blame::Message;

    /// The schema shows an object, because an object can contain every field. A plain text is accepted too.
    fn schema(_: &mut SchemaGenerator) -> Schema {
        let types: Vec<&str> = MessageType::ALL.iter().map(|known| known.as_str()).collect();
        json_schema!({
            "type": "object",
            "properties": {
                "message_type": {"type": "string", "enum": types},
                "text": {"type": "string"},
                "attachments": {"type": "array", "items": {"type": "string"}},
                "taskBrief": {"type": "object"},
                "reason": {"type": "string"},
                "required_capability": {"type": "string"},
                "target_agent": {"type": "object"},
                "usage_hint": {"type": "string"},
                "request_id": {"type": "string"},
                "contact_reason": {"type": "string"},
            },
        })
    }

    fn read(value: Value, reading: &mut Reading<'_>) -> Read<Self> {
        let (payload, ignored) = Self::parse(&value)?;
        reading.ignored.extend(ignored);
        Ok(payload)
    }
}
