//! Decides which part of a conversation the model still sees in requests, and which part a summary replaces. The
//! functions are pure.

use polity_llm::{Arguments, estimate_tokens};
use polity_society::id::{ArtifactId, TurnId};
use polity_society::message::{Body, Message};
use polity_society::notice::Notice;
use polity_society::present::FirstWords;
use polity_society::text::Texts;
use polity_store::record::{Content, Keeps, Record, ToolResult};
use polity_store::records::Recorded;
use std::collections::{HashMap, HashSet};

/// A conversation as it was recorded. Records that a summary has replaced may be missing.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Records in order, each with the id of its turn.
    pub records: Vec<(TurnId, Record)>,
    /// The messages that the agent has read. The key is the id of the message.
    pub messages: HashMap<String, Message>,
    /// The first words of each request that a message in `messages` answers or is about.
    pub asked: FirstWords,
    /// The requests to the agent that are not answered yet. They stay visible even if a summary replaces their records.
    pub open: HashSet<String>,
    /// The maximum number of tokens of all open requests that stay visible although a summary replaces their records.
    /// `None` means no limit.
    pub pin_tokens: Option<u64>,
}

impl From<Recorded> for History {
    fn from(recorded: Recorded) -> Self {
        let Recorded { records, messages, asked, open } = recorded;
        Self { records, messages, asked, open, pin_tokens: None }
    }
}

impl History {
    /// Returns the ids of all calls in the history.
    pub fn call_ids(&self) -> HashSet<&str> {
        let replies = self.records.iter().filter_map(|(_, record)| match record {
            Record::Replied(replied) => Some(replied.calls.as_slice()),
            _ => None,
        });
        replies.flatten().map(|call| call.id.as_str()).collect()
    }

    /// Returns the part of the history that requests still show to the model.
    pub fn told(&self) -> VisibleHistory<'_> {
        let (summary, start) = cut(&self.records);
        let open = |record: &Record| match record {
            Record::Heard { message } if self.open.contains(message.as_str()) => {
                self.messages.get(message.as_str())
            }
            _ => None,
        };
        let mut room = self.pin_tokens;
        let mut fits = |message: &Message| {
            let Some(left) = room else { return true };
            let taken = match &message.body {
                Body::Payload(payload) => estimate_tokens(&payload.to_json_text()),
                Body::Notice(_) => 0,
            };
            room = Some(left.saturating_sub(taken));
            left >= taken
        };
        let before = self.records[..start].iter().map(|(_, record)| record);
        let pinned = before.filter(|record| open(record).is_some_and(&mut fits)).collect();
        VisibleHistory { summary, pinned, records: &self.records[start..] }
    }
}

/// The parts of a conversation that a model is shown, in this order.
#[derive(Debug)]
pub struct VisibleHistory<'h> {
    /// The newest summary.
    pub summary: Option<&'h str>,
    /// The open requests that the model still sees, although the summary replaces the records around them.
    pub pinned: Vec<&'h Record>,
    /// The records that the summary does not replace. The model is shown these records in full.
    pub records: &'h [(TurnId, Record)],
}

impl<'h> VisibleHistory<'h> {
    /// Returns the records that a model is shown: first the records in `pinned`, then the records that are shown in
    /// full.
    pub fn all(&self) -> impl Iterator<Item = &'h Record> {
        self.pinned.clone().into_iter().chain(self.records.iter().map(|(_, record)| record))
    }
}

/// Returns the newest summary, and the index of the first record that no summary replaces.
fn cut(records: &[(TurnId, Record)]) -> (Option<&str>, usize) {
    let mut newest = (None, 0);
    for (index, (turn, record)) in records.iter().enumerate() {
        if let Record::Compacted { summary, keep_recent, keeps } = record {
            let start = start_after(records, index, *turn, *keep_recent, *keeps);
            newest = (Some(summary.as_str()), start.max(newest.1));
        }
    }
    newest
}

/// The record at `index` is a summary. Returns the index of the first record that this summary does not replace.
fn start_after(
    records: &[(TurnId, Record)],
    index: usize,
    turn: TurnId,
    keep_recent: u64,
    keeps: Keeps,
) -> usize {
    let kept = index.saturating_sub(usize::try_from(keep_recent).unwrap_or(usize::MAX));
    let mut start = match keeps {
        Keeps::Turn => records.iter().position(|(of, _)| *of == turn).unwrap_or(index).min(kept),
        Keeps::Newest => kept,
    };
    let may_begin = |record: &Record| match keeps {
        // The first record that stays is a message (`Heard`). So the turn that asked for the summary stays whole, and
        // no call is separated from its result.
        Keeps::Turn => matches!(record, Record::Heard { .. }),
        Keeps::Newest => begins_something(record),
    };
    while start > 0 && !may_begin(&records[start].1) {
        start -= 1;
    }
    start
}

/// Returns whether a history may begin with this record. A history must not begin with a tool result, because the
/// call would be missing.
fn begins_something(record: &Record) -> bool {
    matches!(record, Record::Heard { .. } | Record::Noticed { .. } | Record::Replied(_))
}

