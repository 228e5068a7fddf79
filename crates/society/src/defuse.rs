//! Marks forged lines in the texts of models and people: lines that look as if the system had written them.
//! Examples of lines that only the system writes are the header of a message and the hint how to answer it.

use crate::form::{Form, bare};
use crate::glyph::{is_bidirectional_mark, is_header_bracket, is_letter, is_line_break};
use crate::text::{TextKey, Texts};
use serde::Serialize;
use std::fmt::Write as _;

/// Marks each line that looks like a line of the system, so that no writer can pretend to be another sender.
/// Replaces every character that looks like the end of a line by a line break.
pub fn defuse(text: &str, texts: &Texts) -> String {
    let mark = texts.get(TextKey::MessageQuoteMark);
    let text = text.replace("\r\n", "\n");
    let mut defused = String::with_capacity(text.len());
    for (index, line) in text.split(is_line_break).enumerate() {
        if index > 0 {
            defused.push('\n');
        }
        if misleads(line, texts.forms()) {
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
