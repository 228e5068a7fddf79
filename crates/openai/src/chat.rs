//! `POST /v1/chat/completions`.

use crate::Shared;
use crate::conversation::{Between, Conversation};
use crate::exchange::{self, Attempt, Hints, Sent};
use crate::follow::{Follower, Told, Update};
use crate::problem::Problem;
use crate::reply::{self, Head, Piece};
use crate::request::{Delivery, Request, UsageChunk};
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use polity_runtime::view::MessageView;
use polity_runtime::{Given, Society};
use polity_society::id::AgentId;
use serde_json::Value;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Room for the words of a request beside what is attached, in bytes.
const ROOM_FOR_WORDS: usize = 8 << 20;

/// How long a stream may be silent before it says that it is alive.
const SILENCE: Duration = Duration::from_secs(15);

/// How many pieces wait for a client that reads slowly, before nothing more is read for it.
const PIECES: usize = 64;

/// The header that names the task, in requests and in answers.
const TASK: &str = "x-polity-task";

/// A request that was understood.
struct Asked {
    conversation: Conversation,
    agent: AgentId,
    person: String,
    model: String,
}

impl Asked {
    fn between(&self) -> Between<'_> {
        Between { agent: &self.agent, person: &self.person }
    }
}

pub(crate) async fn completions(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let society = &shared.society;
    let limit = usize::try_from(society.config().limits.max_artifact_bytes).unwrap_or(usize::MAX);
    // Base64 takes a third more.
    let limit = limit.saturating_add(limit / 3).saturating_add(ROOM_FOR_WORDS);
    let closed = |_| Problem::of_store(&polity_runtime::Error::Closed);
    // Held until the message is sent and what was attached is in memory no more.
    let room = shared.bodies.acquire().await.map_err(closed)?;
    let body = axum::body::to_bytes(body, limit).await.map_err(|_| {
        let message = format!("the body has more than {limit} bytes, or ended early");
        Problem::refused(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    })?;
    let (request, conversation) = read(body).await?;
    let delivery = request.delivery();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let named = header(TASK).map_or_else(|| request.named_task(), |task| Ok(Some(task)))?;
    let retries = header("x-stainless-retry-count").and_then(|count| count.parse::<u64>().ok());
    let hints = Hints {
        idempotency_key: header("idempotency-key"),
        task: named,
        attempt: if retries.unwrap_or(0) > 0 { Attempt::Repeated } else { Attempt::First },
    };
    let agent = find_agent(society, &request.model).await?;
    let mut asked =
        Asked { conversation, agent, person: request.person().to_owned(), model: request.model.clone() };
    let sent = exchange::open(society, &asked.conversation, asked.between(), hints).await?;
    asked.conversation.forget_bytes();
    drop(room);
    let created = society.message(&sent.message).await.map_err(|error| Problem::of_store(&error))?;
    let head = Head::new(&sent, created.map_or(0, |message| message.created_at), &asked.model);
    let task = HeaderValue::from_str(sent.task.as_str());
    let mut response = match delivery {
        Delivery::Whole => whole(&shared, &asked, &sent, &head).await?,
        Delivery::Streamed(usage) => streamed(Arc::clone(&shared), asked, sent, head, usage),
    };
    if let Ok(task) = task {
        response.headers_mut().insert(TASK, task);
    }
    Ok(response)
}

/// Reads a body. Large ones take a while, so not where others wait.
async fn read(body: Bytes) -> Result<(Request, Conversation), Problem> {
    let work = move || {
        let mut request = Request::read(&body)?;
        let conversation = Conversation::read(&std::mem::take(&mut request.messages))?;
        Ok((request, conversation))
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error))?
}

/// What happens next, or that the daemon ends.
async fn next(shared: &Shared, follower: &mut Follower<'_>) -> Result<Update, Problem> {
    tokio::select! {
        update = follower.next() => update,
        () = shared.ending.cancelled() => Err(Problem::of_store(&polity_runtime::Error::Closed)),
    }
}

/// The agent that a model stands for: root, or one that is alive.
async fn find_agent(society: &Society, model: &str) -> Result<AgentId, Problem> {
    let id = reply::agent_of(model);
    let found = society.agent(&id).await.map_err(|error| Problem::of_store(&error))?;
    match found {
        Some(found) if found.agent.ended_at.is_none() && !id.is_user() => Ok(id),
        Some(_) | None => Err(unknown_model(model)),
    }
}

