//! Writes to disk the bytes that models and tools return, before the transaction writes the rows of their artifacts.

use super::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::handles::Handles;
use crate::tools::{self, CONTENT, Incoming, PUT_ARTIFACT};
use polity_artifacts::{NewArtifact, Prepared, prepare};
use polity_decide::inline::{self, Fragments, Written};
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::content::Kind;
use polity_society::id::ArtifactId;
use polity_society::limits::Limits;
use polity_society::refusal::Refusal;
use polity_store::mint;
use polity_store::record::Replied;
use polity_store::{Conversation, Error, artifacts};
use polity_view::in_full;
use serde_json::{Value, json};
use std::collections::HashMap;

/// An answer of a model is compared with artifacts, to recognize pieces of their files in the answer. This is the
/// maximum total size of these artifacts, in bytes.
const COMPARED: u64 = 16 * 1024 * 1024;

/// Maximum number of artifacts with which an answer of a model is compared. They are the newest artifacts that the
/// agent may open.
const COMPARED_ARTIFACTS: u32 = 200;

/// A model may have written bytes into its answer, for example a picture in base64. Stores these bytes, and replaces
/// them with references before anything is recorded. Returns the stored artifacts. The caller must write the rows of
/// these artifacts together with the answer.
pub(super) async fn take_bytes_out(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    replied: &mut Replied,
) -> Result<Vec<Prepared>, Error> {
    let limits = &snapshot.settings.limits;
    let (mut found, refused) = find(replied, limits);
    let mut known = Fragments::default();
    for artifact in &found {
        known.know(&artifact.1.bytes);
    }
    if is_suspicious(replied) {
        know_what_one_may_open(handles, conversation, &mut known).await?;
    }
    leave_fragments_out(replied, &known, limits, &mut found);
    let texts = &snapshot.prompts.texts;
    replied.refused.extend(refused.into_iter().map(|(call, refusal)| (call, refusal.to_json(texts))));
    store(handles, found).await
}

/// Stores and replaces the bytes in the result of an outside tool, as [`take_bytes_out`] does for an answer of a
/// model.
pub(super) async fn take_result_out(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    result: &mut Value,
) -> Result<Vec<Prepared>, Error> {
    let mut found = Found::new();
    inline::replace_in(result, &mut keeper(&mut found, &snapshot.settings.limits));
    if inline::is_suspicious(result) {
        let mut known = Fragments::default();
        know_what_one_may_open(handles, conversation, &mut known).await?;
        known.leave_out_in(result);
    }
    store(handles, found).await
}

async fn store(handles: &Handles, found: Found) -> Result<Vec<Prepared>, Error> {
    let mut stored = Vec::with_capacity(found.len());
    for (id, artifact) in found {
        stored.push(keep_trying(handles, id, artifact).await?);
    }
    Ok(stored)
}

/// Adds to `known` the files that an agent may open, so that pieces of these files are recognized in an answer. A piece
/// from the middle of a file lacks the first bytes of the file, which show its format. Only a comparison with the file
/// can recognize such a piece.
async fn know_what_one_may_open(
    handles: &Handles,
    conversation: &Conversation,
    known: &mut Fragments,
) -> Result<(), Error> {
    let Conversation { agent, task } = conversation;
    let mut reader = handles.store.reader().await?;
    let stored = artifacts::list(&mut reader, agent, task, COMPARED_ARTIFACTS).await?;
    drop(reader);
    let mut room = COMPARED;
    for stored in stored.into_iter().filter(|stored| stored.artifact.kind != Kind::Text) {
        let Some(left) = room.checked_sub(stored.artifact.size) else { continue };
        // An artifact that cannot be read is skipped here. It is reported when somebody opens it.
        if let Ok(bytes) = handles.blobs.read(&stored.blob).await {
            room = left;
            known.know(&bytes);
        }
    }
    Ok(())
}

/// The artifacts to store, with their ids.
type Found = Vec<(ArtifactId, NewArtifact)>;

/// The ids of the calls whose content cannot be stored, and a refusal for each call. The refusals are decided here,
/// because the recorded calls no longer contain the faulty content.
type Refused = Vec<(String, Refusal)>;

