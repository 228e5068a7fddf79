//! Paths in a workspace, as models write them. Pure: nothing here looks at a file.

use std::fmt;
use std::path::Path;

/// The longest path in bytes. The kernel accepts no longer one.
const MAX_PATH_BYTES: usize = 4096;

/// The longest name of a file in bytes. File systems accept no longer one.
const MAX_NAME_BYTES: usize = 255;

/// The name under which models know the workspace, whatever its real directory is.
const ALIAS: &str = "workspace";

/// A path in a workspace: names below its directory, without `.`, `..`, empty names and NUL.
///
/// The type says nothing about the files: a name on the way may still be a symbolic link.
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

    /// Reads a path that a model wrote. `roots` are the absolute paths of the workspace's directory.
    ///
    /// A path may be relative, absolute inside a root, or begin with `/workspace`. `\` separates names like `/`, so a
    /// file with `\` in its name cannot be named. `..` removes the name before it.
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

    /// Returns the path of names that a directory listed.
    pub fn of(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    /// Returns the path of a file that is known by a relative path below a directory.
    pub fn below(directory: &[String], relative: &str) -> Self {
        Self(directory.iter().cloned().chain(relative.split('/').map(str::to_owned)).collect())
    }

    /// Returns the names, from the workspace downwards.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns whether this is the workspace itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last name, which the workspace itself lacks.
    pub fn name(&self) -> Option<&str> {
        self.0.last().map(String::as_str)
    }

    /// Returns the directory that contains the path. The workspace itself has none.
    pub fn parent(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// Returns the path on one line: control characters are escaped.
    pub fn on_one_line(&self) -> String {
        on_one_line(&self.to_string())
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { f.write_str(".") } else { f.write_str(&self.0.join("/")) }
    }
}

/// Escapes control characters, so that the name of a file fills one line and no more.
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

/// Returns whether a path that does not begin with a separator means a place outside: the home directory or a drive.
fn is_elsewhere(written: &str) -> bool {
    let first = written.split('/').next().unwrap_or_default();
    let is_drive = matches!(first.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic());
    first == "~" || is_drive
}

/// Returns the names of a relative path, or `None` if it climbs out.
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

/// Returns the names of an absolute path. Nothing is above `/`.
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

/// Returns the names below a root of the workspace, or below its alias.
fn below_root<'a>(names: Vec<&'a str>, roots: &[&Path]) -> Option<Vec<&'a str>> {
    let roots: Vec<String> =
        roots.iter().filter_map(|root| Some(root.to_str()?.replace('\\', "/"))).collect();
    let roots: Vec<Vec<&str>> = roots.iter().map(|root| absolute(root)).collect();
    if let Some(root) = roots.iter().find(|root| names.starts_with(root)) {
        return Some(names[root.len()..].to_vec());
    }
    // A real directory `/workspace` above the root is not the workspace.
    let alias_is_free = roots.iter().all(|root| root.first() != Some(&ALIAS));
    (alias_is_free && names.first() == Some(&ALIAS)).then(|| names[1..].to_vec())
}

#[cfg(test)]
mod tests;
