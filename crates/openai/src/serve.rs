//! The code that both routes share: it parses a body, sends the question to an agent or directly to a model, and
//! returns the answer as one object or as a stream.

use crate::Shared;
use crate::answer::{self, Answer, Form};
use crate::chat;
use crate::conversation::{Between, Conversation, Speaker};
use crate::exchange::{self, Attempt, Hints, Sent};
use crate::follow::{Follower, Progress, Update, Usage};
use crate::models::Model;
use crate::problem::Problem;
use crate::question::{Delivery, Question, UsageChunk, unsupported};
use crate::responses;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use polity_bounds::Share;
use polity_runtime::{By, DirectAnswer, DirectError, Line, Society};
use polity_society::id::{AgentId, MessageId};
use polity_society::message::RESULT_SCHEMA;
use polity_store::exchanges::GivenAnswer;
use polity_view::MessageView;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Maximum size of a request without its attachments, in bytes.
const ROOM_FOR_WORDS: usize = 8 << 20;

/// After this time without an event, a stream sends a keep-alive comment.
const SILENCE: Duration = Duration::from_secs(15);

/// A streamed answer has a queue of events, for a slow client. This is the maximum length of the queue. When the queue
/// is full, the async task that writes the answer waits.
const PIECES: usize = 64;

/// The header with the id of the task, in requests and in answers.
const TASK: &str = "x-polity-task";

/// The route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Chat,
    Responses,
}

impl Route {
    /// Returns the place in a body where the client gives the schema of the answer. Errors show this place.
    fn schema(self) -> &'static str {
        match self {
            Self::Chat => "response_format.json_schema.schema",
            Self::Responses => "text.format.schema",
        }
    }
}

/// The fields of an answer that stay the same from its first piece to its last.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// The id of the answer. Each route adds its own prefix to this id.
    pub(crate) id: String,
    /// The time of the request, in seconds since 1970.
    pub(crate) created: i64,
    /// The name of the requested model.
    pub(crate) model: String,
    /// The id of the response that the conversation continues from.
    pub(crate) previous: Option<String>,
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The event's name; chat completions use none.
    pub(crate) event: Option<String>,
    pub(crate) data: String,
}

impl Frame {
    /// Creates an event without a name.
    pub(crate) fn data(data: String) -> Self {
        Self { event: None, data }
    }
}

/// A writer of answers, in the format of the route.
enum Writer {
    Chat(chat::reply::Head),
    Response(responses::reply::Head),
}

impl Writer {
    fn new(route: Route, opening: &Opening, delivery: Delivery) -> Self {
        let usage = match delivery {
            Delivery::Whole => UsageChunk::Unwanted,
            Delivery::Streamed(usage) => usage,
        };
        match route {
            Route::Chat => Self::Chat(chat::reply::Head::new(opening, usage)),
            Route::Responses => Self::Response(responses::reply::Head::new(opening)),
        }
    }

    fn whole(&self, answer: &Answer, usage: Usage) -> Value {
        match self {
            Self::Chat(head) => head.whole(answer, usage),
            Self::Response(head) => head.whole(answer, usage),
        }
    }

    fn begin(&mut self) -> Vec<Frame> {
        match self {
            Self::Chat(head) => head.begin(),
            Self::Response(head) => head.begin(),
        }
    }

    fn reasoning(&mut self, text: &str) -> Vec<Frame> {
        match self {
            Self::Chat(head) => head.reasoning(text),
            Self::Response(head) => head.reasoning(text),
        }
    }

    fn answer(&mut self, answer: &Answer) -> Vec<Frame> {
        match self {
            Self::Chat(head) => head.answer(answer),
            Self::Response(head) => head.answer(answer),
        }
    }

    fn end(&mut self, answer: &Answer, usage: Usage) -> Vec<Frame> {
        match self {
            Self::Chat(head) => head.end(usage),
            Self::Response(head) => head.end(answer, usage),
        }
    }

    fn failed(&mut self, problem: &Problem) -> Vec<Frame> {
        match self {
            Self::Chat(head) => head.failed(&problem.body()),
            Self::Response(head) => head.failed(&problem.body()),
        }
    }
}

/// `POST /v1/chat/completions`
pub(crate) async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    serve(shared, Route::Chat, request).await
}

