//! Calls chat models over HTTP.

mod explain;
mod transport;

use crate::assemble::{Assembler, assemble_whole};
use crate::chat::{CallError, ChatModel, FailureKind, Reply, Request};
use crate::classify::{Failure, MAX_PARSED, not_an_answer, too_large};
use crate::client::{Roots, http_client};
use crate::endpoint::Endpoint;
use crate::estimate::estimate_prompt_tokens;
use crate::events::{Event, Splitter};
use crate::listen::Listener;
use crate::network::network_error;
use crate::scrub::{scrub, scrub_reply};
use crate::target::Target;
use crate::tell::Teller;
use crate::timing::{Late, Stages};
use crate::wire::{Body, stream_of};
use async_openai::Client;
use async_openai::error::OpenAIError;
use futures::future::BoxFuture;
use polity_bounds::{Budget, Full, Share, weigh};
use secrecy::SecretString;
use serde_json::Value;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use transport::{Answered, Pieces, Slot, Transport};

/// Calls chat models behind HTTP servers that speak Chat Completions.
///
/// One instance serves all endpoints, which share its connections. A call is one attempt. The endpoint's timeouts
/// limit how long the call takes. An answer may have at most 32 MiB. All answers that arrive at the same time may
/// take at most 256 MiB of memory together. This includes the lists of models with which failures are explained.
#[derive(Clone, Debug)]
pub struct HttpModel {
    answers: Budget,
    /// One client for each connect timeout, because the library `reqwest` can set this timeout only for a whole client.
    /// A client is built by the first call that needs it, so a start reads no root certificates.
    clients: Arc<Mutex<HashMap<(Duration, Roots), reqwest::Client>>>,
}

/// Maximum memory for all answers that arrive at the same time, in bytes.
const ALL_ANSWERS: usize = 256 * 1024 * 1024;
/// How long an answer waits for memory that other answers use. While the answer waits, nothing is read from its
/// server.
const MEMORY_WITHIN: Duration = Duration::from_secs(10);

impl Default for HttpModel {
    fn default() -> Self {
        Self { answers: Budget::new(ALL_ANSWERS), clients: Arc::default() }
    }
}

impl HttpModel {
    /// Returns the client for calls to an endpoint. Fails if the system's TLS cannot be set up.
    fn client(&self, endpoint: &Endpoint) -> Result<reqwest::Client, CallError> {
        let (connect, roots) = (endpoint.timeouts.connect, Roots::needed_for(&endpoint.base_url));
        // A panic elsewhere cannot leave a half-built client in the map.
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(connect, roots)) {
            return Ok(client.clone());
        }
        let client = http_client(connect, roots).map_err(|error| CallError {
            kind: FailureKind::Misconfigured,
            message: error.to_string(),
            status: None,
            retry_after: None,
        })?;
        clients.insert((connect, roots), client.clone());
        Ok(client)
    }

    async fn attempt(
        &self,
        endpoint: &Endpoint,
        request: &Request,
        listener: &dyn Listener,
    ) -> Result<Reply, CallError> {
        let target = Target::resolve(endpoint, |name| std::env::var(name).ok())?;
        let secrets: Arc<[SecretString]> = target.secrets.clone().into();
        let credentials = target.credentials.clone();
        let exchange = Exchange { prompt_tokens: estimate_prompt_tokens(request), secrets: secrets.clone() };
        let body = Body::new(request, endpoint).to_json();
        let body = body.map_err(|error| exchange.unsent(&error.to_string()))?;
        let client = self.client(endpoint)?;
        let transport = Transport {
            client: client.clone(),
            stream: stream_of(endpoint),
            secrets,
            slot: Slot::default(),
            body: body.into(),
            connect: endpoint.timeouts.connect,
            stages: Stages::begin(endpoint),
        };
        let answered = exchange.send(Client::build(client, target), transport).await?;
        let share =
            self.answers.take(0, MEMORY_WITHIN).await.map_err(|full| exchange.in_answer(crowded(full)))?;
        let mut reply = match answered {
            Answered::Events(pieces) => {
                exchange.streamed(pieces, &share, Teller::new(listener, &credentials)).await?
            }
            Answered::Whole(body, retry_after) => {
                let read = exchange.whole(&body, &share).await;
                read.map_err(|error| CallError { retry_after, ..error })?
            }
        };
        scrub_reply(&mut reply, &credentials);
        Ok(reply)
    }
}

impl ChatModel for HttpModel {
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let attempt = tokio::time::timeout(endpoint.timeout, self.attempt(endpoint, request, listener));
            let answered = attempt.await.unwrap_or_else(|_| {
                let Failure { kind, message } = Late::WholeCall(endpoint.timeout).failure();
                Err(CallError { kind, message, status: None, retry_after: None })
            });
            match answered {
                Ok(reply) => Ok(reply),
                Err(failure) => {
                    let client = self.client(endpoint)?;
                    Err(explain::explain(client, self.answers.clone(), endpoint, failure).await)
                }
            }
        })
    }
}

