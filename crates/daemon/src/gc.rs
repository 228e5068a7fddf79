//! `polity gc`: removes data that nobody needs. If a daemon serves the data directory, the daemon does it.

use crate::db::files;
use crate::failure::Failure;
use crate::output::bytes;
use crate::output::{Elapsed, complain, print};
use crate::places::{self, Care};
use crate::running::Running;
use crate::values::age;
use clap::Args;
use polity_registry::{Environment, Registry, Severity};
use polity_store::maintenance::{self, Amount, Freed, Mode, Trash, Unwanted};
use polity_view::{AmountView, FreeingFilter};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `polity gc`
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// Also remove the artifacts of tasks in which nothing has happened for this long, such as 30d or 12w. An artifact
    /// that another task names stays. The messages and records of these tasks stay, too.
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub(crate) older_than: Option<Duration>,

    /// Also empty the trash. Otherwise, removed bytes stay in the trash for a week.
    #[arg(long)]
    pub(crate) empty_trash: bool,

    /// Only print what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Where app.json is [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: GcArguments) -> Result<u8, Failure> {
    let data = places::data_path(arguments.data.clone())?;
    if let Some(running) = Running::find(&data).await {
        return beside(&running, &data, &arguments).await;
    }
    // Call `places::cared_for` before `places::data`, which would create a missing directory. `polity gc` must report a
    // missing directory instead.
    let cared_for = places::cared_for(arguments.data.clone(), Care::Clean)?;
    let config = places::config(arguments.config)?.path;
    // This command calls no service, so it searches for services neither in the environment nor on this machine.
    let environment = Environment::look_up(|_| None);
    let (registry, problems) =
        Registry::load(&config, environment, Box::new(|| Box::pin(async { Vec::new() }))).await?;
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
        complain(&problem.to_string());
    }
    let data = places::data(arguments.data)?;
    let unwanted = Unwanted {
        idle_for: arguments.older_than,
        retention: registry.current().settings.retention,
        trash: if arguments.empty_trash { Trash::Emptied } else { Trash::Kept },
    };
    let mode = if arguments.dry_run { Mode::Count } else { Mode::Remove };
    let working = Elapsed::begin(doing(mode));
    let freed = maintenance::free(&data.path, &unwanted, mode).await?;
    drop(working);
    tell(&freed, mode, unwanted.trash, &data.path)?;
    drop(cared_for);
    Ok(0)
}

/// Lets the daemon remove the data. The limits are those of `retention` in the daemon's configuration.
async fn beside(running: &Running, data: &Path, arguments: &GcArguments) -> Result<u8, Failure> {
    let wanted = FreeingFilter {
        older_than_seconds: arguments.older_than.map(|age| age.as_secs()),
        empty_trash: arguments.empty_trash,
        dry_run: arguments.dry_run,
    };
    complain(&format!("the daemon that runs on {} does this", data.display()));
    let mode = if arguments.dry_run { Mode::Count } else { Mode::Remove };
    let working = Elapsed::begin(doing(mode));
    let freed = running.client.free(&wanted).await?;
    drop(working);
    let amount = |amount: AmountView| Amount { files: amount.files, bytes: amount.bytes };
    let freed = Freed {
        artifacts: freed.artifacts,
        stored: amount(freed.stored),
        trash: amount(freed.trash),
        events: freed.events,
        database_before: freed.database_before,
        database_after: freed.database_after,
    };
    tell(&freed, mode, if arguments.empty_trash { Trash::Emptied } else { Trash::Kept }, data)?;
    Ok(0)
}

fn tell(freed: &Freed, mode: Mode, trash: Trash, data: &Path) -> Result<(), Failure> {
    print(&summary(freed, mode))?;
    if mode == Mode::Remove && trash == Trash::Kept && freed.stored.files > 0 {
        print(&format!("the stored bytes are kept for 7 days in {}", maintenance::trash(data).display()))?;
    }
    Ok(())
}

/// Says what the command is doing.
fn doing(mode: Mode) -> &'static str {
    match mode {
        Mode::Count => "looking for unneeded data",
        Mode::Remove => "removing unneeded data",
    }
}

fn summary(freed: &Freed, mode: Mode) -> String {
    let Freed { artifacts, stored, trash, events, database_before, database_after } = freed;
    let (stored, trash) = (files(*stored), files(*trash));
    match mode {
        Mode::Count => format!(
            "would be removed: artifacts: {artifacts}; stored: {stored}; events: {events}; from the \
             trash: {trash}; nothing was removed"
        ),
        Mode::Remove => {
            // SQLite uses freed space again, but a file that a daemon has open never becomes smaller.
            let grown =
                if database_after > database_before { " (the log of its changes has grown)" } else { "" };
            format!(
                "removed: artifacts: {artifacts}; stored: {stored}; events: {events}; database: {} → {}{grown}; from \
                 the trash: {trash}",
                bytes(*database_before),
                bytes(*database_after)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_grows_is_explained() {
        let told = |database_before, database_after| {
            summary(&Freed { database_before, database_after, ..Freed::default() }, Mode::Remove)
        };
        assert!(told(2_000, 1_000).contains("; database: 2.0 kB → 1.0 kB; from the trash"));
        let grown = "; database: 1.0 kB → 2.0 kB (the log of its changes has grown); from the trash";
        assert!(told(1_000, 2_000).contains(grown));
    }
}
