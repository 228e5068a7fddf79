//! The login of a browser: by a form that takes the token, or by a ticket from `polity view`. In both cases, the
//! browser gets a cookie.

use crate::guard::{Guard, LARGEST_OF_STRANGERS};
use crate::login_form::{Attempt, form};
use crate::openapi::{Access, Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use axum::Json;
use axum::extract::{DefaultBodyLimit, Form, FromRequest, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::time::Instant;

/// Lifetime of the cookie in the browser: a year.
const COOKIE_SECONDS: u32 = 365 * 24 * 60 * 60;

#[derive(Deserialize, JsonSchema)]
struct LoginForm {
    /// The token in the data directory.
    #[serde(default)]
    token: String,
}

#[derive(Deserialize, JsonSchema)]
struct LoginQuery {
    /// The ticket that `POST /api/session` returned.
    #[serde(default)]
    ticket: Option<String>,
}

/// An address at which a browser can log in without the token.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Session")]
struct Session {
    /// An address that opens the live view. It works only once, and only within a minute.
    url: String,
}

pub(crate) fn routes(routes: &mut Routes) {
    let html = || json!({"type": "string"});
    routes.add(Verb::Get, "/login", "loginByTicket", by_ticket, |operation| {
        operation
            .summary("Turns a ticket into a session.")
            .access(Access::Anybody)
            .query::<LoginQuery>()
            .gives_nothing(303, "The ticket was valid; go to the page.")
            .gives_content(401, "The ticket is not valid; a form for the token.", "text/html", html())
            .refuses(&[403, 500])
    });
    routes.add(Verb::Post, "/login", "loginByToken", by_token, |operation| {
        let schema =
            json!({"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}});
        operation
            .summary("Turns the token into a session.")
            .access(Access::Anybody)
            .takes_content("application/x-www-form-urlencoded", schema)
            .gives_nothing(303, "The token was right; go to the page.")
            .gives_content(401, "The token was wrong; the form again.", "text/html", html())
            .refuses(&[403, 413, 500])
    });
    routes.add(Verb::Post, "/api/session", "openSession", open, |operation| {
        operation
            .summary("Returns an address that opens the page once, within a minute, without the token.")
            .gives::<Session>(200, "The address.")
    });
}

async fn by_ticket(
    State(shared): State<Arc<Shared>>,
    method: Method,
    headers: HeaderMap,
    query: Result<Query<LoginQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let guard = guard(&shared)?;
    let ticket = query.ok().and_then(|Query(query)| query.ticket);
    match ticket {
        // Link previews send HEAD before the person opens the address; a HEAD request must not use up the ticket.
        Some(_) if method == Method::HEAD => Ok(form(Attempt::None)),
        Some(ticket) if guard.tickets.redeem(&ticket, Instant::now()) => welcome(guard, &headers),
        Some(_) => Ok(form(Attempt::Wrong)),
        None => Ok(form(Attempt::None)),
    }
}

async fn by_token(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    mut request: Request,
) -> Result<Response, Problem> {
    let guard = guard(&shared)?;
    DefaultBodyLimit::max(LARGEST_OF_STRANGERS).apply(&mut request);
    match Form::<LoginForm>::from_request(request, &()).await {
        Ok(Form(given)) if guard.token().is(given.token.trim()) => welcome(guard, &headers),
        Ok(_) | Err(_) => Ok(form(Attempt::Wrong)),
    }
}

/// Returns the guard. A process that serves no browsers has no guard; the result is then a problem.
fn guard(shared: &Shared) -> Result<&Guard, Problem> {
    shared.guard.as_deref().ok_or_else(|| Problem::not_found("this process serves no browsers"))
}

/// Redirects the browser to the page and sets the cookie.
fn welcome(guard: &Guard, headers: &HeaderMap) -> Result<Response, Problem> {
    let (name, value) = (guard.cookie_name(), guard.token().session());
    let secure = secure(headers);
    let cookie =
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={COOKIE_SECONDS}{secure}");
    let cookie = HeaderValue::try_from(cookie).map_err(|_| Problem::defect())?;
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, "/")]).into_response();
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Returns the cookie attribute `Secure` if the page came over TLS. With this attribute, the browser never sends the
/// cookie without TLS. The function trusts the header `Origin`, because the guard has checked it. It ignores the
/// headers of proxies, because anybody could forge them.
fn secure(headers: &HeaderMap) -> &'static str {
    match headers.get(header::ORIGIN) {
        Some(origin) if origin.as_bytes().starts_with(b"https://") => "; Secure",
        Some(_) | None => "",
    }
}

async fn open(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Json<Session>, Problem> {
    let ticket = guard(&shared)?.tickets.issue(Instant::now()).map_err(|error| {
        tracing::error!(%error, "the system returned no random bytes");
        Problem::defect()
    })?;
    // The guard has checked that the host is a name of this daemon, so the address may contain it.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).ok_or_else(Problem::defect)?;
    Ok(Json(Session { url: format!("http://{host}/login?ticket={ticket}") }))
}
