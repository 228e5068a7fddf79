//! Finds model servers on this machine, for users who have configured none.

use crate::client::{Roots, http_client};
use futures::stream::FuturesOrdered;
use futures::{Stream, StreamExt};
use polity_bounds::Weigher;
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use strum::VariantArray;

/// Longest list of models that discovery reads, in bytes.
const MAX_LIST: usize = 1024 * 1024;
/// Maximum memory that the parsed JSON of a list may take, in bytes. The memory is not measured but estimated.
const MAX_PARSED: usize = 16 * 1024 * 1024;

/// A model server that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The kind of server that usually listens on this port.
    pub server: ServerKind,
    /// The base URL of the server, in the form that an endpoint needs.
    pub base_url: String,
    /// The names of the server's models in the server's order, without embedding models. [`discover_all`]
    /// returns only servers for which this list is not empty.
    pub models: Vec<String>,
}

/// Why polity cannot use what listens on the usual port of a kind of model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The model server answers, but has no model.
    Empty,
    /// The port is open, but nothing has answered within the time limit.
    Silent,
}

/// The kinds of servers that discovery looks for on their usual ports, the most preferred first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum ServerKind {
    /// Ollama, on port 11434.
    Ollama,
    /// LM Studio, on port 1234.
    LmStudio,
    /// The server of llama.cpp, on port 8080.
    LlamaCpp,
    /// vLLM, on port 8000.
    Vllm,
}

impl ServerKind {
    /// Returns the port on which this kind of server usually listens.
    pub fn port(self) -> u16 {
        match self {
            Self::Ollama => 11_434,
            Self::LmStudio => 1_234,
            Self::LlamaCpp => 8_080,
            Self::Vllm => 8_000,
        }
    }

    /// Returns the kind of server that usually listens on the port of this base URL.
    pub fn usual_at(base_url: &str) -> Option<Self> {
        let port = reqwest::Url::parse(base_url.trim()).ok()?.port()?;
        Self::VARIANTS.iter().copied().find(|server| server.port() == port)
    }

    /// Returns what a person does to get a context window of `tokens` on this kind of server.
    pub fn how_to_enlarge(self, tokens: u64) -> String {
        match self {
            Self::Ollama => format!("start Ollama with OLLAMA_CONTEXT_LENGTH={tokens}"),
            Self::LmStudio => format!("load the model in LM Studio with a context length of {tokens}"),
            Self::LlamaCpp => format!("start llama-server with --ctx-size {tokens}"),
            Self::Vllm => format!("start vLLM with --max-model-len {tokens}"),
        }
    }
}

impl fmt::Display for ServerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ollama => "Ollama",
            Self::LmStudio => "LM Studio",
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vLLM",
        })
    }
}

/// Looks for model servers on this machine. Tries the usual ports of all kinds of model servers at the same time.
/// Returns all servers that have a model, the most preferred server first. Takes no longer than `budget`.
pub async fn discover_all(budget: Duration) -> Vec<Found> {
    discover_among(usual_places(), budget).await
}

/// Looks for model servers on this machine that polity cannot use. Tries the usual ports of all kinds of model servers
/// at the same time. Takes no longer than `budget`.
pub async fn discover_unusable(budget: Duration) -> Vec<(ServerKind, Unusable)> {
    unusable_among(usual_places(), budget).await
}

fn usual_places() -> impl Iterator<Item = (ServerKind, String)> {
    ServerKind::VARIANTS.iter().map(|server| (*server, format!("http://127.0.0.1:{}/v1", server.port())))
}

fn client(budget: Duration) -> Option<reqwest::Client> {
    // All servers on this machine that are looked for speak plain HTTP.
    let client = http_client(budget, Roots::None);
    client.inspect_err(|error| tracing::warn!(%error, "cannot look for model servers")).ok()
}

/// What a candidate did when it was asked for its models. A candidate is an address at which a server may listen.
enum Asked {
    Answered(Found),
    /// The candidate accepted the connection, and said nothing within the time limit.
    Silent(ServerKind),
    /// Nothing listens there, or no model server.
    Other,
}

