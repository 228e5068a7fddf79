//! `/api/agents`: lists agents, shows their conversations, and stops, pauses or resumes agents.

pub(crate) mod steering;

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_runtime::Bytes as PreviewBytes;
use polity_society::id::{AgentId, TaskId};
use polity_view::{AgentDetail, AgentFilter, AgentPage, ContactView, ConversationView, RequestPreview};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// The query parameters that select a part of a conversation.
#[derive(Debug, Deserialize, JsonSchema)]
struct ConversationQuery {
    /// The task. By default, it is the task that the agent was hired for. For root, it is the last task of root.
    task: Option<TaskId>,
    /// Only entries before this entry. Pass the `next` of the previous part.
    #[schemars(range(min = 0))]
    before: Option<i64>,
    /// Largest number of entries to return.
    limit: Option<u32>,
}

/// The query parameters that select a request preview.
#[derive(Debug, Deserialize, JsonSchema)]
struct RequestQuery {
    /// The task. By default, it is the task that the agent was hired for. For root, it is the task that root worked
    /// for last.
    task: Option<TaskId>,
    /// Whether to include base64 data in full; by default, the preview shows only the length of the data.
    #[serde(default)]
    full: bool,
}

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/agents", "listAgents", list, |operation| {
        operation
            .summary("Agents, parents before children.")
            .query::<AgentFilter>()
            .gives::<AgentPage>(200, "A page of agents.")
            .refuses(&[400])
    });
    routes.add(Verb::Get, "/api/agents/{id}", "getAgent", get, |operation| {
        operation.summary("One agent.").gives::<AgentDetail>(200, "The agent.").refuses(&[404])
    });
    routes.add(Verb::Get, "/api/agents/{id}/contacts", "listContacts", contacts, |operation| {
        operation
            .summary("The contacts of an agent: whom it can write to.")
            .gives::<Vec<ContactView>>(
                200,
                "The contacts, oldest entry first; if there are too many, only the newest.",
            )
            .refuses(&[404])
    });
    routes.add(Verb::Get, "/api/agents/{id}/conversation", "getConversation", conversation, |operation| {
        operation
            .summary("The stored history of an agent in a task: what it heard, said and did.")
            .query::<ConversationQuery>()
            .gives::<ConversationView>(200, "A part of the history, oldest first.")
            .refuses(&[400, 404])
    });
    routes.add(Verb::Get, "/api/agents/{id}/request", "previewRequest", request, |operation| {
        operation
            .summary("A preview of the request that would go to the agent's model now. Nothing is sent.")
            .query::<RequestQuery>()
            .gives::<RequestPreview>(200, "The request.")
            .refuses(&[400, 404])
    });
    steering::routes(routes);
}

fn nobody() -> Problem {
    Problem::not_found("there is no such agent")
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<AgentFilter>,
) -> Result<Json<AgentPage>, Problem> {
    Ok(Json(shared.society.agents(&filter).await?))
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<AgentDetail>, Problem> {
    shared.society.agent(&AgentId::new(id)).await?.map(Json).ok_or_else(nobody)
}

async fn contacts(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
) -> Result<Json<Vec<ContactView>>, Problem> {
    shared.society.contacts(&AgentId::new(id)).await?.map(Json).ok_or_else(nobody)
}

async fn conversation(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(query): Wanted<ConversationQuery>,
) -> Result<Json<ConversationView>, Problem> {
    let agent = AgentId::new(id);
    let part = shared.society.conversation(&agent, query.task.as_ref(), query.before, query.limit).await?;
    part.map(Json).ok_or_else(|| Problem::not_found("there is no such agent, or it has no part in that task"))
}

async fn request(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(query): Wanted<RequestQuery>,
) -> Result<Json<RequestPreview>, Problem> {
    let bytes = if query.full { PreviewBytes::InFull } else { PreviewBytes::Counted };
    let preview = shared.society.preview(&AgentId::new(id), query.task.as_ref(), bytes).await?;
    preview
        .map(Json)
        .ok_or_else(|| Problem::not_found("there is no such agent, or it has no part in that task"))
}
