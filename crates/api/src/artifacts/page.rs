//! `GET /api/artifacts/{id}/page`: serves an HTML page, an SVG picture or a PDF, so that the live view can show it in a
//! frame. The response headers do not let this content run scripts, send requests or open windows.

use super::content::{opened, part, value};
use super::{id, nothing};
use crate::extract::Named;
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polity_society::mime::MimeType;
use serde_json::json;
use std::io::Read;
use std::sync::Arc;

/// The content security policy for HTML and SVG: the content may use only styles, pictures and fonts that are inside
/// the artifact itself. The empty `sandbox` forbids scripts, forms, windows and downloads.
const MARKUP: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; \
                      media-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'";
/// The content security policy for a PDF. It has no `sandbox`, because browsers do not show a PDF in a sandbox. The PDF
/// viewer of the browser runs in its own process.
const PDF: &str = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; form-action 'none'; \
                   base-uri 'none'; frame-ancestors 'self'";
/// Maximum size in bytes of an HTML page or SVG picture that this route serves. A larger one can only be downloaded.
const LARGEST: u64 = 8 << 20;

pub(super) fn routes(routes: &mut Routes) {
    routes.add(Verb::Get, "/api/artifacts/{id}/page", "getPage", page, |operation| {
        operation
            .summary(
                "An HTML page, an SVG picture or a PDF for a frame: nothing in it runs or loads anything.",
            )
            .gives_content(200, "The page.", "*/*", json!({}))
            .refuses(&[404, 422])
    });
}

/// The two sorts of content that a frame can show: markup (HTML or SVG), and PDF. Each has its own content security
/// policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Markup,
    Pdf,
}

/// Returns the sort of an artifact, or `None` if a frame cannot show the artifact.
fn sort(mime_type: &MimeType, filename: Option<&str>) -> Option<Sort> {
    let essence = mime_type.essence();
    let end = filename.and_then(|name| name.rsplit_once('.')).map(|(_, end)| end.to_ascii_lowercase());
    match essence.as_str() {
        "application/pdf" => Some(Sort::Pdf),
        "text/html" | "application/xhtml+xml" | "image/svg+xml" => Some(Sort::Markup),
        other if other.starts_with("text/") => {
            matches!(end.as_deref(), Some("html" | "htm" | "xhtml" | "svg")).then_some(Sort::Markup)
        }
        _ => None,
    }
}

async fn page(State(shared): State<Arc<Shared>>, Named(name): Named) -> Result<Response, Problem> {
    let id = id(&name)?;
    let artifact = shared.society.artifact(&id).await?.ok_or_else(nothing)?;
    let refused = |why: &str| Problem::unprocessable("invalid_arguments", why, None);
    let mut response = match sort(&artifact.mime_type, artifact.filename.as_deref()) {
        None => return Err(refused("this artifact is no page")),
        Some(Sort::Markup) if artifact.size > LARGEST => {
            return Err(refused("this page is too large to show"));
        }
        Some(Sort::Markup) => {
            let file = opened(&shared, &id).await?;
            let read = tokio::task::spawn_blocking(move || bytes(file));
            let bytes = read.await.map_err(|_| Problem::defect())?.map_err(|error| {
                tracing::error!(%error, "an artifact cannot be read");
                Problem::defect()
            })?;
            let headers = [
                (header::CONTENT_TYPE, "text/html; charset=utf-8"),
                (header::CONTENT_SECURITY_POLICY, MARKUP),
            ];
            (headers, Body::from(disarmed(&String::from_utf8_lossy(&bytes)))).into_response()
        }
        Some(Sort::Pdf) => {
            let file = opened(&shared, &id).await?;
            let mut response =
                part(file, 0..=artifact.size.saturating_sub(1), artifact.size, StatusCode::OK).await?;
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, value("application/pdf".to_owned())?);
            headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PDF));
            response
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // A content security policy cannot stop a browser from looking up the host names of links in advance, but this
    // header can.
    headers.insert(HeaderName::from_static("x-dns-prefetch-control"), HeaderValue::from_static("off"));
    Ok(response)
}

fn bytes(file: std::fs::File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Renames `link` and `meta` elements, because the policy does not stop them from contacting a server: `link` can open
/// connections in advance, and `meta` can load another page.
fn disarmed(markup: &str) -> String {
    let mut safe = String::with_capacity(markup.len());
    let mut rest = markup;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at + 1);
        safe.push_str(before);
        let is_armed = |name: &str| {
            let begin = tag.as_bytes().get(..name.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(name.as_bytes()))
        };
        if is_armed("link") || is_armed("meta") {
            safe.push_str("x-");
        }
        rest = tag;
    }
    safe.push_str(rest);
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_frame_shows() {
        let check = |mime_type: &str, filename: Option<&str>, expect: Option<Sort>| {
            assert_eq!(sort(&MimeType::unchecked(mime_type), filename), expect, "{mime_type} {filename:?}");
        };
        check("text/html; charset=utf-16", None, Some(Sort::Markup));
        check("image/svg+xml", None, Some(Sort::Markup));
        check("application/pdf", Some("a.html"), Some(Sort::Pdf));
        check("text/plain", Some("a.HTM"), Some(Sort::Markup));
        check("text/plain", Some("html"), None);
        check("text/plain", None, None);
        check("application/octet-stream", Some("a.html"), None);
        check("image/png", Some("a.svg"), None);
    }

    #[test]
    fn elements_that_contact_servers_are_renamed() {
        let check = |markup: &str, expect: &str| assert_eq!(disarmed(markup), expect);
        check("<p>a<b", "<p>a<b");
        check("<LINK rel=preconnect href=//a>", "<x-LINK rel=preconnect href=//a>");
        check("<<link/><Meta>", "<<x-link/><x-Meta>");
        check("</link>", "</link>");
        check("<", "<");
        check("<链接>", "<链接>");
    }

    proptest! {
        #[test]
        fn no_such_element_is_left(markup in "(<|link|LINK|meta|x|/|é|\u{0})*") {
            let safe = disarmed(&markup).to_ascii_lowercase();
            prop_assert!(!safe.contains("<link") && !safe.contains("<meta"), "{safe:?}");
            prop_assert_eq!(safe.replace("<x-link", "<link").replace("<x-meta", "<meta"), markup.to_ascii_lowercase());
        }
    }
}
