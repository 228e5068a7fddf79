//! Payloads: the content that a party writes into a message. This module reads and checks payloads.

use crate::brief::{TaskBrief, schema_in};
use crate::id::{ArtifactId, MessageId};
use crate::message::message_type::MessageType;
use crate::problem::{Fault, FieldProblem, Fields, path};
use crate::written::{self, is_blank, says_something};
use serde_json::{Map, Value};

/// The field of an answer that contains the answer's content as JSON. The system adds this field if the content fits
/// the requested schema. Only the system can write this field and [`SCHEMA_ERRORS`].
pub const RESULT: &str = "checked_result";

/// The field of an answer that lists why the content does not fit the requested schema.
pub const SCHEMA_ERRORS: &str = "schema_errors";

/// The fields that only the system writes. Parsing removes them from the payloads of models and people.
const OF_SYSTEM: [&str; 3] = ["from", RESULT, SCHEMA_ERRORS];

/// A payload that has all fields that its message type requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The declared type, or `General` if none was declared.
    pub message_type: MessageType,
    /// The artifacts attached to the message, without duplicates.
    pub attachments: Vec<ArtifactId>,
    /// All other fields as they were written, without `message_type`, `attachments` and `from`.
    pub fields: Map<String, Value>,
}

impl Payload {
    /// The names of all fields that the message types define.
    const KNOWN: [&'static str; 11] = [
        "message_type",
        "text",
        "content",
        "attachments",
        "taskBrief",
        "reason",
        "required_capability",
        "target_agent",
        "usage_hint",
        "request_id",
        "contact_reason",
    ];

    /// Returns a payload with nothing but a plain text.
    pub fn text(text: impl Into<String>) -> Self {
        let fields = Map::from_iter([("text".to_owned(), Value::String(text.into()))]);
        Self { message_type: MessageType::General, attachments: Vec::new(), fields }
    }

    /// Reads a payload that a model or a person wrote: an object or a text. Reports all faults at once.
    /// Also returns the names of the ignored fields, which only the system may fill in.
    pub fn parse(value: &Value) -> Result<(Self, Vec<String>), Vec<FieldProblem>> {
        let (payload, ignored) = Self::parse_accompanied(value)?;
        if payload.shows_something() {
            return Ok((payload, ignored));
        }
        let is_given = |field: &&str| payload.fields.get(*field).is_some_and(|value| !value.is_null());
        Err(vec![match ["text", "content"].into_iter().find(is_given) {
            Some(_) if value.is_string() => FieldProblem::new("", Fault::Empty),
            Some(field) => FieldProblem::new(field, Fault::Empty),
            None => FieldProblem::new("text", Fault::Missing),
        }])
    }

    /// Like [`Self::parse`], but also accepts a payload without content,
    /// because the caller attaches artifacts that the payload does not name.
    pub fn parse_accompanied(value: &Value) -> Result<(Self, Vec<String>), Vec<FieldProblem>> {
        let Some(object) = Self::open(value) else {
            return Err(vec![FieldProblem::new("", Fault::NotA("an object or a string"))]);
        };
        let mut ignored = Vec::new();
        let mut fields = Fields::new(&object);
        let message_type = read_type(&mut fields);
        let attachments = read_attachments(&mut fields);
        check_needs(message_type, &mut fields, &mut ignored);
        fields.finish(())?;

        let mut rest = object;
        // `shift_remove` keeps the order of the other fields.
        rest.shift_remove("message_type");
        rest.shift_remove("attachments");
        for name in OF_SYSTEM.into_iter().rev() {
            if rest.shift_remove(name).is_some_and(|value| !value.is_null()) {
                ignored.insert(0, name.to_owned());
            }
        }
        // A model may write an object as a JSON string. The code that reads these fields expects the object itself.
        for name in ["taskBrief", "target_agent"] {
            if let Some(field) = rest.get_mut(name)
                && let Some(object) = written::object(field)
            {
                *field = Value::Object(object);
            }
        }
        Ok((Self { message_type, attachments, fields: rest }, ignored))
    }

    /// Returns the fields of a payload, which may be an object, an object inside a JSON string, or a plain text.
    pub fn open(value: &Value) -> Option<Map<String, Value>> {
        if let Some(object) = written::object(value) {
            let named = written::with_names(object, &Self::KNOWN);
            if value.is_object() || Self::KNOWN.iter().any(|name| named.contains_key(*name)) {
                return Some(named);
            }
        }
        let text = value.as_str()?;
        Some(Map::from_iter([("text".to_owned(), Value::from(text))]))
    }

    /// Returns whether the payload shows its reader anything besides the header and the reason for the contact.
    pub fn shows_something(&self) -> bool {
        let has_lines = match self.message_type {
            MessageType::TaskAssignment
            | MessageType::IntroductionRequest
            | MessageType::IntroductionResponse => true,
            MessageType::General
            | MessageType::StatusReport
            | MessageType::CollaborationRequest
            | MessageType::CollaborationResponse => false,
        };
        let is_shown = |(name, value): (&String, &Value)| {
            // The second line of the message shows the requests that `request_id` names, so the content omits them.
            let names_requests = name == "request_id" && !self.named_requests().is_empty();
            !matches!(name.as_str(), "text" | "content" | "contact_reason")
                && !value.is_null()
                && !names_requests
        };
        has_lines
            || !self.attachments.is_empty()
            || self.content().is_some()
            || self.fields.iter().any(is_shown)
    }

