//! Assembles an answer from its pieces: the chunks of a stream, or the single body of a whole answer.

mod calls;
mod fields;

#[cfg(test)]
mod tests;

use crate::chat::{FailureKind, Reply, Usage, UsageSource};
use crate::classify::{Failure, MAX_PARSED, error_in, not_an_answer, too_large};
use crate::estimate::estimate_usage;
use crate::listen::Nobody;
use crate::tell::{Teller, is_reasoning};
use calls::Calls;
use fields::merge;
use serde_json::{Map, Value};

/// Message fields that the API defines for answers. All other fields go into `extra`, because the service may need
/// them in later requests.
const STANDARD: [&str; 7] =
    ["role", "content", "tool_calls", "function_call", "refusal", "annotations", "audio"];

/// Collects the pieces of one answer while they arrive.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    text: String,
    refusal: String,
    calls: Calls,
    extra: Map<String, Value>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    model: Option<String>,
    kept: Kept,
}

/// The memory that all pieces of an answer take together, in bytes. Each piece may be small, but without this count, an
/// endless stream of pieces could use up the memory.
#[derive(Debug, Default)]
struct Kept(usize);

impl Kept {
    /// Adds bytes to the count. Fails if the count is above `MAX_PARSED`.
    fn add(&mut self, bytes: usize) -> Result<(), Failure> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 > MAX_PARSED { Err(too_large()) } else { Ok(()) }
    }
}

/// Reads an answer that is one JSON body. If the server did not report the usage, the usage is estimated.
/// `prompt_tokens` is the estimated length of the request.
pub(crate) fn assemble_whole(answer: Value, prompt_tokens: u64) -> Result<Reply, Failure> {
    if let Some(failure) = error_in(&answer) {
        return Err(failure);
    }
    let has_choice =
        answer.get("choices").and_then(Value::as_array).is_some_and(|choices| !choices.is_empty());
    if !has_choice {
        return Err(not_an_answer(&answer.to_string()));
    }
    let mut assembler = Assembler::default();
    // The answer has arrived as a whole, so nobody listens to its pieces.
    assembler.push(answer, &mut Teller::new(&Nobody, &[]))?;
    assembler.finish(prompt_tokens)
}

impl Assembler {
    /// Adds the next piece to the answer, and tells the listener about the piece. Fails if the piece reports an error.
    pub(crate) fn push(&mut self, piece: Value, teller: &mut Teller<'_>) -> Result<(), Failure> {
        if let Some(failure) = error_in(&piece) {
            return Err(failure);
        }
        // Some servers send pieces that are not objects, to keep the connection alive. Ignore such pieces.
        let Value::Object(mut piece) = piece else {
            return Ok(());
        };
        if let Some(usage) = piece.get("usage").and_then(reported) {
            self.usage = Some(usage);
        }
        if let Some(model) = piece.get("model").and_then(Value::as_str).filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        let Some(Value::Array(choices)) = piece.get_mut("choices").map(Value::take) else {
            return Ok(());
        };
        choices.into_iter().try_for_each(|choice| self.push_choice(choice, teller))
    }

    /// Returns the memory that the pieces take so far, in bytes.
    pub(crate) fn kept(&self) -> usize {
        self.kept.0
    }

    /// Ends the answer. If no finish reason has arrived, the answer has broken off, and this method fails.
    pub(crate) fn finish(self, prompt_tokens: u64) -> Result<Reply, Failure> {
        let Some(finish_reason) = self.finish_reason else {
            let message = "the answer ended before it was finished".to_owned();
            return Err(Failure { kind: FailureKind::BrokenOff, message });
        };
        // If the model wrote a refusal and no other text, the refusal becomes the text of the reply.
        let text = [self.text, self.refusal].into_iter().find(|text| !text.trim().is_empty());
        let mut reply = Reply {
            text,
            tool_calls: self.calls.finish(),
            finish_reason,
            usage: Usage::default(),
            model: self.model,
            extra: self.extra,
        };
        reply.usage = self.usage.unwrap_or_else(|| estimate_usage(prompt_tokens, &reply));
        Ok(reply)
    }

    /// The server may have failed to parse a part of the model's output. The model still wants the calls that arrived
    /// before this part, so this method returns a reply with these calls. Returns `None` after any other failure, or if
    /// a call is incomplete.
    pub(crate) fn rescue(mut self, failure: &Failure, prompt_tokens: u64) -> Option<Reply> {
        if failure.kind != FailureKind::CallNotParsed || !self.calls.are_whole() {
            return None;
        }
        self.finish_reason.get_or_insert_with(|| "tool_calls".to_owned());
        self.finish(prompt_tokens).ok()
    }

    fn push_choice(&mut self, choice: Value, teller: &mut Teller<'_>) -> Result<(), Failure> {
        let Value::Object(mut choice) = choice else { return Ok(()) };
        if choice.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
            return Ok(());
        }
        let finish_reason =
            choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty());
        if let Some(reason) = finish_reason {
            self.finish_reason = Some(reason.to_owned());
        }
        if let Some(Value::Object(delta)) = choice.get_mut("delta").map(Value::take) {
            self.push_message(delta, Calls::push_delta, teller)?;
        } else if let Some(Value::Object(message)) = choice.get_mut("message").map(Value::take) {
            self.push_message(message, Calls::push_whole, teller)?;
            // A whole message is finished even if its server gives no finish reason.
            self.finish_reason.get_or_insert_with(|| "stop".to_owned());
        }
        Ok(())
    }

    fn push_message(
        &mut self,
        mut message: Map<String, Value>,
        push_call: fn(&mut Calls, Map<String, Value>) -> Result<usize, Failure>,
        teller: &mut Teller<'_>,
    ) -> Result<(), Failure> {
        for (name, text) in [("content", &mut self.text), ("refusal", &mut self.refusal)] {
            let Some(content) = message.get(name) else { continue };
            let before = text.len();
            push_text(text, content);
            self.kept.add(text.len() - before)?;
            teller.text(&text[before..]);
        }
        if let Some(Value::Array(calls)) = message.get_mut("tool_calls").map(Value::take) {
            for call in calls {
                if let Value::Object(call) = call {
                    let weight = push_call(&mut self.calls, call)?;
                    self.kept.add(weight)?;
                    teller.arguments(weight);
                }
            }
            self.calls.tell_new(teller);
        }
        // The API had the field `function_call` before it got `tool_calls`.
        if let Some(function @ Value::Object(_)) = message.get_mut("function_call").map(Value::take) {
            let call = Map::from_iter([("function".to_owned(), function)]);
            self.kept.add(push_call(&mut self.calls, call)?)?;
            self.calls.tell_new(teller);
        }
        for (name, value) in message {
            if let Some(thought) = value.as_str().filter(|_| is_reasoning(&name)) {
                teller.reasoning(thought);
            }
            if !STANDARD.contains(&name.as_str()) {
                self.kept.add(merge(&mut self.extra, name, value))?;
            }
        }
        Ok(())
    }
}

/// Appends content: a string, or the texts in an array of parts.
fn push_text(text: &mut String, content: &Value) {
    match content {
        Value::String(piece) => text.push_str(piece),
        Value::Array(parts) => {
            for part in parts.iter().filter_map(|part| part.get("text")?.as_str()) {
                text.push_str(part);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {}
    }
}

fn reported(usage: &Value) -> Option<Usage> {
    let prompt_tokens = usage.get("prompt_tokens")?.as_u64()?;
    let completion_tokens = usage.get("completion_tokens")?.as_u64()?;
    Some(Usage { prompt_tokens, completion_tokens, source: UsageSource::Reported })
}
