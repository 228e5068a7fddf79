//! `polity doctor`: compares the configuration with what the servers and the machine really offer. Every check has a
//! time limit. After the check of the configuration, all others run concurrently. As text, the result of each check is
//! printed as soon as it is known, so that nobody waits for a slow server to learn about the rest. The JSON object has
//! the results in a fixed order.

mod configuration;
mod data;
mod mend;
mod ports;
mod report;
mod sandbox;
mod services;

use crate::failure::Failure;
use crate::output::{Elapsed, Form};
use crate::places;
use crate::running::Running;
use crate::values::duration;
use clap::Args;
use polity_llm::Inquirer;
use polity_probe::{Correction, Severity};
use polity_registry::Discover;
use report::{Report, Section, Teller};
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
    let (form, elapsed) = match arguments.json {
        true => (Form::Json, Elapsed::hidden()),
        false => (Form::Text, Elapsed::begin("examining")),
    };
    let asking = elapsed.step("asking", "the daemon");
    let running = Running::looked_at(Some(data_path.clone()), arguments.config.as_ref()).await?;
    drop(asking);
    let of_daemon = running.as_ref().and_then(Running::directory);
    let config = places::config(arguments.config.or(of_daemon));

    let teller = Teller { elapsed: &elapsed, form, mode };
    let (mut of_config, registry) = match &config {
        Ok(config) => {
            let _reading = elapsed.step("reading", "the configuration");
            configuration::look(config, network, running.as_ref()).await
        }
        Err(failure) => (configuration::missing(failure), None),
    };
    teller.tell(&mut of_config)?;
    let snapshot = registry.as_ref().map(|registry| registry.current());

    let of_services = async {
        let (Some(snapshot), Ok(config)) = (&snapshot, &config) else { return Ok((Vec::new(), Vec::new())) };
        let tell = |section: &mut Section, correction: Option<&Correction>| {
            // The report advises `--fix` only for findings that `--fix` really corrects.
            let corrections = correction.map(std::slice::from_ref).unwrap_or_default();
            if let Ok(plan) = mend::plan(&config.path, corrections) {
                plan.advise(section);
            }
            teller.tell(section)
        };
        services::look(&snapshot.catalogue, &inquirer, network, times, &elapsed, tell).await
    };
    let of_data = async {
        let checking = elapsed.step("checking", "the data directory");
        let (mut found, mended) = data::look(&data_path, &inquirer, network, mode).await;
        drop(checking);
        found.iter_mut().try_for_each(|section| teller.tell(section))?;
        Ok::<_, Failure>((found, mended))
    };
    let of_ports = async {
        let checking = elapsed.step("checking", "the ports");
        let discover = snapshot.as_ref().map_or(Discover::Off, |snapshot| snapshot.settings.discover);
        let mut found = ports::look(&data_path, &inquirer, network, discover).await;
        drop(checking);
        teller.tell(&mut found)?;
        Ok::<_, Failure>(found)
    };
    let of_sandbox = async {
        let trying = elapsed.step("trying", "the sandbox");
        let mut found = sandbox::look().await;
        drop(trying);
        teller.tell(&mut found)?;
        Ok::<_, Failure>(found)
    };
    let ((mut of_services, corrections), (mut of_data, mut mended), of_ports, of_sandbox) =
        tokio::try_join!(of_services, of_data, of_ports, of_sandbox)?;
    let mut sections = vec![of_config];
    sections.append(&mut of_services);
    sections.append(&mut of_data);
    sections.extend([of_ports, of_sandbox]);
    if let (Ok(config), Mode::Mend) = (&config, mode) {
        match mend::plan(&config.path, &corrections).and_then(mend::Plan::carry_out) {
            Ok(changes) => mended.extend(changes),
            Err(finding) => {
                let mut mending = Section::new("mending", "llmservices.json", vec![finding]);
                teller.tell(&mut mending)?;
                sections.push(mending);
            }
        }
    }
    drop(elapsed);
    let report = Report { sections, mended, mode };
    report.print(form)?;
    Ok(if report.worst() == Severity::Problem { FOUND } else { 0 })
}
