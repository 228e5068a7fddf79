//! The person's own git repository. It may be hostile, because somebody else may have written its configuration.
//!
//! Polity reads HEAD and the object format, and writes the branches of agents. For this, polity uses only git commands
//! that start no other program. The configuration cannot change this. All other git commands run in the repository of
//! the task.

use crate::git::{Call, Git, Input};
use crate::problem::Problem;
use crate::repository::{Lender, Repository, clear_lock};
use polity_disk::{Links, read_text};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The git repository of a directory of the person.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    /// The git directory of this working directory. If `.git` is a directory, it is `.git` itself. In a linked
    /// worktree, `.git` is a file, and the git directory is the directory that this file names.
    pub(crate) own: PathBuf,
    /// The objects that the repository of a task can read.
    pub(crate) lender: Lender,
    /// The commit that is checked out.
    pub(crate) head: String,
}

/// Why polity cannot work with the repository of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// The directory has no `.git`.
    NoRepository,
    /// `.git` has a form that polity refuses to open, for example because it is a link and could lead to another
    /// repository. Holds the reason.
    Odd(String),
    /// The repository has no commit yet.
    NoCommit,
}

impl Unusable {
    /// Explains why agents cannot have worktrees, and what the person can do.
    pub(crate) fn reason(&self, directory: &Path) -> String {
        let directory = directory.display();
        match self {
            Self::NoRepository => format!(
                "{directory} is no git repository, so nobody can have a worktree of its own. \
                 Let the agents share the directory, or ask the person to run `git init` there and to commit."
            ),
            Self::Odd(what) => format!(
                "The git repository of {directory} cannot be used: {what}. Let the agents share the directory."
            ),
            Self::NoCommit => format!(
                "The git repository of {directory} has no commit yet, so there is nothing to base a worktree on. \
                 Let the agents share the directory, or ask the person to commit."
            ),
        }
    }
}

/// The two directories of a repository.
struct Parts {
    own: PathBuf,
    common: PathBuf,
}

/// Maximum number of bytes of a file that names another directory of git.
const LONGEST_NAME: u64 = 8_192;

/// Finds the directories of a repository. `.git` must be a directory or the file of a linked worktree. Such a file
/// names a git directory, and that git directory must name the working directory in return. So an agent cannot make a
/// `.git` that leads to another repository of the person.
fn parts(directory: &Path) -> Result<Parts, Unusable> {
    let odd = |what: &str| Unusable::Odd(what.to_owned());
    let dot_git = directory.join(".git");
    let Ok(metadata) = dot_git.symlink_metadata() else { return Err(Unusable::NoRepository) };
    let parts = if metadata.is_dir() {
        if dot_git.join("commondir").symlink_metadata().is_ok() {
            return Err(odd("its `.git` says that it is part of another repository"));
        }
        Parts { own: dot_git.clone(), common: dot_git }
    } else if metadata.is_file() && metadata.len() < LONGEST_NAME {
        // An agent may have written all of these files. It could have made a pipe, on which a read would wait for ever,
        // or a link to a device without an end.
        let text = |file: &Path| read_text(file, Links::Refused, LONGEST_NAME);
        let line = text(&dot_git).map_err(|_| odd("its `.git` cannot be read"))?;
        let target = line.strip_prefix("gitdir: ").ok_or_else(|| odd("its `.git` names no repository"))?;
        let own = directory.join(target.trim_end_matches(['\n', '\r']));
        let back = text(&own.join("gitdir")).unwrap_or_default();
        let back = own.join(back.trim_end_matches(['\n', '\r']));
        let names_us = match (back.canonicalize(), dot_git.canonicalize()) {
            (Ok(back), Ok(dot_git)) => back == dot_git,
            _ => false,
        };
        if !names_us {
            return Err(odd("its `.git` leads to a repository elsewhere that does not know this directory"));
        }
        let common = text(&own.join("commondir")).map_err(|_| odd("its `.git` is incomplete"))?;
        let common = own.join(common.trim_end_matches(['\n', '\r']));
        let common = common.canonicalize().map_err(|_| odd("its `.git` is incomplete"))?;
        Parts { own, common }
    } else {
        return Err(odd("its `.git` is neither a directory nor a short file"));
    };
    for (place, name) in [
        (&parts.own, "HEAD"),
        (&parts.common, "objects"),
        (&parts.common, "refs"),
        (&parts.common, "refs/heads"),
        (&parts.common, "refs/heads/polity"),
        (&parts.common, "logs"),
        (&parts.common, "packed-refs"),
        (&parts.common, "reftable"),
    ] {
        if place.join(name).symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(Unusable::Odd(format!("`{name}` in its `.git` is a symbolic link")));
        }
    }
    Ok(parts)
}

/// Returns whether the path to the file of a branch contains a symbolic link.
fn leads_through_link(common: &Path, reference: &str) -> bool {
    let mut path = common.to_owned();
    reference.split('/').any(|component| {
        path.push(component);
        path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
    })
}

impl Person {
    /// Returns the git directory that all worktrees of the person's repository share. Does not check that the
    /// repository can be used.
    pub(crate) fn directory_of_git(directory: &Path) -> Option<PathBuf> {
        parts(directory).ok().map(|parts| parts.common)
    }

