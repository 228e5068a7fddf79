//! Tests with a server that does not read the answers to its requests, and with a server that starts slowly.

use super::*;
use rmcp::model::{ClientResult, EmptyResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
use serde_json::json;
use std::convert::Infallible;

/// A transport that receives requests without end, and never finishes sending an answer.
struct Asking;

impl Transport<RoleClient> for Asking {
    type Error = Infallible;

    fn send(
        &mut self,
        _: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        std::future::pending()
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        // Without this line, a loop that drops all messages would never let other tasks run.
        tokio::task::yield_now().await;
        Some(serde_json::from_value(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).unwrap())
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[tokio::test]
async fn answers_that_a_server_does_not_read_are_bounded() {
    let unpaced = Bounds { messages: u32::MAX, ..Bounds::default() };
    let mut paced = Paced::new(Asking, &unpaced, CancellationToken::new());
    let mut unsent = Vec::new();
    while unsent.len() <= 10 * MOST_UNSENT {
        let mut receiving = Box::pin(paced.receive());
        // Each poll receives at most one message. If `receive` drops the message, the poll returns `Pending`, and the
        // test polls once more.
        let received = (0..100).find_map(|_| {
            let mut context = Context::from_waker(std::task::Waker::noop());
            match receiving.as_mut().poll(&mut context) {
                Poll::Ready(message) => message,
                Poll::Pending => None,
            }
        });
        drop(receiving);
        if received.is_none() {
            break;
        }
        let answer = ClientResult::EmptyResult(EmptyResult {});
        unsent.push(Box::pin(paced.send(ClientJsonRpcMessage::response(answer, RequestId::Number(1)))));
    }
    assert_eq!(unsent.len(), MOST_UNSENT);
    unsent.clear();
    assert!(paced.receive().await.is_some());
}

/// The transport of a server of the previous generation that starts slowly. The server reads nothing until the library
/// has sent the second request of the handshake. Then it answers both requests, in order.
#[derive(Default)]
struct Slow {
    asked: Vec<RequestId>,
    answered: usize,
}

impl Transport<RoleClient> for Slow {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = message {
            self.asked.push(request.id);
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let answer = match (self.asked.as_slice(), self.answered) {
            ([discover, _], 0) => json!({
                "jsonrpc": "2.0", "id": discover, "error": {"code": -32601, "message": "Method not found"}
            }),
            ([_, initialize], 1) => json!({"jsonrpc": "2.0", "id": initialize, "result": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "slow", "version": "1"}
            }}),
            _ => std::future::pending().await,
        };
        self.answered += 1;
        Some(serde_json::from_value(answer).unwrap())
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_starts_slowly_is_connected_at_the_first_attempt() {
    let mode = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    let paced = Paced::new(Slow::default(), &Bounds::default(), CancellationToken::new());
    let connected = Box::pin(().serve_with_lifecycle(paced, mode)).await;
    assert!(connected.is_ok(), "{:?}", connected.err());
}
