//! Waiting for the machine: what the disk or the operating system refuses may be granted later.

use polity_runtime::{Error, in_full};
use std::time::Duration;

/// How long is waited before the next try.
const PAUSE: Duration = Duration::from_secs(1);

/// Does something again and again while the disk or the operating system refuses it.
pub(crate) async fn patiently<T>(mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match attempt().await {
            Err(error) if error.may_pass() => {
                tracing::error!(error = %in_full(&error), "what is to be shown is tried again later");
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
