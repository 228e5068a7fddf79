//! Stopping, pausing and resuming agents.

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polity_runtime::{SteerError, Target};
use polity_society::id::AgentId;
use polity_view::Steered;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// The query parameter that selects the agents to steer.
#[derive(Debug, Deserialize, JsonSchema)]
struct SteerQuery {
    /// Only the agent, or the agent and all its descendants.
    #[serde(default)]
    scope: Scope,
}

/// The agents to steer.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    /// Only the agent.
    Agent,
    /// The agent and all its descendants.
    #[default]
    Subtree,
}

pub(super) fn routes(routes: &mut Routes) {
    routes.add(Verb::Post, "/api/agents/{id}/stop", "stopAgent", stop, |operation| {
        operation
            .summary("Stops an agent's work, including its queued messages. It is parked no longer, and can get new ones.")
            .query::<SteerQuery>()
            .gives::<Steered>(200, "The agents that had something to stop.")
            .refuses(&[400, 404, 409, 422])
    });
    routes.add(Verb::Post, "/api/agents/{id}/pause", "pauseAgent", pause, |operation| {
        operation
            .summary("Pauses an agent: it does nothing until it is resumed.")
            .query::<SteerQuery>()
            .gives::<Steered>(200, "The agents that were not paused before.")
            .refuses(&[400, 404, 409, 422])
    });
    routes.add(Verb::Post, "/api/agents/{id}/resume", "resumeAgent", resume, |operation| {
        operation
            .summary("Resumes an agent, whether paused or parked.")
            .query::<SteerQuery>()
            .gives::<Steered>(200, "The agents that were paused or parked.")
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
