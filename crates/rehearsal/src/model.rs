//! Implements [`ChatModel`] for the built-in model.

use crate::moves::{Call, Move};
use crate::play::{closing_without_tools, next_move};
use crate::reading::Scene;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use polity_llm::{
    Arguments, CallError, ChatModel, Endpoint, Listener, Message, Part, Reply, Request, ToolCall, ToolChoice,
    Usage, UsageSource,
};
use polity_society::content::{Capabilities, Capability};
use serde_json::Map;
use strum::{IntoStaticStr, VariantArray};

/// The base URL of a service that is one of the built-in models.
pub const SCHEME: &str = "rehearsal:";

/// Number of characters that count as one token in the estimated usage.
const CHARS_PER_TOKEN: usize = 4;

/// The two built-in models. They accept different content, but act in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "lowercase", prefix = "rehearsal-")]
pub enum BuiltIn {
    /// Accepts text only.
    Text,
    /// Accepts pictures, sound and files too.
    Multimodal,
}

impl BuiltIn {
    /// Both models. A new society uses the first one by default.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name of the model, which is also the id of its service.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the input and output capabilities of the model.
    pub fn capabilities(self) -> Capabilities {
        let mut input = vec![Capability::TEXT];
        if self == Self::Multimodal {
            input.extend([Capability::VISION, Capability::AUDIO, Capability::FILE]);
        }
        Capabilities { input, output: vec![Capability::TEXT, Capability::TOOL_CALLING] }
    }

    /// Returns the endpoint of the model, with [`SCHEME`] as its base URL.
    pub fn endpoint(self) -> Endpoint {
        Endpoint::new(SCHEME, self.name())
    }
}

/// A chat model that answers within the process, at once and without state.
#[derive(Clone, Copy, Debug, Default)]
pub struct RehearsalModel;

impl ChatModel for RehearsalModel {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
        _: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        ready(Ok(answer(request, &endpoint.model))).boxed()
    }
}

/// Answers a conversation. The same conversation always gets the same answer.
pub fn answer(request: &Request, model: &str) -> Reply {
    let scene = Scene::read(request);
    let (text, calls) = match next_move(&scene) {
        Move::Call(calls) if may_call(request, &calls) => (None, calls),
        Move::Call(_) => (Some(closing_without_tools(&scene)), Vec::new()),
        Move::Say(text) => (Some(text), Vec::new()),
    };
    let finish_reason = if calls.is_empty() { "stop" } else { "tool_calls" };
    let tool_calls: Vec<ToolCall> = calls.into_iter().map(tool_call).collect();
    let usage = Usage {
        prompt_tokens: tokens(request.messages.iter().map(characters).sum()),
        completion_tokens: tokens(text.as_deref().map_or(0, count) + call_characters(&tool_calls)),
        source: UsageSource::Estimated,
    };
    Reply {
        text,
        tool_calls,
        finish_reason: finish_reason.to_owned(),
        usage,
        model: Some(model.to_owned()),
        extra: Map::new(),
    }
}

/// Whether the request allows all these calls.
fn may_call(request: &Request, calls: &[Call]) -> bool {
    let offered = |call: &Call| request.tools.iter().any(|tool| tool.name == call.tool.name());
    match request.tool_choice {
        ToolChoice::Auto => calls.iter().all(offered),
        ToolChoice::None => false,
    }
}

/// Converts a call. The id of the call stays empty: the runtime assigns an id when it records the answer.
fn tool_call(call: Call) -> ToolCall {
    ToolCall {
        id: String::new(),
        name: call.tool.name().to_owned(),
        arguments: Arguments::Object(call.arguments),
        extra: Map::new(),
    }
}

fn tokens(characters: usize) -> u64 {
    characters.div_ceil(CHARS_PER_TOKEN) as u64
}

fn count(text: &str) -> usize {
    text.chars().count()
}

/// Counts the characters in the texts of a message. Pictures, sound and files add nothing.
fn characters(message: &Message) -> usize {
    match message {
        Message::System(text) => count(text),
        Message::User(parts) => parts.iter().map(text_of).map(count).sum(),
        Message::Assistant { text, tool_calls, .. } => {
            text.as_deref().map_or(0, count) + call_characters(tool_calls)
        }
        Message::Tool { content, media, .. } => {
            count(content) + media.iter().map(|media| count(&media.label)).sum::<usize>()
        }
    }
}

fn text_of(part: &Part) -> &str {
    match part {
        Part::Text(text) => text,
        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => "",
    }
}

fn call_characters(calls: &[ToolCall]) -> usize {
    let arguments = |call: &ToolCall| match &call.arguments {
        Arguments::Object(arguments) => serde_json::to_string(arguments).map_or(0, |text| count(&text)),
        Arguments::Malformed(text) => count(text),
    };
    calls.iter().map(|call| count(&call.name) + arguments(call)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::Nobody;

    #[test]
    fn the_trait_gives_the_answer() {
        let text = "【来自用户的消息】\n你好".to_owned();
        let request = Request { messages: vec![Message::User(vec![Part::Text(text)])], ..Request::default() };
        let endpoint = BuiltIn::Text.endpoint();
        let reply = RehearsalModel
            .call(&endpoint, &request, &Nobody)
            .now_or_never()
            .expect("no wait")
            .expect("an answer");
        assert_eq!(reply, answer(&request, "rehearsal-text"));
        assert_eq!(reply.finish_reason, "stop");
        assert_eq!(reply.usage.prompt_tokens, 3, "12 characters");
        assert!(reply.usage.completion_tokens > 0);
    }

    #[test]
    fn only_one_of_them_takes_media() {
        let takes = |model: BuiltIn| model.capabilities().input.contains(&Capability::VISION);
        assert_eq!(BuiltIn::ALL.iter().copied().map(takes).collect::<Vec<_>>(), [false, true]);
    }
}
