//! `polity serve`: runs the society and serves it over HTTP until a signal ends the process.

mod beside;

use crate::config::{self, SEARCHING};
use crate::failure::Failure;
use crate::models;
use crate::output::{Elapsed, Form, Output, complain};
use crate::places;
use crate::signals::Interruption;
use crate::values::{address, host};
use clap::Args;
use polity_api::{Ending, Guard, Hosts};
use polity_registry::{ReloadOutcome, Report};
use polity_runtime::Society;
use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::MissedTickBehavior;

/// Time between two moments at which the daemon gives freed memory back to the system.
const GIVE_BACK: Duration = Duration::from_secs(30);

/// `polity serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on; port 0 chooses a free port. If the address is not a loopback address, other machines
    /// can connect, and --allow-host is required.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// A host name by which clients reach the daemon, in addition to localhost and the --listen address, such as
    /// polity.example or 192.168.0.7:7717; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub(crate) allow_host: Vec<String>,

    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: ServeArguments) -> Result<u8, Failure> {
    if !arguments.listen.ip().is_loopback() && arguments.allow_host.is_empty() {
        return Err(Failure::OpenToOthers(arguments.listen));
    }
    let config_dir = places::config(arguments.config)?;
    let searching = Elapsed::begin(SEARCHING);
    let (registry, problems) = config::read(&config_dir.path).await?;
    drop(searching);
    let data = places::data(arguments.data)?;
    let token = beside::token(&data.path)?;
    // Bind before any agent starts to work: without a port, nobody could reach the daemon to see or stop the agents.
    let unheard = |source| Failure::Listen { address: arguments.listen, source };
    let listener = TcpListener::bind(arguments.listen).await.map_err(unheard)?;
    let address = listener.local_addr().map_err(unheard)?;

    let output = Output::new(Form::Text);
    output.problems(&problems);
    output.own_sources(&config_dir, &data.path, &registry.current().catalogue)?;
    let (registry, _watch) = config::watched(registry);
    let reports = registry.reports();
    let parts = models::parts(registry, &data.path);
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    let society = tokio::select! {
        started = Society::start(&data.path, parts) => Arc::new(started.map_err(Failure::Open)?),
        () = interruption.happened() => return Ok(0),
    };

    let ending = Ending::default();
    let guard = Guard::new(token, Hosts::new(address.port(), names(arguments.allow_host, address)));
    let mounted = [
        polity_openai::router(Arc::clone(&society), ending.closing.clone()),
        polity_mcp::router(Arc::clone(&society), ending.closing.clone()),
    ];
    let app = polity_api::app(Arc::clone(&society), guard, ending.clone(), mounted);
    let server = tokio::spawn(polity_api::serve(listener, app, ending.closing.clone()));
    let url = format!("http://{}", reachable(address));
    let (note, code) = match beside::Note::write(&data.path, &url) {
        Ok(note) => {
            tell_ready(&url, address);
            let code = tokio::select! {
                code = tell_reloads(reports) => code,
                never = give_back_memory() => match never {},
                () = interruption.happened() => Ok(0),
                () = ending.asked.cancelled() => Ok(0),
                reason = society.broken() => Err(Failure::Broken(reason)),
                gone = society.gone() => Err(Failure::Gone(gone)),
            };
            (Some(note), code)
        }
        // Writing `daemon.json` failed, so no client would find the daemon. The agents work already, so the daemon
        // shuts down in the usual way.
        Err(failure) => (None, Err(failure)),
    };
    ending.draining.cancel();
    let end = async {
        if code.is_ok() {
            complain(
                "letting the work in progress finish; interrupt once more to stop at once, which is safe too",
            );
            society.drain().await;
        }
        ending.closing.cancel();
        if let Err(error) = server.await {
            tracing::error!(%error, "the HTTP server panicked or was cancelled");
        }
        society.stop().await;
        polity_points::point!("serve::stopped");
    };
    tokio::select! {
        () = end => {
            match &code {
                // The data directory was removed or replaced. So the `daemon.json` at this path may belong to another
                // daemon, and this daemon must not remove it.
                Err(Failure::Gone(_)) => std::mem::forget(note),
                Ok(_) | Err(_) => drop(note),
            }
            drop(data);
        }
        // On a second signal, end at once: everything that polity has acknowledged to clients is on disk already. The
        // data directory stays locked until the process ends.
        () = interruption.happened() => {
            drop(note);
            std::mem::forget(data);
        }
    }
    code
}

/// Gives freed memory back to the system again and again. Never returns, so the caller must cancel this function.
async fn give_back_memory() -> Infallible {
    let mut times = tokio::time::interval(GIVE_BACK);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        // An error means that the runtime is about to end.
        let _ = tokio::task::spawn_blocking(polity_heap::give_back).await;
    }
}

/// Prints each change of the configuration, and the problems of the configuration files. Never returns, so the caller
/// must cancel this function.
async fn tell_reloads(mut reports: broadcast::Receiver<Report>) -> Result<u8, Failure> {
    loop {
        match reports.recv().await {
            Ok(report) => complain(&reload_in_words(&report)),
            // This loop was too slow, so some reports are lost. That does no harm: the next report describes the
            // configuration that is in force by then.
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

fn reload_in_words(report: &Report) -> String {
    let revision = report.revision;
    let mut words = match report.outcome {
        ReloadOutcome::Kept => {
            format!("the changed configuration cannot be used; configuration {revision} stays in force")
        }
        ReloadOutcome::Taken => {
            let differences: Vec<String> = report.differences.iter().map(|one| format!("; {one}")).collect();
            format!("configuration {revision} is in force{}", differences.concat())
        }
        ReloadOutcome::Unchanged => {
            format!("the files declare the same; configuration {revision} stays in force")
        }
    };
    for problem in &report.problems {
        words.push_str(&format!("\n  {problem}"));
    }
    words
}

/// Prints the address of the daemon, and a warning if other machines can reach it.
fn tell_ready(url: &str, address: SocketAddr) {
    complain(&format!("ready: {url}"));
    if !address.ip().is_loopback() {
        complain(
            "other machines can reach it: anyone who has the token can do everything, and the traffic is not encrypted",
        );
    }
}

/// Returns the host names that the guard accepts in requests, in addition to loopback names. The guard refuses requests
/// to any other host name. The listen address is one of these names if other machines can reach it. That is safe: DNS
/// rebinding can make a foreign host name resolve to this address, but the request still contains the foreign name.
fn names(allowed: Vec<String>, address: SocketAddr) -> Vec<String> {
    let own = !address.ip().is_loopback() && !address.ip().is_unspecified();
    allowed.into_iter().chain(own.then(|| address.to_string())).collect()
}

/// Returns the address at which programs on this machine reach a listener: loopback instead of an unspecified address.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        SocketAddr::V4(_) | SocketAddr::V6(_) => address.ip(),
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_programs_of_this_machine_reach() {
        let check = |listen: &str, url: &str, own: &[&str]| {
            let address: SocketAddr = listen.parse().unwrap();
            assert_eq!(reachable(address).to_string(), url);
            assert_eq!(names(Vec::new(), address), own);
        };
        check("127.0.0.1:7717", "127.0.0.1:7717", &[]);
        check("[::1]:7717", "[::1]:7717", &[]);
        check("0.0.0.0:80", "127.0.0.1:80", &[]);
        check("[::]:80", "[::1]:80", &[]);
        check("192.168.0.7:7717", "192.168.0.7:7717", &["192.168.0.7:7717"]);
    }
}
