//! Keeps a server running: connects, reads the server's tools, and starts a failed server again after a pause.

use crate::backoff::Failures;
use crate::call::Connection;
use crate::connect::{Opened, connect, ended};
use crate::errors::chain;
use crate::list::{self, Listed};
use crate::server::Server;
use crate::stderr::LastLine;
use crate::text::on_one_line;
use crate::tool::ServerTool;
pub(crate) use polity_hands::server_state::Standing;
use polity_hands::tool::Tool;
use rmcp::model::{ProtocolVersion, ServerNotification, SubscriptionFilter};
use rmcp::service::{Peer, RoleClient, ServiceError};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The state of a server that other Tokio tasks can read.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) standing: Standing,
    /// The tools of the latest connection. The tools stay while the server is started again.
    pub(crate) tools: Arc<[Arc<dyn Tool>]>,
}

impl Default for Published {
    fn default() -> Self {
        Self { standing: Standing::Starting, tools: Arc::new([]) }
    }
}

/// How a connection, or the attempt to connect, ended.
enum End {
    /// The Tokio task of the server was told to stop.
    Stopped,
    /// The server failed. `lasted` is the duration of the connection.
    Failed { why: String, lasted: Duration },
}

/// Keeps a server running until `stop` is cancelled. When this function returns, the processes of the server have
/// ended.
pub(crate) async fn run(server: Arc<Server>, published: watch::Sender<Published>, stop: CancellationToken) {
    let run = Run { server, published, connection: watch::Sender::new(None) };
    let mut failures = Failures::default();
    loop {
        let last = LastLine::default();
        let end = run.once(&last, &stop).await;
        run.connection.send_replace(None);
        let End::Failed { why, lasted } = end else { return };
        failures = failures.after(lasted, &run.server.bounds);
        // Standard error has a pipe of its own, so the last line may arrive after polity has seen the end.
        let said = tokio::select! {
            said = last.at_end(run.server.bounds.last_line) => said,
            () = stop.cancelled() => return,
        };
        run.report(&why, &said);
        tokio::select! {
            () = tokio::time::sleep(failures.pause(&run.server.bounds)) => {}
            () = stop.cancelled() => return,
        }
    }
}

struct Run {
    server: Arc<Server>,
    published: watch::Sender<Published>,
    connection: watch::Sender<Option<Arc<Connection>>>,
}

