//! The command line.

use crate::remote;
use clap::{Args, Parser, Subcommand};
use polity_society::id::ServiceId;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Which commands need a daemon.
const DAEMON: &str = "Commands that only read (agents, agent, tasks, messages, artifacts, artifact get, services, usage, \
                      events, export) ask the daemon, or read the data directory themselves where none serves it. \
                      send, chat, watch, view, stop, pause, resume, artifact put, config reload and events --follow need \
                      a daemon: polity serve.";

/// A society of LLM agents on your machine.
#[derive(Debug, Parser)]
#[command(name = "polity", version, about, propagate_version = true, after_help = DAEMON)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the root agent a prompt, and wait for the answer.
    ///
    /// Messages to you go to standard output as they come; on a terminal, what happens is shown on standard error.
    ///
    /// Exit codes: 0 answered; 2 bad usage, configuration or data directory; 3 no answer; 4 a limit stopped the task;
    /// 5 no model could be reached; 6 an agent waits for your answer; 124 timeout; 130 interrupted, or nobody reads
    /// standard output any more; 1 standard output cannot be written to, or a defect of polity.
    Run(RunArguments),
    /// Stay, and serve the society over HTTP: the live view, the API, the other commands.
    ///
    /// Ends with 0 when it is interrupted or asked to terminate, after what is under way has ended; asked once more, at
    /// once. The next start goes on where it was. Exit code 2: bad usage, configuration, data directory or address.
    Serve(ServeArguments),
    /// Send a message to root, or to any agent.
    ///
    /// Prints the message and its task, or with --wait what comes of it. Needs a daemon: polity serve.
    ///
    /// Exit codes: 0 taken; 2 bad usage, no daemon, or refused; with --wait those of `polity run`.
    Send(remote::send::Arguments),
    /// Talk with root: lines that you write go to it, and what agents say to you is shown as it comes.
    ///
    /// What begins with / is for the chat; /help says what there is. Out of a pipe each line is sent when the one before
    /// has been answered, and the exit code is that of `polity run`.
    Chat(remote::chat::Arguments),
    /// Watch the agents and what happens, live; in a pipe a line for each event.
    ///
    /// It goes on when the daemon is restarted. On a terminal, q leaves and the arrows scroll.
    Watch(remote::watch::Arguments),
    /// List the agents, as a tree.
    Agents(remote::agents::Arguments),
    /// Show all about one agent: its role, brief and contacts, what it heard and said, what its model would be sent.
    Agent(remote::agent::Arguments),
    /// List the tasks, the newest last.
    Tasks(remote::tasks::Arguments),
    /// List messages, the newest last.
    Messages(remote::messages::Arguments),
    /// List artifacts, the newest last.
    Artifacts(remote::artifacts::Arguments),
    /// Fetch or store one artifact.
    #[command(subcommand)]
    Artifact(remote::artifacts::Command),
    /// List the services, and how they are doing.
    Services(remote::services::Arguments),
    /// Show what was spent.
    Usage(remote::usage::Arguments),
    /// List what happened, or follow what happens, which needs a daemon.
    Events(remote::events::Arguments),
    /// Write a whole task into one file, for people or for programs.
    ///
    /// Needs no daemon.
    Export(remote::export::Arguments),
    /// Print the address of the live view; it opens the page once, within a minute, without a token.
    View(remote::view::Arguments),
    /// End a task, or what an agent and all below it are doing; they stay, and can be written to.
    Stop(remote::steer::Arguments),
    /// Have an agent and all below it do nothing until they are resumed.
    Pause(remote::steer::Arguments),
    /// Let an agent and all below it go on that were paused or parked.
    Resume(remote::steer::Arguments),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Look after what is stored.
    #[command(subcommand)]
    Db(DbCommand),
    /// Free the room that nobody needs; no other polity may use the data directory meanwhile.
    ///
    /// Removes stored bytes that no artifact needs, and events that have had their time (`retention` in app.json). With
    /// --older-than also artifacts. What agents and people have said is never removed.
    Gc(GcArguments),
    /// Look at what is configured and what is really there, and say what to do.
    ///
    /// Reads the configuration, asks each service what it has and makes one or two small calls of it, and looks at the
    /// data directory, the database and the ports. Exits with 2 where there is a problem, with 0 where there are only
    /// hints and warnings.
    Doctor(DoctorArguments),
    /// Speak MCP over standard input and output, for an editor or an assistant that starts this as its server.
    ///
    /// Where a daemon serves the data directory, what is said is passed on to it; otherwise the society runs in this
    /// process, until standard input is closed.
    Mcp(McpArguments),
    /// Print the completions for a shell.
    Completions(CompletionsArguments),
    /// Print the manual page.
    Man(ManArguments),
}

/// `polity config`
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print everything that is wrong with the files; exits with 2 where something is not in force.
    Check {
        /// Where app.json and llmservices.json are [default: as for `polity run`].
        dir: Option<PathBuf>,
    },
    /// Print what is in force, as JSON, without secrets.
    Show {
        /// Where app.json and llmservices.json are [default: as for `polity run`].
        #[arg(long, value_name = "DIR")]
        config: Option<PathBuf>,
    },
    /// Have the daemon read the files now; exits with 2 where something is not in force.
    ///
    /// It does so by itself when they change and before each model call.
    Reload(remote::reload::Arguments),
}