/// `POST /v1/responses`
pub(crate) async fn responses(
    State(shared): State<Arc<Shared>>,
    request: Request,
) -> Result<Response, Problem> {
    serve(shared, Route::Responses, request).await
}

/// A parsed question and the agent that it goes to.
struct Asked {
    conversation: Conversation,
    agent: AgentId,
    person: String,
    form: Form,
}

impl Asked {
    fn between(&self) -> Between<'_> {
        Between { agent: &self.agent, person: &self.person }
    }
}

async fn serve(shared: Arc<Shared>, route: Route, request: Request) -> Result<Response, Problem> {
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    let memory = extensions.get::<Share>().cloned();
    let society = &shared.society;
    let limit = usize::try_from(society.config().limits.max_artifact_bytes).unwrap_or(usize::MAX);
    // Attachments arrive in base64, which adds a third to their size.
    let limit = limit.saturating_add(limit / 3).saturating_add(ROOM_FOR_WORDS);
    let too_large = || {
        let message = format!("the body has more than {limit} bytes, or ended too early");
        Problem::refused(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    };
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > limit) {
        // Without this check, the daemon would read a body up to the limit before it refuses the body.
        return Err(too_large());
    }
    let closed = |_| Problem::of_store(&polity_store::Error::Closed);
    // Keep the permit until the message is sent and the memory of the attachments is freed.
    let room = shared.bodies.acquire().await.map_err(closed)?;
    let body = axum::body::to_bytes(body, limit).await.map_err(|_| too_large())?;
    let Question { model, person, mut conversation, schema, task, previous, delivery } =
        read(route, body).await?;
    if let Some(schema) = &schema {
        polity_runtime::check_schema(schema).map_err(|error| {
            Problem::invalid("invalid_value", route.schema(), format!("the schema {error}"))
        })?;
    }
    let agent = match Model::find(society, &model).await? {
        Model::Agent(agent) => agent,
        Model::Direct => {
            if previous.is_some() {
                let message = "polity-direct keeps no conversations; send the whole conversation";
                return Err(unsupported("previous_response_id", message));
            }
            forget_bytes(&mut conversation, memory.as_ref());
            drop(room);
            return direct(&shared, route, model, &conversation, schema.as_ref(), delivery).await;
        }
    };
    if let Some(response) = &previous {
        conversation.previous = Some(find_previous(society, response).await?);
    }
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let retries = header("x-stainless-retry-count").and_then(|count| count.parse::<u64>().ok());
    let hints = Hints {
        idempotency_key: header("idempotency-key"),
        task: header(TASK).or(task.as_deref()),
        attempt: if retries.unwrap_or(0) > 0 { Attempt::Repeated } else { Attempt::First },
    };
    let mut asked = Asked { conversation, agent, person, form: Form::Free };
    let sent = exchange::open(society, &asked.conversation, schema.as_ref(), asked.between(), hints).await?;
    forget_bytes(&mut asked.conversation, memory.as_ref());
    drop(room);
    // The client waits for the answer to the message `awaits`. This message determines the form of the answer, even if
    // the current request only replies to an agent's question.
    let awaited = society.message(&sent.awaits).await.map_err(|error| Problem::of_store(&error))?;
    let payload = awaited.and_then(|awaited| awaited.payload);
    if payload.is_some_and(|payload| payload.contains_key(RESULT_SCHEMA)) {
        asked.form = Form::Schema;
    }
    let created = society.message(&sent.message).await.map_err(|error| Problem::of_store(&error))?;
    let created = created.map_or(0, |message| message.created_at / 1000);
    let opening = Opening { id: sent.message.to_string(), created, model, previous };
    let writer = Writer::new(route, &opening, delivery);
    let task = HeaderValue::from_str(sent.task.as_str());
    let mut response = match delivery {
        Delivery::Whole => whole(&shared, &asked, &sent, &writer).await?,
        Delivery::Streamed(_) => streamed(Arc::clone(&shared), asked, sent, writer, memory),
    };
    if let Ok(task) = task {
        response.headers_mut().insert(TASK, task);
    }
    Ok(response)
}

/// Frees the attachments, and returns their memory to the budget for bodies. Otherwise they would use up the budget
/// until the answer comes, which may take hours.
fn forget_bytes(conversation: &mut Conversation, memory: Option<&Share>) {
    conversation.forget_bytes();
    if let Some(memory) = memory {
        memory.shrink(conversation.length());
    }
}

