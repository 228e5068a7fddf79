//! Decides which paths a search leaves out, from the rules in ignore files such as `.gitignore`.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use polity_files::{Workspace, WorkspacePath};

/// Maximum size in bytes of an ignore file. A larger file is disregarded.
const MAX_BYTES: u64 = 1 << 20;

/// The ignore files of a directory. If the rules of two files contradict each other, the file that is later in this
/// list decides.
const FILES: &[&str] = &[".gitignore", ".ignore"];

/// A further ignore file, inside the git directory. Git never commits this file.
const OF_REPOSITORY: &str = ".git/info/exclude";

/// The rules in the ignore files of one directory.
pub(super) struct Rules {
    /// How many names the path of the directory has.
    depth: usize,
    /// One element for each ignore file.
    files: Vec<Gitignore>,
}

impl Rules {
    /// Reads the ignore files of a directory. A file that cannot be read has no rules.
    pub(super) fn of(workspace: &Workspace, directory: &[String]) -> Self {
        let is_root = directory.is_empty();
        let names = is_root.then_some(OF_REPOSITORY).into_iter().chain(FILES.iter().copied());
        let files = names.filter_map(|name| {
            let path = WorkspacePath::below(directory, name);
            let content = workspace.read(&path, MAX_BYTES).ok()?;
            Some(parsed(&String::from_utf8_lossy(&content)))
        });
        Self { depth: directory.len(), files: files.collect() }
    }

    fn decision(&self, names: &[String], is_directory: bool) -> Option<Decision> {
        let path = names.get(self.depth..).unwrap_or_default().join("/");
        self.files.iter().rev().find_map(|file| match file.matched(&path, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(Decision::Ignored),
            Match::Whitelist(_) => Some(Decision::Kept),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Ignored,
    Kept,
}

/// Returns whether a path is ignored. `rules` are the rules of the directories above the path, from the root of the
/// workspace downwards. If several directories have a rule for the path, the deepest directory decides.
pub(super) fn is_ignored(rules: &[Rules], names: &[String], is_directory: bool) -> bool {
    let decision = rules.iter().rev().find_map(|rules| rules.decision(names, is_directory));
    decision == Some(Decision::Ignored)
}

fn parsed(content: &str) -> Gitignore {
    let mut builder = GitignoreBuilder::new("");
    for line in content.trim_start_matches('\u{feff}').lines() {
        // A malformed line is skipped, so that the other lines still apply.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
