//! Makes a small call to see whether a service answers, how soon, and whether it accepts tools.

use polity_llm::{
    CallError, ChatModel, Endpoint, FailureKind, Listener, Message, Part, Piece, Request, Tool,
};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let own_limit = endpoint.timeout;
    let mut endpoint = endpoint.clone();
    endpoint.max_tokens = Some(MAX_TOKENS);
    endpoint.timeout = budget.min(own_limit);
    let mut request = request();
    let begun = Instant::now();
    let heard = Heard::default();
    let answer = match call(model, &endpoint, &request, &heard).await {
        Ok(()) => Ok(begun.elapsed()),
        Err(error) if begun.elapsed() >= budget && budget < own_limit => Err(cut_off(error, &heard, budget)),
        Err(error) => Err(error),
    };
    if answer.is_err() || tools == TryTools::Spare {
        return Trial { answer, tools: ToolTrial::NotTried };
    }
    request.tools.push(tool());
    let tools = match call(model, &endpoint, &request, &heard).await {
        Ok(()) => ToolTrial::Taken,
        Err(error) if refuses_tools(&error) => ToolTrial::Refused(error),
        Err(_) => ToolTrial::Unclear,
    };
    Trial { answer, tools }
}

/// Hears whether a server has sent anything of an answer.
#[derive(Debug, Default)]
struct Heard(AtomicBool);

impl Listener for Heard {
    fn hear(&self, _piece: Piece<'_>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Rewords the failure of a call that the limit of the trial has cut off. The failure advises to raise the limit of the
/// service, which was not reached.
fn cut_off(error: CallError, heard: &Heard, budget: Duration) -> CallError {
    let message = match error.kind {
        FailureKind::TimedOut if heard.0.load(Ordering::Relaxed) => {
            format!("the server began an answer, and has not completed it within {budget:?}")
        }
        FailureKind::TimedOut => format!("the server accepted the request and sent nothing for {budget:?}"),
        _ => return error,
    };
    CallError { message, ..error }
}

async fn call(
    model: &dyn ChatModel,
    endpoint: &Endpoint,
    request: &Request,
    heard: &Heard,
) -> Result<(), CallError> {
    match model.call(endpoint, request, heard).await {
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
    use futures::future::BoxFuture;
    use polity_llm::Reply;

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

    /// A model that says these pieces, and then nothing more.
    struct Stuck(&'static [Piece<'static>]);

    impl ChatModel for Stuck {
        fn call<'a>(
            &'a self,
            endpoint: &'a Endpoint,
            _request: &'a Request,
            listener: &'a dyn Listener,
        ) -> BoxFuture<'a, Result<Reply, CallError>> {
            Box::pin(async move {
                self.0.iter().for_each(|piece| listener.hear(*piece));
                tokio::time::sleep(endpoint.timeout).await;
                Err(error(FailureKind::TimedOut, None, "raise timeoutMs"))
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_the_trial_cuts_off_tells_what_the_server_did() {
        let minute = Duration::from_secs(60);
        let check = async |pieces: &'static [Piece<'static>], own_limit: Duration, expect: &str| {
            let endpoint = Endpoint { timeout: own_limit, ..Endpoint::new("http://host/v1", "m") };
            let trial = try_out(&Stuck(pieces), &endpoint, TryTools::Try, minute).await;
            assert_eq!(trial.answer.unwrap_err().message, expect);
        };
        check(&[], minute * 10, "the server accepted the request and sent nothing for 60s").await;
        let begun = "the server began an answer, and has not completed it within 60s";
        check(&[Piece::Bytes], minute * 10, begun).await;
        // Here the limit of the service itself was reached.
        check(&[], minute, "raise timeoutMs").await;
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
