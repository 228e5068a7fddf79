//! `polity config check` and `polity config show`: what the files say, without starting anything; and the configuration of
//! a society that is started.

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

/// How long local servers may take to answer when they are looked for.
const DISCOVERY: Duration = Duration::from_millis(300);

/// Runs the command; gives the exit code.
pub(crate) async fn run(command: ConfigCommand) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Check { dir } => check(dir).await,
        ConfigCommand::Show { config } => show(config).await,
        ConfigCommand::Reload(arguments) => remote::reload::run(arguments).await,
    }
}

/// A configuration that several share, and what looks out for its changes as long as it is held.
pub(crate) fn watched(registry: Registry) -> (Arc<Registry>, Option<Watch>) {
    let registry = Arc::new(registry);
    match Watch::start(&registry) {
        Ok(watch) => (registry, Some(watch)),
        Err(error) => {
            // Changes are still seen, at the next model call.
            tracing::warn!(%error, "changes of the configuration are not watched");
            (registry, None)
        }
    }
}

/// Prints all problems. Exits with 2 where something that is declared is not in force.
async fn check(dir: Option<PathBuf>) -> Result<u8, Failure> {
    let (registry, mut problems) = load(dir).await?;
    // A run says so when it makes the call; a file can be right on a machine that has no keys.
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

/// Prints what is in force, as JSON.
async fn show(config: Option<PathBuf>) -> Result<u8, Failure> {
    let (registry, _) = load(config).await?;
    print(&format!("{:#}", registry.current().to_json()))?;
    Ok(0)
}

async fn load(dir: Option<PathBuf>) -> Result<(Registry, Vec<Problem>), Failure> {
    read(&places::config(dir)?.path).await
}

/// Reads a configuration directory, with the environment and the servers of this machine.
pub(crate) async fn read(dir: &Path) -> Result<(Registry, Vec<Problem>), Failure> {
    let environment = Environment::look_up(|name| std::env::var(name).ok());
    Ok(Registry::load(dir, environment, Box::new(|| Box::pin(discover()))).await?)
}

/// Looks for a model server on this machine.
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

/// What there is to say of the context window of a service, where it is small.
pub(crate) fn small_window(id: &ServiceId, tokens: Option<u64>) -> Option<String> {
    // Which server it is, is not asked here.
    let finding = polity_probe::small_window(tokens?, polity_probe::Server::Other)?;
    let advice = finding.advice.unwrap_or_default();
    Some(format!("service {id}: {}: {advice} (`polity doctor` says how)", finding.what))
}
