//! Shows the request that a model would get now. A preview asks no model, writes nothing and waits for nobody.

use super::request::{Manner, make};
use super::{Round, Wanted, look};
use crate::handles::Handles;
use polity_decide::turn::{Tools, Turn};
use polity_llm::{Body, estimate_prompt_tokens};
use polity_registry::Snapshot;
use polity_society::id::TurnId;
use polity_society::message::Expects;
use polity_store::{Conversation, Error, damaged, messages, records, turns};
use polity_view::RequestPreview;
use serde_json::Value;

/// How a preview shows the media of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bytes {
    /// The preview contains the media as they would be sent.
    InFull,
    /// The preview contains only the number of bytes of each medium.
    Counted,
}

/// Builds the next request of a conversation. Uses the same code that builds the requests to models, so the preview
/// shows exactly what the model would get.
pub(crate) async fn preview(
    handles: &Handles,
    conversation: &Conversation,
    bytes: Bytes,
) -> Result<RequestPreview, Error> {
    let snapshot = handles.registry.refresh().await;
    if let Some(commands) = handles.hands.commands() {
        // Find out now whether commands can run on this machine. A running society has done this at its start, but a
        // preview may also be made without a running society.
        commands.machine().await;
    }
    let mut scene = look(handles, conversation).await?;
    let service = snapshot.catalogue.service_for(scene.agent.service.as_ref());
    scene.history.pin_tokens = service.context_window.map(|window| window / 4);
    let (tools, queued) = standing(handles, conversation, &snapshot).await?;
    let next = Wanted::Answer(Round { turn: TurnId::new(0), number: 0, tools });
    let made = make(handles, &scene, &snapshot, service, Manner::FIRST, next).await;
    let body = Body::new(&made.request, &service.endpoint).to_json();
    let request = body.and_then(|body| serde_json::from_slice(&body));
    let mut request = request.map_err(|error| damaged("records", conversation.agent.as_str(), error))?;
    if bytes == Bytes::Counted {
        count_bytes(&mut request);
    }
    Ok(RequestPreview {
        agent: conversation.agent.clone(),
        task: conversation.task.clone(),
        service: service.id.clone(),
        model: service.endpoint.model.clone(),
        revision: snapshot.catalogue.revision(),
        estimated_tokens: estimate_prompt_tokens(&made.request),
        shown: made.shown,
        queued,
        request,
    })
}

/// Returns whether the next call offers tools to the model, and how many messages are queued.
async fn standing(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
) -> Result<(Tools, u64), Error> {
    let mut moment = handles.store.moment().await?;
    // The limit 0 means that all queued messages are counted.
    let queued = messages::queued(&mut moment, conversation, 0).await?;
    let Some(open) = turns::open(&mut moment, conversation).await? else {
        return Ok((Tools::Offered, queued));
    };
    // The tools of a turn do not depend on whether the turn owes an answer, so the value of `Expects` does not matter
    // here.
    let turn = Turn::replay(Expects::Nothing, &records::of_turn(&mut moment, open.id).await?);
    Ok((turn.tools(snapshot.settings.limits.max_tool_rounds), queued))
}

/// A piece of base64 of at most this many characters is shown unchanged.
const LONG: usize = 64;

/// Replaces each long piece of base64 with the number of its bytes. Base64 occurs in data URLs and in `input_audio`.
fn count_bytes(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for (name, field) in object.iter_mut() {
                match field {
                    Value::Object(sound) if name == "input_audio" => {
                        if let Some(Value::String(data)) = sound.get_mut("data")
                            && data.len() > LONG
                        {
                            *data = counted(data);
                        }
                    }
                    other => count_bytes(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(count_bytes),
        Value::String(text) => {
            if let Some((start, data)) = text.split_once(";base64,").filter(|(start, data)| {
                start.starts_with("data:") && start.len() < 256 && data.len() > LONG && is_base64(data)
            }) {
                *text = format!("{start};base64,{}", counted(data));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_base64(data: &str) -> bool {
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

fn counted(data: &str) -> String {
    let digits = data.trim_end_matches('=').len();
    format!("<{} bytes>", digits * 3 / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use serde_json::json;

    #[test]
    fn bytes_are_counted_and_texts_stay() {
        let data = base64::engine::general_purpose::STANDARD.encode([7; 100]);
        let url = format!("data:image/png;base64,{data}");
        let mut request = json!({"messages": [{"content": [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
            {"type": "text", "text": format!("data: look;base64,{} and more", data)},
        ]}], "data": data});
        count_bytes(&mut request);
        let content = &request["messages"][0]["content"];
        assert_eq!(content[0]["image_url"]["url"], "data:image/png;base64,<100 bytes>");
        assert_eq!(content[1]["input_audio"], json!({"data": "<100 bytes>", "format": "wav"}));
        assert_eq!(content[2]["text"], format!("data: look;base64,{data} and more"));
        assert_eq!(request["data"], data);
    }
}
