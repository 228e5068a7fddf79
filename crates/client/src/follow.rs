//! A live stream of events. The reader gets each event once and in order, even if the daemon restarts.

use crate::client::{Client, event_query};
use crate::error::{Error, Loss};
use crate::place::Door;
use crate::sse::{Frame, Parser};
use crate::transport::{Asked, Patience, Way, pause};
use polity_view::{Entry, EventFilter, Glimpse};
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Maximum silence of a stream. After this time, the connection counts as broken. The daemon sends a keep-alive every
/// 15 seconds.
const SILENCE: Duration = Duration::from_secs(45);

/// Maximum number of events that wait for the reader: as many as one page has. If this many events wait, the stream
/// reads no more from the daemon until the reader has taken some of them.
const AHEAD: usize = 1_000;

/// Number of failed attempts after which the reader is told, if a daemon is there. The daemon may refuse for a moment
/// because it cannot use its disk or is shutting down. With the pauses between them, these attempts take 1.5 seconds.
const REFUSALS: u32 = 5;

/// A stream holds if it has brought an event or a glimpse, or if it is still open after this time. A daemon that cannot
/// read its events opens each stream and ends it at once, so an open stream alone proves nothing.
const HOLDS: Duration = Duration::from_secs(1);

/// What a [`Follow`] yields.
#[derive(Debug)]
pub enum Followed {
    /// An event with its number.
    Entry(Box<Entry>),
    /// What an agent is doing at this moment; only from [`Client::follow_live`]. Glimpses may be lost.
    Glimpse(Box<Glimpse>),
    /// The stream has connected to a daemon, for the first time or after its connection broke; after [`Self::Lost`],
    /// only once the new connection holds. Or the stream has skipped events, because the data directory was replaced or
    /// old events were deleted. In both cases, the reader should load the current state again.
    Connected,
    /// The daemon is gone or keeps refusing, or none was there when the stream began. When a daemon answers again, the
    /// stream continues with it. [`Loss::words`] tells the person.
    Lost(Loss),
    /// The stream cannot continue.
    Failed(Error),
}

/// A stream of events. Dropping it ends the stream.
pub struct Follow {
    heard: mpsc::Receiver<Followed>,
    task: JoinHandle<()>,
}

impl Follow {
    /// Waits for the next item; `None` after a failure. Cancelling the call loses no item.
    pub async fn next(&mut self) -> Option<Followed> {
        self.heard.recv().await
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client {
    /// Follows the events after the event with this number. Waits for a daemon if none is running.
    pub fn follow(&self, after: i64, filter: EventFilter) -> Follow {
        self.follow_with(after, filter, Live::Unwanted)
    }

    /// Follows the events as [`Client::follow`] does, and also reports what the agents are doing at each moment.
    pub fn follow_live(&self, after: i64, filter: EventFilter) -> Follow {
        self.follow_with(after, filter, Live::Wanted)
    }

    fn follow_with(&self, after: i64, filter: EventFilter, live: Live) -> Follow {
        let (tell, heard) = mpsc::channel(AHEAD);
        let follower = Follower {
            client: self.clone(),
            told: Told::Nothing,
            attempts: 0,
            filter,
            live,
            seen: Seen(after),
            tell,
        };
        Follow { heard, task: tokio::spawn(follower.run()) }
    }
}

/// The number of the last event that the reader has got.
#[derive(Debug, Clone, Copy)]
struct Seen(i64);

impl Seen {
    /// Returns the event if it is newer than all events that the reader got before; else `None`.
    fn pass(&mut self, entry: Entry) -> Option<Entry> {
        (entry.seq > self.0).then(|| {
            self.0 = entry.seq;
            entry
        })
    }
}

/// Whether the stream also contains glimpses, which tell what an agent is doing at this moment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Live {
    Wanted,
    Unwanted,
}

/// Whether the reader was told that there is no connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Loss,
}

impl Told {
    /// Returns whether the reader must be told about a failed attempt. `attempts` is the number of attempts that have
    /// failed one after the other.
    fn is_news(self, attempts: u32, loss: Loss) -> bool {
        match (self, loss) {
            // A single failure may be a connection that broke by chance. The next attempt shows whether a daemon is
            // there.
            (Self::Nothing, Loss::Gone) => attempts > 1,
            (Self::Nothing, Loss::Unreadable) => attempts >= REFUSALS,
            (Self::Loss, Loss::Gone | Loss::Unreadable) => false,
        }
    }
}

