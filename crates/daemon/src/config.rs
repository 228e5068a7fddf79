//! Reads the configuration for the commands that need it. For commands that keep running, this module also watches the
//! configuration files for changes.

use crate::failure::Failure;
use polity_llm::{Inquirer, ServerKind};
use polity_registry::{Discovered, Environment, Problem, Registry, Watch};
use polity_society::id::ServiceId;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// When polity searches for model servers on this machine, it finds only servers that answer within this time. A busy
/// server may need more than a second. The long limit seldom delays the search: a port on which no program listens
/// refuses at once. The search takes the whole time only if a program accepts the connection and then says nothing.
pub(crate) const DISCOVERY: Duration = Duration::from_secs(2);

/// What a command says on a terminal while it reads a configuration. Only the search takes longer than a second, so only
/// then the line appears.
pub(crate) const SEARCHING: &str = "searching for model servers on this machine";

/// Makes a registry shareable, and watches its configuration files for changes. To stop watching, drop the returned
/// [`Watch`].
pub(crate) fn watched(registry: Registry) -> (Arc<Registry>, Option<Watch>) {
    let registry = Arc::new(registry);
    match Watch::start(&registry) {
        Ok(watch) => (registry, Some(watch)),
        Err(error) => {
            // The program continues without the watch, because it also checks the files before every model call.
            tracing::warn!(%error, "cannot watch the configuration files for changes");
            (registry, None)
        }
    }
}

/// Reads a configuration directory and the environment. If neither the directory nor the environment names a service,
/// searches for model servers on this machine.
pub(crate) async fn read(dir: &Path) -> Result<(Registry, Vec<Problem>), Failure> {
    let environment = Environment::look_up(|name| std::env::var(name).ok());
    Ok(Registry::load(dir, environment, Box::new(|| Box::pin(discover()))).await?)
}

/// Searches for model servers on this machine, and asks them what their models can do.
pub(crate) async fn discover() -> Vec<Discovered> {
    let found = polity_llm::discover_all(DISCOVERY).await;
    let Ok(inquirer) = Inquirer::new(DISCOVERY) else { return Vec::new() };
    polity_probe::look(&inquirer, &found, DISCOVERY).await
}

/// Returns a warning if the context window of a service is small.
pub(crate) fn small_window(id: &ServiceId, tokens: Option<u64>, base_url: &str) -> Option<String> {
    let finding = polity_probe::small_window(id, tokens?, ServerKind::usual_at(base_url))?;
    let advice = finding.advice.unwrap_or_default();
    Some(format!("service {id}: {}: {advice}", finding.what))
}
