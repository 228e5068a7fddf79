//! Assembles tool calls from their deltas: the pieces of a call in a streamed answer.

use super::fields::merge;
use crate::arguments::parse_arguments;
use crate::chat::{FailureKind, ToolCall};
use crate::classify::Failure;
use crate::tell::Teller;
use polity_bounds::weigh_value;
use serde_json::{Map, Value};

/// The fields of a call that the API defines. All other fields are kept as `extra`.
const STANDARD: [&str; 4] = ["index", "id", "type", "function"];

/// Maximum number of calls in one answer. Each delta is compared with all calls before it. So without a maximum, the
/// work would have no bound.
const MOST_CALLS: usize = 512;
/// Memory that a call takes in addition to its texts and fields, in bytes.
const CALL: usize = 2 * size_of::<Piece>();

/// The calls of an answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    all: Vec<Piece>,
    /// How many of these calls the listener of the answer was already told about.
    told: usize,
}

/// Either the part of a call that has arrived so far, or a new delta that begins or continues a call.
#[derive(Debug)]
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    extra: Map<String, Value>,
}

impl Calls {
    /// Adds a call that arrived in one piece. Returns the memory that the call takes, in bytes. Fails if there are
    /// too many calls.
    pub(super) fn push_whole(&mut self, call: Map<String, Value>) -> Result<usize, Failure> {
        self.push(Piece::read(call))
    }

    /// Adds a delta to the call that the delta continues, or begins a new call. Returns the memory that the delta
    /// takes, in bytes. Fails if there are too many calls.
    pub(super) fn push_delta(&mut self, delta: Map<String, Value>) -> Result<usize, Failure> {
        let piece = Piece::read(delta);
        match self.call_of(&piece) {
            Some(call) => Ok(call.join(piece)),
            None => self.push(piece),
        }
    }

    /// Tells a listener the names of the calls that have begun since the last time.
    pub(super) fn tell_new(&mut self, teller: &Teller<'_>) {
        while let Some(call) = self.all.get(self.told).filter(|call| !call.name.is_empty()) {
            teller.call(&call.name);
            self.told += 1;
        }
    }

    fn push(&mut self, piece: Piece) -> Result<usize, Failure> {
        if self.all.len() >= MOST_CALLS {
            let message = format!("an answer with more than {MOST_CALLS} tool calls");
            return Err(Failure { kind: FailureKind::NotAnAnswer, message });
        }
        let weight = CALL + piece.texts() + piece.extra.values().map(weigh_value).sum::<usize>();
        self.all.push(piece);
        Ok(weight)
    }

    /// Whether there is at least one call, and each call has a name and a complete JSON object as its arguments.
    pub(super) fn are_whole(&self) -> bool {
        let is_whole = |call: &Piece| {
            let arguments = serde_json::from_str::<Value>(&call.arguments);
            !call.name.is_empty() && arguments.is_ok_and(|arguments| arguments.is_object())
        };
        !self.all.is_empty() && self.all.iter().all(is_whole)
    }

    /// Parses the arguments of the calls, and returns the finished calls.
    pub(super) fn finish(self) -> Vec<ToolCall> {
        let finish = |call: Piece| ToolCall {
            id: call.id,
            name: call.name,
            arguments: parse_arguments(&call.arguments),
            extra: call.extra,
        };
        self.all.into_iter().map(finish).collect()
    }

    /// Finds the call that a piece continues. Returns `None` if the piece begins a new call.
    fn call_of(&mut self, piece: &Piece) -> Option<&mut Piece> {
        // Some servers give all calls the same index. Then a piece belongs to the newest call, so the search begins
        // with the newest call.
        let mut candidates = self.all.iter_mut().rev();
        match (piece.index, piece.id.as_str()) {
            (Some(index), _) => {
                candidates.find(|call| call.index == Some(index)).filter(|call| !begins_another(call, piece))
            }
            (None, "") => candidates.next().filter(|call| !begins_another(call, piece)),
            (None, id) => candidates.find(|call| call.id == id),
        }
    }
}

/// Returns whether a piece begins a new call and does not continue `call`. If the piece or `call` has no name, the
/// piece continues `call`. If both have a name, the piece begins a new call in two cases: both have ids, and the ids
/// differ; or the piece has neither an id nor an index.
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
    /// Appends a piece to this call. The arguments arrive in many pieces, which are joined. An id or a name always
    /// arrives whole, so a further id or name is ignored. Returns the additional memory that the call takes, in bytes.
    fn join(&mut self, piece: Piece) -> usize {
        let texts = piece.texts();
        if self.id.is_empty() {
            self.id = piece.id;
        }
        if self.name.is_empty() {
            self.name = piece.name;
        }
        self.arguments.push_str(&piece.arguments);
        let extra = piece.extra.into_iter().map(|(name, value)| merge(&mut self.extra, name, value));
        texts + extra.sum::<usize>()
    }

    fn texts(&self) -> usize {
        self.id.len() + self.name.len() + self.arguments.len()
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
