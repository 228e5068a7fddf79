//! `/api/search`: searches tasks, agents, messages and artifacts.

use crate::extract::Wanted;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_view::{SearchFilter, SearchPage};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/search", "search", search, |operation| {
        operation
            .summary("Prompts, messages, agents and artifacts that contain all words of `q`, newest first.")
            .query::<SearchFilter>()
            .gives::<SearchPage>(
                200,
                "A page of hits, each with the part of its text that contains the words.",
            )
            .refuses(&[400])
    });
}

async fn search(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<SearchFilter>,
) -> Result<Json<SearchPage>, Problem> {
    Ok(Json(shared.society.search(&filter).await?))
}
