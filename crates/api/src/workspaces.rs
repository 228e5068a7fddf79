//! `/api/tasks/{id}/workspace` and `/api/tasks/{id}/changes`: the files of a task, and who changed them.

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_runtime::WorkspaceError;
use polity_society::id::TaskId;
use polity_view::{ChangesFilter, ChangesView, WorkspaceFilter, WorkspaceView};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/tasks/{id}/workspace", "getWorkspace", workspace, |operation| {
        operation
            .summary("A directory or a text file of a task's workspace, or of an agent's worktree.")
            .query::<WorkspaceFilter>()
            .gives::<WorkspaceView>(200, "The entries of a directory, or the beginning of a file.")
            .refuses(&[400, 404, 422])
    });
    routes.add(Verb::Get, "/api/tasks/{id}/changes", "listChanges", changes, |operation| {
        operation
            .summary("The commits of a task's agents, and what one commit changed.")
            .query::<ChangesFilter>()
            .gives::<ChangesView>(200, "The commits, the latest first.")
            .refuses(&[400, 404, 422])
    });
}

async fn workspace(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(filter): Wanted<WorkspaceFilter>,
) -> Result<Json<WorkspaceView>, Problem> {
    shared.society.workspace(&TaskId::new(id), &filter).await.map(Json).map_err(problem)
}

async fn changes(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(filter): Wanted<ChangesFilter>,
) -> Result<Json<ChangesView>, Problem> {
    shared.society.changes(&TaskId::new(id), &filter).await.map(Json).map_err(problem)
}

fn problem(error: WorkspaceError) -> Problem {
    match error {
        WorkspaceError::Store(error) => Problem::internal(&error),
        WorkspaceError::Refused { code, message } => Problem::unprocessable(code, message, None),
        error @ (WorkspaceError::NoTask(_)
        | WorkspaceError::NoAgent(_)
        | WorkspaceError::NoCommit(_)
        | WorkspaceError::NoFile(_)) => Problem::not_found(error.to_string()),
    }
}
