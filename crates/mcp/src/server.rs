//! The protocol: offers tools and artifacts through the official SDK. No other file uses the SDK.

mod person;
mod sessions;

use crate::artifacts::{self, Block, ReadArtifact};
use crate::refusal::Refusal;
use crate::tools::{Effect, Outcome, Schema, Tool, ToolOutput};
use axum::Router;
use polity_runtime::Society;
use polity_view::{ArtifactFilter, ArtifactView};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, Tool as ToolDescription,
    ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, serve_server};
use serde_json::Value;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What the client tells its model about this server.
const INSTRUCTIONS: &str = "A society of LLM agents. Give its root agent a task with give_task, then call follow_task \
    until it is finished; the last final message is the answer. Agents may ask the user: messages with expectsAnswer; \
    pass the question on, and answer with answer_question. Results that are files are artifacts: read_artifact.";

/// Maximum number of resources in one page of the list.
const RESOURCES: u32 = 200;

/// Maximum number of progress lines that wait to be sent. While this many lines wait, further lines are dropped.
const LINES: usize = 256;

/// Why serving a client over a pair of streams failed.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The client's first messages violate the protocol.
    #[error("the MCP client did not initialize the connection correctly: {0}")]
    Beginning(String),
    /// The task that serves the client panicked or was cancelled.
    #[error("the MCP connection ended unexpectedly: {0}")]
    BrokeOff(String),
}

/// Builds the route `/mcp`. This function does not control access to the route, so its caller must do this. If the
/// caller cancels `ending`, the calls that are waiting end.
pub fn router(society: Arc<Society>, ending: CancellationToken) -> Router {
    let for_calls = ending.clone();
    let new = move || Server { society: Arc::clone(&society), ending: for_calls.clone() };
    sessions::router(new, ending)
}

/// Serves one client over a pair of streams until the client closes its end.
pub async fn serve<R, W>(society: Arc<Society>, input: R, output: W) -> Result<(), StdioError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let begun = serve_server(Server { society, ending: CancellationToken::new() }, (input, output)).await;
    let running = match begun {
        Ok(running) => running,
        // The client has disconnected before its first message. A client may do this, so this is no error.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(StdioError::Beginning(error.to_string())),
    };
    let ended = running.waiting().await;
    ended.map(drop).map_err(|error| StdioError::BrokeOff(error.to_string()))
}

