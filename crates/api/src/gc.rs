//! `/api/gc`: frees space while the daemon serves.

use crate::extract::Wanted;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polity_store::maintenance::MaintenanceError;
use polity_view::{FreedView, FreeingFilter};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Post, "/api/gc", "freeSpace", free, |operation| {
        operation
            .summary("Removes stored bytes that no artifact needs, and expired events, as `polity gc` does.")
            .query::<FreeingFilter>()
            .gives::<FreedView>(200, "What was removed.")
            .refuses(&[400, 409])
    });
}

async fn free(
    State(shared): State<Arc<Shared>>,
    Wanted(wanted): Wanted<FreeingFilter>,
) -> Result<Json<FreedView>, Problem> {
    match shared.society.free(&wanted).await {
        Ok(freed) => Ok(Json(freed)),
        Err(MaintenanceError::Database(error)) => Err(Problem::internal(&error)),
        Err(busy @ MaintenanceError::Busy(_)) => {
            Err(Problem::refused(StatusCode::CONFLICT, "busy", busy.to_string(), None))
        }
        Err(error) => {
            tracing::error!(error = polity_view::in_full(&error), "failed to free space");
            Err(Problem::defect())
        }
    }
}
