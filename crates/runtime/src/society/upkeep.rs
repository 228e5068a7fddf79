//! Removes old data, so that the data of a society stay within their limits. Finishes merges that a crash has
//! interrupted.

use crate::every::every;
use crate::handles::Handles;
use polity_artifacts::words;
use polity_society::content::Kind;
use polity_society::id::TaskId;
use polity_store::{Error, artifacts, maintenance, tasks};
use polity_view::in_full;
use polity_workspaces::{Recovered, Retired};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Finishes the merges that a crash has interrupted. Agents need not wait for this function: before agents work in
/// the workspaces of a task again, the merge of that task is finished first.
pub(super) async fn finish_merges(handles: Arc<Handles>, stop: CancellationToken) {
    let Some(workspaces) = handles.hands.workspaces() else { return };
    for finished in workspaces.recover(&stop).await {
        match finished {
            Ok(Recovered { task, left }) => {
                tracing::info!(%task, ?left, "finished a merge that a crash had interrupted");
            }
            Err(refusal) => tracing::warn!(?refusal, "failed to finish a merge that a crash had interrupted"),
        }
    }
}

/// Checks a database while the society already works. This is for a database that the last process did not close, and
/// that is too large for the check at start. If the database is damaged, the society cannot continue.
pub(super) async fn check_structure(
    file: PathBuf,
    broken: watch::Sender<Option<String>>,
    stop: CancellationToken,
) {
    match maintenance::check_structure(&file, move || !stop.is_cancelled()).await {
        Ok(()) => tracing::info!("checked the database, because the last process did not close it"),
        Err(error) => {
            broken.send_replace(Some(in_full(&error)));
        }
    }
}

/// The maximum number of artifacts for which one transaction stores the words for the search. The limit keeps the
/// transaction short.
const FINDABLE_AT_ONCE: u32 = 50;

/// Stores the words of old text artifacts, so that a search finds these artifacts by their content. The earlier version
/// of polity that stored these artifacts did not store their words.
pub(super) async fn make_findable(handles: Arc<Handles>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        match make_some_findable(&handles).await {
            Ok(0) => return,
            Ok(count) => tracing::debug!(count, "old artifacts can be found by their content"),
            // The next start of the society tries again.
            Err(error) => return tracing::warn!(%error, "failed to read old artifacts for the search"),
        }
    }
}

async fn make_some_findable(handles: &Handles) -> Result<usize, Error> {
    let mut reader = handles.store.reader().await?;
    let unread = artifacts::unread(&mut reader, FINDABLE_AT_ONCE).await?;
    drop(reader);
    let mut read = Vec::with_capacity(unread.len());
    for (id, blob) in unread {
        // If the bytes cannot be read, the search finds the artifact only by its name.
        let content = handles.blobs.read(&blob).await.unwrap_or_default();
        read.push((id, words(Kind::Text, &content)));
    }
    let count = read.len();
    if count > 0 {
        let write = handles.store.write(move |tx| {
            Box::pin(async move {
                for (id, words) in &read {
                    artifacts::note_words(&mut tx.connection, id, words).await?;
                }
                Ok(())
            })
        });
        write.await?;
    }
    Ok(count)
}

/// Interval at which old data is removed.
const RETENTION: Duration = Duration::from_secs(60 * 60);

/// Removes old data at start and every hour, until the society stops: expired events, artifacts that were never sent,
/// and files that have been in the trash for a week. Also forgets old tasks. Ages are measured with the time at start
/// plus the time that has passed since then. So events do not become older if the clock is set forward.
pub(super) async fn keep_bounded(handles: Arc<Handles>, stop: CancellationToken) {
    let (begun_at, begun) = (polity_store::now(), tokio::time::Instant::now());
    let mut hours = every(RETENTION);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = hours.tick() => {}
        }
        let retention = handles.registry.current().settings.retention;
        let now = polity_store::now().min(begun_at.saturating_add(begun.elapsed()));
        if let Err(error) = maintenance::remove_expired(&handles.store, retention, now).await {
            tracing::warn!(%error, "failed to remove old events");
        }
        if let Err(error) = maintenance::remove_unsent(&handles.store, now).await {
            tracing::warn!(%error, "failed to remove artifacts that were never sent");
        }
        let within = match retention.max_database_bytes {
            Some(most) => maintenance::keep_within(&handles.store, most).await,
            None => Ok(0),
        };
        if let Err(error) = within {
            tracing::warn!(%error, "failed to forget old tasks");
        }
        if let Err(error) = maintenance::empty_trash(&handles.blobs, now).await {
            tracing::warn!(%error, "failed to empty the trash");
        }
        if let Err(error) = clear_workspaces(&handles, &stop).await {
            tracing::warn!(%error, "failed to clear the workspaces of forgotten tasks");
        }
    }
}

/// Removes three things of forgotten tasks: the worktrees, the files of commands, and the records of what agents last
/// saw of files. Keeps directories of the person, the shared workspaces of tasks, and worktrees with work that nobody
/// has merged. The function looks for forgotten tasks that still have directories on disk, so a later call completes a
/// removal that was interrupted.
pub(super) async fn clear_workspaces(handles: &Handles, stop: &CancellationToken) -> Result<(), Error> {
    let (workspaces, views) = (handles.hands.workspaces(), handles.hands.views());
    let on_disk: BTreeSet<TaskId> = workspaces
        .map(|workspaces| workspaces.tasks())
        .into_iter()
        .chain(views.map(|views| views.tasks()))
        .flatten()
        .collect();
    let on_disk: Vec<TaskId> = on_disk.into_iter().collect();
    let mut reader = handles.store.reader().await?;
    let mut forgotten = Vec::new();
    for task in tasks::forgotten(&mut reader, &on_disk).await? {
        let root = tasks::workspace(&mut reader, &task).await?;
        forgotten.push((task, root));
    }
    drop(reader);
    for (task, root) in forgotten {
        if let Some(Err(error)) = views.map(|views| views.forget(&task)) {
            tracing::warn!(%task, %error, cause = %error.source, "failed to remove the views of a forgotten task");
        }
        if let Some(commands) = handles.hands.commands()
            && let Err(error) = commands.forget(&task).await
        {
            tracing::warn!(%task, %error, "failed to remove the files of a forgotten task's commands");
        }
        let Some(workspaces) = workspaces else { continue };
        match workspaces.retire_all(&task, &root, stop).await {
            Ok(retired) => {
                for (agent, retired) in retired.iter().filter(|(_, retired)| *retired != Retired::Absent) {
                    tracing::debug!(%task, %agent, ?retired, "a worktree of a forgotten task");
                }
            }
            Err(refusal) => {
                tracing::warn!(%task, ?refusal, "failed to remove the worktrees of a forgotten task");
            }
        }
    }
    Ok(())
}
