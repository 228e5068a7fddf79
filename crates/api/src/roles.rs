//! `/api/roles`: shows and changes roles.

use crate::extract::{Named, json};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::{Request, State};
use polity_society::id::RoleId;
use polity_view::{RolePatch, RoleView};
use std::sync::Arc;

/// Largest body that changes a role, in bytes.
const LARGEST_PATCH: usize = 1024 * 1024;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/roles/{id}", "getRole", get, |operation| {
        operation.summary("One role.").gives::<RoleView>(200, "The role.").refuses(&[404])
    });
    routes.add(Verb::Patch, "/api/roles/{id}", "patchRole", patch, |operation| {
        operation
            .summary("Changes a role. The change applies from the next model call of its agents on.")
            .takes::<RolePatch>()
            .gives::<RoleView>(200, "The changed role.")
            .refuses(&[400, 404, 408, 413, 415, 422])
    });
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<RoleView>, Problem> {
    let role = shared.society.role(&RoleId::new(id)).await?;
    role.map(Json).ok_or_else(|| Problem::not_found("there is no such role"))
}

async fn patch(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    request: Request,
) -> Result<Json<RoleView>, Problem> {
    let patch: RolePatch = json(request, LARGEST_PATCH).await?;
    Ok(Json(shared.society.patch_role(&RoleId::new(id), patch).await?))
}
