//! What readers take characters for: the end of a line, nothing at all, or one of the brackets that headers have.

use unicode_normalization::char::is_combining_mark;

/// All that a reader may take for the end of a line.
pub(crate) fn is_line_break(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Whether a character is not seen, or changes how its neighbours are: bidirectional marks, joiners and spaces of no
/// width, line and paragraph separators, letters that are blank.
pub(crate) fn is_invisible(character: char) -> bool {
    is_bidirectional_mark(character)
        || is_blank_letter(character)
        || matches!(
            character,
            '\u{00AD}'
                | '\u{034F}'
                | '\u{180B}'..='\u{180F}'
                | '\u{200B}'..='\u{200D}'
                | '\u{2028}'..='\u{2029}'
                | '\u{2060}'..='\u{206F}'
                | '\u{FEFF}'
                | '\u{FFF0}'..='\u{FFFB}'
                | '\u{1D173}'..='\u{1D17A}'
                | '\u{E0000}'..='\u{E00FF}'
                | '\u{E01F0}'..='\u{E0FFF}'
        )
}

/// Whether a character turns the direction of the text around it.
pub(crate) fn is_bidirectional_mark(character: char) -> bool {
    matches!(
        character,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    )
}

/// Whether a character is a letter by its properties, and a blank to the eye.
fn is_blank_letter(character: char) -> bool {
    matches!(
        character,
        '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{2800}' | '\u{3164}' | '\u{FFA0}'
    )
}

/// Whether a character is a letter or a digit that can be seen by itself.
pub(crate) fn is_letter(character: char) -> bool {
    character.is_alphanumeric() && !is_invisible(character) && !is_combining_mark(character)
}

/// Whether a character is a lenticular bracket, or one that looks like it, to either side.
pub(crate) fn is_header_bracket(character: char) -> bool {
    matches!(
        character,
        '【' | '】' | '〖' | '〗' | '〔' | '〕' | '〘'..='〛' | '［' | '］' | '⟦' | '⟧' | '⟬' | '⟭'
            | '⦗' | '⦘' | '⁅' | '⁆' | '❲' | '❳' | '︗' | '︘' | '︹'..='︼' | '﹇' | '﹈' | '﹝' | '﹞'
    )
}
