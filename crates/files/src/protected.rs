//! Files that agents must not change, because a program of the person would execute their content. This is the only
//! list: the tools for files check each path with [`protection`], and the sandbox keeps shell commands from changing
//! the paths that [`guarded`](crate::guarded()) finds.

use crate::path::WorkspacePath;
use std::path::PathBuf;

/// A file or directory that agents must not change. It is protected wherever its names occur in the workspace. If it is
/// a directory, everything below it is protected, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protected {
    /// Successive components of the path, in lower case.
    pub names: &'static [&'static str],
    /// Why the path is protected, for the refusal.
    pub reason: &'static str,
    /// The part of the protected path that shell commands must not change. The tools for files never write any part of
    /// it.
    pub in_commands: InCommands,
}

/// The part of a protected path that shell commands must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InCommands {
    /// The whole path.
    All,
    /// If the protected path is a directory, only these paths in it, because programs such as `git commit` change the
    /// other paths. If it is a file or a link, the whole path, because a file or link can lead to another directory
    /// with these paths.
    Only(&'static [&'static str]),
}

const fn protected(names: &'static [&'static str], reason: &'static str) -> Protected {
    Protected { names, reason, in_commands: InCommands::All }
}

const fn partly(
    names: &'static [&'static str],
    reason: &'static str,
    paths: &'static [&'static str],
) -> Protected {
    Protected { names, reason, in_commands: InCommands::Only(paths) }
}

/// The paths in a git directory that can make git start programs. The file `commondir` can make git read its settings
/// from another directory.
pub(crate) const IN_GIT: &[&str] = &["config", "config.worktree", "commondir", "hooks"];

/// All paths that agents must not change.
pub const PROTECTED: &[Protected] = &[
    // Git runs hooks, and the programs that are set in its configuration (core.fsmonitor, core.sshCommand, filters,
    // aliases). A forged index or object would also falsify later commits. In a worktree, `.git` is a file that
    // contains the path of the git directory. If an agent could change this file, it could lead git to another
    // repository.
    partly(&[".git"], "Git's own files; only the system commits", IN_GIT),
    partly(
        &[".hg"],
        "Mercurial runs hooks that its configuration names",
        &["hgrc", "hgrc-not-shared", "sharedpath"],
    ),
    partly(
        &[".jj"],
        "Jujutsu runs programs that its configuration names",
        &[
            "repo/config.toml",
            "repo/config-id",
            "repo/store/git_target",
            "workspace-config.toml",
            "workspace-config-id",
        ],
    ),
    protected(&[".husky"], "Git runs these hooks"),
    // When an editor opens a folder, the editor runs the tasks and starts the language servers and tools that these
    // settings name.
    protected(&[".vscode"], "Visual Studio Code can start programs that these settings name"),
    protected(&[".vs"], "Visual Studio can start programs that these settings name"),
    protected(&[".idea"], "JetBrains editors can start programs that these settings name"),
    protected(&[".fleet"], "Fleet can start programs that these settings name"),
    protected(&[".zed"], "Zed can start programs that these settings name"),
    protected(&[".exrc"], "Vim runs it when it starts in this directory"),
    protected(&[".vimrc"], "Vim runs it when it starts in this directory"),
    protected(&[".gvimrc"], "Vim runs it when it starts in this directory"),
    protected(&[".nvimrc"], "Neovim runs it when it starts in this directory"),
    protected(&[".nvim.lua"], "Neovim runs it when it starts in this directory"),
    protected(&[".dir-locals.el"], "Emacs evaluates it when it opens a file of this directory"),
    protected(&[".dir-locals-2.el"], "Emacs evaluates it when it opens a file of this directory"),
    // These files describe a container. Before an editor builds the container, the editor runs commands from these
    // files on the host.
    protected(&[".devcontainer"], "editors run its commands when they open the folder"),
    protected(&[".devcontainer.json"], "editors run its commands when they open the folder"),
    // Direnv runs this file when a shell enters the directory.
    protected(&[".envrc"], "direnv runs it when a shell enters the directory"),
    // Other coding agents run the hooks and start the servers that these files name.
    protected(&[".claude", "settings.json"], "coding agents run the hooks that it names"),
    protected(&[".claude", "settings.local.json"], "coding agents run the hooks that it names"),
    protected(&[".claude", "hooks"], "coding agents run these hooks"),
    protected(&[".claude", "commands"], "coding agents run the commands in these files"),
    protected(&[".claude", "agents"], "coding agents run the hooks that these files name"),
    protected(&[".mcp.json"], "coding agents start the servers that it names"),
    protected(&[".cursor", "mcp.json"], "Cursor starts the servers that it names"),
    protected(&[".cursor", "hooks.json"], "Cursor runs the hooks that it names"),
    protected(&[".cursor", "hooks"], "Cursor runs these hooks"),
    protected(&[".cursor", "environment.json"], "Cursor runs the commands that it names"),
    protected(&[".gemini", "settings.json"], "coding agents start the servers that it names"),
    protected(&[".codex"], "coding agents start the servers that it names"),
];