/// Parses a body on a blocking thread, because a large body takes a while.
async fn read(route: Route, body: Bytes) -> Result<Question, Problem> {
    let work = move || match route {
        Route::Chat => chat::request::read(&body),
        Route::Responses => responses::request::read(&body),
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error))?
}

/// Finds the fingerprint of the conversation that ended with this response.
async fn find_previous(society: &Society, response: &str) -> Result<String, Problem> {
    let message = MessageId::new(responses::reply::message_of(response));
    let found = society.exchanges().reply_to(&message).await;
    found.map_err(|error| Problem::of_store(&error))?.ok_or_else(|| {
        let message = format!("there is no response `{response}` to continue from");
        Problem::invalid("previous_response_not_found", "previous_response_id", message)
    })
}

/// Number of answered calls of `polity-direct`. The ids of the answers contain this number, so that they are unique.
static DIRECT_CALLS: AtomicU64 = AtomicU64::new(0);

/// Calls root's service directly. The service gets text only; a placeholder replaces each attachment.
async fn direct(
    shared: &Shared,
    route: Route,
    model: String,
    conversation: &Conversation,
    schema: Option<&Value>,
    delivery: Delivery,
) -> Result<Response, Problem> {
    let instructions = Some(conversation.instructions.clone()).filter(|text| !text.is_empty());
    let mut lines: Vec<Line> =
        instructions.map(|text| Line { by: By::Instructions, text }).into_iter().collect();
    for said in conversation.said() {
        let by = match said.speaker {
            Speaker::Assistant => By::Model,
            Speaker::User | Speaker::Tool => By::Person,
        };
        let mut text = said.text.clone();
        for _ in &said.attached {
            text.push_str("\n[attachment]");
        }
        if !text.is_empty() {
            lines.push(Line { by, text });
        }
    }
    let asked = tokio::select! {
        asked = shared.society.ask_directly(&lines, schema) => asked,
        () = shared.ending.cancelled() => Err(DirectError::Ending),
    };
    let DirectAnswer { text, prompt_tokens, completion_tokens } = asked.map_err(|error| refused(&error))?;
    let usage = Usage { prompt: prompt_tokens, completion: completion_tokens };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = DIRECT_CALLS.fetch_add(1, Ordering::Relaxed);
    let opening = Opening {
        id: format!("direct-{}-{number}", now.as_millis()),
        created: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
        model,
        previous: None,
    };
    let mut writer = Writer::new(route, &opening, delivery);
    let answer = Answer::Text(text);
    match delivery {
        Delivery::Whole => Ok(Json(writer.whole(&answer, usage)).into_response()),
        Delivery::Streamed(_) => {
            let frames = [writer.begin(), writer.answer(&answer), writer.end(&answer, usage)].concat();
            Ok(Sse::new(futures::stream::iter(frames.into_iter().map(event))).into_response())
        }
    }
}

fn refused(error: &DirectError) -> Problem {
    let message = error.to_string();
    match error {
        DirectError::NoAnswer { .. } => Problem::refused(StatusCode::BAD_GATEWAY, "no_model", message),
        DirectError::DoesNotFit(_) => {
            Problem::refused(StatusCode::BAD_GATEWAY, "answer_does_not_fit", message)
        }
        DirectError::Ending => Problem::of_store(&polity_store::Error::Closed),
    }
}

/// Waits for the next update; fails when the daemon shuts down.
async fn next(shared: &Shared, follower: &mut Follower<'_>) -> Result<Update, Problem> {
    tokio::select! {
        update = follower.next() => update,
        () = shared.ending.cancelled() => Err(Problem::of_store(&polity_store::Error::Closed)),
    }
}

/// Waits for the answer and returns it whole. A client that disconnects during the wait gets the answer when it sends
/// the request again.
async fn whole(shared: &Shared, asked: &Asked, sent: &Sent, writer: &Writer) -> Result<Response, Problem> {
    let society = &shared.society;
    let mut follower = Follower::begin(society, sent, asked.form).await?;
    loop {
        match next(shared, &mut follower).await? {
            Update::Progress(_) => {}
            Update::Answer(message) => {
                let answer = answer::of(&message, asked.form);
                give(society, asked, sent, &message, &answer).await?;
                return Ok(Json(writer.whole(&answer?, follower.usage())).into_response());
            }
            Update::Failed(problem) => {
                fail(society, sent).await?;
                return Err(problem);
            }
        }
    }
}

