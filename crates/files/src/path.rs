//! Paths in a workspace, as models write them. Pure: no function accesses a file.

use std::fmt;
use std::path::Path;

/// The longest path in bytes. The kernel rejects longer paths.
const MAX_PATH_BYTES: usize = 4096;

/// The longest name of a file in bytes. File systems reject longer names.
const MAX_NAME_BYTES: usize = 255;

/// Models see this name, and not the real directory of the workspace. In paths, they write `/workspace/…`.
const ALIAS: &str = "workspace";

/// A path in a workspace: the names that lead from the directory of the workspace to the path. No name is empty, and no
/// name is `.` or `..`. No name contains NUL.
///
/// The path need not exist, and any of its directories may be a symbolic link.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(Vec<String>);

/// Why a text is not a path in the workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// The text is blank.
    #[error("empty; give a path relative to the workspace, or . for the workspace itself")]
    Empty,
    /// The text contains NUL.
    #[error("contains a NUL character")]
    Nul,
    /// The path or one of its names is too long.
    #[error("too long")]
    TooLong,
    /// The path leads out of the workspace.
    #[error("leads out of the workspace; give a path relative to the workspace")]
    Outside,
}

impl WorkspacePath {
    /// Returns the path of the workspace itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses a path that a model wrote. `roots` are the absolute paths by which the directory of the workspace is
    /// known.
    ///
    /// A path may be relative, or begin with a root or with `/workspace`. Both `/` and `\` separate names, so a file
    /// whose name contains `\` cannot be reached. `..` removes the name before it.
    pub fn parse(written: &str, roots: &[&Path]) -> Result<Self, PathFault> {
        if written.contains('\0') {
            return Err(PathFault::Nul);
        }
        if written.trim().is_empty() {
            return Err(PathFault::Empty);
        }
        if written.len() > MAX_PATH_BYTES {
            return Err(PathFault::TooLong);
        }
        let written = written.replace('\\', "/");
        let names = if written.starts_with('/') {
            below_root(absolute(&written), roots).ok_or(PathFault::Outside)?
        } else if is_elsewhere(&written) {
            return Err(PathFault::Outside);
        } else {
            relative(&written).ok_or(PathFault::Outside)?
        };
        if names.iter().any(|name| name.len() > MAX_NAME_BYTES) {
            return Err(PathFault::TooLong);
        }
        Ok(Self(names.into_iter().map(str::to_owned).collect()))
    }

    /// Makes a path from names that were read from a directory.
    pub fn of(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    /// Makes the path of a file from a directory and a path relative to the directory.
    pub fn below(directory: &[String], relative: &str) -> Self {
        Self(directory.iter().cloned().chain(relative.split('/').map(str::to_owned)).collect())
    }

    /// Returns the names, the outermost first.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns whether this path is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last name; `None` for the workspace itself.
    pub fn name(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// Returns the directory that contains the path; `None` for the workspace itself.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Returns the path with control characters escaped, so that it is a single line.
    pub fn on_one_line(&self) -> String {
        on_one_line(&self.to_string())
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str(".") } else { f.write_str(&self.0.join("/")) }
    }
}

/// Escapes control characters and line separators, so that the text is a single line.
pub fn on_one_line(text: &str) -> String {
    let breaks = |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}');
    let mut line = String::with_capacity(text.len());
    for character in text.chars() {
        if breaks(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// Checks a path that does not begin with `/`. Returns whether the path begins with `~` or a drive letter. Such a path
/// leads out of the workspace, although it does not begin with `/`.
fn is_elsewhere(written: &str) -> bool {
    let first = written.split('/').next().unwrap_or_default();
    let is_drive = matches!(first.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    first == "~" || is_drive
}

/// Returns the names of a relative path, or `None` if `..` leads out of the workspace.
fn relative(written: &str) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for name in written.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop()?;
            }
            name => names.push(name),
        }
    }
    Some(names)
}

/// Returns the names of an absolute path. `..` at the top has no effect.
fn absolute(written: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in written.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
}

/// `names` are the names of an absolute path. Returns the names that come after a root of the workspace or after
/// `/workspace`. Returns `None` if the path begins with neither.
fn below_root<'a>(names: Vec<&'a str>, roots: &[&Path]) -> Option<Vec<&'a str>> {
    let roots: Vec<String> =
        roots.iter().filter_map(|root| Some(root.to_str()?.replace('\\', "/"))).collect();
    let roots: Vec<Vec<&str>> = roots.iter().map(|root| absolute(root)).collect();
    if let Some(root) = roots.iter().find(|root| names.starts_with(root)) {
        return Some(names[root.len()..].to_vec());
    }
    // If a real path of the workspace begins with `/workspace`, `/workspace` means that real directory and is not an
    // alias.
    let alias_is_free = roots.iter().all(|root| root.first() != Some(&ALIAS));
    (alias_is_free && names.first() == Some(&ALIAS)).then(|| names[1..].to_vec())
}

#[cfg(test)]
mod tests;
