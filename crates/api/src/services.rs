//! `/api/services`, `/api/config`, `/api/usage`

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_runtime::view::{ConfigView, ServiceView, UsageFilter, UsageView};
use polity_society::id::ServiceId;
use std::sync::Arc;

/// Declares the routes.
pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/services", "listServices", list, |operation| {
        operation
            .summary("The services, as they are configured and as they are doing.")
            .gives::<Vec<ServiceView>>(200, "All of them, in the order of the file.")
    });
    routes.add(Verb::Get, "/api/services/{id}", "getService", get, |operation| {
        operation.summary("One service.").gives::<ServiceView>(200, "The service.").refuses(&[404])
    });
    routes.add(Verb::Get, "/api/config", "getConfig", config, |operation| {
        operation
            .summary("What is in force, and what is wrong with the files.")
            .gives::<ConfigView>(200, "The configuration, without secrets.")
    });
    routes.add(Verb::Post, "/api/config/reload", "reloadConfig", reload, |operation| {
        operation
            .summary("Reads the files again now, and puts in force what is valid.")
            .gives::<ConfigView>(200, "The configuration after that.")
    });
    routes.add(Verb::Get, "/api/usage", "getUsage", usage, |operation| {
        operation
            .summary("What was spent, in all and by whom.")
            .query::<UsageFilter>()
            .gives::<UsageView>(200, "The sums.")
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

async fn config(State(shared): State<Arc<Shared>>) -> Json<ConfigView> {
    Json(shared.society.config())
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
