//! Retries what the disk or the operating system refuses, because it may work later.

use polity_store::Error;
use polity_view::in_full;
use std::time::Duration;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Repeats the attempt while it fails because of the disk or the operating system.
pub(crate) async fn patiently<T>(mut attempt: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    loop {
        match attempt().await {
            Err(error) if error.may_pass() => {
                tracing::error!(error = %in_full(&error), "cannot read what to show; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
