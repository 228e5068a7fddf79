//! `polity gc`: removes data that nobody needs.

use crate::cli::GcArguments;
use crate::db::{bytes, files};
use crate::failure::Failure;
use crate::output::{complain, print};
use crate::places::{self, Care};
use polity_registry::{Environment, Registry, Severity};
use polity_store::maintenance::{self, Freed, Mode, Unwanted};

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: GcArguments) -> Result<u8, Failure> {
    // Before `places::data`, which would create a missing directory instead of refusing it.
    let cared_for = places::cared_for(arguments.data.clone(), Care::Clean)?;
    let config = places::config(arguments.config)?.path;
    // No service is called, so neither the environment nor local servers are searched for one.
    let environment = Environment::look_up(|_| None);
    let (registry, problems) =
        Registry::load(&config, environment, Box::new(|| Box::pin(async { None }))).await?;
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
        complain(&problem.to_string());
    }
    let data = places::data(arguments.data)?;
    let unwanted =
        Unwanted { idle_for: arguments.older_than, retention: registry.current().settings.retention };
    let mode = if arguments.dry_run { Mode::Count } else { Mode::Remove };
    let freed = maintenance::free(&data.path, &unwanted, mode).await?;
    print(&summary(&freed, mode))?;
    drop(cared_for);
    Ok(0)
}

fn summary(freed: &Freed, mode: Mode) -> String {
    let Freed { artifacts, stored, events, database_before, database_after } = freed;
    let stored = files(*stored);
    match mode {
        Mode::Count => format!(
            "would be removed: artifacts: {artifacts}; stored: {stored}; events: {events}; nothing was removed"
        ),
        Mode::Remove => format!(
            "removed: artifacts: {artifacts}; stored: {stored}; events: {events}; database: {} → {}",
            bytes(*database_before),
            bytes(*database_after)
        ),
    }
}
