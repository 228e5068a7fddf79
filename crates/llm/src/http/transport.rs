//! Sends one request to the server and receives the response, for the library `async-openai`.
//!
//! The library loses the status and the headers of failures, and it accepts any text as a stream. So this transport
//! handles failures itself, and gives the library only responses that can be an answer.

use crate::chat::{CallError, FailureKind};
use crate::classify::{Failure, classify, error_in, is_html, not_an_answer};
use crate::endpoint::Stream;
use crate::retry_after::retry_after;
use crate::scrub::scrub;
use crate::timing::{Late, Stages};
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream;
use http::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::Response;
use secrecy::SecretString;
use serde_json::Value;
use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

/// Longest answer, in bytes.
const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// Limit for the bytes that are read from the body of a failure: enough for complete JSON.
const MAX_FAILURE: usize = 64 * 1024;

/// Sends requests without retrying anything.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) client: reqwest::Client,
    pub(super) stream: Stream,
    pub(super) secrets: Arc<[SecretString]>,
    /// The request's body, as JSON.
    pub(super) body: Bytes,
    /// Why the body of the answer was cut off. `Exchange` reads this field, because `async-openai` does not pass
    /// the reason on.
    pub(super) cut: Arc<OnceLock<Cut>>,
    /// The client's time limit for making a connection. The error names this limit.
    pub(super) connect: Duration,
    pub(super) stages: Stages,
}

/// Why a body was not read to its end.
#[derive(Debug)]
pub(super) enum Cut {
    /// The body is too large.
    TooLarge,
    /// The connection broke.
    Broken(String),
    /// A time limit ran out.
    Late(Late),
}

impl Cut {
    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::TooLarge => Failure {
                kind: FailureKind::NotAnAnswer,
                message: format!("an answer of more than {} MiB", MAX_ANSWER / 1024 / 1024),
            },
            Self::Broken(message) => Failure { kind: FailureKind::BrokenOff, message: message.clone() },
            Self::Late(late) => late.failure(),
        }
    }
}

impl tower::Service<HttpRequestFactory> for Transport {
    type Response = Response;
    type Error = OpenAIError;
    type Future = BoxFuture<'static, Result<Response, OpenAIError>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        let transport = self.clone();
        Box::pin(async move {
            let mut request = request.build().await?;
            *request.body_mut() = Some(transport.body.clone().into());
            let sent = transport.stages.wait(transport.client.execute(request)).await;
            let sent = sent.map_err(|late| boxed(transport.too_late(late)))?;
            let response = sent.map_err(|error| boxed(transport.unsent(&error)))?;
            transport.receive(response).await.map_err(boxed)
        })
    }
}

fn boxed(error: CallError) -> OpenAIError {
    OpenAIError::Boxed(Box::new(error))
}

impl Transport {
    /// Passes a successful response on, as a stream if the request asked for a stream. Fails if the status is not a
    /// success.
    async fn receive(&self, response: Response) -> Result<Response, CallError> {
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = content_type.is_some_and(|value| value.to_ascii_lowercase().contains("event-stream"));
        match self.stream {
            Stream::Whole => Ok(self.bounded(response)),
            Stream::Streamed if is_stream => Ok(self.bounded(response)),
            Stream::Streamed => self.streamed_anyway(response).await,
        }
    }

    /// Passes an answer on, but cuts it off if it grows too large. Records in `cut` why it ended early.
    fn bounded(&self, response: Response) -> Response {
        let cut = self.cut.clone();
        let pieces = Pieces { response, stages: self.stages };
        let chunks = stream::unfold((pieces, 0_usize), move |(mut pieces, so_far)| {
            let cut = cut.clone();
            async move {
                let ended = match pieces.next().await {
                    Ok(None) => return None,
                    Ok(Some(chunk)) => {
                        let total = so_far.saturating_add(chunk.len());
                        if total <= MAX_ANSWER {
                            return Some((Ok(chunk), (pieces, total)));
                        }
                        Cut::TooLarge
                    }
                    Err(ended) => ended,
                };
                let message = ended.failure().message;
                // If a reason was recorded before, `set` keeps that reason.
                let _ = cut.set(ended);
                Some((Err(std::io::Error::other(message)), (pieces, so_far)))
            }
        });
        answer_of(reqwest::Body::wrap_stream(chunks))
    }

