//! Tells why no model could be used in a task, if the user has seen the message about it before.

use crate::output::complain;
use crate::remote::advice::{self, Advice, Process};
use crate::suggested::repeating;
use polity_client::Client;
use polity_society::id::TaskId;
use polity_view::{Fact, Why, WhyFilter, WhyRemedy};

/// Whether `polity run --resume` would let root try again in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumable {
    Yes,
    No,
}

/// Tells why no model could be used in a task, and how to try again. This command has not printed the message about it,
/// because an earlier command or another process has shown the message.
pub(super) async fn tell_known_failure(client: &Client, task: &TaskId, resumable: Resumable) {
    // Without the explanation, the text still tells what happened.
    let why = client.why(task.as_str(), &WhyFilter::default()).await.unwrap_or_default();
    for line in known_failure_in_words(task, &why, resumable, Process::after(client)) {
        complain(&line);
    }
}

/// Describes the failure and its remedies, the best remedy first.
fn known_failure_in_words(task: &TaskId, why: &Why, resumable: Resumable, process: Process) -> Vec<String> {
    let cause = why.chain.iter().find_map(|fact| match fact {
        Fact::TurnFailed { reason, .. } => Some(format!(": {reason}")),
        _ => None,
    });
    let cause = cause.unwrap_or_default();
    let mut how = Vec::new();
    if resumable == Resumable::Yes {
        // Unlike a fork, this needs no daemon, and the agents keep the files of the task.
        how.push(Advice::Always("let root try again: polity run --resume".to_owned()));
    }
    let again = |remedy: &&WhyRemedy| matches!(remedy, WhyRemedy::RunAgain { .. } | WhyRemedy::Write { .. });
    // The remedy that runs the turn again comes last in an explanation.
    for remedy in why.remedies.iter().rev().filter(again) {
        how.extend(remedy.sentences("").into_iter().map(Advice::WithDaemon));
    }
    let mut lines = vec![
        format!("{task} ended, because no model could be used{cause}"),
        "polity does not ask again by itself; to try again:".to_owned(),
    ];
    lines.extend(advice::lines(process, how).iter().map(|line| format!("→ {}", repeating(line))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::AgentId;

    #[test]
    fn a_failure_that_was_shown_before_is_told_with_commands_that_work() {
        let (root, task) = (AgentId::root, TaskId::new("t-1"));
        let reason = "server unreachable".to_owned();
        let failed = Fact::TurnFailed { agent: root(), reason, at: None };
        let again = WhyRemedy::RunAgain { agent: root(), task: task.clone(), turn: 3, service: None };
        let write = WhyRemedy::Write { agent: root(), task: task.clone() };
        let why = Why { chain: vec![failed], remedies: vec![write, again] };
        let words = |resumable, process| known_failure_in_words(&task, &why, resumable, process).join("\n");
        insta::assert_snapshot!(words(Resumable::Yes, Process::Nothing), @r#"
        t-1 ended, because no model could be used: server unreachable
        polity does not ask again by itself; to try again:
        → let root try again: polity run --resume
        → first start a daemon: polity serve
        → run turn 3 of root again: polity fork t-1 --turn 3
        → write again: polity send --to root --task t-1 "…"
        "#);
        insta::assert_snapshot!(words(Resumable::No, Process::Daemon), @r#"
        t-1 ended, because no model could be used: server unreachable
        polity does not ask again by itself; to try again:
        → run turn 3 of root again: polity fork t-1 --turn 3
        → write again: polity send --to root --task t-1 "…"
        "#);
    }
}
