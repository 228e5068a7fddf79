//! Bytes that tools store: on disk before the transaction that writes their rows begins.

use super::outside::outside_tool;
use crate::handles::Handles;
use crate::mint;
use crate::store::Error;
use crate::tools::{self, Incoming};
use crate::turn::Turn;
use polity_artifacts::{NewArtifact, Prepared, prepare};
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::refusal::Refusal;
use serde_json::Value;
use std::collections::HashMap;

/// Bytes that a model passes in a call are stored, and a reference takes their place before anything is recorded.
pub(super) async fn take_bytes_out(
    handles: &Handles,
    snapshot: &Snapshot,
    calls: &mut [ToolCall],
) -> Result<Vec<Prepared>, Error> {
    let mut stored = Vec::new();
    for call in calls {
        let Some(Ok(Incoming::Bytes(artifact))) = tools::incoming(call, &snapshot.settings.limits) else {
            continue;
        };
        let prepared = put_on_disk(handles, artifact).await?;
        if let Arguments::Object(arguments) = &mut call.arguments {
            arguments.insert("content".to_owned(), Value::String(prepared.artifact.id.reference()));
            arguments.remove("encoding");
        }
        stored.push(prepared);
    }
    Ok(stored)
}

pub(super) async fn put_on_disk(handles: &Handles, artifact: NewArtifact) -> Result<Prepared, Error> {
    let prepared = prepare(&handles.blobs, artifact, mint::artifact(), crate::clock::now()).await;
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
                prepared.insert(call.id.clone(), Ok(put_on_disk(handles, artifact).await?));
            }
            Some(Err(refusal)) => {
                prepared.insert(call.id.clone(), Err(refusal));
            }
            Some(Ok(Incoming::Reference)) | None => {}
        }
    }
    Ok(prepared)
}
