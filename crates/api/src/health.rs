//! Whether the daemon lives, and whether it can work.

use crate::openapi::{Access, Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::extract::State;
use serde_json::json;
use std::sync::Arc;

/// Declares the routes.
pub(crate) fn routes(routes: &mut Routes) {
    let text = || json!({"type": "string"});
    routes.add(
        Verb::Get,
        "/healthz",
        "health",
        async || "ok\n",
        |operation| {
            operation.summary("The process lives.").access(Access::Anybody).gives_content(
                200,
                "It does.",
                "text/plain",
                text(),
            )
        },
    );
    routes.add(Verb::Get, "/readyz", "readiness", ready, |operation| {
        operation
            .summary("The data directory can be used, and the daemon is not about to end.")
            .gives_content(200, "Both hold.", "text/plain", text())
    });
}

async fn ready(State(shared): State<Arc<Shared>>) -> Result<&'static str, Problem> {
    if shared.draining.is_cancelled() {
        return Err(Problem::unavailable("the daemon ends"));
    }
    let facts = shared.society.data_facts().await?;
    match facts.trouble {
        None => Ok("ready\n"),
        Some(trouble) => {
            tracing::warn!(trouble, "the data directory cannot be written to");
            Err(Problem::unavailable("the data directory cannot be written to just now; the log says why"))
        }
    }
}
