//! Uploads: a file is the whole body, or a field of a form. Files stay in memory until they are stored, so this module
//! limits their size while they arrive, and the number of concurrent uploads.

use crate::extract::{LEAST_RATE, Trickle, is_content_type, unread};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::body::{Body, Bytes};
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::HeaderMap;
use futures::StreamExt;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Maximum number of concurrent uploads; further requests with files wait.
pub(crate) const AT_ONCE: usize = 8;
/// How long a request waits for one of the [`AT_ONCE`] places.
const PLACE_WITHIN: Duration = Duration::from_secs(10);
/// The value of `Retry-After` for a request that got no place, in seconds.
const COME_AGAIN: u16 = 30;
/// Time at the beginning of an upload in which the body may arrive at any speed.
const UNHURRIED: Duration = Duration::from_secs(30);
/// Bytes that a form may have in addition to its files: text fields and multipart framing.
const FORM_EXTRA: u64 = 1024 * 1024;
/// Maximum number of fields in a form.
const MOST_FIELDS: usize = 64;

/// An uploaded file.
#[derive(Debug)]
pub(crate) struct File {
    /// The name of the form field.
    pub(crate) field: String,
    /// The file name that the client gives.
    pub(crate) filename: Option<String>,
    /// The content type that the client declares.
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Bytes,
}

/// A parsed multipart form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// Names and values of the fields that are not files.
    pub(crate) texts: Vec<(String, String)>,
    pub(crate) files: Vec<File>,
}

impl Form {
    /// Whether the headers announce a multipart form.
    pub(crate) fn is_in(headers: &HeaderMap) -> bool {
        is_content_type(headers, "multipart/form-data")
    }
}

/// Returns the limit for the total size of the files in one request, in bytes.
pub(crate) fn most_bytes(shared: &Shared) -> u64 {
    shared.society.config().limits.max_artifact_bytes
}

/// Reserves one of the [`AT_ONCE`] places, and waits for it if necessary.
pub(crate) async fn place(uploads: &Semaphore) -> Result<SemaphorePermit<'_>, Problem> {
    match tokio::time::timeout(PLACE_WITHIN, uploads.acquire()).await {
        Ok(place) => place.map_err(|_| Problem::ending()),
        Err(_) => Err(Problem::busy("too many uploads just now; send it again later", COME_AGAIN)),
    }
}

/// Whether an upload has sent too few bytes in the elapsed time.
fn is_trickle(bytes: u64, elapsed: Duration) -> bool {
    let hurried = elapsed.saturating_sub(UNHURRIED);
    u128::from(bytes) * 1000 < u128::from(LEAST_RATE) * hurried.as_millis()
}

/// Makes the body of a request fail if it arrives too slowly.
fn hurried(request: Request) -> Request {
    let (begun, mut come) = (Instant::now(), 0_u64);
    request.map(|body| {
        Body::from_stream(body.into_data_stream().map(move |chunk| {
            let chunk = chunk?;
            come = come.saturating_add(chunk.len() as u64);
            if is_trickle(come, begun.elapsed()) { Err(axum::Error::new(Trickle)) } else { Ok(chunk) }
        }))
    })
}

/// Reads the whole body as one file of at most `most` bytes.
pub(crate) async fn whole(request: Request, most: u64) -> Result<Bytes, Problem> {
    let mut request = hurried(request);
    DefaultBodyLimit::max(usize::try_from(most).unwrap_or(usize::MAX)).apply(&mut request);
    let read = Bytes::from_request(request, &()).await;
    read.map_err(|rejection| unread(rejection.status().as_u16(), too_large(most), &rejection))
}

/// Reads a form whose files have at most `most` bytes together. A field counts as a file if it has a file name or its
/// name is `file_field`.
pub(crate) async fn form(request: Request, most: u64, file_field: &str) -> Result<Form, Problem> {
    let mut request = hurried(request);
    let room = usize::try_from(most.saturating_add(FORM_EXTRA)).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(room).apply(&mut request);
    let parts = Multipart::from_request(request, &()).await;
    let mut parts = parts.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
    let all = format!(
        "a form may have at most {room} bytes: files of {most} bytes (limits.maxArtifactBytes in app.json), and \
         {FORM_EXTRA} for everything else"
    );
    let mut form = Form::default();
    let mut left = most;
    for _ in 0..=MOST_FIELDS {
        let failed = |error: MultipartError| unread(error.status().as_u16(), said(&error, &all), &error);
        let Some(mut field) = parts.next_field().await.map_err(failed)? else { return Ok(form) };
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().map(str::to_owned);
        if filename.is_some() || name == file_field {
            let bytes = within(&mut field, left, &too_large(most), &all).await?;
            left -= bytes.len() as u64;
            form.files.push(File { field: name, filename, content_type, bytes });
        } else {
            let too_large =
                format!("the field `{name}` may have at most {FORM_EXTRA} bytes, because it is not a file");
            let bytes = within(&mut field, FORM_EXTRA, &too_large, &all).await?;
            let text = String::from_utf8(bytes.to_vec())
                .map_err(|_| Problem::bad_request(format!("the field `{name}` is not UTF-8 text")))?;
            form.texts.push((name, text));
        }
    }
    Err(Problem::bad_request(format!("a form may have at most {MOST_FIELDS} fields")))
}

/// Reads a field of at most `room` bytes. `too_large` is the error if the field is longer, and `all` the error if the whole
/// form is too long.
async fn within(field: &mut Field<'_>, room: u64, too_large: &str, all: &str) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    let failed = |error: MultipartError| unread(error.status().as_u16(), said(&error, all), &error);
    while let Some(chunk) = field.chunk().await.map_err(failed)? {
        if bytes.len() as u64 + chunk.len() as u64 > room {
            return Err(Problem::too_large(too_large.to_owned()));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Bytes::from(bytes))
}

fn said(error: &MultipartError, all: &str) -> String {
    if error.status().as_u16() == 413 { all.to_owned() } else { error.body_text() }
}

fn too_large(most: u64) -> String {
    format!("one request may upload at most {most} bytes (limits.maxArtifactBytes in app.json)")
}

#[cfg(test)]
mod tests;
