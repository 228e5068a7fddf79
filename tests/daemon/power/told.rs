//! The facts that a daemon has told others, and when. Each fact must be on the disk before the daemon tells it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polity_tests::{Conversation, Record};
use serde_json::Value;

use crate::support::database::Database;

/// A fact that the daemon has told others.
#[derive(Clone, Debug, PartialEq)]
enum Fact {
    /// An event that was printed.
    Event { seq: i64, body: Value },
    /// A tool result that was sent to a model: the agent that made the call, and the id of the call.
    Result { agent: String, call: String },
}

/// All facts that the daemon has told. Each fact comes with its place: the number of the record in the journal (the
/// list of all writes, in order) at which the daemon told it. At that place, the fact must already be on the disk.
pub(super) struct ToldFacts(Vec<(usize, Fact)>);

impl ToldFacts {
    /// Collects all facts in the journal: printed events, and tool results in requests to models.
    pub(super) fn read(journal: &[Record]) -> Self {
        let mut said: BTreeMap<PathBuf, Vec<(usize, u8)>> = BTreeMap::new();
        for (at, record) in journal.iter().enumerate().filter(|(_, record)| record.kind == "said") {
            let bytes = record.data.iter().map(|byte| (at, *byte));
            said.entry(record.path.clone()).or_default().extend(bytes);
        }
        let mut facts = Vec::new();
        for (path, bytes) in &said {
            let text: Vec<u8> = bytes.iter().map(|(_, byte)| *byte).collect();
            let when = |offset: usize| bytes[offset].0;
            match path == Path::new("1") {
                true => events(&text, |offset, fact| facts.push((when(offset), fact))),
                false => requests(&text, |offset, fact| facts.push((when(offset), fact))),
            }
        }
        Self(facts)
    }

    /// Counts the facts that the daemon had told before a journal record.
    pub(super) fn count(&self, before: usize) -> usize {
        self.0.iter().filter(|(at, _)| *at < before).count()
    }

    /// Lists the facts that are missing in the database, although the daemon had told them before a journal record.
    pub(super) fn missing(&self, before: usize, database: &mut Database) -> Vec<String> {
        let events: BTreeMap<i64, Value> = database
            .texts::<2>("SELECT CAST(seq AS TEXT), body FROM events")
            .into_iter()
            .map(|[seq, body]| (seq.parse().expect("a number"), serde_json::from_str(&body).expect("JSON")))
            .collect();
        let results: BTreeSet<[String; 2]> = database
            .texts::<2>(
                "SELECT agent, json_extract(body, '$.call') FROM records
                WHERE json_extract(body, '$.record') = 'tool_finished'",
            )
            .into_iter()
            .collect();
        let is_missing = |fact: &Fact| match fact {
            Fact::Event { seq, body } => events.get(seq) != Some(body),
            Fact::Result { agent, call } => !results.contains(&[agent.clone(), call.clone()]),
        };
        let told = self.0.iter().filter(|(at, fact)| *at < before && is_missing(fact));
        told.map(|(at, fact)| format!("{at}: {fact:?}")).collect()
    }
}

/// Finds the events in lines of JSON. Passes each event to `tell`, with the offset of the event's line.
fn events(text: &[u8], mut tell: impl FnMut(usize, Fact)) {
    let mut offset = 0;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let mut body: Value = serde_json::from_slice(line).expect("a line of JSON");
        let fields = body.as_object_mut().expect("an object");
        fields.remove("at");
        // Only events of the society have a number; other lines are skipped.
        if let Some(seq) = fields.remove("seq").and_then(|seq| seq.as_i64()) {
            tell(offset, Fact::Event { seq, body });
        }
        offset += line.len();
    }
}

/// Finds the tool results in the requests of one connection. Passes each result to `tell`, with the offset of the
/// request.
fn requests(mut text: &[u8], mut tell: impl FnMut(usize, Fact)) {
    let mut offset = 0;
    const HEAD_ENDS: &[u8] = b"\r\n\r\n";
    while let Some(end) = text.windows(HEAD_ENDS.len()).position(|window| window == HEAD_ENDS) {
        let head = str::from_utf8(&text[..end]).expect("a head of text").to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().expect("a length"));
        let body = end + HEAD_ENDS.len();
        // The process died before it had sent the whole request. So the model has got no result from this request.
        let Some(sent) = text.get(body..body + length) else { return };
        if head.starts_with("post ") {
            let request = Conversation::new(Arc::new(serde_json::from_slice(sent).expect("JSON")));
            for message in request.messages().iter().filter(|message| message["role"] == "tool") {
                let call = message["tool_call_id"].as_str().expect("an id").to_owned();
                tell(offset, Fact::Result { agent: request.agent_id(), call });
            }
        }
        offset += body + length;
        text = &text[body + length..];
    }
}
