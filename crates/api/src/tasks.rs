//! `/api/tasks`: lists, forks, stops and retries tasks.

use crate::agents::steering::steered;
use crate::extract::{Named, Wanted, json};
use crate::messages::post::key;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use polity_runtime::{Fork, MAX_KEY_BYTES};
use polity_society::id::TaskId;
use polity_view::{Forked, NewFork, Steered, TaskFilter, TaskPage, TaskView};
use serde_json::json as value;
use std::sync::Arc;

/// Maximum size of the body of a fork request, in bytes. It fits the longest allowed prompt and all other fields.
const MOST_BYTES: usize = 4 << 20;

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
    routes.add(Verb::Post, "/api/tasks/{id}/try", "tryTask", try_again, |operation| {
        operation
            .summary("Lets root try again, if no model could be used in a task.")
            .gives::<Steered>(200, "Root, if it tries again.")
            .refuses(&[404])
    });
    routes.add(Verb::Post, "/api/tasks/{id}/fork", "forkTask", fork, |operation| {
        let key = value!({"type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES});
        operation
            .summary(
                "Begins a task that has everything of another task up to a turn, and begins this turn again.",
            )
            .header("Idempotency-Key", "Under the same key, the same fork is made only once.", key)
            .takes::<NewFork>()
            .gives::<Forked>(201, "The new task was stored and will not be lost.")
            .gives::<Forked>(200, "The fork was made before, under the same key.")
            .refuses(&[400, 404, 408, 409, 413, 415, 422])
    });
}

async fn fork(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    headers: HeaderMap,
    request: Request,
) -> Result<(StatusCode, Json<Forked>), Problem> {
    let key = key(&headers)?;
    let NewFork { turn, service, text } = json(request, MOST_BYTES).await?;
    let forked = shared.society.fork(Fork { task: TaskId::new(id), turn, service, text, key }).await?;
    let status = if forked.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(forked)))
}

async fn stop(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<Steered>, Problem> {
    steered(shared.society.stop_task(&TaskId::new(id)).await)
}

async fn try_again(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<Steered>, Problem> {
    steered(shared.society.try_task(&TaskId::new(id)).await)
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
