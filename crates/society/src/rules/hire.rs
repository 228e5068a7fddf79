//! Hiring and ending agents (contract sections 5, 6 and 8).

use crate::agent::{Agent, Party, Standing};
use crate::brief::TaskBrief;
use crate::change::Change;
use crate::contact::{self, Contact, KnownParty, Source};
use crate::id::{AgentId, ArtifactId, TaskId};
use crate::limits::Limits;
use crate::name::Name;
use crate::refusal::{ContactLine, Refusal};
use crate::role::Role;
use std::collections::BTreeSet;

/// What the caller specifies when it hires an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HireWish {
    /// The role, as the caller named it.
    pub role: String,
    /// The brief for the new agent.
    pub brief: TaskBrief,
    /// A name for the new agent, if the caller chose one.
    pub name: Option<Name>,
}

/// The facts that hiring depends on.
#[derive(Clone, Debug)]
pub struct HireFacts {
    /// The task in which the agent is hired.
    pub task: TaskId,
    /// The agent that hires.
    pub parent: Party,
    /// The parent's contact registry.
    pub contacts: Vec<KnownParty>,
    /// The role that the parent named. `None` if neither the parent nor one of its descendants made such a role in this
    /// task.
    pub role: Option<Role>,
    /// Number of active children that the parent has in this task.
    pub children: u64,
    /// Number of active agents in the task.
    pub agents: u64,
    /// The artifacts that the brief mentions and the parent may open.
    pub openable: BTreeSet<ArtifactId>,
}

/// Refuses what [`hire`] would refuse because of the role, the limits or the collaborators. The caller calls this
/// function first, and makes the id of the new agent only if the function refuses nothing. Then the caller calls
/// [`hire`].
pub fn check_hire(wish: &HireWish, facts: &HireFacts, limits: &Limits) -> Result<(), Refusal> {
    if facts.role.is_none() {
        return Err(Refusal::NotChildRole { role: wish.role.clone() });
    }
    let depth = u64::from(facts.parent.depth) + 1;
    let bounds = [
        ("maxDepth", depth, limits.max_depth),
        ("maxChildren", facts.children + 1, limits.max_children),
        ("maxAgentsPerTask", facts.agents + 1, limits.max_agents_per_task),
    ];
    if let Some((limit, _, value)) = bounds.into_iter().find(|(_, wanted, value)| wanted > value) {
        return Err(Refusal::LimitReached { limit, value });
    }
    for collaborator in &wish.brief.collaborators {
        if contact::find(&facts.contacts, &collaborator.agent_id)?.is_none() {
            let near = contact::nearest_first(&facts.contacts, &collaborator.agent_id);
            return Err(Refusal::UnknownContact {
                meant: collaborator.agent_id.clone(),
                contacts: near.into_iter().map(ContactLine::from).collect(),
            });
        }
    }
    Ok(())
}

/// Hires an agent, or refuses.
pub fn hire(wish: HireWish, facts: &HireFacts, id: AgentId, limits: &Limits) -> Result<Vec<Change>, Refusal> {
    check_hire(&wish, facts, limits)?;
    let Some(role) = &facts.role else {
        return Err(Refusal::NotChildRole { role: wish.role });
    };
    let parent = facts.parent.id.clone();
    let entry = |owner: &AgentId, agent: &AgentId, source: Source, introduced_by: Option<AgentId>| {
        Change::ContactAdded(Contact { owner: owner.clone(), agent: agent.clone(), source, introduced_by })
    };
    let mut brief = wish.brief;
    let mut presets = Vec::new();
    for collaborator in &mut brief.collaborators {
        // The collaborator cannot be missing, because `check_hire` has found every collaborator.
        // The model may have named the collaborator by its role. The brief of the new agent contains the id instead.
        let Some(known) = contact::find(&facts.contacts, &collaborator.agent_id)? else {
            continue;
        };
        collaborator.agent_id = known.party.id.to_string();
        // Skip the parent: the code below adds it as a contact with `Source::Parent`.
        if known.party.id != parent {
            presets.push(entry(&id, &known.party.id, Source::Preset, Some(parent.clone())));
        }
    }
    let mut changes = vec![
        Change::AgentCreated(Agent {
            id: id.clone(),
            task: facts.task.clone(),
            parent: parent.clone(),
            role: role.id.clone(),
            name: wish.name,
            brief,
            depth: facts.parent.depth + 1,
        }),
        entry(&id, &parent, Source::Parent, None),
        entry(&parent, &id, Source::Child, None),
    ];
    changes.extend(presets);
    let grant =
        |artifact: &ArtifactId| Change::AccessGranted { agent: id.clone(), artifact: artifact.clone() };
    changes.extend(facts.openable.iter().map(grant));
    Ok(changes)
}

/// An agent below the party that calls [`end_subtree`] in order to end agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descendant {
    /// The id, which takes precedence over the names of roles.
    pub id: AgentId,
    /// The agent that hired the descendant.
    pub parent: Option<AgentId>,
    /// The name of the descendant's role.
    pub role_name: String,
    /// Whether the descendant still takes part.
    pub standing: Standing,
}

/// Ends a descendant and all agents below it that still take part.
/// Also returns the descendant's id, because the caller may have named it by its role.
/// `descendants` contains all descendants of the caller, parents before children.
pub fn end_subtree(
    by: &AgentId,
    meant: &str,
    reason: &str,
    descendants: &[Descendant],
) -> Result<(AgentId, Vec<Change>), Refusal> {
    let target = descendant(meant.trim(), descendants)?;
    if target.standing == Standing::Ended {
        return Err(Refusal::AgentTerminated { agent: target.id.to_string() });
    }
    let mut subtree = vec![target];
    for descendant in descendants {
        let parent = descendant.parent.as_ref();
        if subtree.iter().any(|above| Some(&above.id) == parent) {
            subtree.push(descendant);
        }
    }
    let active = subtree.into_iter().filter(|descendant| descendant.standing == Standing::Active);
    let end = |descendant: &Descendant| Change::AgentEnded {
        agent: descendant.id.clone(),
        by: by.clone(),
        reason: reason.to_owned(),
    };
    Ok((target.id.clone(), active.map(end).collect()))
}

/// Finds the descendant that the caller named. If a descendant has the id `meant`, the function returns this one.
/// Otherwise `meant` is the name of a role, and the function finds the descendant that has this role and still takes
/// part.
fn descendant<'a>(meant: &str, descendants: &'a [Descendant]) -> Result<&'a Descendant, Refusal> {
    if let Some(by_id) = descendants.iter().find(|descendant| descendant.id.as_str() == meant) {
        return Ok(by_id);
    }
    let is_meant =
        |descendant: &&Descendant| descendant.standing == Standing::Active && descendant.role_name == meant;
    let by_role: Vec<&Descendant> = descendants.iter().filter(is_meant).collect();
    match by_role.as_slice() {
        [] => Err(Refusal::NotDescendant { agent: meant.to_owned() }),
        [only] => Ok(only),
        several => Err(Refusal::AmbiguousName {
            meant: meant.to_owned(),
            candidates: several.iter().map(|descendant| candidate(descendant)).collect(),
        }),
    }
}

fn candidate(descendant: &Descendant) -> ContactLine {
    ContactLine { id: descendant.id.to_string(), role: descendant.role_name.clone() }
}

#[cfg(test)]
mod tests;
