//! Sends requests and follows their redirects, within a time limit.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use url::Url;

use crate::body;
use crate::error::Error;
use crate::hop::{Failed, Network, tls};
use crate::judge::{Refused, judge_url};
use crate::redirect::{Next, next};
use crate::request::{Request, Response, selected, text_of};
use crate::resolve::{Resolve, SystemResolver};
use crate::settings::Settings;
use crate::shown::shown_url;

/// The caller's own rules about URLs. The function returns `Err` if the rules forbid a URL. The error is the reason,
/// which the model reads.
pub type Permit = Arc<dyn Fn(&Url) -> Result<(), String> + Send + Sync>;

/// The caller's instructions for one request, page or search.
#[derive(Clone)]
pub struct Call {
    /// The caller cancels this token to end the call at once.
    pub cancel: CancellationToken,
    /// The caller's own rules. Both these rules and polity's own rules must allow the first URL and the URL of each
    /// redirect.
    pub permit: Permit,
}

impl Call {
    /// Makes instructions that permit all public addresses.
    pub fn new(cancel: CancellationToken) -> Self {
        Self { cancel, permit: Arc::new(|_| Ok(())) }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Call").field("cancel", &self.cancel).finish_non_exhaustive()
    }
}

/// Access to the web with one set of settings. No cookies, connections or answers are kept between requests. Copies
/// are cheap.
#[derive(Clone)]
pub struct Web {
    pub(crate) settings: Arc<Settings>,
    pub(crate) network: Arc<Network>,
}

impl Web {
    /// Creates a `Web` that uses the resolver of the operating system.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        Self::with_resolver(settings, Arc::new(SystemResolver))
    }

    /// Creates a `Web` that uses the caller's resolver. Polity judges the addresses from this resolver like all other
    /// addresses.
    pub fn with_resolver(settings: Settings, resolver: Arc<dyn Resolve>) -> Result<Self, Error> {
        let tls = tls().map_err(|error| Error::Setup { reason: shown_url(&error.to_string()) })?;
        let network = Network {
            resolver,
            tls,
            #[cfg(test)]
            stand_in: None,
        };
        Ok(Self { settings: Arc::new(settings), network: Arc::new(network) })
    }

    /// Returns a copy of this `Web` with other settings. The copy shares the root certificates, so they are not read
    /// again.
    #[must_use]
    pub fn with_settings(&self, settings: Settings) -> Self {
        Self { settings: Arc::new(settings), network: Arc::clone(&self.network) }
    }

    /// Returns the settings of this `Web`.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sends a request, follows its redirects, and returns the last answer, even if its status is an error.
    pub async fn request(&self, request: Request, call: &Call) -> Result<Response, Error> {
        self.bounded(call, self.follow(request, call)).await
    }

    /// Runs a piece of work. Fails if the time limit passes or the caller cancels the call.
    pub(crate) async fn bounded<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let limit_ms = self.settings.timeout_ms;
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(Error::Cancelled),
            done = tokio::time::timeout(Duration::from_millis(limit_ms), work) => {
                done.unwrap_or(Err(Error::TimedOut { limit_ms }))
            }
        }
    }

    /// Sends a request and follows its redirects. Judges the URL of each request that is sent.
    pub(crate) async fn follow(&self, first: Request, call: &Call) -> Result<Response, Error> {
        let limit = self.settings.max_redirects;
        let mut request = first;
        let mut redirects: Vec<Url> = Vec::new();
        let mut seen = HashSet::new();
        loop {
            // A fragment is not sent to the server, so two URLs that differ only in their fragments mean the same
            // request.
            request.url.set_fragment(None);
            let url = shown_url(request.url.as_str());
            if !seen.insert((request.method.clone(), request.url.clone())) {
                return Err(Error::RedirectCircle { url });
            }
            if redirects.len() as u64 > u64::from(limit) {
                return Err(Error::TooManyRedirects { limit, url });
            }
            let target = judge_url(&request.url, &self.settings)
                .map_err(|refused| refused_at(&redirects, &request, refused))?;
            (call.permit)(&request.url).map_err(|reason| Error::NotPermitted { url, reason })?;
            let sent = self.network.send(&request, &target, &self.settings).await;
            let answer = sent.map_err(|failed| match failed {
                Failed::Refused(refused) => refused_at(&redirects, &request, refused),
                Failed::Other(error) => error,
            })?;
            let status = answer.response.status();
            match next(&request, status, answer.response.headers())? {
                Next::Follow(following) => redirects.push(std::mem::replace(&mut request, *following).url),
                Next::Done => {
                    let headers = selected(answer.response.headers());
                    let content_type = answer
                        .response
                        .headers()
                        .get(http::header::CONTENT_TYPE)
                        .map(|value| text_of(value, 200));
                    let body = body::read(answer, self.settings.max_bytes).await?;
                    let final_url = request.url;
                    return Ok(Response {
                        status: status.as_u16(),
                        final_url,
                        headers,
                        content_type,
                        body,
                        redirects,
                    });
                }
            }
        }
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Web").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn refused_at(redirects: &[Url], request: &Request, refused: Refused) -> Error {
    match redirects.last() {
        None => Error::Refused(refused),
        Some(from) => Error::RefusedRedirect {
            from: shown_url(from.as_str()),
            to: shown_url(request.url.as_str()),
            refused,
        },
    }
}

#[cfg(test)]
mod tests;
