//! `/api/commands`: the commands of agents that are running.

use crate::extract::Wanted;
use crate::openapi::{Routes, Verb};
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_view::{CommandFilter, CommandView};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/commands", "listCommands", list, |operation| {
        operation
            .summary("The running commands of agents, with the end of their output and what they use.")
            .query::<CommandFilter>()
            .gives::<Vec<CommandView>>(200, "The commands, oldest first.")
            .refuses(&[400])
    });
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<CommandFilter>,
) -> Json<Vec<CommandView>> {
    Json(shared.society.commands(&filter))
}
