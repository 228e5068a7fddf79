//! What is unfinished in a society that ends when the user leaves.

use super::tasks::is_active;
use crate::output::one_line;
use polity_client::Client;
use polity_view::{AgentState, MAX_PAGE, NowFilter, NowView, Stuck, TaskFilter, TaskView};
use std::time::Duration;

/// Tells what becomes of unfinished work.
pub(crate) const NOTHING_LOST: &str =
    "nothing is lost: the next `polity` or `polity serve` goes on with this";
/// Maximum time for finding out what is unfinished. A user who leaves does not wait longer for a daemon.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum number of agents that are named.
const NAMED: usize = 3;
/// Maximum length of a quoted question, in characters.
const QUESTION_CHARS: usize = 60;

/// Says what is unfinished. Returns nothing if nothing is, or if the daemon does not tell.
pub(crate) async fn unfinished(client: &Client) -> Option<String> {
    let read = async {
        let filter = TaskFilter { limit: Some(MAX_PAGE), ..TaskFilter::default() };
        let tasks = client.tasks(&filter).await.ok()?.tasks;
        let now = client.now(&NowFilter { limit: Some(MAX_PAGE) }).await.ok()?;
        in_words(&tasks, &now)
    };
    tokio::time::timeout(PATIENCE, read).await.ok().flatten()
}

fn in_words(tasks: &[TaskView], now: &NowView) -> Option<String> {
    let mut parts = vec![match tasks.iter().filter(|task| is_active(task)).count() {
        0 => return None,
        1 => "1 task is unfinished".to_owned(),
        count => format!("{count} tasks are unfinished"),
    }];
    // An agent that asks the user is named with its question below.
    let agents = |belongs: fn(AgentState) -> bool| -> Vec<&str> {
        let cards = now.working.iter().filter(|card| belongs(card.agent.state));
        cards.map(|card| card.agent.id.as_str()).collect()
    };
    let at_work = agents(AgentState::is_at_work);
    let waiting = agents(|state| state == AgentState::Waiting);
    for (what, agents) in [("at work", at_work), ("waiting for an answer", waiting)] {
        if !agents.is_empty() {
            parts.push(format!("{what}: {}", some_of(&agents)));
        }
    }
    let mut questions = now.stuck.iter().filter_map(|thing| match &thing.stuck {
        Stuck::Question { agent, text, .. } => {
            Some(format!("{agent} asks you: {}", one_line(text, QUESTION_CHARS)))
        }
        Stuck::Approval { agent, tool, .. } => Some(format!("{agent} asks whether it may call {tool}")),
        Stuck::Request { .. }
        | Stuck::Parked { .. }
        | Stuck::Paused { .. }
        | Stuck::Service { .. }
        | Stuck::Answered { .. } => None,
    });
    parts.extend(questions.next());
    match questions.count() {
        0 => {}
        1 => parts.push("1 more question to you".to_owned()),
        count => parts.push(format!("{count} more questions to you")),
    }
    Some(parts.join("; "))
}

/// Lists the first names, and the number of the others.
fn some_of(names: &[&str]) -> String {
    let first = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::examples::{agent, task_id, tasks};
    use super::*;
    use polity_society::id::{AgentId, ApprovalId, MessageId};
    use polity_view::{CardView, StuckView};

    fn now(working: &[(&str, AgentState)], stuck: Vec<Stuck>) -> NowView {
        let card = |(id, state): &(&str, AgentState)| CardView {
            agent: polity_view::AgentView { state: *state, ..agent(id, None) },
            objective: None,
            active_in: task_id(),
            active_at: 0,
            last: None,
        };
        let thing = |stuck| StuckView {
            key: String::new(),
            since: 0,
            stuck,
            task: Some(task_id()),
            title: None,
            remedies: Vec::new(),
        };
        let working: Vec<CardView> = working.iter().map(card).collect();
        let stuck: Vec<StuckView> = stuck.into_iter().map(thing).collect();
        let at_work = working.iter().filter(|card| card.agent.state.is_at_work());
        let at_work_total = at_work.count() as u64;
        let (working_total, stuck_total) = (working.len() as u64, stuck.len() as u64);
        NowView { at: 0, as_of: 0, running: true, working, working_total, at_work_total, stuck, stuck_total }
    }

    #[test]
    fn what_is_unfinished_is_named() {
        let all = tasks();
        let check = |tasks: &[TaskView], now: NowView, expect: Option<&str>| {
            assert_eq!(in_words(tasks, &now).as_deref(), expect);
        };
        let (thinking, waiting) = (AgentState::Thinking, AgentState::Waiting);
        let lead = || AgentId::new("lead-7cwh");
        let question = || Stuck::Question {
            agent: lead(),
            message: MessageId::from_sequence(7),
            text: "May or June?".to_owned(),
        };
        let approval = Stuck::Approval {
            agent: lead(),
            approval: ApprovalId::from_number(4),
            tool: "bash".to_owned(),
            expires_at: 0,
        };
        // The first two tasks are finished, the third waits for the user, and the last is open.
        check(&all[..2], now(&[], Vec::new()), None);
        check(&all[3..], now(&[("root", thinking)], Vec::new()), Some("1 task is unfinished; at work: root"));
        let asks = now(&[("lead-7cwh", AgentState::Asking)], vec![question()]);
        check(&all[2..3], asks, Some("1 task is unfinished; lead-7cwh asks you: May or June?"));
        let many =
            [("root", waiting), ("a-1", thinking), ("a-2", thinking), ("a-3", thinking), ("a-4", thinking)];
        check(
            &all,
            now(&many, vec![approval, question(), question()]),
            Some(
                "2 tasks are unfinished; at work: a-1, a-2, a-3 and 1 more; waiting for an answer: root; lead-7cwh asks \
                 whether it may call bash; 2 more questions to you",
            ),
        );
    }
}
