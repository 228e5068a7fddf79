//! Assembles tool calls from their deltas.

use super::fields::merge;
use crate::arguments::parse_arguments;
use crate::chat::ToolCall;
use serde_json::{Map, Value};

/// Call fields that the API defines. All other fields are kept as `extra`.
const STANDARD: [&str; 4] = ["index", "id", "type", "function"];

/// The calls of an answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Piece>);

/// The part of a call that has arrived so far, or a delta that continues a call.
#[derive(Debug)]
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
}

impl Calls {
    /// Adds a call that arrived in one piece.
    pub(super) fn push_whole(&mut self, call: Map<String, Value>) {
        self.0.push(Piece::read(call));
    }

    /// Adds a delta to the call that it continues, or begins a new call with it.
    pub(super) fn push_delta(&mut self, delta: Map<String, Value>) {
        let piece = Piece::read(delta);
        match self.call_of(&piece) {
            Some(call) => call.join(piece),
            None => self.0.push(piece),
        }
    }

    /// Whether there is at least one call, and each call has a name and a complete JSON object as its arguments.
    pub(super) fn are_whole(&self) -> bool {
        let is_whole = |call: &Piece| {
            let arguments = serde_json::from_str::<Value>(&call.arguments);
            !call.name.is_empty() && arguments.is_ok_and(|arguments| arguments.is_object())
        };
        !self.0.is_empty() && self.0.iter().all(is_whole)
    }

    /// Ends the calls and parses their arguments.
    pub(super) fn finish(self) -> Vec<ToolCall> {
        let finish = |call: Piece| ToolCall {
            id: call.id,
            name: call.name,
            arguments: parse_arguments(&call.arguments),
            extra: call.extra,
        };
        self.0.into_iter().map(finish).collect()
    }

    /// Finds the call that a piece continues. Returns `None` if the piece begins a new call.
    fn call_of(&mut self, piece: &Piece) -> Option<&mut Piece> {
        // Search from the newest call: some servers give all their calls the same index.
        let mut candidates = self.0.iter_mut().rev();
        match (piece.index, piece.id.as_str()) {
            (Some(index), _) => {
                candidates.find(|call| call.index == Some(index)).filter(|call| !begins_another(call, piece))
            }
            (None, "") => candidates.next().filter(|call| !begins_another(call, piece)),
            (None, id) => candidates.find(|call| call.id == id),
        }
    }
}

/// Whether a piece begins a new call instead of continuing `call`: the piece and `call` both have a name, and the piece
/// has either another id, or neither an id nor an index.
fn begins_another(call: &Piece, piece: &Piece) -> bool {
    if piece.name.is_empty() || call.name.is_empty() {
        return false;
    }
    if piece.id.is_empty() {
        return piece.index.is_none();
    }
    !call.id.is_empty() && call.id != piece.id
}

impl Piece {
    /// Appends a piece. Ids and names arrive whole, so the first id and the first name are kept; arguments arrive in
    /// pieces.
    fn join(&mut self, piece: Piece) {
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
        self.arguments.push_str(&piece.arguments);
        for (name, value) in piece.extra {
            merge(&mut self.extra, name, value);
        }
    }

    fn read(mut call: Map<String, Value>) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let function = call.get("function");
        let field = |name| function.and_then(|function| function.get(name));
        let arguments = match field("arguments") {
            // Some servers send the arguments as an object instead of as a text.
            Some(object @ Value::Object(_)) => object.to_string(),
            other => text(other),
        };
        let (name, id) = (text(field("name")), text(call.get("id")));
        let index = call.get("index").and_then(Value::as_u64);
        call.retain(|name, value| !STANDARD.contains(&name.as_str()) && !value.is_null());
        Self { index, id, name, arguments, extra: call }
    }
}
