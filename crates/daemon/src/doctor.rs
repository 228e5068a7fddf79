//! `polity doctor`: compares the configuration with what the servers and the machine really offer. Every check has a
//! time limit, and the checks run concurrently.

mod configuration;
mod data;
mod mend;
mod ports;
mod report;
mod sandbox;
mod services;

use crate::failure::Failure;
use crate::output::Elapsed;
use crate::places;
use crate::running::Running;
use crate::values::duration;
use clap::Args;
use polity_llm::Inquirer;
use polity_probe::Severity;
use polity_registry::Discover;
use report::{Report, Section};
use std::path::PathBuf;
use std::time::Duration;

/// `polity doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Write what the servers report about their models into llmservices.json, and make the data directory private.
    #[arg(long, conflicts_with = "offline")]
    pub(crate) fix: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Contact no server.
    #[arg(long)]
    pub(crate) offline: bool,

    /// How long each small call to a service may take.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) timeout: Duration,

    /// Where app.json and llmservices.json are [default: the directory of the daemon that serves the data directory;
    /// without a daemon, as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Time limit for connecting to a server.
const CONNECT: Duration = Duration::from_secs(5);
/// Time limit for a question to a server about itself, such as its list of models.
const QUESTION: Duration = Duration::from_secs(10);

/// The exit code if the doctor found a problem. It differs from the exit code of wrong usage, because the command
/// itself worked.
const FOUND: u8 = 1;

/// Whether the doctor contacts servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Network {
    Asked,
    LeftAlone,
}

/// Whether the doctor only reports, or also fixes what it can (`--fix`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Look,
    Mend,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: DoctorArguments) -> Result<u8, Failure> {
    let network = if arguments.offline { Network::LeftAlone } else { Network::Asked };
    let mode = if arguments.fix { Mode::Mend } else { Mode::Look };
    let inquirer = Inquirer::new(CONNECT).map_err(|error| Failure::Defect(polity_view::in_full(&error)))?;
    let times = polity_probe::Times { question: QUESTION.min(arguments.timeout), call: arguments.timeout };
    let data_path = places::data_path(arguments.data)?;
    let elapsed = if arguments.json { Elapsed::hidden() } else { Elapsed::begin("examining") };
    let asking = elapsed.step("asking", "the daemon");
    let running = Running::looked_at(Some(data_path.clone()), arguments.config.as_ref()).await?;
    drop(asking);
    let of_daemon = running.as_ref().and_then(Running::directory);
    let config = places::config(arguments.config.or(of_daemon));

    let configured = async {
        let config = match &config {
            Ok(config) => config,
            Err(failure) => return Ok((vec![configuration::missing(failure)], Vec::new(), Discover::Off)),
        };
        let reading = elapsed.step("reading", "the configuration");
        let (section, registry) = configuration::look(config, network, running.as_ref()).await;
        drop(reading);
        let Some(registry) = registry else { return Ok((vec![section], Vec::new(), Discover::Off)) };
        let snapshot = registry.current();
        let (examined, corrections) =
            services::look(&snapshot.catalogue, &inquirer, network, times, &elapsed).await;
        let sections = std::iter::once(section).chain(examined).collect::<Vec<_>>();
        Ok::<_, Failure>((sections, corrections, snapshot.settings.discover))
    };
    let of_data = async {
        let _checking = elapsed.step("checking", "the data directory");
        data::look(&data_path, &inquirer, network, mode).await
    };
    let of_sandbox = async {
        let _trying = elapsed.step("trying", "the sandbox");
        sandbox::look().await
    };
    let (configured, (mut of_data, mut mended), of_sandbox) = tokio::join!(configured, of_data, of_sandbox);
    let (mut sections, corrections, discover) = configured?;
    sections.append(&mut of_data);
    let checking = elapsed.step("checking", "the ports");
    sections.push(ports::look(&data_path, &inquirer, network, discover).await);
    drop(checking);
    drop(elapsed);
    sections.push(of_sandbox);
    if let Ok(config) = &config {
        let planned = mend::plan(&config.path, &corrections);
        if let Ok(plan) = &planned {
            // The report advises `--fix` only for findings that `--fix` really corrects.
            sections.iter_mut().for_each(|section| plan.advise(section));
        }
        let carried_out = match mode {
            Mode::Mend => planned.and_then(mend::Plan::carry_out),
            Mode::Look => Ok(Vec::new()),
        };
        match carried_out {
            Ok(changes) => mended.extend(changes),
            Err(finding) => sections.push(Section::new("mending", "llmservices.json", vec![finding])),
        }
    }
    sections.iter_mut().for_each(Section::repeat_options);
    let report = Report { sections, mended, mode };
    report.print(arguments.json)?;
    Ok(if report.worst() == Severity::Problem { FOUND } else { 0 })
}
