//! Calls a tool and reads resources over the connection to a server.

use crate::bounds::Bounds;
use crate::errors::in_transport;
use crate::text::on_one_line;
use polity_hands::call::{Arguments, Progress};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ProgressNotificationParam,
    ProgressToken, ReadResourceRequest, ReadResourceRequestParams, ResourceContents, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

/// Why a call has no result. The model reads the message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the server is not running; it is started again as soon as possible")]
    NotConnected,
    #[error("the server was removed from the configuration, or replaced; its tools may have changed")]
    Removed,
    #[error("the call was stopped, because nobody waits for it any more")]
    Cancelled,
    #[error("no answer within {} ms; the call may have had its effect", .0.as_millis())]
    TimedOut(Duration),
    #[error("the connection ended before the answer; the call may have had its effect")]
    Closed,
    #[error("the answer is longer than {0} bytes; ask for less")]
    TooLong(usize),
    #[error("the server asks for input of a person, which nobody can give here")]
    WantsInput,
    #[error("{0}")]
    Answered(String),
    #[error("the server answered something that is not a result of a tool")]
    Nonsense,
    #[error("the server answered something that is not a resource")]
    NoResource,
}

/// The receivers of progress reports: one for each running call.
#[derive(Clone)]
pub(crate) struct Sinks {
    running: Arc<Mutex<HashMap<ProgressToken, Progress>>>,
    line_chars: usize,
}

impl Sinks {
    pub(crate) fn new(bounds: &Bounds) -> Self {
        Self { running: Arc::default(), line_chars: bounds.line_chars }
    }

    /// Passes a progress report of the server on to the receiver in `running` that belongs to the same call.
    pub(crate) async fn report(&self, report: ProgressNotificationParam) {
        let sink = self.running.lock().await.get(&report.progress_token).cloned();
        if let Some(sink) = sink {
            let words = match (report.message, report.total) {
                (Some(message), _) => message,
                (None, Some(total)) => format!("{} of {total}", report.progress),
                (None, None) => report.progress.to_string(),
            };
            sink.report(&on_one_line(&words, self.line_chars));
        }
    }
}

/// An open connection to a server.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    sinks: Sinks,
    /// Number of messages that were dropped because they were too long.
    too_long: watch::Receiver<u64>,
    /// Each call that waits for an answer holds a clone, so the reference count tells how many calls are waiting.
    waiting: Arc<()>,
    /// Cancelled when the connection has ended, before the calls that wait for an answer fail.
    closed: CancellationToken,
    /// Cancelled when the server does not read polity's messages. The Tokio task of the server then ends the
    /// connection.
    stuck: CancellationToken,
    bounds: Bounds,
}

impl Connection {
    pub(crate) fn new(
        peer: Peer<RoleClient>,
        sinks: Sinks,
        too_long: watch::Receiver<u64>,
        closed: CancellationToken,
        stuck: CancellationToken,
        bounds: Bounds,
    ) -> Self {
        Self { peer, sinks, too_long, waiting: Arc::new(()), closed, stuck, bounds }
    }

    /// Returns whether the connection has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed.is_cancelled()
    }

    /// Calls a tool. If the call ends without an answer, tells the server that the result is no longer needed.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Arguments,
        progress: Progress,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<CallToolResult, Failure> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(request));
        match self.ask(request, progress, cancel, timeout).await? {
            ServerResult::CallToolResult(result) => Ok(result),
            ServerResult::InputRequiredResult(_) => Err(Failure::WantsInput),
            _ => Err(Failure::Nonsense),
        }
    }

    /// Returns whether the server offers resources. Only then can [`Self::read`] succeed.
    pub(crate) fn offers_resources(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Reads a resource of the server.
    pub(crate) async fn read(
        &self,
        uri: &str,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
        let request = ClientRequest::ReadResourceRequest(request);
        match self.ask(request, Progress::none(), cancel, timeout).await? {
            ServerResult::ReadResourceResult(result) => Ok(result.contents),
            ServerResult::InputRequiredResult(_) => Err(Failure::WantsInput),
            _ => Err(Failure::NoResource),
        }
    }

    async fn ask(
        &self,
        request: ClientRequest,
        progress: Progress,
        cancel: &CancellationToken,
        timeout: Duration,
    ) -> Result<ServerResult, Failure> {
        let answer = async {
            let mut pending = self.send(request, progress).await?;
            self.answer(&mut pending).await
        };
        tokio::select! {
            answer = answer => answer,
            () = cancel.cancelled() => Err(Failure::Cancelled),
            () = tokio::time::sleep(timeout) => Err(Failure::TimedOut(timeout)),
        }
    }

    async fn send(&self, request: ClientRequest, progress: Progress) -> Result<Pending, Failure> {
        let too_long = {
            let mut too_long = self.too_long.clone();
            too_long.mark_unchanged();
            too_long
        };
        // Hold this lock until the receiver of this call is registered. `report` needs the same lock, so it cannot look
        // for the receiver of this call too early.
        let mut running = self.sinks.running.lock().await;
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(failure)?;
        running.insert(handle.progress_token.clone(), progress);
        Ok(Pending {
            handle: Some(handle),
            sinks: self.sinks.clone(),
            too_long,
            waiting: Arc::clone(&self.waiting),
            stuck: self.stuck.clone(),
            patience: self.bounds.unread,
        })
    }

    async fn answer(&self, pending: &mut Pending) -> Result<ServerResult, Failure> {
        loop {
            let Some(handle) = pending.handle.as_mut() else { return Err(Failure::Closed) };
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    pending.answered().await;
                    return answer.unwrap_or(Err(ServiceError::TransportClosed)).map_err(failure);
                }
                Ok(()) = pending.too_long.changed() => {
                    // A dropped message does not tell to which call it belongs. If only one call is waiting, the
                    // message was the answer to that call. The reference count is 2 then, because the connection itself
                    // also holds a reference.
                    if Arc::strong_count(&pending.waiting) == 2 {
                        return Err(Failure::TooLong(self.bounds.message_bytes));
                    }
                }
            }
        }
    }
}

/// A call that is waiting for its answer. When this value is dropped, polity tells the server to cancel the call.
struct Pending {
    handle: Option<RequestHandle<RoleClient>>,
    sinks: Sinks,
    too_long: watch::Receiver<u64>,
    waiting: Arc<()>,
    stuck: CancellationToken,
    /// Maximum time for the server to read the message that cancels the call.
    patience: Duration,
}

impl Pending {
    async fn answered(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.sinks.running.lock().await.remove(&handle.progress_token);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        let (sinks, stuck, patience) = (self.sinks.clone(), self.stuck.clone(), self.patience);
        // Outside a Tokio runtime, the connection does not exist any more, so there is nothing to cancel.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                sinks.running.lock().await.remove(&handle.progress_token);
                let told = handle.cancel(Some("nobody waits for the result any more".to_owned()));
                if tokio::time::timeout(patience, told).await.is_err() {
                    stuck.cancel();
                }
            });
        }
    }
}

fn failure(error: ServiceError) -> Failure {
    match error {
        ServiceError::McpError(error) => Failure::Answered(on_one_line(&error.message, 4_000)),
        ServiceError::TransportSend(error) => Failure::Answered(on_one_line(&in_transport(&error), 1_000)),
        ServiceError::TransportClosed => Failure::Closed,
        _ => Failure::Nonsense,
    }
}
