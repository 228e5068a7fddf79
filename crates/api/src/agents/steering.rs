//! Stopping, pausing and resuming agents.

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polity_runtime::view::Steered;
use polity_runtime::{SteerError, Target};
use polity_society::id::AgentId;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// Whom a step concerns.
#[derive(Debug, Deserialize, JsonSchema)]
struct SteerQuery {
    /// The agent alone, or all below it, too.
    #[serde(default)]
    scope: Scope,
}

/// How far a step reaches.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    /// The agent alone.
    Agent,
    /// The agent and all below it.
    #[default]
    Subtree,
}

/// Declares the routes.
pub(super) fn routes(routes: &mut Routes) {
    routes.add(Verb::Post, "/api/agents/{id}/stop", "stopAgent", stop, |operation| {
        operation
            .summary("Ends what an agent is doing, and what waits for it. It can be written to again.")
            .query::<SteerQuery>()
            .gives::<Steered>(200, "Those that had work.")
            .refuses(&[400, 404, 409, 422])
    });
    routes.add(Verb::Post, "/api/agents/{id}/pause", "pauseAgent", pause, |operation| {
        operation
            .summary("Has an agent do nothing until it is resumed.")
            .query::<SteerQuery>()
            .gives::<Steered>(200, "Those that were not paused before.")
            .refuses(&[400, 404, 409, 422])
    });
    routes.add(Verb::Post, "/api/agents/{id}/resume", "resumeAgent", resume, |operation| {
        operation
            .summary("Lets an agent that was paused or parked go on.")
            .query::<SteerQuery>()
            .gives::<Steered>(200, "Those that were.")
            .refuses(&[400, 404, 409, 422])
    });
}

fn target(id: String, query: &SteerQuery) -> Target {
    match query.scope {
        Scope::Agent => Target::Agent(AgentId::new(id)),
        Scope::Subtree => Target::Subtree(AgentId::new(id)),
    }
}

pub(crate) fn steered(agents: Result<Vec<AgentId>, SteerError>) -> Result<Json<Steered>, Problem> {
    match agents {
        Ok(agents) => Ok(Json(Steered { agents })),
        Err(SteerError::Store(error)) => Err(Problem::internal(&error)),
        Err(error @ (SteerError::Unknown(_) | SteerError::NoTask(_))) => {
            Err(Problem::not_found(error.to_string()))
        }
        Err(error @ SteerError::Ended(_)) => {
            Err(Problem::refused(StatusCode::CONFLICT, "agent_terminated", error.to_string(), None))
        }
        Err(error @ SteerError::User) => {
            Err(Problem::unprocessable("invalid_arguments", error.to_string(), None))
        }
    }
}

async fn stop(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(query): Wanted<SteerQuery>,
) -> Result<Json<Steered>, Problem> {
    steered(shared.society.stop_work(target(id, &query)).await)
}

async fn pause(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(query): Wanted<SteerQuery>,
) -> Result<Json<Steered>, Problem> {
    steered(shared.society.pause(target(id, &query)).await)
}

async fn resume(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(query): Wanted<SteerQuery>,
) -> Result<Json<Steered>, Problem> {
    steered(shared.society.resume(target(id, &query)).await)
}
