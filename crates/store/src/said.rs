//! What a message says, as people are shown it.

use polity_society::message::{Body, Message};
use polity_society::present;
use polity_society::text::Texts;

/// The text of a message, in the language in force; without header and reply hint. The person is not a model: what
/// somebody said is shown as it was said.
pub fn said(message: &Message, texts: &Texts) -> String {
    if let Body::Payload(payload) = &message.body
        && let Some(words) = payload.words()
    {
        return words.to_owned();
    }
    present::said(message, texts)
}
