//! How much of what waits in a mailbox is taken into a turn before a model call. Pure.
//!
//! What one request shows for the first time is bounded, so that a hundred thousand messages make many requests of
//! bounded size, and none is summed up before a model has read it. A message is never split.

use crate::decide::room;
use polity_registry::Service;
use polity_society::limits::Limits;
use polity_store::messages::Size;

/// How many messages one request shows for the first time at most.
const MESSAGES: usize = 200;

/// Which part of the window they may take. Where it is cut, half of it stays: what is new still fits beside all that is
/// told in any case.
const PART_OF_WINDOW: u64 = 4;

/// The window that is reckoned with where a service declares none, in tokens.
const ASSUMED_WINDOW: u64 = 128_000;

/// What stands around a message, its header and how to answer it, in tokens.
const AROUND: u64 = 40;

/// The most tokens that a message can be estimated at: a character that is not ASCII has at least two bytes.
pub(crate) fn tokens_of(size: Size) -> u64 {
    let others = size.bytes.saturating_sub(size.characters).min(size.characters);
    let ascii = size.characters - others;
    AROUND.saturating_add(ascii.div_ceil(4)).saturating_add(others).saturating_add(size.attached)
}

/// What one request may show for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intake {
    /// How many messages.
    pub(crate) messages: usize,
    /// How many tokens they may have together.
    pub(crate) tokens: u64,
    /// How many characters of one attached text are shown.
    pub(crate) inline_text_chars: u64,
}

impl Intake {
    /// What a request to a service may show.
    pub(crate) fn of(service: &Service, limits: &Limits) -> Self {
        let window = service.context_window.filter(|window| *window > 0).unwrap_or(ASSUMED_WINDOW);
        Self {
            messages: MESSAGES,
            tokens: window / PART_OF_WINDOW,
            inline_text_chars: room::within(limits, service).inline_text_chars,
        }
    }
}

/// How many of the messages that wait, oldest first, are taken in: as many as there is room for beside those that were
/// taken before and shown to nobody yet. One in any case, so that none is too large to be read.
pub(crate) fn taken(unseen: &[Size], waiting: &[Size], most: Intake) -> usize {
    let mut count = unseen.len();
    let mut tokens = unseen.iter().fold(0, |sum: u64, size| sum.saturating_add(tokens_of(*size)));
    let fits = |size: &&Size| {
        tokens = tokens.saturating_add(tokens_of(**size));
        count += 1;
        count == 1 || count <= most.messages && tokens <= most.tokens
    };
    waiting.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::estimate_tokens;
    use proptest::prelude::*;

    fn sizes(count: usize) -> impl Strategy<Value = Vec<Size>> {
        let size = (0u64..200, 0u64..600, prop_oneof![Just(0u64), 0u64..500]);
        let size = size.prop_map(|(characters, more, attached)| Size {
            characters,
            bytes: characters + more.min(characters * 3),
            attached,
        });
        proptest::collection::vec(size, 0..count)
    }

    fn tokens(sizes: &[Size]) -> u64 {
        sizes.iter().map(|size| tokens_of(*size)).sum()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Never more than there is room for, but for one message alone; and never less.
        #[test]
        fn as_much_is_taken_in_as_there_is_room_for(
            unseen in sizes(4), waiting in sizes(40), messages in 1usize..30, room in 0u64..8_000,
        ) {
            let most = Intake { messages, tokens: room, inline_text_chars: 0 };
            let count = taken(&unseen, &waiting, most);
            let shown = unseen.len() + count;
            prop_assert!(count <= waiting.len());
            if count > 0 && shown > 1 {
                prop_assert!(shown <= messages);
                prop_assert!(tokens(&unseen) + tokens(&waiting[..count]) <= room);
            }
            if unseen.is_empty() && !waiting.is_empty() {
                prop_assert!(count > 0, "somebody would wait for ever");
            }
            if let Some(next) = waiting.get(count) {
                let with_next = tokens(&unseen) + tokens(&waiting[..count]) + tokens_of(*next);
                prop_assert!(shown + 1 > messages || with_next > room, "the next one has room too");
            }
        }

        #[test]
        fn no_text_is_estimated_at_more_than_its_size(text in "[a-z éß你好世界😀\\n]{0,80}") {
            let size = Size { characters: text.chars().count() as u64, bytes: text.len() as u64, attached: 0 };
            prop_assert!(estimate_tokens(&text) + AROUND <= tokens_of(size));
        }
    }
}
