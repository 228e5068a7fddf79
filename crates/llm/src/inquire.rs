//! Asks a server about itself, without a chat call: which models the server has, and what its models can do.

use crate::chat::{CallError, FailureKind};
use crate::classify::{Failure, classify, not_an_answer};
use crate::client::{Roots, SetupError, http_client};
use crate::endpoint::Endpoint;
use crate::network::network_error;
use crate::scrub::scrub;
use crate::target::{Target, misconfigured};
use polity_bounds::{Budget, Full, Weigher};
use secrecy::SecretString;
use serde_json::Value;
use std::time::Duration;

/// Longest answer, in bytes. This is enough, because the longest lists of models have about a megabyte.
const MAX_ANSWER: usize = 8 * 1024 * 1024;
/// Maximum memory that the parsed JSON of an answer may take, in bytes. The memory is not measured but estimated. This is
/// enough for a list of hundreds of models with all their properties.
const MAX_PARSED: usize = 32 * 1024 * 1024;
/// Maximum memory for all answers that arrive at the same time, in bytes, if the inquirer has a budget of its own.
const ALL_ANSWERS: usize = 8 * MAX_PARSED;
/// How long an answer waits for memory that other answers use.
const MEMORY_WITHIN: Duration = Duration::from_secs(10);

/// A question to a server about itself.
#[derive(Clone, Copy, Debug)]
pub enum Question<'q> {
    /// A GET of a path below the base URL, such as `models`.
    OfBase(&'q str),
    /// A GET of a path in the server's own API. With the base URL `http://host/v1`, the path `props` means
    /// `http://host/props`.
    OfServer(&'q str),
    /// A POST of a JSON body to a path in the server's own API.
    OfServerAbout(&'q str, &'q Value),
}

impl Question<'_> {
    fn path(&self) -> &str {
        match self {
            Self::OfBase(path) | Self::OfServer(path) | Self::OfServerAbout(path, _) => path,
        }
    }
}

/// Asks servers about themselves, with one attempt per question. A question has the same key and headers as a chat
/// call, and goes to the same host.
#[derive(Clone, Debug)]
pub struct Inquirer {
    client: reqwest::Client,
    /// The memory for all answers that arrive at the same time.
    answers: Budget,
}

impl Inquirer {
    /// Sets up the client. `connect` limits the time for making a connection.
    ///
    /// # Errors
    ///
    /// Fails if the system's TLS cannot be set up.
    pub fn new(connect: Duration) -> Result<Self, SetupError> {
        Ok(Self::with(http_client(connect, Roots::Machine)?, Budget::new(ALL_ANSWERS)))
    }

    /// Creates an inquirer that uses the connections of an existing client and the memory of an existing budget.
    pub(crate) fn with(client: reqwest::Client, answers: Budget) -> Self {
        Self { client, answers }
    }

    /// Asks a question and returns the JSON of the answer. `budget` limits the time for the whole exchange.
    ///
    /// # Errors
    ///
    /// Fails if no server answers in time, or if the answer has a failing status, is not JSON, is longer than 8 MiB, or
    /// would take too much memory once it is parsed.
    pub async fn ask(
        &self,
        endpoint: &Endpoint,
        question: Question<'_>,
        budget: Duration,
    ) -> Result<Value, CallError> {
        let target = Target::resolve(endpoint, |name| std::env::var(name).ok())?;
        let asked = tokio::time::timeout(budget, self.exchange(endpoint, &target, question)).await;
        asked.unwrap_or_else(|_| {
            let message = format!("no answer within {budget:?}");
            Err(failed(Failure { kind: FailureKind::TimedOut, message }, None, &target.secrets))
        })
    }

    async fn exchange(
        &self,
        endpoint: &Endpoint,
        target: &Target,
        question: Question<'_>,
    ) -> Result<Value, CallError> {
        let url = url_of(&endpoint.base_url, question)
            .ok_or_else(|| misconfigured("baseURL is not a URL with a path".to_owned()))?;
        let request = match question {
            Question::OfBase(_) | Question::OfServer(_) => self.client.get(url),
            Question::OfServerAbout(_, body) => self.client.post(url).json(body),
        };
        let lost = |error: reqwest::Error| network_error(&error, &target.secrets);
        let mut response = request.headers(target.headers().clone()).send().await.map_err(lost)?;
        let status = response.status();
        let in_answer = |failure: Failure| failed(failure, Some(status.as_u16()), &target.secrets);
        let crowded = |_: Full| {
            let message =
                "no memory for the answer: too many large answers arrive at the same time".to_owned();
            in_answer(Failure { kind: FailureKind::Passing, message })
        };
        let share = self.answers.take(0, MEMORY_WITHIN).await.map_err(crowded)?;
        let (mut body, mut weigher) = (Vec::new(), Weigher::default());
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            let weight = weigher.add(&chunk);
            if body.len() + chunk.len() > MAX_ANSWER || weight > MAX_PARSED {
                let most = MAX_ANSWER / 1024 / 1024;
                let message = format!("an answer of more than {most} MiB, or with too many values");
                return Err(in_answer(Failure { kind: FailureKind::NotAnAnswer, message }));
            }
            share.grow(weight, MEMORY_WITHIN).await.map_err(crowded)?;
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8_lossy(&body);
        let failure = if status.is_redirection() {
            let message = "the server redirects to another address: use that as baseURL".to_owned();
            Failure { kind: FailureKind::Misconfigured, message }
        } else if !status.is_success() {
            classify(status.as_u16(), &text)
        } else {
            match serde_json::from_slice(&body) {
                Ok(answer) => return Ok(answer),
                Err(_) => not_an_answer(&text),
            }
        };
        Err(in_answer(failure))
    }
}

