//! `/healthz` and `/readyz`: whether the daemon runs, and whether it accepts work and can write to its data
//! directory.

use crate::openapi::{Access, Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::extract::State;
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn routes(routes: &mut Routes) {
    let text = || json!({"type": "string"});
    routes.add(
        Verb::Get,
        "/healthz",
        "health",
        async || "ok\n",
        |operation| {
            operation.summary("Whether the process is alive.").access(Access::Anybody).gives_content(
                200,
                "It is alive.",
                "text/plain",
                text(),
            )
        },
    );
    routes.add(Verb::Get, "/readyz", "readiness", ready, |operation| {
        operation
            .summary("Whether the data directory is usable and the daemon is not shutting down.")
            .gives_content(200, "The daemon can work.", "text/plain", text())
    });
}

async fn ready(State(shared): State<Arc<Shared>>) -> Result<&'static str, Problem> {
    if shared.draining.is_cancelled() {
        return Err(Problem::ending());
    }
    let look = async || {
        let trouble = shared.society.trouble().await;
        if let Some(trouble) = &trouble {
            tracing::warn!(trouble, "the data directory cannot be written to");
        }
        trouble
    };
    match shared.readiness.trouble(Instant::now(), look).await {
        None => Ok("ready\n"),
        Some(_) => {
            Err(Problem::unavailable("the data directory cannot be written to just now; the log says why"))
        }
    }
}