fn event(frame: Frame) -> Result<SseEvent, Infallible> {
    let event = SseEvent::default().data(frame.data);
    Ok(match frame.event {
        Some(name) => event.event(name),
        None => event,
    })
}

/// Streams the progress as reasoning, and then the answer. If the client disconnects, the task continues without it.
fn streamed(
    shared: Arc<Shared>,
    asked: Asked,
    sent: Sent,
    mut writer: Writer,
    memory: Option<Share>,
) -> Response {
    let (pieces, receiver) = mpsc::channel::<Frame>(PIECES);
    tokio::spawn(async move {
        // Keep the share of the memory budget until the answer has been given, because the conversation takes memory
        // until then.
        let _memory = memory;
        let told = tell(&shared, &asked, &sent, &mut writer, &pieces);
        let told = tokio::select! {
            told = told => told,
            () = pieces.closed() => return,
        };
        if let Err(problem) = told {
            say(&pieces, writer.failed(&problem)).await;
        }
    });
    let events = futures::stream::unfold(receiver, |mut receiver| async move {
        let frame = receiver.recv().await?;
        Some((event(frame), receiver))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(SILENCE).text("working")).into_response()
}

/// Whether the client was still connected when a piece was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    Yes,
    /// The client has disconnected. The function `streamed` notices this too, and ends the stream.
    No,
}

async fn say(pieces: &mpsc::Sender<Frame>, frames: Vec<Frame>) -> Reached {
    for frame in frames {
        if pieces.send(frame).await.is_err() {
            return Reached::No;
        }
    }
    Reached::Yes
}

/// Sends the events of a streamed answer as soon as they are known.
async fn tell(
    shared: &Shared,
    asked: &Asked,
    sent: &Sent,
    writer: &mut Writer,
    pieces: &mpsc::Sender<Frame>,
) -> Result<(), Problem> {
    let society = &shared.society;
    say(pieces, writer.begin()).await;
    let mut follower = Follower::begin(society, sent, asked.form).await?;
    loop {
        match next(shared, &mut follower).await? {
            Update::Progress(told) => {
                let reached = say(pieces, writer.reasoning(&format!("{}\n", told.text()))).await;
                // If the client did not get a message, the message is not marked as shown. The person then sees the
                // message later.
                if let (Progress::Said(message, _), Reached::Yes) = (told, reached) {
                    society.mark_shown(message).await.map_err(|error| Problem::of_store(&error))?;
                }
            }
            Update::Answer(message) => {
                let answer = answer::of(&message, asked.form);
                if let Ok(answer) = &answer {
                    say(pieces, writer.answer(answer)).await;
                }
                // Record the answer before the last piece is sent. Then a client can continue the conversation as soon
                // as it has got the last piece.
                give(society, asked, sent, &message, &answer).await?;
                let answer = answer?;
                say(pieces, writer.end(&answer, follower.usage())).await;
                return Ok(());
            }
            Update::Failed(problem) => {
                fail(society, sent).await?;
                return Err(problem);
            }
        }
    }
}

/// Records that the client got the answer and that the person has seen it. The conversation can then continue from the
/// answer. If the answer does not have the requested form, the function records a failure instead.
async fn give(
    society: &Society,
    asked: &Asked,
    sent: &Sent,
    message: &MessageView,
    answer: &Result<Answer, Problem>,
) -> Result<(), Problem> {
    let Ok(answer) = answer else { return fail(society, sent).await };
    let of_store = |error: polity_store::Error| Problem::of_store(&error);
    let reply = asked.conversation.reply(asked.between(), answer.text());
    let given = GivenAnswer { answer: message.id.clone(), reply };
    society.exchanges().answered(sent.key.clone(), given).await.map_err(of_store)?;
    society.mark_shown(message.id.clone()).await.map_err(of_store)
}

async fn fail(society: &Society, sent: &Sent) -> Result<(), Problem> {
    society.exchanges().failed(sent.key.clone()).await.map_err(|error| Problem::of_store(&error))
}
