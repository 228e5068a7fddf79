//! `GET /api/artifacts/{id}/content`: sends all bytes of an artifact, or a part of them. The headers of the answer keep
//! a browser from running the bytes.

use super::range::{Portion, portion};
use super::shown::shown;
use super::{id, nothing};
use crate::assets::names;
use crate::extract::Named;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polity_society::id::ArtifactId;
use serde_json::json;
use std::io::SeekFrom;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncSeekExt};
use tokio_util::io::ReaderStream;

/// The content security policy of untrusted bytes. It is a second safeguard: if a browser shows the bytes as a page
/// in spite of the other headers, the page can neither run scripts nor load anything.
const POLICY: &str = "sandbox; default-src 'none'";

pub(super) fn routes(routes: &mut Routes) {
    let bytes = || json!({});
    let text = || json!({"type": "string"});
    routes.add(Verb::Get, "/api/artifacts/{id}/content", "getContent", content, |operation| {
        operation
            .summary("The bytes of an artifact, in a form that a browser never executes.")
            .header("Range", "The requested part, such as `bytes=0-99`.", text())
            .header("If-None-Match", "The ETag of the copy that the client has.", text())
            .header("If-Range", "The ETag of the copy that the range belongs to.", text())
            .gives_content(200, "All bytes.", "*/*", bytes())
            .gives_content(206, "The requested part.", "*/*", bytes())
            .gives_nothing(304, "The client's copy is up to date.")
            .refuses(&[404, 416])
    });
}

async fn content(
    State(shared): State<Arc<Shared>>,
    Named(name): Named,
    method: Method,
    asked: HeaderMap,
) -> Result<Response, Problem> {
    let id = id(&name)?;
    let (artifact, hash) = shared.society.artifact_and_hash(&id).await?.ok_or_else(nothing)?;
    let (tag, size) = (format!("\"{hash}\""), artifact.size);
    let given = |name: HeaderName| asked.get(name).and_then(|value| value.to_str().ok());
    // Call `opened` only if the answer contains bytes, because `opened` reads the whole file to verify it. The answer
    // `304` and the answer to a HEAD request contain no bytes.
    if given(header::IF_NONE_MATCH).is_some_and(|known| names(known, &tag)) {
        return decorated(StatusCode::NOT_MODIFIED.into_response(), &tag, None);
    }
    let range = given(header::RANGE).filter(|_| given(header::IF_RANGE).is_none_or(|known| known == tag));
    let mut response = match portion(range, size) {
        _ if method == Method::HEAD => [(header::CONTENT_LENGTH, size)].into_response(),
        Portion::Whole => {
            let file = opened(&shared, &id).await?;
            part(file, 0..=size.saturating_sub(1), size, StatusCode::OK).await?
        }
        Portion::Part(wanted) => {
            let said = format!("bytes {}-{}/{size}", wanted.start(), wanted.end());
            let length = wanted.end() - wanted.start() + 1;
            let file = opened(&shared, &id).await?;
            let mut response = part(file, wanted, length, StatusCode::PARTIAL_CONTENT).await?;
            response.headers_mut().insert(header::CONTENT_RANGE, value(said)?);
            response
        }
        Portion::Outside => {
            let mut response = Problem::outside(size).into_response();
            response.headers_mut().insert(header::CONTENT_RANGE, value(format!("bytes */{size}"))?);
            return Ok(response);
        }
    };
    response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    let shown = shown(&artifact.mime_type, artifact.filename.as_deref());
    decorated(response, &tag, Some((shown.content_type, shown.disposition)))
}

/// Opens the bytes of an artifact after verifying them against their hash.
pub(super) async fn opened(shared: &Shared, id: &ArtifactId) -> Result<std::fs::File, Problem> {
    let content = shared.society.artifact_content(id).await?.ok_or_else(nothing)?;
    Ok(content.file.file)
}

/// Builds a response with `length` bytes of a file, beginning at the position where the range `wanted` starts.
pub(super) async fn part(
    file: std::fs::File,
    wanted: RangeInclusive<u64>,
    length: u64,
    status: StatusCode,
) -> Result<Response, Problem> {
    let mut file = tokio::fs::File::from_std(file);
    if let Err(error) = file.seek(SeekFrom::Start(*wanted.start())).await {
        tracing::error!(%error, "an artifact cannot be read");
        return Err(Problem::defect());
    }
    let body = Body::from_stream(ReaderStream::new(file.take(length)));
    Ok((status, [(header::CONTENT_LENGTH, length)], body).into_response())
}

fn decorated(
    mut response: Response,
    tag: &str,
    shown: Option<(String, String)>,
) -> Result<Response, Problem> {
    let headers = response.headers_mut();
    headers.insert(header::ETAG, value(tag.to_owned())?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    if let Some((content_type, disposition)) = shown {
        headers.insert(header::CONTENT_TYPE, value(content_type)?);
        headers.insert(header::CONTENT_DISPOSITION, value(disposition)?);
    }
    Ok(response)
}

pub(super) fn value(text: String) -> Result<HeaderValue, Problem> {
    HeaderValue::try_from(text).map_err(|_| Problem::defect())
}
