//! The command line.

use crate::remote;
use clap::{Args, Parser, Subcommand};
use polity_society::id::ServiceId;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Printed at the end of the help: which commands need a daemon.
const DAEMON: &str = "Commands that only read (agents, agent, tasks, messages, artifacts, artifact get, services, usage, \
                      events, export) ask the daemon; if no daemon serves the data directory, they read it themselves. \
                      send, chat, watch, view, stop, pause, resume, artifact put, config reload and events --follow \
                      need a daemon: polity serve.";

/// A society of LLM agents on your machine.
#[derive(Debug, Parser)]
#[command(name = "polity", version, about, propagate_version = true, after_help = DAEMON)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the root agent a prompt, and wait for the answer.
    ///
    /// Prints messages to you on standard output as they arrive. On a terminal, it also shows on standard error what
    /// the agents do.
    ///
    /// Exit codes: 0 answered; 2 bad usage, configuration or data directory; 3 no answer; 4 a limit stopped the task;
    /// 5 no model could be reached; 6 an agent waits for your answer; 124 timeout; 130 interrupted, or the reader of
    /// standard output has gone; 1 standard output cannot be written, or a bug in polity.
    Run(RunArguments),
    /// Run the daemon: it keeps the society at work, and serves the live view, the API and the other commands over
    /// HTTP.
    ///
    /// On Ctrl-C or SIGTERM it lets the work in progress finish, within the grace period of app.json, and exits with 0.
    /// A second signal ends it at once. The next start continues where this one stopped. Exit code 2: bad usage,
    /// configuration, data directory or address.
    Serve(ServeArguments),
    /// Send a message to root or to any other agent.
    ///
    /// Prints the id of the message and its task; with --wait, the messages to you. Needs a daemon: polity serve.
    ///
    /// Exit codes: 0 accepted; 2 bad usage, no daemon, or refused; with --wait the exit codes of `polity run`.
    Send(remote::send::Arguments),
    /// Talk with root: it gets the lines that you write, and messages to you are shown as they arrive.
    ///
    /// A line that begins with / is a command to the chat; /help lists these commands. If standard input is a pipe,
    /// each line is sent after the previous one was answered, and the exit code is that of `polity run`.
    Chat(remote::chat::Arguments),
    /// Watch the agents and the events live; in a pipe, print one line per event.
    ///
    /// It keeps running when the daemon is restarted. On a terminal, q quits and the arrow keys scroll.
    Watch(remote::watch::Arguments),
    /// List the agents as a tree.
    Agents(remote::agents::Arguments),
    /// Show one agent: its role, brief and contacts; or its conversation; or the next request to its model.
    Agent(remote::agent::Arguments),
    /// List the tasks, newest last.
    Tasks(remote::tasks::Arguments),
    /// List messages, newest last.
    Messages(remote::messages::Arguments),
    /// List artifacts, newest last.
    Artifacts(remote::artifacts::Arguments),
    /// Fetch or store one artifact.
    #[command(subcommand)]
    Artifact(remote::artifacts::Command),
    /// List the services and their state.
    Services(remote::services::Arguments),
    /// Show how many calls and tokens were used, and what they cost.
    Usage(remote::usage::Arguments),
    /// List past events, or follow new ones; following needs a daemon.
    Events(remote::events::Arguments),
    /// Write a whole task into one file, as Markdown for people or as JSON for programs.
    ///
    /// Needs no daemon.
    Export(remote::export::Arguments),
    /// Print an address that opens the live view without a token: it works once, within a minute.
    View(remote::view::Arguments),
    /// Stop a task, or the work of an agent and all its descendants; the agents stay and can still receive messages.
    Stop(remote::steer::Arguments),
    /// Pause an agent and all its descendants: they do nothing until you resume them.
    Pause(remote::steer::Arguments),
    /// Resume an agent and all its descendants, whether paused or parked.
    Resume(remote::steer::Arguments),
    /// Check, show or reload the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check or back up the stored data.
    #[command(subcommand)]
    Db(DbCommand),
    /// Free disk space; no other polity may use the data directory meanwhile.
    ///
    /// Removes stored bytes that no artifact needs, and events beyond the limits of `retention` in app.json. With
    /// --older-than it also removes artifacts. It removes what agents and people have said only if
    /// `retention.maxDatabaseBytes` is set and the database is larger.
    Gc(GcArguments),
    /// Find problems with the configuration, the services and the data directory, and advise what to do.
    ///
    /// Reads the configuration; asks each service which models it has, and makes one or two small calls to it; checks
    /// the data directory, the database and the ports. Exits with 2 if there is a problem, and with 0 if there are only
    /// hints and warnings.
    Doctor(DoctorArguments),
    /// Speak MCP over standard input and output, for an editor or an assistant that starts this command as its MCP
    /// server.
    ///
    /// If a daemon serves the data directory, this command relays the messages to it; otherwise the society runs in
    /// this process, until standard input is closed.
    Mcp(McpArguments),
    /// Print the completion script for a shell.
    Completions(CompletionsArguments),
    /// Print the manual page.
    Man(ManArguments),
}

