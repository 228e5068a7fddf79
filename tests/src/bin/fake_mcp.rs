//! An MCP server for the tests, over standard input and output. Some of its tools answer normally, others fail or
//! misbehave.
//!
//! Environment variables: `FAKE_LOG` names a file that gets a line for each call of the tool `change`. `FAKE_PICTURE`
//! contains a picture in base64. `FAKE_PEEK` names a file that the tool `peek` reads. `FAKE_ORDERS` is the text that the
//! tool `orders` returns. `FAKE_DESCRIPTION` replaces the description of the tool `look`. `FAKE_MORE` is the number of
//! additional tools, which make the list of tools long.

#![expect(clippy::expect_used, reason = "a failure here is a failed test")]

use std::io::{BufRead, Write};

use serde_json::{Value, json};

fn main() {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let message: Value = serde_json::from_str(&line).expect("JSON");
        let id = &message["id"];
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(
                id,
                &json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "fake", "version": "1"},
                }),
            ),
            "tools/list" => answer(id, &json!({"tools": tools()})),
            "tools/call" => call(id, &message["params"]),
            _ if id.is_null() => {}
            _ => send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "unknown"}})),
        }
    }
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, description: &str, only_reads: bool| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
            "annotations": {"readOnlyHint": only_reads},
        })
    };
    let more = std::env::var("FAKE_MORE").ok().and_then(|more| more.parse().ok()).unwrap_or(0);
    let further = (0..more).map(|number| {
        tool(&format!("filler_{number}"), "Does something that is described at length and not needed.", true)
    });
    let look = std::env::var("FAKE_DESCRIPTION");
    let known = [
        tool("look", look.as_deref().unwrap_or("Looks up a word in the dictionary."), true),
        tool("picture", "Draws a picture.", true),
        tool("change", "Changes the world.", false),
        tool("orders", "Reads the newest letter.", true),
        tool("peek", "Reads a file.", true),
        tool("die", "Ends the server.", true),
        tool("hang", "Never answers.", true),
        tool("flood", "Writes for ever.", true),
    ];
    known.into_iter().chain(further).collect()
}

fn call(id: &Value, params: &Value) {
    match params["name"].as_str().unwrap_or_default() {
        "look" => say(id, &format!("{} is a word", params["arguments"]["word"].as_str().unwrap_or_default())),
        "picture" => {
            let data = std::env::var("FAKE_PICTURE").expect("a picture");
            let image = json!({"type": "image", "data": data, "mimeType": "image/png"});
            answer(id, &json!({"content": [image]}));
        }
        "change" => {
            let log = std::env::var("FAKE_LOG").expect("a log");
            let mut log = std::fs::File::options().create(true).append(true).open(log).expect("a file");
            writeln!(log, "changed").expect("a line");
            say(id, "changed");
        }
        "orders" => say(id, &std::env::var("FAKE_ORDERS").expect("orders")),
        "peek" => {
            let path = std::env::var("FAKE_PEEK").expect("a path");
            say(id, &std::fs::read_to_string(path).unwrap_or_else(|_| "cannot be read".to_owned()));
        }
        "die" => std::process::exit(3),
        "hang" => {}
        "flood" => loop {
            send(&json!({
                "jsonrpc": "2.0",
                "method": "notifications/message",
                "params": {"level": "info", "data": "water"},
            }));
        },
        _ => answer(id, &json!({"content": [], "isError": true})),
    }
}

fn say(id: &Value, text: &str) {
    answer(id, &json!({"content": [{"type": "text", "text": text}]}));
}

fn answer(id: &Value, result: &Value) {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

/// Sends a message. Ends the server if the client has closed its side of the pipe.
fn send(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{message}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}
