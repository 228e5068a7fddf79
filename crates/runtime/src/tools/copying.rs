//! `put_artifact` with `path`, and `get_artifact` with `saveTo`: copies between artifacts and the files of a workspace.
//!
//! Both tools belong to the society. But a call that copies a file acts outside the society, so it runs like a call of
//! an outside tool: the caller needs the right to use files, the policy is asked about the call, and the start of the
//! call is committed before the call runs. The file is read when the call runs. The artifact is stored in the
//! transaction that records the result.

use super::artifact::{GET_ARTIFACT, PATH, PUT_ARTIFACT, SAVE_TO, copies, described};
use futures::future::{BoxFuture, FutureExt};
use polity_artifacts::index::Stored;
use polity_artifacts::{BlobStore, NewArtifact};
use polity_decide::arguments::synonyms_of;
use polity_hands::arguments::{self, Argued};
use polity_hands::call::{Arguments, Caller, File, Invocation, Output};
use polity_hands::files::{Bounds, Files, PathArgument};
use polity_hands::places::Places;
use polity_hands::table::Hands;
use polity_hands::tool::{AfterCrash, Effect, Needs, Reach, Shown, Tool};
use polity_llm::ToolCall;
use polity_registry::Registry;
use polity_society::id::ArtifactId;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_society::written;
use polity_store::{Error, Store, artifacts};
use polity_view::in_full;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The tools that can copy a file, each with the argument that names the file.
pub(super) const COPYING: [(&str, &Needs); 2] =
    [(PUT_ARTIFACT, &PUT_NEEDS[0]), (GET_ARTIFACT, &GET_NEEDS[0])];

const PUT_NEEDS: &[Needs] =
    &[Needs { argument: PATH, group: ToolGroup::Files, reach: Reach::ReadsWorkspace }];

const GET_NEEDS: &[Needs] =
    &[Needs { argument: SAVE_TO, group: ToolGroup::Files, reach: Reach::ChangesWorkspace }];

/// The tools that copy.
pub(crate) struct Copying {
    put: Arc<dyn Tool>,
    get: Arc<dyn Tool>,
}

impl Copying {
    /// Makes the tools. Returns `None` if the society has no workspaces.
    pub(crate) fn new(
        hands: &Hands,
        store: &Store,
        blobs: &BlobStore,
        registry: &Arc<Registry>,
    ) -> Option<Self> {
        let places: Arc<dyn Places> = Arc::clone(hands.workspaces()?) as _;
        let files = Files::new(places, Arc::clone(hands.views()?), Bounds::default());
        let (store, blobs) = (store.clone(), blobs.clone());
        Some(Self {
            put: Arc::new(PutFile { files: files.clone(), registry: Arc::clone(registry) }),
            get: Arc::new(GetFile { files, store, blobs }),
        })
    }

    /// If a call copies a file, returns the tool that carries out the call.
    pub(crate) fn tool_of(&self, call: &ToolCall) -> Option<Arc<dyn Tool>> {
        if !copies(call) {
            return None;
        }
        let tools = [&self.put, &self.get];
        tools.into_iter().find(|tool| tool.name() == call.name).map(Arc::clone)
    }
}

/// Returns the artifact that a call copies into the workspace.
pub(crate) fn copied_from(call: &ToolCall) -> Option<ArtifactId> {
    let polity_llm::Arguments::Object(given) = &call.arguments else { return None };
    if call.name != GET_ARTIFACT || !copies(call) {
        return None;
    }
    ArtifactId::from_reference(&read::<GetGiven>(GET_ARTIFACT, given).ok()?.reference)
}

/// Returns the artifact that a call makes from a file. The bytes of the file are not filled in yet.
pub(crate) fn made_of_file(call: &ToolCall, filename: Option<String>) -> Option<NewArtifact> {
    let polity_llm::Arguments::Object(given) = &call.arguments else { return None };
    if call.name != PUT_ARTIFACT || !copies(call) {
        return None;
    }
    let PutGiven { label, meta, .. } = read(PUT_ARTIFACT, given).ok()?;
    let meta = meta.and_then(|meta| written::object(&meta)).unwrap_or_default();
    let mut artifact = described(meta);
    artifact.label = Some(label);
    artifact.filename = artifact.filename.or(filename);
    Some(artifact)
}

/// Reads the arguments of a call. Understands synonyms of arguments and ignores blank values. Calls that copy no file
/// are read in the same way.
fn read<T: Argued>(tool: &str, given: &Map<String, Value>) -> Result<T, Refusal> {
    let (mut given, _) = written::with_synonyms(given.clone(), synonyms_of(tool));
    given.retain(|_, value| written::says_something(value));
    arguments::read(&given)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PutGiven {
    #[serde(rename = "type")]
    label: String,
    path: String,
    #[schemars(with = "Option<Map<String, Value>>")]
    meta: Option<Value>,
    /// Some models also state an encoding for a file. The value has no effect.
    #[serde(rename = "encoding")]
    _encoding: Option<Value>,
}

impl Argued for PutGiven {
    const NAMES: &'static [&'static str] = &["type", PATH, "meta", "encoding"];
}

