//! HTTP over a society.
//!
//! *Request → guard → route → [`Society`] → JSON.* The [`guard`] judges the head of a request: is the host ours, the
//! origin, does it show the token? A route is declared once, in the file of its resource; the router and the OpenAPI
//! document both come of that ([`openapi`]). Its handler calls the society, and what comes back becomes JSON. All that
//! goes wrong becomes `application/problem+json` ([`problem`]). [`serve`] speaks HTTP on a socket, with bounds on
//! clients that are slow or many. [`read_only`] gives the same routes to a process that has opened a society for reading
//! alone: there [`read_only::stand`] takes the place of the guard, and refuses what would write.
//!
//! It must not know SQL, models or prompts; and not where the daemon listens, or where the token is kept.

mod agents;
mod artifacts;
mod assets;
mod events;
mod extract;
mod guard;
mod health;
mod login;
mod messages;
mod metrics;
mod openapi;
mod problem;
mod read_only;
mod roles;
mod server;
mod services;
mod shared;
mod tasks;
mod upload;

pub use guard::{Guard, Hosts, Token};
pub use server::serve;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use polity_runtime::Society;
use serde_json::{Value, json};
use shared::Shared;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// What tells the API that the daemon ends.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Nothing new is begun: `GET /readyz` says so.
    pub draining: CancellationToken,
    /// Streams end, connections are closed.
    pub closing: CancellationToken,
}

/// All routes behind the guard, with others that are mounted beside them. Those name their whole paths and have no
/// fallback of their own.
pub fn app(
    society: Arc<Society>,
    guard: Guard,
    ending: Ending,
    mounted: impl IntoIterator<Item = Router>,
) -> Router {
    let guard = Arc::new(guard);
    let own = routes(society, Some(Arc::clone(&guard)), ending)
        .route("/", get(assets::page))
        .route("/assets/{*path}", get(assets::asset));
    let all = mounted.into_iter().fold(own, Router::merge);
    bounded(all).layer(middleware::from_fn_with_state(guard, guard::stand))
}

/// All routes over a society that was opened for reading alone, for the process that has opened it: nobody else reaches
/// them, so they ask for no token. What would write, and streams of events, are refused.
pub fn read_only(society: Arc<Society>) -> Router {
    bounded(routes(society, None, Ending::default())).layer(middleware::from_fn(read_only::stand))
}

/// The declared routes.
fn routes(society: Arc<Society>, guard: Option<Arc<Guard>>, ending: Ending) -> Router {
    let (router, document) = declared().finish();
    router.with_state(Arc::new(Shared {
        society,
        guard,
        draining: ending.draining,
        ending: ending.closing,
        uploads: Semaphore::new(upload::AT_ONCE),
        streams: Arc::new(Semaphore::new(events::MOST_STREAMS)),
        readiness: health::Readiness::default(),
        started: Instant::now(),
        description: Bytes::from(document.to_string()),
    }))
}

/// Routes, with an answer for whatever is no route, and for a handler that panics.
fn bounded(routes: Router) -> Router {
    routes
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(CatchPanicLayer::custom(problem::panicked))
}

/// The description of the API (OpenAPI 3.1), as it is served.
pub fn description() -> Value {
    declared().finish().1
}

fn declared() -> openapi::Routes {
    let mut routes = openapi::Routes::new();
    tasks::routes(&mut routes);
    agents::routes(&mut routes);
    messages::routes(&mut routes);
    artifacts::routes(&mut routes);
    roles::routes(&mut routes);
    services::routes(&mut routes);
    events::routes(&mut routes);
    login::routes(&mut routes);
    health::routes(&mut routes);
    metrics::routes(&mut routes);
    routes.add(openapi::Verb::Get, "/api/openapi.json", "description", describe, |operation| {
        operation.summary("This document.").gives_content(
            200,
            "An OpenAPI document.",
            "application/json",
            json!({"type": "object"}),
        )
    });
    routes
}

async fn describe(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], shared.description.clone())
}
