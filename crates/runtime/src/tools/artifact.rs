//! `put_artifact`, `get_artifact`, `list_artifacts`.
//!
//! The bytes of an artifact are written to disk first. Only then does a transaction write the artifact's row.
//! [`incoming`] returns the content that a call wants to store.

use super::{Context, Done, Ran};
use crate::door;
use bytes::Bytes;
use polity_artifacts::index::NO_TASK;
use polity_artifacts::{NewArtifact, Prepared};
use polity_decide::arguments::{Call, Encoding, GetArtifact, Meta, PutArtifact};
use polity_decide::inline;
use polity_llm::{Arguments, ToolCall};
use polity_society::content::Artifact;
use polity_society::id::ArtifactId;
use polity_society::limits::Limits;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::written;
use polity_store::record::ToolResult;
use polity_store::seen::{self, Holder};
use polity_store::{Conversation, Error, Stopped, Tx, agents, artifacts, events, notes};
use polity_view::Event;
use serde_json::{Map, Value, json};

/// The maximum number of artifacts that `list_artifacts` returns, newest first.
const LIST_LIMIT: u32 = 200;

/// The name of the tool that stores an artifact.
pub(crate) const PUT_ARTIFACT: &str = "put_artifact";

/// The name of the tool that opens an artifact.
pub(super) const GET_ARTIFACT: &str = "get_artifact";

/// The argument of `put_artifact` that contains the content.
pub(crate) const CONTENT: &str = "content";

/// The argument of `put_artifact` that names a file to store.
pub(super) const PATH: &str = "path";

/// The argument of `get_artifact` that names a file to write.
pub(super) const SAVE_TO: &str = "saveTo";

/// The content of a `put_artifact` call.
pub(crate) enum Incoming {
    /// Text, which the record of the call keeps unchanged.
    Text(NewArtifact),
    /// Bytes. Records must not contain bytes, so the record of the call gets a reference instead.
    Bytes(NewArtifact),
    /// A reference to an artifact that is stored already.
    Reference,
}

/// Returns whether a call copies a file. If a model writes both a path and content, the content counts, and no file
/// is copied.
pub(super) fn copies(call: &ToolCall) -> bool {
    let Arguments::Object(given) = &call.arguments else { return false };
    let says = |argument: &str| {
        given
            .iter()
            .any(|(name, value)| written::is_same_name(name, argument) && written::says_something(value))
    };
    match call.name.as_str() {
        PUT_ARTIFACT => says(PATH) && !says(CONTENT),
        GET_ARTIFACT => says(SAVE_TO),
        _ => false,
    }
}

/// Returns the content that a `put_artifact` call wants to store, or the refusal of the call. Returns `None` for a call
/// of another tool, and for a call that copies a file.
pub(crate) fn incoming(call: &ToolCall, limits: &Limits) -> Option<Result<Incoming, Refusal>> {
    // If the call names a file of the workspace, the file is read later, when the call runs.
    if call.name != PUT_ARTIFACT || copies(call) {
        return None;
    }
    Some(match Call::parse(call, None).call {
        Ok(Call::PutArtifact(arguments)) => read(arguments, limits),
        // Cannot happen: the call has the name `put_artifact`, so the arguments of `put_artifact` were read.
        Ok(_) => return None,
        Err(refusal) => Err(refusal),
    })
}

fn read(arguments: PutArtifact, limits: &Limits) -> Result<Incoming, Refusal> {
    let invalid = |fault: Fault| Refusal::InvalidArguments(vec![FieldProblem::new(CONTENT, fault)]);
    let meta = arguments.meta.map_or_else(Map::new, |Meta(meta)| meta);
    let artifact = described(meta);
    let mut declared_mime = artifact.declared_mime.clone();
    let written = match (arguments.encoding, &arguments.content.0) {
        (Some(Encoding::Base64), Value::String(text)) => {
            let decoded = inline::decode(text);
            Some(decoded.map_err(|error| invalid(Fault::Rule(format!("not base64: {error}"))))?)
        }
        (Some(Encoding::Base64), _) => return Err(invalid(Fault::NotA("a string where encoding is base64"))),
        (None, Value::String(text)) if is_reference(text) => return Ok(Incoming::Reference),
        // Models sometimes forget to state that the content is encoded bytes. So a text that is nothing but encoded
        // bytes is decoded.
        (None, Value::String(text)) => inline::nothing_but_bytes(text),
        (None | Some(Encoding::Utf8), _) => None,
    };
    let encoded = written.is_some();
    let bytes = match (written, arguments.content.0) {
        (Some(written), _) => {
            declared_mime = declared_mime.or(written.mime);
            written.bytes
        }
        (None, Value::String(text)) => text.into_bytes(),
        (None, structured) => {
            declared_mime = declared_mime.or_else(|| Some("application/json".to_owned()));
            structured.to_string().into_bytes()
        }
    };
    limits.check_artifact(bytes.len() as u64)?;
    let (bytes, label) = (Bytes::from(bytes), Some(arguments.label));
    let artifact = NewArtifact { bytes, declared_mime, label, ..artifact };
    Ok(if encoded { Incoming::Bytes(artifact) } else { Incoming::Text(artifact) })
}

