//! Relays MCP messages from standard input to the daemon's route `/mcp`, and the answers to standard output. Each line
//! of input is a message and becomes a separate HTTP request. The client is the editor or assistant that writes to
//! standard input. Some clients can ask their user the questions of the daemon. For such a client, the daemon begins a
//! session, and every later request names this session.

use crate::failure::Failure;
use crate::output::complain;
use polity_client::{Client, Error, Relayed, SESSION};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// How long to wait for a new daemon after the current one has ended.
const PATIENCE: Duration = Duration::from_secs(30);
/// Polling interval while waiting for a new daemon.
const PAUSE: Duration = Duration::from_millis(200);

/// How long to wait for the daemon to end a session after the client has gone.
const FAREWELL: Duration = Duration::from_secs(2);

/// Capacity of the queue of messages to standard output.
const WAITING: usize = 64;

/// JSON pointer to the protocol version that a client may name in each request.
const VERSION_IN_META: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";

/// Relays messages until standard input is closed; returns the exit code.
pub(super) async fn run(data: &Path) -> Result<u8, Failure> {
    let client = Client::new(data)?;
    client.ready().await?;
    let client = client.unhurried()?;
    let (answers, written) = mpsc::channel::<String>(WAITING);
    let writer = tokio::spawn(write(written));
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut under_way: HashMap<String, JoinHandle<()>> = HashMap::new();
    let agreed = Arc::new(watch::Sender::new(Agreed::default()));
    let stream = tokio::spawn(stream(client.clone(), agreed.subscribe(), answers.clone()));
    while let Some(line) = lines.next_line().await.map_err(Failure::StandardInput)? {
        if line.trim().is_empty() || writer.is_finished() {
            continue;
        }
        under_way.retain(|_, passing| !passing.is_finished());
        let message: Value = match serde_json::from_str(&line) {
            Ok(message) => message,
            Err(error) => {
                let _ = answers.send(failed(&Value::Null, -32700, &error.to_string())).await;
                continue;
            }
        };
        if message["method"] == "notifications/cancelled" {
            if let Some(passing) = under_way.remove(&message["params"]["requestId"].to_string()) {
                // A cancelled request gets no answer in MCP. Aborting the relay closes its connection to the daemon,
                // and then the daemon stops the work on this request.
                passing.abort();
            }
            if agreed.borrow().session.is_none() {
                continue;
            }
            // In a session, the daemon continues the work even if the connection closes. So continue below, and send
            // the cancellation to the daemon too.
        }
        // The client also answers requests of the daemon. Such an answer has the id of the daemon's request, and a
        // request of the client may have the same id. So the key of an answer gets a prefix.
        let key = match message["method"].is_string() {
            true => message["id"].to_string(),
            false => format!("answer {}", message["id"]),
        };
        let headers = headers(&message, &agreed.borrow());
        let passing = pass(client.clone(), headers, message, Arc::clone(&agreed), answers.clone());
        under_way.insert(key, tokio::spawn(passing));
    }
    // Standard input is closed, so the client has gone and nobody reads the answers.
    for passing in under_way.into_values() {
        passing.abort();
    }
    stream.abort();
    let agreed = agreed.borrow().clone();
    if agreed.session.is_some() {
        // End the session, because its calls would otherwise keep waiting although no client reads their answers. An
        // error does not matter: if the daemon has ended, the calls have ended with the daemon.
        let farewell = headers(&Value::Null, &agreed);
        let ending = client.relay_end(&farewell);
        let _ = tokio::time::timeout(FAREWELL, ending).await;
    }
    drop(answers);
    if let Err(error) = writer.await {
        complain(&format!("failed to write answers to standard output: {error}"));
    }
    Ok(0)
}

/// Values of the daemon's answer to `initialize`, the first request of a client. Every later request repeats these
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Agreed {
    version: Option<String>,
    session: Option<String>,
}

/// Returns the HTTP headers that MCP over HTTP requires with a message. The headers repeat parts of the message.
fn headers(message: &Value, agreed: &Agreed) -> Vec<(String, String)> {
    let named = message.pointer(VERSION_IN_META).and_then(Value::as_str);
    let mut headers = Vec::new();
    if message["method"] != "initialize" {
        let version = named.or(agreed.version.as_deref());
        headers.extend(version.map(|version| ("mcp-protocol-version".to_owned(), version.to_owned())));
        headers.extend(agreed.session.iter().map(|session| (SESSION.to_owned(), session.clone())));
    }
    if named.is_some() {
        let method = message["method"].as_str();
        let name = message["params"]["name"].as_str().or_else(|| message["params"]["uri"].as_str());
        headers.extend(method.map(|method| ("mcp-method".to_owned(), method.to_owned())));
        headers.extend(name.map(|name| ("mcp-name".to_owned(), name.to_owned())));
    }
    headers
}

