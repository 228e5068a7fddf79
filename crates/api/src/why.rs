//! `/api/why`: explains an event, an artifact, an agent or a task. For example, it tells why a task has no answer.

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_view::{Why, WhyFilter};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/why/{id}", "explain", explain, |operation| {
        operation
            .summary(
                "Why an event happened, an artifact was described, an agent halts or a task has no answer.",
            )
            .query::<WhyFilter>()
            .gives::<Why>(200, "The reasons, and what can be done.")
            .refuses(&[400, 404])
    });
}

async fn explain(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(filter): Wanted<WhyFilter>,
) -> Result<Json<Why>, Problem> {
    let why = shared.society.why(&id, &filter).await?;
    why.map(Json).ok_or_else(|| Problem::not_found("there is no such thing, or nothing to explain about it"))
}
