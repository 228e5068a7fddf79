//! `polity config check` and `polity config show`: what the files say, without starting anything.

use crate::cli::ConfigCommand;
use crate::failure::{Failure, USAGE};
use crate::output::complain;
use crate::places;
use polity_registry::{Discovered, Environment, Registry, Severity};
use std::io::Write;
use std::path::PathBuf;

/// Runs the command; gives the exit code.
pub(crate) async fn run(command: ConfigCommand) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Check { dir } => check(dir).await,
        ConfigCommand::Show { config } => show(config).await,
    }
}

/// Prints all problems. Exits with 2 where something that is declared is not in force.
async fn check(dir: Option<PathBuf>) -> Result<u8, Failure> {
    let (registry, problems) = load(dir).await?;
    for problem in &problems {
        complain(&problem.to_string());
    }
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Ok(USAGE);
    }
    let snapshot = registry.current();
    let mut stdout = anstream::stdout();
    let (count, origin) = (snapshot.catalogue.services().len(), snapshot.catalogue.origin());
    writeln!(stdout, "{}: good; services: {count} ({origin})", registry.config_dir().display())?;
    Ok(0)
}

/// Prints what is in force, as JSON.
async fn show(config: Option<PathBuf>) -> Result<u8, Failure> {
    let (registry, _) = load(config).await?;
    let shown = serde_json::to_string_pretty(&registry.current().to_json())
        .map_err(|error| Failure::Defect(error.to_string()))?;
    writeln!(anstream::stdout(), "{shown}")?;
    Ok(0)
}

async fn load(dir: Option<PathBuf>) -> Result<(Registry, Vec<polity_registry::Problem>), Failure> {
    let config = places::config(dir)?;
    let environment = Environment::look_up(|name| std::env::var(name).ok());
    Ok(Registry::load(&config, environment, Box::new(|| Box::pin(discover()))).await?)
}

/// Looks for a model server on this machine.
pub(crate) async fn discover() -> Option<Discovered> {
    let found = polity_llm::discover(DISCOVERY).await?;
    let model = found.models.into_iter().next()?;
    Some(Discovered { server_name: found.server.to_string(), base_url: found.base_url, model })
}

/// How long local servers may take to answer when they are looked for.
const DISCOVERY: std::time::Duration = std::time::Duration::from_millis(300);
