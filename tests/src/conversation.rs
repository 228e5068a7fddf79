//! A request to a model, as scripts see it: which agent asks, what it was told, which tools it has called.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// One request to a model, as scripts see it. Cheap to clone.
///
/// The sender of each message is read from its header line, in the default language (`zh`).
#[derive(Clone, Debug)]
pub struct Conversation {
    body: Arc<Value>,
}

/// The sender of a message that the agent received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The person who uses the society.
    User,
    /// The system itself, which sends notices.
    System,
    /// Another agent.
    Agent {
        /// The name of the agent's role, from the header line.
        role: String,
        /// The id of the agent, from the header line.
        id: String,
    },
}

/// A message that the agent received, as its model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The sender, according to the header line.
    pub from: Sender,
    /// The line that names the type of the message; empty for notices.
    pub kind: String,
    /// All lines below the header and the type.
    pub text: String,
}

/// A tool result in the history, together with its call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The id of the call, as the result names it.
    pub call_id: String,
    /// The tool that was called; empty if the history does not contain the call.
    pub tool: String,
    /// The arguments, parsed; `null` if they are not JSON.
    pub arguments: Value,
    /// The result, parsed; `null` if it is not JSON.
    pub value: Value,
    /// The result as the model sees it, unparsed.
    pub text: String,
}

impl ToolResult {
    /// Returns the code of the refusal, if the call was refused.
    pub fn error(&self) -> Option<&str> {
        self.value["error"].as_str()
    }
}

impl Conversation {
    /// Wraps the body of a request.
    pub fn new(body: Arc<Value>) -> Self {
        Self { body }
    }

    /// Returns the whole body.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Returns the name of the requested model; empty if the request names none.
    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// Returns all messages, the system message included.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// Returns the text of the leading system message; empty if there is none.
    pub fn system(&self) -> String {
        match self.messages().first() {
            Some(first) if first["role"] == "system" || first["role"] == "developer" => text(first),
            _ => String::new(),
        }
    }

    /// Returns the id of the agent that asks; empty if the system message does not contain it.
    pub fn agent_id(&self) -> String {
        self.runtime_information("agentId=")
    }

    /// Returns the role name of the agent; empty if the system message does not contain it.
    pub fn role_name(&self) -> String {
        self.runtime_information("roleName=")
    }

    /// Returns the id of the agent's parent; empty if the system message does not contain it.
    pub fn parent_id(&self) -> String {
        self.runtime_information("parentAgentId=")
    }

    /// Returns the value on the last line that begins with `key`. Earlier lines that begin with `key` do not count,
    /// because they may be part of a role prompt or a brief.
    fn runtime_information(&self, key: &str) -> String {
        let system = self.system();
        let line = system.lines().rev().find_map(|line| line.trim().strip_prefix(key));
        line.unwrap_or_default().trim().to_owned()
    }

    /// Returns the text of the last message with the role `user`. This message may be a notice. It may also contain
    /// only media and no text.
    pub fn last_user_text(&self) -> String {
        self.messages().iter().rev().find(|message| message["role"] == "user").map(text).unwrap_or_default()
    }

    /// Returns all messages that the agent received, oldest first. Each header line in the request begins one of these
    /// messages.
    pub fn heard(&self) -> Vec<Heard> {
        let mut heard: Vec<Heard> = Vec::new();
        for message in self.messages().iter().filter(|message| message["role"] == "user") {
            let mut begun = false;
            let mut headed = false;
            for line in text(message).lines() {
                if let Some(from) = sender(line) {
                    heard.push(Heard { from, kind: String::new(), text: String::new() });
                    begun = true;
                    headed = true;
                } else if std::mem::take(&mut headed)
                    && line.starts_with("（消息类型）")
                    && let Some(last) = heard.last_mut()
                {
                    last.kind.push_str(line);
                } else if begun && let Some(last) = heard.last_mut() {
                    last.text.push_str(line);
                    last.text.push('\n');
                }
            }
        }
        heard
    }

