//! The binary `polity`: reads the command line, builds a society or calls the daemon, prints what happens, and
//! returns an exit code. This crate only connects the libraries; the rules of the society are in the libraries.

mod cli;
mod config;
mod config_command;
mod db;
mod descriptors;
// Circle: `doctor` uses functions of its submodules, and they use the types `Mode` and `Network` of `doctor`.
mod doctor;
mod failure;
// Circle: `first` uses a function of its submodule `begin`, and `begin` uses the type `Person` of `first`.
mod first;
mod gc;
mod hands;
mod job;
mod locale;
mod mcp;
mod models;
mod output;
mod places;
mod prompt;
mod remote;
mod run;
mod running;
mod serve;
mod servers;
mod shell;
mod signals;
mod suggested;
mod values;

use clap::{CommandFactory, FromArgMatches};
use descriptors::Patience;
use failure::Failure;
use polity_client::SteerAction;
use remote::chat::Leaving;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

fn main() -> ExitCode {
    let mut given = std::env::args_os().skip(1);
    match given.next() {
        // This process is a child that extracts text from a document. It limits its resources before anything else.
        Some(first) if first == polity_media::EXTRACT_ARGUMENT => return polity_media::child_main(given),
        // This process sets up the sandbox of a command, or supervises the command in it.
        Some(first) if first == hands::SANDBOX_ARGUMENT => return polity_sandbox::enter(given),
        // `polity` without arguments leads a dialogue. Without a terminal, there is nobody to ask, so the command line
        // parser below shows the help.
        None if first::is_possible() => return alone(),
        Some(_) | None => {}
    }
    let parsed = cli::Arguments::command().try_get_matches().and_then(|matches| {
        suggested::remember(&matches, cli::Arguments::command);
        cli::Arguments::from_arg_matches(&matches)
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => {
            return match error.print() {
                Err(unprinted) if !error.use_stderr() => report(&Failure::of_output(unprinted)),
                // If the error message cannot be printed on standard error, the program can only return the exit code.
                Ok(()) | Err(_) => ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 }),
            };
        }
    };
    log();
    remote::words::show_local_times();
    polity_heap::limit_arenas();
    descriptors::raise_limit();
    match arguments.command {
        cli::Command::Run(_) | cli::Command::Mcp(_) => descriptors::wait_for_room(Patience::FiveSeconds),
        // The daemon must not give up: perhaps nobody is there to start it again.
        cli::Command::Serve(_) => descriptors::wait_for_room(Patience::Endless),
        _ => {}
    }
    polity_llm::install_crypto_provider();
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return report(&failure),
    };
    let code = runtime.block_on(async {
        match arguments.command {
            cli::Command::Run(arguments) => run::run(arguments).await,
            cli::Command::Serve(arguments) => serve::run(arguments).await,
            cli::Command::Send(arguments) => remote::send::run(arguments).await,
            cli::Command::Chat(arguments) => remote::chat::run(arguments, Leaving::AtOnce).await,
            cli::Command::Watch(arguments) => remote::watch::run(arguments).await,
            cli::Command::Fork(arguments) => remote::fork::run(arguments).await,
            cli::Command::Why(arguments) => remote::why::run(arguments).await,
            cli::Command::Export(arguments) => remote::export::run(arguments).await,
            cli::Command::Status(arguments) => remote::status::run(arguments).await,
            cli::Command::Agents(arguments) => remote::agents::run(arguments).await,
            cli::Command::Agent(arguments) => remote::agent::run(arguments).await,
            cli::Command::Tasks(arguments) => remote::tasks::run(arguments).await,
            cli::Command::Messages(arguments) => remote::messages::run(arguments).await,
            cli::Command::Artifacts(arguments) => remote::artifacts::list(arguments).await,
            cli::Command::Artifact(command) => remote::artifacts::one(command).await,
            cli::Command::Services(arguments) => remote::services::run(arguments).await,
            cli::Command::Search(arguments) => remote::search::run(arguments).await,
            cli::Command::Usage(arguments) => remote::usage::run(arguments).await,
            cli::Command::Events(arguments) => remote::events::run(arguments).await,
            cli::Command::View(arguments) => remote::view::run(arguments).await,
            cli::Command::Approvals(arguments) => remote::approvals::list(arguments).await,
            cli::Command::Approve(arguments) => remote::approvals::approve(arguments).await,
            cli::Command::Deny(arguments) => remote::approvals::deny(arguments).await,
            cli::Command::Stop(arguments) => remote::steer::run(arguments, SteerAction::Stop).await,
            cli::Command::Pause(arguments) => remote::steer::run(arguments, SteerAction::Pause).await,
            cli::Command::Resume(arguments) => remote::steer::run(arguments, SteerAction::Resume).await,
            cli::Command::Shutdown(arguments) => remote::shutdown::run(arguments).await,
            cli::Command::Config(command) => config_command::run(command).await,
            cli::Command::Db(command) => db::run(command).await,
            cli::Command::Gc(arguments) => gc::run(arguments).await,
            cli::Command::Doctor(arguments) => doctor::run(arguments).await,
            cli::Command::Mcp(arguments) => Box::pin(mcp::run(arguments)).await,
            cli::Command::Completions(arguments) => shell::completions(arguments.shell),
            cli::Command::Man(arguments) => shell::man(arguments.dir.as_deref()),
        }
    });
    // Do not wait for blocking threads, such as a thread that reads a large artifact: nobody needs their results.
    runtime.shutdown_background();
    match code {
        Ok(code) => ExitCode::from(code),
        Err(failure) => report(&failure),
    }
}

/// Maximum number of threads for blocking work, such as reading a file or looking up a name. If many agents need such a
/// thread in the same moment, tokio starts one for each, and a busy daemon never ends them. No job of these threads waits
/// for another one, and most take microseconds. Lookups of names for agents can take seconds, but only few of them run at
/// the same time (crate `addresses`).
const BLOCKING_THREADS: usize = 64;

/// Starts the async runtime.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(|error| Failure::Defect(format!("failed to start: {error}")))
}

/// Runs the dialogue of `polity` without arguments.
fn alone() -> ExitCode {
    log();
    remote::words::show_local_times();
    polity_llm::install_crypto_provider();
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(failure) => return report(&failure),
    };
    let code = runtime.block_on(first::run());
    // Do not wait for the thread that may still read a line from the terminal.
    runtime.shutdown_background();
    match code {
        Ok(code) => ExitCode::from(code),
        Err(failure) => report(&failure),
    }
}

/// Starts logging to standard error: only errors, unless `POLITY_LOG` asks for more. Some libraries handle complete
/// requests and answers of models. Their logs would contain keys and media, so these libraries log nothing.
fn log() {
    let wanted = std::env::var("POLITY_LOG").unwrap_or_else(|_| "error".to_owned());
    let filter =
        EnvFilter::new(format!("{wanted},async_openai=off,hyper=off,hyper_util=off,reqwest=off,rmcp=warn"));
    let coloured = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(coloured)
        .with_target(false)
        // The subscriber would print its own errors with `eprintln!`, which panics if standard error cannot be written.
        .log_internal_errors(false)
        .init();
}

/// Prints why the command failed and returns its exit code. Prints nothing if the reader of standard output has gone,
/// because that is how `polity run … | head -1` normally ends.
fn report(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::OutputClosed) {
        output::complain(&suggested::repeating(&failure.to_string()));
    }
    ExitCode::from(failure.exit_code())
}