fn failed(failure: Failure, status: Option<u16>, secrets: &[SecretString]) -> CallError {
    CallError { kind: failure.kind, message: scrub(&failure.message, secrets), status, retry_after: None }
}

/// Returns the URL to which a question goes, or `None` if the base URL is not a URL with a path.
fn url_of(base_url: &str, question: Question<'_>) -> Option<reqwest::Url> {
    let mut url = reqwest::Url::parse(base_url.trim()).ok()?;
    let mut below: Vec<String> = url.path_segments()?.map(str::to_owned).collect();
    while below.last().is_some_and(String::is_empty) {
        below.pop();
    }
    if !matches!(question, Question::OfBase(_)) && below.last().is_some_and(|last| last == "v1") {
        below.pop();
    }
    let asked = question.path().split('/').map(str::to_owned);
    url.path_segments_mut().ok()?.clear().extend(below.into_iter().chain(asked));
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::{Body, Bytes};
    use axum::http::{HeaderMap, StatusCode};
    use axum::response::IntoResponse;
    use axum::routing::{get, post};
    use futures::stream;
    use serde_json::json;
    use std::future::pending;

    /// A time limit that no test reaches.
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn where_questions_go() {
        let check = |base: &str, question: Question<'_>, expect: &str| {
            assert_eq!(url_of(base, question).unwrap().as_str(), expect);
        };
        let show = Value::Null;
        check("http://host:1/v1", Question::OfBase("models"), "http://host:1/v1/models");
        check("http://host:1/v1/", Question::OfBase("models"), "http://host:1/v1/models");
        check("http://host:1", Question::OfBase("models"), "http://host:1/models");
        check("http://host:1/v1", Question::OfServer("props"), "http://host:1/props");
        check("http://host:1/v1/", Question::OfServer("api/v0/models"), "http://host:1/api/v0/models");
        check("http://host/a/v1", Question::OfServerAbout("api/show", &show), "http://host/a/api/show");
        check("http://host/v1/b", Question::OfServer("props"), "http://host/v1/b/props");
        assert_eq!(url_of("nonsense", Question::OfBase("models")), None);
    }

    async fn serve(router: Router) -> Endpoint {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut endpoint = Endpoint::new(format!("http://{address}/v1"), "m");
        endpoint.api_key = "sk-very-secret".to_owned().into();
        endpoint
    }

    async fn ask(endpoint: &Endpoint, question: Question<'_>) -> Result<Value, (FailureKind, String)> {
        let inquirer = Inquirer::new(LONG).unwrap();
        inquirer.ask(endpoint, question, LONG).await.map_err(|error| (error.kind, error.message))
    }

    #[tokio::test]
    async fn answers_come_back_and_the_key_goes_along() {
        let router = Router::new()
            .route(
                "/v1/models",
                get(async |headers: HeaderMap| {
                    axum::Json(json!({"key": headers["authorization"].to_str().unwrap()}))
                }),
            )
            .route("/api/show", post(async |body: Bytes| body));
        let endpoint = serve(router).await;
        let told = ask(&endpoint, Question::OfBase("models")).await.unwrap();
        assert_eq!(told, json!({"key": "Bearer sk-very-secret"}));
        let about = json!({"model": "m"});
        assert_eq!(ask(&endpoint, Question::OfServerAbout("api/show", &about)).await.unwrap(), about);
    }

    #[tokio::test]
    async fn failures_are_told_without_the_key() {
        let endless = || stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 65_536])));
        let router = Router::new()
            .route(
                "/v1/key",
                get(async || (StatusCode::UNAUTHORIZED, r#"{"error": {"message": "bad sk-very-secret"}}"#)),
            )
            .route("/v1/page", get(async || "<!doctype html><title>Login</title>"))
            .route("/v1/moved", get(async || (StatusCode::FOUND, [("location", "http://a.example/")])))
            .route("/v1/values", get(async || format!("[{}0]", r#"{"a":0},"#.repeat(100_000))))
            .route("/v1/endless", get(async move || Body::from_stream(endless()).into_response()))
            .route("/v1/hangs", get(async || pending::<&'static str>().await));
        let endpoint = serve(router).await;
        let check = async |path: &str, kind: FailureKind, words: &str| {
            let (found, message) = ask(&endpoint, Question::OfBase(path)).await.unwrap_err();
            assert_eq!(found, kind, "{message}");
            assert!(message.contains(words) && !message.contains("sk-very"), "{message}");
        };
        check("key", FailureKind::Unauthorized, "bad [key]").await;
        check("page", FailureKind::NotAnAnswer, "Login").await;
        check("moved", FailureKind::Misconfigured, "redirects").await;
        check("values", FailureKind::NotAnAnswer, "too many values").await;
        check("endless", FailureKind::NotAnAnswer, "more than 8 MiB").await;
        check("nothing", FailureKind::Refused, "404").await;
        let inquirer = Inquirer::new(LONG).unwrap();
        let budget = Duration::from_millis(20);
        let error = inquirer.ask(&endpoint, Question::OfBase("hangs"), budget).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (FailureKind::TimedOut, "no answer within 20ms"));
    }

    #[tokio::test]
    async fn an_answer_takes_its_memory_from_the_budget() {
        let list = async || format!("[{}0]", r#"{"a":0},"#.repeat(10_000));
        let endpoint = serve(Router::new().route("/v1/models", get(list))).await;
        let ask = async |budget: usize| {
            let client = http_client(LONG, Roots::Machine).unwrap();
            let inquirer = Inquirer::with(client, Budget::new(budget));
            inquirer.ask(&endpoint, Question::OfBase("models"), LONG).await
        };
        assert!(ask(MAX_PARSED).await.unwrap().is_array());
        let error = ask(1).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::Passing, "{error}");
        assert!(error.message.starts_with("no memory for the answer"), "{error}");
    }
}