    /// Returns the text of a field, if the field is a text and not blank.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str).filter(|text| !is_blank(text))
    }

    /// Returns the requests that the message names in `request_id`: one id or a list of ids.
    pub fn named_requests(&self) -> Vec<MessageId> {
        let items = match self.fields.get("request_id") {
            Some(Value::Array(items)) => items.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let ids = items.iter().filter_map(Value::as_str).map(str::trim).filter(|id| !id.is_empty());
        ids.map(MessageId::new).collect()
    }

    /// Returns the content and the name of its field: `text`, or `content` if `text` is empty.
    pub fn content(&self) -> Option<(&'static str, &Value)> {
        let said =
            |name| self.fields.get(name).filter(|value| says_something(value)).map(|value| (name, value));
        said("text").or_else(|| said("content"))
    }

    /// Returns the content, if it is a text.
    pub fn words(&self) -> Option<&str> {
        self.content().and_then(|(_, value)| value.as_str())
    }

    /// Returns the JSON Schema that an answer to this message must fit. The schema is in the message's own field, or
    /// else in its brief.
    pub fn result_schema(&self) -> Option<Value> {
        let brief = self.fields.get("taskBrief").and_then(Value::as_object);
        schema_in(&self.fields).or_else(|| schema_in(brief?))
    }

    /// Returns the agent that an introduction names, as the writer spelled it.
    /// Returns `None` if the introduction names nobody, or if the payload is not an introduction.
    pub fn introduced(&self) -> Option<&str> {
        match self.fields.get("target_agent")? {
            Value::String(id) => Some(id),
            target => target.get("id").and_then(Value::as_str),
        }
    }

    /// Returns all fields except the attachments as JSON, to measure their length and to find references in them.
    pub fn to_json_text(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }
}

fn read_type(fields: &mut Fields<'_>) -> MessageType {
    let known = || MessageType::ALL.iter().map(|known| known.as_str().to_owned()).collect();
    match fields.optional("message_type") {
        None => MessageType::General,
        Some(Value::String(name)) => MessageType::from_name(name).unwrap_or_else(|| {
            fields.fault("message_type", Fault::NotOneOf(known()));
            MessageType::General
        }),
        Some(_) => {
            fields.fault("message_type", Fault::NotOneOf(known()));
            MessageType::General
        }
    }
}

fn read_attachments(fields: &mut Fields<'_>) -> Vec<ArtifactId> {
    let Some(value) = fields.optional("attachments") else {
        return Vec::new();
    };
    let items = written::list(value).unwrap_or_else(|| vec![value.clone()]);
    let mut attachments = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item.as_str().and_then(ArtifactId::from_reference) {
            Some(id) if attachments.contains(&id) => {}
            Some(id) => attachments.push(id),
            None => fields.fault(
                &format!("attachments[{index}]"),
                Fault::NotA("a reference such as artifact:k3v9x2ma"),
            ),
        }
    }
    attachments
}

/// Checks the fields that each type needs (contract section 7).
fn check_needs(message_type: MessageType, fields: &mut Fields<'_>, ignored: &mut Vec<String>) {
    match message_type {
        MessageType::TaskAssignment => {
            let mut inner = Vec::new();
            let brief = TaskBrief::read(fields.optional("taskBrief"), &mut inner);
            fields.absorb("taskBrief", brief);
            ignored.extend(inner.iter().map(|field| path("taskBrief", field)));
        }
        MessageType::IntroductionRequest => {
            fields.text("reason");
            fields.text("required_capability");
        }
        MessageType::IntroductionResponse => check_introduction(fields, ignored),
        MessageType::General
        | MessageType::StatusReport
        | MessageType::CollaborationRequest
        | MessageType::CollaborationResponse => {}
    }
}

