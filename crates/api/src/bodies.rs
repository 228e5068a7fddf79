//! Bounds the memory that the bodies of all requests to all routes take together.
//!
//! [`bound`] runs after the guard and before every route. It reserves memory for a body before the first byte is
//! read, and reserves more if the body is JSON with many small values. It releases the memory when the request is
//! answered. A handler can release memory earlier: it shrinks the [`Share`] in the request. Compressed bodies are
//! refused.
//!
//! A request that needs no token gets no share of this memory: a client without the token could otherwise announce a
//! large body, never send it, and so keep the memory from all other clients. The body of such a request must be small.

use crate::extract::is_content_type;
use crate::guard::{LARGEST_OF_STRANGERS, needs_no_token};
use crate::problem::Problem;
use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use polity_bounds::{Budget, Full, Share, Weigher};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Memory that all bodies may take together, in bytes: enough for one request that contains the largest file in
/// base64.
const ALL_BODIES: usize = 512 << 20;
/// How long a body waits for memory that other bodies take. The daemon does not read the body while it waits.
const MEMORY_WITHIN: Duration = Duration::from_secs(10);
/// The value of `Retry-After` for a request whose body got no memory, in seconds.
const COME_AGAIN: u16 = 10;
/// Most memory that the values of one JSON body may take in addition to their texts, in bytes.
pub(crate) const MOST_STRUCTURE: usize = 64 << 20;
/// Bytes of memory to reserve for each byte of a JSON body. The memory may hold four copies: the pieces that have
/// arrived, the whole body that is joined from the pieces, its parsed texts, and the bytes decoded from base64 texts.
const COPIES_OF_JSON: usize = 4;
/// Bytes of memory to reserve for each byte of a file. The memory may hold two copies: the pieces that have arrived,
/// and the whole file that is joined from the pieces.
const COPIES_OF_FILE: usize = 2;
/// How many copies of its parsed values a JSON body may have in memory. There are two, because some parsers first build
/// a tree of all values, and then copy the needed values.
const TREES: usize = 2;
/// The name of the encoding that changes nothing.
const IDENTITY: &str = "identity";
/// If the length of a body is unknown, its memory is reserved in steps of this size, in bytes.
const STEP: usize = 1 << 20;

/// Returns the budget for the bodies of all requests to one daemon.
pub(crate) fn budget() -> Budget {
    Budget::new(ALL_BODIES)
}

/// Waits until there is memory for the body of a request, and then serves the request.
pub(crate) async fn bound(State(budget): State<Budget>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    if is_encoded(request.headers()) {
        let detail = "the content-encoding of the body is not supported; send the body without an encoding";
        // With this header, the answer names the only encoding that is supported (RFC 9110, section 15.5.16).
        return ([(header::ACCEPT_ENCODING, IDENTITY)], Problem::unsupported(detail)).into_response();
    }
    let length = request.body().size_hint().exact().unwrap_or_default();
    if needs_no_token(request.uri().path()) {
        if length > LARGEST_OF_STRANGERS as u64 {
            let detail = format!("the body of this request may have at most {LARGEST_OF_STRANGERS} bytes");
            return Problem::too_large(detail).into_response();
        }
        // If the length is unknown, the handler of a login stops reading at the same bound.
        return next.run(request).await;
    }
    let form = Form::of(&request);
    let needed = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(form.copies());
    let share = match budget.take(needed, MEMORY_WITHIN).await {
        Ok(share) => share,
        Err(full) => return refusal(full).into_response(),
    };
    let refused = Arc::new(OnceLock::new());
    let metered = |body: Body| {
        let refused = Arc::clone(&refused);
        let meter = Meter { form, share: share.clone(), taken: needed, come: 0, weigher: Weigher::default() };
        let metered = Metered { body: body.into_data_stream(), meter, refused };
        Body::from_stream(stream::try_unfold(metered, Metered::next))
    };
    let mut request = request.map(metered);
    request.extensions_mut().insert(share.clone());
    let response = next.run(request).await;
    // If the body got no memory, the answer of the handler only says that the body could not be read. In this case, the
    // client gets an answer with the reason in `refused` instead.
    match refused.get() {
        Some(full) => refusal(*full).into_response(),
        None => response,
    }
}

/// Whether the headers declare that a body is encoded, for example compressed with gzip.
fn is_encoded(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    encodings.any(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(IDENTITY.as_bytes()))
}

fn refusal(full: Full) -> Problem {
    match full {
        Full::Now => {
            Problem::busy("too many large requests at the same time; send it again later", COME_AGAIN)
        }
        Full::Always => Problem::too_large("the body is too large, or its JSON has too many values"),
    }
}

