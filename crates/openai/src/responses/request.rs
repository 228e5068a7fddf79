//! The body of `POST /v1/responses`: a text, or a list of items, which becomes a conversation.

use crate::conversation::{ChatMessage, Conversation, Role, Speaker, called};
use crate::part;
use crate::problem::Problem;
use crate::question::{Common, Delivery, Question, UsageChunk, read_body, schema_of, unsupported};
use serde::Deserialize;
use serde_json::{Value, json};

/// The fields of a request body that this route uses or refuses. All other fields are ignored.
#[derive(Debug, Deserialize)]
struct Body {
    #[serde(flatten)]
    common: Common,
    input: Option<Value>,
    instructions: Option<Value>,
    previous_response_id: Option<String>,
    conversation: Option<Value>,
    prompt: Option<Value>,
    background: Option<bool>,
    text: Option<Value>,
}

/// Parses a request body.
pub(crate) fn read(body: &[u8]) -> Result<Question, Problem> {
    let body: Body = read_body(body)?;
    body.check()?;
    let format = body.text.as_ref().and_then(|text| text.get("format"));
    let mut instructions = Vec::new();
    if let Some(text) = body.instructions.as_ref().and_then(Value::as_str) {
        instructions.push(text.to_owned());
    }
    let mut said = Vec::new();
    for (index, item) in items(body.input)?.iter().enumerate() {
        match one(item, &format!("input[{index}]"))? {
            Item::Instructions(text) => instructions.push(text),
            Item::Message(words) => said.push(words),
            Item::Nothing => {}
        }
    }
    Ok(Question {
        schema: schema_of(format, "/schema", "text.format")?,
        task: body.common.task()?.map(str::to_owned),
        person: body.common.person().to_owned(),
        delivery: match body.common.stream {
            Some(true) => Delivery::Streamed(UsageChunk::Wanted),
            Some(false) | None => Delivery::Whole,
        },
        conversation: Conversation::new(&instructions, said, "input")?,
        previous: body.previous_response_id,
        model: body.common.model,
    })
}

impl Body {
    /// Refuses the fields that the route must not ignore: otherwise the client would misread the answer.
    fn check(&self) -> Result<(), Problem> {
        self.common.check()?;
        if self.conversation.as_ref().is_some_and(|conversation| !conversation.is_null()) {
            let message =
                "this server stores no conversations; send the conversation, or previous_response_id";
            return Err(unsupported("conversation", message));
        }
        if self.prompt.as_ref().is_some_and(|prompt| !prompt.is_null()) {
            return Err(unsupported("prompt", "this server stores no templates; send the text itself"));
        }
        if self.background == Some(true) {
            let message =
                "wait for the answer, or stream it; a client that disconnects gets it when it asks again";
            return Err(unsupported("background", message));
        }
        Ok(())
    }
}

/// Returns the items of an input. A plain text counts as a message from the person.
fn items(input: Option<Value>) -> Result<Vec<Value>, Problem> {
    match input {
        Some(Value::String(text)) => Ok(vec![json!({"role": "user", "content": text})]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) | None => {
            Err(Problem::invalid("invalid_value", "input", "must be a text or a list of items"))
        }
    }
}

/// A parsed item.
enum Item {
    /// Instructions for the model.
    Instructions(String),
    /// A message of the conversation.
    Message(ChatMessage),
    /// An item to skip, such as the reasoning of another model.
    Nothing,
}

fn one(item: &Value, at: &str) -> Result<Item, Problem> {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("message");
    if kind == "message" {
        return message(item, at);
    }
    if kind == "reasoning" || kind == "item_reference" || kind == "compaction" {
        return Ok(Item::Nothing);
    }
    // A tool call, or the result of a tool call. The tool belongs to the client or to another model's server.
    if kind.ends_with("_output") {
        let output = &item["output"];
        // The output may be a list of parts, each in the form of a part of a message. It may also be any other JSON.
        let (text, attached) = match output {
            Value::Array(_) => part::content(output, &format!("{at}.output"))?,
            Value::String(text) => (text.clone(), Vec::new()),
            other => (other.to_string(), Vec::new()),
        };
        return Ok(Item::Message(ChatMessage::new(Speaker::Tool, &text, attached)));
    }
    if kind.ends_with("_call") {
        let name = item.get("name").unwrap_or(&item["type"]);
        let arguments = ["arguments", "input", "action"].iter().find_map(|field| item.get(*field));
        let text = called(name, arguments.unwrap_or(&Value::Null));
        return Ok(Item::Message(ChatMessage::new(Speaker::Assistant, &text, Vec::new())));
    }
    let message = "must be message, reasoning, or a call of a tool or its output";
    Err(Problem::invalid("unsupported_value", format!("{at}.type"), message))
}

