//! The login form: the answer to a browser without a session.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

/// The content security policy of the form. It allows only the style [`STYLE`], and contains the hash of this style. A
/// test compares the hash with the style.
const FORM_POLICY: &str = "default-src 'none'; style-src 'sha256-Yyi1iU3QV01ExvBXyCPdYitHNEFXC2I4lmzn5Qu8b40='; \
                           form-action 'self'; frame-ancestors 'none'; base-uri 'none'";
/// The style of the page. It is part of the page, because a browser without a session gets no other file.
const STYLE: &str = ":root{color-scheme:light dark}body{margin:0;min-height:100vh;display:grid;place-items:center;font:16px/1.5 system-ui,sans-serif}main{max-width:30rem;padding:1.5rem}h1{margin:0 0 .5rem}code{padding:.1em .35em;border-radius:4px;background:#8883}form{display:flex;flex-wrap:wrap;gap:.5rem;margin-top:1.25rem}label{flex:1 1 14rem}input{box-sizing:border-box;width:100%;padding:.5rem;font:inherit;border:1px solid #8888;border-radius:6px}button{align-self:end;padding:.55rem 1rem;font:inherit;border:0;border-radius:6px;background:#2a6fdb;color:#fff;cursor:pointer}[role=alert]{color:#d33;font-weight:600}";

/// Whether the form reports a failed attempt.
#[derive(Clone, Copy)]
pub(crate) enum Attempt {
    /// The browser has not tried to log in yet.
    None,
    /// The token was wrong, or the ticket was wrong or has expired.
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
         <title>polity</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>polity</h1>\n{said}\
         <p>Welcome! A society of LLM agents works on this machine. To see it, type <code>polity view</code> in a \
         terminal and open the address that it prints, or give the token: it is in the file <code>token</code> of the \
         data directory, which <code>polity serve</code> names when it starts.</p>\n\
         <p lang=\"zh\">欢迎！这台机器上运行着一个智能体社会。要查看它，请在终端输入 <code>polity view</code> 并打开它给出的地址，\
         或填写令牌：它在数据目录的 <code>token</code> 文件里，<code>polity serve</code> 启动时会显示这个目录。</p>\n\
         <form method=\"post\" action=\"/login\">\n<label>Token 令牌 \
         <input type=\"password\" name=\"token\" autocomplete=\"current-password\" required autofocus></label>\n\
         <button>Open 打开</button>\n</form>\n</main>\n</body>\n</html>\n"
    );
    let mut response = (StatusCode::UNAUTHORIZED, Html(page)).into_response();
    let headers = response.headers_mut();
    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FORM_POLICY));
    response
}
