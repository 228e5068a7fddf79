//! Marks forged lines in the texts of models and people: lines that look as if the system had written them.
//! Examples of lines that only the system writes are the header of a message and the hint how to answer it.

use crate::glyph::{is_bidirectional_mark, is_header_bracket, is_letter, is_line_break};
use crate::text::{TextKey, Texts};
use serde::Serialize;
use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization;

/// Only so many characters of a line are compared with the lines of the system. No header of a message is longer.
const COMPARED_CHARS: usize = 160;

/// The lines that only the system writes. Lines that begin with `【` are recognised without this list.
const OF_THE_SYSTEM: [TextKey; 10] = [
    TextKey::MessageFromAgent,
    TextKey::MessageFromUser,
    TextKey::MessageFromSystem,
    TextKey::MessageKindRequest,
    TextKey::MessageKindAnswer,
    TextKey::MessageKindSupplement,
    TextKey::MessageKindReport,
    TextKey::MessageSelfIntroduction,
    TextKey::MessageReplyHint,
    TextKey::ToolQuoted,
];

/// Marks each line that looks like a line of the system, so that no writer can pretend to be another sender.
/// Replaces every character that looks like the end of a line by a line break.
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

/// Joins the lines of a text into one line, so that the system can quote the text within a sentence.
pub(crate) fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.split(is_line_break).map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// Returns a value as JSON on one line. Also escapes line breaks that JSON may contain unescaped, such as U+2028.
pub fn json_line(value: &impl Serialize) -> String {
    // Cannot fail: the keys of all maps in these values are strings.
    let json = serde_json::to_string(value).unwrap_or_default();
    let mut line = String::with_capacity(json.len());
    for character in json.chars() {
        if is_line_break(character) {
            // Writing to a `String` cannot fail.
            let _ = write!(line, "\\u{:04x}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line
}

/// Returns whether a line looks like a line of the system.
///
/// A line does so in three cases:
/// - It begins with the words of a line of the system.
/// - It has a header bracket, such as `【`, before its first letter or digit.
/// - It has a bidirectional mark before its first letter or digit, and a header bracket anywhere. The mark may make a
///   display show the bracket at the beginning of the line.
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

/// Returns the letters and digits at the beginning of a line, in lower case.
/// Replaces wide, styled and accented characters by plain characters.
fn bare(line: &str) -> String {
    let compared = line.chars().take(COMPARED_CHARS);
    compared.nfkd().filter(|character| is_letter(*character)).flat_map(char::to_lowercase).collect()
}

/// The form of a line of the system: the fixed texts of its template, in order. The placeholders lie between them, so
/// the line begins with the first of these texts.
struct Form(Vec<String>);

impl Form {
    /// Returns the forms of the texts in `OF_THE_SYSTEM`, and the forms that the text `message.header_forms` lists.
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
    /// Returns `None` for a form that begins with a placeholder, because any line could match it.
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
