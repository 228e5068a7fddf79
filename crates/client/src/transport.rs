//! Sends one request to the current daemon or to the API in this process, and decides about retries.

use crate::error::{Error, Loss, problem};
use crate::in_process::InProcess;
use crate::place::{self, Door, FindError};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response};
use serde::de::DeserializeOwned;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use url::Url;

/// Time limit for connecting. The limit is short because the daemon runs on this machine.
const CONNECT: Duration = Duration::from_secs(5);
/// Longest pause between two pieces of an answer.
const SILENCE: Duration = Duration::from_secs(60);
/// Maximum number of attempts of a request with [`Patience::Short`] whose connection breaks again and again. All
/// attempts together take a few seconds, which is enough for a restart of the daemon.
const ATTEMPTS: u32 = 6;
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Longest answer that the client parses as JSON, in bytes.
const LONGEST_ANSWER: usize = 256 * 1024 * 1024;

/// How long a request waits for a daemon if none is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// Retry for some seconds only, then report the failure.
    Short,
    /// Wait for the next daemon.
    UntilBack,
}

/// Tells the person that the client has no connection. Says it once, until a stream of events is connected again.
#[derive(Clone)]
pub(crate) struct Absence {
    tell: Arc<dyn Fn(Loss) + Send + Sync>,
    was_told: Arc<AtomicBool>,
}

impl Absence {
    pub(crate) fn new(tell: impl Fn(Loss) + Send + Sync + 'static) -> Self {
        Self { tell: Arc::new(tell), was_told: Arc::default() }
    }

    /// Notes that there is no connection.
    pub(crate) fn begins(&self, loss: Loss) {
        if !self.was_told.swap(true, Ordering::Relaxed) {
            (self.tell)(loss);
        }
    }

    /// Notes that there is a connection again.
    pub(crate) fn ends(&self) {
        self.was_told.store(false, Ordering::Relaxed);
    }
}

/// A request before it has an address and a token.
#[derive(Clone, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: Method,
    /// The segments of the path. The client percent-encodes each segment, so that no character of a segment can
    /// change the path.
    pub(crate) path: &'a [&'a str],
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(method: Method, path: &'a [&'a str]) -> Self {
        Self { method, path, query: Vec::new(), headers: HeaderMap::new(), body: None }
    }

    pub(crate) fn query(self, query: Vec<(String, String)>) -> Self {
        Self { query, ..self }
    }
}

/// The receiver of requests.
#[derive(Clone)]
enum To {
    /// A daemon, which gets the requests over HTTP. It is the daemon that serves this data directory when the request
    /// is sent.
    Daemon(Arc<Path>),
    /// The API in this process.
    InProcess(InProcess),
}

/// The way to the API: the receiver of requests, and the HTTP client that sends them.
#[derive(Clone)]
pub(crate) struct Transport {
    to: To,
    http: reqwest::Client,
    pub(crate) patience: Patience,
    /// Whom to tell that a request waits for the next daemon.
    pub(crate) absence: Option<Absence>,
}

impl Transport {
    pub(crate) fn to_daemon(data: &Path) -> Result<Self, Error> {
        Self::new(To::Daemon(data.into()))
    }

    pub(crate) fn in_process(routes: InProcess) -> Result<Self, Error> {
        Self::new(To::InProcess(routes))
    }

    fn new(to: To) -> Result<Self, Error> {
        // The HTTP library requires a cryptography provider even if no request uses TLS. The call fails only if a
        // provider is already installed.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = http(reqwest::Client::builder().read_timeout(SILENCE))?;
        Ok(Self { to, http, patience: Patience::Short, absence: None })
    }

    /// Returns whether requests stay in this process.
    pub(crate) fn is_in_process(&self) -> bool {
        matches!(self.to, To::InProcess(_))
    }

    /// Says why there is no connection, after an error that may pass.
    pub(crate) fn loss(&self, error: &Error) -> Loss {
        if error.is_of_absence() && !self.is_in_process() { Loss::Gone } else { Loss::Unreadable }
    }

    /// Returns a copy that waits for answers without a time limit.
    pub(crate) fn unhurried(&self) -> Result<Self, Error> {
        Ok(Self { http: http(reqwest::Client::builder())?, ..self.clone() })
    }

