//! `POST /api/shutdown`: asks the daemon to end.

use crate::openapi::{Routes, Verb};
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polity_view::Leaving;
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Post, "/api/shutdown", "shutdown", shutdown, |operation| {
        operation
            .summary("Asks the daemon to end. It first lets the work in progress finish, as after SIGTERM.")
            .gives::<Leaving>(202, "The daemon is going to end.")
    });
}

async fn shutdown(State(shared): State<Arc<Shared>>) -> (StatusCode, Json<Leaving>) {
    shared.asked.cancel();
    (StatusCode::ACCEPTED, Json(Leaving { pid: std::process::id() }))
}
