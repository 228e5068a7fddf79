//! The tool `book_table`: books a table in a restaurant. This file contains everything that the author of a tool writes.
//! A map in memory stands for the restaurant.

use futures::future::{BoxFuture, FutureExt};
use polity_runtime::hands::call::{Arguments, Invocation, Output};
use polity_runtime::hands::tool::{AfterCrash, Effect, Reach, Tool, Words};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;

const NAME: &str = "book_table";

/// The number of the booked table for each idempotency key.
pub(crate) type Bookings = Arc<Mutex<HashMap<String, usize>>>;

/// The tool. polity offers it only to agents that have the right to the tool group `web`; no other agent can call it.
pub(crate) struct BookTable {
    bookings: Bookings,
}

impl BookTable {
    /// `bookings` stands for the restaurant.
    pub(crate) fn new(bookings: Bookings) -> Self {
        Self { bookings }
    }
}

impl Tool for BookTable {
    fn name(&self) -> &str {
        NAME
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

    fn reach(&self, _: &Arguments) -> Reach {
        Reach::Other(Effect::Changes)
    }

    /// polity commits the start of each call before it runs the call. If the process dies before the call has ended,
    /// `Repeat` makes polity run the call again at the next start, with the same key. The key tells the restaurant
    /// whether it has already made this booking.
    fn after_crash(&self, _: &Arguments) -> AfterCrash {
        AfterCrash::Repeat
    }

    fn run<'a>(&'a self, call: Invocation) -> BoxFuture<'a, Result<Output, Refusal>> {
        async move {
            let Some(guests) = call.arguments.get("guests") else {
                let reason = "say for how many guests".to_owned();
                return Err(Refusal::ToolFailed { tool: NAME.to_owned(), reason });
            };
            let mut bookings = self.bookings.lock().await;
            let next = bookings.len() + 1;
            let table = bookings.entry(call.idempotency_key).or_insert(next);
            Ok(Output::json(json!({"table": table, "guests": guests})))
        }
        .boxed()
    }
}
