//! Turns the output of a tool into the result to record and the artifacts to store.

use crate::driver::advance::{Ended, UNKNOWN_OUTCOME};
use crate::driver::bytes::{put_in_store, take_result_out};
use crate::handles::Handles;
use crate::head::head;
use crate::tools::{made_of_file, show};
use polity_artifacts::{NewArtifact, Prepared};
use polity_hands::call;
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_society::policy::Reach;
use polity_society::refusal::Refusal;
use polity_store::record::{Content, ToolResult};
use polity_store::{Conversation, Error, artifacts};
use serde_json::Value;
use std::time::Duration;

/// A call that has run.
pub(super) struct Ran {
    pub(super) call: ToolCall,
    /// What the call reached outside the society, for example a web host or the workspace.
    pub(super) reaches: Vec<Reach>,
    pub(super) result: Result<call::Output, Refusal>,
    /// A crash may have interrupted the call. If the call was not run again, this is what the model is told about its
    /// outcome.
    pub(super) unknown: Option<String>,
    pub(super) duration: Duration,
}

/// Stores the files of a result, and removes encoded bytes from its text. Other calls that ran at the same time may
/// have made artifacts whose rows are not in the database yet. `unwritten` is the size of these artifacts.
pub(super) async fn end(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    ran: Ran,
    unwritten: u64,
) -> Result<Ended, Error> {
    let Ran { call, reaches, result, unknown, duration } = ran;
    let (mut goes_on, mut reference_field) = (None, None);
    let (mut result, mut refused, mut files) = match result {
        Ok(output) => {
            goes_on.clone_from(&output.goes_on);
            reference_field = output.referred.as_ref().map(|referred| referred.field);
            let (result, files) = taken_apart(output);
            (result, None, files)
        }
        Err(refusal) => {
            let mut told = refusal.to_json(&snapshot.prompts.texts);
            if let Some(unknown) = unknown {
                told[UNKNOWN_OUTCOME] = Value::String(unknown);
            }
            (ToolResult::Json(told), Some(refusal.code()), Vec::new())
        }
    };
    let mut stored = take_bytes_out(handles, conversation, snapshot, &mut result).await?;
    // Agents of the task that store files at the same moment do not count each other's files, so all these agents
    // together may exceed the limit of the task.
    let mut held = match files.is_empty() {
        true => 0,
        false => {
            let mut reader = handles.store.reader().await?;
            let written = artifacts::bytes_of_task(&mut reader, &conversation.task).await?;
            let of_text: u64 = stored.iter().map(|prepared| prepared.artifact.size).sum();
            written.saturating_add(unwritten).saturating_add(of_text)
        }
    };
    let limits = &snapshot.settings.limits;
    let mut made = None;
    if refused.is_none()
        && let Some(artifact) = made_of_file(&call, files.first().and_then(|file| file.filename.clone()))
        && let Some(file) = files.pop()
    {
        match limits.check_artifacts_of_task(held.saturating_add(file.bytes.len() as u64)) {
            Ok(()) => {
                let artifact = NewArtifact { bytes: file.bytes, ..artifact };
                let prepared = put_in_store(handles, artifact).await?;
                if let ToolResult::Outside { content, .. } = &mut result {
                    *content = Content::Json(show(&prepared.artifact));
                }
                made = Some(prepared);
            }
            Err(refusal) => {
                result = ToolResult::Json(refusal.to_json(&snapshot.prompts.texts));
                refused = Some(refusal.code());
            }
        }
    }
    let mut left_out = Vec::new();
    for (at, file) in files.into_iter().enumerate() {
        let size = file.bytes.len() as u64;
        let fits = limits.check_artifact(size).map_err(Refusal::from);
        if let Err(refusal) = fits.and_then(|()| limits.check_artifacts_of_task(held.saturating_add(size))) {
            left_out.push(refusal.message(&snapshot.prompts.texts));
            continue;
        }
        held = held.saturating_add(size);
        let artifact = NewArtifact {
            bytes: file.bytes,
            declared_mime: file.declared_mime,
            filename: file.filename,
            label: Some("tool_result".to_owned()),
            ..NewArtifact::default()
        };
        let prepared = put_in_store(handles, artifact).await?;
        if let ToolResult::Outside { content, artifacts, .. } = &mut result {
            if let (0, Some(field), Content::Json(Value::Object(object))) = (at, reference_field, content) {
                object.insert(field.to_owned(), Value::String(prepared.artifact.id.reference()));
            }
            artifacts.push(prepared.artifact.id.clone());
        }
        stored.push(prepared);
    }
    if let ToolResult::Outside { content, .. } = &mut result
        && !left_out.is_empty()
    {
        note_left_out(content, &left_out);
    }
    let shown = match &result {
        ToolResult::Outside { content: Content::Text { text, .. }, .. } => head(text),
        ToolResult::Outside { content: Content::Json(value), .. } | ToolResult::Json(value) => {
            head(&value.to_string())
        }
        ToolResult::Artifact { artifact, .. } => artifact.reference(),
    };
    Ok(Ended { call, reaches, result, refused, stored, made, duration, head: shown, goes_on })
}

/// Splits the output of a tool into the result to record and the files to store. If the result refers to a file, this
/// file comes first.
fn taken_apart(output: call::Output) -> (ToolResult, Vec<call::File>) {
    let call::Output { content, files, referred, sources, goes_on: _ } = output;
    let files = referred.map(|referred| referred.file).into_iter().chain(files).collect();
    let content = match content {
        call::Content::Json(value) => Content::Json(value),
        call::Content::Text { origin, text } => Content::Text { origin, text },
    };
    let sources = sources.iter().map(ToString::to_string).collect();
    (ToolResult::Outside { content, artifacts: Vec::new(), sources }, files)
}

/// Takes encoded bytes out of a result. Returns the artifacts that they became.
async fn take_bytes_out(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    result: &mut ToolResult,
) -> Result<Vec<Prepared>, Error> {
    match result {
        ToolResult::Artifact { .. } => Ok(Vec::new()),
        ToolResult::Json(value) | ToolResult::Outside { content: Content::Json(value), .. } => {
            take_result_out(handles, conversation, snapshot, value).await
        }
        ToolResult::Outside { content: Content::Text { text, .. }, .. } => {
            let mut value = Value::String(std::mem::take(text));
            let stored = take_result_out(handles, conversation, snapshot, &mut value).await?;
            if let Value::String(without) = value {
                *text = without;
            }
            Ok(stored)
        }
    }
}

/// Some files of a result are too large to be stored. Adds a note about these files to the result.
fn note_left_out(content: &mut Content, left_out: &[String]) {
    match content {
        Content::Json(Value::Object(object)) => {
            object.insert("notStored".to_owned(), left_out.into());
        }
        Content::Json(other) => {
            *other = serde_json::json!({"result": other.take(), "notStored": left_out});
        }
        Content::Text { text, .. } => {
            text.push('\n');
            text.push_str(&left_out.join("\n"));
        }
    }
}
