//! `GET /api/events`: what happened, as a page or as a stream.

mod stream;

use crate::extract::Wanted;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use polity_runtime::view::EventFilter;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// How many events a page has at most.
const LONGEST_PAGE: u32 = 1000;
const EVENT_STREAM: &str = "text/event-stream";

/// Which events are wanted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// The number of the last event that is known already.
    #[serde(default)]
    #[schemars(range(min = 0))]
    after: i64,
    /// How many at most; a stream has no end.
    #[serde(default = "longest")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
}

fn longest() -> u32 {
    LONGEST_PAGE
}

/// Declares the routes.
pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/events", "listEvents", events, |operation| {
        operation
            .summary("What happened: a page, or a stream for whoever accepts text/event-stream.")
            .query::<EventsQuery>()
            .header(
                "Last-Event-ID",
                "For a stream: the number of the last event that came.",
                json!({"type": "string"}),
            )
            .gives_content(200, "The events.", "application/json", json!({"type": "object"}))
            .gives_content(200, "The events.", EVENT_STREAM, json!({"type": "string"}))
            .refuses(&[400])
    });
}

async fn events(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Wanted(wanted): Wanted<EventsQuery>,
) -> Result<Response, Problem> {
    if wanted.after < 0 || !(1..=LONGEST_PAGE).contains(&wanted.limit) {
        return Err(Problem::bad_request("`after` is 0 or more, `limit` from 1 to 1000"));
    }
    if wants_stream(&headers) {
        let after = stream::last_event_id(&headers)?.unwrap_or(wanted.after);
        return Ok(stream::open(&shared, after));
    }
    let page = shared.society.events_after(wanted.after, wanted.limit, &EventFilter::default()).await;
    let page = page.map_err(|error| Problem::internal(&error))?;
    Ok(Json(page).into_response())
}

/// Whether a stream is asked for.
fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(EVENT_STREAM)))
}
