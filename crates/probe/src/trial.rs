//! Makes a small call to see whether a service answers, how soon, and whether it accepts tools.

use polity_llm::{CallError, ChatModel, Endpoint, FailureKind, Message, Nobody, Part, Request, Tool};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

/// Maximum number of tokens of the answer. Some servers refuse a request with a lower limit.
const MAX_TOKENS: u32 = 16;

/// The result of a trial.
#[derive(Debug)]
pub struct Trial {
    /// Time until the answer came, or the error if there was no answer.
    pub answer: Result<Duration, CallError>,
    /// The result of the second call, with a tool.
    pub tools: ToolTrial,
}

/// The result of a call with a tool.
#[derive(Debug)]
pub enum ToolTrial {
    /// There was no call with a tool, because it was not needed or because the call without a tool had failed.
    NotTried,
    /// The server accepted the tool. This does not show whether the model calls the tool when it should.
    Taken,
    /// The server refuses tools.
    Refused(CallError),
    /// The call failed, but not because of the tool.
    Unclear,
}

/// Whether to make a second call, with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TryTools {
    Try,
    Spare,
}

/// Makes the trial calls. `budget` is the time limit for each call.
pub(crate) async fn try_out(
    model: &dyn ChatModel,
    endpoint: &Endpoint,
    tools: TryTools,
    budget: Duration,
) -> Trial {
    let mut endpoint = endpoint.clone();
    endpoint.max_tokens = Some(MAX_TOKENS);
    endpoint.timeout = budget.min(endpoint.timeout);
    let mut request = request();
    let begun = Instant::now();
    let answer = call(model, &endpoint, &request).await.map(|()| begun.elapsed());
    if answer.is_err() || tools == TryTools::Spare {
        return Trial { answer, tools: ToolTrial::NotTried };
    }
    request.tools.push(tool());
    let tools = match call(model, &endpoint, &request).await {
        Ok(()) => ToolTrial::Taken,
        Err(error) if refuses_tools(&error) => ToolTrial::Refused(error),
        Err(_) => ToolTrial::Unclear,
    };
    Trial { answer, tools }
}

async fn call(model: &dyn ChatModel, endpoint: &Endpoint, request: &Request) -> Result<(), CallError> {
    match model.call(endpoint, request, &Nobody).await {
        Ok(_) => Ok(()),
        Err(error) if is_only_short(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

fn request() -> Request {
    let text = |text: &str| vec![Part::Text(text.to_owned())];
    // The request begins with instructions, as every request of an agent does.
    let instructions = Message::System("You answer in one word.".to_owned());
    Request {
        messages: vec![instructions, Message::User(text("Reply with the word OK."))],
        ..Request::default()
    }
}

fn tool() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    });
    Tool::new("note", "Writes a note. Only for when you are asked to.", parameters)
}

/// Returns whether the error only means that the answer was cut off at [`MAX_TOKENS`]. This may happen if a model
/// thinks before it answers. One kind of server then reports an error, although the service has answered.
fn is_only_short(error: &CallError) -> bool {
    let message = error.message.to_lowercase();
    error.kind == FailureKind::Refused && message.contains("max_tokens") && message.contains("reached")
}

/// Returns whether the error of the second call means that the server refuses tools. The first call has succeeded, and
/// the second call differs from it only by the tool.
fn refuses_tools(error: &CallError) -> bool {
    let blames_them = || error.message.to_lowercase().contains("tool");
    match error.kind {
        FailureKind::ToolsRefused => true,
        FailureKind::Refused => error.status.is_some(),
        // One kind of server refuses tools with an internal error, which polity classifies as `Passing`.
        FailureKind::Passing => blames_them(),
        FailureKind::Unreachable
        | FailureKind::TimedOut
        | FailureKind::RateLimited
        | FailureKind::Unauthorized
        | FailureKind::ContextOverflow
        | FailureKind::MediaRefused
        | FailureKind::CallNotParsed
        | FailureKind::NoSuchModel
        | FailureKind::NothingLoaded
        | FailureKind::WrongAddress
        | FailureKind::BrokenOff
        | FailureKind::NotAnAnswer
        | FailureKind::Misconfigured => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: FailureKind, status: Option<u16>, message: &str) -> CallError {
        CallError { kind, message: message.to_owned(), status, retry_after: None }
    }

    #[test]
    fn errors_that_say_that_tools_are_refused() {
        let check = |kind: FailureKind, status: Option<u16>, message: &str, expect: bool| {
            assert_eq!(refuses_tools(&error(kind, status, message)), expect, "{message}");
        };
        check(FailureKind::Refused, Some(400), "registry.ollama.ai/library/m does not support tools", true);
        check(FailureKind::Refused, Some(404), "No endpoints found", true);
        check(FailureKind::Passing, Some(500), "tools param requires --jinja flag", true);
        check(FailureKind::Passing, Some(503), "overloaded", false);
        check(FailureKind::RateLimited, Some(429), "too many tool calls", false);
        check(FailureKind::TimedOut, None, "no answer", false);
    }

    #[test]
    fn an_answer_that_was_cut_is_an_answer() {
        let check = |message: &str, expect: bool| {
            assert_eq!(is_only_short(&error(FailureKind::Refused, Some(400), message)), expect, "{message}");
        };
        check("Could not finish the message because max_tokens or model output limit was reached.", true);
        check("Unsupported parameter: 'max_tokens' is not supported with this model.", false);
    }
}
