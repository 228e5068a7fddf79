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

/// A line of advice. A command ends its line, so that it can be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Advice {
    /// Works at any time.
    Always(String),
    /// Works only while a daemon serves the data directory.
    WithDaemon(String),
}

/// Returns the lines of advice about one thing. If no daemon runs, a line with the command that starts one precedes the
/// first line that needs a daemon.
pub(crate) fn lines(process: Process, advice: Vec<Advice>) -> Vec<String> {
    let mut first = match process {
        Process::Daemon => None,
        Process::Nothing => Some("first start a daemon: polity serve"),
        Process::Other => Some("when the other polity has ended, first start a daemon: polity serve"),
    };
    let mut lines = Vec::new();
    for advice in advice {
        match advice {
            Advice::Always(line) => lines.push(line),
            Advice::WithDaemon(line) => {
                lines.extend(first.take().map(str::to_owned));
                lines.push(line);
            }
        }
    }
    lines
}

/// Returns the commands that answer the question whether an agent may make a call. Each of them gets `options`.
pub(crate) fn deciding(process: Process, approval: &ApprovalId, options: &str) -> Vec<Advice> {
    let commands =
        ["approve", "deny"].map(|verb| Advice::WithDaemon(format!("polity {verb} {approval}{options}")));
    let on_terminal = match process {
        Process::Daemon | Process::Other => None,
        Process::Nothing => Some(Advice::Always(format!("on a terminal: polity run --resume{options}"))),
    };
    on_terminal.into_iter().chain(commands).collect()
}

/// Returns the command that answers a question of an agent. It needs a daemon.
pub(crate) fn answering(agent: &AgentId, task: &TaskId) -> String {
    let to = if agent.is_root() { String::new() } else { format!("--to {agent} ") };
    format!("polity send {to}--task {task} \"…\"")
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
    fn the_command_that_starts_a_daemon_has_a_line_of_its_own() {
        let advice = || {
            vec![
                Advice::Always("polity doctor".to_owned()),
                Advice::WithDaemon("polity stop root".to_owned()),
                Advice::WithDaemon("polity resume root".to_owned()),
            ]
        };
        let check = |process, expect: &[&str]| assert_eq!(lines(process, advice()), expect);
        check(Process::Daemon, &["polity doctor", "polity stop root", "polity resume root"]);
        let first = "first start a daemon: polity serve";
        check(Process::Nothing, &["polity doctor", first, "polity stop root", "polity resume root"]);
        let first = "when the other polity has ended, first start a daemon: polity serve";
        check(Process::Other, &["polity doctor", first, "polity stop root", "polity resume root"]);
        assert_eq!(lines(Process::Nothing, advice()[..1].to_vec()), ["polity doctor"]);
    }

    #[test]
    fn a_question_about_a_call_is_answered_with_and_without_a_daemon() {
        let check = |process, expect: &[&str]| {
            assert_eq!(lines(process, deciding(process, &ApprovalId::from_number(4), " --data d")), expect);
        };
        check(Process::Daemon, &["polity approve q4 --data d", "polity deny q4 --data d"]);
        check(
            Process::Nothing,
            &[
                "on a terminal: polity run --resume --data d",
                "first start a daemon: polity serve",
                "polity approve q4 --data d",
                "polity deny q4 --data d",
            ],
        );
        check(
            Process::Other,
            &[
                "when the other polity has ended, first start a daemon: polity serve",
                "polity approve q4 --data d",
                "polity deny q4 --data d",
            ],
        );
    }

    #[test]
    fn the_answer_to_a_question_names_the_agent_unless_it_is_root() {
        let check = |agent: &str, expect: &str| {
            assert_eq!(answering(&AgentId::new(agent), &TaskId::new("t-1")), expect);
        };
        check("root", "polity send --task t-1 \"…\"");
        check("ida", "polity send --to ida --task t-1 \"…\"");
    }

    #[test]
    fn only_work_that_no_process_continues_needs_a_command() {
        assert_eq!(going_on(Process::Daemon), None);
        assert_eq!(going_on(Process::Other), None);
        assert!(going_on(Process::Nothing).is_some_and(|words| words.contains("polity run --resume")));
    }
}
