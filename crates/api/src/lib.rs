//! The HTTP API of a society.
//!
//! *Request → guard → bodies → route → [`Society`] → JSON.* The [`guard`] judges the head of a request: host, origin
//! and token. [`bodies`] bounds the memory that all bodies take together, including the bodies of requests to mounted
//! routes. A route is declared once, in the file of its resource, and [`openapi`] builds both the router and the
//! OpenAPI document from this declaration. The handler calls the society and turns the result into JSON. Every
//! failure becomes `application/problem+json` ([`problem`]). [`serve`] speaks HTTP on a socket, with limits that
//! protect it from slow clients and from too many clients. [`in_process`] offers the same routes to a client in the
//! process that runs the society. [`read_only`] offers the same routes to a client in a process that has opened the
//! society read-only; [`read_only::stand`] then replaces the guard, and refuses requests that write.
//!
//! This crate knows nothing about SQL, models or prompts, and does not know where the daemon listens or where its token
//! is stored.

mod agents;
mod approvals;
// Circle: `artifacts` declares the routes of `content`, and `content` calls helpers of `artifacts`.
mod artifacts;
mod assets;
mod bodies;
mod commands;
mod events;
mod extract;
mod gc;
mod guard;
mod health;
mod login;
mod login_form;
mod messages;
mod metrics;
mod now;
mod openapi;
mod problem;
mod read_only;
mod readiness;
mod roles;
mod search;
mod sent;
mod server;
mod services;
mod shared;
mod shutdown;
mod tasks;
mod upload;
mod why;
mod workspaces;

pub use guard::{Guard, Hosts, Token};
pub use server::serve;

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use polity_runtime::Society;
use serde_json::{Value, json};
use shared::Shared;
use std::sync::{Arc, LazyLock};
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

/// The signals of a shutdown. The API gives the signal `asked` to the process that serves it. The process gives the
/// other signals to the API.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Cancelled when a client asks the daemon to end. The process that serves the routes then begins to shut down.
    pub asked: CancellationToken,
    /// Cancelled when the daemon accepts no new work; `GET /readyz` then reports the daemon as unavailable.
    pub draining: CancellationToken,
    /// Cancelled when streams must end and connections must close.
    pub closing: CancellationToken,
}

/// Builds all routes behind the guard, including mounted routes. Mounted routers must use full paths and must not have
/// a fallback.
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
    bounded(all)
        .layer(middleware::from_fn_with_state(bodies::budget(), bodies::bound))
        .layer(middleware::from_fn_with_state(guard, guard::stand))
}

/// Builds all routes for a society that this process has opened read-only. No other process reaches them, so they
/// require no token. They refuse writes and event streams.
pub fn read_only(society: Arc<Society>) -> Router {
    bounded(routes(society, None, Ending::default())).layer(middleware::from_fn(read_only::stand))
}

/// Builds all routes for the process that runs the society. No other process reaches them, so they require no token.
pub fn in_process(society: Arc<Society>, ending: Ending) -> Router {
    bounded(routes(society, None, ending))
}

/// Builds the declared routes with their state.
fn routes(society: Arc<Society>, guard: Option<Arc<Guard>>, ending: Ending) -> Router {
    declared(openapi::Routes::to_serve()).router().with_state(Arc::new(Shared {
        society,
        guard,
        asked: ending.asked,
        draining: ending.draining,
        ending: ending.closing,
        uploads: Semaphore::new(upload::AT_ONCE),
        streams: Arc::new(Semaphore::new(events::MOST_STREAMS)),
        readiness: readiness::Readiness::default(),
        started: Instant::now(),
    }))
}

/// Adds answers for unknown paths, for unknown methods and for handlers that panic.
fn bounded(routes: Router) -> Router {
    routes
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(CatchPanicLayer::custom(problem::panicked))
}

/// Returns the OpenAPI 3.1 document of the API, as the daemon serves it.
pub fn description() -> Value {
    declared(openapi::Routes::to_describe()).document().unwrap_or_default()
}

fn declared(mut routes: openapi::Routes) -> openapi::Routes {
    now::routes(&mut routes);
    tasks::routes(&mut routes);
    workspaces::routes(&mut routes);
    approvals::routes(&mut routes);
    agents::routes(&mut routes);
    commands::routes(&mut routes);
    messages::routes(&mut routes);
    search::routes(&mut routes);
    why::routes(&mut routes);
    sent::routes(&mut routes);
    artifacts::routes(&mut routes);
    roles::routes(&mut routes);
    services::routes(&mut routes);
    events::routes(&mut routes);
    gc::routes(&mut routes);
    login::routes(&mut routes);
    health::routes(&mut routes);
    shutdown::routes(&mut routes);
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

async fn describe() -> impl IntoResponse {
    /// The document is always the same, so it is built for the first request only.
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(description().to_string()));
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.clone())
}
