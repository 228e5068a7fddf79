//! Removes the worktree of an agent if no work would be lost.

use super::{AGENT_TRAILER, Locked, Workspaces, base_of, branch_of, merged_of, segment};
use crate::git::Found;
use crate::person::Person;
use crate::problem::Problem;
use crate::repository::{self, Author, Repository};
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_society::workspace::{Access, Place, Root};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Suffix of the directory of a worktree while it is being removed.
const REMOVED: &str = ".old";

/// What happened to a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retired {
    /// The agent had no worktree.
    Absent,
    /// The worktree contained no unmerged work, so it was removed.
    Removed,
    /// The worktree stays, because it may contain unmerged work.
    Kept {
        /// Number of commits that are known to be unmerged. If it is 0, polity cannot tell whether there is unmerged
        /// work, for example because a file cannot be read.
        commits: u64,
    },
}

impl Workspaces {
    /// Removes the worktree of an agent if it contains no unmerged work. Otherwise keeps the worktree.
    pub async fn retire(
        &self,
        task: &TaskId,
        root: &Root,
        agent: &AgentId,
        cancel: &CancellationToken,
    ) -> Result<Retired, Refusal> {
        Ok(self.lock(task, cancel).await?.retire(root, agent).await?)
    }

    /// Returns the tasks that have a directory below the root.
    pub fn tasks(&self) -> Vec<TaskId> {
        names_in(&self.root).into_iter().filter(|name| segment(name).is_ok()).map(TaskId::new).collect()
    }

    /// Calls [`Self::retire`] for each worktree of a task, and returns the results. Keeps the shared workspace and
    /// the repository.
    pub async fn retire_all(
        &self,
        task: &TaskId,
        root: &Root,
        cancel: &CancellationToken,
    ) -> Result<Vec<(AgentId, Retired)>, Refusal> {
        let locked = self.lock(task, cancel).await?;
        let mut retired = Vec::new();
        for agent in locked.worktrees() {
            let outcome = locked.retire(root, &agent).await?;
            retired.push((agent, outcome));
        }
        Ok(retired)
    }
}

/// Returns the names of the directories inside a directory, sorted.
fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let directories = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut names: Vec<String> =
        directories.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

impl Locked<'_> {
    /// Returns the agents that have a worktree or a partly removed worktree.
    fn worktrees(&self) -> Vec<AgentId> {
        let mut agents: Vec<String> = names_in(&self.task);
        for agent in &mut agents {
            agent.truncate(agent.strip_suffix(REMOVED).unwrap_or(agent).len());
        }
        agents.dedup();
        agents.into_iter().filter(|name| segment(name).is_ok()).map(AgentId::new).collect()
    }

    async fn retire(&self, root: &Root, agent: &AgentId) -> Result<Retired, Problem> {
        let name = segment(agent.as_str())?;
        let directory = self.task.join(name);
        // Remove a directory that was already renamed: an earlier removal may have been interrupted after the rename.
        let removed = self.task.join(format!("{name}{REMOVED}"));
        repository::remove_all(&removed)?;
        if !directory.is_dir() {
            return Ok(Retired::Absent);
        }
        let Found::Usable(git) = self.all.found().await else { return Ok(Retired::Kept { commits: 0 }) };
        let repository = Repository::at(git, self.task.join("git"), &self.cancel);
        let place = Place { root: root.clone(), worktree: Some(agent.clone()) };
        let message = format!("Last work of {name}\n\n{AGENT_TRAILER} {name}\n");
        let settled = self.commit(&place, &Author::agent(name, ""), &message, None).await?;
        let Some(tip) = repository.tip(&branch_of(name)).await? else {
            return Ok(Retired::Kept { commits: 0 });
        };
        let mut safe = Vec::new();
        for reference in [base_of(name), merged_of(name)] {
            safe.extend(repository.tip(&reference).await?);
        }
        let person = match root {
            Root::Made => None,
            Root::Person { directory, .. } => Person::open(git, directory, &self.cancel).await?.ok(),
        };
        // The person may have merged the branch with a git command, so commits in the person's HEAD count as merged.
        safe.extend(person.as_ref().map(|person| person.head.clone()));
        let mut unmerged = None;
        for safe in &safe {
            let commits = repository.count(safe, &tip).await?;
            unmerged = Some(unmerged.map_or(commits, |least: u64| least.min(commits)));
        }
        // The worktree stays if commits are unmerged. It also stays if a file cannot be read, because this file may
        // contain work.
        let commits = unmerged.unwrap_or(0);
        if unmerged != Some(0) || !settled.unreadable.is_empty() {
            return Ok(Retired::Kept { commits });
        }
        std::fs::rename(&directory, &removed).map_err(Problem::io("remove", &directory))?;
        repository::remove_all(&repository.entry(name))?;
        repository::remove_all(&removed)?;
        if let (Some(person), Root::Person { access: Access::Write, .. }) = (&person, root) {
            let is_in_head = repository.contains(&person.head, &tip).await?;
            let is_empty = repository.tip(&base_of(name)).await?.as_deref() == Some(&tip);
            if is_in_head || is_empty {
                person.unpublish(&repository, name).await?;
            }
        }
        Ok(Retired::Removed)
    }
}