/// Removes encoded bytes (such as base64) from an answer. Returns the removed bytes, and the calls that are refused.
fn find(replied: &mut Replied, limits: &Limits) -> (Found, Refused) {
    let mut found = Found::new();
    let mut refused = Refused::new();
    if let Some(text) = &mut replied.text
        && let Some(replaced) = inline::replace(text, &mut keeper(&mut found, limits))
    {
        *text = replaced;
    }
    take_fields_out(replied, limits, &mut found);
    for call in &mut replied.calls {
        let may_stay = |name: &str, value: &Value| !inline::holds_bytes(&json!({ name: value }));
        call.extra.retain(|name, value| may_stay(name, value));
        for name in [&mut call.id, &mut call.name] {
            if let Some(other) = inline::replace(name, &mut |_| Some(mint::artifact().to_string())) {
                *name = other;
            }
        }
        if call.name == PUT_ARTIFACT {
            find_content(call, limits, &mut found, &mut refused);
            continue;
        }
        match &mut call.arguments {
            Arguments::Object(arguments) => {
                inline::replace_in_object(arguments, &mut keeper(&mut found, limits));
            }
            Arguments::Malformed(text) => *text = inline::without_bytes(std::mem::take(text)),
        }
    }
    (found, refused)
}

/// Removes bytes from a `put_artifact` call. If the content is bytes or contains encoded bytes, the whole content is
/// stored unchanged, and a reference replaces it in the recorded call.
fn find_content(call: &mut ToolCall, limits: &Limits, found: &mut Found, refused: &mut Refused) {
    if let Arguments::Object(arguments) = &mut call.arguments {
        let others = arguments.iter_mut().filter(|(name, _)| *name != CONTENT);
        others.for_each(|(_, value)| inline::replace_in(value, &mut keeper(found, limits)));
    }
    match tools::incoming(call, limits) {
        Some(Ok(Incoming::Bytes(artifact))) => refer_to(call, artifact, found),
        Some(Ok(Incoming::Text(artifact))) if content_of(call).is_some_and(inline::holds_bytes) => {
            refer_to(call, artifact, found);
        }
        Some(Ok(Incoming::Text(_) | Incoming::Reference)) | None => {}
        Some(Err(refusal)) => {
            leave_content_out(call);
            refused.push((call.id.clone(), refusal));
        }
    }
}

fn content_of(call: &ToolCall) -> Option<&Value> {
    match &call.arguments {
        Arguments::Object(arguments) => arguments.get(CONTENT),
        Arguments::Malformed(_) => None,
    }
}

/// Adds the content of a call to the artifacts to store. In the recorded call, a reference replaces the content.
fn refer_to(call: &mut ToolCall, artifact: NewArtifact, found: &mut Found) {
    let id = mint::artifact();
    if let Arguments::Object(arguments) = &mut call.arguments {
        arguments.insert(CONTENT.to_owned(), Value::String(id.reference()));
        arguments.shift_remove("encoding");
    }
    found.push((id, artifact));
}

/// Removes all encoded bytes from the content of a refused call. Removes the whole content if the call declared the
/// content as bytes.
fn leave_content_out(call: &mut ToolCall) {
    match &mut call.arguments {
        Arguments::Object(arguments) => {
            let is_text = arguments.get("encoding").is_none_or(|encoding| encoding == "utf-8");
            match arguments.get_mut(CONTENT) {
                Some(content) if is_text => inline::replace_in(content, &mut |_| None),
                Some(content) => inline::leave_out_in(content),
                None => {}
            }
        }
        Arguments::Malformed(text) => *text = inline::leave_out(text),
    }
}

/// Removes bytes from fields that only the server understands. For example, some servers return the pictures of their
/// model in the field `images`. A field that contains bytes is removed from the answer, the bytes are stored, and the
/// text of the answer gets their reference.
fn take_fields_out(replied: &mut Replied, limits: &Limits, found: &mut Found) {
    let before = found.len();
    replied.extra.retain(|name, value| {
        let has_bytes = inline::holds_bytes(&json!({ name.as_str(): &*value }));
        inline::replace_in(value, &mut keeper(found, limits));
        !has_bytes
    });
    for (id, _) in &found[before..] {
        let text = replied.text.get_or_insert_default();
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&id.reference());
    }
}

