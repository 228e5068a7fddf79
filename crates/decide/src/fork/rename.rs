//! Replaces the old ids in the rows of a copy with the new ids: in columns, in JSON, and in texts that agents wrote.

use polity_store::fork::Rows;
use serde_json::Value;
use std::collections::HashMap;

/// The new ids of a copy. In each map, the key is the old id and the value is the new id.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The ids of agents, roles, messages and the task.
    pub ids: HashMap<String, String>,
    pub turns: HashMap<i64, i64>,
    /// The numbers of the questions to the person about calls.
    pub approvals: HashMap<i64, i64>,
    /// The numbers of the rows of messages.
    pub messages: HashMap<i64, i64>,
}

/// Renames all ids in the rows of a copy. Ids of artifacts stay, because artifacts never change.
pub fn renamed(mut rows: Rows, names: &Names) -> Rows {
    let ids = Ids::new(names);
    for row in &mut rows.roles {
        ids.text(&mut row.id);
        ids.text(&mut row.creator);
        ids.text(&mut row.name);
        ids.text(&mut row.prompt);
        ids.json_if_any(&mut row.interface_spec);
    }
    for row in &mut rows.agents {
        ids.text(&mut row.id);
        ids.text_if_any(&mut row.parent);
        ids.text_if_any(&mut row.role);
        ids.text_if_any(&mut row.name);
        ids.json_if_any(&mut row.brief);
        row.hired_in = ids.turn(row.hired_in);
    }
    for row in &mut rows.contacts {
        ids.text(&mut row.owner);
        ids.text(&mut row.agent);
        ids.text_if_any(&mut row.introduced_by);
    }
    for row in &mut rows.turns {
        row.id = ids.turn(Some(row.id)).unwrap_or(row.id);
        ids.text(&mut row.agent);
        ids.text(&mut row.began_by);
        ids.text_if_any(&mut row.works_on);
    }
    for row in &mut rows.messages {
        row.seq = names.messages.get(&row.seq).copied().unwrap_or(row.seq);
        ids.text(&mut row.id);
        ids.text(&mut row.sender);
        ids.text(&mut row.sender_role);
        ids.text(&mut row.receiver);
        ids.json(&mut row.body);
        ids.json_if_any(&mut row.in_reply_to);
        ids.text_if_any(&mut row.about);
        ids.text_if_any(&mut row.on_behalf_of);
        ids.json_if_any(&mut row.introduction);
        ids.json_if_any(&mut row.introduced);
        ids.text_if_any(&mut row.answered_by);
        row.answered_in = ids.turn(row.answered_in);
        row.sent_in = ids.turn(row.sent_in);
        row.turn = ids.turn(row.turn);
    }
    for row in &mut rows.records {
        ids.text(&mut row.agent);
        row.turn = ids.turn(Some(row.turn)).unwrap_or(row.turn);
        ids.text_if_any(&mut row.message);
        ids.record(&mut row.body);
    }
    for row in &mut rows.grants {
        ids.text(&mut row.agent);
    }
    for row in &mut rows.approvals {
        row.seq = names.approvals.get(&row.seq).copied().unwrap_or(row.seq);
        ids.text(&mut row.agent);
        row.turn = ids.turn(Some(row.turn)).unwrap_or(row.turn);
        ids.text(&mut row.role);
        ids.json(&mut row.arguments);
        ids.text_if_any(&mut row.preview);
        ids.json(&mut row.remembered);
        ids.text(&mut row.why);
        ids.json(&mut row.way);
    }
    for row in &mut rows.permissions {
        ids.text(&mut row.role);
        ids.json(&mut row.calls);
    }
    for row in &mut rows.seen {
        ids.text(&mut row.holder);
        ids.json(&mut row.way);
    }
    for row in &mut rows.notes {
        ids.text(&mut row.agent);
        ids.text(&mut row.request);
        ids.json(&mut row.answers);
        ids.text(&mut row.text);
    }
    for row in &mut rows.outputs {
        ids.text(&mut row.agent);
        ids.text(&mut row.request);
        ids.text(&mut row.asker);
    }
    rows
}

struct Ids<'a> {
    names: &'a Names,
    /// The pairs of old and new ids. The key is the first byte of the old id. An id can begin with another, shorter id,
    /// so longer old ids come first.
    by_first: HashMap<u8, Vec<(&'a str, &'a str)>>,
}

impl<'a> Ids<'a> {
    fn new(names: &'a Names) -> Self {
        let mut by_first: HashMap<u8, Vec<(&str, &str)>> = HashMap::new();
        for (old, new) in &names.ids {
            if let Some(first) = old.bytes().next() {
                by_first.entry(first).or_default().push((old, new));
            }
        }
        for ids in by_first.values_mut() {
            ids.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        }
        Self { names, by_first }
    }

    fn turn(&self, turn: Option<i64>) -> Option<i64> {
        turn.and_then(|turn| self.names.turns.get(&turn).copied())
    }

    /// Replaces every old id in a text. Does not replace an id that is only a part of a longer word.
    fn text(&self, text: &mut String) {
        let mut renamed = String::new();
        let (mut done, mut place) = (0, 0);
        let bytes = text.as_bytes();
        while let Some(byte) = bytes.get(place) {
            let begins = place == 0 || bytes.get(place - 1).is_none_or(|before| !is_part(*before));
            let found = begins.then(|| self.at(*byte, bytes, place)).flatten();
            match found {
                Some((old, new)) => {
                    renamed.push_str(text.get(done..place).unwrap_or_default());
                    renamed.push_str(new);
                    place += old.len();
                    done = place;
                }
                None => place += 1,
            }
        }
        if done > 0 {
            renamed.push_str(text.get(done..).unwrap_or_default());
            *text = renamed;
        }
    }

    fn at(&self, first: u8, bytes: &[u8], place: usize) -> Option<(&'a str, &'a str)> {
        let rest = bytes.get(place..)?;
        let is_here = |(old, _): &&(&str, &str)| {
            rest.starts_with(old.as_bytes())
                && rest.get(old.len()).is_none_or(|after| !after.is_ascii_alphanumeric())
        };
        self.by_first.get(&first)?.iter().find(is_here).copied()
    }

    fn text_if_any(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn json_if_any(&self, text: &mut Option<String>) {
        if let Some(text) = text {
            self.json(text);
        }
    }

    /// Replaces the ids in the strings and the field names of a JSON value. If the text is not JSON, replaces the ids
    /// as in plain text.
    fn json(&self, text: &mut String) {
        match serde_json::from_str::<Value>(text) {
            Ok(mut value) => {
                self.value(&mut value);
                *text = value.to_string();
            }
            Err(_) => self.text(text),
        }
    }

    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(fields) => {
                let all = std::mem::take(fields);
                for (mut name, mut field) in all {
                    self.text(&mut name);
                    self.value(&mut field);
                    fields.insert(name, field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Replaces the ids in a record. A record of the kind `asked` also contains the id of a question to the person,
    /// such as `q7`.
    fn record(&self, body: &mut String) {
        self.json(body);
        let Ok(mut record) = serde_json::from_str::<Value>(body) else { return };
        if record.get("record").and_then(Value::as_str) != Some("asked") {
            return;
        }
        let number =
            record.get("approval").and_then(Value::as_str).and_then(|id| id.strip_prefix('q')?.parse().ok());
        if let Some(new) = number.and_then(|number: i64| self.names.approvals.get(&number)) {
            record["approval"] = Value::String(format!("q{new}"));
            *body = record.to_string();
        }
    }
}

/// Returns whether this character belongs to a word. If an id comes directly after such a character, the id is only a
/// part of a longer word.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}
