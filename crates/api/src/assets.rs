//! The files of the live view, which are part of the binary.

use crate::problem::{Problem, no_route};
use axum::body::Body;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use include_dir::{Dir, File, include_dir};

static WEB: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/web");

/// The content security policy: the page may load files only from the daemon, and may send requests only to the daemon.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
                      media-src 'self' blob:; frame-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                      base-uri 'none'";

/// Serves the page of the live view.
pub(crate) async fn page(headers: HeaderMap) -> Result<Response, Problem> {
    give("index.html", &headers).await
}

/// Serves a file that the page loads.
pub(crate) async fn asset(
    path: Result<Path<String>, axum::extract::rejection::PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    match path {
        Ok(Path(path)) => give(&format!("assets/{path}"), &headers).await,
        Err(_) => Err(no_route().await),
    }
}

async fn give(path: &str, headers: &HeaderMap) -> Result<Response, Problem> {
    // The list of files is fixed at build time, so the path of a request never reaches the file system.
    let Some(file) = WEB.get_file(path) else { return Err(no_route().await) };
    let tag = format!("\"{}\"", &blake3::hash(file.contents()).to_hex()[..32]);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = match known {
        Some(known) if names(known, &tag) => StatusCode::NOT_MODIFIED.into_response(),
        Some(_) | None => Body::from(file.contents()).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type(file));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::ETAG, HeaderValue::try_from(tag).map_err(|_| Problem::defect())?);
    Ok(response)
}

/// Whether the value of `If-None-Match` contains this tag. If so, the client already has the content.
pub(crate) fn names(known: &str, tag: &str) -> bool {
    known.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

fn content_type(file: &File<'_>) -> HeaderValue {
    let guess = mime_guess::from_path(file.path()).first_raw().unwrap_or("application/octet-stream");
    let text = guess.starts_with("text/") || guess.ends_with("json") || guess.ends_with("javascript");
    let value = if text { format!("{guess}; charset=utf-8") } else { guess.to_owned() };
    HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static("application/octet-stream"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags() {
        let check = |known: &str, expect: bool| assert_eq!(names(known, "\"ab\""), expect, "{known}");
        check("\"ab\"", true);
        check("W/\"ab\"", true);
        check("\"x\", \"ab\"", true);
        check("*", true);
        check("\"x\"", false);
        check("ab", false);
        check("", false);
    }

    #[test]
    fn scripts_are_scripts_and_styles_are_styles() {
        let check = |path: &'static str, expect: &str| {
            assert_eq!(content_type(&File::new(path, b"")), expect, "{path}");
        };
        check("index.html", "text/html; charset=utf-8");
        check("assets/app.js", "text/javascript; charset=utf-8");
        check("assets/style.css", "text/css; charset=utf-8");
        check("assets/mark.svg", "image/svg+xml");
    }
}
