//! Turns the errors of the MCP and HTTP libraries into reasons that people can read.

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;

/// Returns the message of an error, followed by the messages of its sources.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        let more = next.to_string();
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        source = next.source();
    }
    message
}

/// Returns the reason why a message could not be sent, without the technical name of the transport.
pub(crate) fn in_transport(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref() {
        // This variant contains an error, but does not return it as its source. So `chain` would not find the error.
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => chain(error),
        Some(_) | None => chain(error.error.as_ref()),
    }
}

/// Returns the reason why a handshake failed.
pub(crate) fn in_handshake(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => in_transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_handshake(fallback),
        other => chain(other),
    }
}
