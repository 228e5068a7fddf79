//! `GET /api/events`: the events, as a page or as a stream.

mod begin;
mod stream;

use crate::extract::Wanted;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use polity_society::id::{AgentId, TaskId};
use polity_view::{DEFAULT_PAGE, EventFilter, EventKind, EventPage, Glimpse};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

use stream::Live;
pub(crate) use stream::MOST_STREAMS;

const EVENT_STREAM: &str = "text/event-stream";

/// The query parameters that select events.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct EventsQuery {
    /// Only events after this number, 0 by default. Pass the number of the last event that the client knows.
    #[schemars(range(min = 0))]
    after: Option<i64>,
    /// Only the page of events that ends just before this number. A stream does not accept this parameter.
    #[schemars(range(min = 0))]
    before: Option<i64>,
    /// Largest number of events in a page. A stream has no limit.
    limit: Option<u32>,
    /// Only events of this task or about its agents.
    task: Option<TaskId>,
    /// Only events about this agent, and messages that the agent has sent.
    agent: Option<AgentId>,
    /// Only events of these kinds, separated by commas, such as `message_accepted,task_idle`.
    kind: Option<String>,
    /// `true` for a stream that also tells what the agents are doing at this moment, and that passes on the words of
    /// their models as they arrive. The frames for this have the event `glimpse`, no id, and a `Glimpse` as their data.
    /// They are not stored, and may be lost.
    #[serde(default)]
    live: bool,
}

pub(crate) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/events", "listEvents", events, |operation| {
        let number = json!({"type": "string", "pattern": "^[0-9]*$"});
        operation
            .summary("Events, oldest first: a page, or a stream for clients that accept text/event-stream.")
            .query::<EventsQuery>()
            .header("Last-Event-ID", "For a stream: the number of the last event received.", number)
            .gives::<EventPage>(200, "The events.")
            .gives_frames::<Glimpse>(200, EVENT_STREAM)
            .refuses(&[400])
    });
}

async fn events(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Wanted(wanted): Wanted<EventsQuery>,
) -> Result<Response, Problem> {
    if wanted.after.is_some_and(|after| after < 0) || wanted.before.is_some_and(|before| before < 0) {
        return Err(Problem::bad_request("`after` and `before` must be event numbers, or 0"));
    }
    let kinds = kinds(wanted.kind.as_deref().unwrap_or_default())?;
    let filter = EventFilter { task: wanted.task, agent: wanted.agent, kinds };
    let limit = wanted.limit.unwrap_or(DEFAULT_PAGE);
    let page = match (wanted.after, wanted.before) {
        (_, Some(_)) if wants_stream(&headers) => {
            return Err(Problem::bad_request("a stream cannot have `before`"));
        }
        (Some(_), Some(_)) => return Err(Problem::bad_request("give `after` or `before`, not both")),
        (after, None) if wants_stream(&headers) => {
            let after = stream::last_event_id(&headers)?.or(after).unwrap_or_default();
            let live = if wanted.live { Live::Wanted } else { Live::Unwanted };
            return stream::open(&shared, after, filter, live).await;
        }
        _ if wanted.live => return Err(Problem::bad_request("only a stream can be `live`")),
        (after, None) => shared.society.events_after(after.unwrap_or_default(), limit, &filter).await?,
        (None, Some(before)) => shared.society.events_before(before, limit, &filter).await?,
    };
    Ok(Json(page).into_response())
}

/// Parses the kinds of a query. Refuses a kind that does not exist: it would select nothing, and the client would wait
/// for ever.
fn kinds(wanted: &str) -> Result<Vec<String>, Problem> {
    let known = || EventKind::ALL.iter().map(|kind| kind.as_str());
    let wanted = wanted.split(',').map(str::trim).filter(|kind| !kind.is_empty());
    let parsed = wanted.map(|kind| {
        if known().any(|known| known == kind) {
            return Ok(kind.to_owned());
        }
        let known: Vec<&str> = known().collect();
        Err(Problem::bad_request(format!(
            "there is no kind of event `{kind}`; the kinds are {}",
            known.join(", ")
        )))
    });
    parsed.collect()
}

/// Whether the client accepts a stream of events.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case(EVENT_STREAM)))
}
