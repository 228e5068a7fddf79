//! Agents that have nothing left to do. Lists of agents leave them out, and say how many they are.

use polity_client::{Client, Error};
use polity_society::id::{AgentId, TaskId};
use polity_view::{AgentFilter, AgentState, AgentView, MAX_PAGE, TaskFilter, TaskState};
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

/// Fetches the agents that a list shows, and counts the finished agents that it does not show. If the filter includes
/// ended agents, or all agents are finished, the list shows all agents. The others are not fetched, because their number
/// grows with the history.
pub(super) async fn listed(client: &Client, filter: &AgentFilter) -> Result<(Vec<AgentView>, usize), Error> {
    let is_whole = filter.include_ended || filter.task.is_some();
    let wanted = AgentFilter { include_ended: is_whole, unfinished: !is_whole, ..filter.clone() };
    let page = client.all_agents(&wanted).await?;
    let open: BTreeSet<_> = open_tasks(client).await?.into_iter().collect();
    let (mut agents, left_out) = (page.agents, page.left_out.unwrap_or_default());
    let in_finished_task = filter.task.as_ref().is_some_and(|task| !open.contains(task));
    if filter.include_ended || in_finished_task {
        finished_last(&mut agents, &open);
        return Ok((agents, 0));
    }
    if left_out > 0 && are_finished(&agents, &open) {
        let all = AgentFilter { include_ended: true, ..filter.clone() };
        return Ok((client.all_agents(&all).await?.agents, 0));
    }
    let mut left_out = usize::try_from(left_out).unwrap_or(usize::MAX);
    while left_out > 0 {
        let above = above(client, filter, &agents).await?;
        if above.is_empty() {
            break;
        }
        left_out = left_out.saturating_sub(above.len());
        agents.splice(0..0, above);
    }
    let (shown, hidden) = without_finished(&agents, &open);
    Ok((shown, hidden.saturating_add(left_out)))
}

/// Fetches the parents of agents that are not among these agents.
async fn above(client: &Client, filter: &AgentFilter, agents: &[AgentView]) -> Result<Vec<AgentView>, Error> {
    let there: BTreeSet<&AgentId> = agents.iter().map(|agent| &agent.id).collect();
    let parents: BTreeSet<&AgentId> = agents.iter().filter_map(|agent| agent.parent.as_ref()).collect();
    let ids: Vec<AgentId> = parents.difference(&there).copied().cloned().collect();
    let mut above = Vec::new();
    // An address has room for some thousands of ids.
    for some in ids.chunks(MAX_PAGE as usize) {
        let named = AgentFilter { ids: some.to_vec(), include_ended: true, ..filter.clone() };
        above.extend(client.all_agents(&named).await?.agents);
    }
    Ok(above)
}

/// Returns whether all agents are finished. The person does not count.
fn are_finished(agents: &[AgentView], open: &BTreeSet<TaskId>) -> bool {
    agents.iter().all(|agent| agent.id.is_user() || is_finished(agent, open))
}

/// Returns the agents to show and the number of the others. Finished agents are left out, except those above an agent
/// that is not. If all agents are finished, returns all. Parents must come before children in `agents`.
pub(super) fn without_finished(agents: &[AgentView], open: &BTreeSet<TaskId>) -> (Vec<AgentView>, usize) {
    if are_finished(agents, open) {
        return (agents.to_vec(), 0);
    }
    let mut kept: BTreeSet<&AgentId> = BTreeSet::new();
    for agent in agents.iter().rev() {
        if !is_finished(agent, open) || kept.contains(&agent.id) {
            kept.insert(&agent.id);
            kept.extend(&agent.parent);
        }
    }
    let shown: Vec<AgentView> = agents.iter().filter(|agent| kept.contains(&agent.id)).cloned().collect();
    let hidden = agents.len() - shown.len();
    (shown, hidden)
}

/// Sorts the finished agents behind all others.
pub(super) fn finished_last(agents: &mut [AgentView], open: &BTreeSet<TaskId>) {
    agents.sort_by_key(|agent| is_finished(agent, open));
}

