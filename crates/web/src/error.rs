//! The errors of requests to the web. Models read the texts, so each text says what to do.

use crate::judge::Refused;

/// Why a request got no response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not a URL.
    #[error("`{url}` is not a web address ({reason}): write it in full, such as https://example.org/page")]
    NotAUrl {
        /// The text that the caller gave.
        url: String,
        /// The reason that the parser gives.
        reason: String,
    },
    /// The method is unknown, or tools may not use the method.
    #[error("the method `{method}` is not available: use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS")]
    Method {
        /// The text that the caller gave.
        method: String,
    },
    /// The request sets a header that only polity may set.
    #[error("the header `{name}` cannot be set, because polity sets it itself: send the request without it")]
    ForbiddenHeader {
        /// The name of the header.
        name: String,
    },
    /// The name or the value of a header is invalid, or the headers together are too large.
    #[error("the header `{name}` cannot be sent: {reason}")]
    BadHeader {
        /// The name of the header.
        name: String,
        /// The problem with the header.
        reason: &'static str,
    },
    /// Polity refuses to request the URL.
    #[error("{0}")]
    Refused(Refused),
    /// The server redirects to a URL that polity refuses to request.
    #[error("`{from}` redirects to `{to}`, which is refused: {refused}")]
    RefusedRedirect {
        /// The URL that redirects.
        from: String,
        /// The URL to which the server redirects.
        to: String,
        /// Why polity refuses to request the second URL.
        refused: Refused,
    },
    /// The caller's rules do not permit this URL.
    #[error("going to `{url}` is not permitted: {reason}")]
    NotPermitted {
        /// The URL that was asked for.
        url: String,
        /// The reason that the caller gives.
        reason: String,
    },
    /// The server redirects a request to another origin, and the request changes something, as a POST does.
    #[error(
        "the server redirects this {method} to another origin, `{to}`; polity does not send data on by itself: send \
         the {method} to that address if you trust it"
    )]
    ChangeRedirected {
        /// The method of the request.
        method: String,
        /// The URL to which the server redirects.
        to: String,
    },
    /// The address of a redirect cannot be read.
    #[error("the server redirects to `{location}`, which is not an address: try another page of this site")]
    BadRedirect {
        /// The header `Location`.
        location: String,
    },
    /// A redirect leads to a URL that was requested before.
    #[error(
        "the redirects of this page lead in a circle at `{url}`; perhaps the site wants cookies, which polity does not \
         keep: try another page or source"
    )]
    RedirectCircle {
        /// The URL that would be requested a second time.
        url: String,
    },
    /// There were too many redirects.
    #[error("gave up after {limit} redirects, the last one to `{url}`: try that address or another source")]
    TooManyRedirects {
        /// `tools.web.maxRedirects`.
        limit: u32,
        /// The URL to which the last redirect led.
        url: String,
    },
    /// The host name has no address.
    #[error(
        "found no address for `{host}` ({reason}): check the spelling of the name, or try another source"
    )]
    Unresolved {
        /// The host name.
        host: String,
        /// The reason that the resolver gives.
        reason: String,
    },
    /// Polity could not connect to the server, or could not set up an encrypted connection.
    #[error(
        "failed to connect to `{host}` ({reason}): the server may be down; try later or use another source"
    )]
    Unreachable {
        /// The host.
        host: String,
        /// The cause of the failure.
        reason: String,
    },
    /// The connection broke, or the server's answer was not HTTP.
    #[error(
        "the answer of `{host}` broke off or cannot be read ({reason}): try again once, or use another source"
    )]
    Broken {
        /// The host.
        host: String,
        /// The cause of the failure.
        reason: String,
    },
    /// The body is compressed in an encoding that polity does not know.
    #[error(
        "`{host}` sent a body in the encoding `{encoding}`, which polity does not know: use another source"
    )]
    Encoding {
        /// The host.
        host: String,
        /// The header `Content-Encoding`.
        encoding: String,
    },
    /// The headers are too large.
    #[error("the headers of the answer of `{host}` are larger than {limit} bytes: use another source")]
    HeadersTooLarge {
        /// The host.
        host: String,
        /// The largest size in bytes.
        limit: usize,
    },
    /// The body is too large.
    #[error(
        "the answer of `{host}` is larger than {limit} bytes, the limit tools.web.maxBytes: ask for a smaller part of \
         it, with a Range header or another address"
    )]
    TooLarge {
        /// The host.
        host: String,
        /// `tools.web.maxBytes`.
        limit: u64,
    },
    /// The server sent nothing for a long time.
    #[error("`{host}` sent nothing for {seconds} seconds: try later or use another source")]
    Stalled {
        /// The host.
        host: String,
        /// How long polity waited.
        seconds: u64,
    },
    /// The whole request took too long.
    #[error(
        "not finished after {limit_ms} ms, the limit tools.web.timeoutMs: try again later, ask for less, or use \
         another source"
    )]
    TimedOut {
        /// `tools.web.timeoutMs`.
        limit_ms: u64,
    },
    /// The caller cancelled the request.
    #[error("cancelled before the answer was complete")]
    Cancelled,
    /// The settings name no search provider.
    #[error("no search provider is set up: ask the user to set tools.web.search in app.json")]
    NoSearch,
    /// The query of a search is empty or too long.
    #[error("the search query must have 1 to {longest} characters")]
    BadQuery {
        /// The longest query in characters.
        longest: usize,
    },
    /// The search provider did not answer with results.
    #[error("the search at {provider} failed: {reason}")]
    Search {
        /// The name of the provider.
        provider: &'static str,
        /// What went wrong and what to do.
        reason: String,
    },
    /// The conversion of a page to Markdown failed inside polity.
    #[error("polity failed to convert the page: get it with http_request instead")]
    Conversion,
    /// The HTTP library could not be set up.
    #[error(
        "polity failed to set up its HTTP client ({reason}): this is a fault of the installation, tell the user"
    )]
    Setup {
        /// The reason that the library gives.
        reason: String,
    },
}