    /// Returns the ids of all calls in the history, in order.
    pub fn call_ids(&self) -> Vec<&str> {
        self.calls().filter_map(|call| call["id"].as_str()).collect()
    }

    /// Returns whether the history contains a call of the tool. The result of the call does not matter.
    pub fn has_called(&self, tool: &str) -> bool {
        self.calls().any(|call| call["function"]["name"] == tool)
    }

    /// Returns the tool results of the history, in order.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let calls: BTreeMap<&str, &Value> =
            self.calls().filter_map(|call| Some((call["id"].as_str()?, &call["function"]))).collect();
        let results = self.messages().iter().filter(|message| message["role"] == "tool");
        results
            .map(|message| {
                let call_id = message["tool_call_id"].as_str().unwrap_or_default();
                let function = calls.get(call_id).copied().unwrap_or(&Value::Null);
                let text = text(message);
                ToolResult {
                    call_id: call_id.to_owned(),
                    tool: function["name"].as_str().unwrap_or_default().to_owned(),
                    arguments: parsed(function["arguments"].as_str().unwrap_or_default()),
                    value: parsed(&text),
                    text,
                }
            })
            .collect()
    }

    /// Returns the results of one tool, in order.
    pub fn results_of(&self, tool: &str) -> Vec<ToolResult> {
        self.tool_results().into_iter().filter(|result| result.tool == tool).collect()
    }

    /// Counts the assistant messages since the agent last received a message. At the first model call of a turn, this
    /// number is 0.
    ///
    /// A message with media may follow a batch of tool results. This message does not count as a received message.
    pub fn round(&self) -> usize {
        let newest_first = self.messages().iter().rev();
        newest_first
            .take_while(|message| !is_inbound(message))
            .filter(|message| message["role"] == "assistant")
            .count()
    }

    /// Returns the names of the tools that the request offers.
    pub fn offered_tools(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        tools.filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }

    /// Returns all content parts of a type (`image_url`, `input_audio`, `file`, `text`), in order.
    pub fn parts(&self, part_type: &str) -> Vec<&Value> {
        let parts = self.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
        parts.filter(|part| part["type"] == part_type).collect()
    }

    /// Returns the URLs of all images, in order.
    pub fn image_urls(&self) -> Vec<&str> {
        self.parts("image_url").into_iter().filter_map(|part| part["image_url"]["url"].as_str()).collect()
    }

    /// Returns whether any message, of any role, contains `needle` in its text.
    pub fn text_contains(&self, needle: &str) -> bool {
        self.messages().iter().any(|message| text(message).contains(needle))
    }

    /// Returns whether the request asks for a stream.
    pub(crate) fn wants_stream(&self) -> bool {
        self.body["stream"] == true
    }

    /// Returns whether the request asks for the usage at the end of the stream.
    pub(crate) fn wants_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == true
    }

    fn calls(&self) -> impl Iterator<Item = &Value> {
        self.messages().iter().filter_map(|message| message["tool_calls"].as_array()).flatten()
    }
}

/// Returns the text of a message, with several text parts joined by line breaks.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or(Value::Null)
}

fn sender(line: &str) -> Option<Sender> {
    match line {
        "【来自用户的消息】" => return Some(Sender::User),
        "【系统消息】" => return Some(Sender::System),
        _ => {}
    }
    let (role, id) = line.strip_prefix("【来自 ")?.strip_suffix("）的消息】")?.rsplit_once('（')?;
    Some(Sender::Agent { role: role.to_owned(), id: id.to_owned() })
}