    /// Handles a response to a streamed request whose content type is not the type of a stream. It may still be a
    /// stream, or a whole answer, or not a model's answer at all.
    async fn streamed_anyway(&self, response: Response) -> Result<Response, CallError> {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let fail = |failure: Failure| self.failed(failure, status, &headers);
        let body = match self.read(response, MAX_ANSWER).await {
            Read::All(body) => body,
            Read::Cut(_, cut) => return Err(fail(cut.failure())),
        };
        let text = String::from_utf8_lossy(&body);
        if let Ok(answer) = serde_json::from_slice::<Value>(&body) {
            if let Some(failure) = error_in(&answer) {
                return Err(fail(failure));
            }
            if answer.get("choices").is_none() {
                return Err(fail(not_an_answer(&text)));
            }
            // The server does not stream: turn its whole answer into a stream of one event.
            return Ok(answer_of(format!("data: {answer}\n\n")));
        }
        if !is_html(&text) && text.lines().any(|line| line.starts_with("data:")) {
            return Ok(answer_of(body));
        }
        Err(fail(not_an_answer(&text)))
    }

    /// Classifies a response with a failing status.
    async fn refused(&self, response: Response) -> CallError {
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_redirection() {
            let location =
                headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("another address");
            let message =
                format!("the server redirects to {location}: use the address it redirects to as baseURL");
            return self.failed(
                Failure { kind: FailureKind::Misconfigured, message },
                status.as_u16(),
                &headers,
            );
        }
        let (Read::All(body) | Read::Cut(body, _)) = self.read(response, MAX_FAILURE).await;
        let failure = classify(status.as_u16(), &String::from_utf8_lossy(&body));
        self.failed(failure, status.as_u16(), &headers)
    }

    async fn read(&self, response: Response, limit: usize) -> Read {
        let mut pieces = Pieces { response, stages: self.stages };
        let mut body = BytesMut::new();
        loop {
            match pieces.next().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                    body.extend_from_slice(chunk.get(..limit - body.len()).unwrap_or_default());
                    return Read::Cut(body.freeze(), Cut::TooLarge);
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return Read::All(body.freeze()),
                Err(cut) => return Read::Cut(body.freeze(), cut),
            }
        }
    }

    /// Describes a request that got no response. Names the setting to change if the connection timed out.
    fn unsent(&self, error: &reqwest::Error) -> CallError {
        let mut failure = network_error(error, &self.secrets);
        if error.is_connect() && error.is_timeout() {
            failure.message = format!(
                "no connection within {:?}: if the server is only slow, raise timeouts.connectMs of the service",
                self.connect
            );
        }
        failure
    }

    fn too_late(&self, late: Late) -> CallError {
        let Failure { kind, message } = late.failure();
        CallError { kind, message: scrub(&message, &self.secrets), status: None, retry_after: None }
    }

    fn failed(&self, failure: Failure, status: u16, headers: &HeaderMap) -> CallError {
        CallError {
            kind: failure.kind,
            message: scrub(&failure.message, &self.secrets),
            status: Some(status),
            retry_after: retry_after(headers, SystemTime::now()),
        }
    }
}

/// The pieces of a body while it arrives.
struct Pieces {
    response: Response,
    stages: Stages,
}

impl Pieces {
    /// Returns the next piece, or `None` at the end of the body.
    async fn next(&mut self) -> Result<Option<Bytes>, Cut> {
        let chunk = self.stages.wait(self.response.chunk()).await.map_err(Cut::Late)?;
        let Some(chunk) = chunk.map_err(|error| Cut::Broken(causes(&error)))? else {
            return Ok(None);
        };
        self.stages.came(chunk.len());
        Ok(Some(chunk))
    }
}

/// A body that was read completely, or up to the place where it was cut off.
enum Read {
    All(Bytes),
    Cut(Bytes, Cut),
}

/// Builds the response for `async-openai`, which needs no headers.
fn answer_of(body: impl Into<reqwest::Body>) -> Response {
    Response::from(http::Response::new(body.into()))
}

/// Converts a network error of a request that got no response.
pub(crate) fn network_error(error: &reqwest::Error, secrets: &[SecretString]) -> CallError {
    let kind = if error.is_builder() {
        FailureKind::Misconfigured
    } else if error.is_connect() {
        FailureKind::Unreachable
    } else if error.is_timeout() {
        FailureKind::TimedOut
    } else {
        FailureKind::BrokenOff
    };
    CallError { kind, message: scrub(&causes(error), secrets), status: None, retry_after: None }
}

/// Returns the innermost cause, which tells what happened. The outer errors only tell that something failed.
fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
