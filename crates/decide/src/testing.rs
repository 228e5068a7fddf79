//! The configuration and the brief that tests of this crate use.

use polity_registry::{Environment, Registry, Snapshot};
use serde_json::{Value, json};
use std::sync::Arc;

/// The default service `words` takes text alone, `eyes` also takes pictures, and `all` takes files of all kinds.
const SERVICES: &str = r#"{"services": [
    {"id": "words", "baseURL": "http://127.0.0.1:9/v1", "model": "words-1"},
    {"id": "eyes", "baseURL": "http://127.0.0.1:9/v1", "model": "eyes-1",
     "capabilities": {"input": ["text", "vision"], "output": ["text", "tool_calling"]}},
    {"id": "all", "baseURL": "http://127.0.0.1:9/v1", "model": "all-1",
     "capabilities": {"input": ["text", "vision", "audio", "video", "file"], "output": ["text", "tool_calling"]}}
]}"#;

/// Loads the configuration with this content of `app.json` and the services of [`SERVICES`].
pub(crate) async fn snapshot(app: &Value) -> Arc<Snapshot> {
    snapshot_of(app, SERVICES).await
}

/// Loads the configuration with these contents of `app.json` and `llmservices.json`.
pub(crate) async fn snapshot_of(app: &Value, services: &str) -> Arc<Snapshot> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.json"), app.to_string()).unwrap();
    std::fs::write(directory.path().join("llmservices.json"), services).unwrap();
    let environment = Environment::look_up(|_| None);
    let (registry, problems) =
        Registry::load(directory.path(), environment, Box::new(|| Box::pin(async { Vec::new() })))
            .await
            .unwrap();
    assert_eq!(problems, []);
    registry.current()
}

/// Returns a brief with all required fields.
pub(crate) fn brief() -> Value {
    json!({"objective": "读图", "constraints": [], "inputs": "附件", "outputs": "文字", "completion_criteria": "写完"})
}
