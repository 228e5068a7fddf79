//! Calls to the API in this process, without a socket.

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body::Body;
use http_body_util::BodyDataStream;
use reqwest::Response;
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use tower::{Service, ServiceExt};

type Answer = dyn Fn(http::Request<reqwest::Body>) -> BoxFuture<'static, Response> + Send + Sync;

/// The routes of the API, called directly.
#[derive(Clone)]
pub(crate) struct InProcess(Arc<Answer>);

impl InProcess {
    pub(crate) fn new<S, B>(routes: S) -> Self
    where
        S: Service<http::Request<reqwest::Body>, Response = http::Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        Self(Arc::new(move |request| {
            let asked = routes.clone().oneshot(request);
            Box::pin(async move {
                let answer = match asked.await {
                    Ok(answer) => answer,
                    Err(never) => match never {},
                };
                // The body stays a stream, as it would be over a socket.
                answer.map(|body| reqwest::Body::wrap_stream(BodyDataStream::new(body))).into()
            })
        }))
    }

    /// Calls the routes with a request and returns their response, as a server would.
    pub(crate) async fn answer(&self, request: reqwest::Request) -> Result<Response, reqwest::Error> {
        Ok((self.0)(request.try_into()?).await)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Client, Error, Progress, Scope, SteerAction};
    use axum::body::Body;
    use axum::extract::Path;
    use axum::http::{HeaderMap, StatusCode, Uri};
    use axum::response::IntoResponse;
    use axum::routing::{get, post};
    use axum::{Json, Router};
    use futures::{StreamExt, stream};
    use polity_society::id::AgentId;
    use polity_view::{TaskFilter, TaskState};
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    fn client(routes: Router) -> Client {
        Client::in_process(routes).unwrap()
    }

    #[tokio::test]
    async fn routes_of_this_process_answer_as_a_daemon_does() {
        let tasks = async |uri: Uri, headers: HeaderMap| {
            assert_eq!(uri.query(), Some("state=open&limit=7"));
            assert!(!headers.contains_key("authorization"), "there is no token");
            Json(json!({"tasks": []}))
        };
        let agent = async |Path(id): Path<String>| {
            let problem = json!({"type": "about:blank", "title": "", "status": 404, "detail": id, "error": "not_found"});
            (StatusCode::NOT_FOUND, Json(problem))
        };
        let resumed = async || Json(json!({"agents": ["root"]}));
        let client = client(
            Router::new()
                .route("/api/tasks", get(tasks))
                .route("/api/agents/{id}", get(agent))
                .route("/api/agents/{id}/resume", post(resumed)),
        );
        let filter = TaskFilter { state: Some(TaskState::Open), after: None, limit: Some(7) };
        assert_eq!(client.tasks(&filter).await.unwrap().tasks, []);
        let refused = client.agent(&AgentId::new("a/b c")).await;
        assert!(matches!(refused, Err(Error::Refused(problem)) if problem.detail == "a/b c"));
        let steered = client.steer(&AgentId::root(), SteerAction::Resume, Scope::Agent).await.unwrap();
        assert_eq!(steered.agents, [AgentId::root()]);
    }

    #[tokio::test]
    async fn bytes_come_piece_by_piece_and_go_in_whole() {
        let pieces = || stream::iter(["one ", "two ", "three"]).map(Ok::<_, std::io::Error>);
        let broken = move || pieces().chain(stream::iter([Err(std::io::Error::other("the disk fails"))]));
        let got = Arc::new(Mutex::new(String::new()));
        let put = {
            let got = Arc::clone(&got);
            async move |body: String| {
                *got.lock().unwrap() = body;
                StatusCode::CONFLICT.into_response()
            }
        };
        let client = client(
            Router::new()
                .route("/api/artifacts/whole/content", get(async move || Body::from_stream(pieces())))
                .route("/api/artifacts/broken/content", get(async move || Body::from_stream(broken())))
                .route("/api/artifacts", post(put)),
        );
        let seen = Arc::new(Mutex::new(Vec::new()));
        let progress: Progress = {
            let seen = Arc::clone(&seen);
            Arc::new(move |bytes| seen.lock().unwrap().push(bytes))
        };
        let mut into = Vec::new();
        let name = std::path::Path::new("file");
        assert_eq!(client.artifact_content("whole", &mut into, name, &progress).await.unwrap(), 13);
        assert_eq!((into.as_slice(), &*seen.lock().unwrap()), (&b"one two three"[..], &vec![4, 8, 13]));
        let broken = client.artifact_content("broken", &mut into, name, &progress).await;
        assert!(matches!(broken, Err(Error::Lost { reason, .. }) if reason.contains("the disk fails")));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "a file").unwrap();
        let refused = client.put_artifact(file.path(), Arc::new(|_| ())).await;
        assert!(matches!(refused, Err(Error::Refused(problem)) if problem.status == 409));
        assert_eq!(*got.lock().unwrap(), "a file");
    }
}