/// `polity completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `polity man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write the pages of all commands into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `polity db`
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Read everything, and print what is damaged; exits with 2 where something is. A daemon may be running.
    Check {
        /// Where the society lives [default: your data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Copy everything, as it is at this moment, into a new directory. A daemon may be running.
    ///
    /// The copy is a data directory like any other: `polity run --data` takes it. Exits with 2 where something could not
    /// be copied.
    Backup {
        /// The directory to make; nothing may be there.
        #[arg(value_name = "BACKUP")]
        to: PathBuf,
        /// Where the society lives [default: your data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

/// `polity gc`
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// Also remove the artifacts of tasks in which nothing has happened for this long, such as 30d or 12w, unless
    /// another task names them. Their messages and records stay.
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub(crate) older_than: Option<Duration>,

    /// Only print what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Where app.json is [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// Where the society lives [default: your data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `polity doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Write what servers say of their models into llmservices.json, and keep the data directory private.
    #[arg(long, conflicts_with = "offline")]
    pub(crate) fix: bool,

    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,

    /// Ask no server anything.
    #[arg(long)]
    pub(crate) offline: bool,

    /// How long the small call of a service may take.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    pub(crate) timeout: Duration,

    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// Where the society lives [default: your data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `polity mcp`
#[derive(Debug, Args)]
pub(crate) struct McpArguments {
    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// Where the society lives [default: your data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `polity run`
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// What you want done; `-` reads it from standard input.
    #[arg(value_name = "PROMPT", required_unless_present = "resume")]
    pub(crate) prompt: Option<String>,

    /// Go on with whatever was left, however the last process ended.
    #[arg(long, conflicts_with_all = ["prompt", "attach", "service"])]
    pub(crate) resume: bool,

    /// A file that goes with the prompt; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// The service that the root agent uses for this prompt.
    #[arg(long, value_name = "ID", value_parser = service)]
    pub(crate) service: Option<ServiceId>,

    /// Where app.json and llmservices.json are [default: ./config, else your configuration directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// Where the society lives [default: your data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Print one JSON object per line for everything that happens.
    #[arg(long)]
    pub(crate) json: bool,

    /// Stop after this long, such as 90s, 5m or 1h30m; what was begun can be resumed.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// `polity serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen; port 0 is any that is free. Other machines can reach only what is no loopback address, and that
    /// needs --allow-host.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7717", value_parser = address)]
    pub(crate) listen: SocketAddr,

    /// A name under which others reach it, beside those of this machine, such as polity.example or 192.168.0.7:7717;
    /// may be given several times.
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub(crate) allow_host: Vec<String>,

    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// Where the society lives [default: your data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let advice = "write it like 127.0.0.1:7717 or [::1]:7717";
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| advice.to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-._:[]".contains(character);
    if text.is_empty() || !text.chars().all(plain) {
        return Err("write the name alone, like polity.example or polity.example:8080".to_owned());
    }
    Ok(text.to_owned())
}

fn service(text: &str) -> Result<ServiceId, String> {
    let text = text.trim();
    if text.is_empty() { Err("say which service".to_owned()) } else { Ok(ServiceId::new(text)) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let advice = "write it like 90s, 5m or 1h30m";
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let span: jiff::SignedDuration = text.parse().map_err(|_| advice.to_owned())?;
    Duration::try_from(span).map_err(|_| format!("must not be negative; {advice}"))
}

fn age(text: &str) -> Result<Duration, String> {
    let advice = "write it like 12h, 30d or 8w";
    let span: jiff::Span = text.parse().map_err(|_| advice.to_owned())?;
    let whole_days = jiff::SpanRelativeTo::days_are_24_hours();
    let age = span.to_duration(whole_days).map_err(|_| advice.to_owned())?;
    Duration::try_from(age).map_err(|_| format!("must not be negative; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations() {
        let check = |text: &str, expect: Option<u64>| {
            assert_eq!(duration(text).ok(), expect.map(Duration::from_secs), "{text}");
        };
        check("90s", Some(90));
        check("5m", Some(300));
        check("1h30m", Some(5400));
        check("7", Some(7));
        check("-1s", None);
        check("soon", None);
    }

    #[test]
    fn addresses() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(address(text).ok().map(|address| address.to_string()).as_deref(), expect, "{text}");
        };
        check("127.0.0.1:7717", Some("127.0.0.1:7717"));
        check("localhost:0", Some("127.0.0.1:0"));
        check("[::1]:80", Some("[::1]:80"));
        check("7717", None);
        check("localhost", None);
        check("polity.example:7717", None);
    }

    #[test]
    fn hosts() {
        let check = |text: &str, expect: bool| assert_eq!(host(text).is_ok(), expect, "{text}");
        check("polity.example", true);
        check("[fd00::7]:7717", true);
        check("", false);
        check("http://polity.example", false);
        check("*", false);
    }

    #[test]
    fn ages() {
        let check = |text: &str, expect: Option<u64>| {
            let hours = expect.map(|hours| Duration::from_secs(hours * 60 * 60));
            assert_eq!(age(text).ok(), hours, "{text}");
        };
        check("12h", Some(12));
        check("30d", Some(30 * 24));
        check("8w", Some(8 * 7 * 24));
        check("1d 12h", Some(36));
        // Of what?
        check("30", None);
        // How long is a month?
        check("1mo", None);
        check("-1d", None);
        check("soon", None);
    }
}
