//! Starts the processes of servers. The caller of this crate decides how, for example in a sandbox.

use crate::config::Process;
use futures::future::BoxFuture;
use polity_society::tool_group::ServerName;
use std::io;
use tokio::io::{AsyncRead, AsyncWrite};

/// Starts the processes of servers.
pub trait Launcher: Send + Sync {
    /// Starts a server.
    fn launch<'a>(
        &'a self,
        server: &'a ServerName,
        process: &'a Process,
    ) -> BoxFuture<'a, io::Result<Started>>;
}

/// A server that was started.
pub struct Started {
    /// Takes the messages for the server. The server is asked to end by closing it.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Gives the messages of the server.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Gives what the server reports to people.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The processes of the server.
    pub tree: Box<dyn Tree>,
}

/// The process of a server with all processes that it has started. Dropping it kills them all.
pub trait Tree: Send {
    /// Waits until the server's own process has ended, and kills what it left running. Returns how it ended, in words.
    /// Can be cancelled and called again.
    fn ended(&mut self) -> BoxFuture<'_, String>;

    /// Kills all processes. [`Self::ended`] then returns soon.
    fn kill(&mut self);
}
