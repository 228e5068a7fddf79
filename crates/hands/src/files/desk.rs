//! What all file tools share: access to the caller's workspace, and refusals that explain what is wrong with a
//! path.

use crate::call::{Caller, Output};
use crate::files::bounds::Bounds;
use crate::views::{Change, Unknown, Views, may_change};
use polity_files::path::on_one_line;
use polity_files::{ContentHash, Expected, FileError, Kind, PathFault, Workspace, WorkspacePath};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use std::sync::Arc;

/// Maximum number of similar paths that a refusal names.
const MAX_SIMILAR: usize = 3;

/// A refusal names another path only if its name is at least this similar. The similarity 0 means different, and 1
/// means equal.
const MIN_LIKENESS: f64 = 0.8;

/// The name of the argument for the path, in tools that take a single path.
pub(super) const PATH: &str = "path";

/// The workspace of a caller during one call of a tool.
pub(super) struct Desk {
    pub(super) tool: &'static str,
    /// The name of the argument in which the tool gets the path. Refusals contain this name.
    pub(super) argument: &'static str,
    pub(super) caller: Caller,
    pub(super) workspace: Arc<Workspace>,
    pub(super) bounds: Bounds,
}

/// Runs blocking work outside the async threads.
pub(super) async fn blocking<T: Send + 'static>(
    tool: &'static str,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Refusal::ToolFailed { tool: tool.to_owned(), reason: error.to_string() })?
}

/// Makes a refusal that names one invalid argument. `rule` says what is wrong with the argument.
pub(super) fn refused(argument: &str, rule: impl Into<String>) -> Refusal {
    Refusal::InvalidArguments(vec![FieldProblem::new(argument, Fault::Rule(rule.into()))])
}

/// Makes a refusal that names one missing argument.
pub(super) fn missing(argument: &str) -> Refusal {
    Refusal::InvalidArguments(vec![FieldProblem::new(argument, Fault::Missing)])
}

impl Desk {
    /// Parses a path that the model wrote.
    pub(super) fn path(&self, written: &str) -> Result<WorkspacePath, Refusal> {
        self.workspace.path(written).map_err(|fault| match fault {
            PathFault::Empty | PathFault::Nul | PathFault::TooLong => {
                refused(self.argument, fault.to_string())
            }
            PathFault::Outside => {
                Refusal::WorkspaceRefused { reason: format!("{} {fault}", on_one_line(written)) }
            }
        })
    }

    /// Turns a failed file operation into a refusal. If the path does not exist, the refusal names similar paths.
    pub(super) fn refusal(&self, error: FileError) -> Refusal {
        if let FileError::NotFound(path) = &error {
            let similar = self.similar(path);
            if !similar.is_empty() {
                return refused(self.argument, format!("{error}; there is {}", similar.join(", ")));
            }
        }
        error.into_refusal(self.tool, self.argument)
    }

    /// Reads a whole file. Returns `None` if the file does not exist.
    pub(super) fn read_if_there(&self, path: &WorkspacePath) -> Result<Option<Vec<u8>>, FileError> {
        match self.workspace.metadata(path) {
            Err(FileError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
            Ok(found) if found.kind == Kind::Directory => {
                Err(FileError::NotAFile { path: path.clone(), kind: Kind::Directory })
            }
            Ok(_) => self.workspace.read(path, self.bounds.file_bytes).map(Some),
        }
    }

    /// The caller wants to change a file. Checks that the caller knows the current content of the file. `now` is the
    /// hash of this content.
    pub(super) fn check_known(
        &self,
        views: &Views,
        path: &WorkspacePath,
        change: Change,
        now: Option<ContentHash>,
    ) -> Result<(), Refusal> {
        let seen = views.seen(&self.caller, path).map_err(|error| Refusal::ToolFailed {
            tool: self.tool.to_owned(),
            reason: format!("{error}: {}", error.source),
        })?;
        may_change(change, seen, now).map_err(|unknown| {
            let path = path.to_string();
            match unknown {
                Unknown::Changed => Refusal::FileChanged { path },
                Unknown::NeverViewed => Refusal::FileNotViewed { path },
            }
        })
    }

    /// Replaces the content of a file, if the content is still `before`. Also records that the caller knows the new
    /// content.
    pub(super) fn write(
        &self,
        views: &Views,
        path: &WorkspacePath,
        before: Option<ContentHash>,
        content: &[u8],
    ) -> Result<(), Refusal> {
        let after = ContentHash::of(content);
        let expected = before.map_or(Expected::Absent, Expected::Content);
        if before != Some(after) {
            self.workspace.write(path, expected, content).map_err(|error| self.refusal(error))?;
        }
        views.note(&self.caller, path, after);
        Ok(())
    }

    /// Removes the temporary files that a killed process left in the directory of a file.
    pub(super) fn sweep(&self, written: &str) {
        if let Ok(path) = self.path(written)
            && let Err(error) = self.workspace.sweep(&path)
        {
            // If the temporary files stay, this does no harm, because listings and searches leave them out. In a
            // read-only workspace the removal always fails, but there are no temporary files.
            tracing::debug!(%error, "temporary files were not removed");
        }
    }

    /// If the files of the workspace are untrusted, adds a source to a result. The source tells polity that the agent
    /// has seen untrusted content.
    pub(super) fn sourced(&self, output: Output) -> Output {
        match self.workspace.source() {
            Some(source) => output.from_source(source),
            None => output,
        }
    }

    /// Returns paths in the same directory whose names are similar to the name in `path`.
    fn similar(&self, path: &WorkspacePath) -> Vec<String> {
        let (Some(name), Some(above)) = (path.name(), path.parent()) else { return Vec::new() };
        let Ok(listing) = self.workspace.list(&above) else { return Vec::new() };
        let likeness = |line: &String| {
            let there = line.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            strsim::jaro_winkler(&there.to_lowercase(), &name.to_lowercase())
        };
        let mut similar: Vec<(f64, String)> =
            listing.lines.into_iter().map(|line| (likeness(&line), line)).collect();
        similar.retain(|(likeness, _)| *likeness >= MIN_LIKENESS);
        // The sort is stable, so equally similar paths keep their order.
        similar.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let place = if above.is_root() { String::new() } else { format!("{}/", above.on_one_line()) };
        similar.into_iter().take(MAX_SIMILAR).map(|(_, line)| format!("{place}{line}")).collect()
    }
}
