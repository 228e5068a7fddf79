//! A tool of a server, as agents use it.

use crate::call::{Connection, Failure};
use crate::links::{Linked, Patience, follow};
use crate::list::Definition;
use crate::result::output;
use crate::server::Server;
use futures::future::{BoxFuture, FutureExt};
use polity_hands::call::{Arguments, Invocation, Output};
use polity_hands::tool::{AfterCrash, Effect, Reach, Tool, Words};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// A tool of a server. The tool stays valid while its server is started again.
pub(crate) struct ServerTool {
    pub(crate) server: Arc<Server>,
    pub(crate) definition: Definition,
    /// The current connection to the server; `None` while there is no connection.
    pub(crate) connection: watch::Receiver<Option<Arc<Connection>>>,
}

impl ServerTool {
    /// Returns the connection. If there is no connection now, waits at most [`crate::Bounds::reconnect`] for a new
    /// connection.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let mut connections = self.connection.clone();
        // A connection that has just ended stays here until the Tokio task of the server notices the end.
        let is_open = |found: &Option<Arc<Connection>>| found.as_ref().is_some_and(|found| found.is_open());
        let found = connections.wait_for(is_open);
        match tokio::time::timeout(self.server.bounds.reconnect, found).await {
            Ok(Ok(connection)) => connection.clone().ok_or(Failure::NotConnected),
            Ok(Err(_)) => Err(Failure::Removed),
            Err(_) => Err(Failure::NotConnected),
        }
    }

    async fn call(&self, invocation: Invocation) -> Result<Output, String> {
        let Invocation { arguments, cancel, progress, .. } = invocation;
        let connection = tokio::select! {
            connection = self.connection() => connection,
            () = cancel.cancelled() => Err(Failure::Cancelled),
        };
        let connection = connection.map_err(|failure| failure.to_string())?;
        let (tool, bounds) = (&self.definition.own_name, &self.server.bounds);
        let patience = Patience { begun: Instant::now(), timeout: self.server.config.timeout };
        let result = connection.call(tool, arguments, progress, &cancel, patience.timeout).await;
        let result = result.map_err(|failure| failure.to_string())?;
        let linked: Linked = follow(&connection, &result, bounds, &cancel, patience).await;
        output(&self.server.name, tool, result, linked, bounds)
    }
}

impl Tool for ServerTool {
    fn name(&self) -> &str {
        &self.definition.name
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Server(self.server.name.clone())
    }

    fn parameters(&self) -> Value {
        self.definition.parameters.clone()
    }

    fn words(&self) -> Words {
        Words::Own(self.definition.description.clone())
    }

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::Server { server: self.server.name.clone(), effect: self.definition.effect }
    }

    fn always(&self) -> Option<Effect> {
        Some(self.definition.effect)
    }

    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        self.definition.after_crash
    }

    fn run<'a>(&'a self, invocation: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async {
            self.call(invocation).await.map_err(|reason| Refusal::ServerFailed {
                server: self.server.name.clone(),
                reason: self.server.config.launch.hide_secrets(&reason),
            })
        }
        .boxed()
    }
}
