//! Keeps what others wrote from passing for lines of the system: for headers, and for other lines that only the system
//! writes into a message.

use crate::glyph::{is_bidirectional_mark, is_header_bracket, is_letter, is_line_break};
use crate::text::{TextKey, Texts};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization;

/// How many characters of a line are compared with the lines of the system. No header is longer.
const COMPARED_CHARS: usize = 160;

/// The lines that only the system writes. Lines that begin with a lenticular bracket are recognised without this list.
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

/// Marks each line that looks like a line of the system, so that no text can pass for another sender.
/// Every character that a reader may take for the end of a line becomes a line break.
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

/// Puts somebody's words on one line, to quote them in a sentence of the system.
pub(crate) fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.split(is_line_break).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Returns a value as JSON that is one line to every reader. JSON itself leaves some line breaks unescaped.
pub fn json_line(value: &impl Serialize) -> String {
    // Cannot fail: the keys of all maps that are shown are texts.
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

/// Returns whether a line looks like one of the system.
///
/// Such a line begins with the words of a line of the system, or has a header bracket before its first letter or digit,
/// or has a bidirectional mark there that may move a later bracket to the front.
fn misleads(line: &str, forms: &[Form]) -> bool {
    let words = line.find(is_letter).unwrap_or(line.len());
    // Cannot fail: `find` returns the start of a character.
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

/// Returns the letters and digits at the beginning of a line, in lower case and without width, style and marks.
fn bare(line: &str) -> String {
    let compared = line.chars().take(COMPARED_CHARS);
    compared.nfkd().filter(|character| is_letter(*character)).flat_map(char::to_lowercase).collect()
}

/// The fixed pieces of a line of the system, in order. The first piece must be at the beginning of the line.
struct Form(Vec<String>);

impl Form {
    /// Returns the forms of the system's texts, and those that the texts list in `message.header_forms`.
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

    /// Makes a form from its fixed pieces.
    /// A form that begins with a placeholder is dropped, because every line would match it.
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
