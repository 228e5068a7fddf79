//! The workspaces of all tasks: locking, and committing at the end of a turn.

mod forking;
mod history;
mod merge;
mod opening;
mod reading;
mod retire;

#[cfg(test)]
mod tests;

pub use forking::Cut;
pub use history::{History, Recording, WorktreeCommit};
pub use merge::{Merged, MergedFile, Wanted};

pub use reading::{Commit, FileChange, FileDiff, FileEntry, Unmerged};
pub use retire::Retired;

use crate::git::{Found, Git};
use crate::journal::Journal;
use crate::person::Person;
use crate::problem::Problem;
use crate::repository::{Author, MAIN, Repository};
use crate::settle::{Committed, Unfinished};
use crate::snapshot::Seen;
use polity_society::id::{AgentId, TaskId, TurnId};
use polity_society::refusal::Refusal;
use polity_society::workspace::{Access, Caller, Place, Root};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OnceCell, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

/// The name of the workspace that the agents of a task share. The repository uses this name, and the directory of the
/// workspace has this name.
const SHARED: &str = "main";

/// The workspaces of all tasks.
pub struct Workspaces {
    root: PathBuf,
    git: OnceCell<Found>,
    /// A lock for each task, and a lock for each directory of the person into which agents merge their work.
    locks: Mutex<HashMap<PathBuf, Arc<AsyncMutex<()>>>>,
    seen: Mutex<HashMap<PathBuf, Arc<Mutex<Seen>>>>,
}

/// The directory that an agent works in, ready for use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The absolute path of the directory.
    pub directory: PathBuf,
    /// Whether the agent may change the directory.
    pub access: Access,
    /// The git files that a sandbox must protect. `None` if git is not installed.
    pub git: Option<GitDirs>,
}

/// The git files that a sandbox must protect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitDirs {
    /// Files and directories that commands may read but must not change. Some of these files are inside the
    /// workspace, and some are outside the workspace.
    pub read_only: Vec<PathBuf>,
}

/// The result of committing a workspace at the end of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The hash of the commit; `None` if there was nothing to commit.
    pub commit: Option<String>,
    /// Files that polity could not read. In the commit, they stay as they were before.
    pub unreadable: Vec<String>,
    /// Why the agent's branch could not be written into the person's repository; `None` if nothing went wrong. The
    /// commits of the branch are in the repository of the task in both cases.
    pub unpublished: Option<String>,
}

/// A merge that a crash had interrupted and that polity has now finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// The task whose workspaces the merge changed.
    pub task: TaskId,
    /// Files that the merge left unchanged, because somebody changed them after the crash.
    pub left: Vec<String>,
}

/// The workspaces of a task, while no other operation can work on them.
struct Locked<'a> {
    all: &'a Workspaces,
    task: PathBuf,
    cancel: CancellationToken,
    _guard: OwnedMutexGuard<()>,
}