fn message(item: &Value, at: &str) -> Result<Item, Problem> {
    let role = item.get("role").and_then(Value::as_str).and_then(Speaker::of_role);
    let Some(role) = role else {
        let message = "must be system, developer, user or assistant";
        return Err(Problem::invalid("invalid_value", format!("{at}.role"), message));
    };
    let content = item.get("content").unwrap_or(&Value::Null);
    let (text, attached) = part::content(content, &format!("{at}.content"))?;
    Ok(match role {
        Role::Instructs => Item::Instructions(text),
        Role::Speaks(speaker) => Item::Message(ChatMessage::new(speaker, &text, attached)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(fields: Value) -> Result<Question, Problem> {
        let mut body = json!({"model": "polity"});
        for (name, value) in fields.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        read(body.to_string().as_bytes())
    }

    #[test]
    fn inputs() {
        let text = body(json!({"input": "one", "instructions": "be brief"})).unwrap();
        assert_eq!(text.conversation.question(), "one");
        assert_eq!(text.conversation.background()["instructions"], "be brief");
        let items = json!([
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be brief"}]},
            {"role": "user", "content": "one"},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{\"cmd\": \"ls\"}"},
            {"type": "function_call_output", "call_id": "c", "output": "a.txt"},
            {"type": "custom_tool_call", "call_id": "d", "name": "apply_patch", "input": "*** Begin"},
            {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "done"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two", "annotations": []}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "three"}]},
        ]);
        let asked = body(json!({"input": items})).unwrap().conversation;
        assert_eq!(asked.question(), "three");
        let before = Value::Object(asked.background());
        assert_eq!(before["instructions"], "be brief");
        let said = &before["conversation"];
        assert_eq!(said[0], json!({"role": "user", "text": "one"}));
        assert_eq!(said[1], json!({"role": "assistant", "text": "called shell {\"cmd\": \"ls\"}"}));
        assert_eq!(said[2], json!({"role": "tool", "text": "a.txt"}));
        assert_eq!(said[4], json!({"role": "tool", "text": "done"}));
        assert_eq!(said[5], json!({"role": "assistant", "text": "two"}));
    }

    #[test]
    fn what_would_mislead_is_refused() {
        let check = |fields: Value, param: &str| {
            let problem = body(fields).unwrap_err();
            assert_eq!((problem.status.as_u16(), problem.param.as_deref()), (400, Some(param)));
        };
        check(json!({}), "input");
        check(json!({"input": 7}), "input");
        check(json!({"input": []}), "input");
        check(json!({"input": [{"type": "no_such_item"}]}), "input[0].type");
        check(json!({"input": [{"role": "wizard", "content": "x"}]}), "input[0].role");
        check(json!({"input": "x", "background": true}), "background");
        check(json!({"input": "x", "conversation": "conv_1"}), "conversation");
        check(json!({"input": "x", "prompt": {"id": "p"}}), "prompt");
        check(json!({"input": "x", "tool_choice": "required"}), "tool_choice");
        check(json!({"input": "x", "text": {"format": {"type": "grammar"}}}), "text.format.type");
    }

    #[test]
    fn what_clients_send_beside_it_is_ignored() {
        let fields = json!({
            "input": "x", "tools": [{"type": "function", "name": "shell", "parameters": {}}],
            "tool_choice": "auto", "parallel_tool_calls": true, "reasoning": {"summary": "auto"}, "store": false,
            "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "service_tier": null,
            "text": {"verbosity": "low"}, "stream": true, "conversation": null, "previous_response_id": null,
        });
        let question = body(fields).unwrap();
        assert_eq!(question.delivery, Delivery::Streamed(UsageChunk::Wanted));
        assert_eq!((question.schema, question.previous), (None, None));
    }
}
