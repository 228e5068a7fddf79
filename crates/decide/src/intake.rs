//! Decides how much of a mailbox a turn takes in before a model call. The functions are pure.
//!
//! Each request shows the model only a bounded amount of new mail. So a hundred thousand messages lead to many requests
//! of bounded size, and no message is summed up before a model has read it. A message is never split.

use crate::room;
use polity_registry::Service;
use polity_society::limits::Limits;
use polity_store::messages::Size;

/// The maximum number of new messages in one request. A message is new until a model has answered a request that
/// contains the message.
const MESSAGES: usize = 200;

/// New messages may take at most the window divided by this number. Compaction sums up older history, and then half of
/// the window is free. So there is always enough room for the new messages and the rest of the request.
const PART_OF_WINDOW: u64 = 4;

/// The window, in tokens, that is assumed for a service that declares none.
const ASSUMED_WINDOW: u64 = 128_000;

/// Tokens that a request adds to each message for its header and for the hint how to answer it.
const AROUND: u64 = 40;

/// Returns an upper bound for the estimated tokens of a message. The estimate counts a quarter of a token for each
/// ASCII character and a whole token for each other character. `size` does not say how many other characters there are.
/// But each of them has at least two bytes, so there are at most `bytes - characters` of them.
pub fn tokens_of(size: Size) -> u64 {
    let others = size.bytes.saturating_sub(size.characters).min(size.characters);
    let ascii = size.characters - others;
    AROUND.saturating_add(ascii.div_ceil(4)).saturating_add(others).saturating_add(size.attached)
}

/// The bounds for new messages in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intake {
    pub messages: usize,
    /// The tokens that the new messages may have together.
    pub tokens: u64,
    /// The maximum number of characters that a request shows of one attached text.
    pub inline_text_chars: u64,
}

impl Intake {
    /// Returns the bounds for requests to a service.
    pub fn of(service: &Service, limits: &Limits) -> Self {
        let window = service.context_window.filter(|window| *window > 0).unwrap_or(ASSUMED_WINDOW);
        Self {
            messages: MESSAGES,
            tokens: window / PART_OF_WINDOW,
            inline_text_chars: room::within(limits, service).inline_text_chars,
        }
    }
}

/// Returns how many of the waiting messages a turn takes in, oldest first.
///
/// The `unseen` messages are the messages that the turn has already taken in, but that no model has read yet. They take
/// up room, and the turn takes in as many waiting messages as fit beside them. If there are no unseen messages, the
/// turn takes in at least one message, so that a model reads even a message that is too large.
pub fn taken(unseen: &[Size], waiting: &[Size], most: Intake) -> usize {
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

        /// A turn takes in exactly as many messages as fit, or a single message that is too large.
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
                prop_assert!(count > 0, "no message was taken in, so its sender waits for ever");
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