/// The handler that the SDK calls. It serves one society.
#[derive(Clone)]
struct Server {
    society: Arc<Society>,
    /// Cancelled to end the calls that are waiting.
    ending: CancellationToken,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let polity = Implementation::new("polity", env!("CARGO_PKG_VERSION")).with_title("polity");
        ServerConfig::new(capabilities).with_server_info(polity).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(Tool::ALL.iter().copied().map(described).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<ToolDescription> {
        Tool::of_name(name).map(described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::of_name(&request.name) else {
            let message = format!("there is no tool `{}`", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let (progress, mut lines) = mpsc::channel(LINES);
        let (person, mut inquiries) = person::of(&request, &context);
        let rounds = person::rounds(&request);
        let arguments = request.arguments.unwrap_or_default();
        let called = async {
            // `progress` is the sender of progress lines. Move it into this block, so that it is dropped and its
            // channel closes when the call ends.
            let progress = progress;
            tool.call(&self.society, arguments, &progress, person).await
        };
        let asked = async {
            while let Some(inquiry) = inquiries.recv().await {
                person::ask(&context.peer, inquiry).await;
            }
        };
        let told = async {
            let token = context.meta.get_progress_token();
            let mut count = 0.0;
            while let Some(line) = lines.recv().await {
                let Some(token) = &token else { continue };
                count += 1.0;
                let notice = ProgressNotificationParam::new(token.clone(), count).with_message(line);
                if context.peer.notify_progress(notice).await.is_err() {
                    // The client has disconnected and will not receive the result either.
                    break;
                }
            }
        };
        let result = tokio::select! {
            (result, (), ()) = async { tokio::join!(called, told, asked) } => result,
            () = self.ending.cancelled() => Err(Refusal::ending()),
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
        };
        Ok(match result {
            Ok(Outcome::Done(output)) => completed(output),
            Ok(Outcome::Ask(questions)) => return Ok(person::required(questions, rounds).into()),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.text())]),
        }
        .into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let after = match request.and_then(|request| request.cursor) {
            None => None,
            Some(cursor) => {
                let cursor = cursor.parse().ok();
                Some(cursor.ok_or_else(|| ErrorData::invalid_params("unknown cursor", None))?)
            }
        };
        let filter = ArtifactFilter { after, limit: Some(RESOURCES), ..ArtifactFilter::default() };
        let page = self.society.artifacts(&filter).await.map_err(|error| failed(error.into()))?;
        let mut result = ListResourcesResult::with_all_items(page.artifacts.iter().map(resource).collect());
        result.next_cursor = page.next.map(|next| next.to_string());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("polity://artifact/{id}", "artifact")
            .with_description("An artifact: the id is what follows artifact: in its reference.");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown =
            || ErrorData::resource_not_found(format!("there is no resource `{}`", request.uri), None);
        let id = artifacts::of_uri(&request.uri).ok_or_else(unknown)?;
        let (artifact, content) = artifacts::whole(&self.society, &id)
            .await
            .map_err(|refusal| if refusal.code == "not_found" { unknown() } else { failed(refusal) })?;
        let contents = match content {
            ReadArtifact::Text(text) => ResourceContents::text(text, request.uri.as_str()),
            ReadArtifact::Bytes(base64) => ResourceContents::blob(base64, request.uri.as_str()),
        };
        Ok(ReadResourceResult::new(vec![contents.with_mime_type(artifact.mime_type.to_string())]).into())
    }
}

fn described(tool: Tool) -> ToolDescription {
    let (Schema(takes), Schema(gives)) = (tool.takes(), tool.gives());
    let annotations = ToolAnnotations::new().open_world(false);
    let annotations = match tool.effect() {
        Effect::Reads => annotations.read_only(true),
        Effect::Adds => annotations.read_only(false).destructive(false).idempotent(false),
        Effect::Steers => annotations.read_only(false).destructive(false).idempotent(true),
        Effect::Ends => annotations.read_only(false).destructive(true).idempotent(true),
    };
    ToolDescription::new(tool.name(), tool.description(), Arc::new(takes))
        .with_raw_output_schema(Arc::new(gives))
        .with_annotations(annotations)
}

fn completed(outcome: ToolOutput) -> CallToolResult {
    let ToolOutput { data, blocks } = outcome;
    let mut result = CallToolResult::structured(data);
    if !blocks.is_empty() {
        result.content = blocks.into_iter().map(shown).collect();
    }
    result
}

fn shown(block: Block) -> ContentBlock {
    match block {
        Block::Text(text) => ContentBlock::text(text),
        Block::Image { data, mime } => ContentBlock::image(data, mime.to_string()),
        Block::Audio { data, mime } => ContentBlock::audio(data, mime.to_string()),
    }
}

fn resource(artifact: &ArtifactView) -> Resource {
    let name = artifact.filename.clone().unwrap_or_else(|| artifact.reference.clone());
    let about = format!("{}, of {} in task {}", artifact.reference, artifact.owner, task_of(artifact));
    Resource::new(artifacts::uri(&artifact.id), name)
        .with_mime_type(artifact.mime_type.to_string())
        .with_size(artifact.size)
        .with_description(about)
}

fn task_of(artifact: &ArtifactView) -> &str {
    artifact.task.as_ref().map_or("none", |task| task.as_str())
}

/// Turns a refusal into an error of the protocol. This is for methods whose result has no place for a refusal.
fn failed(refusal: Refusal) -> ErrorData {
    let Refusal { code, message, details: _ } = refusal;
    let data = Some(Value::String(code.clone()));
    match code.as_str() {
        "internal_error" | "unavailable" => ErrorData::internal_error(message, data),
        _ => ErrorData::invalid_params(message, data),
    }
}
