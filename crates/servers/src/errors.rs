//! Tells why a connection failed, from the errors of the libraries.

use rmcp::service::ClientInitializeError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;

/// Returns the message of an error with those of its sources.
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

/// Tells why a message could not be sent, without the name of the transport.
pub(crate) fn in_transport(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref() {
        // This variant does not give its source.
        Some(StreamableHttpError::<reqwest::Error>::Client(error)) => chain(error),
        Some(_) | None => chain(error.error.as_ref()),
    }
}

/// Tells why a handshake failed.
pub(crate) fn in_handshake(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => in_transport(error),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_handshake(fallback),
        other => chain(other),
    }
}