/// `polity config`
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print all problems of the configuration files; exits with 2 if polity cannot use something that they declare.
    Check {
        /// Where app.json and llmservices.json are [default: as for `polity run`].
        dir: Option<PathBuf>,
    },
    /// Print the configuration in force, as JSON, without secrets.
    Show {
        /// Where app.json and llmservices.json are [default: as for `polity run`].
        #[arg(long, value_name = "DIR")]
        config: Option<PathBuf>,
    },
    /// Have the daemon read the configuration files now; exits with 2 if it cannot use something that they declare.
    ///
    /// The daemon also reads them by itself, when they change and before each model call.
    Reload(remote::reload::Arguments),
}

/// `polity completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell that will run the script.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `polity man`
#[derive(Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each command into this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `polity db`
#[derive(Debug, Subcommand)]
pub(crate) enum DbCommand {
    /// Read all stored data and print what is damaged; exits with 2 if something is. A daemon may be running.
    Check {
        /// The data directory of the society [default: `polity` in your user data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Copy all stored data, as it is at this moment, into a new directory. A daemon may be running.
    ///
    /// The copy is a data directory like any other: `polity run --data` accepts it. Exits with 2 if something could not
    /// be copied.
    Backup {
        /// The directory to create; it must not exist yet.
        #[arg(value_name = "BACKUP")]
        to: PathBuf,
        /// The data directory of the society [default: `polity` in your user data directory].
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
}

/// `polity gc`
#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// Also remove the artifacts of tasks in which nothing has happened for this long, such as 30d or 12w, unless
    /// another task names the artifact. The messages and records of these tasks stay.
    #[arg(long, value_name = "DURATION", value_parser = age)]
    pub(crate) older_than: Option<Duration>,

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

    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `polity mcp`
#[derive(Debug, Args)]
pub(crate) struct McpArguments {
    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// `polity run`
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// The prompt: what you want done; `-` reads it from standard input.
    #[arg(value_name = "PROMPT", required_unless_present = "resume")]
    pub(crate) prompt: Option<String>,

    /// Continue all unfinished work, however the last process ended.
    #[arg(long, conflicts_with_all = ["prompt", "attach", "service"])]
    pub(crate) resume: bool,

    /// A file to attach to the prompt; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,

    /// The service that the root agent uses for this prompt.
    #[arg(long, value_name = "ID", value_parser = service)]
    pub(crate) service: Option<ServiceId>,

    /// Where app.json and llmservices.json are [default: ./config if it has one of them, else `polity` in your user
    /// configuration directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Print one JSON object per line for everything that happens.
    #[arg(long)]
    pub(crate) json: bool,

    /// Stop after this long, such as 90s, 5m or 1h30m; the work can be resumed.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
}

/// `polity serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// The address to listen on; port 0 chooses a free port. Other machines can connect only if it is not a loopback
    /// address, and then --allow-host is required.
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

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let advice = "write it like 127.0.0.1:7717 or [::1]:7717";
    numeric.as_deref().unwrap_or(text).parse().map_err(|_| advice.to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-._:[]".contains(character);
    if text.is_empty() || !text.chars().all(plain) {
        return Err("write only the name, like polity.example or polity.example:8080".to_owned());
    }
    Ok(text.to_owned())
}

fn service(text: &str) -> Result<ServiceId, String> {
    let text = text.trim();
    if text.is_empty() { Err("name a service".to_owned()) } else { Ok(ServiceId::new(text)) }
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
        // No unit.
        check("30", None);
        // Months differ in length.
        check("1mo", None);
        check("-1d", None);
        check("soon", None);
    }
}
