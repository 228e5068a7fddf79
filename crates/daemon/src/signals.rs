//! The signals that ask the program to end.

use std::io;

/// A receiver of SIGINT (Ctrl-C) and SIGTERM. It receives the signals that arrive after it was created.
pub(crate) struct Interruption {
    #[cfg(unix)]
    pressed: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminated: tokio::signal::unix::Signal,
}

impl Interruption {
    /// Starts to listen for the signals. Before this call, a signal ends the process at once.
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

    /// Waits for a signal; returns at once if one arrived before the call.
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