impl Protected {
    /// Returns the paths that shell commands must not change, relative to a directory. If only a part is protected
    /// ([`InCommands::Only`]), takes for granted that the protected path is a directory, as `.git` is in a repository.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let whole: PathBuf = self.names.iter().collect();
        match self.in_commands {
            InCommands::All => vec![whole],
            InCommands::Only(paths) => paths.iter().map(|path| whole.join(path)).collect(),
        }
    }
}

/// Returns the entry of [`PROTECTED`] that a path matches, if any.
pub fn protection(path: &WorkspacePath) -> Option<&'static Protected> {
    let names: Vec<String> = path.names().iter().map(|name| folded(name)).collect();
    let is_at = |at: usize, entry: &Protected| {
        let wanted = names.get(at..at.saturating_add(entry.names.len()));
        wanted.is_some_and(|wanted| wanted.iter().zip(entry.names).all(|(name, fixed)| name == fixed))
    };
    PROTECTED.iter().find(|entry| (0..names.len()).any(|at| is_at(at, entry)))
}

/// Some file systems treat different names as the same name. Returns a name in the form in which such file systems
/// compare names. The form is in lower case. It lacks the characters that macOS ignores. It also lacks trailing dots,
/// trailing spaces and streams (`name:stream`), which Windows drops.
pub(crate) fn folded(name: &str) -> String {
    let is_ignored = |character: char| {
        matches!(character,
            '\u{200C}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{206A}'..='\u{206F}' | '\u{FEFF}')
    };
    let visible: String = name.chars().filter(|character| !is_ignored(*character)).collect();
    let before_stream = visible.split(':').next().unwrap_or_default();
    let folded = before_stream.trim_end_matches(['.', ' ']).to_lowercase();
    // `git~1` is the short name that Windows file systems give to `.git`.
    if folded == "git~1" { ".git".to_owned() } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_protected(written: &str) -> bool {
        protection(&WorkspacePath::parse(written, &[]).unwrap()).is_some()
    }

    #[test]
    fn files_that_start_programs_are_protected() {
        for path in [
            ".git",
            ".git/config",
            ".git/hooks/pre-commit",
            ".git/objects/00/aa",
            "sub/.git/config",
            "sub/.git",
            ".GIT/config",
            ".Git/Hooks/x",
            ".g\u{200c}it/config",
            "\u{feff}.git/config",
            "git~1/config",
            "GIT~1/config",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            "a/../.git/config",
            ".vscode/tasks.json",
            "a/b/.vscode/settings.json",
            ".idea/workspace.xml",
            ".devcontainer/devcontainer.json",
            ".devcontainer.json",
            ".husky/pre-commit",
            ".envrc",
            "x/.envrc",
            ".ENVRC",
            ".exrc",
            ".dir-locals.el",
            ".claude/settings.json",
            ".claude/hooks/a.sh",
            "a/.mcp.json",
        ] {
            assert!(is_protected(path), "{path}");
        }
    }

    #[test]
    fn other_files_are_not_protected() {
        for path in [
            ".",
            "a",
            ".gitignore",
            ".gitattributes",
            ".gitmodules",
            ".github/workflows/ci.yml",
            "git/config",
            "x.git/config",
            ".git2",
            "vscode/settings.json",
            ".env",
            ".envrc.example",
            ".claude/skills/a/SKILL.md",
            "settings.json",
            ".claude",
            "hooks/pre-commit",
            "a.idea",
        ] {
            assert!(!is_protected(path), "{path}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_below_a_protected_path_is_protected(
            above in proptest::collection::vec("[a-z]{1,4}", 0..3),
            entry in proptest::sample::select(PROTECTED),
            below in proptest::collection::vec("[a-z.]{1,4}x", 0..3),
            upper in any::<bool>(),
        ) {
            let mut names = above;
            names.extend(entry.names.iter().map(|name| if upper { name.to_uppercase() } else { (*name).to_owned() }));
            names.extend(below);
            prop_assert!(is_protected(&names.join("/")), "{names:?}");
        }
    }
}
