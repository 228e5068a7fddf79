//! Reads artifacts for the views, newest first.

use super::{Builder, cut};
use crate::{Error, artifacts};
use polity_artifacts::index::{NO_TASK, Stored};
use polity_society::id::{ArtifactId, TaskId};
use polity_sql::Connection;
use polity_view::{ArtifactFilter, ArtifactView, page};
use std::collections::HashMap;

/// Converts a stored artifact to its view.
pub fn shown(stored: Stored) -> ArtifactView {
    let Stored { artifact, owner, task, damage, blob: _ } = stored;
    ArtifactView {
        reference: artifact.id.reference(),
        id: artifact.id,
        kind: artifact.kind,
        mime_type: artifact.mime_type,
        filename: artifact.filename,
        label: artifact.label,
        size: artifact.size,
        task: Some(task).filter(|task: &TaskId| task.as_str() != NO_TASK),
        owner,
        created_at: artifact.created_at,
        meta: artifact.meta,
        damage,
    }
}

/// Returns a page of artifacts, and where the next page begins.
pub async fn list(
    connection: &mut Connection,
    filter: &ArtifactFilter,
) -> Result<(Vec<ArtifactView>, Option<i64>), Error> {
    let limit = page(filter.limit);
    // Do not read the column `words`: its texts are long, and an `ArtifactView` does not contain them.
    let mut query = Builder::new(
        "SELECT id, task, owner, blob, kind, mime_type, filename, label, size, meta, created_at, rowid AS place
        FROM artifacts WHERE 1",
    );
    if let Some(after) = filter.after {
        query.push(" AND rowid < ").push_bind(after);
    }
    if let Some(task) = &filter.task {
        query.push(" AND (task = ").push_bind(task.as_str().to_owned());
        query.push(" OR id IN (SELECT artifact FROM inherited WHERE task = ");
        query.push_bind(task.as_str().to_owned()).push("))");
    }
    if let Some(owner) = &filter.owner {
        query.push(" AND owner = ").push_bind(owner.as_str().to_owned());
    }
    if let Some(kind) = filter.kind {
        query.push(" AND kind = ").push_bind(kind.as_str());
    }
    query.push(" ORDER BY rowid DESC LIMIT ").push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(connection).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push((row.get("place"), shown(artifacts::read(row)?)));
    }
    let next = cut(&mut found, limit);
    Ok((found.into_iter().map(|(_, artifact)| artifact).collect(), next))
}

/// Returns the artifacts with these ids. Ids that do not exist are skipped.
pub async fn by_id(
    connection: &mut Connection,
    ids: &[ArtifactId],
) -> Result<HashMap<ArtifactId, ArtifactView>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let stored = artifacts::get_many(connection, ids).await?;
    Ok(stored.into_iter().map(|stored| (stored.artifact.id.clone(), shown(stored))).collect())
}
