//! Reads and writes whole files for tools of other groups: for example, `http_request` saves an answer in the
//! workspace. A write follows the same rules as the command `create` of the tool `str_replace_editor`.

use crate::call::{Attempt, Caller, Source};
use crate::files::bounds::Bounds;
use crate::files::desk::{Desk, blocking};
use crate::files::diff::{diff, with_diff};
use crate::files::text::Content;
use crate::places::Places;
use crate::views::{Change, Views};
use bytes::Bytes;
use polity_files::{ContentHash, FileError, WorkspacePath};
use polity_society::limits::{Limits, TooLarge};
use polity_society::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Access to the workspaces of callers, for reading and writing whole files.
#[derive(Clone)]
pub struct Files {
    places: Arc<dyn Places>,
    views: Arc<Views>,
    bounds: Bounds,
}

/// A path in the workspace, and the tool and the argument from which the path comes. A refusal names both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathArgument<'a> {
    /// The name of the tool.
    pub tool: &'static str,
    /// The name of the argument that holds the path.
    pub argument: &'static str,
    /// The path, as the model wrote it.
    pub path: &'a str,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadFile {
    /// The path in the workspace, on one line.
    pub path: String,
    /// The name of the file.
    pub filename: Option<String>,
    /// The content.
    pub bytes: Bytes,
    /// The untrusted source that the caller has now seen, because it has read this file. `None` if the files of the
    /// workspace are trusted.
    pub source: Option<Source>,
}

/// Two hashes that are recorded before a write. After a crash, the next run of the call uses them to tell whether the
/// file was already written.
#[derive(Debug, Serialize, Deserialize)]
struct Evidence {
    /// The hash of the file before the write; `null` if the file did not exist.
    before: Option<ContentHash>,
    /// The hash of the file after the write.
    after: ContentHash,
}

impl Files {
    /// `views` stores, for each agent and each file, the hash of the content that the agent last viewed or wrote.
    pub fn new(places: Arc<dyn Places>, views: Arc<Views>, bounds: Bounds) -> Self {
        Self { places, views, bounds }
    }

    /// Checks that the caller may now write a file at the path. Changes nothing. Returns the path in the workspace.
    pub async fn check(&self, caller: &Caller, at: PathArgument<'_>) -> Result<String, Refusal> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await?;
        let written = at.path.to_owned();
        blocking(at.tool, move || checked(&desk, &views, &written).map(|(path, _)| path.on_one_line())).await
    }

