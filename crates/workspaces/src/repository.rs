//! The git repository of a task: a bare repository that no agent can change. It is beside the workspaces.
//!
//! Each workspace is a linked worktree of this repository. If the task works in a directory of the person, this
//! repository reads the objects of the person's repository, but never its configuration.

use crate::git::{Answer, Call, Git, Input};
use crate::parse::{self, Change, MergedTree, Tree};
use crate::path::quoted;
use crate::problem::Problem;
use polity_disk::Links;
use polity_files::durable;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio_util::sync::CancellationToken;

/// The branch of the workspace that the agents of the task share.
pub(crate) const MAIN: &str = "refs/heads/main";

/// Prefix of the branches of agents.
const BRANCHES: &str = "refs/heads/polity/";

/// The ref of the commit that describes the person's directory after polity's latest merge into it.
pub(crate) const LEFT: &str = "refs/polity/left";

/// The ref of the commit that the person's HEAD named at polity's latest merge into the person's directory.
pub(crate) const LEFT_HEAD: &str = "refs/polity/left-head";

/// Git attributes that take precedence over the attributes in a workspace, so that git stores and writes all files
/// byte for byte.
const ATTRIBUTES: &str =
    "* -text !eol !crlf -ident -filter !working-tree-encoding !merge !diff !conflict-marker-size\n";

/// If a lock file of git is at least this old, polity assumes that a killed process has left it.
const STALE_LOCK: Duration = Duration::from_secs(10);

/// Polling interval while a lock file is younger than [`STALE_LOCK`].
const LOCK_POLL: Duration = Duration::from_millis(100);

/// Maximum number of bytes of the file `shallow` of the person's repository: some 400,000 commits.
const LONGEST_SHALLOW: u64 = 16 << 20;

/// Maximum number of objects that one `git cat-file` reads.
const CONTENTS_AT_ONCE: usize = 64;

/// A git repository. Runs git commands in it.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    git: Git,
    pub(crate) directory: PathBuf,
    cancel: CancellationToken,
}

/// The person's repository, as the lender of objects: the repository of a task reads the objects of this repository.
#[derive(Clone, Debug)]
pub(crate) struct Lender {
    /// The git directory that all worktrees of the repository share.
    pub(crate) common: PathBuf,
    /// The directory `objects`.
    pub(crate) objects: PathBuf,
    /// `sha1` or `sha256`.
    pub(crate) object_format: String,
}

/// The author of a commit.
#[derive(Clone, Debug)]
pub(crate) struct Author {
    name: String,
    email: String,
}

impl Author {
    /// Makes the author for commits of an agent. The name also shows the agent's role.
    pub(crate) fn agent(agent: &str, role: &str) -> Self {
        let is_plain = |character: &char| !character.is_control() && !matches!(character, '<' | '>');
        let role: String = role.chars().filter(is_plain).take(80).collect();
        let name = if role.is_empty() { agent.to_owned() } else { format!("{agent} ({role})") };
        Self { name, email: format!("{agent}@polity.invalid") }
    }

    /// Returns the author line of a commit: name, address and current time.
    pub(crate) fn line(&self) -> String {
        let Self { name, email } = self;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        format!("{name} <{email}> {now} +0000")
    }
}

impl Repository {
    /// Returns the repository in this directory. `cancel` cancels the commands of [`Self::run`].
    pub(crate) fn at(git: &Git, directory: PathBuf, cancel: &CancellationToken) -> Self {
        Self { git: git.clone(), directory, cancel: cancel.clone() }
    }

    /// Returns the repository in another directory. Both repositories have the same token to cancel their commands.
    pub(crate) fn beside(&self, directory: PathBuf) -> Self {
        Self { directory, ..self.clone() }
    }