/// Returns whether an answer contains text that could be a piece of a file.
/// Fields that only the server understands are not checked, because they are sent only to that server.
fn is_suspicious(replied: &Replied) -> bool {
    let in_arguments = |call: &ToolCall| match &call.arguments {
        Arguments::Object(arguments) => arguments.values().any(inline::is_suspicious),
        Arguments::Malformed(text) => inline::is_suspicious(&json!(text)),
    };
    replied.text.as_ref().is_some_and(|text| inline::is_suspicious(&json!(text)))
        || replied.calls.iter().any(in_arguments)
}

/// Removes pieces of known bytes from an answer. The content of a text artifact is stored completely, as in
/// [`find_content`].
fn leave_fragments_out(replied: &mut Replied, known: &Fragments, limits: &Limits, found: &mut Found) {
    if let Some(text) = &mut replied.text {
        known.leave_out(text);
    }
    for call in &mut replied.calls {
        if let Some(content) = content_of(call).filter(|_| call.name == PUT_ARTIFACT)
            && let Some(Ok(Incoming::Text(artifact))) = tools::incoming(call, limits)
        {
            let mut without = content.clone();
            known.leave_out_in(&mut without);
            if without != *content {
                refer_to(call, artifact, found);
            }
        }
        let is_to_be_stored = |name: &str| call.name == PUT_ARTIFACT && name == CONTENT;
        match &mut call.arguments {
            Arguments::Object(arguments) => {
                let others = arguments.iter_mut().filter(|(name, _)| !is_to_be_stored(name));
                others.for_each(|(_, value)| known.leave_out_in(value));
            }
            Arguments::Malformed(text) => known.leave_out(text),
        }
    }
}

/// Returns a function. The function adds bytes to `found`, and returns a reference to the bytes. If there are too many
/// bytes, it adds nothing and returns `None`.
fn keeper<'f>(found: &'f mut Found, limits: &'f Limits) -> impl FnMut(Written) -> Option<String> + 'f {
    move |written| {
        limits.check_artifact(written.bytes.len() as u64).ok()?;
        let id = mint::artifact();
        let reference = id.reference();
        found.push((id, written.into()));
        Some(reference)
    }
}

/// Puts bytes on disk. Tries again while the disk refuses the bytes. Otherwise the bytes would be lost, and they may
/// have cost money.
async fn keep_trying(handles: &Handles, id: ArtifactId, artifact: NewArtifact) -> Result<Prepared, Error> {
    let mut pause = FIRST_PAUSE;
    loop {
        match put_on_disk(handles, id.clone(), artifact.clone()).await {
            Err(error) if error.may_pass() => {
                tracing::error!(error = %in_full(&error), "failed to store bytes from a model or a tool; trying again after a pause");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            stored => return stored,
        }
    }
}

/// Writes to disk a file that a tool returned.
pub(super) async fn put_in_store(handles: &Handles, artifact: NewArtifact) -> Result<Prepared, Error> {
    keep_trying(handles, mint::artifact(), artifact).await
}

pub(super) async fn put_on_disk(
    handles: &Handles,
    id: ArtifactId,
    artifact: NewArtifact,
) -> Result<Prepared, Error> {
    let prepared = prepare(&handles.blobs, artifact, id, polity_store::now().as_millis()).await;
    polity_points::point!("bytes::on_disk");
    prepared.map_err(Error::Blob)
}

/// Puts the content of `put_artifact` calls on disk, so that the transaction of these calls only has to write rows.
pub(super) async fn prepare_contents(
    handles: &Handles,
    snapshot: &Snapshot,
    calls: &[&ToolCall],
) -> Result<HashMap<String, Result<Prepared, Refusal>>, Error> {
    let mut prepared = HashMap::new();
    for call in calls {
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
