//! Calls the model service of root (the agent that gets the person's prompts) once, outside the society. Chat clients
//! use such calls to get titles and tags for their chats. Such a call uses the same gates, retry policy and fallbacks
//! as the calls of agents. Nothing is stored.

use super::{fallback_of, told, untried_fallback};
use crate::handles::Handles;
use polity_decide::policy::{self, Next, Room, Sent, Situation, Tried};
use polity_decide::result;
use polity_decide::understood::understood;
use polity_llm::{CallError, Message, Nobody, Part, Reply, Request, Shut, ToolChoice, Usage};
use polity_registry::Service;
use polity_society::defuse::json_line;
use polity_society::id::ServiceId;
use polity_society::message::Payload;
use polity_society::text::TextKey;
use serde_json::{Map, Value};
use std::sync::Arc;

/// One line of a conversation with a model that is called outside the society.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The author of the line. The author determines which kind of message the line becomes.
    pub by: By,
    /// The text of the line, which is sent to the model unchanged.
    pub text: String,
}

/// The author of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The program that calls the model. All lines of this author together become the system message.
    Instructions,
    /// The person. The line becomes a user message.
    Person,
    /// The model. The line becomes one of the model's earlier answers.
    Model,
}

/// The answer of a model that was called outside the society.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectAnswer {
    /// The text of the model. If the caller gave a schema, the text is JSON that fits the schema.
    pub text: String,
    /// The tokens of all requests together. There is more than one request if a request was repeated.
    pub prompt_tokens: u64,
    /// The tokens of all answers together, even of answers that were not used.
    pub completion_tokens: u64,
}

/// The reason why a model that was called outside the society gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum DirectError {
    /// No attempt brought an answer.
    #[error("the service {service} gave no answer: {reason}")]
    NoAnswer {
        /// The service that was asked last.
        service: ServiceId,
        /// Why the last attempt failed.
        reason: String,
    },
    /// Two answers did not fit the schema. Contains the faults of the second answer.
    #[error("the answer does not fit the requested schema: {}", .0.join("; "))]
    DoesNotFit(Vec<String>),
    /// The process is ending.
    #[error("the daemon is shutting down")]
    Ending,
}

/// The call fails after this many answers that do not fit the schema. After the first such answer, the model is told
/// what is wrong with the answer and is asked again.
const MISFITS: u32 = 2;

/// After this many empty answers, the call fails.
const EMPTY_ANSWERS: u32 = 2;

/// Asks root's service. Fails if the schema cannot be compiled, because no answer fits such a schema.
pub(crate) async fn direct(
    handles: &Handles,
    lines: &[Line],
    schema: Option<&Value>,
) -> Result<DirectAnswer, DirectError> {
    let mut request = request(handles, lines, schema);
    let mut spent = Usage::default();
    let (mut misfits, mut empty) = (0, 0);
    loop {
        let (service, reply) = call(handles, &request).await?;
        spent.prompt_tokens += reply.usage.prompt_tokens;
        spent.completion_tokens += reply.usage.completion_tokens;
        let said = understood(reply, &[]).reply.text.unwrap_or_default();
        if said.is_empty() {
            empty += 1;
            if empty >= EMPTY_ANSWERS {
                return Err(no_answer(service, "its model gave an empty answer twice".to_owned()));
            }
            continue;
        }
        let answer = |text: String| DirectAnswer {
            text,
            prompt_tokens: spent.prompt_tokens,
            completion_tokens: spent.completion_tokens,
        };
        let Some(schema) = schema else { return Ok(answer(said)) };
        match result::fit(&Payload::text(&said), std::slice::from_ref(schema)) {
            Ok(value) => return Ok(answer(value.to_string())),
            Err(errors) => {
                misfits += 1;
                if misfits >= MISFITS {
                    return Err(DirectError::DoesNotFit(errors));
                }
                let texts = &handles.registry.current().prompts.texts;
                let errors = errors.join("; ");
                let told = texts.fill(TextKey::NoticeResultDoesNotFit, &[("errors", &errors)]);
                request.messages.push(Message::Assistant {
                    text: Some(said),
                    tool_calls: Vec::new(),
                    extra: Map::new(),
                });
                request.messages.push(Message::User(vec![Part::Text(told)]));
            }
        }
    }
}