    /// Opens the repository of a directory. The inner error says why polity cannot work with the repository.
    pub(crate) async fn open(
        git: &Git,
        directory: &Path,
        cancel: &CancellationToken,
    ) -> Result<Result<Self, Unusable>, Problem> {
        let Parts { own, common } = match parts(directory) {
            Ok(parts) => parts,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let answer = git.run(Call::on(&own, &["symbolic-ref", "--quiet", "HEAD"]), cancel).await?;
        let branch = String::from_utf8_lossy(&answer.output).trim().to_owned();
        if answer.code == Some(0) && leads_through_link(&common, &branch) {
            let what = format!("its branch `{branch}` is a symbolic link");
            return Ok(Err(Unusable::Odd(what)));
        }
        let answer = git.run(Call::on(&own, &["rev-parse", "--show-object-format"]), cancel).await?;
        let object_format = match answer.code {
            Some(0) => String::from_utf8_lossy(&answer.output).trim().to_owned(),
            _ => return Ok(Err(Unusable::Odd(answer.failed().to_string()))),
        };
        let repository = Repository::at(git, own.clone(), cancel);
        let Some(head) = repository.tip("HEAD").await? else { return Ok(Err(Unusable::NoCommit)) };
        let objects = common.join("objects");
        Ok(Ok(Self { own, lender: Lender { common, objects, object_format }, head }))
    }

    /// Writes the branch of an agent and its commits into the person's repository. If this is not possible, returns the
    /// reason. Even then no work is lost, because the repository of the task has the commits.
    pub(crate) async fn publish(
        &self,
        task: &Repository,
        agent: &str,
        tip: &str,
    ) -> Result<Option<String>, Problem> {
        let own = task.beside(self.own.clone());
        let branch = format!("refs/heads/polity/{agent}");
        let remembered = format!("refs/polity/published/{agent}");
        let before = task.tip(&remembered).await?;
        let there = own.tip(&branch).await?;
        if there.as_deref() == Some(tip) {
            task.point(&remembered, tip).await?;
            return Ok(None);
        }
        if there != before {
            let reason =
                format!("somebody else changed the branch `polity/{agent}` of the person's repository");
            return Ok(Some(reason));
        }
        // Packs only the objects that the person's repository does not have.
        let call = task.call(&["pack-objects", "--revs", "--local", "--stdout", "--quiet"]);
        let wanted = format!("{tip}\n^{}\n", self.head);
        let pack = task.run(call.reading(Input::Bytes(wanted.into_bytes()))).await?.succeeded()?;
        let call = task.call(&["unpack-objects", "-q"]).set("GIT_OBJECT_DIRECTORY", &self.lender.objects);
        task.finish(call.reading(Input::Bytes(pack))).await?.succeeded()?;
        clear_lock(&self.lender.common.join(format!("{branch}.lock"))).await?;
        let expected = before.unwrap_or_else(|| "0".repeat(tip.len()));
        let call = own.call(&["update-ref", "-m", "polity", &branch, tip, &expected]);
        let answer = own.finish(call).await?;
        if answer.code != Some(0) {
            return Ok(Some(answer.failed().to_string()));
        }
        task.point(&remembered, tip).await?;
        Ok(None)
    }

    /// Removes the branch of an agent from the person's repository, unless somebody else has changed the branch.
    pub(crate) async fn unpublish(&self, task: &Repository, agent: &str) -> Result<(), Problem> {
        let own = task.beside(self.own.clone());
        let remembered = format!("refs/polity/published/{agent}");
        let Some(before) = task.tip(&remembered).await? else { return Ok(()) };
        let branch = format!("refs/heads/polity/{agent}");
        // If somebody else has changed the branch, git refuses to remove it. This failure is ignored, and the branch
        // stays.
        let _ = own.finish(own.call(&["update-ref", "-d", &branch, &before])).await?;
        task.forget(&remembered).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Calls [`parts`] in a thread of its own, because a read of a pipe could wait for ever.
    fn found(directory: &Path) -> Result<(), Unusable> {
        let directory = directory.to_owned();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || tell.send(parts(&directory).map(drop)));
        told.recv_timeout(Duration::from_secs(60)).expect("an answer that waits for nobody")
    }

    fn odd(what: &str) -> Result<(), Unusable> {
        Err(Unusable::Odd(what.to_owned()))
    }

    #[test]
    fn a_pipe_or_a_long_file_in_a_git_directory_is_refused_at_once() {
        const UNKNOWN: &str = "its `.git` leads to a repository elsewhere that does not know this directory";
        let home = tempfile::tempdir().unwrap();
        let (dot_git, own) = (home.path().join(".git"), home.path().join("own"));
        fs::create_dir_all(own.join("common")).unwrap();
        fs::write(&dot_git, "gitdir: own\n").unwrap();
        let pipe = |name: &str| {
            assert!(Command::new("mkfifo").arg(own.join(name)).status().unwrap().success());
        };
        pipe("gitdir");
        assert_eq!(found(home.path()), odd(UNKNOWN));
        fs::remove_file(own.join("gitdir")).unwrap();
        // Line breaks at the end are no part of the path, so this file is wrong only because it is too long.
        let back = format!("{}\n", dot_git.display());
        fs::write(own.join("gitdir"), format!("{back}{}", "\n".repeat(10_000))).unwrap();
        assert_eq!(found(home.path()), odd(UNKNOWN));
        fs::write(own.join("gitdir"), back).unwrap();
        pipe("commondir");
        assert_eq!(found(home.path()), odd("its `.git` is incomplete"));
        fs::remove_file(own.join("commondir")).unwrap();
        fs::write(own.join("commondir"), "common\n").unwrap();
        assert_eq!(found(home.path()), Ok(()));
    }
}
