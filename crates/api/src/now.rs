//! `GET /api/now`: who is at work, and what is stuck.

use crate::extract::Wanted;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_view::{NowFilter, NowView};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/now", "getNow", now, |operation| {
        operation
            .summary("The agents at work, newest activity first, and what does not go on without help, oldest first.")
            .query::<NowFilter>()
            .gives::<NowView>(200, "The present, with the remedies for what is stuck.")
            .refuses(&[400])
    });
}

async fn now(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<NowFilter>,
) -> Result<Json<NowView>, Problem> {
    Ok(Json(shared.society.now(&filter).await?))
}
