//! `polity stop`, `polity pause` and `polity resume`.

use super::At;
use crate::failure::Failure;
use crate::output::{complain, print, print_json};
use clap::Args;
use polity_client::{Client, Scope, SteerAction};
use polity_society::id::{AgentId, TaskId};

/// `polity stop`, `polity pause`, `polity resume`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The id of an agent; root stands for all agents. `polity stop` also takes the id of a task.
    #[arg(value_name = "ID")]
    id: String,
    /// Only this agent, not its descendants.
    #[arg(long)]
    alone: bool,
    #[command(flatten)]
    at: At,
    /// Print, as one JSON object, the agents that were stopped, paused or resumed.
    #[arg(long)]
    json: bool,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments, step: SteerAction) -> Result<u8, Failure> {
    let scope = if arguments.alone { Scope::Agent } else { Scope::Subtree };
    let client = arguments.at.client()?;
    let task = TaskId::new(arguments.id.as_str());
    let task = if step == SteerAction::Stop && is_task(&client, &task).await? { Some(task) } else { None };
    let steered = match &task {
        Some(task) => client.stop_task(task).await?,
        None => match client.steer(&AgentId::new(arguments.id.as_str()), step, scope).await {
            Err(polity_client::Error::Refused(problem)) if problem.status == 404 => {
                return Err(unknown(step, arguments.id));
            }
            steered => steered?,
        },
    };
    if arguments.json {
        print_json(&steered)?;
    } else if steered.agents.is_empty() {
        complain(nothing(step));
    } else {
        print(&words(step, task.as_ref(), &steered.agents))?;
    }
    Ok(0)
}

/// Returns whether the id belongs to a task. No agent has the same id as a task.
async fn is_task(client: &Client, id: &TaskId) -> Result<bool, Failure> {
    match client.task(id).await {
        Ok(_) => Ok(true),
        Err(polity_client::Error::Refused(problem)) if problem.status == 404 => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Returns the failure for an id that belongs to nothing that the command can stop, pause or resume.
fn unknown(step: SteerAction, id: String) -> Failure {
    match step {
        SteerAction::Stop => Failure::NoAgentOrTask(id),
        SteerAction::Pause | SteerAction::Resume => Failure::NoAgent(id),
    }
}

/// `task` is the task that was stopped, if the person named one. Its agents go on in other tasks.
fn words(step: SteerAction, task: Option<&TaskId>, agents: &[AgentId]) -> String {
    let agents: Vec<&str> = agents.iter().map(AgentId::as_str).collect();
    if let Some(task) = task {
        return format!("stopped task {task}: {}", agents.join(", "));
    }
    let what = match step {
        SteerAction::Stop => "stopped",
        SteerAction::Pause => "paused",
        SteerAction::Resume => "resumed",
    };
    format!("{what}: {}", agents.join(", "))
}

fn nothing(step: SteerAction) -> &'static str {
    match step {
        SteerAction::Stop => "nothing to stop: there was no work",
        SteerAction::Pause => "nothing to pause: already paused",
        SteerAction::Resume => "nothing to resume: neither paused nor parked",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_id_comes_with_the_commands_that_list_the_ids() {
        let check = |step, expect: &str| assert_eq!(unknown(step, "ida".to_owned()).to_string(), expect);
        let stop =
            "there is no agent and no task `ida`: `polity agents` and `polity tasks --all` list the ids";
        check(SteerAction::Stop, stop);
        check(SteerAction::Pause, "there is no agent `ida`: `polity agents` lists the ids");
        check(SteerAction::Resume, "there is no agent `ida`: `polity agents` lists the ids");
    }

    #[test]
    fn steps_in_words() {
        let agents = [AgentId::root(), AgentId::new("agent-7cwh")];
        assert_eq!(words(SteerAction::Stop, None, &agents), "stopped: root, agent-7cwh");
        let task = TaskId::new("t-1");
        assert_eq!(words(SteerAction::Stop, Some(&task), &agents), "stopped task t-1: root, agent-7cwh");
        assert_eq!(words(SteerAction::Pause, None, &agents[..1]), "paused: root");
        assert_eq!(words(SteerAction::Resume, None, &agents[1..]), "resumed: agent-7cwh");
    }
}