impl Run {
    /// Connects once, and waits until the connection ends.
    async fn once(&self, last: &LastLine, stop: &CancellationToken) -> End {
        let started = tokio::select! {
            started = tokio::time::timeout(self.server.bounds.start, self.start(last)) => started,
            () = stop.cancelled() => return End::Stopped,
        };
        let mut opened = match started {
            Ok(Ok(opened)) => opened,
            Ok(Err(why)) => return End::Failed { why, lasted: Duration::ZERO },
            Err(_) => {
                let why = format!("not ready within {} ms", self.server.bounds.start.as_millis());
                return End::Failed { why, lasted: Duration::ZERO };
            }
        };
        let begun = Instant::now();
        let why = {
            let tree = opened.tree.as_deref_mut();
            let died = async {
                match tree {
                    Some(tree) => format!("its process {}", tree.ended().await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => None,
                how = died => Some(how),
                () = opened.closed.cancelled() => Some("it closed the connection".to_owned()),
                () = opened.stuck.cancelled() => Some("it does not read what it is sent".to_owned()),
                never = self.keep_list(opened.running.peer(), &opened.changed) => match never {},
            }
        };
        self.connection.send_replace(None);
        close(opened, self.server.bounds.stop).await;
        match why {
            Some(why) => End::Failed { why, lasted: begun.elapsed() },
            None => End::Stopped,
        }
    }

    /// Connects, reads the tools and publishes them.
    async fn start(&self, last: &LastLine) -> Result<Opened, String> {
        let opened = connect(&self.server, last).await?;
        let listed = list::read(opened.running.peer(), &self.server.name, &self.server.bounds).await;
        match listed {
            Ok(listed) => {
                self.connection.send_replace(Some(Arc::clone(&opened.connection)));
                self.publish(listed);
                Ok(opened)
            }
            Err(error) => {
                close(opened, self.server.bounds.stop).await;
                Err(format!("its tools cannot be read: {}", chain(&error)))
            }
        }
    }

    fn publish(&self, listed: Listed) {
        let Listed { definitions, left_out } = listed;
        let tool = |definition| -> Arc<dyn Tool> {
            let connection = self.connection.subscribe();
            Arc::new(ServerTool { server: Arc::clone(&self.server), definition, connection })
        };
        let tools: Arc<[Arc<dyn Tool>]> = definitions.into_iter().map(tool).collect();
        tracing::info!(server = %self.server.name, tools = tools.len(), left_out, "MCP server is connected");
        let standing = Standing::Connected { tools: tools.len(), left_out };
        self.published.send_replace(Published { standing, tools });
    }

    /// Publishes and logs why the server is not connected. `said` is the last line of its standard error.
    fn report(&self, why: &str, said: &str) {
        let said = if said.is_empty() { String::new() } else { format!("; it last wrote: {said}") };
        let why = self.server.config.launch.hide_secrets(&format!("{why}{said}"));
        let why = on_one_line(&why, self.server.bounds.line_chars);
        tracing::warn!(server = %self.server.name, why, "MCP server is not connected");
        self.published.send_modify(|published| {
            let was_connected = !matches!(published.standing, Standing::Starting | Standing::Failed { .. });
            published.standing =
                if was_connected { Standing::Restarting { why } } else { Standing::Failed { why } };
        });
    }

    /// Reads the list of tools again whenever the server reports a change. Changes in quick succession cause a
    /// single read.
    async fn keep_list(&self, peer: &Peer<RoleClient>, changed: &Notify) -> Infallible {
        let pause = self.server.bounds.list_pause;
        let read = async {
            loop {
                changed.notified().await;
                let listed = list::read(peer, &self.server.name, &self.server.bounds);
                match tokio::time::timeout(self.server.bounds.start, listed).await {
                    Ok(Ok(listed)) => self.publish(listed),
                    Ok(Err(error)) => {
                        tracing::warn!(server = %self.server.name, %error, "the tools cannot be read again");
                    }
                    Err(_) => tracing::warn!(server = %self.server.name, "the tools are not listed in time"),
                }
                tokio::time::sleep(pause).await;
            }
        };
        tokio::select! {
            never = read => never,
            never = subscribe(peer, changed, pause) => never,
        }
    }
}

/// Asks a server of the current protocol generation to report changes of its tools. Servers of the previous
/// generation report changes without being asked.
async fn subscribe(peer: &Peer<RoleClient>, changed: &Notify, pause: Duration) -> Infallible {
    let asks = peer.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        info.protocol_version >= ProtocolVersion::NO_INITIALIZE
            && tools.is_some_and(|tools| tools.list_changed == Some(true))
    });
    if !asks {
        return std::future::pending().await;
    }
    loop {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match peer.listen(filter).await {
            Ok(mut subscription) => {
                // The tools may have changed before the subscription began, so request one read of the list.
                changed.notify_one();
                while let Ok(Some(notification)) = subscription.next().await {
                    if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                        changed.notify_one();
                    }
                }
            }
            // The server announced subscriptions, but answers with an error, so another attempt would be useless.
            Err(ServiceError::McpError(_)) => return std::future::pending().await,
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
    }
}

/// Closes the connection, which asks the server to end. Kills the server's processes if they do not end within
/// `patience`.
async fn close(opened: Opened, patience: Duration) {
    let Opened { mut running, tree, .. } = opened;
    let _ = running.close_with_timeout(patience).await;
    drop(running);
    if let Some(mut tree) = tree {
        ended(tree.as_mut(), patience).await;
    }
}
