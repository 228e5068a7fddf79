//! An OpenAI-compatible endpoint for a running society: any client of a chat model can talk to it.
//!
//! The stages of a request: *body → [`question`] → [`exchange`] → a message to root → [`follow`] → [`answer`].* There
//! are two routes, [`chat`] and [`responses`]. Each parses bodies and writes answers in its own format. [`serve`]
//! contains what they share. Clients send the whole conversation each time. Only the current question is sent to the
//! agent. A fingerprint of the earlier messages identifies the task ([`conversation`]). `docs/openai.md` explains the
//! rules.
//!
//! This crate knows nothing about SQL, models, prompts or access control, and fetches nothing from the network.

mod problem;

mod part;

mod answer;
mod conversation;
mod question;

mod exchange;
mod follow;

mod chat;
mod models;
mod responses;
mod serve;

use axum::Router;
use axum::routing::{get, post};
use polity_runtime::Society;
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Maximum number of bodies that are read and decoded at the same time. It is small because decoding may keep several
/// copies of a file in memory.
const BODIES_AT_ONCE: usize = 4;

/// The state that all routes share.
struct Shared {
    society: Arc<Society>,
    /// The daemon cancels this token when it shuts down. This ends all requests that wait.
    ending: CancellationToken,
    /// A request needs a permit from this semaphore to read its body.
    bodies: Semaphore,
}

/// Builds the routes `/v1/models`, `/v1/models/{id}`, `/v1/chat/completions` and `/v1/responses`. The caller controls
/// access to them, and cancels `ending` to end the requests that wait for an answer.
pub fn router(society: Arc<Society>, ending: CancellationToken) -> Router {
    let shared = Arc::new(Shared { society, ending, bodies: Semaphore::new(BODIES_AT_ONCE) });
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(serve::chat))
        .route("/v1/responses", post(serve::responses))
        .route("/v1", axum::routing::any(problem::not_found))
        .route("/v1/{*path}", axum::routing::any(problem::not_found))
        .method_not_allowed_fallback(problem::wrong_method)
        .with_state(shared)
}
