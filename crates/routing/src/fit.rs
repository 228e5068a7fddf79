//! Keeps the result of the tool `get_artifact` within the maximum length of a tool result (contract section 8).
//!
//! JSON escapes some characters, so the length of a message depends on the characters of its text. Therefore a page
//! of a text ends where the message is full, and the message states where the next page begins.

use crate::page::{Page, cut_text};
use crate::result::{Metadata, RouteResult, Routed, tool_message};
use polity_society::content::Artifact;
use polity_society::defuse::json_line;

/// The mark at the end of a description that was cut. The rest of the description is lost: there are no further pages,
/// as there are for a text.
const CUT: char = '…';

/// The part of a text that a call of `get_artifact` asks for.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    /// A note to put before the text, for example that the text was extracted from a document.
    pub lead: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// The first character of the part, counted from 0.
    pub offset: usize,
    /// Maximum number of characters.
    pub limit: usize,
}

/// Returns the message for a part of a text. The message is at most `most` characters long. Text that does not fit is
/// left for the next page. If there is little room, the text has priority: the message first drops all metadata except
/// the id, and then the note before the text (the lead). A page always has at least one character, so that the reader
/// makes progress. In this case the message may be longer than `most`.
pub fn page_message(artifact: &Artifact, excerpt: &Excerpt<'_>, most: usize) -> String {
    let page = cut_text(excerpt.text, excerpt.offset, excerpt.limit);
    let message = |lead: &str, metadata: &Metadata, page: Page<'_>| {
        let content = format!("{lead}{}", page.text);
        let routed = Routed::Text { content, next_offset: page.next_offset };
        line(&RouteResult { content_type: artifact.kind.into(), routed, metadata: metadata.clone() })
    };
    let all = Metadata::of(artifact);
    let whole = message(excerpt.lead, &all, page);
    if length(&whole) <= most {
        return whole;
    }
    let end = excerpt.offset + length(page.text);
    let id_alone = all.id_alone();
    let frames = [(excerpt.lead, &all, most / 2), (excerpt.lead, &id_alone, most / 2), ("", &id_alone, 0)];
    let room_in = |lead: &str, metadata: &Metadata| {
        most.saturating_sub(length(&message(lead, metadata, Page { text: "", next_offset: Some(end) })))
    };
    let roomy = frames.into_iter().find(|(lead, metadata, wanted)| room_in(lead, metadata) > *wanted);
    let (lead, metadata, _) = roomy.unwrap_or(("", &id_alone, 0));
    let first = page.text.chars().next().map_or(0, char::len_utf8);
    let (shown, _) = page.text.split_at(fitting(page.text, room_in(lead, metadata)).max(first));
    let next_offset =
        if shown.len() == page.text.len() { page.next_offset } else { Some(excerpt.offset + length(shown)) };
    message(lead, metadata, Page { text: shown, next_offset })
}

/// Returns the message for a result that is not a part of a text. The message is at most `most` characters long. If
/// there is little room, the message first drops all metadata except the id, and then the end of the description.
pub fn bounded_message(result: &RouteResult, most: usize) -> String {
    let whole = line(result);
    if length(&whole) <= most {
        return whole;
    }
    let mut shorter = RouteResult { metadata: result.metadata.id_alone(), ..result.clone() };
    let message = line(&shorter);
    let too_much = length(&message).saturating_sub(most);
    if let Routed::Text { content, .. } = &mut shorter.routed
        && too_much > 0
    {
        let room = length(&json_line(content)).saturating_sub(2 + too_much);
        content.truncate(fitting(content, room.saturating_sub(1)));
        if room > 0 {
            content.push(CUT);
        }
        return line(&shorter);
    }
    message
}

