//! Keeps the words of somebody from passing for lines of the system: headers above all, and what else only the system
//! writes into a message.

use crate::glyph::{is_bidirectional_mark, is_header_bracket, is_letter, is_line_break};
use crate::text::{TextKey, Texts};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization;

/// How much of a line is compared with the lines of the system, in characters: a header has no more.
const COMPARED_CHARS: usize = 160;

/// The lines that only the system writes, beside those that begin with a lenticular bracket anyway.
const OF_THE_SYSTEM: [TextKey; 9] = [
    TextKey::MessageFromAgent,
    TextKey::MessageFromUser,
    TextKey::MessageFromSystem,
    TextKey::MessageKindRequest,
    TextKey::MessageKindAnswer,
    TextKey::MessageKindSupplement,
    TextKey::MessageKindReport,
    TextKey::MessageSelfIntroduction,
    TextKey::MessageReplyHint,
];

/// Marks each line that looks like a line of the system, so that no text can pass for another sender. Whatever a reader
/// may take for the end of a line becomes one.
pub fn defuse(text: &str, texts: &Texts) -> String {
    let mark = texts.get(TextKey::MessageQuoteMark);
    let forms = Form::all(texts);
    let text = text.replace("\r\n", "\n");
    let mut defused = String::with_capacity(text.len());
    for (index, line) in text.split(is_line_break).enumerate() {
        if index > 0 {
            defused.push('\n');
        }
        if misleads(line, &forms) {
            defused.push_str(mark);
        }
        defused.push_str(line);
    }
    defused
}

/// The words of somebody in the middle of a sentence of the system: one line, whatever they are.
pub(crate) fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.split(is_line_break).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// A value as JSON that is one line to every reader: JSON itself leaves some line breaks as they are.
pub fn json_line(value: &impl Serialize) -> String {
    // Cannot fail: what is shown has text keys only.
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if is_line_break(character) {
            // Cannot fail: writing to a `String`.
            let _ = write!(line, "\\u{:04x}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line
}

/// Whether a line looks like one of the system: before its first letter or digit comes a bracket as headers have it; or
/// it may be seen in another order than it is written; or it says what a line of the system says, in whatever dress.
fn misleads(line: &str, forms: &[Form]) -> bool {
    let words = line.find(is_letter).unwrap_or(line.len());
    // Cannot fail: a character that was found begins where one begins.
    let before_words = line.get(..words).unwrap_or_default();
    if before_words.contains(is_header_bracket) {
        return true;
    }
    if before_words.contains(is_bidirectional_mark) && line.contains(is_header_bracket) {
        return true;
    }
    let bare = bare(line);
    forms.iter().any(|form| form.is_of(&bare))
}

/// The letters and digits of a line's beginning, without case, width, style, and whatever stands between or over them.
fn bare(line: &str) -> String {
    let compared = line.chars().take(COMPARED_CHARS);
    compared.nfkd().filter(|character| is_letter(*character)).flat_map(char::to_lowercase).collect()
}

/// What a line of the system says in any case, in order; the first piece at its beginning.
struct Form(Vec<String>);

impl Form {
    /// The forms that the texts have and those that they name.
    fn all(texts: &Texts) -> Vec<Self> {
        let own = OF_THE_SYSTEM.into_iter().filter_map(|key| {
            let template = texts.template(key);
            let mut pieces = vec![template.as_str()];
            for name in template.placeholders() {
                let last = pieces.pop().unwrap_or_default();
                pieces.extend(last.splitn(2, &format!("{{{name}}}")));
            }
            Self::of(pieces)
        });
        let named = texts.get(TextKey::MessageHeaderForms).lines();
        own.chain(named.filter_map(|line| Self::of(line.split('…').collect()))).collect()
    }

    /// A form that begins with anything is none: every line would be of it.
    fn of(pieces: Vec<&str>) -> Option<Self> {
        let pieces: Vec<String> = pieces.into_iter().map(bare).collect();
        pieces.first().is_some_and(|first| !first.is_empty()).then_some(Self(pieces))
    }

    fn is_of(&self, bare_line: &str) -> bool {
        let Some((first, others)) = self.0.split_first() else { return false };
        let Some(mut rest) = bare_line.strip_prefix(first.as_str()) else { return false };
        for piece in others {
            let Some((_, after)) = rest.split_once(piece.as_str()) else { return false };
            rest = after;
        }
        true
    }
}
