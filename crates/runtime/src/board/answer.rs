//! An answer that is arriving from a server: its tokens so far, the end of its text, and whether the server is silent.

use super::{after, now};
use polity_llm::{Endpoint, Listener, Piece};
use polity_society::id::{ServiceId, TaskId};
use polity_view::{Doing, NextAttempt, Said, Silence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A server counts as silent if it has sent nothing for this many milliseconds. If its timeouts allow less than twice
/// this time, it already counts as silent after half of the allowed time.
const SILENT_AFTER: i64 = 10_000;
/// [`Tail`] keeps at least this many bytes of the end of a text. It keeps the whole text if the text is shorter. A
/// client reads four times per second. It misses nothing if the model writes at most this many bytes between two reads.
const KEPT: usize = 2_048;
/// Maximum number of tool names that are kept for one answer.
const MOST_CALLS: usize = 64;

/// An answer that is arriving. The client of the model passes each piece of the answer to [`Listener::hear`].
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) number: u64,
    service: ServiceId,
    attempt: u32,
    since: i64,
    limits: Limits,
    heard: Mutex<Heard>,
}

/// How long a server may take, and what the call does next if the server takes longer.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    first_byte: Option<Duration>,
    between_bytes: Duration,
    whole: Duration,
    then: NextAttempt,
    fallback: Option<ServiceId>,
}

impl Limits {
    /// Returns the limits of an endpoint. `then` and `fallback` say what the call does if the server exceeds a limit.
    pub(crate) fn of(endpoint: &Endpoint, then: NextAttempt, fallback: Option<ServiceId>) -> Self {
        Self {
            first_byte: endpoint.timeouts.first_byte,
            between_bytes: endpoint.timeouts.between_bytes,
            whole: endpoint.timeout,
            then,
            fallback: fallback.filter(|_| then == NextAttempt::Fallback),
        }
    }

    /// A server was called at `since` and sent its last byte at `last_byte`. If it counts as silent now, returns its
    /// silence. Otherwise returns `None`.
    fn silence(&self, since: i64, last_byte: Option<i64>, now: i64) -> Option<Silence> {
        let begun = last_byte.unwrap_or(since);
        let stage = match last_byte {
            None => self.first_byte.map_or(i64::MAX, |limit| after(since, limit)),
            Some(last) => after(last, self.between_bytes),
        };
        let until = after(since, self.whole).min(stage);
        let patience = SILENT_AFTER.min(until.saturating_sub(begun) / 2);
        (now.saturating_sub(begun) >= patience).then(|| Silence {
            since: begun,
            until,
            then: self.then,
            fallback: self.fallback.clone(),
        })
    }
}

/// The parts of an answer that have arrived.
#[derive(Debug, Default)]
struct Heard {
    first_byte: Option<i64>,
    last_byte: Option<i64>,
    text: Tail,
    reasoning: Tail,
    calls: Vec<String>,
    /// The number of ASCII characters so far. `others` is the number of all other characters. The number of tokens is
    /// estimated from both.
    ascii: u64,
    others: u64,
}

/// The end of a growing text.
#[derive(Debug, Default)]
struct Tail {
    kept: String,
    /// How many bytes of the text came before `kept` and were dropped.
    dropped: u64,
}

/// How much of an answer a reader of the board has received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Got {
    pub(super) answer: u64,
    text: u64,
    reasoning: u64,
    calls: usize,
}

impl Answer {
    pub(crate) fn new(number: u64, service: ServiceId, attempt: u32, limits: Limits) -> Self {
        Self { number, service, attempt, since: now(), limits, heard: Mutex::default() }
    }

    pub(super) fn doing(&self, task: TaskId, now: i64) -> Doing {
        let heard = self.heard();
        Doing::Thinking {
            task,
            service: self.service.clone(),
            attempt: self.attempt,
            since: self.since,
            first_byte: heard.first_byte,
            tokens: heard.ascii.div_ceil(4) + heard.others,
            silence: self.limits.silence(self.since, heard.last_byte, now),
        }
    }

    /// Returns whether more of the answer has arrived than the reader has received.
    pub(super) fn has_more(&self, got: &Got) -> bool {
        let heard = self.heard();
        let (text, reasoning) = (heard.text.length(), heard.reasoning.length());
        let all = Got { answer: self.number, text, reasoning, calls: heard.calls.len() };
        all != *got && (text, reasoning, all.calls) != (0, 0, 0)
    }

