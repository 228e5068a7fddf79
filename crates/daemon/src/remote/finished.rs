//! Agents that have nothing left to do. Lists of agents leave them out, and say how many they are.

use polity_client::{Client, Error};
use polity_society::id::{AgentId, TaskId};
use polity_view::{AgentState, AgentView, MAX_PAGE, TaskFilter, TaskState};
use std::collections::BTreeSet;

/// Fetches the tasks in which something is left to do, oldest first. To find finished agents, fetch these tasks after the
/// agents: otherwise, the agents of a task that begins meanwhile would count as finished.
pub(super) async fn open_tasks(client: &Client) -> Result<Vec<TaskId>, Error> {
    let mut filter =
        TaskFilter { state: Some(TaskState::Open), limit: Some(MAX_PAGE), ..TaskFilter::default() };
    let mut open = Vec::new();
    loop {
        let page = client.tasks(&filter).await?;
        open.extend(page.tasks.into_iter().map(|task| task.id));
        if page.next.is_none() {
            open.reverse();
            return Ok(open);
        }
        filter.after = page.next;
    }
}

/// Returns whether an agent is finished: it has ended, or it is idle and so is its task. Root is never finished.
fn is_finished(agent: &AgentView, open: &BTreeSet<TaskId>) -> bool {
    let has_idle_task = || agent.task.as_ref().is_some_and(|task| !open.contains(task));
    let is_over = agent.state == AgentState::Ended || agent.state == AgentState::Idle && has_idle_task();
    is_over && !agent.id.is_root()
}

/// Returns the agents to show and the number of the others. Finished agents are left out, except those above an agent
/// that is not. If all agents are finished, returns all. Parents must come before children in `agents`.
pub(super) fn without_finished(agents: &[AgentView], open: &BTreeSet<TaskId>) -> (Vec<AgentView>, usize) {
    let mut kept: BTreeSet<&AgentId> = BTreeSet::new();
    for agent in agents.iter().rev() {
        if !is_finished(agent, open) || kept.contains(&agent.id) {
            kept.insert(&agent.id);
            kept.extend(&agent.parent);
        }
    }
    let shown: Vec<AgentView> = agents.iter().filter(|agent| kept.contains(&agent.id)).cloned().collect();
    if shown.iter().all(|agent| agent.id.is_user()) {
        return (agents.to_vec(), 0);
    }
    let hidden = agents.len() - shown.len();
    (shown, hidden)
}

/// Sorts the finished agents behind all others.
pub(super) fn finished_last(agents: &mut [AgentView], open: &BTreeSet<TaskId>) {
    agents.sort_by_key(|agent| is_finished(agent, open));
}

#[cfg(test)]
mod tests {
    use super::super::examples::agent;
    use super::*;
    use polity_view::Doing;

    fn at(doing: Doing, task: &str, id: &str, parent: &str) -> AgentView {
        let task = Some(TaskId::new(task));
        AgentView { state: doing.state(), doing, task, ..agent(id, Some(parent)) }
    }

    fn ids(agents: &[AgentView]) -> Vec<&str> {
        agents.iter().map(|agent| agent.id.as_str()).collect()
    }

    #[test]
    fn finished_agents_are_left_out_and_counted() {
        let open = BTreeSet::from([TaskId::new("open")]);
        let ended = || Doing::Ended { since: 1 };
        let all = [
            agent("user", None),
            agent("root", Some("user")),
            at(Doing::Idle, "over", "a", "root"),
            at(Doing::Idle, "open", "b", "root"),
            at(ended(), "open", "c", "root"),
            at(Doing::Idle, "over", "d", "root"),
            at(Doing::Paused { since: 1 }, "over", "e", "d"),
            at(ended(), "open", "f", "e"),
        ];
        let (shown, hidden) = without_finished(&all, &open);
        assert_eq!((ids(&shown), hidden), (vec!["user", "root", "b", "d", "e"], 3));
        let (shown, hidden) = without_finished(&all[1..2], &open);
        assert_eq!((ids(&shown), hidden), (vec!["root"], 0), "root is idle");
        let finished = [all[0].clone(), all[2].clone(), all[4].clone()];
        let (shown, hidden) = without_finished(&finished, &open);
        assert_eq!((ids(&shown), hidden), (vec!["user", "a", "c"], 0), "all are finished");
        let mut sorted = all.to_vec();
        finished_last(&mut sorted, &open);
        assert_eq!(ids(&sorted), ["user", "root", "b", "e", "a", "c", "d", "f"]);
    }
}