fn is_inbound(message: &Value) -> bool {
    if message["role"] != "user" {
        return false;
    }
    let has_media =
        message["content"].as_array().is_some_and(|parts| parts.iter().any(|part| part["type"] != "text"));
    !has_media || text(message).lines().any(|line| sender(line).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation(messages: Value) -> Conversation {
        Conversation::new(Arc::new(json!({"model": "m", "messages": messages})))
    }

    fn working() -> Conversation {
        conversation(json!([
            {"role": "system", "content": "agentId=not-this\n【运行时信息】\nagentId=a-1\nparentAgentId=root\nroleName=读者 one\n【联系人列表】"},
            {"role": "user", "content": "【来自 头（1）（b-2）的消息】\nread\nit\n【系统消息】\nhurry"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "x", "type": "function", "function": {"name": "get_artifact", "arguments": "{\"ref\":\"r\"}"}},
                {"id": "y", "type": "function", "function": {"name": "list_contacts", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "y", "content": "plain"},
            {"role": "tool", "tool_call_id": "x", "content": "{\"error\":\"artifact_not_found\"}"},
            {"role": "user", "content": [
                {"type": "text", "text": "工件内容 a.png"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ]},
        ]))
    }

    #[test]
    fn the_agent_is_known_from_the_system_message() {
        let conversation = working();
        assert_eq!(conversation.agent_id(), "a-1");
        assert_eq!(conversation.parent_id(), "root");
        assert_eq!(conversation.role_name(), "读者 one");
        assert_eq!(conversation.model(), "m");
    }

    #[test]
    fn what_is_missing_is_empty() {
        let conversation = Conversation::new(Arc::new(json!({})));
        assert_eq!(conversation.agent_id(), "");
        assert_eq!(conversation.last_user_text(), "");
        assert_eq!(conversation.round(), 0);
        assert!(conversation.tool_results().is_empty() && conversation.heard().is_empty());
    }

    #[test]
    fn each_header_begins_a_message() {
        let agent = Sender::Agent { role: "头（1）".to_owned(), id: "b-2".to_owned() };
        assert_eq!(
            working().heard(),
            [
                Heard { from: agent, kind: String::new(), text: "read\nit\n".to_owned() },
                Heard { from: Sender::System, kind: String::new(), text: "hurry\n".to_owned() },
            ]
        );
        let quoted =
            conversation(json!([{"role": "user", "content": "【来自用户的消息】\n｜ 【系统消息】"}]));
        assert_eq!(
            quoted.heard(),
            [Heard { from: Sender::User, kind: String::new(), text: "｜ 【系统消息】\n".to_owned() }]
        );
    }

    #[test]
    fn results_find_their_calls() {
        let conversation = working();
        let [listed, got] = &conversation.tool_results()[..] else { panic!("expected two results") };
        assert_eq!(
            (listed.tool.as_str(), listed.error(), listed.text.as_str()),
            ("list_contacts", None, "plain")
        );
        assert_eq!((got.tool.as_str(), got.error()), ("get_artifact", Some("artifact_not_found")));
        assert_eq!(got.arguments, json!({"ref": "r"}));
        assert_eq!(conversation.results_of("get_artifact"), std::slice::from_ref(got));
        assert_eq!(conversation.call_ids(), ["x", "y"]);
        assert!(conversation.has_called("list_contacts"));
        assert!(!conversation.has_called("spawn_agent"));
    }

    #[test]
    fn media_of_a_tool_is_seen_but_begins_no_round() {
        let conversation = working();
        assert_eq!(conversation.image_urls(), ["data:image/png;base64,AA=="]);
        assert_eq!(conversation.parts("text").len(), 1);
        assert_eq!(conversation.round(), 1);
        assert_eq!(conversation.last_user_text(), "工件内容 a.png");
    }

    #[test]
    fn an_inbound_message_begins_a_round_with_or_without_media() {
        let said = json!({"role": "assistant", "content": "x"});
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
        let header = json!({"type": "text", "text": "【来自用户的消息】\nlook"});
        let plain = json!({"role": "user", "content": "u"});
        let attached = json!({"role": "user", "content": [header, image]});
        assert_eq!(conversation(json!([plain, said, plain])).round(), 0);
        assert_eq!(conversation(json!([plain, said, said])).round(), 2);
        assert_eq!(conversation(json!([plain, said, attached, said])).round(), 1);
    }

    #[test]
    fn text_is_found_in_every_role() {
        let conversation = working();
        assert!(conversation.text_contains("not-this") && conversation.text_contains("hurry"));
        assert!(conversation.text_contains("plain") && conversation.text_contains("工件内容"));
        assert!(!conversation.text_contains("base64"));
    }
}
