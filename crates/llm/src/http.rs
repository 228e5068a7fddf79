//! Calls chat models over HTTP.

mod transport;

use crate::assemble::{Assembler, assemble_whole};
use crate::chat::{CallError, ChatModel, FailureKind, Reply, Request};
use crate::classify::{Failure, not_an_answer};
use crate::client::{SetupError, http_client};
use crate::endpoint::{Endpoint, Stream, Timeouts};
use crate::estimate::estimate_prompt_tokens;
use crate::scrub::scrub;
use crate::target::Target;
use crate::timing::{Late, Stages};
use crate::wire::{Body, stream_of};
use async_openai::Client;
use async_openai::error::OpenAIError;
use futures::StreamExt;
use futures::future::BoxFuture;
use secrecy::SecretString;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
pub(crate) use transport::network_error;
use transport::{Cut, Transport};

/// Calls chat models behind HTTP servers that speak Chat Completions.
///
/// One instance serves all endpoints, which share its connections. A call is one attempt. The endpoint's timeouts limit
/// how long the call takes. An answer may have at most 32 MiB.
#[derive(Clone, Debug)]
pub struct HttpModel {
    /// One client for each connect timeout, because `reqwest` sets that timeout for a whole client.
    clients: Arc<Mutex<HashMap<Duration, reqwest::Client>>>,
}

impl HttpModel {
    /// Sets up the client for the default connect timeout. Connects to nothing yet.
    ///
    /// # Errors
    ///
    /// Fails if the system's TLS cannot be set up.
    pub fn new() -> Result<Self, SetupError> {
        let usual = Timeouts::default().connect;
        let clients = HashMap::from([(usual, http_client(usual)?)]);
        Ok(Self { clients: Arc::new(Mutex::new(clients)) })
    }

    fn client(&self, connect: Duration) -> Result<reqwest::Client, CallError> {
        // A panic elsewhere cannot leave a half-built client in the map.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&connect) {
            return Ok(client.clone());
        }
        let client = http_client(connect).map_err(|error| CallError {
            kind: FailureKind::Misconfigured,
            message: error.to_string(),
            status: None,
            retry_after: None,
        })?;
        clients.insert(connect, client.clone());
        Ok(client)
    }

    async fn attempt(&self, endpoint: &Endpoint, request: &Request) -> Result<Reply, CallError> {
        let target = Target::resolve(endpoint, |name| std::env::var(name).ok())?;
        let secrets: Arc<[SecretString]> = target.secrets.clone().into();
        let stream = stream_of(endpoint);
        let cut = Arc::new(OnceLock::new());
        let exchange = Exchange {
            prompt_tokens: estimate_prompt_tokens(request),
            secrets: secrets.clone(),
            cut: cut.clone(),
        };
        let body = Body::new(request, endpoint).to_json();
        let body = body.map_err(|error| exchange.unsent(&error.to_string()))?;
        let client = self.client(endpoint.timeouts.connect)?;
        let (connect, stages) = (endpoint.timeouts.connect, Stages::begin(endpoint));
        let transport =
            Transport { client: client.clone(), stream, secrets, cut, body: body.into(), connect, stages };
        let client = Client::build(client, target).with_http_service(transport);
        match stream {
            Stream::Streamed => exchange.streamed(&client).await,
            Stream::Whole => exchange.whole(&client).await,
        }
    }
}

impl ChatModel for HttpModel {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let attempt = tokio::time::timeout(endpoint.timeout, self.attempt(endpoint, request));
            attempt.await.unwrap_or_else(|_| {
                let Failure { kind, message } = Late::WholeCall(endpoint.timeout).failure();
                Err(CallError { kind, message, status: None, retry_after: None })
            })
        })
    }
}

/// An empty body for the library `async-openai`. The transport replaces it with the real body. The library must not
/// write the real body: its buffer doubles each time it is full, so it would copy megabytes of media again and
/// again.
const IN_TRANSPORT: () = ();

/// The data that is needed to read the answer to one request or to report a failure.
struct Exchange {
    prompt_tokens: u64,
    secrets: Arc<[SecretString]>,
    cut: Arc<OnceLock<Cut>>,
}

impl Exchange {
    async fn streamed(&self, client: &Client<Target>) -> Result<Reply, CallError> {
        let opened = client.chat().create_stream_byot::<_, Value>(IN_TRANSPORT).await;
        let mut pieces = opened.map_err(|error| self.failed(error))?;
        let mut assembler = Assembler::default();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| self.failed(error))?;
            if let Err(failure) = assembler.push(piece) {
                let rescued = assembler.rescue(&failure, self.prompt_tokens);
                return rescued.ok_or_else(|| self.in_answer(failure));
            }
        }
        assembler.finish(self.prompt_tokens).map_err(|failure| self.in_answer(failure))
    }

    async fn whole(&self, client: &Client<Target>) -> Result<Reply, CallError> {
        let answer =
            client.chat().create_byot::<_, Value>(IN_TRANSPORT).await.map_err(|error| self.failed(error))?;
        assemble_whole(answer, self.prompt_tokens).map_err(|failure| self.in_answer(failure))
    }

    /// Converts an error of the library `async-openai` into a call error.
    fn failed(&self, error: OpenAIError) -> CallError {
        // The transport recorded the true cause. The library's error contains less of it.
        if let Some(cut) = self.cut.get() {
            return self.in_answer(cut.failure());
        }
        match error {
            OpenAIError::Boxed(error) => match error.downcast::<CallError>() {
                Ok(error) => *error,
                Err(error) => self.unsent(&error.to_string()),
            },
            OpenAIError::Reqwest(error) => network_error(&error, &self.secrets),
            OpenAIError::JSONDeserialize(_, body) => self.in_answer(not_an_answer(&body)),
            OpenAIError::StreamError(error) => self.in_answer(not_an_answer(&error.to_string())),
            other => self.unsent(&other.to_string()),
        }
    }

    /// Describes a request that could not be sent.
    fn unsent(&self, message: &str) -> CallError {
        CallError {
            kind: FailureKind::Refused,
            message: scrub(message, &self.secrets),
            status: None,
            retry_after: None,
        }
    }

    /// Describes a failure inside an answer that began with a success status.
    fn in_answer(&self, failure: Failure) -> CallError {
        CallError {
            kind: failure.kind,
            message: scrub(&failure.message, &self.secrets),
            status: Some(200),
            retry_after: None,
        }
    }
}
