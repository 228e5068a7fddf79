//! The route `/mcp`: requests without a session, and sessions for clients that can ask their user.
//!
//! Before protocol 2026-07-28, the server needs a session to ask the user. The session tells the server what the client
//! can do, and it brings the user's answer to the call that asked. So a client gets a session if its first message says
//! that it can ask its user. All other clients get no session. The server does not store sessions on disk. If a client
//! uses an old session after a restart of the server, the server creates this session again.

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use futures::StreamExt as _;
use polity_society::mime::MimeType;
use rmcp::ServerHandler;
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, Implementation, InitializeRequestParams, ProtocolVersion,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum size of a request, in bytes. A request of this size can contain a file in base64 and some text.
const LARGEST_REQUEST: usize = 96 << 20;

/// Maximum size of an `initialize` request that can get a session, in bytes. A larger request is served without a
/// session.
const LARGEST_BEGINNING: usize = 64 << 10;

/// Maximum length of the text that the SDK returns when it refuses a request, in bytes.
const LARGEST_REFUSAL: usize = 64 << 10;

/// The code of JSON-RPC for a request whose body cannot be parsed.
const PARSE_ERROR: i64 = -32_700;

/// The code of JSON-RPC for a request that is not valid.
const INVALID_REQUEST: i64 = -32_600;

/// Header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// If a session has no message for this time, the server forgets the session. When the client uses the session again,
/// the server creates it again. No call waits for this long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(1_200);

/// Builds the route `/mcp`. `new` makes a handler for each request or session. `ending` is cancelled when the daemon
/// ends.
pub(super) fn router<S: ServerHandler>(
    new: impl Fn() -> S + Clone + Send + Sync + 'static,
    ending: CancellationToken,
) -> Router {
    let config = StreamableHttpServerConfig::default()
        // This configuration is for requests without a session. Each of these requests is independent, so a restart of
        // the daemon loses nothing.
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_retry(None)
        .with_max_request_body_bytes(LARGEST_REQUEST)
        // The guard in front of this route checks host and origin.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let new = move || Ok(new());
    let mut in_sessions = config.clone().with_legacy_session_mode(true);
    in_sessions.session_store = Some(Arc::new(Remade));
    let mut manager = LocalSessionManager::default();
    manager.session_config.keep_alive = Some(FORGOTTEN_AFTER);
    manager.session_config.sse_retry = None;
    let alone = StreamableHttpService::new(new.clone(), Arc::new(NeverSessionManager::default()), config);
    let sessions = StreamableHttpService::new(new, Arc::new(manager), in_sessions);
    let serve = async move |request: Request| {
        let is_message = request.method() == Method::POST && is_json(&request);
        let (request, way) = match way(request).await {
            Ok(found) => found,
            Err(refused) if is_message => return in_json_rpc(refused).await,
            Err(refused) => return refused,
        };
        let is_stream = request.method() == Method::GET;
        let response = match way {
            Way::Alone => alone.handle(request).await.map(Body::new),
            Way::Session if is_stream => {
                // This stream carries the messages that are not part of the answer to a request. The stream must end
                // when the daemon ends. Otherwise the daemon would wait for the stream and never end.
                let ended = ending.clone().cancelled_owned();
                let open = sessions.handle(request).await.map(Body::new);
                open.map(|body| Body::from_stream(body.into_data_stream().take_until(ended)))
            }
            Way::Session => sessions.handle(request).await.map(Body::new),
        };
        if is_message { in_json_rpc(response).await } else { response }
    };
    Router::new().route("/mcp", any(serve))
}

/// How a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Alone,
    Session,
}

/// Decides how a request is served. Returns an answer instead if the request is not served at all.
async fn way(request: Request) -> Result<(Request, Way), Response> {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > LARGEST_REQUEST) {
        // The SDK would read the body up to the limit before it refuses the body.
        let said = format!("the request has more than {LARGEST_REQUEST} bytes");
        return Err((StatusCode::PAYLOAD_TOO_LARGE, said).into_response());
    }
    if request.headers().contains_key(SESSION) {
        return Ok((request, Way::Session));
    }
    if request.method() != Method::POST || length.is_none_or(|length| length > LARGEST_BEGINNING) {
        return Ok((request, Way::Alone));
    }
    let (head, body) = request.into_parts();
    let body = match to_bytes(body, LARGEST_BEGINNING).await {
        Ok(body) => body,
        Err(error) => {
            return Err(
                (StatusCode::BAD_REQUEST, format!("the request ended early: {error}")).into_response()
            );
        }
    };
    let way = if can_ask(&body) { Way::Session } else { Way::Alone };
    Ok((Request::from_parts(head, Body::from(body)), way))
}

/// Returns whether a request announces that its body is JSON.
fn is_json(request: &Request) -> bool {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    MimeType::parse(kind).is_some_and(|kind| kind == "application/json")
}

/// If the SDK has refused a JSON body, turns its response into an error of JSON-RPC. The SDK's own response is plain
/// text. If the SDK cannot parse the body, it even returns the status 415, as if the content type were wrong.
async fn in_json_rpc(response: Response) -> Response {
    let (status, code) = match response.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (StatusCode::BAD_REQUEST, PARSE_ERROR),
        StatusCode::PAYLOAD_TOO_LARGE => (StatusCode::PAYLOAD_TOO_LARGE, INVALID_REQUEST),
        _ => return response,
    };
    // The SDK has the whole text in memory, so the read cannot fail. Even with an empty text, the error code would say
    // what is wrong.
    let said = to_bytes(response.into_body(), LARGEST_REFUSAL).await.unwrap_or_default();
    let message = String::from_utf8_lossy(&said);
    let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}});
    (status, Json(error)).into_response()
}

/// Returns whether a message is the first message of a client that can ask its user.
fn can_ask(message: &Bytes) -> bool {
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    message["method"] == "initialize" && message["params"]["capabilities"]["elicitation"].is_object()
}

/// A session store that creates lost sessions again. It stores no data. All it must know is that the client can ask its
/// user, and this is true of every client with a session.
struct Remade;

impl SessionStore for Remade {
    fn load<'this, 'id, 'future>(
        &'this self,
        _: &'id str,
    ) -> Pin<Box<dyn Future<Output = Result<Option<SessionState>, SessionStoreError>> + Send + 'future>>
    where
        'this: 'future,
        'id: 'future,
        Self: 'future,
    {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        let client = Implementation::new("unknown", "0");
        // The protocol has questions to the user since the version 2025-06-18. Later versions do not change the
        // features that this server uses.
        let began = InitializeRequestParams::new(capabilities, client)
            .with_protocol_version(ProtocolVersion::V_2025_06_18);
        Box::pin(async { Ok(Some(SessionState::new(began))) })
    }

    fn store<'this, 'id, 'state, 'future>(
        &'this self,
        _: &'id str,
        _: &'state SessionState,
    ) -> Pin<Box<dyn Future<Output = Result<(), SessionStoreError>> + Send + 'future>>
    where
        'this: 'future,
        'id: 'future,
        'state: 'future,
        Self: 'future,
    {
        Box::pin(async { Ok(()) })
    }

    fn delete<'this, 'id, 'future>(
        &'this self,
        _: &'id str,
    ) -> Pin<Box<dyn Future<Output = Result<(), SessionStoreError>> + Send + 'future>>
    where
        'this: 'future,
        'id: 'future,
        Self: 'future,
    {
        Box::pin(async { Ok(()) })
    }
}
