//! An OpenAI-compatible endpoint over a running society: whoever can talk to a chat model can talk to it.
//!
//! *Body → [`question`] → [`exchange`] → a message to root → [`follow`] → [`answer`].* Two routes read bodies and write
//! answers, each in its own form ([`chat`], [`responses`]); [`serve`] does what both have in common. Clients send the whole
//! conversation each time; what is asked now is sent on, and the task is found by a fingerprint of what was said before
//! ([`conversation`]). `docs/openai.md` has the rule.
//!
//! It must not know SQL, models, prompts, or who may ask. Nothing is fetched from the network.

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

/// How many bodies are read and decoded at once: each may hold a file several times over.
const BODIES_AT_ONCE: usize = 4;

/// What every route has.
struct Shared {
    society: Arc<Society>,
    /// Cancelled when the daemon ends: nobody waits any longer.
    ending: CancellationToken,
    /// The bodies that may be read now.
    bodies: Semaphore,
}

/// The routes: `/v1/models`, `/v1/models/{id}`, `/v1/chat/completions` and `/v1/responses`. Whoever serves them decides who may ask, and
/// cancels `ending` when those who wait for an answer are to be told that there is none now.
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
