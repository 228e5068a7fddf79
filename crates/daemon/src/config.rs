//! Reads the configuration for the commands that need it. For commands that keep running, also watches the files.

use crate::failure::Failure;
use polity_llm::{Endpoint, Inquirer};
use polity_registry::{Discovered, Environment, Problem, Registry, Service, Watch};
use polity_society::id::ServiceId;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A model server on this machine must answer within this time, or the search does not find it.
const DISCOVERY: Duration = Duration::from_millis(300);

/// Makes a registry shareable and watches its files for changes. To stop watching, drop the returned [`Watch`].
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
/// searches for a model server on this machine.
pub(crate) async fn read(dir: &Path) -> Result<(Registry, Vec<Problem>), Failure> {
    let environment = Environment::look_up(|name| std::env::var(name).ok());
    Ok(Registry::load(dir, environment, Box::new(|| Box::pin(discover()))).await?)
}

/// Searches for a model server on this machine.
async fn discover() -> Option<Discovered> {
    let found = polity_llm::discover(DISCOVERY).await?;
    let model = found.models.into_iter().next()?;
    let service = Service::new(ServiceId::new("local"), Endpoint::new(&found.base_url, &model));
    let context_window = match Inquirer::new(DISCOVERY) {
        Ok(inquirer) => polity_probe::window(&inquirer, &service, DISCOVERY).await,
        Err(_) => None,
    };
    Some(Discovered {
        server_name: found.server.to_string(),
        base_url: found.base_url,
        model,
        context_window,
    })
}

/// Returns a warning if the context window of a service is small.
pub(crate) fn small_window(id: &ServiceId, tokens: Option<u64>) -> Option<String> {
    // The kind of server (such as Ollama) is unknown here. The doctor determines the kind and gives
    // more specific advice.
    let finding = polity_probe::small_window(tokens?, polity_probe::Server::Other)?;
    let advice = finding.advice.unwrap_or_default();
    Some(format!("service {id}: {}: {advice} (`polity doctor` tells how)", finding.what))
}