#[cfg(test)]
mod tests {
    use super::super::examples::{agent, tasks};
    use super::*;
    use axum::http::Uri;
    use axum::routing::get;
    use axum::{Json, Router};
    use polity_view::{AgentPage, Doing, TaskPage, TaskView};
    use std::future::ready;

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

    /// Returns a client of a daemon that has left out five agents. One of them has hired a paused agent.
    fn client() -> Client {
        let paused = || at(Doing::Paused { since: 1 }, "over", "below", "above");
        let above = || at(Doing::Idle, "over", "above", "root");
        let agents = move |uri: Uri| {
            let asks = |part: &str| uri.query().is_some_and(|query| query.contains(part));
            let (agents, left_out) = if asks("ids=above") {
                (vec![above()], None)
            } else if asks("unfinished=true") && asks("role=clerk") {
                (Vec::new(), Some(5))
            } else if asks("unfinished=true") {
                (vec![agent("root", None), paused()], Some(5))
            } else if asks("role=clerk") {
                (vec![above()], None)
            } else {
                assert!(asks("ended=true"), "no list asks for this: {uri}");
                (vec![agent("root", None), above(), paused()], None)
            };
            ready(Json(AgentPage { agents, next: None, left_out, as_of: 1 }))
        };
        let open = TaskView { id: TaskId::new("open"), ..tasks()[0].clone() };
        let open = move || ready(Json(TaskPage { tasks: vec![open.clone()], next: None }));
        let routes = Router::new().route("/api/agents", get(agents)).route("/api/tasks", get(open));
        Client::in_process(routes).unwrap()
    }

    #[tokio::test]
    async fn finished_agents_are_counted_without_being_fetched() {
        let (shown, hidden) = listed(&client(), &AgentFilter::default()).await.unwrap();
        assert_eq!((ids(&shown), hidden), (vec!["above", "root", "below"], 4));
        let all = AgentFilter { include_ended: true, ..AgentFilter::default() };
        let (shown, hidden) = listed(&client(), &all).await.unwrap();
        assert_eq!((ids(&shown), hidden), (vec!["root", "below", "above"], 0), "the finished ones come last");
        let clerks = AgentFilter { role: Some("clerk".to_owned()), ..AgentFilter::default() };
        let (shown, hidden) = listed(&client(), &clerks).await.unwrap();
        assert_eq!((ids(&shown), hidden), (vec!["above"], 0), "all are finished");
    }

    /// A paused agent of each of many finished tasks was hired by an agent that the daemon has left out.
    #[tokio::test]
    async fn the_parents_of_many_agents_are_fetched_in_parts() {
        const MANY: u64 = 10_000;
        let agents = async |uri: Uri| {
            let query = uri.query().unwrap_or_default().replace("%2C", ",");
            let named = query.split('&').find_map(|part| part.strip_prefix("ids="));
            let (agents, left_out) = match named {
                Some(ids) => (ids.split(',').map(|id| at(Doing::Idle, "over", id, "root")).collect(), None),
                None => {
                    let paused = |number: u64| {
                        let (id, parent) = (format!("below-{number}"), format!("above-{number}"));
                        at(Doing::Paused { since: 1 }, "over", &id, &parent)
                    };
                    let all = std::iter::once(agent("root", None)).chain((0..MANY).map(paused));
                    (all.collect(), Some(MANY + 1))
                }
            };
            Json(AgentPage { agents, next: None, left_out, as_of: 1 })
        };
        let open = || ready(Json(TaskPage { tasks: Vec::new(), next: None }));
        let routes = Router::new().route("/api/agents", get(agents)).route("/api/tasks", get(open));
        let client = Client::in_process(routes).unwrap();
        let (shown, hidden) = listed(&client, &AgentFilter::default()).await.unwrap();
        assert_eq!((shown.len() as u64, hidden), (2 * MANY + 1, 1));
    }
}
