//! A stream of events (server-sent events). It reads pages whenever there is something new; so it takes up no room for
//! whoever reads slowly, and whoever comes back with the number of the last event misses none.

use crate::problem::Problem;
use crate::shared::Shared;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use polity_runtime::view::EventFilter;
use polity_runtime::{Entry, Society};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How many events are read at once.
const PAGE: u32 = 200;
/// How often something is sent where nothing happens, so that a connection that is gone is found out.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long a client waits before it comes back.
const COME_BACK: Duration = Duration::from_secs(1);

/// The number in `Last-Event-ID`.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(HeaderName::from_static("last-event-id")) else { return Ok(None) };
    // A browser sends it empty where no event had a number.
    let text = value.to_str().unwrap_or("?").trim();
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|number: &i64| *number >= 0);
    number.map(Some).ok_or_else(|| Problem::bad_request("`Last-Event-ID` is the number of an event"))
}

/// Where a stream stands.
struct Position {
    society: Arc<Society>,
    newest: watch::Receiver<i64>,
    ending: CancellationToken,
    after: i64,
    filter: EventFilter,
}

/// Answers with all events after a number, and those to come, until the daemon ends.
pub(super) fn open(shared: &Shared, after: i64, filter: EventFilter) -> Response {
    let position = Position {
        society: Arc::clone(&shared.society),
        newest: shared.society.newest_event(),
        ending: shared.ending.clone(),
        after,
        filter,
    };
    let pages =
        stream::unfold(position, async |mut position| position.page().await.map(|page| (page, position)));
    let events = pages.flat_map(|page| stream::iter(page.into_iter().map(written)));
    let first = stream::once(async { Ok(Event::default().retry(COME_BACK)) });
    respond(first.chain(events))
}

fn respond(events: impl Stream<Item = Result<Event, axum::Error>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response();
    // Some proxies hold back what they can.
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

impl Position {
    /// The next events, once there are any; `None` where the stream ends.
    async fn page(&mut self) -> Option<Vec<Entry>> {
        loop {
            // Before the events are read: what is written meanwhile has us look again.
            self.newest.mark_unchanged();
            let read = tokio::select! {
                () = self.ending.cancelled() => return None,
                read = self.society.events_after(self.after, PAGE, &self.filter) => read,
            };
            match read {
                Ok(page) => {
                    // Also where nothing that is meant has happened: it is not looked through again.
                    self.after = page.next.max(self.after);
                    if !page.events.is_empty() {
                        return Some(page.events);
                    }
                }
                Err(error) => {
                    // The client comes back with the number of the last event that it got.
                    tracing::warn!(error = %polity_runtime::in_full(&error), "a stream of events ends");
                    return None;
                }
            }
            tokio::select! {
                () = self.ending.cancelled() => return None,
                changed = self.newest.changed() => changed.ok()?,
            }
        }
    }
}

/// An event as it is sent.
fn written(entry: Entry) -> Result<Event, axum::Error> {
    let json = serde_json::to_value(&entry).map_err(axum::Error::new)?;
    let kind = json.get("event").and_then(serde_json::Value::as_str).unwrap_or("message").to_owned();
    Event::default().id(entry.seq.to_string()).event(kind).json_data(json)
}