    /// Sends a request that is safe to repeat, and parses the answer. After a failed attempt, [`pause`] decides whether
    /// to try again.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<T, Error> {
        let mut attempt = 1;
        let mut lost = None;
        loop {
            let error = match self.attempt(asked).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let way = if lost.is_some() { Way::BrokeBefore } else { Way::New };
            let Some(pause) = pause(&error, attempt, self.patience, way) else {
                return Err(to_tell(lost, error));
            };
            tracing::debug!(%error, attempt, "asking the daemon again");
            // A single failure may be a connection that broke by chance.
            if let Some(absence) = self.absence.as_ref().filter(|_| attempt > 1 && error.is_of_absence()) {
                absence.begins(self.loss(&error));
            }
            if matches!(error, Error::Lost { .. }) {
                lost = Some(error);
            }
            tokio::time::sleep(pause).await;
            attempt = attempt.saturating_add(1);
        }
    }

    async fn attempt<T: DeserializeOwned>(&self, asked: &Asked<'_>) -> Result<T, Error> {
        let door = self.door()?;
        let response = self.send(&door, self.request(&door, asked)?).await?;
        let body = self.body(&door, response).await?;
        // Some routes answer with an empty body, which is not valid JSON.
        let body: &[u8] = if body.is_empty() { b"null" } else { &body };
        serde_json::from_slice(body)
            .map_err(|error| Error::Unreadable { url: door.url.to_string(), reason: error.to_string() })
    }

    /// Finds the current address and token of the daemon.
    pub(crate) fn door(&self) -> Result<Door, Error> {
        match &self.to {
            To::Daemon(data) => Ok(place::find(data)?),
            To::InProcess(_) => Door::in_process().map_err(|error| Error::Setup(error.to_string())),
        }
    }

    /// Builds a request that the caller may extend.
    pub(crate) fn request(&self, door: &Door, asked: &Asked<'_>) -> Result<reqwest::RequestBuilder, Error> {
        if asked.path.iter().any(|part| matches!(*part, "" | "." | "..")) {
            // An empty segment, `.` or `..` would change the path of the URL. No id is such a segment.
            return Err(Error::NoId);
        }
        let url = url(&door.url, asked.path, &asked.query);
        let mut request = self.http.request(asked.method.clone(), url).headers(asked.headers.clone());
        if let Some(token) = &door.token {
            let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|error| Error::Setup(error.to_string()))?;
            authorization.set_sensitive(true);
            request = request.header(AUTHORIZATION, authorization);
        }
        if !asked.headers.contains_key(ACCEPT) {
            request = request.header(ACCEPT, "application/json, application/problem+json");
        }
        Ok(match &asked.body {
            Some(body) => request.body(body.clone()),
            None => request,
        })
    }

    /// Sends a request. If the status of the response is not a success, returns an error.
    pub(crate) async fn send(
        &self,
        door: &Door,
        request: reqwest::RequestBuilder,
    ) -> Result<Response, Error> {
        let response = self.exchange(door, request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.refused(door, response).await)
    }

    /// Sends a request and returns the response, whatever its status is. The body has not been read yet.
    pub(crate) async fn exchange(
        &self,
        door: &Door,
        request: reqwest::RequestBuilder,
    ) -> Result<Response, Error> {
        let answered = match &self.to {
            To::Daemon(_) => request.send().await,
            To::InProcess(routes) => routes.answer(request.build().map_err(unmade)?).await,
        };
        answered.map_err(|error| self.broken(door, &error))
    }

    /// Turns a response without success into an error.
    pub(crate) async fn refused(&self, door: &Door, response: Response) -> Error {
        let status = response.status().as_u16();
        match self.body(door, response).await {
            Ok(body) => Error::Refused(Box::new(problem(status, &body))),
            Err(error) => error,
        }
    }

    async fn body(&self, door: &Door, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(door, &error))? {
            if body.len() + chunk.len() > LONGEST_ANSWER {
                let reason = format!("it is longer than {LONGEST_ANSWER} bytes");
                return Err(Error::Unreadable { url: door.url.to_string(), reason });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Interprets the failure of a request that got no complete response.
    pub(crate) fn broken(&self, door: &Door, error: &reqwest::Error) -> Error {
        if let To::Daemon(data) = &self.to
            && error.is_connect()
        {
            // No program accepts connections at the address in the files, so the daemon that wrote the files no
            // longer listens.
            return FindError::NotServing(data.to_path_buf()).into();
        }
        Error::Lost { url: door.url.to_string(), reason: causes(error) }
    }
}

/// Reports that a request could not be built.
fn unmade(error: reqwest::Error) -> Error {
    Error::Setup(causes(&error))
}

fn http(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, Error> {
    let built = builder
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        // The daemon speaks plain HTTP on this machine; loading the system's certificates would only cost time.
        .tls_certs_only([])
        .user_agent(concat!("polity/", env!("CARGO_PKG_VERSION")))
        .build();
    built.map_err(|error| Error::Setup(error.to_string()))
}

/// Chooses the error to report after the last attempt. If the connection broke in an earlier attempt, the daemon may
/// have received the request. So the broken connection is reported even if no daemon is running now.
fn to_tell(lost: Option<Error>, last: Error) -> Error {
    match lost {
        Some(lost) if last.may_pass() => lost,
        Some(_) | None => last,
    }
}

/// Whether the connection broke during an earlier attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The connection has not broken so far.
    New,
    /// The connection broke before. The daemon may be restarting.
    BrokeBefore,
}

/// Returns the pause before the next attempt; `None` if there should be no further attempt.
pub(crate) fn pause(error: &Error, attempts: u32, patience: Patience, way: Way) -> Option<Duration> {
    let again = match patience {
        Patience::UntilBack => error.may_pass(),
        Patience::Short => {
            let broke = matches!(error, Error::Lost { .. }) || way == Way::BrokeBefore && error.may_pass();
            broke && attempts < ATTEMPTS
        }
    };
    let doublings = attempts.saturating_sub(1).min(8);
    again.then(|| SHORTEST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE))
}

