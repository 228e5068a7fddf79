//! `/api/why`: explains an event, an artifact, an agent, a message, a question about a call or a task. For example, it
//! tells why a task has no answer.

use crate::extract::{Named, Wanted};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use polity_runtime::Explained;
use polity_view::{Why, WhyFilter};
use std::sync::Arc;

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/why/{id}", "explain", explain, |operation| {
        operation
            .summary(
                "Why an event happened, an artifact was described, an agent halts or waits, a request has no \
                 answer, polity asks about a call, or a task is not answered.",
            )
            .query::<WhyFilter>()
            .gives::<Why>(200, "The reasons, and what can be done.")
            .refuses(&[400, 404])
    });
}

async fn explain(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    Wanted(filter): Wanted<WhyFilter>,
) -> Result<Json<Why>, Problem> {
    match shared.society.why(&id, &filter).await? {
        Explained::Why(why) => Ok(Json(why)),
        Explained::Plain => Err(Problem::nothing_to_explain(&id)),
        Explained::Unknown => Err(Problem::not_found(format!(
            "there is no event, task, agent, message, question or artifact `{id}`; these commands list the ids: \
             polity tasks, polity agents, polity messages, polity artifacts, polity approvals --all, polity events"
        ))),
    }
}