impl Workspaces {
    /// `root` is the directory that contains a directory for each task. The directory `root` need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root, git: OnceCell::new(), locks: Mutex::default(), seen: Mutex::default() }
    }

    /// Returns the directory that an agent works in. If this is the workspace that the agents of the task share, and it
    /// does not exist, makes it. Does not make worktrees, because [`Self::hire`] makes them.
    pub async fn directory(
        &self,
        task: &TaskId,
        place: &Place,
        cancel: &CancellationToken,
    ) -> Result<Opened, Refusal> {
        Ok(self.lock(task, cancel).await?.directory(place).await?)
    }

    /// Makes the worktree of a new agent, on a new branch. The hirer is the agent that hires the new agent. First,
    /// polity commits the changes in the hirer's workspace, so that the branch can begin with the present state of this
    /// workspace. If the hirer works in a directory of the person, polity commits nothing there. The branch then begins
    /// with the person's HEAD and with the work that polity has merged into the directory since that commit. If the
    /// worktree already exists, it stays unchanged.
    pub async fn hire(
        &self,
        hirer: &Caller,
        agent: &AgentId,
        cancel: &CancellationToken,
    ) -> Result<Opened, Refusal> {
        Ok(self.lock(&hirer.task, cancel).await?.hire(hirer, agent).await?)
    }

    /// Checks whether git and the repository of the person, if there is one, allow [`Self::hire`]. Makes nothing.
    pub async fn can_hire(&self, hirer: &Caller, cancel: &CancellationToken) -> Result<(), Refusal> {
        Ok(self.lock(&hirer.task, cancel).await?.can_hire(hirer).await?)
    }

    /// Commits the changes in the workspace of the caller at the end of a turn. The caller is the author of the
    /// commit. Leaves out the paths that `unfinished` returns: the commits of other agents will contain them. Makes no
    /// commit in a directory of the person.
    pub async fn settle(
        &self,
        caller: &Caller,
        turn: TurnId,
        unfinished: &Unfinished,
        cancel: &CancellationToken,
    ) -> Result<Settled, Refusal> {
        let subject = if caller.role.is_empty() { caller.agent.as_str() } else { &caller.role };
        let subject: String = subject.chars().filter(|character| !character.is_control()).take(80).collect();
        let message =
            format!("{subject}, turn {turn}\n\n{AGENT_TRAILER} {}\n{TURN_TRAILER} {turn}\n", caller.agent);
        Ok(self.lock(&caller.task, cancel).await?.settle(caller, &message, Some(unfinished)).await?)
    }

    /// Finishes all merges that a crash has interrupted. If this fails for a merge, the next operation on the
    /// workspaces of its task tries again first.
    pub async fn recover(&self, cancel: &CancellationToken) -> Vec<Result<Recovered, Refusal>> {
        let mut recovered = Vec::new();
        let Ok(tasks) = fs::read_dir(&self.root) else { return recovered };
        for entry in tasks.flatten() {
            if !journal_of(&entry.path()).exists() {
                continue;
            }
            let Some(task) = entry.file_name().to_str().map(TaskId::new) else { continue };
            let finished = match self.hold(&task, cancel).await {
                Ok(locked) => locked.finish_journal().await,
                Err(problem) => Err(problem),
            };
            let finished = finished.map(|left| Recovered { task, left: left.unwrap_or_default() });
            recovered.push(finished.map_err(Refusal::from));
        }
        recovered
    }

    async fn hold(&self, task: &TaskId, cancel: &CancellationToken) -> Result<Locked<'_>, Problem> {
        let task = self.root.join(segment(task.as_str())?);
        let guard = self.lock_of(&task).lock_owned().await;
        Ok(Locked { all: self, task, cancel: cancel.clone(), _guard: guard })
    }

    /// Waits until no other operation works on the workspaces of a task. Then finishes a merge that a crash has
    /// interrupted.
    async fn lock(&self, task: &TaskId, cancel: &CancellationToken) -> Result<Locked<'_>, Problem> {
        let locked = self.hold(task, cancel).await?;
        locked.finish_journal().await?;
        Ok(locked)
    }

    fn lock_of(&self, path: &Path) -> Arc<AsyncMutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(path.to_owned()).or_default().clone()
    }

    fn seen_in(&self, directory: &Path) -> Arc<Mutex<Seen>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(directory.to_owned()).or_default().clone()
    }

    async fn found(&self) -> &Found {
        self.git.get_or_init(Git::find).await
    }

    /// Returns git, or a refusal that says why git cannot be used.
    async fn git(&self) -> Result<&Git, Problem> {
        match self.found().await {
            Found::Usable(git) => Ok(git),
            Found::Missing => Err(Problem::refused(
                "Git is not installed on this machine, so nobody can have a worktree of its own and nothing can be \
                 merged. Let the agents share the workspace, or ask the person to install git.",
            )),
            Found::TooOld(version) => Err(Problem::refused(format!(
                "Git {version} is too old: merging needs git 2.38 or newer. Let the agents share the workspace, or ask \
                 the person to update git.",
            ))),
        }
    }
}

/// The line of a commit message that names the agent.
const AGENT_TRAILER: &str = "Polity-Agent:";

/// The line of a commit message that names the turn.
const TURN_TRAILER: &str = "Polity-Turn:";

fn journal_of(task: &Path) -> PathBuf {
    task.join("journal.json")
}

/// Checks that an id can be used as the name of a directory.
fn segment(id: &str) -> Result<&str, Problem> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_good = !id.is_empty() && id.len() <= 100 && !id.starts_with('-') && id.bytes().all(is_plain);
    let is_free = !matches!(id, SHARED | "git");
    if is_good && is_free {
        Ok(id)
    } else {
        Err(Problem::refused(format!("`{id}` cannot be the name of a workspace")))
    }
}

