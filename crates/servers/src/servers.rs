//! Keeps all configured servers running.

use crate::bounds::Bounds;
use crate::config::Config;
use crate::launch::Launcher;
use crate::run::{Published, run};
use crate::server::Server;
use futures::future::{BoxFuture, FutureExt, join_all};
use polity_hands::server_state::{ServerState, Standing};
use polity_hands::table::Toolbox;
use polity_hands::tool::Tool;
use polity_society::tool_group::ServerName;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// All configured servers. Dropping this value stops the servers without waiting for their end.
pub struct Servers {
    launcher: Arc<dyn Launcher>,
    bounds: Bounds,
    kept: Mutex<BTreeMap<ServerName, Kept>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _ends: DropGuard,
}

/// A server whose Tokio task is running.
struct Kept {
    config: Config,
    published: watch::Receiver<Published>,
    /// After this time, model calls no longer wait for the first list of tools of this server.
    waited_for_until: Instant,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Servers {
    /// Makes an empty set of servers.
    pub fn new(launcher: Arc<dyn Launcher>, bounds: Bounds) -> Self {
        let stop = CancellationToken::new();
        Self {
            launcher,
            bounds,
            kept: Mutex::default(),
            tasks: TaskTracker::new(),
            _ends: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Applies a new configuration: starts new servers, stops removed servers, and replaces servers whose
    /// configuration has changed. All other servers continue undisturbed. Must be called in a Tokio runtime. After
    /// [`Self::shut_down`], this method starts nothing.
    pub fn set(&self, configs: BTreeMap<ServerName, Config>) {
        let mut kept = self.kept();
        let mut before = std::mem::take(&mut *kept);
        if self.stop.is_cancelled() {
            return;
        }
        for (name, config) in configs {
            let old = before.remove(&name);
            let next = match old {
                Some(same) if same.config == config => same,
                other => self.start(name.clone(), config, other),
            };
            kept.insert(name, next);
        }
        before.into_values().for_each(|gone| gone.stop.cancel());
    }

    /// Starts the Tokio task of a server. If the server replaces an earlier server, the task first waits until the
    /// earlier server has ended.
    fn start(&self, name: ServerName, config: Config, replaced: Option<Kept>) -> Kept {
        let (publish, published) = watch::channel(Published::default());
        let stop = self.stop.child_token();
        let server = Server {
            name,
            config: config.clone(),
            bounds: self.bounds,
            launcher: Arc::clone(&self.launcher),
        };
        let stopped = stop.clone();
        let task = self.tasks.spawn(async move {
            if let Some(replaced) = replaced {
                replaced.stop.cancel();
                // An error means that the Tokio task has panicked. The panic has killed the processes of the server.
                let _ = replaced.task.await;
            }
            run(Arc::new(server), publish, stopped).await;
        });
        Kept { config, published, waited_for_until: Instant::now() + self.bounds.first_list, stop, task }
    }

    /// Waits until the first start of each server has succeeded or failed. Stops waiting for a server when the time
    /// [`Bounds::first_list`] has passed since the server was configured.
    pub async fn settled(&self) {
        let starting = |kept: &Kept| (kept.published.clone(), kept.waited_for_until);
        let starting: Vec<_> = self.kept().values().map(starting).collect();
        let waits = starting.into_iter().map(|(mut published, until)| async move {
            let has_tried = published.wait_for(|published| published.standing != Standing::Starting);
            // An error means that the server was removed or took too long. In both cases, the server's tools are
            // missing.
            let _ = tokio::time::timeout_at(until, has_tried).await;
        });
        join_all(waits).await;
    }

    /// Returns the state of each server, sorted by name.
    pub fn state(&self) -> Vec<ServerState> {
        let kept = self.kept();
        let state = |(name, kept): (&ServerName, &Kept)| ServerState {
            name: name.clone(),
            standing: kept.published.borrow().standing.clone(),
        };
        kept.iter().map(state).collect()
    }

    /// Stops all servers, and waits until their processes have ended.
    pub async fn shut_down(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<ServerName, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Toolbox for Servers {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.kept().values().flat_map(|kept| kept.published.borrow().tools.to_vec()).collect()
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        Self::settled(self).boxed()
    }

    fn servers(&self) -> Vec<ServerState> {
        self.state()
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Self::shut_down(self).boxed()
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.state()).finish()
    }
}
