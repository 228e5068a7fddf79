//! Runs a society in a program of your own, and gives its agents a tool of your own. The file `book_table.rs` contains
//! the tool, and the table of the function `tools` has one line for it. A scripted model replaces a real model
//! (`polity_llm::HttpModel`).

#![expect(clippy::print_stdout, reason = "the output shows what happened")]

mod book_table;

use book_table::{BookTable, Bookings};
use futures::future::{BoxFuture, FutureExt};
use polity_llm::{Arguments, CallError, ChatModel, Endpoint, Message, Reply, Request, ToolCall};
use polity_registry::{Environment, Registry};
use polity_runtime::hands::table::Hands;
use polity_runtime::{Parts, Prompt, Society};
use serde_json::{Map, json};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// The table of the tools that act outside the society.
fn tools(bookings: Bookings) -> Hands {
    Hands::none()
        // Each tool is one line. A further tool is a further file, and a further line here.
        .with(Arc::new(BookTable::new(bookings)))
}

/// A model that calls the tool, and then answers with its result.
struct Script;

impl ChatModel for Script {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        request: &'a Request,
        _: &'a dyn polity_llm::Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        let mut reply = Reply::default();
        if let Some(Message::Tool { content, .. }) = request.messages.last() {
            reply.text = Some(format!("Booked: {content}"));
        } else {
            let arguments = Arguments::Object(Map::from_iter([("guests".to_owned(), json!(4))]));
            let (id, name) = (String::new(), "book_table".to_owned());
            reply.tool_calls = vec![ToolCall { id, name, arguments, extra: Map::new() }];
        }
        async { Ok(reply) }.boxed()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("app.json"), r#"{"language": "en", "discover": false}"#)?;
    let no_variables = Environment::look_up(|_| None);
    let no_discovery = Box::new(|| async { Vec::new() }.boxed());
    let (registry, _) = Registry::load(directory.path(), no_variables, no_discovery).await?;
    let bookings = Bookings::default();
    let parts = Parts {
        registry: Arc::new(registry),
        model: Arc::new(Script),
        hands: tools(Arc::clone(&bookings)),
        extractor: None,
    };
    let society = Society::start(directory.path(), parts).await?;
    let text = "Book a table for four, please.".to_owned();
    society.prompt(Prompt { text, attachments: Vec::new(), service: None }).await?;

    // Every message to the user is also an event. So this program waits for events, and then reads the new messages.
    let mut events = society.newest_event();
    while society.unshown().await?.is_empty() {
        tokio::time::timeout(Duration::from_secs(60), events.changed()).await??;
    }
    let answers = society.unshown().await?;
    society.stop().await;

    let booked = bookings.lock().await.len();
    println!("The answer: {}\nTables booked: {booked}", answers[0].text);
    let is_right = answers[0].text == r#"Booked: {"table":1,"guests":4}"# && booked == 1;
    if is_right { Ok(()) } else { Err("expected one table, for four".into()) }
}
