//! `/api/approvals` lists and answers the questions whether an agent may make a call. `/api/permissions` lists and
//! removes what the person has allowed for more than one call.

use crate::extract::{Named, Wanted, json};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use polity_runtime::{AnswerError, PermissionError};
use polity_society::id::{ApprovalId, PermissionId};
use polity_view::{ApprovalAnswer, ApprovalFilter, ApprovalPage, ApprovalView, PermissionView};
use std::sync::Arc;

/// Largest body that answers a question, in bytes.
const LARGEST_ANSWER: usize = 64 * 1024;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/approvals", "listApprovals", list, |operation| {
        operation
            .summary("Questions whether an agent may make a call, newest first.")
            .query::<ApprovalFilter>()
            .gives::<ApprovalPage>(200, "A page of questions.")
            .refuses(&[400])
    });
    routes.add(Verb::Get, "/api/approvals/{id}", "getApproval", get, |operation| {
        operation.summary("One question.").gives::<ApprovalView>(200, "The question.").refuses(&[404])
    });
    routes.add(Verb::Post, "/api/approvals/{id}", "answerApproval", answer, |operation| {
        operation
            .summary("Answers a question. The agent that asked continues its work.")
            .takes::<ApprovalAnswer>()
            .gives::<ApprovalView>(200, "The question with its answer.")
            .refuses(&[400, 404, 408, 409, 413, 415, 422])
    });
    routes.add(Verb::Get, "/api/permissions", "listPermissions", permissions, |operation| {
        operation
            .summary("What you have allowed for more than one call, oldest first.")
            .gives::<Vec<PermissionView>>(200, "The permissions.")
    });
    routes.add(Verb::Delete, "/api/permissions/{id}", "removePermission", remove, |operation| {
        operation
            .summary("Removes a permission. You are asked about such calls again.")
            .gives_nothing(204, "The permission is removed.")
            .refuses(&[404])
    });
}

fn nothing() -> Problem {
    Problem::not_found("there is no such question")
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<ApprovalFilter>,
) -> Result<Json<ApprovalPage>, Problem> {
    Ok(Json(shared.society.approvals(&filter).await?))
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<ApprovalView>, Problem> {
    shared.society.approval(&ApprovalId::new(id)).await?.map(Json).ok_or_else(nothing)
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    request: Request,
) -> Result<Json<ApprovalView>, Problem> {
    let answer: ApprovalAnswer = json(request, LARGEST_ANSWER).await?;
    match shared.society.answer_approval(ApprovalId::new(id), answer).await {
        Ok(approval) => Ok(Json(approval)),
        Err(AnswerError::Store(error)) => Err(Problem::internal(&error)),
        Err(error @ AnswerError::Unknown(_)) => Err(Problem::not_found(error.to_string())),
        Err(error @ AnswerError::Ended { .. }) => {
            Err(Problem::refused(StatusCode::CONFLICT, "approval_ended", error.to_string(), None))
        }
    }
}

async fn permissions(State(shared): State<Arc<Shared>>) -> Result<Json<Vec<PermissionView>>, Problem> {
    Ok(Json(shared.society.permissions().await?))
}

async fn remove(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<StatusCode, Problem> {
    match shared.society.remove_permission(PermissionId::new(id)).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(PermissionError::Store(error)) => Err(Problem::internal(&error)),
        Err(error @ PermissionError::Unknown(_)) => Err(Problem::not_found(error.to_string())),
    }
}
