//! What root does in each of its tasks. The state of an agent shows one task, but root may work on several.

use crate::failure::Failure;
use crate::output::one_line;
use polity_client::Client;
use polity_society::id::{AgentId, TaskId};
use polity_view::{
    AgentFilter, AgentState, AgentView, Doing, MAX_PAGE, NowFilter, Stuck, TaskFilter, TaskState,
};

/// Maximum number of tasks for which the daemon is asked what root does there.
const MOST: u32 = 20;
/// Maximum length of the title of a task, in characters.
const TITLE_CHARS: usize = 40;

/// What root does in one task.
pub(super) struct InTask {
    pub(super) task: TaskId,
    pub(super) title: String,
    pub(super) doing: Doing,
}

impl InTask {
    /// Names the task, such as `and in t-4x2k “what is in it?”`.
    pub(super) fn named(&self) -> String {
        format!("and in {} “{}”", self.task, one_line(&self.title, TITLE_CHARS))
    }
}

/// Fetches what root does in the other tasks in which it has something to do, newest task first. `shown` is the task
/// that the state of root already shows.
pub(super) async fn in_other_tasks(client: &Client, shown: Option<&TaskId>) -> Result<Vec<InTask>, Failure> {
    let filter = TaskFilter { state: Some(TaskState::Open), limit: Some(MOST), ..TaskFilter::default() };
    let open = client.tasks(&filter).await?.tasks.into_iter().map(|task| (task.id, task.title));
    let mut tasks: Vec<(TaskId, String)> = open.collect();
    // A task in which root only asks the user is idle.
    for thing in client.now(&NowFilter { limit: Some(MAX_PAGE) }).await?.stuck {
        if let (Stuck::Question { agent, .. } | Stuck::Approval { agent, .. }, Some(task)) =
            (&thing.stuck, thing.task)
            && agent.is_root()
            && tasks.iter().all(|(known, _)| *known != task)
        {
            tasks.push((task, thing.title.unwrap_or_default()));
        }
    }
    tasks.retain(|(task, _)| Some(task) != shown);
    let mut found = Vec::new();
    for (task, title) in tasks.into_iter().take(MOST as usize) {
        // The agents of a page are in the order of hiring, so the person and root come first.
        let filter = AgentFilter { task: Some(task.clone()), limit: Some(2), ..AgentFilter::default() };
        let agents = client.agents(&filter).await?.agents;
        let root = agents.into_iter().find(is_busy_root);
        found.extend(root.map(|root| InTask { task, title, doing: root.doing }));
    }
    Ok(found)
}

/// Returns whether an agent is root, and has something to do that may differ from task to task.
fn is_busy_root(agent: &AgentView) -> bool {
    agent.id == AgentId::root()
        && match agent.state {
            AgentState::Asking
            | AgentState::Thinking
            | AgentState::Running
            | AgentState::Retrying
            | AgentState::Queued
            | AgentState::Ready
            | AgentState::Waiting
            | AgentState::Parked => true,
            AgentState::Paused | AgentState::Idle | AgentState::Ended => false,
        }
}