    /// Makes a command for this repository.
    pub(crate) fn call(&self, arguments: &[&str]) -> Call<'_> {
        Call::on(&self.directory, arguments)
    }

    /// Runs a command to its end. The command cannot be cancelled, because a cancelled command could leave its work
    /// half done.
    pub(crate) async fn finish(&self, call: Call<'_>) -> Result<Answer, Problem> {
        self.git.run(call, &CancellationToken::new()).await
    }

    /// Runs a command that can be cancelled.
    pub(crate) async fn run(&self, call: Call<'_>) -> Result<Answer, Problem> {
        self.git.run(call, &self.cancel).await
    }

    async fn word(&self, call: Call<'_>) -> Result<String, Problem> {
        let output = self.run(call).await?.succeeded()?;
        Ok(String::from_utf8_lossy(&output).trim().to_owned())
    }

    /// Returns the hash of the commit that a name means to git, for example the name of a ref. Returns `None` if there
    /// is no such commit.
    pub(crate) async fn tip(&self, name: &str) -> Result<Option<String>, Problem> {
        let wanted = format!("{name}^{{commit}}");
        let answer =
            self.run(self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options"]).with(wanted));
        let answer = answer.await?;
        match answer.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&answer.output).trim().to_owned())),
            Some(1) => Ok(None),
            _ => Err(answer.failed()),
        }
    }

    /// Returns the hash of the tree of a commit. Two commits with the same files have the same tree.
    pub(crate) async fn tree_of(&self, commit: &str) -> Result<String, Problem> {
        let wanted = format!("{commit}^{{tree}}");
        self.word(self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options"]).with(wanted)).await
    }

    /// Returns the files of a commit.
    pub(crate) async fn tree(&self, commit: &str) -> Result<Tree, Problem> {
        let call = self.call(&["ls-tree", "-r", "-z", "--full-tree", commit]);
        parse::tree(&self.run(call).await?.succeeded()?)
    }

    /// Returns the files that differ between two commits or trees.
    pub(crate) async fn changes(&self, old: &str, new: &str) -> Result<Vec<Change>, Problem> {
        let call =
            self.call(&["diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff"]);
        parse::changes(&self.run(call.with(old).with(new)).await?.succeeded()?)
    }

    /// Returns the differences between two commits or trees, as unified diffs.
    pub(crate) async fn patches(&self, old: &str, new: &str) -> Result<Vec<u8>, Problem> {
        let call = self.call(&["diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv"]);
        self.run(call.with("--no-color").with(old).with(new)).await?.succeeded()
    }

    /// Returns the first parent of a commit, or the empty tree if the commit has no parents.
    pub(crate) async fn before(&self, commit: &str) -> Result<String, Problem> {
        if let Some(parent) = self.tip(&format!("{commit}^1")).await? {
            return Ok(parent);
        }
        let call = self.call(&["hash-object", "-t", "tree", "--stdin"]);
        self.word(call.reading(Input::Bytes(Vec::new()))).await
    }

    /// Returns the ids of the agents that have a branch.
    pub(crate) async fn branches(&self) -> Result<Vec<String>, Problem> {
        let call = self.call(&["for-each-ref", "--format=%(refname:lstrip=3)", BRANCHES]);
        let names = self.word(call).await?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Returns the contents of objects, in the order of `objects`.
    pub(crate) async fn contents(&self, objects: &[&str]) -> Result<Vec<Vec<u8>>, Problem> {
        let mut contents = Vec::new();
        for objects in objects.chunks(CONTENTS_AT_ONCE) {
            let wanted: String = objects.iter().flat_map(|object| [object, "\n"]).collect();
            let call = self.call(&["cat-file", "--batch"]).reading(Input::Bytes(wanted.into_bytes()));
            let read = parse::contents(&self.finish(call).await?.succeeded()?)?;
            if read.len() != objects.len() {
                let what = format!("{} of {} contents", read.len(), objects.len());
                return Err(Problem::Unreadable { command: "cat-file", what });
            }
            contents.extend(read);
        }
        Ok(contents)
    }

    /// Merges two commits inside the repository. Does not change any file of a workspace.
    pub(crate) async fn merge_trees(&self, ours: &str, theirs: &str) -> Result<MergedTree, Problem> {
        let call = self.call(&["merge-tree", "--write-tree", "-z", ours, theirs]);
        let answer = self.run(call).await?;
        match answer.code {
            Some(0 | 1) => parse::merged(&answer.output),
            _ => Err(answer.failed()),
        }
    }

    /// Makes a commit and returns its hash. Moves no branch.
    pub(crate) async fn commit(
        &self,
        tree: &str,
        parents: &[&str],
        author: &Author,
        message: &str,
    ) -> Result<String, Problem> {
        let mut call = self.call(&["commit-tree", tree]);
        for parent in parents {
            call = call.with("-p").with(parent);
        }
        let call = call.set("GIT_AUTHOR_NAME", &author.name).set("GIT_AUTHOR_EMAIL", &author.email);
        self.word(call.reading(Input::Bytes(message.as_bytes().to_vec()))).await
    }

    /// Sets a ref to a commit.
    pub(crate) async fn point(&self, name: &str, commit: &str) -> Result<(), Problem> {
        self.finish(self.call(&["update-ref", name, commit])).await?.succeeded()?;
        Ok(())
    }

    /// Removes a ref.
    pub(crate) async fn forget(&self, name: &str) -> Result<(), Problem> {
        self.finish(self.call(&["update-ref", "-d", name])).await?.succeeded()?;
        Ok(())
    }

    /// Returns whether `earlier` is `later` or one of its ancestors.
    pub(crate) async fn contains(&self, later: &str, earlier: &str) -> Result<bool, Problem> {
        let answer = self.run(self.call(&["merge-base", "--is-ancestor", earlier, later])).await?;
        match answer.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(answer.failed()),
        }
    }

    /// Returns the latest commit that is in the histories of both commits; `None` if they have no such commit.
    pub(crate) async fn common(&self, one: &str, other: &str) -> Result<Option<String>, Problem> {
        let answer = self.run(self.call(&["merge-base", one, other])).await?;
        match answer.code {
            Some(0) => Ok(Some(String::from_utf8_lossy(&answer.output).trim().to_owned())),
            Some(1) => Ok(None),
            _ => Err(answer.failed()),
        }
    }

    /// Returns the oldest commit in the history of a commit: the commit that has no parents.
    pub(crate) async fn first_commit(&self, commit: &str) -> Result<Option<String>, Problem> {
        let call = self.call(&["rev-list", "--first-parent", "--max-parents=0", commit]);
        Ok(self.word(call).await?.lines().last().map(str::to_owned))
    }

    /// Returns how many commits are in the history of `new` but not in that of `old`.
    pub(crate) async fn count(&self, old: &str, new: &str) -> Result<u64, Problem> {
        let word = self.word(self.call(&["rev-list", "--count", new, &format!("^{old}")])).await?;
        word.parse().map_err(|_| Problem::Unreadable { command: "rev-list", what: word })
    }

    /// Makes a commit from a stream for `git fast-import`.
    pub(crate) async fn import(&self, stream: Input) -> Result<(), Problem> {
        let call = self.call(&["fast-import", "--quiet", "--done", "--date-format=raw"]).reading(stream);
        self.run(call).await?.succeeded()?;
        Ok(())
    }

    /// Returns the directory in which git keeps its data about a worktree. It is inside this repository.
    pub(crate) fn entry(&self, workspace: &str) -> PathBuf {
        self.directory.join("worktrees").join(workspace)
    }

    /// Sets the index of a workspace to a commit. Agents need the index for correct output of `git status`. A failure
    /// is ignored, because polity itself does not read the index.
    pub(crate) async fn refresh_index(&self, workspace: &str, commit: &str) {
        let entry = self.entry(workspace);
        let _ = fs::remove_file(entry.join("index.lock"));
        let call = Call::on(&entry, &["read-tree", commit]);
        let _ = self.finish(call).await;
    }

    /// Makes the directory in which git keeps its data about a worktree. See [`Self::entry`].
    pub(crate) fn link(&self, workspace: &str, branch: &str, directory: &Path) -> Result<(), Problem> {
        let entry = self.entry(workspace);
        fs::create_dir_all(&entry).map_err(Problem::io("make", &entry))?;
        let pointer = directory.join(".git").into_os_string();
        let lines: [(&str, OsString); 3] =
            [("commondir", "../..".into()), ("gitdir", pointer), ("HEAD", format!("ref: {branch}").into())];
        for (name, line) in lines {
            let file = entry.join(name);
            fs::write(&file, [line.as_bytes(), b"\n"].concat()).map_err(Problem::io("write", &file))?;
        }
        Ok(())
    }

    /// Writes the file `.git` of a workspace. This file leads git commands of agents to this repository. Keeps an
    /// existing `.git`, because polity itself does not read it.
    pub(crate) fn write_pointer(&self, workspace: &str, directory: &Path) -> Result<(), Problem> {
        let file = directory.join(".git");
        if file.symlink_metadata().is_ok() {
            return Ok(());
        }
        let entry = self.entry(workspace);
        let line = [b"gitdir: ", entry.as_os_str().as_bytes(), b"\n"].concat();
        fs::write(&file, line).map_err(Problem::io("write", &file))
    }

    /// Writes all files of a commit into an empty directory. No agent knows this directory yet, so no agent can change
    /// files in it while git writes.
    pub(crate) async fn check_out(
        &self,
        workspace: &str,
        commit: &str,
        directory: &Path,
    ) -> Result<(), Problem> {
        let entry = self.entry(workspace);
        for stale in ["index", "index.lock"] {
            let _ = fs::remove_file(entry.join(stale));
        }
        let call = Call::on(&entry, &["read-tree", "--reset", "-u", commit]).set("GIT_WORK_TREE", directory);
        self.run(call).await?.succeeded()?;
        Ok(())
    }

    /// Makes the repository of a task, if it does not exist. Replaces a repository that an interrupted call has
    /// left half made.
    pub(crate) async fn make(&self, lender: Option<&Lender>) -> Result<(), Problem> {
        if self.directory.is_dir() {
            return match lender {
                Some(lender) => self.borrow(lender, &self.directory),
                None => Ok(()),
            };
        }
        let unfinished = self.directory.with_extension("new");
        remove_all(&unfinished)?;
        fs::create_dir_all(&unfinished).map_err(Problem::io("make", &unfinished))?;
        let new = self.beside(unfinished.clone());
        let format = lender.map_or("sha1", |lender| lender.object_format.as_str());
        let call = new.call(&["init", "--bare", "--quiet", "--template=", "--initial-branch=main"]);
        new.run(call.with(format!("--object-format={format}"))).await?.succeeded()?;
        let info = unfinished.join("info");
        fs::create_dir_all(&info).map_err(Problem::io("make", &info))?;
        let attributes = info.join("attributes");
        fs::write(&attributes, ATTRIBUTES).map_err(Problem::io("write", &attributes))?;
        match lender {
            Some(lender) => new.borrow(lender, &unfinished)?,
            None => {
                let empty = new.call(&["hash-object", "-t", "tree", "-w", "--stdin"]);
                let empty = new.word(empty).await?;
                let author = Author { name: "polity".to_owned(), email: "polity@polity.invalid".to_owned() };
                let first = new.commit(&empty, &[], &author, "Begin the workspace\n").await?;
                new.point(MAIN, &first).await?;
            }
        }
        fs::rename(&unfinished, &self.directory).map_err(Problem::io("make", &self.directory))
    }

    /// Makes git read the objects of another repository as well.
    fn borrow(&self, lender: &Lender, directory: &Path) -> Result<(), Problem> {
        let info = directory.join("objects/info");
        fs::create_dir_all(&info).map_err(Problem::io("make", &info))?;
        let line = [quoted(lender.objects.as_os_str().as_bytes()).as_slice(), b"\n"].concat();
        replace(&info.join("alternates"), &line)?;
        // The person's repository may be a shallow clone. Its file `shallow` then says where its history begins. Git
        // needs the same file in this repository, because this repository reads the objects of the clone.
        match polity_disk::read(&lender.common.join("shallow"), Links::Refused, LONGEST_SHALLOW) {
            Ok(shallow) => replace(&directory.join("shallow"), &shallow),
            Err(_) => Ok(()),
        }
    }

    /// Removes lock files that a killed process has left in this repository. Before it removes a lock file, it waits
    /// until the file is old enough: the daemon may just have been killed, and its commands may still run. The caller
    /// must ensure that this daemon runs no command in this repository.
    pub(crate) async fn clear_locks(&self, workspaces: &[&str]) -> Result<(), Problem> {
        let mut places = vec![self.directory.clone(), self.directory.join("refs")];
        places.extend(workspaces.iter().map(|workspace| self.entry(workspace)));
        let mut at = 0;
        while let Some(place) = places.get(at).cloned() {
            at += 1;
            let Ok(entries) = fs::read_dir(&place) else { continue };
            for entry in entries.flatten() {
                let path = entry.path();
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_directory && path.starts_with(self.directory.join("refs")) {
                    places.push(path);
                } else if path.extension().is_some_and(|extension| extension == "lock") {
                    clear_lock(&path).await?;
                } else if entry.file_name().as_bytes().starts_with(STREAM_PREFIX.as_bytes()) {
                    let _ = fs::remove_file(&path);
                }
            }
        }
        Ok(())
    }
}

/// Prefix of the names of temporary files for `git fast-import`, in the directory of the repository.
pub(crate) const STREAM_PREFIX: &str = "polity-stream-";

/// Waits until a lock file is gone or has the age [`STALE_LOCK`]. A file of this age is removed, because its process
/// must be dead.
pub(crate) async fn clear_lock(path: &Path) -> Result<(), Problem> {
    loop {
        let Ok(metadata) = path.symlink_metadata() else { return Ok(()) };
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        // If the file's time is in the future, its age is unknown, and the lock counts as old.
        if age.is_none_or(|age| age >= STALE_LOCK) {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(Problem::Io { what: "remove", path: path.to_owned(), source: error })
                }
                _ => Ok(()),
            };
        }
        tokio::time::sleep(LOCK_POLL).await;
    }
}

/// Replaces the content of a file: writes a new file, and renames it to `path`.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), Problem> {
    durable::replace(path, content).map_err(Problem::io("write", path))
}

/// Removes a directory with all its content. Symbolic links are removed, not followed.
pub(crate) fn remove_all(path: &Path) -> Result<(), Problem> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Problem::Io { what: "remove", path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
