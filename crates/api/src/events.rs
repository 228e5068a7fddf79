//! `GET /api/events?after=N&limit=M`: a page of what happened.

use crate::problem::Problem;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use polity_runtime::{Entry, Society};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many events a page has at most.
const LONGEST_PAGE: u32 = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// The number of the last event that is known already.
    #[serde(default)]
    after: i64,
    /// How many at most.
    #[serde(default = "longest")]
    limit: u32,
}

fn longest() -> u32 {
    LONGEST_PAGE
}

#[derive(Debug, Serialize)]
pub(crate) struct Page {
    events: Vec<Entry>,
    /// What to ask for next, as `after`.
    next: i64,
}

pub(crate) async fn page(
    State(society): State<Arc<Society>>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Page>, Problem> {
    let Query(wanted) = wanted.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
    let limit = wanted.limit.clamp(1, LONGEST_PAGE);
    let events =
        society.events_after(wanted.after, limit).await.map_err(|error| Problem::internal(&error))?;
    let next = events.last().map_or(wanted.after, |last| last.seq);
    Ok(Json(Page { events, next }))
}
