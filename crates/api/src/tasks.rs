//! `/api/tasks`: lists and stops tasks.

use crate::agents::steering::steered;
use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_society::id::TaskId;
use polity_view::{Steered, TaskFilter, TaskPage, TaskView};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/tasks", "listTasks", list, |operation| {
        operation
            .summary("Tasks, newest first.")
            .query::<TaskFilter>()
            .gives::<TaskPage>(200, "A page of tasks.")
            .refuses(&[400])
    });
    routes.add(Verb::Get, "/api/tasks/{id}", "getTask", get, |operation| {
        operation.summary("One task.").gives::<TaskView>(200, "The task.").refuses(&[404])
    });
    routes.add(Verb::Post, "/api/tasks/{id}/stop", "stopTask", stop, |operation| {
        operation
            .summary("Stops a task. Its agents continue their work in other tasks.")
            .gives::<Steered>(200, "The agents that had work in the task.")
            .refuses(&[404])
    });
}

async fn stop(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<Steered>, Problem> {
    steered(shared.society.stop_task(&TaskId::new(id)).await)
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<TaskFilter>,
) -> Result<Json<TaskPage>, Problem> {
    Ok(Json(shared.society.tasks(&filter).await?))
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<TaskView>, Problem> {
    let task = shared.society.task(&TaskId::new(id)).await?;
    task.map(Json).ok_or_else(|| Problem::not_found("there is no such task"))
}
