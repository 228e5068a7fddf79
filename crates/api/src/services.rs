//! `/api/services`, `/api/servers`, `/api/config` and `/api/usage`: model services, MCP servers, configuration and
//! token usage.

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_society::id::ServiceId;
use polity_view::{ConfigView, ServerView, ServiceView, UsageFilter, UsageView};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/services", "listServices", list, |operation| {
        operation
            .summary("The services, with their configuration and current state.")
            .gives::<Vec<ServiceView>>(200, "All services, in the order of the file.")
    });
    routes.add(Verb::Get, "/api/services/{id}", "getService", get, |operation| {
        operation.summary("One service.").gives::<ServiceView>(200, "The service.").refuses(&[404])
    });
    routes.add(Verb::Post, "/api/services/{id}/try", "tryService", try_again, |operation| {
        operation
            .summary("Ends all pauses of a service, also those that it asked for, so that the next call is sent at once.")
            .gives::<ServiceView>(200, "The service.")
            .refuses(&[404])
    });
    routes.add(Verb::Get, "/api/servers", "listServers", servers, |operation| {
        operation
            .summary("The MCP servers, and how they are doing.")
            .gives::<Vec<ServerView>>(200, "All servers of the configuration, by name.")
    });
    routes.add(Verb::Get, "/api/config", "getConfig", config, |operation| {
        operation
            .summary("The configuration in force, and the problems in its files.")
            .gives::<ConfigView>(200, "The configuration, without secrets.")
    });
    routes.add(Verb::Get, "/api/config/in-force", "getConfigInForce", in_force, |operation| {
        operation
            .summary("All that the configuration in force declares, without secrets, as `polity config show` prints it.")
            .gives_content(
                200,
                "The configuration with its revision and the problems of its files.",
                "application/json",
                json!({"type": "object"}),
            )
    });
    routes.add(Verb::Post, "/api/config/reload", "reloadConfig", reload, |operation| {
        operation
            .summary("Reloads the configuration files now, and puts their valid parts in force.")
            .gives::<ConfigView>(200, "The configuration now in force.")
    });
    routes.add(Verb::Get, "/api/usage", "getUsage", usage, |operation| {
        operation
            .summary("Calls, tokens and cost, in total and by task, agent and service.")
            .query::<UsageFilter>()
            .gives::<UsageView>(200, "The usage.")
            .refuses(&[400])
    });
}

async fn list(State(shared): State<Arc<Shared>>) -> Result<Json<Vec<ServiceView>>, Problem> {
    Ok(Json(shared.society.services().await?))
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<ServiceView>, Problem> {
    let service = shared.society.service(&ServiceId::new(id)).await?;
    service.map(Json).ok_or_else(|| Problem::not_found("there is no such service"))
}

async fn try_again(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
) -> Result<Json<ServiceView>, Problem> {
    shared.society.try_again(&ServiceId::new(id.clone()));
    get(State(shared), Named(id)).await
}

async fn servers(State(shared): State<Arc<Shared>>) -> Json<Vec<ServerView>> {
    Json(shared.society.servers())
}

async fn config(State(shared): State<Arc<Shared>>) -> Json<ConfigView> {
    Json(shared.society.config())
}

async fn in_force(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.society.config_in_force())
}

async fn reload(State(shared): State<Arc<Shared>>) -> Json<ConfigView> {
    Json(shared.society.reload().await)
}

async fn usage(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<UsageFilter>,
) -> Result<Json<UsageView>, Problem> {
    Ok(Json(shared.society.usage(&filter).await?))
}