fn request(handles: &Handles, lines: &[Line], schema: Option<&Value>) -> Request {
    let mut instructions: Vec<String> = Vec::new();
    let mut messages = Vec::new();
    for Line { by, text } in lines {
        match by {
            By::Instructions => instructions.push(text.clone()),
            By::Person => messages.push(Message::User(vec![Part::Text(text.clone())])),
            By::Model => messages.push(Message::Assistant {
                text: Some(text.clone()),
                tool_calls: Vec::new(),
                extra: Map::new(),
            }),
        }
    }
    if let Some(schema) = schema {
        let texts = &handles.registry.current().prompts.texts;
        instructions.push(texts.fill(TextKey::MessageResultSchema, &[("schema", &json_line(schema))]));
    }
    if !instructions.is_empty() {
        messages.insert(0, Message::System(instructions.join("\n\n")));
    }
    Request { messages, tools: Vec::new(), tool_choice: ToolChoice::None }
}

/// Makes attempts until an attempt brings an answer or the retry policy gives up.
async fn call(handles: &Handles, request: &Request) -> Result<(ServiceId, Reply), DirectError> {
    let mut tried = Tried::nothing();
    loop {
        let snapshot = handles.registry.refresh().await;
        let current = tried.service().and_then(|id| snapshot.catalogue.service(id));
        let service = Arc::clone(current.unwrap_or_else(|| snapshot.catalogue.service_for(None)));
        if tried.service() != Some(&service.id) {
            tried.turn_to(service.id.clone());
        }
        let retry = &snapshot.settings.retry;
        let fallback = untried_fallback(&snapshot, &service, &tried);
        let gate = handles.gates.of(&service);
        let patience = policy::patience(fallback_of(fallback), retry);
        let mut tries = gate.tries();
        let entered = tokio::select! {
            entered = gate.enter(patience) => entered,
            () = handles.draining.cancelled() => return Err(DirectError::Ending),
        };
        if tries.has_changed().unwrap_or(false) {
            tried.ask_for();
            tries.mark_unchanged();
        }
        let failure = match entered {
            Ok(pass) => {
                tried.count();
                let called = tokio::select! {
                    called = handles.model.call(&service.endpoint, request, &Nobody) => called,
                    () = handles.draining.cancelled() => return Err(DirectError::Ending),
                };
                if let Some(asked) = called.as_ref().err().and_then(|failure| failure.retry_after) {
                    gate.pause(policy::shared_pause(asked));
                }
                pass.settle(called.as_ref().err(), |failures| {
                    policy::pause(None, failures, retry, fastrand::f64())
                });
                match called {
                    Ok(reply) => return Ok((service.id.clone(), reply)),
                    Err(failure) => failure,
                }
            }
            Err(Shut::StillDown { last }) => {
                tried.count();
                last
            }
            Err(shut @ (Shut::Paused { .. } | Shut::Open { .. })) => match fallback {
                Some(fallback) => {
                    tried.turn_to(fallback.id.clone());
                    continue;
                }
                None => return Err(no_answer(service.id.clone(), told::why(&shut))),
            },
        };
        let situation =
            Situation { sent: Sent::Text, fallback: fallback_of(fallback), room: Room::Exhausted };
        match (policy::next(&failure, &tried, situation, retry, fastrand::f64()), fallback) {
            (Next::Again { after }, _) => tokio::select! {
                () = tokio::time::sleep(after) => {}
                // Cannot fail: `gate` owns the sender.
                Ok(()) = tries.changed() => tried.ask_for(),
                () = handles.draining.cancelled() => return Err(DirectError::Ending),
            },
            (Next::Fallback, Some(fallback)) => tried.turn_to(fallback.id.clone()),
            // The other steps cannot help: a direct call has no tool calls to reword, no media and no history.
            (Next::Fallback | Next::GiveUp | Next::Reword | Next::DescribeMedia | Next::Compact, _) => {
                return Err(gave_up(&service, &failure));
            }
        }
    }
}

fn gave_up(service: &Service, failure: &CallError) -> DirectError {
    no_answer(service.id.clone(), failure.to_string())
}

fn no_answer(service: ServiceId, reason: String) -> DirectError {
    DirectError::NoAnswer { service, reason }
}
