//! The signals that ask the program to end.

use std::io;

/// Hears, from when it is made, that somebody presses Ctrl-C or asks the process to terminate.
pub(crate) struct Interruption {
    #[cfg(unix)]
    pressed: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
}

impl Interruption {
    /// Listens from now on: without this, such a signal ends the process at once.
    pub(crate) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            #[cfg(unix)]
            pressed: signal(SignalKind::interrupt())?,
            #[cfg(unix)]
            terminated: signal(SignalKind::terminate())?,
        })
    }

    /// Returns when it has happened, also if that was before the call.
    pub(crate) async fn happened(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.pressed.recv() => {}
            _ = self.terminated.recv() => {}
        }
        #[cfg(not(unix))]
        if let Err(error) = tokio::signal::ctrl_c().await {
            tracing::warn!(%error, "cannot listen for Ctrl-C");
            std::future::pending::<()>().await;
        }
    }
}
