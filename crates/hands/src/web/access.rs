//! Sends requests under the current settings, and turns failed requests into refusals.

use crate::arguments::{Argued, text_of};
use crate::call::{Arguments, Invocation};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_web::{Call, Error, Settings, Web};
use std::sync::{Arc, OnceLock};
use url::Url;

/// The origin of a result tells the model where a text comes from. It contains at most this many characters of the
/// address.
const ORIGIN_CHARS: usize = 300;

/// Returns the current settings of the web tools.
pub type WebSettings = Arc<dyn Fn() -> Settings + Send + Sync>;

/// Makes web clients. Each client has the settings of the time when it is made.
pub(super) struct Access {
    settings: WebSettings,
    /// Making a client reads the root certificates of the machine. So only the first call makes this client, and later
    /// calls use it again.
    web: OnceLock<Web>,
}

impl Access {
    pub(super) fn new(settings: WebSettings) -> Self {
        Self { settings, web: OnceLock::new() }
    }

    /// Returns a client with the current settings.
    pub(super) fn web(&self) -> Result<Web, Error> {
        let settings = (self.settings)();
        match self.web.get() {
            Some(web) => Ok(web.with_settings(settings)),
            None => {
                let made = Web::new(settings)?;
                Ok(self.web.get_or_init(|| made).clone())
            }
        }
    }
}

/// The argument that holds the address of a request.
pub(super) const URL: &str = "url";

/// Returns the host in the argument `url`; `None` if the address cannot be parsed.
pub(super) fn host_in<T: Argued>(arguments: &Arguments) -> Option<String> {
    let url = text_of::<T>(arguments, URL)?;
    Url::parse(url.trim()).ok()?.host_str().map(str::to_owned)
}

/// Returns the options for one web call. The call ends when its invocation is cancelled. A redirect may lead only to
/// hosts that the call may reach.
pub(super) fn call(invocation: &Invocation) -> Call {
    let hosts = invocation.hosts.clone();
    let permit = Arc::new(move |url: &Url| hosts.check(url.host_str().unwrap_or_default()));
    Call { permit, ..Call::new(invocation.cancel.clone()) }
}

/// Turns the error of a request that got no answer into a refusal.
pub(super) fn refusal(tool: &'static str, error: &Error) -> Refusal {
    let argument = match error {
        Error::NotAUrl { .. } => URL,
        Error::Method { .. } => "method",
        Error::ForbiddenHeader { .. } | Error::BadHeader { .. } => "headers",
        Error::BadQuery { .. } => "query",
        Error::Refused(_)
        | Error::RefusedRedirect { .. }
        | Error::NotPermitted { .. }
        | Error::ChangeRedirected { .. }
        | Error::BadRedirect { .. }
        | Error::RedirectCircle { .. }
        | Error::TooManyRedirects { .. }
        | Error::Unresolved { .. }
        | Error::Unreachable { .. }
        | Error::Broken { .. }
        | Error::Encoding { .. }
        | Error::HeadersTooLarge { .. }
        | Error::TooLarge { .. }
        | Error::Stalled { .. }
        | Error::TimedOut { .. }
        | Error::Cancelled
        | Error::NoSearch
        | Error::Search { .. }
        | Error::Conversion
        | Error::Setup { .. } => {
            return Refusal::ToolFailed { tool: tool.to_owned(), reason: error.to_string() };
        }
    };
    Refusal::InvalidArguments(vec![FieldProblem::new(argument, Fault::Rule(error.to_string()))])
}

/// Returns the origin of a result: the address, cut to a maximum length. If the HTTP status is not a success, the
/// origin also contains the status.
pub(super) fn origin(url: &str, status: u16) -> String {
    let mut origin: String = url.chars().take(ORIGIN_CHARS).collect();
    if origin.len() < url.len() {
        origin.push('…');
    }
    if !(200..300).contains(&status) {
        origin.push_str(&format!(", status {status}"));
    }
    origin
}
