//! The text of a message as people see it.

use polity_society::message::{Body, Message};
use polity_society::present;
use polity_society::text::Texts;

/// Returns the text of a message for people, in the current language, without the header and the reply hint that models
/// get. A text that an agent or the person wrote is shown unchanged.
pub fn said(message: &Message, texts: &Texts) -> String {
    if let Body::Payload(payload) = &message.body
        && let Some(words) = payload.words()
    {
        return words.to_owned();
    }
    present::said(message, texts)
}
