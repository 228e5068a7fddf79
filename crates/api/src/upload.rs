//! Files that come in: as a body of their own, or among the fields of a form. They are held in memory until they are
//! stored, so their size is bounded while they come, and so is how many come at a time.

use crate::extract::{is_content_type, unread};
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

/// How many requests with files are taken at a time; others wait.
pub(crate) const AT_ONCE: usize = 8;
/// How long a request waits for others to be through.
const PLACE_WITHIN: Duration = Duration::from_secs(10);
/// After how many seconds it may come again then.
const COME_AGAIN: u16 = 30;
/// How long a body may come as slowly as it likes.
const UNHURRIED: Duration = Duration::from_secs(30);
/// How many bytes of it have to come in each second after that, on the whole.
const LEAST_RATE: u64 = 32 * 1024;
/// What the other fields of a form, and what holds it together, may add to the files.
const FORM_EXTRA: u64 = 1024 * 1024;
/// How many fields a form may have.
const MOST_FIELDS: usize = 64;

/// A file that came in.
#[derive(Debug)]
pub(crate) struct File {
    /// The name of its field.
    pub(crate) field: String,
    /// Its name, as it was given.
    pub(crate) filename: Option<String>,
    /// Its type, as it was declared.
    pub(crate) content_type: Option<String>,
    /// Its content.
    pub(crate) bytes: Bytes,
}

/// A form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// Its fields that are no files.
    pub(crate) texts: Vec<(String, String)>,
    /// Its files.
    pub(crate) files: Vec<File>,
}

impl Form {
    /// Whether a request brings a form.
    pub(crate) fn is_in(headers: &HeaderMap) -> bool {
        is_content_type(headers, "multipart/form-data")
    }
}

/// How many bytes the files of one request may have together.
pub(crate) fn most_bytes(shared: &Shared) -> u64 {
    shared.society.config().limits.max_artifact_bytes
}

/// A place among those that bring files.
pub(crate) async fn place(uploads: &Semaphore) -> Result<SemaphorePermit<'_>, Problem> {
    match tokio::time::timeout(PLACE_WITHIN, uploads.acquire()).await {
        Ok(place) => place.map_err(|_| Problem::ending()),
        Err(_) => {
            Err(Problem::busy("too many files are coming in just now; send it again later", COME_AGAIN))
        }
    }
}

/// A body comes so slowly that it would hold its place for hours.
#[derive(Debug, thiserror::Error)]
#[error("the body comes at less than {LEAST_RATE} bytes a second")]
pub(crate) struct Trickle;

/// Whether so many bytes are too few for the time that they took.
fn is_trickle(bytes: u64, elapsed: Duration) -> bool {
    let hurried = elapsed.saturating_sub(UNHURRIED);
    u128::from(bytes) * 1000 < u128::from(LEAST_RATE) * hurried.as_millis()
}

/// A request whose body is given up where it only trickles.
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

/// Reads a body as it is.
pub(crate) async fn whole(request: Request, most: u64) -> Result<Bytes, Problem> {
    let mut request = hurried(request);
    DefaultBodyLimit::max(usize::try_from(most).unwrap_or(usize::MAX)).apply(&mut request);
    let read = Bytes::from_request(request, &()).await;
    read.map_err(|rejection| unread(rejection.status().as_u16(), too_large(most), &rejection))
}

/// Reads a form. What has a file name, or stands in a field of which the caller says so, is a file.
pub(crate) async fn form(request: Request, most: u64, file_field: &str) -> Result<Form, Problem> {
    let mut request = hurried(request);
    let room = usize::try_from(most.saturating_add(FORM_EXTRA)).unwrap_or(usize::MAX);
    DefaultBodyLimit::max(room).apply(&mut request);
    let parts = Multipart::from_request(request, &()).await;
    let mut parts = parts.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
    let mut form = Form::default();
    let mut left = most;
    for _ in 0..=MOST_FIELDS {
        let failed = |error: MultipartError| unread(error.status().as_u16(), said(&error, most), &error);
        let Some(mut field) = parts.next_field().await.map_err(failed)? else { return Ok(form) };
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(str::to_owned);
        let content_type = field.content_type().map(str::to_owned);
        if filename.is_some() || name == file_field {
            let bytes = within(&mut field, left, most).await?;
            left -= bytes.len() as u64;
            form.files.push(File { field: name, filename, content_type, bytes });
        } else {
            let bytes = within(&mut field, FORM_EXTRA, FORM_EXTRA).await?;
            let text = String::from_utf8(bytes.to_vec())
                .map_err(|_| Problem::bad_request(format!("the field `{name}` is not UTF-8 text")))?;
            form.texts.push((name, text));
        }
    }
    Err(Problem::bad_request(format!("a form has at most {MOST_FIELDS} fields")))
}

/// Reads a field as far as there is room.
async fn within(field: &mut Field<'_>, room: u64, most: u64) -> Result<Bytes, Problem> {
    let mut bytes = Vec::new();
    let failed = |error: MultipartError| unread(error.status().as_u16(), said(&error, most), &error);
    while let Some(chunk) = field.chunk().await.map_err(failed)? {
        if bytes.len() as u64 + chunk.len() as u64 > room {
            return Err(Problem::too_large(too_large(most)));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Bytes::from(bytes))
}

fn said(error: &MultipartError, most: u64) -> String {
    if error.status().as_u16() == 413 { too_large(most) } else { error.body_text() }
}

fn too_large(most: u64) -> String {
    format!("one request brings at most {most} bytes (limits.maxArtifactBytes in app.json)")
}

#[cfg(test)]
mod tests;
