//! A society whose models are the rehearsal models, its routes, and helpers that send requests to these routes.

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use jsonschema::Validator;
use polity_api::{Ending, Guard, Hosts, Token};
use polity_registry::{Environment, Registry};
use polity_rehearsal::RehearsalModel;
use polity_runtime::{Parts, Prompt, Society};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tower::ServiceExt;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const HOST: &str = "127.0.0.1:7717";
/// A host name that the guard allows in addition to the loopback names.
pub(crate) const NAME: &str = "polity.example";
pub(crate) const PAGE: &str = "http://127.0.0.1:7717";

/// The OpenAPI document. [`Daemon::send`] compares every answer with it.
pub(crate) static DESCRIPTION: LazyLock<Value> = LazyLock::new(polity_api::description);

/// A running society and its routes.
pub(crate) struct Daemon {
    pub(crate) society: Arc<Society>,
    pub(crate) ending: Ending,
    pub(crate) app: Router,
    /// The configuration directory, which is also the data directory.
    pub(crate) directory: TempDir,
    /// The ids of the operations that have succeeded.
    succeeded: Mutex<BTreeSet<String>>,
}

const BOUNDARY: &str = "between-the-parts-of-a-form";

/// A file to upload in a form.
pub(crate) struct File<'a> {
    pub(crate) field: &'a str,
    pub(crate) filename: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// A response with its whole body.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Daemon {
    pub(crate) async fn start() -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), Vec::new()).await
    }

    pub(crate) async fn start_in(directory: TempDir, mounted: Vec<Router>) -> Self {
        let parts = parts(directory.path()).await;
        Self::start_with(directory, parts, mounted).await
    }

    /// Starts a society with these parts.
    pub(crate) async fn start_with(directory: TempDir, parts: Parts, mounted: Vec<Router>) -> Self {
        let society = Arc::new(Society::start(directory.path(), parts).await.unwrap());
        let ending = Ending::default();
        let guard = Guard::new(Token::read(TOKEN).unwrap(), Hosts::new(7717, [NAME.to_owned()]));
        let app = polity_api::app(Arc::clone(&society), guard, ending.clone(), mounted);
        Self { society, ending, app, directory, succeeded: Mutex::default() }
    }

    /// Sends a prompt of the person and waits until the society is idle.
    pub(crate) async fn prompt(&self, text: &str) {
        let prompt = Prompt { text: text.to_owned(), attachments: Vec::new(), service: None };
        self.society.prompt(prompt).await.unwrap();
        self.idle().await;
    }

    /// Waits until all tasks are idle.
    pub(crate) async fn idle(&self) {
        self.until(async || self.society.open_tasks().await.unwrap().is_empty()).await;
    }

    /// Waits until the condition is true. The condition is checked again after each event.
    pub(crate) async fn until(&self, condition: impl AsyncFn() -> bool) {
        let mut newest = self.society.newest_event();
        while !condition().await {
            let changed = tokio::time::timeout(Duration::from_secs(60), newest.changed());
            changed.await.unwrap().unwrap();
        }
    }

    /// Sends a request unchanged and checks the answer against the OpenAPI document.
    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let response = self.app.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let answer = Answer { status: parts.status, headers: parts.headers, body };
        answer.assert_described(&method, &path);
        if let Some((template, _)) = described(&path)
            && !answer.status.is_client_error()
        {
            let operation = format!("{} {template}", method.as_str().to_ascii_lowercase());
            self.succeeded.lock().unwrap().insert(operation);
        }
        answer
    }

    /// Sends a request with the token and without a body.
    pub(crate) async fn call(&self, method: &str, path: &str) -> Answer {
        self.send(asked(method, path).body(Body::empty()).unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).await
    }

    /// Sends a body of this content type.
    pub(crate) async fn upload(&self, path: &str, content_type: &str, bytes: &[u8]) -> Answer {
        let request = asked("POST", path).header(header::CONTENT_TYPE, content_type);
        self.send(request.body(Body::from(bytes.to_vec())).unwrap()).await
    }

    /// Sends a multipart form.
    pub(crate) async fn post_form(&self, path: &str, texts: &[(&str, &str)], files: &[File<'_>]) -> Answer {
        let mut body = Vec::new();
        for (name, text) in texts {
            let part =
                format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
            body.extend(part.into_bytes());
        }
        for File { field, filename, content_type, bytes } in files {
            let head = format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{filename}\"\r\n\
                 Content-Type: {content_type}\r\n\r\n"
            );
            body.extend(head.into_bytes());
            body.extend_from_slice(bytes);
            body.extend(b"\r\n");
        }
        body.extend(format!("--{BOUNDARY}--\r\n").into_bytes());
        self.upload(path, &format!("multipart/form-data; boundary={BOUNDARY}"), &body).await
    }

    /// Asserts that every documented operation has succeeded at least once, in this daemon or in the daemon `other`.
    pub(crate) fn assert_all_succeeded(&self, other: &Self) {
        let mut all = BTreeSet::new();
        for (template, operations) in DESCRIPTION["paths"].as_object().unwrap() {
            all.extend(operations.as_object().unwrap().keys().map(|method| format!("{method} {template}")));
        }
        let mut succeeded = self.succeeded.lock().unwrap().clone();
        succeeded.extend(other.succeeded.lock().unwrap().iter().cloned());
        assert_eq!(succeeded, all);
    }

    pub(crate) async fn send_json(&self, method: &str, path: &str, body: &Value) -> Answer {
        let request = asked(method, path).header(header::CONTENT_TYPE, "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// Sends a message of the person to root and returns the new task.
    pub(crate) async fn post_prompt(&self, text: &str) -> String {
        let posted = self.send_json("POST", "/api/messages", &json!({"text": text})).await.ok();
        posted["task"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn stop(self) {
        self.society.stop().await;
    }
}

/// Returns the parts of a society whose only models are the rehearsal models.
pub(crate) async fn parts(directory: &Path) -> Parts {
    let environment = Environment::look_up(|_| None);
    let discover = Box::new(|| Box::pin(async { Vec::new() }) as _);
    let (registry, _) = Registry::load(directory, environment, discover).await.unwrap();
    Parts {
        registry: Arc::new(registry),
        model: Arc::new(RehearsalModel),
        hands: polity_runtime::hands::table::Hands::none(),
        extractor: None,
    }
}

/// Begins a request with the token.
pub(crate) fn asked(method: &str, path: &str) -> axum::http::request::Builder {
    bare(method, path).header(header::HOST, HOST).header(header::AUTHORIZATION, format!("Bearer {TOKEN}"))
}

/// Begins a request without any headers.
pub(crate) fn bare(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path)
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Asserts a success and returns the JSON.
    pub(crate) fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{} {:?}", self.status, self.body);
        self.json()
    }

    /// Asserts that the answer is this problem.
    pub(crate) fn assert_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.body);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["error"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
    }

    /// Asserts that the answer is this problem, in the format of the OpenAI API.
    pub(crate) fn assert_openai_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status.as_u16(), status, "{:?}", self.body);
        assert_eq!(self.header("content-type"), "application/json");
        let error = &self.json()["error"];
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
        assert!(error["type"].is_string() && error.get("param").is_some(), "{error}");
    }

    /// Asserts that the answer is this problem, in the format that the path uses.
    pub(crate) fn assert_problem_of(&self, path: &str, status: u16, code: &str) {
        if path.starts_with("/v1") {
            self.assert_openai_problem(status, code);
        } else {
            self.assert_problem(status, code);
        }
    }

    /// Asserts that the OpenAPI document describes this answer, and that the body of the answer fits the schema in the
    /// document.
    fn assert_described(&self, method: &Method, path: &str) {
        let said = format!("{method} {path}: {} {:?}", self.status, self.body);
        let Some((template, operations)) = described(path) else {
            let pages = path == "/" || path.starts_with("/assets/");
            assert!(pages || self.status.is_client_error(), "not described: {said}");
            return;
        };
        let name =
            if method == Method::HEAD { "get".to_owned() } else { method.as_str().to_ascii_lowercase() };
        let Some(operation) = operations.get(&name) else {
            assert!([401, 403, 405].contains(&self.status.as_u16()), "{template} lacks this method: {said}");
            return;
        };
        let answer = &operation["responses"][self.status.as_str()];
        assert!(!answer.is_null(), "{template} lacks this status: {said}");
        let Some(contents) = answer.get("content") else {
            assert!(self.body.is_empty(), "{template} documents no body: {said}");
            return;
        };
        let content_type = self.header("content-type").split(';').next().unwrap_or_default().trim();
        let content = contents.get(content_type).or_else(|| contents.get("*/*"));
        let content = content.unwrap_or_else(|| panic!("{template} lacks {content_type}: {said}"));
        if content_type.ends_with("json") && method != Method::HEAD {
            let validator =
                validator(&format!("{name} {template} {} {content_type}", self.status), &content["schema"]);
            let errors: Vec<String> =
                validator.iter_errors(&self.json()).map(|error| error.to_string()).collect();
            assert!(errors.is_empty(), "{template} has another schema: {errors:?} in {said}");
        }
    }
}

/// Returns the validator for a schema, built once per schema.
fn validator(name: &str, schema: &Value) -> Arc<Validator> {
    static MADE: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);
    let mut made = MADE.lock().unwrap();
    let make = || {
        let mut schema = schema.clone();
        schema["components"] = json!({"schemas": DESCRIPTION["components"]["schemas"]});
        Arc::new(jsonschema::draft202012::new(&schema).unwrap())
    };
    Arc::clone(made.entry(name.to_owned()).or_insert_with(make))
}

/// Finds the documented path that matches `path`, and its operations. A path without parameters takes precedence.
fn described(path: &str) -> Option<(&'static str, &'static Value)> {
    let fits = |template: &str| {
        let (parts, given) = (template.split('/').collect::<Vec<_>>(), path.split('/').collect::<Vec<_>>());
        let fit =
            |(part, given): (&&str, &&str)| part == given || (part.starts_with('{') && !given.is_empty());
        parts.len() == given.len() && parts.iter().zip(&given).all(fit)
    };
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template)).collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    fitting.first().map(|(template, operations)| (template.as_str(), *operations))
}
