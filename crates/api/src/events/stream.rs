//! A stream of events, as server-sent events. The stream reads pages from the database whenever there are new events,
//! so it buffers nothing for a slow client. A client that reconnects with the number of its last event misses no
//! event.

use super::begin::{Begin, begin};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use polity_runtime::{Glimpses, Society};
use polity_view::Entry;
use polity_view::{EventFilter, Glimpse};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

/// Maximum number of open streams. The number is limited because each stream reads its own pages for every new event.
pub(crate) const MOST_STREAMS: usize = 64;
/// The value of `Retry-After` for a client that got no stream, in seconds.
const COME_AGAIN: u16 = 5;
/// Number of events that one read of the database returns.
const PAGE: u32 = 200;
/// Interval at which the stream sends keep-alive comments. A client that gets no comment knows that its connection is
/// broken.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// After a new event, the stream waits this long, so that one read also finds the events that follow immediately.
const TOGETHER: Duration = Duration::from_millis(30);
/// How long the client should wait before it reconnects.
const COME_BACK: Duration = Duration::from_secs(1);

/// Returns the number in `Last-Event-ID`.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<i64>, Problem> {
    let Some(value) = headers.get(HeaderName::from_static("last-event-id")) else { return Ok(None) };
    // If the stream has not sent an event with a number yet, the browser reconnects with an empty value.
    let text = value.to_str().unwrap_or("?").trim();
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse().ok().filter(|number: &i64| *number >= 0);
    number.map(Some).ok_or_else(|| Problem::bad_request("`Last-Event-ID` must be the number of an event"))
}

/// Whether a stream also tells what the agents are doing at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Live {
    Wanted,
    Unwanted,
}

/// What a stream sends next.
enum Batch {
    Entries(Vec<Entry>),
    Glimpses(Vec<Glimpse>),
}

/// Whether there may be events that the stream has not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unread {
    Perhaps,
    Nothing,
}

/// The state of a stream.
struct Position {
    society: Arc<Society>,
    newest: watch::Receiver<i64>,
    ending: CancellationToken,
    after: i64,
    filter: EventFilter,
    unread: Unread,
    /// The source of glimpses, which tell what the agents are doing at this moment; `None` if the client does not want
    /// them.
    glimpses: Option<Glimpses>,
    _place: OwnedSemaphorePermit,
}

/// Opens a stream of all events after the number `after`, including future events, until the daemon shuts down. If the
/// stream cannot begin directly after this number, it begins with a `reset`.
pub(super) async fn open(
    shared: &Shared,
    after: i64,
    filter: EventFilter,
    live: Live,
) -> Result<Response, Problem> {
    let place = Arc::clone(&shared.streams).try_acquire_owned().map_err(|_| {
        let detail = format!("{MOST_STREAMS} event streams are already open; close one");
        Problem::busy(detail, COME_AGAIN)
    })?;
    // Do not rely on the watch channel alone: a client may know an event that the channel has not announced yet. So
    // also ask the database for the newest event.
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
        glimpses: match live {
            Live::Wanted => Some(shared.society.glimpses(&filter)),
            Live::Unwanted => None,
        },
        filter,
        unread: Unread::Perhaps,
        _place: place,
    };
    let batches =
        stream::unfold(position, async |mut position| position.next().await.map(|batch| (batch, position)));
    let events = batches.flat_map(|batch| {
        stream::iter(match batch {
            Batch::Entries(entries) => entries.into_iter().map(written).collect::<Vec<_>>(),
            Batch::Glimpses(glimpses) => glimpses.into_iter().map(glimpsed).collect(),
        })
    });
    let first = stream::once(async { Ok(Event::default().retry(COME_BACK)) });
    Ok(respond(first.chain(stream::iter(told)).chain(events)))
}

/// Builds the frame that tells the client to reload everything; the stream continues after the event `after`. The frame
/// has no id, so the client keeps the id of its last event. If the client loses the stream before the next event, it
/// asks again with this id, and gets the reset again.
fn reset(after: i64) -> Result<Event, axum::Error> {
    Event::default().event("reset").json_data(json!({"after": after}))
}

fn respond(events: impl Stream<Item = Result<Event, axum::Error>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE)).into_response();
    // Without this header, some proxies would buffer the stream.
    response
        .headers_mut()
        .insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

impl Position {
    /// Waits for the next events or glimpses; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Batch> {
        loop {
            if self.unread == Unread::Perhaps
                && let Some(entries) = self.read().await?
            {
                return Some(Batch::Entries(entries));
            }
            let glimpses = async {
                match &mut self.glimpses {
                    Some(glimpses) => glimpses.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.ending.cancelled() => return None,
                woken = woken(&mut self.newest, &mut self.unread) => woken?,
                glimpses = glimpses => return Some(Batch::Glimpses(glimpses)),
            }
        }
    }

    /// Reads the next events. Returns `Some(None)` if there are none, and `None` at the end of the stream.
    async fn read(&mut self) -> Option<Option<Vec<Entry>>> {
        // Before the read, mark the newest event as seen. Then an event that is written during the read causes
        // another read.
        self.newest.mark_unchanged();
        let read = tokio::select! {
            () = self.ending.cancelled() => return None,
            read = self.society.events_after(self.after, PAGE, &self.filter) => read,
        };
        match read {
            Ok(page) => {
                // Advance even if no event of the page matched the filter, so that the next read skips this page.
                self.after = page.next.max(self.after);
                if page.events.is_empty() {
                    self.unread = Unread::Nothing;
                    return Some(None);
                }
                Some(Some(page.events))
            }
            Err(error) => {
                // The stream ends here. The client reconnects with the number of its last event.
                tracing::warn!(error = %polity_view::in_full(&error), "an event stream failed");
                None
            }
        }
    }
}

/// Waits for a new event, and then for the time [`TOGETHER`], so that one read finds all events that were written at
/// about the same time. The caller may drop this future early. A new event is not forgotten then, because `unread`
/// is set as soon as the event is announced.
async fn woken(newest: &mut watch::Receiver<i64>, unread: &mut Unread) -> Option<()> {
    newest.changed().await.ok()?;
    *unread = Unread::Perhaps;
    tokio::time::sleep(TOGETHER).await;
    Some(())
}

/// Turns an event into a frame of the stream.
fn written(entry: Entry) -> Result<Event, axum::Error> {
    let json = serde_json::to_value(&entry).map_err(axum::Error::new)?;
    let kind = json.get("event").and_then(serde_json::Value::as_str).unwrap_or("message").to_owned();
    Event::default().id(entry.seq.to_string()).event(kind).json_data(json)
}

/// Turns a glimpse, which tells what an agent is doing at this moment, into a frame of the stream. The frame has no id,
/// because nobody can ask for a glimpse again.
fn glimpsed(glimpse: Glimpse) -> Result<Event, axum::Error> {
    Event::default().event("glimpse").json_data(glimpse)
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
        while woken(&mut newest, &mut Unread::Nothing).await.is_some() {
            last = *newest.borrow_and_update();
            wake_ups += 1;
        }
        telling.await.unwrap();
        assert_eq!(last, 100);
        assert!((2..=5).contains(&wake_ups), "{wake_ups}");
        assert!(begun.elapsed() < Duration::from_millis(100) + TOGETHER * 2, "{:?}", begun.elapsed());
    }
}
