//! Sends one request to the server and receives the response, for the library `async-openai`.
//!
//! The library has three faults. It loses the status and the headers of failures. It accepts any text as a stream. It
//! reads a stream into a queue without a bound, as fast as the server sends the stream. So the transport handles
//! failures itself, and keeps the body of the answer for `Exchange` (in the module `http`). It gives the library an
//! empty answer.

use crate::chat::{CallError, FailureKind};
use crate::classify::{Failure, MAX_ANSWER, MAX_PARSED, classify, is_html, too_large};
use crate::endpoint::Stream;
use crate::network::{causes, network_error};
use crate::retry_after::retry_after;
use crate::scrub::scrub;
use crate::timing::{Late, Stages};
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use polity_bounds::Weigher;
use reqwest::Response;
use secrecy::SecretString;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

/// Maximum number of bytes that are read from the body of a failed response. This is enough for a complete JSON error.
const MAX_FAILURE: usize = 64 * 1024;

/// Sends requests without retrying anything.
#[derive(Clone)]
pub(super) struct Transport {
    pub(super) client: reqwest::Client,
    pub(super) stream: Stream,
    pub(super) secrets: Arc<[SecretString]>,
    /// The request's body, as JSON.
    pub(super) body: Bytes,
    /// The place into which the transport puts the answer. The type `Exchange` takes the answer from there.
    pub(super) slot: Slot,
    /// The client's time limit for making a connection. If making the connection takes longer, the message of the error
    /// names this limit.
    pub(super) connect: Duration,
    pub(super) stages: Stages,
}

/// The place of the answer, from the moment its head has arrived until `Exchange` takes the answer.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Option<Answered>>>);

impl Slot {
    fn put(&self, answered: Answered) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answered);
    }

    pub(super) fn take(&self) -> Option<Answered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A successful answer.
pub(super) enum Answered {
    /// A stream of events. Its bytes are not read faster than `Exchange` takes its events.
    Events(Pieces),
    /// A whole body. It may report a failure, so the answer also contains the time that the server asks the caller to
    /// wait.
    Whole(Bytes, Option<Duration>),
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
            Self::TooLarge => too_large(),
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
            transport.slot.put(transport.receive(response).await.map_err(boxed)?);
            Ok(Response::from(http::Response::new("null")))
        })
    }
}

fn boxed(error: CallError) -> OpenAIError {
    OpenAIError::Boxed(Box::new(error))
}

impl Transport {
    /// Receives an answer. If the request asked for a stream and the server sends one, the answer is a stream of
    /// events. Otherwise it is a whole body. Fails if the status is not a success.
    async fn receive(&self, response: Response) -> Result<Answered, CallError> {
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = content_type.is_some_and(|value| value.to_ascii_lowercase().contains("event-stream"));
        if self.stream == Stream::Streamed && is_stream {
            return Ok(Answered::Events(Pieces::coming(response, self.stages)));
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = match self.read(response, MAX_ANSWER).await {
            Read::All(body) => body,
            Read::Cut(_, cut) => return Err(self.failed(cut.failure(), status, &headers)),
        };
        // The content type may be wrong. So if the body is no JSON object, check whether it is a stream after all.
        if self.stream == Stream::Streamed && !body.trim_ascii_start().starts_with(b"{") {
            let text = String::from_utf8_lossy(&body);
            let text = text.trim_start_matches('\u{feff}');
            if !is_html(text) && text.lines().any(|line| line.starts_with("data:")) {
                return Ok(Answered::Events(Pieces::come(body, self.stages)));
            }
        }
        Ok(Answered::Whole(body, retry_after(&headers, SystemTime::now())))
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

    /// Reads a body up to `limit` bytes. Also stops if the body would take more memory than [`MAX_PARSED`] as JSON.
    async fn read(&self, response: Response, limit: usize) -> Read {
        let mut pieces = Pieces::coming(response, self.stages);
        let (mut body, mut weigher) = (BytesMut::new(), Weigher::default());
        loop {
            match pieces.next().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                    body.extend_from_slice(chunk.get(..limit - body.len()).unwrap_or_default());
                    return Read::Cut(body.freeze(), Cut::TooLarge);
                }
                Ok(Some(chunk)) => {
                    body.extend_from_slice(&chunk);
                    if weigher.add(&chunk) > MAX_PARSED {
                        return Read::Cut(body.freeze(), Cut::TooLarge);
                    }
                }
                Ok(None) => return Read::All(body.freeze()),
                Err(cut) => return Read::Cut(body.freeze(), cut),
            }
        }
    }

    /// Describes a request that got no response. If the time limit for making the connection ran out, the message names
    /// the setting to change.
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

/// The pieces of a body.
pub(super) struct Pieces {
    /// A piece that has already arrived; empty if there is none.
    first: Bytes,
    response: Option<Response>,
    stages: Stages,
    /// Number of bytes that may still arrive before the body is too large.
    left: usize,
}

impl Pieces {
    /// Creates the pieces of a body that is still arriving.
    fn coming(response: Response, stages: Stages) -> Self {
        Self { first: Bytes::new(), response: Some(response), stages, left: MAX_ANSWER }
    }

    /// Creates the only piece of a body that has arrived completely.
    fn come(body: Bytes, stages: Stages) -> Self {
        Self { first: body, response: None, stages, left: MAX_ANSWER }
    }

    /// Returns the next piece, or `None` at the end of the body. Fails if the body grows too large.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Cut> {
        if !self.first.is_empty() {
            return Ok(Some(std::mem::take(&mut self.first)));
        }
        let Some(response) = &mut self.response else { return Ok(None) };
        let chunk = self.stages.wait(response.chunk()).await.map_err(Cut::Late)?;
        let Some(chunk) = chunk.map_err(|error| Cut::Broken(causes(&error)))? else {
            return Ok(None);
        };
        self.stages.came(chunk.len());
        self.left = self.left.checked_sub(chunk.len()).ok_or(Cut::TooLarge)?;
        Ok(Some(chunk))
    }
}

/// A body that was read completely, or up to the place where it was cut off.
enum Read {
    All(Bytes),
    Cut(Bytes, Cut),
}