/// How a handler reads a body: as JSON, or as the bytes of a file. The two ways need different amounts of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    File,
}

impl Form {
    /// The routes outside of `/api` parse every body as JSON, whatever its content type.
    fn of(request: &Request) -> Self {
        let is_json = is_content_type(request.headers(), "application/json");
        if is_json || !request.uri().path().starts_with("/api/") { Self::Json } else { Self::File }
    }

    fn copies(self) -> usize {
        match self {
            Self::Json => COPIES_OF_JSON,
            Self::File => COPIES_OF_FILE,
        }
    }
}

/// A counter of the memory that a body takes while it arrives.
struct Meter {
    form: Form,
    share: Share,
    /// Bytes that are reserved in `share`.
    taken: usize,
    /// Bytes that have arrived.
    come: usize,
    weigher: Weigher,
}

impl Meter {
    /// Takes memory for the next piece of the body.
    async fn add(&mut self, piece: &[u8]) -> Result<(), Full> {
        self.come += piece.len();
        let mut needed = self.come.saturating_mul(self.form.copies());
        if self.form == Form::Json {
            let structure = self.weigher.add(piece).saturating_sub(self.come);
            if structure > MOST_STRUCTURE {
                return Err(Full::Always);
            }
            needed += TREES * structure;
        }
        if needed > self.taken {
            self.taken = needed.next_multiple_of(STEP);
            self.share.grow(self.taken, MEMORY_WITHIN).await?;
        }
        Ok(())
    }
}

/// A body that reserves memory for each piece while a handler reads it.
struct Metered {
    body: BodyDataStream,
    meter: Meter,
    /// The reason, if the budget had no memory for a piece of the body.
    refused: Arc<OnceLock<Full>>,
}

impl Metered {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, axum::Error> {
        let Some(piece) = self.body.next().await.transpose()? else { return Ok(None) };
        if let Err(full) = self.meter.add(&piece).await {
            // `set` fails if an earlier piece has stored a reason. The earlier reason then stays.
            let _ = self.refused.set(full);
            return Err(axum::Error::new(full));
        }
        Ok(Some((piece, self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::extract::DefaultBodyLimit;
    use axum::http::StatusCode;
    use axum::middleware;
    use axum::routing::post;
    use tower::ServiceExt;

    /// Sends a body and returns the status of the answer.
    async fn status(budget: &Budget, body: Body) -> StatusCode {
        let routes = Router::new().route("/v1", post(async |body: Bytes| body.len().to_string()));
        let app = routes
            .layer(DefaultBodyLimit::disable())
            .layer(middleware::from_fn_with_state(budget.clone(), bound));
        app.oneshot(Request::post("/v1").body(body).unwrap()).await.unwrap().status()
    }

    fn pieces(piece: &'static str, many: usize) -> Body {
        let pieces = std::iter::repeat_n(Ok::<_, std::convert::Infallible>(piece), many);
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_takes_its_share_and_gives_it_back() {
        let budget = Budget::new(16 << 20);
        for _ in 0..20 {
            assert_eq!(status(&budget, Body::from(vec![b' '; 3 << 20])).await, 200);
        }
        let all = budget.take(16 << 20, Duration::ZERO).await.unwrap();
        assert_eq!(status(&budget, Body::from("{}")).await, 503);
        assert_eq!(status(&budget, pieces("{}", 1)).await, 503);
        assert_eq!(status(&budget, Body::empty()).await, 200);
        drop(all);
        assert_eq!(status(&budget, Body::from(vec![b' '; 5 << 20])).await, 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_of_unknown_length_takes_memory_as_it_comes() {
        let budget = Budget::new(16 << 20);
        assert_eq!(status(&budget, pieces("        ", 100_000)).await, 200);
        assert_eq!(status(&budget, pieces("        ", 1_000_000)).await, 413);
        let _other = budget.take(15 << 20, Duration::ZERO).await.unwrap();
        assert_eq!(status(&budget, pieces("        ", 100_000)).await, 503);
    }

    #[tokio::test(start_paused = true)]
    async fn small_values_count() {
        let budget = budget();
        assert_eq!(status(&budget, pieces("[{\"a\":0}],", 1_000)).await, 200);
        assert_eq!(status(&budget, pieces("[{\"a\":0}],", 100_000)).await, 413);
        assert_eq!(status(&budget, Body::from("0,".repeat(1 << 20))).await, 413);
    }
}
