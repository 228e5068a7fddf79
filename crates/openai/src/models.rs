//! `GET /v1/models` and `GET /v1/models/{id}`: root, and each agent that is alive.

use crate::Shared;
use crate::chat::unknown_model;
use crate::problem::Problem;
use crate::reply;
use axum::Json;
use axum::extract::{Path, State};
use polity_runtime::view::{AgentFilter, AgentView, MAX_PAGE};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, Problem> {
    let mut models = Vec::new();
    let mut filter = AgentFilter { limit: Some(MAX_PAGE), ..AgentFilter::default() };
    loop {
        let page = shared.society.agents(&filter).await.map_err(|error| Problem::of_store(&error))?;
        models.extend(page.agents.iter().filter(|agent| is_model(agent)).map(reply::model));
        if page.next.is_none() {
            return Ok(Json(json!({"object": "list", "data": models})));
        }
        filter.after = page.next;
    }
}

pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let found =
        shared.society.agent(&reply::agent_of(&name)).await.map_err(|error| Problem::of_store(&error))?;
    match found {
        Some(found) if is_model(&found.agent) => Ok(Json(reply::model(&found.agent))),
        Some(_) | None => Err(unknown_model(&name)),
    }
}

fn is_model(agent: &AgentView) -> bool {
    agent.ended_at.is_none() && !agent.id.is_user()
}