    /// Returns the part of the answer that the reader has not received yet, and notes in `got` that the reader has
    /// received this part. Returns `None` if no such part has arrived.
    pub(super) fn said(&self, got: &mut Got) -> Option<Said> {
        if got.answer != self.number {
            *got = Got { answer: self.number, ..Got::default() };
        }
        let heard = self.heard();
        let (text, text_skipped) = heard.text.after(&mut got.text);
        let (reasoning, reasoning_skipped) = heard.reasoning.after(&mut got.reasoning);
        let new_calls = heard.calls.len() > got.calls;
        got.calls = heard.calls.len();
        if text.is_empty() && reasoning.is_empty() && !new_calls {
            return None;
        }
        let calls = heard.calls.clone();
        Some(Said { answer: self.number, text, reasoning, calls, text_skipped, reasoning_skipped })
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        // If another thread panicked while it held the lock, the text is still complete, so the lock can be used.
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Answer {
    fn hear(&self, piece: Piece<'_>) {
        let mut heard = self.heard();
        match piece {
            Piece::Bytes => {
                let now = now();
                heard.first_byte.get_or_insert(now);
                heard.last_byte = Some(now);
            }
            Piece::Text(piece) => {
                heard.count(piece);
                heard.text.push(piece);
            }
            Piece::Reasoning(piece) => {
                heard.count(piece);
                heard.reasoning.push(piece);
            }
            Piece::Call(name) if heard.calls.len() < MOST_CALLS => heard.calls.push(name.to_owned()),
            Piece::Call(_) => {}
            Piece::Arguments(bytes) => heard.ascii += bytes as u64,
        }
    }
}

impl Heard {
    fn count(&mut self, piece: &str) {
        let ascii = piece.bytes().filter(u8::is_ascii).count() as u64;
        // Count the characters that are not ASCII. In UTF-8, the first byte of such a character is at least 0xC0, and
        // its other bytes are smaller.
        let others = piece.bytes().filter(|byte| *byte >= 0xC0).count() as u64;
        self.ascii += ascii;
        self.others += others;
    }
}

impl Tail {
    fn push(&mut self, piece: &str) {
        self.kept.push_str(piece);
        // Each cut moves the rest of the text. So do not cut after each piece, but only when the text is longer than
        // twice `KEPT`. Then the average cost per byte is constant.
        if self.kept.len() > 2 * KEPT {
            let cut = self.kept.ceil_char_boundary(self.kept.len() - KEPT);
            self.kept.drain(..cut);
            self.dropped += cut as u64;
        }
    }

    fn length(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// Returns the kept text after the byte `got`, and whether some text after `got` was already dropped. Moves `got`
    /// to the end of the text.
    fn after(&self, got: &mut u64) -> (String, bool) {
        let skipped = *got < self.dropped;
        let from = usize::try_from(got.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        *got = self.length();
        (self.kept.get(from..).unwrap_or_default().to_owned(), skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(first_byte: Option<u64>, between_bytes: u64, whole: u64) -> Limits {
        Limits {
            first_byte: first_byte.map(Duration::from_secs),
            between_bytes: Duration::from_secs(between_bytes),
            whole: Duration::from_secs(whole),
            then: NextAttempt::Retry,
            fallback: None,
        }
    }

    #[test]
    fn a_server_is_silent_after_ten_seconds_or_half_of_its_time() {
        let check = |limits: Limits, last_byte: Option<i64>, now: i64, expect: Option<(i64, i64)>| {
            let silence = limits.silence(1_000, last_byte, now);
            assert_eq!(silence.map(|silence| (silence.since, silence.until)), expect);
        };
        check(limits(None, 300, 600), None, 10_999, None);
        check(limits(None, 300, 600), None, 11_000, Some((1_000, 601_000)));
        check(limits(Some(60), 300, 600), None, 11_000, Some((1_000, 61_000)));
        check(limits(Some(4), 300, 600), None, 2_999, None);
        check(limits(Some(4), 300, 600), None, 3_000, Some((1_000, 5_000)));
        check(limits(Some(4), 300, 600), Some(2_000), 11_999, None);
        check(limits(Some(4), 300, 600), Some(2_000), 12_000, Some((2_000, 302_000)));
        check(limits(Some(4), 300, 600), Some(590_000), 596_000, Some((590_000, 601_000)));
    }

    fn answer() -> Answer {
        Answer::new(7, ServiceId::new("local"), 1, limits(None, 300, 600))
    }

    #[test]
    fn a_late_reader_is_told_that_it_has_missed_something() {
        let (answer, mut got) = (answer(), Got::default());
        assert_eq!(answer.said(&mut got), None);
        answer.hear(Piece::Text("字"));
        answer.hear(Piece::Call("find"));
        let said = answer.said(&mut got).unwrap();
        assert_eq!(
            (said.text.as_str(), said.calls, said.text_skipped),
            ("字", vec!["find".to_owned()], false)
        );
        assert_eq!(answer.said(&mut got), None);
        for _ in 0..10_000 {
            answer.hear(Piece::Text("字"));
        }
        let said = answer.said(&mut got).unwrap();
        assert!(said.text_skipped && said.text.len() <= 2 * KEPT && said.text.len() >= KEPT - 3, "{said:?}");
        let Doing::Thinking { tokens, .. } = answer.doing(TaskId::new("t-1"), now()) else { panic!() };
        assert_eq!(tokens, 10_001);
    }

    proptest! {
        /// A reader that reads after every piece gets each character once and in order.
        #[test]
        fn a_fast_reader_gets_the_whole_text(pieces in prop::collection::vec("[a字]{0,9}", 0..600)) {
            let (answer, mut got, mut all) = (answer(), Got::default(), String::new());
            for piece in &pieces {
                answer.hear(Piece::Text(piece));
                if let Some(said) = answer.said(&mut got) {
                    prop_assert!(!said.text_skipped);
                    all.push_str(&said.text);
                }
            }
            prop_assert_eq!(all, pieces.concat());
        }
    }
}
