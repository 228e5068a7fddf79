//! The interface for starting the processes of servers. The caller of this crate implements it, for example with a
//! sandbox.

use crate::config::Process;
use futures::future::BoxFuture;
use polity_society::tool_group::ServerName;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts the processes of servers.
pub trait Launcher: Send + Sync {
    /// Starts the process of a server.
    fn launch<'a>(
        &'a self,
        server: &'a ServerName,
        process: &'a Process,
    ) -> BoxFuture<'a, io::Result<Started>>;
}

/// The running process of a server.
pub struct Started {
    /// The server's standard input, for messages to the server. Polity closes this stream to ask the server to end.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// The server's standard output, for messages from the server.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// The server's standard error, for reports to people.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The processes of the server.
    pub tree: Box<dyn Tree>,
}

/// The process of a server and all processes that it has started. Dropping this value kills all these processes.
pub trait Tree: Send {
    /// Waits until the server's own process has ended, and then kills its remaining child processes. Returns a text
    /// that says how the server's own process ended. If the caller drops the future, nothing is lost: the method can be
    /// called again.
    fn ended(&mut self) -> BoxFuture<'_, String>;

    /// Kills all processes. [`Self::ended`] returns soon afterwards.
    fn kill(&mut self);
}