/// Relays one message to the daemon, and the daemon's answers to standard output.
async fn pass(
    client: Client,
    headers: Vec<(String, String)>,
    message: Value,
    agreed: Arc<watch::Sender<Agreed>>,
    answers: mpsc::Sender<String>,
) {
    let until = Instant::now() + PATIENCE;
    let body = message.to_string().into_bytes();
    let told = loop {
        match client.relay(&headers, body.clone()).await {
            // No daemon was found, so no daemon has received the message. Send the message again when a new daemon
            // runs.
            Err(Error::Find(_)) if Instant::now() < until => tokio::time::sleep(PAUSE).await,
            Err(error) => break Err(error),
            Ok(relayed) => {
                let agreed = (message["method"] == "initialize").then_some(&*agreed);
                break copy(relayed, agreed, &answers).await;
            }
        }
    };
    if let (Err(error), Some(id)) = (told, message.get("id").filter(|_| message.get("method").is_some())) {
        let _ = answers.send(failed(id, -32603, &error.to_string())).await;
    }
}

/// Copies the messages in one HTTP response of the daemon to standard output. If `agreed` is given, the response
/// answers `initialize`, and its values are stored in `agreed`.
async fn copy(
    mut relayed: Relayed,
    agreed: Option<&watch::Sender<Agreed>>,
    answers: &mpsc::Sender<String>,
) -> Result<(), Error> {
    while let Some(answer) = relayed.next().await? {
        if let Some(agreed) = agreed {
            agreed.send_replace(Agreed {
                version: version(&answer),
                session: relayed.session().map(str::to_owned),
            });
        }
        let _ = answers.send(one_line(&answer)).await;
    }
    Ok(())
}

/// In a session, the daemon also sends messages that are no answers. Copies these messages to standard output, for as
/// long as the process runs.
async fn stream(client: Client, mut agreed: watch::Receiver<Agreed>, answers: mpsc::Sender<String>) {
    loop {
        let Ok(headers) = agreed
            .wait_for(|agreed| agreed.session.is_some())
            .await
            .map(|agreed| headers(&Value::Null, &agreed))
        else {
            return;
        };
        if let Ok(relayed) = client.relay_stream(&headers).await {
            // Ignore an error: if the stream breaks off, the loop opens it again.
            let _ = copy(relayed, None, &answers).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads the protocol version from the answer to `initialize`.
fn version(answer: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    answer.pointer("/result/protocolVersion")?.as_str().map(str::to_owned)
}

/// Puts a JSON message on one line. JSON allows line breaks only between tokens, where they mean nothing.
fn one_line(message: &str) -> String {
    message.replace(['\r', '\n'], " ")
}

fn failed(id: &Value, code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

async fn write(mut messages: mpsc::Receiver<String>) {
    let mut output = tokio::io::stdout();
    while let Some(message) = messages.recv().await {
        let line = format!("{message}\n");
        if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
            // The reader of standard output has gone.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_daemon_sees_of_a_message() {
        let check = |message: Value, version: Option<&str>, expect: &[(&str, &str)]| {
            let agreed = Agreed { version: version.map(str::to_owned), session: None };
            let found = headers(&message, &agreed);
            let found: Vec<(&str, &str)> =
                found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, expect);
        };
        check(
            json!({"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
            Some("2025-11-25"),
            &[],
        );
        check(json!({"method": "tools/list"}), Some("2025-06-18"), &[("mcp-protocol-version", "2025-06-18")]);
        check(json!({"method": "tools/list"}), None, &[]);
        let session = Agreed { version: Some("2025-11-25".to_owned()), session: Some("s".to_owned()) };
        let named = |message: Value| headers(&message, &session).into_iter().any(|(name, _)| name == SESSION);
        assert!(named(json!({"id": 0, "result": {}})) && !named(json!({"method": "initialize"})));
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        check(
            json!({"method": "tools/call", "params": {"name": "stop", "_meta": meta}}),
            None,
            &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "stop")],
        );
        check(
            json!({"method": "resources/read", "params": {"uri": "polity://artifact/a", "_meta": meta}}),
            None,
            &[
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "resources/read"),
                ("mcp-name", "polity://artifact/a"),
            ],
        );
    }
}
