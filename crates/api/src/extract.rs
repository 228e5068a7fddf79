//! Extractors for handlers. They answer with a problem if a part of the request is missing or invalid.

use crate::problem::Problem;
use crate::server::Unread;
use axum::Json;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use polity_society::mime::MimeType;
use polity_view::MAX_PAGE;
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use std::error::Error;

/// Slowest allowed average rate of an upload, in bytes per second. The first 30 seconds (`UNHURRIED`) do not count.
pub(crate) const LEAST_RATE: u64 = 32 * 1024;

/// The error for a body that arrives so slowly that its upload would block other uploads for hours.
#[derive(Debug, thiserror::Error)]
#[error("the body arrives at less than {LEAST_RATE} bytes a second")]
pub(crate) struct Trickle;

/// Longest id or name in a path, in bytes.
const LONGEST_NAME: usize = 200;

/// The parameters of a query. Unknown or repeated parameters and a `limit` out of bounds are refused.
pub(crate) struct Wanted<T>(pub(crate) T);

impl<T: DeserializeOwned + JsonSchema, S: Send + Sync> FromRequestParts<S> for Wanted<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let given = Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let Query(given) = given.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
        let schema = T::json_schema(&mut SchemaGenerator::default());
        let known = schema.get("properties").and_then(|known| known.as_object());
        for (name, value) in &given {
            if !known.is_some_and(|known| known.contains_key(name)) {
                return Err(Problem::bad_request(format!("there is no parameter `{name}`")));
            }
            if name == "limit" && !value.parse().is_ok_and(|limit: u32| (1..=MAX_PAGE).contains(&limit)) {
                return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PAGE}")));
            }
        }
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(wanted)) => Ok(Self(wanted)),
            Err(rejection) => Err(Problem::bad_request(rejection.body_text())),
        }
    }
}

/// A name or id from the path of a request, used only as a key for a lookup.
pub(crate) struct Named(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) if name.len() <= LONGEST_NAME && !name.contains(char::is_control) => {
                Ok(Self(name))
            }
            Ok(_) | Err(_) => Err(Problem::not_found("this is not a valid name or id")),
        }
    }
}

/// Parses a JSON body of at most `most` bytes.
pub(crate) async fn json<T: DeserializeOwned>(mut request: Request, most: usize) -> Result<T, Problem> {
    DefaultBodyLimit::max(most).apply(&mut request);
    match Json::<T>::from_request(request, &()).await {
        Ok(Json(value)) => Ok(value),
        Err(rejection) => Err(unread(rejection.status().as_u16(), rejection.body_text(), &rejection)),
    }
}

/// Returns the problem for a body that could not be read.
pub(crate) fn unread(status: u16, said: String, error: &(dyn Error + 'static)) -> Problem {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let is_silent = matches!(error.downcast_ref(), Some(Unread::<hyper::Error>::Silent));
        if is_silent || error.is::<Trickle>() {
            return Problem::too_slow();
        }
        cause = error.source();
    }
    match status {
        413 => Problem::too_large(said),
        415 => Problem::unsupported(said),
        422 => Problem::unprocessable("invalid_arguments", said, None),
        _ => Problem::bad_request(said),
    }
}

/// Whether the headers declare this content type for the body.
pub(crate) fn is_content_type(headers: &HeaderMap, expected: &str) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    MimeType::parse(given).is_some_and(|given| given == *expected)
}
