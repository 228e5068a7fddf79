//! `polity config check`, `polity config show` and `polity config reload`. None of them starts a society. They use the
//! configuration of the daemon that serves the data directory, unless the user names another configuration directory.

use crate::config::{SEARCHING, read, small_window};
use crate::failure::{Failure, USAGE};
use crate::output::{Elapsed, complain, print};
use crate::places;
use crate::remote;
use crate::running::Running;
use clap::Subcommand;
use polity_registry::{Problem, Registry, Severity};
use std::path::PathBuf;

/// `polity config`
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print all problems of the configuration files; exits with 2 if polity cannot use something that they declare.
    Check {
        /// Where app.json and llmservices.json are [default: the directory of the daemon that serves the data directory;
        /// without a daemon, as for `polity run`].
        dir: Option<PathBuf>,
        /// The data directory of the daemon whose configuration is checked [default: `polity` in your user data
        /// directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Print the configuration in force, as JSON, without secrets.
    Show {
        /// Where app.json and llmservices.json are [default: the configuration that the daemon of the data directory has
        /// in force, even if the files are broken now; without a daemon, as for `polity run`].
        #[arg(long, value_name = "DIR")]
        config: Option<PathBuf>,
        /// The data directory whose daemon is asked [default: `polity` in your user data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Have the daemon read the configuration files now; exits with 2 if it cannot use something that they declare.
    ///
    /// The daemon also reads the files without this command, when they change and before each model call.
    Reload(remote::reload::Arguments),
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(command: ConfigCommand) -> Result<u8, Failure> {
    match command {
        ConfigCommand::Check { dir, data } => check(dir, data).await,
        ConfigCommand::Show { config, data } => show(config, data).await,
        ConfigCommand::Reload(arguments) => remote::reload::run(arguments).await,
    }
}

/// Prints all problems. Returns exit code 2 if something that the files declare cannot be used.
async fn check(dir: Option<PathBuf>, data: Option<PathBuf>) -> Result<u8, Failure> {
    let running = Running::looked_at(data, dir.as_ref()).await?;
    if let Some(running) = &running {
        complain(&running.words());
    }
    let dir = dir.or(running.and_then(|running| running.directory()));
    let (registry, mut problems) = load(dir).await?;
    // A machine may have correct files but no API keys. Other commands must work there; only a model call that needs a
    // missing key fails. So only this command and `polity doctor` report environment variables that the files name but
    // that are not set.
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
        if let Some(small) = small_window(&service.id, service.context_window, &service.endpoint.base_url) {
            complain(&format!("warning: {small}"));
        }
    }
    print(&format!("{}: good; services: {count} ({origin})", registry.config_dir().display()))?;
    Ok(0)
}

/// Prints the configuration in force, as JSON.
async fn show(config: Option<PathBuf>, data: Option<PathBuf>) -> Result<u8, Failure> {
    if let Some(running) = Running::looked_at(data, config.as_ref()).await? {
        complain(&running.words());
        print(&format!("{:#}", running.client.config_in_force().await?))?;
        return Ok(0);
    }
    let (registry, _) = load(config).await?;
    print(&format!("{:#}", registry.current().to_json()))?;
    Ok(0)
}

async fn load(dir: Option<PathBuf>) -> Result<(Registry, Vec<Problem>), Failure> {
    let directory = places::config(dir)?;
    let _searching = Elapsed::begin(SEARCHING);
    read(&directory.path).await
}