pub(crate) fn unknown_model(model: &str) -> Problem {
    let message =
        format!("there is no model `{model}`: `polity` is root, and each agent that is alive is one");
    Problem {
        param: Some("model".to_owned()),
        ..Problem::refused(StatusCode::NOT_FOUND, "model_not_found", message)
    }
}

/// Waits for the answer, and gives it at once. A client that goes away meanwhile finds it when it asks again.
async fn whole(shared: &Shared, asked: &Asked, sent: &Sent, head: &Head) -> Result<Response, Problem> {
    let society = &shared.society;
    let mut follower = Follower::begin(society, sent).await?;
    loop {
        match next(shared, &mut follower).await? {
            Update::Progress(_) => {}
            Update::Answer(answer) => {
                let text = reply::text(&answer);
                give(society, asked, sent, &answer, &text).await?;
                return Ok(Json(head.completion(&text, follower.usage())).into_response());
            }
            Update::Failed(problem) => {
                fail(society, sent).await?;
                return Err(problem);
            }
        }
    }
}

/// Streams what happens as reasoning, and then the answer. When the client goes away nobody follows any more; the task
/// goes on.
fn streamed(shared: Arc<Shared>, asked: Asked, sent: Sent, head: Head, usage: UsageChunk) -> Response {
    let (pieces, receiver) = mpsc::channel::<Value>(PIECES);
    tokio::spawn(async move {
        let told = tell(&shared, &asked, &sent, &head, usage, &pieces);
        let told = tokio::select! {
            told = told => told,
            () = pieces.closed() => return,
        };
        if let Err(problem) = told {
            // Clients raise it, whatever has come before.
            let _ = pieces.send(problem.body()).await;
        }
    });
    let events = futures::stream::unfold((receiver, false), |(mut receiver, ended)| async move {
        let (data, ended) = match receiver.recv().await {
            Some(piece) => (piece.to_string(), ended),
            None if ended => return None,
            None => ("[DONE]".to_owned(), true),
        };
        Some((Ok::<_, Infallible>(SseEvent::default().data(data)), (receiver, ended)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(SILENCE).text("working")).into_response()
}

/// Sends the pieces of an answer as they come.
async fn tell(
    shared: &Shared,
    asked: &Asked,
    sent: &Sent,
    head: &Head,
    usage: UsageChunk,
    pieces: &mpsc::Sender<Value>,
) -> Result<(), Problem> {
    let society = &shared.society;
    // A client that has gone away needs nothing more: the caller sees it, and stops.
    let say = async |piece: Piece<'_>| pieces.send(head.chunk(piece)).await.is_ok();
    say(Piece::Begin).await;
    let mut follower = Follower::begin(society, sent).await?;
    loop {
        match next(shared, &mut follower).await? {
            Update::Progress(told) => {
                let went = say(Piece::Reasoning(&format!("{}\n", told.text()))).await;
                // What a client did not get stays news for the person.
                if let Told::Said(message, _) = told
                    && went
                {
                    society.mark_shown(message).await.map_err(|error| Problem::of_store(&error))?;
                }
            }
            Update::Answer(answer) => {
                let text = reply::text(&answer);
                say(Piece::Content(&text)).await;
                // Before the end, so that a client that has all of it can go on from there.
                give(society, asked, sent, &answer, &text).await?;
                say(Piece::End).await;
                if usage == UsageChunk::Wanted {
                    say(Piece::Usage(follower.usage())).await;
                }
                return Ok(());
            }
            Update::Failed(problem) => {
                fail(society, sent).await?;
                return Err(problem);
            }
        }
    }
}

/// Notes that the answer is given, so that the conversation can go on from it; and that the person has seen it.
async fn give(
    society: &Society,
    asked: &Asked,
    sent: &Sent,
    answer: &MessageView,
    text: &str,
) -> Result<(), Problem> {
    let of_store = |error: polity_runtime::Error| Problem::of_store(&error);
    let reply = asked.conversation.reply(asked.between(), text);
    let given = Given { answer: answer.id.clone(), reply };
    society.exchanges().answered(sent.key.clone(), given).await.map_err(of_store)?;
    society.mark_shown(answer.id.clone()).await.map_err(of_store)
}

async fn fail(society: &Society, sent: &Sent) -> Result<(), Problem> {
    society.exchanges().failed(sent.key.clone()).await.map_err(|error| Problem::of_store(&error))
}
