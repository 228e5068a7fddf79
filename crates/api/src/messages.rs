//! `/api/messages`: reads messages, and accepts messages from the person.

pub(crate) mod post;

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use polity_society::id::MessageId;
use polity_view::{MessageFilter, MessagePage, MessageView};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/messages", "listMessages", list, |operation| {
        operation
            .summary("Messages, oldest first unless `order` specifies otherwise.")
            .query::<MessageFilter>()
            .gives::<MessagePage>(200, "A page of messages.")
            .refuses(&[400])
    });
    post::routes(routes);
    routes.add(Verb::Get, "/api/messages/{id}", "getMessage", get, |operation| {
        operation.summary("One message.").gives::<MessageView>(200, "The message.").refuses(&[404])
    });
    routes.add(Verb::Post, "/api/messages/{id}/shown", "markShown", mark_shown, |operation| {
        operation
            .summary("Records that the person has seen a message.")
            .gives_nothing(204, "It is recorded.")
            .refuses(&[404])
    });
}

fn nothing() -> Problem {
    Problem::not_found("there is no such message")
}

async fn list(
    State(shared): State<Arc<Shared>>,
    Wanted(filter): Wanted<MessageFilter>,
) -> Result<Json<MessagePage>, Problem> {
    for id in [&filter.after, &filter.before].into_iter().flatten() {
        if id.sequence().is_none() {
            return Err(Problem::bad_request("`after` and `before` must be message ids, such as m000000001"));
        }
    }
    Ok(Json(shared.society.messages(&filter).await?))
}

async fn get(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<Json<MessageView>, Problem> {
    shared.society.message(&MessageId::new(id)).await?.map(Json).ok_or_else(nothing)
}

async fn mark_shown(State(shared): State<Arc<Shared>>, Named(id): Named) -> Result<StatusCode, Problem> {
    let id = MessageId::new(id);
    let message = shared.society.message(&id).await?.ok_or_else(nothing)?;
    if !message.to.is_user() {
        return Err(Problem::not_found("that message is not for the person"));
    }
    shared.society.mark_shown(id).await?;
    Ok(StatusCode::NO_CONTENT)
}
