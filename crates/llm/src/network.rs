//! Describes errors of the network.

use crate::chat::{CallError, FailureKind};
use crate::scrub::scrub;
use secrecy::SecretString;
use std::error::Error;

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
pub(crate) fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
