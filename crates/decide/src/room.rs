//! Decides when a conversation is too long for a model's context window, and which part is summed up then. The
//! functions are pure.

use crate::history::{History, end, fitting, transcript};
use crate::policy::Room;
use polity_registry::{Service, Snapshot};
use polity_society::id::TurnId;
use polity_society::limits::Limits;
use polity_society::text::TextKey;
use polity_store::record::Record;

/// A share of the window, in percent. If a request takes more than this share, older history is summed up before the
/// request is sent. The share is below 100 because estimates are rough and the answer needs room too.
const FULL_PERCENT: u64 = 80;

/// If a request takes more than this share of the window, in percent, the agent is told how full the window is.
const FILLING_PERCENT: u64 = 70;

/// Returns whether to tell an agent how full its window is.
pub fn is_filling(used: u64, window: u64) -> bool {
    used.saturating_mul(100) > window.saturating_mul(FILLING_PERCENT)
}

/// The part of a conversation to sum up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The text to sum up, one entry per line.
    pub transcript: String,
    /// Number of the newest records that are not summed up.
    pub keep: u64,
    /// The maximum length of the summary, in tokens.
    pub summary_tokens: u64,
    /// Estimated tokens of the request that was too long.
    pub tokens: u64,
}

/// Returns whether a request takes so much of a service's window that older history must be summed up first. If the
/// service declares no window, the result is always false.
pub fn outgrows(tokens: u64, service: &Service) -> bool {
    bound(service).is_some_and(|bound| tokens > bound)
}

/// Returns the window of a service if a request is larger than the whole window; otherwise `None`.
pub fn overfills(tokens: u64, service: &Service) -> Option<u64> {
    service.context_window.filter(|window| *window > 0 && tokens > *window)
}

/// Returns the most tokens that a request may have; `None` if the service declares no window.
fn bound(service: &Service) -> Option<u64> {
    let window = service.context_window.filter(|window| *window > 0)?;
    let answer = service.endpoint.max_tokens.map_or(0, u64::from);
    Some((window * FULL_PERCENT / 100).min(window.saturating_sub(answer)).max(window / 4))
}

/// Chooses what to sum up so that the conversation fits again. Returns `None` if nothing can be left out. `costs`
/// contains the tokens of each record that the request shows. `tokens` is the number of tokens of the whole request.
pub fn compaction(
    history: &History,
    costs: &[u64],
    tokens: u64,
    room: Room,
    service: &Service,
    snapshot: &Snapshot,
) -> Option<Compaction> {
    let window = service.context_window.map_or(tokens, |window| window.min(tokens.max(1)));
    let told = history.told();
    let (pinned, costs) = costs.split_at_checked(told.pinned.len())?;
    let of_records: u64 = costs.iter().sum();
    let fixed = tokens.saturating_sub(of_records).saturating_add(pinned.iter().sum());
    let target = match room {
        Room::Untouched => window / 2,
        Room::Made | Room::Exhausted => window / 4,
    };
    let fits = fitting(told.records, costs, target.saturating_sub(fixed))?;
    // If it is enough to sum up earlier turns, the current turn stays whole.
    let of_turn = current_turn(told.records);
    let of_turn_costs: u64 = costs.iter().rev().take(of_turn).sum();
    let is_enough = room == Room::Untouched
        && of_turn < told.records.len()
        && bound(service).is_some_and(|bound| fixed.saturating_add(of_turn_costs) <= bound);
    let keep = if is_enough { fits.max(of_turn) } else { fits };
    let texts = &snapshot.prompts.texts;
    let transcript = transcript(&told, told.records.len() - keep, &history.messages, texts, window / 2);
    Some(Compaction { transcript, keep: keep as u64, summary_tokens: (window / 10).max(50), tokens })
}

/// Returns how many of the newest records belong to the newest turn.
fn current_turn(records: &[(TurnId, Record)]) -> usize {
    let Some((newest, _)) = records.last() else { return 0 };
    records.iter().rev().take_while(|(turn, _)| turn == newest).count()
}

/// Returns the text that replaces older history if no model could write a summary: the last entries of the transcript.
pub fn without_a_model(compaction: &Compaction, snapshot: &Snapshot) -> String {
    let heading = snapshot.prompts.texts.get(TextKey::ContextNotSummedUp);
    format!("{heading}\n{}", end(&compaction.transcript, compaction.summary_tokens))
}

/// Returns the limits on the length of texts in requests to a service. For a small context window, the limits are lower
/// than the configured ones, so that no single text fills the window.
pub fn within(limits: &Limits, service: &Service) -> Limits {
    let part = service.context_window.map_or(u64::MAX, |window| (window / 2).max(200));
    Limits {
        inline_text_chars: limits.inline_text_chars.min(part),
        tool_result_chars: limits.tool_result_chars.min(part),
        ..*limits
    }
}
