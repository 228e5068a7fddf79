//! Opens the directory that an agent works in. Makes the directory if it does not exist.

use super::merge;
use super::{AGENT_TRAILER, GitDirs, Locked, Opened, SHARED, base_of, branch_of, segment};
use crate::git::Found;
use crate::person::Person;
use crate::problem::Problem;
use crate::repository::{self, MAIN, Repository};
use polity_society::id::AgentId;
use polity_society::workspace::{Access, Caller, Place, Root};
use std::fs;
use std::path::{Path, PathBuf};

impl Locked<'_> {
    pub(super) async fn directory(&self, place: &Place) -> Result<Opened, Problem> {
        match (&place.worktree, &place.root) {
            (Some(agent), root) => self.worktree(segment(agent.as_str())?, root).await,
            (None, Root::Made) => self.shared().await,
            (None, Root::Person { directory, access }) => {
                check_directory(directory)?;
                let read_only = |common: PathBuf| {
                    let mut read_only = vec![common];
                    let own = directory.join(".git");
                    if !read_only.contains(&own) {
                        read_only.push(own);
                    }
                    GitDirs { read_only }
                };
                let git = Person::directory_of_git(directory).map(read_only);
                Ok(Opened { directory: directory.clone(), access: *access, git })
            }
        }
    }

    /// Opens the workspace that the agents of the task share, and makes it if it does not exist.
    async fn shared(&self) -> Result<Opened, Problem> {
        let directory = self.task.join(SHARED);
        let made = |git| Opened { directory: directory.clone(), access: Access::Write, git };
        let Found::Usable(_) = self.all.found().await else {
            fs::create_dir_all(&directory).map_err(Problem::io("make", &directory))?;
            return Ok(made(None));
        };
        fs::create_dir_all(&self.task).map_err(Problem::io("make", &self.task))?;
        let repository = self.repository().await?;
        repository.make(None).await?;
        if !repository.entry(SHARED).join("HEAD").exists() {
            repository.link(SHARED, MAIN, &directory)?;
        }
        if !directory.is_dir() {
            let unfinished = self.task.join("main.new");
            repository::remove_all(&unfinished)?;
            fs::create_dir(&unfinished).map_err(Problem::io("make", &unfinished))?;
            repository.write_pointer(SHARED, &unfinished)?;
            fs::rename(&unfinished, &directory).map_err(Problem::io("make", &directory))?;
            let commit = repository.tip(MAIN).await?.unwrap_or_default();
            repository.refresh_index(SHARED, &commit).await;
        }
        // The workspace may have been made before git was installed. This call then connects it to the repository.
        repository.write_pointer(SHARED, &directory)?;
        Ok(made(Some(self.git_dirs(&repository, &directory, None))))
    }

    fn git_dirs(&self, repository: &Repository, directory: &Path, person: Option<&Path>) -> GitDirs {
        let mut read_only = vec![repository.directory.clone(), directory.join(".git")];
        read_only.extend(person.map(|common| common.join("objects")));
        GitDirs { read_only }
    }

    /// Opens the worktree of an agent. The worktree must exist.
    async fn worktree(&self, agent: &str, root: &Root) -> Result<Opened, Problem> {
        let directory = self.task.join(agent);
        if !directory.is_dir() {
            return Err(Problem::refused(format!("The agent {agent} has no worktree of its own.")));
        }
        let repository = self.repository().await?;
        let person = match root {
            Root::Made => None,
            Root::Person { directory, .. } => Person::directory_of_git(directory),
        };
        let git = Some(self.git_dirs(&repository, &directory, person.as_deref()));
        Ok(Opened { directory, access: Access::Write, git })
    }

    /// Opens the person's repository, or returns a refusal that says why it cannot be used.
    pub(super) async fn person(&self, directory: &Path) -> Result<Person, Problem> {
        check_directory(directory)?;
        let opened = Person::open(self.all.git().await?, directory, &self.cancel).await?;
        opened.map_err(|unusable| Problem::refused(unusable.reason(directory)))
    }

    /// Opens the person's repository, from which the worktrees of the task begin. Returns `None` if polity made the
    /// workspace of the task.
    async fn beginning(&self, root: &Root) -> Result<Option<Person>, Problem> {
        match root {
            Root::Made => Ok(None),
            Root::Person { directory, .. } => self.person(directory).await.map(Some),
        }
    }

    pub(super) async fn can_hire(&self, hirer: &Caller) -> Result<(), Problem> {
        self.all.git().await?;
        self.beginning(&hirer.place.root).await.map(drop)
    }

    pub(super) async fn hire(&self, hirer: &Caller, agent: &AgentId) -> Result<Opened, Problem> {
        let agent = segment(agent.as_str())?;
        let root = &hirer.place.root;
        if self.task.join(agent).is_dir() {
            return self.worktree(agent, root).await;
        }
        let repository = self.repository().await?;
        let person = self.beginning(root).await?;
        fs::create_dir_all(&self.task).map_err(Problem::io("make", &self.task))?;
        repository.make(person.as_ref().map(|person| &person.lender)).await?;
        repository.clear_locks(&[agent]).await?;
        let branch = branch_of(agent);
        let base = match repository.tip(&branch).await? {
            // The branch exists but the worktree does not: the daemon died while it made the worktree.
            Some(tip) => tip,
            None => {
                let base = self.base_for(hirer, agent, &repository, person.as_ref()).await?;
                repository.point(&base_of(agent), &base).await?;
                repository.point(&branch, &base).await?;
                base
            }
        };
        let directory = self.task.join(agent);
        let unfinished = self.task.join(format!("{agent}.new"));
        repository::remove_all(&unfinished)?;
        fs::create_dir(&unfinished).map_err(Problem::io("make", &unfinished))?;
        repository.link(agent, &branch, &directory)?;
        repository.check_out(agent, &base, &unfinished).await?;
        repository.write_pointer(agent, &unfinished)?;
        fs::rename(&unfinished, &directory).map_err(Problem::io("make", &directory))?;
        if let (Some(person), Root::Person { access: Access::Write, .. }) = (&person, root) {
            // A failure to write the branch into the person's repository is ignored, because the worktree can be used
            // without it.
            person.publish(&repository, agent, &base).await?;
        }
        self.worktree(agent, root).await
    }

    /// Returns the commit that the branch of a new agent begins with.
    async fn base_for(
        &self,
        hirer: &Caller,
        agent: &str,
        repository: &Repository,
        person: Option<&Person>,
    ) -> Result<String, Problem> {
        if let (None, Root::Person { directory, .. }, Some(person)) =
            (&hirer.place.worktree, &hirer.place.root, person)
        {
            let present = merge::present(repository, person, directory).await?;
            let is_head = repository.changes(&person.head, &present).await?.is_empty();
            return Ok(if is_head { person.head.clone() } else { present });
        }
        self.directory(&hirer.place).await?;
        let message =
            format!("Work of {} before hiring {agent}\n\n{AGENT_TRAILER} {}\n", hirer.agent, hirer.agent);
        // The new agent gets the present files, so this commit takes all changes, whoever made them.
        self.settle(hirer, &message, None).await?;
        let Some((workspace, branch, _)) = self.workspace(&hirer.place)? else {
            return Err(Problem::refused("The workspace of the hirer has no branch."));
        };
        let tip = repository.tip(&branch).await?;
        tip.ok_or_else(|| Problem::refused(format!("The workspace {workspace} has no commit yet.")))
    }
}

/// Checks that the person's directory exists.
pub(super) fn check_directory(directory: &Path) -> Result<(), Problem> {
    if !directory.is_absolute() {
        return Err(Problem::refused(format!(
            "The workspace {} is not an absolute path. Ask the person to name the directory from `/` on.",
            directory.display()
        )));
    }
    if !directory.is_dir() {
        return Err(Problem::refused(format!(
            "The workspace {} is not a directory on this machine. Ask the person to make it or to name another one.",
            directory.display()
        )));
    }
    Ok(())
}
