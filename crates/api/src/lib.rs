//! HTTP over a running society.
//!
//! It must not know SQL, models or prompts: a request becomes a call on [`Society`], what comes back becomes JSON.
//! Errors are `application/problem+json`. So far the routes only read; whoever serves them decides where to listen and
//! who may ask.

mod events;
mod problem;

use axum::Router;
use axum::routing::get;
use polity_runtime::Society;
use std::sync::Arc;

/// The routes: `GET /healthz` and `GET /api/events`.
pub fn router(society: Arc<Society>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/api/events", get(events::page))
        .fallback(problem::not_found)
        .with_state(society)
}
