//! Tests with a server that sends requests and does not read the answers.

use super::*;
use rmcp::model::{ClientResult, EmptyResult, RequestId};
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