/// An empty body for the library `async-openai`. The transport replaces it with the real body. The library must not
/// write the real body. The library's buffer doubles each time it is full, so megabytes of media would be copied again
/// and again.
const IN_TRANSPORT: () = ();

/// The data that is needed to read the answer to one request or to report a failure.
struct Exchange {
    prompt_tokens: u64,
    secrets: Arc<[SecretString]>,
}

impl Exchange {
    /// Sends the request. The library writes the head of the request. The transport sends the request and keeps the
    /// answer in its slot.
    async fn send(&self, client: Client<Target>, transport: Transport) -> Result<Answered, CallError> {
        let slot = transport.slot.clone();
        let client = client.with_http_service(transport);
        client.chat().create_byot::<_, ()>(IN_TRANSPORT).await.map_err(|error| self.failed(error))?;
        slot.take().ok_or_else(|| self.unsent("the library has sent no request"))
    }

    async fn streamed(
        &self,
        mut pieces: Pieces,
        share: &Share,
        mut teller: Teller<'_>,
    ) -> Result<Reply, CallError> {
        let (mut splitter, mut assembler) = (Splitter::default(), Assembler::default());
        while let Some(piece) = pieces.next().await.map_err(|cut| self.in_answer(cut.failure()))? {
            teller.bytes();
            let mut rest = &*piece;
            self.take(share, splitter.buffered() + rest.len() + assembler.kept()).await?;
            while let Some(event) = splitter.next(&mut rest) {
                match take(&mut assembler, &event, &mut teller) {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => {
                        teller.finish();
                        return self.finished(assembler);
                    }
                    Err(failure) => {
                        let rescued = assembler.rescue(&failure, self.prompt_tokens);
                        return rescued.ok_or_else(|| self.in_answer(failure));
                    }
                }
            }
        }
        self.finished(assembler)
    }

    /// Reserves memory for the part of the answer that has arrived. `bytes` is the memory of the whole part, and
    /// includes what was reserved before.
    async fn take(&self, share: &Share, bytes: usize) -> Result<(), CallError> {
        share.grow(bytes, MEMORY_WITHIN).await.map_err(|full| self.in_answer(crowded(full)))
    }

    fn finished(&self, assembler: Assembler) -> Result<Reply, CallError> {
        assembler.finish(self.prompt_tokens).map_err(|failure| self.in_answer(failure))
    }

    async fn whole(&self, body: &[u8], share: &Share) -> Result<Reply, CallError> {
        self.take(share, weigh(body)).await?;
        let answer = parsed(body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body));
        let reply = answer.and_then(|answer| assemble_whole(answer, self.prompt_tokens));
        reply.map_err(|failure| self.in_answer(failure))
    }

    /// Converts an error of the library `async-openai` into a call error.
    fn failed(&self, error: OpenAIError) -> CallError {
        match error {
            OpenAIError::Boxed(error) => match error.downcast::<CallError>() {
                Ok(error) => *error,
                Err(error) => self.unsent(&error.to_string()),
            },
            OpenAIError::Reqwest(error) => network_error(&error, &self.secrets),
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

/// Describes the failure of an answer for which there is not enough memory.
fn crowded(full: Full) -> Failure {
    match full {
        Full::Always => too_large(),
        Full::Now => {
            let message =
                "no memory for the answer: too many large answers arrive at the same time".to_owned();
            Failure { kind: FailureKind::Passing, message }
        }
    }
}

/// Gives an event to the assembler. Returns `Break` for the event that ends the stream.
fn take(
    assembler: &mut Assembler,
    event: &Event,
    teller: &mut Teller<'_>,
) -> Result<ControlFlow<()>, Failure> {
    let data = event.data.trim_ascii();
    // Some servers send empty events, or events with the name `keepalive`, to keep the connection alive.
    if data.is_empty() || event.name == b"keepalive" {
        return Ok(ControlFlow::Continue(()));
    }
    if data == b"[DONE]" {
        return Ok(ControlFlow::Break(()));
    }
    assembler.push(parsed(data)?, teller)?;
    Ok(ControlFlow::Continue(()))
}

/// Parses JSON unless it would take too much memory.
fn parsed(json: &[u8]) -> Result<Value, Failure> {
    if weigh(json) > MAX_PARSED {
        return Err(too_large());
    }
    serde_json::from_slice(json).map_err(|_| not_an_answer(&String::from_utf8_lossy(json)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn clients_are_built_by_calls_and_plain_http_reads_no_root_certificates() {
        let model = HttpModel::default();
        let built = || model.clients.lock().unwrap().keys().copied().collect::<HashSet<_>>();
        assert_eq!(built(), HashSet::new());
        let local = Endpoint::new("http://127.0.0.1:9/v1", "m");
        let connect = local.timeouts.connect;
        for _ in 0..2 {
            model.client(&local).unwrap();
            assert_eq!(built(), HashSet::from([(connect, Roots::None)]));
        }
        model.client(&Endpoint::new("https://127.0.0.1:9/v1", "m")).unwrap();
        assert_eq!(built(), HashSet::from([(connect, Roots::None), (connect, Roots::Machine)]));
    }
}