fn line(result: &RouteResult) -> String {
    json_line(&tool_message(result))
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// Returns how many bytes of `text` fit, counted from its beginning. They fit if they take at most `room` characters in
/// JSON.
fn fitting(text: &str, room: usize) -> usize {
    let mut taken = 0;
    let too_much = text.char_indices().find(|(_, character)| {
        taken += in_json(*character);
        taken > room
    });
    too_much.map_or(text.len(), |(byte, _)| byte)
}

/// Returns the number of characters that JSON needs to write this one character. JSON escapes some characters and needs
/// several for them.
fn in_json(character: char) -> usize {
    let is_plain = character == ' '
        || character.is_ascii_alphanumeric()
        || matches!(character, '\u{3000}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}');
    // The JSON of a single character has two quotation marks, which do not count.
    if is_plain { 1 } else { length(&json_line(&character)).saturating_sub(2) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attachment::{BlockReason, Help};
    use crate::describe::describe_unreadable;
    use crate::testing::{artifact, chinese};
    use polity_society::content::Kind;
    use proptest::prelude::*;
    use serde_json::Value;

    /// Generates texts that grow a lot, a little, or not at all when they are written as JSON.
    fn texts() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            "[\"\\\\\n\r\t]{0,40}",
            "[\u{0}-\u{1f}\u{7f}\u{85}\u{2028}\u{2029}]{0,40}",
            "[一-龥。，「」]{0,60}",
            "[😀-😿a-z ]{0,60}",
            "[a-z ]{0,200}",
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    /// Returns the length of the shortest message with one character of `text`. Assumes that this character takes six
    /// characters in JSON.
    fn least(text: &str) -> usize {
        let id = artifact(Kind::Text, "text/plain", None).id;
        let next = length(text);
        r#"{"status":"success","contentType":"text","routing":"text","content":"","nextOffset":,"metadata":{"id":""}}"#.len()
            + next.to_string().len()
            + id.as_str().len()
            + 6
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Contract section 8: every tool result is at most `toolResultChars` long.
        /// So `get_artifact` returns a longer text in pages.
        #[test]
        fn no_page_is_too_long_and_all_of_them_are_the_text(
            text in texts(),
            room in 0usize..1_200,
            limit in prop_oneof![1usize..40, Just(usize::MAX)],
            lead in prop_oneof![Just(""), Just("从文档中取出的“文字”：\n")],
            name in "[a-z\"]{1,80}",
        ) {
            let mut notes = artifact(Kind::Text, "text/plain", Some(&name));
            notes.label = Some("\"report\"".to_owned());
            let most = least(&text) + room;
            let mut joined = String::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let excerpt = Excerpt { lead, text: &text, offset, limit };
                let message = page_message(&notes, &excerpt, most);
                prop_assert!(length(&message) <= most, "{} > {most}: {message}", length(&message));
                let message: Value = serde_json::from_str(&message).unwrap();
                let content = message["content"].as_str().unwrap();
                let page = content.strip_prefix(lead).unwrap_or(content);
                prop_assert!(!page.is_empty() || text.is_empty());
                joined.push_str(page);
                next = message["nextOffset"].as_u64().map(|next| usize::try_from(next).unwrap());
            }
            prop_assert_eq!(joined, text);
        }

        /// Even if there is no room for the JSON around the text, all pages together contain the whole text.
        #[test]
        fn where_nothing_fits_all_pages_are_still_the_text(text in texts(), most in 0usize..120) {
            let notes = artifact(Kind::Text, "text/plain", Some("notes.md"));
            let mut joined = String::new();
            let mut next = Some(0);
            while let Some(offset) = next {
                let excerpt = Excerpt { lead: "", text: &text, offset, limit: usize::MAX };
                let message: Value = serde_json::from_str(&page_message(&notes, &excerpt, most)).unwrap();
                joined.push_str(message["content"].as_str().unwrap());
                next = message["nextOffset"].as_u64().map(|next| usize::try_from(next).unwrap());
            }
            prop_assert_eq!(joined, text);
        }

        #[test]
        fn no_description_is_too_long(name in "[a-z\"一-龥]{1,300}", room in 0usize..600) {
            let picture = artifact(Kind::Image, "image/png", Some(&name));
            let content = describe_unreadable(&picture, &BlockReason::Unsupported(Help::Hire), &chinese());
            let metadata = Metadata::of(&picture);
            let most = 110 + room;
            for routed in [Routed::Text { content, next_offset: None }, Routed::ImageUrl { image_url: None }] {
                let result = RouteResult { content_type: Kind::Image.into(), routed, metadata: metadata.clone() };
                let message = bounded_message(&result, most);
                prop_assert!(length(&message) <= most, "{} > {most}: {message}", length(&message));
                if length(&line(&result)) <= most {
                    prop_assert_eq!(message, line(&result));
                }
            }
        }
    }
}