impl Locked<'_> {
    fn journal(&self) -> PathBuf {
        journal_of(&self.task)
    }

    async fn repository(&self) -> Result<Repository, Problem> {
        Ok(Repository::at(self.all.git().await?, self.task.join("git"), &self.cancel))
    }

    async fn finish_journal(&self) -> Result<Option<Vec<String>>, Problem> {
        let file = self.journal();
        let Some(journal) = Journal::read(&file)? else { return Ok(None) };
        let repository = self.repository().await?;
        repository.clear_locks(&[]).await?;
        let left = journal.finish(&repository, &file).await?;
        Ok(Some(left.iter().map(ToString::to_string).collect()))
    }

    /// Returns the name, the branch and the directory of a workspace. Returns `None` for a directory of the person,
    /// because it is not a workspace of the repository.
    fn workspace<'p>(&self, place: &'p Place) -> Result<Option<(&'p str, String, PathBuf)>, Problem> {
        match (&place.worktree, &place.root) {
            (Some(agent), _) => {
                let agent = segment(agent.as_str())?;
                Ok(Some((agent, branch_of(agent), self.task.join(agent))))
            }
            (None, Root::Made) => Ok(Some((SHARED, MAIN.to_owned(), self.task.join(SHARED)))),
            (None, Root::Person { .. }) => Ok(None),
        }
    }

    /// Commits the changes in the workspace of the caller, with the caller as the author. If `unfinished` is `None`,
    /// commits all changes, whoever made them.
    async fn settle(
        &self,
        caller: &Caller,
        message: &str,
        unfinished: Option<&Unfinished>,
    ) -> Result<Settled, Problem> {
        let author = Author::agent(caller.agent.as_str(), &caller.role);
        self.commit(&caller.place, &author, message, unfinished).await
    }

    /// Commits the changes in a workspace. Does nothing for a directory of the person, or if the workspace does not
    /// exist.
    async fn commit(
        &self,
        place: &Place,
        author: &Author,
        message: &str,
        unfinished: Option<&Unfinished>,
    ) -> Result<Settled, Problem> {
        let Some((workspace, branch, directory)) = self.workspace(place)? else {
            return Ok(Settled::default());
        };
        let repository_directory = self.task.join("git");
        if !directory.is_dir() || !repository_directory.is_dir() {
            return Ok(Settled::default());
        }
        let Found::Usable(git) = self.all.found().await else { return Ok(Settled::default()) };
        let repository = Repository::at(git, repository_directory, &self.cancel);
        repository.clear_locks(&[workspace]).await?;
        let Some(head) = repository.tip(&branch).await? else { return Ok(Settled::default()) };
        let seen = self.all.seen_in(&directory);
        let files = Committed { repository: &repository, workspace, directory: &directory, seen, unfinished };
        let outcome = files.commit(&head, &branch, author, message).await?;
        let mut unpublished = None;
        if let (Some(agent), Root::Person { directory, access: Access::Write }) =
            (&place.worktree, &place.root)
        {
            let tip = outcome.commit.as_ref().unwrap_or(&head);
            unpublished = self.publish(&repository, directory, agent.as_str(), tip).await?;
        }
        Ok(Settled { commit: outcome.commit, unreadable: outcome.unreadable, unpublished })
    }

    /// Writes the branch of an agent into the person's repository. Returns the reason if this is not possible.
    async fn publish(
        &self,
        repository: &Repository,
        directory: &Path,
        agent: &str,
        tip: &str,
    ) -> Result<Option<String>, Problem> {
        if repository.tip(&published_of(agent)).await?.as_deref() == Some(tip) {
            return Ok(None);
        }
        let opened = Person::open(self.all.git().await?, directory, &self.cancel).await;
        let published = match opened {
            Ok(Ok(person)) => person.publish(repository, agent, tip).await,
            Ok(Err(unusable)) => return Ok(Some(unusable.reason(directory))),
            Err(problem) => Err(problem),
        };
        match published {
            Err(Problem::Cancelled) => Err(Problem::Cancelled),
            Err(problem) => Ok(Some(problem.to_string())),
            Ok(reason) => Ok(reason),
        }
    }
}

fn branch_of(agent: &str) -> String {
    format!("refs/heads/polity/{agent}")
}

fn base_of(agent: &str) -> String {
    format!("refs/polity/base/{agent}")
}

fn merged_of(agent: &str) -> String {
    format!("refs/polity/merged/{agent}")
}

fn published_of(agent: &str) -> String {
    format!("refs/polity/published/{agent}")
}
