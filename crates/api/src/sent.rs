//! `/api/sent`: shows requests exactly as they were sent to models.

use crate::extract::Named;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_view::SentRequest;
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/sent/{id}", "getSentRequest", get, |operation| {
        operation
            .summary("A request exactly as it was sent to a model, with references in place of media.")
            .gives::<SentRequest>(200, "The request.")
            .refuses(&[404])
    });
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<SentRequest>, Problem> {
    let nothing = || Problem::not_found("there is no such request, or its task was removed to make room");
    let number = id.parse().map_err(|_| nothing())?;
    shared.society.sent(number).await?.map(Json).ok_or_else(nothing)
}