/// Returns an artifact with the MIME type and the file name that `meta` states. The artifact has no content yet.
pub(super) fn described(meta: Map<String, Value>) -> NewArtifact {
    let said = |names: [&str; 2]| {
        names.iter().find_map(|name| meta.get(*name)).and_then(Value::as_str).map(str::to_owned)
    };
    let (declared_mime, filename) = (said(["mimeType", "mime_type"]), said(["filename", "name"]));
    NewArtifact { declared_mime, filename, meta, ..NewArtifact::default() }
}

/// Returns whether a text is a reference and nothing else.
fn is_reference(text: &str) -> bool {
    let text = text.trim();
    ArtifactId::all_in(text).first().is_some_and(|id| id.reference() == text)
}

/// Writes the row of an artifact whose bytes are on disk, and lets its owner and the owner's ancestors open it.
pub(crate) async fn store(tx: &mut Tx, owner: &Conversation, prepared: Prepared) -> Result<(), Error> {
    let Prepared { artifact, blob, words } = prepared;
    let event = Event::ArtifactStored {
        task: Some(owner.task.clone()).filter(|task| task.as_str() != NO_TASK),
        artifact: artifact.id.clone(),
        owner: owner.agent.clone(),
        kind: artifact.kind,
        mime_type: artifact.mime_type.clone(),
        size: artifact.size,
        filename: artifact.filename.clone(),
    };
    let id = artifact.id.clone();
    let stored = artifacts::Stored {
        artifact,
        blob: blob.hash,
        owner: owner.agent.clone(),
        task: owner.task.clone(),
        damage: None,
    };
    artifacts::insert(&mut tx.connection, &stored, &words).await?;
    artifacts::grant(&mut tx.connection, &owner.agent, &id).await?;
    for ancestor in agents::ancestors(&mut tx.connection, &owner.agent).await? {
        artifacts::grant(&mut tx.connection, &ancestor, &id).await?;
    }
    let from = Holder::Agent(owner.agent.clone());
    let step = seen::Step::Agent { agent: owner.agent.clone() };
    seen::pass(tx, &owner.task, &from, &Holder::Artifact(id), &step).await?;
    events::append(tx, &event).await
}

/// Stores an artifact that an agent has made. If the agent works on a request, the artifact belongs to this request,
/// and the asker of the request is told about the artifact.
pub(crate) async fn make(tx: &mut Tx, owner: &Conversation, prepared: Prepared) -> Result<(), Error> {
    let artifact = prepared.artifact.id.clone();
    store(tx, owner, prepared).await?;
    if let Some(request) = door::worked_on(&mut tx.connection, owner).await? {
        notes::made(tx, owner, &request, &artifact).await?;
    }
    Ok(())
}

pub(super) async fn put(tx: &mut Tx, context: &Context<'_>, call: &str, arguments: &PutArtifact) -> Ran {
    if let Some(prepared) = context.prepared.get(call) {
        let prepared = prepared.clone()?;
        let held = artifacts::bytes_of_task(&mut tx.connection, &context.caller.task).await?;
        let limits = &context.snapshot.settings.limits;
        limits.check_artifacts_of_task(held.saturating_add(prepared.artifact.size))?;
        let shown = show(&prepared.artifact);
        make(tx, context.caller, prepared).await?;
        return Ok(Done::json(shown));
    }
    // No bytes were stored for this call, so its content is a reference.
    let reference = arguments.content.0.as_str().unwrap_or_default();
    Ok(Done::json(show(&open(tx, context, reference).await?)))
}

pub(super) async fn get(tx: &mut Tx, context: &Context<'_>, arguments: &GetArtifact) -> Ran {
    let artifact = open(tx, context, &arguments.reference).await?.id;
    let offset = arguments.offset.unwrap_or_default();
    let result = ToolResult::Artifact { artifact, offset, limit: arguments.limit, ignored: Vec::new() };
    Ok(Done { result, refused: None, record: None })
}

/// Returns the artifact with this reference. An artifact that the caller may not open is reported as not found.
async fn open(tx: &mut Tx, context: &Context<'_>, reference: &str) -> Result<Artifact, Stopped> {
    let Some(id) = ArtifactId::from_reference(reference) else {
        return Err(not_found(reference).into());
    };
    let allowed =
        artifacts::may_open(&mut tx.connection, &context.caller.agent, std::slice::from_ref(&id)).await?;
    if !allowed.contains(&id) {
        return Err(not_found(reference).into());
    }
    let stored = artifacts::get(&mut tx.connection, &id).await?;
    Ok(stored.map(|stored| stored.artifact).ok_or_else(|| not_found(reference))?)
}

fn not_found(reference: &str) -> Refusal {
    Refusal::ArtifactNotFound { reference: reference.to_owned() }
}

pub(super) async fn list(tx: &mut Tx, context: &Context<'_>) -> Ran {
    let caller = context.caller;
    let stored = artifacts::list(&mut tx.connection, &caller.agent, &caller.task, LIST_LIMIT).await?;
    let shown: Vec<Value> = stored.iter().map(|stored| show(&stored.artifact)).collect();
    Ok(Done::json(json!({"artifacts": shown})))
}

/// Returns what a model is told about an artifact.
pub(crate) fn show(artifact: &Artifact) -> Value {
    let mut shown = json!({
        "ref": artifact.id.reference(),
        "kind": artifact.kind,
        "mimeType": artifact.mime_type,
        "size": artifact.size,
    });
    if let Some(label) = &artifact.label {
        shown["type"] = json!(label);
    }
    if let Some(filename) = &artifact.filename {
        shown["filename"] = json!(filename);
    }
    shown
}
