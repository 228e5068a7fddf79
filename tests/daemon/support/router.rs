//! A server with the routes that a test chooses. Tests use it for routes that the scripted chat server does not have.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use axum::{Router, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A running server. Dropping this value stops the server.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Drop for Served {
    /// Waits until the port is free, because a test may start another server on it.
    fn drop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            // An error means that the server has panicked. Its message is in the output of the test.
            let _ = thread.join();
        }
    }
}

impl Served {
    /// Starts a server on a free port.
    pub(crate) fn start(router: Router) -> Self {
        Self::start_at(0, router)
    }

    /// Starts a server on this port.
    pub(crate) fn start_at(port: u16, router: Router) -> Self {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.expect("a port");
                tell.send(listener.local_addr().expect("an address")).expect("the test waits");
                let serving = serve(listener, router);
                tokio::select! {
                    _ = serving.into_future() => {}
                    _ = ended => {}
                }
            });
        });
        Self { address: told.recv().expect("an address"), running: Some((end, thread)) }
    }

    /// Returns the base URL with `/v1`.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.root_url())
    }

    /// Returns the address without a path.
    pub(crate) fn root_url(&self) -> String {
        format!("http://{}", self.address)
    }
}