/// Asks all candidates at the same time. Returns the results in the order of the candidates.
fn ask_all<'c>(
    client: &'c reqwest::Client,
    candidates: impl IntoIterator<Item = (ServerKind, String)>,
    budget: Duration,
) -> impl Stream<Item = Asked> + 'c {
    let asked = candidates.into_iter().map(move |(server, base_url)| async move {
        // Each candidate has the whole time budget, so a server that hangs takes no time from the other candidates.
        match tokio::time::timeout(budget, list_models(client, &base_url)).await {
            Ok(Some(models)) => Asked::Answered(Found { server, base_url, models }),
            Ok(None) => Asked::Other,
            Err(_) => Asked::Silent(server),
        }
    });
    asked.collect::<FuturesOrdered<_>>()
}

async fn discover_among(
    candidates: impl IntoIterator<Item = (ServerKind, String)>,
    budget: Duration,
) -> Vec<Found> {
    let Some(client) = client(budget) else { return Vec::new() };
    let usable = |asked: Asked| match asked {
        Asked::Answered(found) if !found.models.is_empty() => Some(found),
        Asked::Answered(_) | Asked::Silent(_) | Asked::Other => None,
    };
    let asked: Vec<Asked> = ask_all(&client, candidates, budget).collect().await;
    asked.into_iter().filter_map(usable).collect()
}

async fn unusable_among(
    candidates: impl IntoIterator<Item = (ServerKind, String)>,
    budget: Duration,
) -> Vec<(ServerKind, Unusable)> {
    let Some(client) = client(budget) else { return Vec::new() };
    let unusable = |asked: Asked| match asked {
        Asked::Answered(found) if found.models.is_empty() => Some((found.server, Unusable::Empty)),
        Asked::Silent(server) => Some((server, Unusable::Silent)),
        Asked::Answered(_) | Asked::Other => None,
    };
    let asked: Vec<Asked> = ask_all(&client, candidates, budget).collect().await;
    asked.into_iter().filter_map(unusable).collect()
}

async fn list_models(client: &reqwest::Client, base_url: &str) -> Option<Vec<String>> {
    let mut response = client.get(format!("{base_url}/models")).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let (mut body, mut weigher) = (Vec::new(), Weigher::default());
    while let Some(chunk) = response.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_LIST || weigher.add(&chunk) > MAX_PARSED {
            return None;
        }
    }
    models_in(&body)
}

