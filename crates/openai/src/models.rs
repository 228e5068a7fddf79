//! `GET /v1/models` and `GET /v1/models/{id}`: the society's agents as models.
//!
//! The model `polity` is root. The model `polity-direct` is root's service without a society. In addition, each live
//! agent is a model. The list of models leaves out idle agents: a society can have many agents that have finished their
//! work.

use crate::Shared;
use crate::problem::Problem;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use polity_runtime::Society;
use polity_society::id::AgentId;
use polity_view::AgentView;
use serde_json::{Value, json};
use std::sync::Arc;

/// The model name by which clients address root.
const SOCIETY: &str = "polity";

/// The model name by which clients call root's service directly, without a society.
const DIRECT: &str = "polity-direct";

/// The part of a model's name before the id of its agent.
const PREFIX: &str = "polity/";

/// What a model name refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// An agent of the society.
    Agent(AgentId),
    /// The service of root, called directly and without a society.
    Direct,
}

impl Model {
    /// Finds the model with this name.
    pub(crate) async fn find(society: &Society, name: &str) -> Result<Self, Problem> {
        if name == DIRECT {
            return Ok(Self::Direct);
        }
        let id = agent_of(name);
        let found = society.listed_agent(&id).await.map_err(|error| Problem::of_store(&error))?;
        match found {
            Some(found) if is_alive(&found) => Ok(Self::Agent(id)),
            Some(_) | None => Err(unknown(name)),
        }
    }
}

pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Result<Json<Value>, Problem> {
    let agents = shared.society.agents_not_idle().await.map_err(|error| Problem::of_store(&error))?;
    let mut models = Vec::new();
    for agent in &agents {
        models.push(of_agent(agent));
        if agent.id.is_root() {
            models.push(direct(agent.created_at));
        }
    }
    Ok(Json(json!({"object": "list", "data": models})))
}

pub(crate) async fn one(
    State(shared): State<Arc<Shared>>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let id = match Model::find(&shared.society, &name).await? {
        Model::Direct => AgentId::root(),
        Model::Agent(id) => id,
    };
    let found = shared.society.listed_agent(&id).await.map_err(|error| Problem::of_store(&error))?;
    match found {
        Some(found) if name == DIRECT => Ok(Json(direct(found.created_at))),
        Some(found) => Ok(Json(of_agent(&found))),
        None => Err(unknown(&name)),
    }
}

/// Returns the id of the agent in a model name: `polity`, `polity/ID` or the id alone. Does not check that such an
/// agent exists.
fn agent_of(model: &str) -> AgentId {
    match model {
        SOCIETY => AgentId::root(),
        other => AgentId::new(other.strip_prefix(PREFIX).unwrap_or(other)),
    }
}

/// Describes an agent as a model.
fn of_agent(agent: &AgentView) -> Value {
    let id = if agent.id.is_root() { SOCIETY.to_owned() } else { format!("{PREFIX}{}", agent.id) };
    json!({"id": id, "object": "model", "created": agent.created_at / 1000, "owned_by": agent.role})
}

fn direct(created: i64) -> Value {
    json!({"id": DIRECT, "object": "model", "created": created / 1000, "owned_by": "polity"})
}

fn is_alive(agent: &AgentView) -> bool {
    agent.ended_at.is_none() && !agent.id.is_user()
}

fn unknown(model: &str) -> Problem {
    let message = format!(
        "there is no model `{model}`: `polity` is root, `polity-direct` its service without a society, and the other \
         models are the live agents"
    );
    Problem {
        param: Some("model".to_owned()),
        ..Problem::refused(StatusCode::NOT_FOUND, "model_not_found", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_agents() {
        let check = |model: &str, agent: &str| assert_eq!(agent_of(model).as_str(), agent);
        check("polity", "root");
        check("polity/root", "root");
        check("polity/agent-7k2f", "agent-7k2f");
        check("agent-7k2f", "agent-7k2f");
    }
}