/// Builds the address of a route.
fn url(base: &Url, path: &[&str], query: &[(String, String)]) -> Url {
    let mut url = base.clone();
    // Fails only for an address that cannot have a path, such as `mailto:`. A daemon has an `http:` address.
    if let Ok(mut segments) = url.path_segments_mut() {
        segments.pop_if_empty().extend(path);
    }
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    url
}

/// Returns the texts of an error and of all its causes. An error of the HTTP library itself displays only its own text.
fn causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lost() -> Error {
        Error::Lost { url: String::new(), reason: String::new() }
    }

    fn refused(status: u16) -> Error {
        Error::Refused(Box::new(problem(status, b"")))
    }

    #[test]
    fn a_daemon_that_refuses_has_not_gone() {
        let daemon = Transport::to_daemon(Path::new("data")).unwrap();
        let routes = InProcess::new(axum::Router::new());
        let here = Transport::in_process(routes).unwrap();
        let gone = Error::Find(FindError::NotServing("data".into()));
        assert_eq!(daemon.loss(&gone), Loss::Gone);
        assert_eq!(daemon.loss(&lost()), Loss::Gone);
        assert_eq!(daemon.loss(&refused(503)), Loss::Unreadable);
        assert_eq!(here.loss(&lost()), Loss::Unreadable);
        assert_eq!(here.loss(&refused(503)), Loss::Unreadable);
    }

    #[test]
    fn who_tries_again() {
        let check = |error: Error, attempts, patience, expect: Option<u64>| {
            let waits = pause(&error, attempts, patience, Way::New);
            assert_eq!(waits, expect.map(Duration::from_millis), "{error}");
        };
        let gone = || Error::Find(FindError::NotServing("data".into()));
        check(lost(), 1, Patience::Short, Some(100));
        check(lost(), 2, Patience::Short, Some(200));
        check(lost(), 5, Patience::Short, Some(1000));
        check(lost(), 6, Patience::Short, None);
        check(gone(), 1, Patience::Short, None);
        check(refused(503), 1, Patience::Short, None);
        check(gone(), 1, Patience::UntilBack, Some(100));
        check(lost(), 40, Patience::UntilBack, Some(1000));
        check(lost(), u32::MAX, Patience::UntilBack, Some(1000));
        check(refused(503), 1, Patience::UntilBack, Some(100));
        check(refused(404), 1, Patience::UntilBack, None);
        check(refused(500), 1, Patience::UntilBack, None);
    }

    #[test]
    fn who_tries_again_after_the_way_broke() {
        let check = |error: Error, attempts, expect: Option<u64>| {
            let waits = pause(&error, attempts, Patience::Short, Way::BrokeBefore);
            assert_eq!(waits, expect.map(Duration::from_millis), "{error}");
        };
        let gone = || Error::Find(FindError::NotServing("data".into()));
        check(gone(), 2, Some(200));
        check(gone(), 6, None);
        check(refused(503), 2, Some(200));
        check(refused(409), 2, None);
    }

    #[test]
    fn what_may_have_been_heard_is_not_called_unserved() {
        let check = |lost: Option<Error>, error: Error, expect: &str| {
            assert_eq!(to_tell(lost, error).to_string(), expect);
        };
        let gone = || Error::Find(FindError::NotServing("data".into()));
        check(None, gone(), &gone().to_string());
        check(Some(lost()), gone(), &lost().to_string());
        check(Some(lost()), refused(503), &lost().to_string());
        // The daemon has answered the last attempt, so its answer is reported instead of the broken connection.
        check(Some(lost()), refused(409), &refused(409).to_string());
    }

    proptest! {
        #[test]
        fn no_part_of_a_path_leads_elsewhere(part in any::<String>(), value in any::<String>()) {
            prop_assume!(!matches!(part.as_str(), "." | ".."));
            let base = Url::parse("http://127.0.0.1:7717").unwrap();
            let url = url(&base, &["api", "agents", &part, "contacts"], &[("task".to_owned(), value.clone())]);
            prop_assert_eq!(url.host_str(), Some("127.0.0.1"));
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 4);
            prop_assert_eq!((segments[0], segments[1], segments[3]), ("api", "agents", "contacts"));
            let query: Vec<_> = url.query_pairs().into_owned().collect();
            prop_assert_eq!(query, [("task".to_owned(), value)]);
        }
    }
}
