//! `polity config check` and `polity config show`, which start no society. Also reads the configuration for commands
//! that start one.

use crate::cli::ConfigCommand;
use crate::failure::{Failure, USAGE};
use crate::output::{complain, print};
use crate::places;
use crate::remote;
use polity_llm::{Endpoint, Inquirer};
use polity_registry::{Discovered, Environment, Problem, Registry, Service, Severity, Watch};
use polity_society::id::ServiceId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time limit for the answers of local model servers during the search for one.
const DISCOVERY: Duration = Duration::from_millis(300);

/// Runs the command; returns the exit code.
pub(crate) async fn run(command: ConfigCommand) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Check { dir } => check(dir).await,
        ConfigCommand::Show { config } => show(config).await,
        ConfigCommand::Reload(arguments) => remote::reload::run(arguments).await,
    }
}

/// Makes a registry shareable and watches its files for changes. Dropping the watch ends the watching.
pub(crate) fn watched(registry: Registry) -> (Arc<Registry>, Option<Watch>) {
    let registry = Arc::new(registry);
    match Watch::start(&registry) {
        Ok(watch) => (registry, Some(watch)),
        Err(error) => {
            // Not fatal: every model call checks the files, too.
            tracing::warn!(%error, "cannot watch the configuration files for changes");
            (registry, None)
        }
    }
}

/// Prints all problems. Returns exit code 2 if something that the files declare cannot be used.
async fn check(dir: Option<PathBuf>) -> Result<u8, Failure> {
    let (registry, mut problems) = load(dir).await?;
    // Only this command and the doctor report unset variables. At other times only the call that needs the key fails,
    // because the files may be correct on a machine that has no keys.
    problems.extend(registry.unset_variables(|name| std::env::var(name).ok()).await);
    for problem in &problems {
        match problem.severity {
            Severity::Error => complain(&problem.to_string()),
            Severity::Warning => complain(&format!("warning: {problem}")),
        }
    }
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Ok(USAGE);
    }
    let snapshot = registry.current();
    let (count, origin) = (snapshot.catalogue.services().len(), snapshot.catalogue.origin());
    for service in snapshot.catalogue.services() {
        if let Some(small) = small_window(&service.id, service.context_window) {
            complain(&format!("warning: {small}"));
        }
    }
    print(&format!("{}: good; services: {count} ({origin})", registry.config_dir().display()))?;
    Ok(0)
}

/// Prints the configuration in force, as JSON.
async fn show(config: Option<PathBuf>) -> Result<u8, Failure> {
    let (registry, _) = load(config).await?;
    print(&format!("{:#}", registry.current().to_json()))?;
    Ok(0)
}

async fn load(dir: Option<PathBuf>) -> Result<(Registry, Vec<Problem>), Failure> {
    read(&places::config(dir)?.path).await
}

/// Reads a configuration directory; also uses the environment and, if needed, a model server on this machine.
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
    // The kind of server is unknown here; the doctor finds it out and gives more specific advice.
    let finding = polity_probe::small_window(tokens?, polity_probe::Server::Other)?;
    let advice = finding.advice.unwrap_or_default();
    Some(format!("service {id}: {}: {advice} (`polity doctor` tells how)", finding.what))
}
