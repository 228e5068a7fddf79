//! The login form: the answer to a browser without a session.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

const FORM_POLICY: &str = "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Whether the form reports a failed attempt.
#[derive(Clone, Copy)]
pub(crate) enum Attempt {
    /// The browser has not tried to log in yet.
    None,
    /// The token or the ticket was wrong or expired.
    Wrong,
}

/// Builds the login form, the answer to a browser without a session.
pub(crate) fn form(attempt: Attempt) -> Response {
    let said = match attempt {
        Attempt::None => "",
        Attempt::Wrong => "<p role=\"alert\">That was wrong, or it has expired. 不对，或者已过期。</p>\n",
    };
    let page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>polity</title>\n</head>\n<body>\n<h1>polity</h1>\n{said}\
         <p>Type <code>polity view</code> in a terminal, or give the token: it is in the file <code>token</code> of the \
         data directory.</p>\n\
         <p lang=\"zh\">在终端输入 <code>polity view</code>，或填写令牌：它在数据目录的 <code>token</code> 文件里。</p>\n\
         <form method=\"post\" action=\"/login\">\n<label>Token 令牌 \
         <input type=\"password\" name=\"token\" autocomplete=\"current-password\" required autofocus></label>\n\
         <button>Open 打开</button>\n</form>\n</body>\n</html>\n"
    );
    let mut response = (StatusCode::UNAUTHORIZED, Html(page)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FORM_POLICY));
    response
}
