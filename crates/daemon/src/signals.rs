//! The signals that ask the program to end.

/// Returns when somebody presses Ctrl-C or asks the process to terminate.
pub(crate) async fn interrupted() {
    let terminated = async {
        #[cfg(unix)]
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot listen for SIGTERM");
                std::future::pending::<()>().await;
            }
        }
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    };
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => {
            if let Err(error) = pressed {
                tracing::warn!(%error, "cannot listen for Ctrl-C");
                std::future::pending::<()>().await;
            }
        }
        () = terminated => {}
    }
}