/// Returns how many of the newest records can stay if they may have `room` tokens. Returns `None` if all records can
/// stay. `costs` contains the tokens of each record. Calls and their results always stay together. The newest message,
/// or the newest answer with its calls and results, stays even if it has more tokens than that.
pub fn fitting(records: &[(TurnId, Record)], costs: &[u64], room: u64) -> Option<usize> {
    let mut taken = 0u64;
    let mut kept = None;
    for (index, (_, record)) in records.iter().enumerate().rev() {
        taken = taken.saturating_add(costs.get(index).copied().unwrap_or_default());
        if !begins_something(record) {
            continue;
        }
        if taken > room && kept.is_some() {
            break;
        }
        kept = Some(records.len() - index);
    }
    kept.filter(|kept| *kept < records.len())
}

/// The maximum number of characters of one entry in a transcript. The limit is halved until the transcript fits.
const ENTRY_CHARS: usize = 4_000;

/// Returns the text that a model sums up: the newest summary and the first `drop` records, one entry per line. Shortens
/// every entry until the text is estimated at no more than `tokens`. If that is not enough, drops the oldest lines.
pub fn transcript(
    told: &VisibleHistory<'_>,
    drop: usize,
    messages: &HashMap<String, Message>,
    texts: &Texts,
    tokens: u64,
) -> String {
    let dropped = told.records.iter().take(drop).map(|(_, record)| record);
    let entries: Vec<String> = dropped.filter_map(|record| line(record, messages, texts)).collect();
    let before = told.summary.map(|summary| format!("… {summary}"));
    let mut shown = ENTRY_CHARS;
    loop {
        let lines = before.iter().chain(&entries).map(|entry| beginning(entry, shown));
        let text = lines.collect::<Vec<_>>().join("\n");
        if estimate_tokens(&text) <= tokens {
            return text;
        }
        if shown <= 80 {
            return end(&text, tokens);
        }
        shown /= 2;
    }
}

fn line(record: &Record, messages: &HashMap<String, Message>, texts: &Texts) -> Option<String> {
    match record {
        Record::Heard { message } => {
            let message = messages.get(message.as_str())?;
            let said = match &message.body {
                Body::Payload(payload) => {
                    let mut said = payload.words().map_or_else(|| payload.to_json_text(), str::to_owned);
                    for attachment in &payload.attachments {
                        said.push(' ');
                        said.push_str(&attachment.reference());
                    }
                    said
                }
                Body::Notice(notice) => notice.text(texts),
            };
            Some(format!("{} → {said}", message.from.as_str()))
        }
        Record::Noticed { notice } => Some(format!("system → {}", notice.text(texts))),
        Record::Replied(replied) => {
            let calls = replied.calls.iter().map(|call| match &call.arguments {
                Arguments::Object(object) => {
                    format!("{}({})", call.name, serde_json::to_string(object).unwrap_or_default())
                }
                Arguments::Malformed(text) => format!("{}({text})", call.name),
            });
            let said = replied.text.iter().cloned().chain(calls).collect::<Vec<_>>().join(" ");
            (!said.is_empty()).then(|| format!("← {said}"))
        }
        Record::ToolFinished { result, .. } => Some(match result {
            ToolResult::Json(value) => format!("= {value}"),
            ToolResult::Artifact { artifact, .. } => format!("= {}", artifact.reference()),
            ToolResult::Outside { content, artifacts, .. } => {
                let content = match content {
                    Content::Json(value) => value.to_string(),
                    Content::Text { origin, text } => format!("{origin}: {text}"),
                };
                let references = artifacts.iter().map(ArtifactId::reference);
                let parts: Vec<String> = [content].into_iter().chain(references).collect();
                format!("= {}", parts.join(" "))
            }
        }),
        Record::ToolStarted { .. }
        | Record::Asked { .. }
        | Record::Judged { .. }
        | Record::Compacted { .. }
        | Record::Status { .. } => None,
        Record::Failed { reason } | Record::Stopped { reason } => {
            Some(format!("system → {}", turn_failed(reason).text(texts)))
        }
    }
}

/// Returns the notice that tells an agent that one of its turns ended early.
pub fn turn_failed(reason: &str) -> Notice {
    Notice::TurnFailed { reason: reason.to_owned() }
}

fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the last lines of a text: as many lines as fit into `tokens` tokens, by estimate.
pub fn end(text: &str, tokens: u64) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut taken = 0;
    for line in text.lines().rev() {
        taken += estimate_tokens(line) + 1;
        if taken > tokens {
            break;
        }
        kept.push(line);
    }
    kept.reverse();
    kept.join("\n")
}

/// Shortens a summary until it is estimated at no more than `tokens`.
pub fn bounded(summary: &str, tokens: u64) -> String {
    let mut shown = summary.trim().to_owned();
    while estimate_tokens(&shown) > tokens.max(1) {
        let characters = shown.chars().count();
        shown = shown.chars().take(characters * 3 / 4).collect();
    }
    shown
}

#[cfg(test)]
mod tests;