/// Reads a list of models. Another program than a model server may listen on the port, so this function returns `None`
/// for any other body.
fn models_in(body: &[u8]) -> Option<Vec<String>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    if list.get("object")?.as_str()? != "list" {
        return None;
    }
    // Ollama writes `null` if it has no model.
    let data = list.get("data")?;
    if data.is_null() {
        return Some(Vec::new());
    }
    let models: Option<Vec<&str>> = data.as_array()?.iter().map(|model| model.get("id")?.as_str()).collect();
    Some(models?.into_iter().filter(|id| !id.contains("embed")).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::routing::get;
    use std::future::pending;

    fn check(body: &str, expect: Option<&[&str]>) {
        let expect = expect.map(|models| models.iter().map(|model| (*model).to_owned()).collect());
        assert_eq!(models_in(body.as_bytes()), expect, "{body}");
    }

    #[test]
    fn lists_of_models() {
        check(r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#, Some(&["a", "b"]));
        check(r#"{"object":"list","data":[{"id":"text-embedding-nomic"},{"id":"qwen"}]}"#, Some(&["qwen"]));
        check(r#"{"object":"list","data":[]}"#, Some(&[]));
        check(r#"{"object":"list","data":null}"#, Some(&[]));
    }

    #[test]
    fn what_is_no_list_of_models() {
        check(r#"{"object":"list","data":[{"name":"a"}]}"#, None);
        check(r#"{"data":[{"id":"a"}]}"#, None);
        check(r#"{"status":"ok"}"#, None);
        check("<html>It works!</html>", None);
        check("", None);
    }

    /// Starts a server that gives this answer; with `None` it never answers. Returns its base URL.
    async fn server(answer: Option<&'static str>) -> String {
        let router = Router::new().route(
            "/v1/models",
            get(async move || match answer {
                Some(answer) => answer,
                None => pending().await,
            }),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        base_url
    }

    /// Returns the URL of a port on which nobody listens, and the socket that keeps the port reserved.
    fn nobody() -> (tokio::net::TcpSocket, String) {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let base_url = format!("http://{}/v1", socket.local_addr().unwrap());
        (socket, base_url)
    }

    const LIST: &str = r#"{"object":"list","data":[{"id":"qwen","object":"model"}]}"#;

    #[tokio::test]
    async fn only_servers_that_have_a_model_are_found() {
        let (_socket, refusing) = nobody();
        let candidates = [
            (ServerKind::Ollama, server(Some(r#"{"object":"list","data":[]}"#)).await),
            (ServerKind::LmStudio, refusing),
            (ServerKind::LlamaCpp, server(Some("<html>It works!</html>")).await),
            (ServerKind::Vllm, server(Some(LIST)).await),
        ];
        let base_url = candidates[3].1.clone();
        let expect = Found { server: ServerKind::Vllm, base_url, models: vec!["qwen".to_owned()] };
        assert_eq!(discover_among(candidates, Duration::from_secs(60)).await, [expect]);
    }

    #[tokio::test]
    async fn a_list_of_too_many_values_is_not_read() {
        let list = |values: usize| -> &'static str {
            let values = r#"{"a":0},"#.repeat(values);
            format!(r#"{{"object":"list","data":[{{"id":"qwen"}}],"x":[{values}0]}}"#).leak()
        };
        let found = async |values: usize| {
            let candidates = [(ServerKind::Ollama, server(Some(list(values))).await)];
            discover_among(candidates, Duration::from_secs(60)).await.len()
        };
        assert_eq!(found(1_000).await, 1);
        assert_eq!(found(100_000).await, 0);
    }

    #[tokio::test]
    async fn all_servers_are_found_in_the_order_of_preference() {
        let candidates =
            [(ServerKind::LmStudio, server(Some(LIST)).await), (ServerKind::Vllm, server(Some(LIST)).await)];
        let found = discover_among(candidates, Duration::from_secs(60)).await;
        let servers: Vec<ServerKind> = found.iter().map(|found| found.server).collect();
        assert_eq!(servers, [ServerKind::LmStudio, ServerKind::Vllm]);
    }

    #[tokio::test]
    async fn one_that_hangs_costs_the_budget_and_no_more() {
        let candidates = [(ServerKind::Ollama, server(None).await)];
        assert_eq!(discover_among(candidates, Duration::from_millis(50)).await, []);
    }

    #[tokio::test]
    async fn a_server_without_a_model_and_a_silent_one_are_told_apart() {
        let (_socket, refusing) = nobody();
        let silent = [(ServerKind::Ollama, server(None).await), (ServerKind::LmStudio, refusing)];
        let found = unusable_among(silent, Duration::from_millis(50)).await;
        assert_eq!(found, [(ServerKind::Ollama, Unusable::Silent)]);
        let others = [
            (ServerKind::LlamaCpp, server(Some(r#"{"object":"list","data":[]}"#)).await),
            (ServerKind::Vllm, server(Some(LIST)).await),
            (ServerKind::Ollama, server(Some("<html>It works!</html>")).await),
        ];
        let found = unusable_among(others, Duration::from_secs(60)).await;
        assert_eq!(found, [(ServerKind::LlamaCpp, Unusable::Empty)]);
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_is_found() {
        let (_socket, refusing) = nobody();
        let found = discover_among([(ServerKind::Ollama, refusing)], Duration::from_secs(60)).await;
        assert_eq!(found, []);
    }
}