/// The tool that stores a file of the workspace as an artifact.
struct PutFile {
    files: Files,
    registry: Arc<Registry>,
}

impl Tool for PutFile {
    fn name(&self) -> &str {
        PUT_ARTIFACT
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Artifacts
    }

    fn needs(&self) -> &[Needs] {
        PUT_NEEDS
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<PutGiven>()
    }

    /// The call itself only reads a file; it changes nothing outside the society. The transaction that records the
    /// result also stores the artifact. So an interrupted call has stored nothing, and may read the file again.
    fn reach(&self, _: &Arguments) -> Reach {
        Reach::Society
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let PutGiven { path, .. } = read(PUT_ARTIFACT, &invocation.arguments)?;
            let limits = self.registry.current().settings.limits;
            let at = PathArgument { tool: PUT_ARTIFACT, argument: PATH, path: &path };
            let file = self.files.read(&invocation.caller, at, &limits).await?;
            let output = Output::json(json!({"path": file.path}));
            let output =
                output.with_file(File { bytes: file.bytes, declared_mime: None, filename: file.filename });
            Ok(match file.source {
                Some(source) => output.from_source(source),
                None => output,
            })
        }
        .boxed()
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct GetGiven {
    #[serde(rename = "ref")]
    reference: String,
    save_to: String,
    offset: Option<Value>,
    limit: Option<Value>,
}

impl Argued for GetGiven {
    const NAMES: &'static [&'static str] = &["ref", SAVE_TO, "offset", "limit"];
}

/// The tool that writes an artifact to a file of the workspace.
struct GetFile {
    files: Files,
    store: Store,
    blobs: BlobStore,
}

impl GetFile {
    async fn stored(&self, caller: &Caller, id: &ArtifactId) -> Result<Option<Stored>, Error> {
        let mut reader = self.store.reader().await?;
        let allowed = artifacts::may_open(&mut reader, &caller.agent, std::slice::from_ref(id)).await?;
        if !allowed.contains(id) {
            return Ok(None);
        }
        Ok(artifacts::get(&mut reader, id).await?)
    }

    /// Returns the bytes of an artifact that the caller may open. Any other artifact is reported as not found.
    async fn bytes(&self, caller: &Caller, reference: &str) -> Result<bytes::Bytes, Refusal> {
        let not_found = || Refusal::ArtifactNotFound { reference: reference.to_owned() };
        let failed = |error: &Error| {
            tracing::error!(error = %in_full(error), "an artifact cannot be read");
            Refusal::ToolFailed { tool: GET_ARTIFACT.to_owned(), reason: in_full(error).to_string() }
        };
        let id = ArtifactId::from_reference(reference).ok_or_else(not_found)?;
        let stored = self.stored(caller, &id).await.map_err(|error| failed(&error))?.ok_or_else(not_found)?;
        self.blobs.read(&stored.blob).await.map_err(|error| failed(&Error::Blob(error)))
    }
}

fn place(given: &GetGiven) -> PathArgument<'_> {
    PathArgument { tool: GET_ARTIFACT, argument: SAVE_TO, path: &given.save_to }
}

impl Tool for GetFile {
    fn name(&self) -> &str {
        GET_ARTIFACT
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Artifacts
    }

    fn needs(&self) -> &[Needs] {
        GET_NEEDS
    }

    fn parameters(&self) -> Value {
        arguments::schema_of::<GetGiven>()
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::Society
    }

    fn effect(&self, _: &Arguments) -> Effect {
        Effect::Changes
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        AfterCrash::Verify
    }

    fn prepare<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Result<Value, Refusal>> {
        async move {
            let given: GetGiven = read(GET_ARTIFACT, &invocation.arguments)?;
            if given.offset.as_ref().is_some_and(|offset| *offset != json!(0)) || given.limit.is_some() {
                let rule =
                    Fault::Rule("has no effect with saveTo, which writes the whole artifact".to_owned());
                let argument = if given.limit.is_some() { "limit" } else { "offset" };
                return Err(Refusal::InvalidArguments(vec![FieldProblem::new(argument, rule)]));
            }
            let bytes = self.bytes(&invocation.caller, &given.reference).await?;
            self.files.evidence(&invocation.caller, place(&given), bytes).await
        }
        .boxed()
    }

    fn preview<'a>(&'a self, invocation: &'a Invocation) -> BoxFuture<'a, Option<Shown>> {
        async move {
            let given: GetGiven = read(GET_ARTIFACT, &invocation.arguments).ok()?;
            let bytes = self.bytes(&invocation.caller, &given.reference).await.ok()?;
            self.files.preview(&invocation.caller, place(&given), bytes).await.map(Shown::text)
        }
        .boxed()
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let given: GetGiven = read(GET_ARTIFACT, &invocation.arguments)?;
            let Invocation { caller, evidence, attempt, .. } = &invocation;
            let bytes = self.bytes(caller, &given.reference).await?;
            let size = bytes.len();
            let saved = self.files.write_once(caller, place(&given), bytes, evidence, *attempt).await?;
            Ok(Output::json(json!({"ref": given.reference, "savedTo": saved, "bytes": size})))
        }
        .boxed()
    }
}