struct Follower {
    client: Client,
    told: Told,
    /// Number of failed attempts since the last stream that held.
    attempts: u32,
    filter: EventFilter,
    live: Live,
    seen: Seen,
    tell: mpsc::Sender<Followed>,
}

/// Why the follower stopped reading a stream.
enum End {
    /// The [`Follow`] was dropped.
    Unheard,
    /// There was no connection.
    Unreached(Error),
    /// The connection broke or its data could not be parsed.
    Broken(Error),
}

impl From<mpsc::error::SendError<Followed>> for End {
    fn from(_: mpsc::error::SendError<Followed>) -> Self {
        Self::Unheard
    }
}

impl Follower {
    async fn run(mut self) {
        loop {
            let (error, loss) = match self.stream().await {
                Err(End::Unreached(error)) => {
                    let loss = self.client.transport.loss(&error);
                    (error, loss)
                }
                // The daemon was there a moment ago. The next attempt shows whether it still is.
                Err(End::Broken(error)) => (error, Loss::Unreadable),
                Err(End::Unheard) => return,
                // A daemon that shuts down ends its streams without an error. The follower then waits for the next
                // daemon, as after a broken connection.
                Ok(()) => {
                    let reason = "the stream has ended".to_owned();
                    (Error::Lost { url: String::new(), reason }, Loss::Unreadable)
                }
            };
            tracing::debug!(%error, seen = self.seen.0, "the event stream broke");
            self.attempts = self.attempts.saturating_add(1);
            let Some(pause) = pause(&error, self.attempts, Patience::UntilBack, Way::New) else {
                let _ = self.tell.send(Followed::Failed(error)).await;
                return;
            };
            if self.told.is_news(self.attempts, loss) {
                self.told = Told::Loss;
                if self.tell.send(Followed::Lost(loss)).await.is_err() {
                    return;
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Reads one stream until it ends.
    async fn stream(&mut self) -> Result<(), End> {
        let (door, mut response) = self.open().await.map_err(End::Unreached)?;
        let holds_at = Instant::now() + HOLDS;
        let mut holds = false;
        self.say_connected().await?;
        let mut parser = Parser::default();
        loop {
            let chunk = tokio::select! {
                chunk = tokio::time::timeout(SILENCE, response.chunk()) => chunk,
                () = tokio::time::sleep_until(holds_at), if !holds => {
                    holds = true;
                    self.note_that_it_holds().await?;
                    continue;
                }
            };
            let chunk = match chunk {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(End::Broken(self.client.transport.broken(&door, &error))),
                Err(_) => {
                    let reason = "the stream was silent for too long".to_owned();
                    return Err(End::Broken(Error::Lost { url: door.url.to_string(), reason }));
                }
            };
            let unreadable = |reason| End::Broken(Error::Unreadable { url: door.url.to_string(), reason });
            let frames = parser.push(&chunk).map_err(|error| unreadable(error.to_string()))?;
            for frame in frames {
                match told(&frame).map_err(&unreadable)? {
                    FrameContent::Event(entry) => {
                        if let Some(entry) = self.seen.pass(*entry) {
                            holds = true;
                            self.note_that_it_holds().await?;
                            self.tell.send(Followed::Entry(Box::new(entry))).await?;
                        }
                    }
                    FrameContent::Glimpse(glimpse) => {
                        holds = true;
                        self.note_that_it_holds().await?;
                        match self.tell.try_send(Followed::Glimpse(glimpse)) {
                            // Drop the glimpse if the reader is too slow and its queue is full. Events are never
                            // dropped.
                            Ok(()) | Err(TrySendError::Full(_)) => {}
                            Err(TrySendError::Closed(_)) => return Err(End::Unheard),
                        }
                    }
                    FrameContent::Reset { after } => {
                        self.seen = Seen(after);
                        self.say_connected().await?;
                    }
                }
            }
        }
    }

    /// Tells the reader that the stream is connected. If the reader was told of a loss, this waits until the stream
    /// holds.
    async fn say_connected(&self) -> Result<(), End> {
        if self.told == Told::Nothing {
            self.tell.send(Followed::Connected).await?;
        }
        Ok(())
    }

    /// Notes that the current stream holds. Ends the loss that the reader was told of.
    async fn note_that_it_holds(&mut self) -> Result<(), End> {
        self.attempts = 0;
        if self.told == Told::Loss {
            self.told = Told::Nothing;
            self.say_connected().await?;
        }
        Ok(())
    }

    async fn open(&self) -> Result<(Door, Response), Error> {
        let transport = &self.client.transport;
        let mut query = event_query(&self.filter);
        query.push(("after".to_owned(), self.seen.0.to_string()));
        if self.live == Live::Wanted {
            query.push(("live".to_owned(), "true".to_owned()));
        }
        let mut asked = Asked::new(Method::GET, &["api", "events"]).query(query);
        asked.headers.insert(ACCEPT, EVENT_STREAM);
        asked.headers.insert(LAST_EVENT_ID, HeaderValue::from(self.seen.0));
        let door = transport.door()?;
        let response = transport.send(&door, transport.request(&door, &asked)?).await?;
        Ok((door, response))
    }
}

/// What a frame of the stream contains.
#[derive(Debug, PartialEq)]
enum FrameContent {
    /// An event with its number.
    Event(Box<Entry>),
    /// What an agent is doing.
    Glimpse(Box<Glimpse>),
    /// The daemon does not have the requested events. The stream continues after the event with the number `after`.
    Reset { after: i64 },
}

/// The data of a `reset` frame: the number of the event after which the stream continues.
#[derive(serde::Deserialize)]
struct Reset {
    after: i64,
}

fn told(frame: &Frame) -> Result<FrameContent, String> {
    let unreadable = |error| format!("the event {}: {error}", frame.event);
    if frame.event == "reset" {
        let Reset { after } = serde_json::from_str(&frame.data).map_err(unreadable)?;
        return Ok(FrameContent::Reset { after });
    }
    if frame.event == "glimpse" {
        return serde_json::from_str(&frame.data).map(FrameContent::Glimpse).map_err(unreadable);
    }
    serde_json::from_str(&frame.data).map(FrameContent::Event).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use axum::routing::get;
    use futures::stream;
    use polity_view::Event;
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn frame(event: &str, data: &str) -> Frame {
        Frame { id: None, event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn frames() {
        assert_eq!(told(&frame("reset", r#"{"after":7}"#)), Ok(FrameContent::Reset { after: 7 }));
        assert!(told(&frame("reset", "soon")).is_err());
        let event = Event::AgentPaused { agent: polity_society::id::AgentId::root() };
        let entry = Entry { seq: 3, at: 5, event };
        let data = serde_json::to_string(&entry).unwrap();
        assert_eq!(told(&frame("agent_paused", &data)), Ok(FrameContent::Event(Box::new(entry))));
        assert!(told(&frame("agent_paused", "{}")).is_err());
    }

    #[tokio::test]
    async fn the_reader_is_told_once_that_no_daemon_is_there() {
        let data = tempfile::tempdir().unwrap();
        let mut follow = Client::new(data.path()).unwrap().follow(0, EventFilter::default());
        let first = tokio::time::timeout(Duration::from_secs(60), follow.next()).await;
        assert!(matches!(first, Ok(Some(Followed::Lost(Loss::Gone)))), "{first:?}");
        let next = tokio::time::timeout(Duration::from_millis(500), follow.next()).await;
        assert!(next.is_err(), "{next:?}");
    }

    /// For example, the database cannot be read when the stream begins.
    #[tokio::test]
    async fn the_reader_is_told_that_the_daemon_keeps_refusing() {
        let refuses = async || StatusCode::SERVICE_UNAVAILABLE;
        let routes = Router::new().route("/api/events", get(refuses));
        let mut follow = Client::in_process(routes).unwrap().follow(0, EventFilter::default());
        let first = tokio::time::timeout(Duration::from_secs(60), follow.next()).await;
        assert!(matches!(first, Ok(Some(Followed::Lost(Loss::Unreadable)))), "{first:?}");
    }

    /// The daemon opens each stream, sends at most the line that begins it, and ends it.
    #[tokio::test(start_paused = true)]
    async fn the_reader_is_told_once_of_streams_that_break_before_they_bring_anything() {
        for beginning in ["", "retry: 1000\n\n"] {
            let routes = Router::new().route("/api/events", get(move || ready(beginning)));
            let mut follow = Client::in_process(routes).unwrap().follow(0, EventFilter::default());
            let end = Instant::now() + Duration::from_secs(600);
            let (mut connected, mut lost) = (0, 0);
            while let Ok(followed) = tokio::time::timeout_at(end, follow.next()).await {
                match followed {
                    Some(Followed::Connected) if lost == 0 => connected += 1,
                    Some(Followed::Lost(Loss::Unreadable)) => lost += 1,
                    other => panic!("{other:?} after {connected} connections and {lost} losses"),
                }
            }
            assert_eq!((connected, lost), (REFUSALS, 1), "{beginning:?}");
        }
    }

    /// The daemon refuses for a while. Its next stream stays open, but nothing happens.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_that_stays_open_ends_a_loss() {
        let count = Arc::new(AtomicU32::new(0));
        let answer = move || {
            ready(match count.fetch_add(1, Ordering::Relaxed) {
                0..REFUSALS => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                _ => Body::from_stream(stream::pending::<std::io::Result<&str>>()).into_response(),
            })
        };
        let routes = Router::new().route("/api/events", get(answer));
        let mut follow = Client::in_process(routes).unwrap().follow(0, EventFilter::default());
        let end = Instant::now() + Duration::from_secs(600);
        let first = tokio::time::timeout_at(end, follow.next()).await;
        assert!(matches!(first, Ok(Some(Followed::Lost(Loss::Unreadable)))), "{first:?}");
        let second = tokio::time::timeout_at(end, follow.next()).await;
        assert!(matches!(second, Ok(Some(Followed::Connected))), "{second:?}");
    }

    /// The daemon ends each stream after one event.
    #[tokio::test(start_paused = true)]
    async fn the_reader_is_not_told_that_a_living_daemon_has_gone() {
        let ends = async |query: axum::extract::RawQuery| {
            let query = query.0.unwrap_or_default();
            let after = query.split('&').find_map(|part| part.strip_prefix("after="));
            let seq = after.and_then(|after| after.parse::<i64>().ok()).unwrap_or_default() + 1;
            let event = Event::AgentPaused { agent: polity_society::id::AgentId::root() };
            let data = serde_json::to_string(&Entry { seq, at: 5, event }).unwrap();
            format!("id: {seq}\nevent: agent_paused\ndata: {data}\n\n")
        };
        let routes = Router::new().route("/api/events", get(ends));
        let mut follow = Client::in_process(routes).unwrap().follow(0, EventFilter::default());
        // If an event were no sign of life, the reader would be told of a loss before this one.
        let last = i64::from(REFUSALS) + 1;
        let mut events = Vec::new();
        while events.last() != Some(&last) {
            match tokio::time::timeout(Duration::from_secs(60), follow.next()).await {
                Ok(Some(Followed::Entry(entry))) => events.push(entry.seq),
                Ok(Some(Followed::Connected)) => {}
                other => panic!("{other:?} after {events:?}"),
            }
        }
        assert_eq!(events, (1..=last).collect::<Vec<_>>());
    }

    /// The daemon ends each stream after one glimpse. No event comes.
    #[tokio::test(start_paused = true)]
    async fn the_reader_is_not_told_of_a_loss_while_glimpses_come() {
        let (agent, task) = (polity_society::id::AgentId::root(), polity_society::id::TaskId::new("t-1"));
        let glimpse = Glimpse { agent, task, doing: None, said: None };
        let body = format!("event: glimpse\ndata: {}\n\n", serde_json::to_string(&glimpse).unwrap());
        let routes = Router::new().route("/api/events", get(move || ready(body.clone())));
        let mut follow = Client::in_process(routes).unwrap().follow_live(0, EventFilter::default());
        let mut glimpses = 0;
        while glimpses <= REFUSALS {
            match tokio::time::timeout(Duration::from_secs(60), follow.next()).await {
                Ok(Some(Followed::Glimpse(_))) => glimpses += 1,
                Ok(Some(Followed::Connected)) => {}
                other => panic!("{other:?} after {glimpses} glimpses"),
            }
        }
    }

    #[test]
    fn a_short_trouble_is_no_news_to_the_reader() {
        let check = |told: Told, loss: Loss, first: Option<u32>| {
            assert_eq!((1..20).find(|attempts| told.is_news(*attempts, loss)), first, "{loss:?}");
        };
        check(Told::Nothing, Loss::Gone, Some(2));
        check(Told::Nothing, Loss::Unreadable, Some(REFUSALS));
        check(Told::Loss, Loss::Gone, None);
        check(Told::Loss, Loss::Unreadable, None);
    }
}
