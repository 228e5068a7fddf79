//! Runs a society in a program of your own, and gives its agents a tool of your own. The tool books tables in a
//! restaurant; a map in memory stands for the restaurant. A scripted model replaces a real model
//! (`polity_llm::HttpModel`).

#![expect(clippy::print_stdout, reason = "the output shows what happened")]

use futures::future::{BoxFuture, FutureExt};
use polity_llm::{Arguments, CallError, ChatModel, Endpoint, Message, Reply, Request, ToolCall};
use polity_registry::{Environment, Registry};
use polity_runtime::hands::call::{Arguments as CallArguments, Invocation, Output};
use polity_runtime::hands::table::Hands;
use polity_runtime::hands::tool::{self, AfterCrash, Effect, Reach, Words};
use polity_runtime::{Parts, Prompt, Society};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// The number of the booked table for each idempotency key.
type Bookings = Arc<Mutex<HashMap<String, usize>>>;

/// The tool. polity offers it only to agents that have the right to the tool group `web`; no other agent can call it.
struct BookTable {
    bookings: Bookings,
}

impl tool::Tool for BookTable {
    fn name(&self) -> &str {
        "book_table"
    }

    fn group(&self) -> ToolGroup {
        ToolGroup::Web
    }

    fn parameters(&self) -> Value {
        json!({"type": "object", "properties": {"guests": {"type": "integer"}}, "required": ["guests"]})
    }

    fn words(&self) -> Words {
        Words::Own("Books a table in the restaurant.".to_owned())
    }

    fn reach(&self, _: &CallArguments) -> Reach {
        Reach::Other(Effect::Changes)
    }

    /// polity commits the start of each call before it runs the call. If the process dies before the call has ended,
    /// `Repeat` makes polity run the call again at the next start, with the same key. The key tells the restaurant
    /// whether it has already made this booking.
    fn after_crash(&self, _: &CallArguments) -> AfterCrash {
        AfterCrash::Repeat
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let Some(guests) = call.arguments.get("guests") else {
                let reason = "say for how many guests".to_owned();
                return Err(Refusal::ToolFailed { tool: "book_table".to_owned(), reason });
            };
            let mut bookings = self.bookings.lock().await;
            let next = bookings.len() + 1;
            let table = bookings.entry(call.idempotency_key).or_insert(next);
            Ok(Output::json(json!({"table": table, "guests": guests})))
        }
        .boxed()
    }
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
        hands: Hands::none().with(Arc::new(BookTable { bookings: Arc::clone(&bookings) })),
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
