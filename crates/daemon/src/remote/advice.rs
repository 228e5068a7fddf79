//! Advice that depends on which process uses the data directory: most commands that help need a daemon.

use crate::failure::Failure;
use polity_client::Client;
use polity_disk::{Holder, holder};
use polity_society::id::{AgentId, ApprovalId, TaskId};
use serde::Serialize;
use std::path::Path;

/// Which kind of process uses the data directory, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Process {
    /// A daemon serves the directory.
    Daemon,
    /// A process such as `polity run` uses the directory, but answers no requests of other commands.
    Other,
    /// Nothing runs.
    Nothing,
}

impl Process {
    /// Finds out which kind of process uses the data directory from which the client reads.
    pub(crate) fn of(client: &Client, data: &Path) -> Result<Self, Failure> {
        if !client.is_in_process() {
            return Ok(Self::Daemon);
        }
        match holder(data) {
            Ok(Holder::Somebody) => Ok(Self::Other),
            Ok(Holder::Nobody) => Ok(Self::Nothing),
            Err(source) => Err(Failure::Data { path: data.to_owned(), source }),
        }
    }

    /// Returns what still runs when this command has ended. A society in this process ends with the command.
    pub(crate) fn after(client: &Client) -> Self {
        if client.is_in_process() { Self::Nothing } else { Self::Daemon }
    }
}

/// Returns advice that needs a daemon. If none runs, the advice begins with the command that starts one.
pub(crate) fn needing_daemon(process: Process, advice: &str) -> String {
    match process {
        Process::Daemon => advice.to_owned(),
        Process::Nothing => format!("start polity serve, then {advice}"),
        Process::Other => format!("when the other polity has ended, start polity serve, then {advice}"),
    }
}

/// Returns the commands that answer the question whether an agent may make a call, each on a line of its own. Each of
/// them gets `options`.
pub(crate) fn deciding(process: Process, approval: &ApprovalId, options: &str) -> Vec<String> {
    let commands = ["approve", "deny"]
        .map(|verb| needing_daemon(process, &format!("polity {verb} {approval}{options}")));
    let on_terminal = match process {
        Process::Daemon | Process::Other => None,
        Process::Nothing => Some(format!("on a terminal: polity run --resume{options}")),
    };
    on_terminal.into_iter().chain(commands).collect()
}

/// Returns the command that answers a question of an agent.
pub(crate) fn answering(process: Process, agent: &AgentId, task: &TaskId) -> String {
    let to = if agent.is_root() { String::new() } else { format!("--to {agent} ") };
    needing_daemon(process, &format!("polity send {to}--task {task} \"…\""))
}

/// Returns how unfinished work goes on; nothing if a process works on it.
pub(crate) fn going_on(process: Process) -> Option<&'static str> {
    match process {
        Process::Daemon | Process::Other => None,
        Process::Nothing => Some("`polity run --resume` or `polity serve` goes on with the work"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_works_without_a_daemon_too() {
        let stop = |process| needing_daemon(process, "polity stop root");
        assert_eq!(stop(Process::Daemon), "polity stop root");
        assert_eq!(stop(Process::Nothing), "start polity serve, then polity stop root");
        assert_eq!(
            stop(Process::Other),
            "when the other polity has ended, start polity serve, then polity stop root"
        );
    }

    #[test]
    fn a_question_about_a_call_is_answered_with_and_without_a_daemon() {
        let check = |process, expect: &[&str]| {
            assert_eq!(deciding(process, &ApprovalId::from_number(4), " --data d"), expect);
        };
        check(Process::Daemon, &["polity approve q4 --data d", "polity deny q4 --data d"]);
        check(
            Process::Nothing,
            &[
                "on a terminal: polity run --resume --data d",
                "start polity serve, then polity approve q4 --data d",
                "start polity serve, then polity deny q4 --data d",
            ],
        );
        check(
            Process::Other,
            &[
                "when the other polity has ended, start polity serve, then polity approve q4 --data d",
                "when the other polity has ended, start polity serve, then polity deny q4 --data d",
            ],
        );
    }

    #[test]
    fn a_question_is_answered_with_and_without_a_daemon() {
        let check = |process, agent: &str, expect: &str| {
            assert_eq!(answering(process, &AgentId::new(agent), &TaskId::new("t-1")), expect);
        };
        check(Process::Daemon, "root", "polity send --task t-1 \"…\"");
        check(Process::Nothing, "ida", "start polity serve, then polity send --to ida --task t-1 \"…\"");
    }

    #[test]
    fn only_work_that_no_process_continues_needs_a_command() {
        assert_eq!(going_on(Process::Daemon), None);
        assert_eq!(going_on(Process::Other), None);
        assert!(going_on(Process::Nothing).is_some_and(|words| words.contains("polity run --resume")));
    }
}
