//! A stream of events (server-sent events). It reads pages whenever there is something new; so it takes up no room for
//! whoever reads slowly, and whoever comes back with the number of the last event misses none.

use super::begin::{Begin, begin};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use polity_runtime::view::EventFilter;
use polity_runtime::{Entry, Society};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

/// How many streams are open at a time: each reads pages of its own whenever something happens.
pub(crate) const MOST_STREAMS: usize = 64;
/// After how many seconds one may come again that found no place.
const COME_AGAIN: u16 = 5;
/// How many events are read at once.
const PAGE: u32 = 200;
/// How often something is sent where nothing happens, so that a connection that is gone is found out.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long is waited for more, once something happens: what happens together is read together.
const TOGETHER: Duration = Duration::from_millis(30);
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
    _place: OwnedSemaphorePermit,
}

/// Answers with all events after a number, and those to come, until the daemon ends. Where what is known does not go on
/// to there, the client is told before anything else.
pub(super) async fn open(shared: &Shared, after: i64, filter: EventFilter) -> Result<Response, Problem> {
    let place = Arc::clone(&shared.streams).try_acquire_owned().map_err(|_| {
        let detail = format!("{MOST_STREAMS} streams of events are open already; close one");
        Problem::busy(detail, COME_AGAIN)
    })?;
    // What the newest one of all is: a client may know an event that nobody was woken for yet.
    let last = shared.society.events_before(i64::MAX, 1, &EventFilter::default()).await?;
    let newest = last.events.last().map_or(0, |entry| entry.seq).max(*shared.society.newest_event().borrow());
    let (after, told) = match begin(after, last.oldest, newest) {
        Begin::There(after) => (after, None),
        Begin::Anew(after) => (after, Some(reset(after))),
    };
    let position = Position {
        society: Arc::clone(&shared.society),
        newest: shared.society.newest_event(),
        ending: shared.ending.clone(),
        after,
        filter,
        _place: place,
    };
    let pages =
        stream::unfold(position, async |mut position| position.page().await.map(|page| (page, position)));
    let events = pages.flat_map(|page| stream::iter(page.into_iter().map(written)));
    let first = stream::once(async { Ok(Event::default().retry(COME_BACK)) });
    Ok(respond(first.chain(stream::iter(told)).chain(events)))
}

/// Says that all has to be read anew: the events that follow are those after this one. It has no number, so that who
/// loses the stream before any of them is told again.
fn reset(after: i64) -> Result<Event, axum::Error> {
    Event::default().event("reset").json_data(json!({"after": after}))
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
                woken = woken(&mut self.newest) => woken?,
            }
        }
    }
}

/// Waits until something has happened, and what happens with it.
async fn woken(newest: &mut watch::Receiver<i64>) -> Option<()> {
    newest.changed().await.ok()?;
    tokio::time::sleep(TOGETHER).await;
    Some(())
}

/// An event as it is sent.
fn written(entry: Entry) -> Result<Event, axum::Error> {
    let json = serde_json::to_value(&entry).map_err(axum::Error::new)?;
    let kind = json.get("event").and_then(serde_json::Value::as_str).unwrap_or("message").to_owned();
    Event::default().id(entry.seq.to_string()).event(kind).json_data(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn what_happens_together_is_one_wake_up() {
        let (tell, mut newest) = watch::channel(0);
        let telling = tokio::spawn(async move {
            for number in 1..=100 {
                tell.send_replace(number);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        let (begun, mut wake_ups, mut last) = (Instant::now(), 0, 0);
        while woken(&mut newest).await.is_some() {
            last = *newest.borrow_and_update();
            wake_ups += 1;
        }
        telling.await.unwrap();
        assert_eq!(last, 100);
        assert!((2..=5).contains(&wake_ups), "{wake_ups}");
        assert!(begun.elapsed() < Duration::from_millis(100) + TOGETHER * 2, "{:?}", begun.elapsed());
    }
}
