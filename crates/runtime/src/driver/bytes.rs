//! Bytes that models and tools want stored: on disk before the transaction that writes their rows begins.

use super::outside::outside_tool;
use super::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::handles::Handles;
use crate::in_full;
use crate::inline::{self, Written};
use crate::mint;
use crate::record::Replied;
use crate::store::Error;
use crate::tools::{self, Incoming};
use crate::turn::Turn;
use polity_artifacts::{NewArtifact, Prepared, prepare};
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::id::ArtifactId;
use polity_society::limits::Limits;
use polity_society::refusal::Refusal;
use serde_json::Value;
use std::collections::HashMap;

/// What was taken out of an answer.
#[derive(Clone, Default)]
pub(super) struct TakenOut {
    /// The bytes, on disk; their rows are to be written with the answer.
    pub(super) stored: Vec<Prepared>,
    /// The calls that cannot have what they want stored. They are answered with the record of the answer, because what
    /// was wrong with them is not in it.
    pub(super) refused: Vec<(ToolCall, Refusal)>,
}

/// Bytes that a model wrote into its answer are stored, and references take their place before anything is recorded.
pub(super) async fn take_bytes_out(
    handles: &Handles,
    snapshot: &Snapshot,
    replied: &mut Replied,
) -> Result<TakenOut, Error> {
    let limits = &snapshot.settings.limits;
    let (found, refused) = find(replied, limits);
    let mut stored = Vec::with_capacity(found.len());
    for (id, artifact) in found {
        stored.push(keep_trying(handles, id, artifact).await?);
    }
    Ok(TakenOut { stored, refused })
}

/// What is to be stored, and under which id.
type Found = Vec<(ArtifactId, NewArtifact)>;

/// Leaves an answer without bytes; gives what was in it, and the calls that are refused.
fn find(replied: &mut Replied, limits: &Limits) -> (Found, Vec<(ToolCall, Refusal)>) {
    let mut found = Found::new();
    let mut refused = Vec::new();
    if let Some(text) = &replied.text
        && let Some(replaced) = inline::replace(text, &mut keeper(&mut found, limits))
    {
        replied.text = Some(replaced);
    }
    take_fields_out(replied, limits, &mut found);
    for call in &mut replied.calls {
        call.extra.retain(|_, value| holds_no_bytes(value));
        match tools::incoming(call, limits) {
            Some(Ok(Incoming::Bytes(artifact))) => {
                let id = mint::artifact();
                if let Arguments::Object(arguments) = &mut call.arguments {
                    arguments.insert("content".to_owned(), Value::String(id.reference()));
                    arguments.remove("encoding");
                }
                found.push((id, artifact));
            }
            // A text comes back byte for byte, whatever is in it.
            Some(Ok(Incoming::Text(_) | Incoming::Reference)) => {}
            Some(Err(refusal)) => {
                leave_bytes_out(call);
                refused.push((call.clone(), refusal));
            }
            None => match &mut call.arguments {
                Arguments::Object(arguments) => {
                    inline::replace_in_object(arguments, &mut keeper(&mut found, limits));
                }
                Arguments::Malformed(_) => leave_bytes_out(call),
            },
        }
    }
    (found, refused)
}

/// Fields that only the server understands may hold what the model made (`images`, say). They are not kept with bytes in
/// them: what they hold is stored, and the text names it.
fn take_fields_out(replied: &mut Replied, limits: &Limits, found: &mut Found) {
    let before = found.len();
    replied.extra.retain(|_, value| {
        let none_yet = found.len();
        inline::replace_in(value, &mut keeper(found, limits));
        found.len() == none_yet
    });
    for (id, _) in &found[before..] {
        let text = replied.text.get_or_insert_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&id.reference());
    }
}

fn holds_no_bytes(value: &Value) -> bool {
    let mut found = 0;
    inline::replace_in(&mut value.clone(), &mut |_| {
        found += 1;
        None
    });
    found == 0
}

fn leave_bytes_out(call: &mut ToolCall) {
    match &mut call.arguments {
        Arguments::Object(arguments) => arguments.values_mut().for_each(inline::leave_out_in),
        Arguments::Malformed(text) => *text = inline::leave_out(text),
    }
}

/// Notes what is found, and names it; what is too large is left out.
fn keeper<'f>(found: &'f mut Found, limits: &'f Limits) -> impl FnMut(Written) -> Option<String> + 'f {
    move |written| {
        if written.bytes.len() as u64 > limits.max_artifact_bytes {
            return None;
        }
        let id = mint::artifact();
        let reference = id.reference();
        let artifact = NewArtifact {
            bytes: written.bytes.into(),
            declared_mime: written.mime,
            ..NewArtifact::default()
        };
        found.push((id, artifact));
        Some(reference)
    }
}

/// Puts bytes of an answer on disk, again and again while the disk refuses them: they were paid for.
async fn keep_trying(handles: &Handles, id: ArtifactId, artifact: NewArtifact) -> Result<Prepared, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        match put_on_disk(handles, id.clone(), artifact.clone()).await {
            Err(error) if error.may_pass() => {
                tracing::error!(error = %in_full(&error), "what a model has made is stored later");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            stored => return stored,
        }
    }
}

pub(super) async fn put_on_disk(
    handles: &Handles,
    id: ArtifactId,
    artifact: NewArtifact,
) -> Result<Prepared, Error> {
    let prepared = prepare(&handles.blobs, artifact, id, crate::clock::now()).await;
    polity_points::point!("bytes::on_disk");
    prepared.map_err(Error::Blob)
}

/// Puts on disk what the next society tools of the turn want stored, so that their transaction has only rows to write.
pub(super) async fn prepare_pending(
    handles: &Handles,
    snapshot: &Snapshot,
    turn: &Turn,
) -> Result<HashMap<String, Result<Prepared, Refusal>>, Error> {
    let mut prepared = HashMap::new();
    for call in turn.pending().take_while(|call| outside_tool(handles, call).is_none()) {
        match tools::incoming(call, &snapshot.settings.limits) {
            Some(Ok(Incoming::Text(artifact) | Incoming::Bytes(artifact))) => {
                let stored = put_on_disk(handles, mint::artifact(), artifact).await?;
                prepared.insert(call.id.clone(), Ok(stored));
            }
            Some(Err(refusal)) => {
                prepared.insert(call.id.clone(), Err(refusal));
            }
            Some(Ok(Incoming::Reference)) | None => {}
        }
    }
    Ok(prepared)
}

#[cfg(test)]
mod tests;