/// Checks an introduction. The field `target_agent` is required. The value null means "I know nobody".
fn check_introduction(fields: &mut Fields<'_>, ignored: &mut Vec<String>) {
    const EXPECTED: Fault = Fault::NotA("{\"id\": …}, or null for \"I know nobody\"");
    if !fields.contains("target_agent") {
        fields.fault("target_agent", Fault::Missing);
        return;
    }
    let Some(target) = fields.optional("target_agent") else {
        return;
    };
    if let Some(target) = written::object(target) {
        let mut inner = Fields::new(&target);
        // The system knows the role, the interface spec and the capabilities of the introduced agent, so it ignores
        // what the writer says about them.
        ignored.extend(inner.others(&["id"]).iter().map(|name| path("target_agent", name)));
        inner.text("id");
        if !inner.is_sound() {
            fields.fault("target_agent", EXPECTED);
            return;
        }
    } else if target.as_str().is_none_or(is_blank) {
        fields.fault("target_agent", EXPECTED);
        return;
    }
    fields.text("usage_hint");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(value: Value) -> String {
        let problems = Payload::parse(&value).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn what_each_type_needs() {
        let check = |value: Value, expect: &str| assert_eq!(problems(value), expect);
        check(json!({}), "text: missing");
        check(json!(" "), ": empty");
        check(json!(7), ": must be an object or a string");
        check(
            json!({"message_type": "introduction_request"}),
            "reason: missing; required_capability: missing",
        );
        check(json!({"message_type": "introduction_response"}), "target_agent: missing");
        check(
            json!({"message_type": "introduction_response", "target_agent": {"id": "a-1"}}),
            "usage_hint: missing",
        );
        check(
            json!({"message_type": "introduction_response", "target_agent": 3}),
            "target_agent: must be {\"id\": …}, or null for \"I know nobody\"",
        );
        check(
            json!({"message_type": "task_assignment", "taskBrief": {"objective": "x", "constraints": [], "inputs": "i", "outputs": "o"}}),
            "taskBrief.completion_criteria: missing",
        );
        check(
            json!({"text": "x", "attachments": ["artifact:../x"]}),
            "attachments[0]: must be a reference such as artifact:k3v9x2ma",
        );
        assert!(
            problems(json!({"message_type": "gossip", "text": "x"}))
                .starts_with("message_type: must be one of: general")
        );
    }

    #[test]
    fn what_is_taken() {
        let (payload, ignored) =
            Payload::parse(&json!({"from": "user", "text": "x", "attachments": "artifact:abc"})).unwrap();
        assert_eq!(ignored, ["from"]);
        assert_eq!(payload.attachments.len(), 1);
        assert!(!payload.fields.contains_key("from"));
        let nobody = json!({"message_type": "introduction_response", "target_agent": null});
        assert_eq!(Payload::parse(&nobody).unwrap().0.introduced(), None);
    }

    #[test]
    fn what_shows_nothing_is_refused() {
        let check = |value: Value, expect: &str| assert_eq!(problems(value), expect);
        check(json!({"text": ""}), "text: empty");
        check(json!({"text": " \u{200B}\n", "content": ""}), "text: empty");
        check(json!({"content": {}}), "content: empty");
        check(json!({"text": null}), "text: missing");
        check(json!({"message_type": "collaboration_request"}), "text: missing");
        check(json!({"message_type": "status_report", "note": null, "from": "x"}), "text: missing");
        check(json!({"contact_reason": "a picture"}), "text: missing");
        check(json!({"attachments": []}), "text: missing");
        for value in [
            json!({"content": {"a": 1}}),
            json!({"text": 0}),
            json!({"text": "", "content": [false]}),
            json!({"note": ""}),
            json!({"attachments": "artifact:abc"}),
            json!({"message_type": "introduction_response", "target_agent": null}),
        ] {
            assert!(Payload::parse(&value).is_ok(), "{value}");
        }
        let accompanied = Payload::parse_accompanied(&json!(" ")).unwrap().0;
        assert!(!accompanied.shows_something());
    }

    #[test]
    fn a_payload_is_understood_as_it_was_meant() {
        let read = |value: Value| Payload::parse(&value).unwrap();
        let written = json!({"messageType": "status_report", "text": "x", "attachments": "[\"artifact:a\", \"artifact:b\"]"});
        let (payload, _) = read(json!(written.to_string()));
        assert_eq!((payload.message_type, payload.attachments.len()), (MessageType::StatusReport, 2));
        assert_eq!(payload.words(), Some("x"));
        // JSON that has no field of a payload counts as plain text.
        assert_eq!(read(json!("{\"a\": 1}")).0.words(), Some("{\"a\": 1}"));
        let target = json!({"id": "a-1", "roleName": "king", "note": null});
        let answer = json!({"message_type": "introduction_response", "targetAgent": target.to_string(), "usageHint": "x"});
        let (payload, ignored) = read(answer);
        assert_eq!((payload.introduced(), ignored), (Some("a-1"), vec!["target_agent.roleName".to_owned()]));
        let brief = json!({"objective": "o", "constraints": [], "inputs": "i", "outputs": "p", "completionCriteria": "c"});
        let (payload, _) = read(json!({"message_type": "task_assignment", "task_brief": brief.to_string()}));
        assert!(payload.fields["taskBrief"].is_object());
    }

    #[test]
    fn the_text_comes_before_the_content_whatever_they_are() {
        let check = |value: Value, expect: Option<(&'static str, Value)>| {
            let payload = Payload::parse_accompanied(&value).unwrap().0;
            assert_eq!(payload.content().map(|(name, value)| (name, value.clone())), expect);
        };
        check(json!({"text": "a", "content": "b"}), Some(("text", json!("a"))));
        check(json!({"text": {"a": 1}, "content": "b"}), Some(("text", json!({"a": 1}))));
        check(json!({"text": " ", "content": [1]}), Some(("content", json!([1]))));
        check(json!({"content": false}), Some(("content", json!(false))));
        check(json!({}), None);
    }
}
