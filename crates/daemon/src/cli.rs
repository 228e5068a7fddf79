//! The command line.

use crate::{config_command, db, doctor, gc, mcp, remote, serve};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The end of the help text: it lists the commands that need a daemon and those that do not.
const DAEMON: &str = "Commands that only read (status, agents, agent, tasks, messages, search, artifacts, artifact get, \
                      approvals, services, usage, events, why, export) ask the daemon; if no daemon serves the data directory, they read it themselves. \
                      send, fork, chat, watch, view, approve, deny, stop, pause, resume, shutdown, \
                      artifact put, config reload and events --follow \
                      need a daemon: polity serve.";

/// A society of LLM agents on your machine.
#[derive(Debug, Parser)]
#[command(name = "polity", version, about, propagate_version = true, after_help = DAEMON)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the root agent a prompt, and wait for the answer.
    ///
    /// Prints each message for you on standard output as soon as it arrives. On a terminal, the command also shows on
    /// standard error what the agents do.
    ///
    /// Exit codes: 0 answered; 2 bad usage, configuration or data directory; 3 no answer; 4 a limit stopped the task;
    /// 5 no model could be used; 6 an agent waits for your answer, or asks whether it may make a call; 124
    /// timeout; 130 interrupted, or the reader of standard output has gone; 1 standard output cannot be written, or a
    /// bug in polity.
    Run(remote::run::RunArguments),
    /// Run the daemon: it keeps the society at work, and serves the live view, the API and the other commands over
    /// HTTP.
    ///
    /// On Ctrl-C or SIGTERM the daemon lets the work in progress finish, within the grace period of app.json, and exits
    /// with 0. A second signal ends the daemon at once. The next start continues the work. Exit code 2: bad usage,
    /// configuration, data directory or address.
    Serve(serve::ServeArguments),
    /// Send a message to root or to any other agent.
    ///
    /// Prints the id of the message and its task. With --wait, also prints the messages for you. Needs a daemon: polity
    /// serve.
    ///
    /// Exit codes: 0 accepted; 2 bad usage, no daemon, or refused; with --wait the exit codes of `polity run`.
    Send(remote::send::Arguments),
    /// Copy a task up to a turn, and begin this turn again in the copy: with another service, another prompt or another
    /// answer.
    ///
    /// The original task stays unchanged. Needs a daemon: polity serve.
    Fork(remote::fork::Arguments),
    /// Talk with root: root gets the lines that you write, and messages to you are shown as they arrive.
    ///
    /// These are the messages of the tasks in which you write in the chat, or that you choose, and of the newest task
    /// when the chat begins.
    ///
    /// A line that begins with / is a command to the chat; /help lists these commands. If standard input is a pipe,
    /// each line is sent after the previous one was answered, and the exit code is that of `polity run`.
    Chat(remote::chat::Arguments),
    /// Watch the agents and the events live; in a pipe, print one line per event.
    ///
    /// The command keeps running when the daemon is restarted. On a terminal, q quits and the arrow keys scroll.
    Watch(remote::watch::Arguments),
    /// Show which daemon serves the data directory, who is at work, what is stuck, and how to help.
    ///
    /// If there is no daemon, the command says so, and shows what is left to do.
    Status(remote::status::Arguments),
    /// List the agents as a tree.
    Agents(remote::agents::Arguments),
    /// Show one agent: its role, brief and contacts; or its conversation; or the next request to its model.
    Agent(remote::agent::Arguments),
    /// List the tasks: first those in which something is left to do, then the finished ones, each newest last.
    ///
    /// With --json, all tasks are in the order in which they began.
    Tasks(remote::tasks::Arguments),
    /// List messages, newest last.
    Messages(remote::messages::Arguments),
    /// Find prompts, messages, agents and artifacts by their words, newest last.
    Search(remote::search::Arguments),
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
    /// Explain why something is as it is: a described artifact, a failure, an agent that halts or waits, a request or a
    /// task without an answer.
    ///
    /// Prints the reasons as a chain of facts, and then what you can do.
    Why(remote::why::Arguments),
    /// Write a whole task into one file, as Markdown for people or as JSON for programs.
    ///
    /// Needs no daemon.
    Export(remote::export::Arguments),
    /// Print an address that opens the live view without a token. It works only once, and only within a minute.
    View(remote::view::Arguments),
    /// List the calls that wait for your permission, or the permissions that you have given.
    Approvals(remote::approvals::Arguments),
    /// Allow a call that an agent asks about.
    Approve(remote::approvals::ApproveArguments),
    /// Refuse a call that an agent asks about.
    Deny(remote::approvals::DenyArguments),
    /// Stop a task, or the work of an agent and all its descendants; the agents stay and can still receive messages.
    ///
    /// What the agents were asked to do fails, and their questions to you are dropped. Agents that were parked are parked
    /// no longer; agents that are paused stay paused.
    Stop(remote::steer::Arguments),
    /// Pause an agent and all its descendants: these agents do nothing until you resume them.
    Pause(remote::steer::Arguments),
    /// Resume an agent and all its descendants, whether paused or parked.
    Resume(remote::steer::Arguments),
    /// Ask the daemon to end, and wait until it has ended.
    ///
    /// The daemon first lets the work in progress finish, within the grace period of app.json. The next start continues
    /// the rest. Exit codes: 0 the daemon has ended; 2 no daemon serves the data directory.
    Shutdown(remote::shutdown::Arguments),
    /// Check, show or reload the configuration.
    #[command(subcommand)]
    Config(config_command::ConfigCommand),
    /// Check or back up the stored data.
    #[command(subcommand)]
    Db(db::DbCommand),
    /// Free disk space. If a daemon serves the data directory, the daemon does it. The command fails while
    /// `polity run` uses the directory.
    ///
    /// Removes stored bytes that no artifact needs, and events beyond the limits of `retention` in app.json. With
    /// --older-than, the command also removes artifacts. If the database is larger than `retention.maxDatabaseBytes`,
    /// the command also removes what agents and people have said. Without this setting, it never removes that.
    Gc(gc::GcArguments),
    /// Find problems with the configuration, the services and the data directory, and advise what to do.
    ///
    /// Reads the configuration; asks each service which models it has, and makes one or two small calls to it; checks
    /// the data directory, the database and the ports. Exits with 1 if there is a problem, with 0 if there are only hints
    /// and warnings, and with 2 if the command line is wrong.
    Doctor(doctor::DoctorArguments),
    /// Speak MCP over standard input and output, for an editor or an assistant that starts this command as its MCP
    /// server.
    ///
    /// If a daemon serves the data directory, this command relays the messages to it; otherwise the society runs in
    /// this process, until standard input is closed.
    Mcp(mcp::McpArguments),
    /// Print the completion script for a shell.
    Completions(CompletionsArguments),
    /// Print the manual page.
    Man(ManArguments),
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