    /// Writes a file at the path, and notes that the caller knows its content. Returns the path in the workspace.
    pub async fn write(
        &self,
        caller: &Caller,
        at: PathArgument<'_>,
        content: Bytes,
    ) -> Result<String, Refusal> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await?;
        let written = at.path.to_owned();
        let write = move || {
            let (path, before) = checked(&desk, &views, &written)?;
            desk.write(&views, &path, before, &content)?;
            Ok(path.on_one_line())
        };
        blocking(at.tool, write).await
    }

    /// Reads a whole file that is small enough to be an artifact. Links are followed inside the workspace.
    pub async fn read(
        &self,
        caller: &Caller,
        at: PathArgument<'_>,
        limits: &Limits,
    ) -> Result<ReadFile, Refusal> {
        let (desk, _) = self.desk(caller, at.tool, at.argument).await?;
        let (written, limit) = (at.path.to_owned(), limits.max_artifact_bytes);
        let read = move || {
            let path = desk.path(&written)?;
            let bytes = desk.workspace.read(&path, limit).map_err(|error| match error {
                FileError::TooLarge { bytes: size, limit, .. } => Refusal::from(TooLarge { size, limit }),
                error => desk.refusal(error),
            })?;
            Ok(ReadFile {
                filename: path.name().map(str::to_owned),
                path: path.on_one_line(),
                bytes: bytes.into(),
                source: desk.workspace.source(),
            })
        };
        blocking(at.tool, read).await
    }

    /// Checks that the caller may put this content at the path. Returns the hashes of the old and the new content as
    /// JSON, which [`Self::write_once`] needs, with the path and a diff for the person. The diff is empty if the old or
    /// the new content is not text.
    pub async fn evidence(
        &self,
        caller: &Caller,
        at: PathArgument<'_>,
        content: Bytes,
    ) -> Result<Value, Refusal> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await?;
        let written = at.path.to_owned();
        let evidence = move || {
            let (path, before) = checked(&desk, &views, &written)?;
            let evidence = json!(Evidence { before, after: ContentHash::of(&content) });
            let diff = difference(&desk, &path, &content)?.unwrap_or_default();
            Ok(with_diff(evidence, &path.on_one_line(), &diff))
        };
        blocking(at.tool, evidence).await
    }

    /// Puts a file at the path. If an earlier run of the call has already written this file before a crash, leaves the
    /// file as it is. Returns the path in the workspace.
    pub async fn write_once(
        &self,
        caller: &Caller,
        at: PathArgument<'_>,
        content: Bytes,
        evidence: &Value,
        attempt: Attempt,
    ) -> Result<String, Refusal> {
        let (mut desk, views) = self.desk(caller, at.tool, at.argument).await?;
        // An earlier run may already have written `content`. This call reads the existing file to compare hashes, so
        // the size limit must allow a file as large as `content`.
        desk.bounds.file_bytes = desk.bounds.file_bytes.max(content.len() as u64);
        let written = at.path.to_owned();
        let evidence = Evidence::deserialize(evidence).map_err(|error| Refusal::ToolFailed {
            tool: at.tool.to_owned(),
            reason: format!("the record of the change cannot be read: {error}"),
        })?;
        let write = move || {
            if attempt == Attempt::AfterCrash {
                desk.sweep(&written);
            }
            let path = desk.path(&written)?;
            let now = desk.read_if_there(&path).map_err(|error| desk.refusal(error))?;
            let now = now.as_deref().map(ContentHash::of);
            if now == evidence.before {
                desk.write(&views, &path, now, &content)?;
            } else if attempt == Attempt::AfterCrash && now == Some(evidence.after) {
                views.note(&desk.caller, &path, evidence.after);
            } else {
                return Err(Refusal::FileChanged { path: path.to_string() });
            }
            Ok(path.on_one_line())
        };
        blocking(at.tool, write).await
    }

    /// Returns a diff for a person to review. The diff shows the change that [`Self::write_once`] would make. Returns
    /// `None` if the old or the new content is not text.
    pub async fn preview(&self, caller: &Caller, at: PathArgument<'_>, content: Bytes) -> Option<String> {
        let (desk, views) = self.desk(caller, at.tool, at.argument).await.ok()?;
        let written = at.path.to_owned();
        let preview = move || {
            let (path, _) = checked(&desk, &views, &written)?;
            difference(&desk, &path, &content)
        };
        // If the file cannot be written, there is no preview. Even if the person allows the call, it is refused when it
        // runs.
        blocking(at.tool, preview).await.ok().flatten()
    }

    /// Opens the workspace of the caller. Also returns the record of the file contents that each agent has seen.
    pub(super) async fn desk(
        &self,
        caller: &Caller,
        tool: &'static str,
        argument: &'static str,
    ) -> Result<(Desk, Arc<Views>), Refusal> {
        let workspace = self.places.open(caller).await?;
        let desk = Desk { tool, argument, caller: caller.clone(), workspace, bounds: self.bounds };
        Ok((desk, Arc::clone(&self.views)))
    }
}

/// Returns a diff from the present content of a file to this content, or `None` if one of them is not text.
fn difference(desk: &Desk, path: &WorkspacePath, content: &[u8]) -> Result<Option<String>, Refusal> {
    let old = desk.read_if_there(path).map_err(|error| desk.refusal(error))?;
    let old = old.map_or(Content::Text(String::new()), |old| Content::of(&old));
    Ok(match (old, Content::of(content)) {
        (Content::Text(old), Content::Text(new)) => Some(diff(&old, &new, &path.on_one_line())),
        _ => None,
    })
}

/// Checks that the caller may replace the file. Returns the path and the hash of the current content, if the file
/// exists.
fn checked(
    desk: &Desk,
    views: &Views,
    written: &str,
) -> Result<(WorkspacePath, Option<ContentHash>), Refusal> {
    let path = desk.path(written)?;
    desk.workspace.check_write(&path).map_err(|error| desk.refusal(error))?;
    let now = desk.read_if_there(&path).map_err(|error| desk.refusal(error))?;
    let before = now.as_deref().map(ContentHash::of);
    desk.check_known(views, &path, Change::Create, before)?;
    Ok((path, before))
}
