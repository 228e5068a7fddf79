//! Decides how a character looks to a reader: like the end of a line, invisible, or like a bracket of a header.

use unicode_normalization::char::{decompose_compatible, is_combining_mark};

/// Returns whether the character looks like the end of a line to a reader.
pub(crate) fn is_line_break(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{1C}'..='\u{1E}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns whether a character is invisible, or only changes how its neighbours look. Such characters are bidirectional
/// marks, joiners and zero-width spaces, line and paragraph separators, and blank letters.
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

/// Returns whether a character changes the direction of the text around it.
pub(crate) fn is_bidirectional_mark(character: char) -> bool {
    matches!(
        character,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
    )
}

/// Returns whether a character looks blank although Unicode does not classify it as a space.
fn is_blank_letter(character: char) -> bool {
    matches!(
        character,
        '\u{115F}'
            | '\u{1160}'
            | '\u{17B4}'
            | '\u{17B5}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{FFA0}'
            | '\u{13441}'
            | '\u{13442}'
    )
}

/// Returns whether a character that Unicode calls a letter looks like an apostrophe, a prime, an accent or a stroke.
fn is_modifier_letter(character: char) -> bool {
    matches!(
        character,
        '\u{02B9}'..='\u{02DF}'
            | '\u{02E5}'..='\u{02FF}'
            | '\u{0374}'
            | '\u{0559}'
            | '\u{2E2F}'
            | '\u{A717}'..='\u{A71F}'
            | '\u{A788}'
    )
}

/// Returns whether a character is a letter or a digit that is visible by itself. Unicode also calls some marks letters.
/// For example, U+FE70 is a space with the Arabic mark fathatan. For such a mark, returns false.
pub(crate) fn is_letter(character: char) -> bool {
    let can_be_seen = |character: char| {
        character.is_alphanumeric()
            && !is_invisible(character)
            && !is_combining_mark(character)
            && !is_modifier_letter(character)
    };
    let mut in_parts = false;
    decompose_compatible(character, |part| in_parts |= can_be_seen(part));
    in_parts && can_be_seen(character)
}

/// Returns whether a character is one of the brackets `【` and `】`, resembles such a bracket, or contains brackets.
/// For example, U+1F240 shows a Chinese character in brackets.
pub(crate) fn is_header_bracket(character: char) -> bool {
    let mut is_one = is_lenticular(character);
    decompose_compatible(character, |part| is_one |= is_lenticular(part));
    is_one
}

fn is_lenticular(character: char) -> bool {
    matches!(
        character,
        '【' | '】' | '〖' | '〗' | '〔' | '〕' | '〘'..='〛' | '［' | '］' | '⟦' | '⟧' | '⟬' | '⟭'
            | '⦗' | '⦘' | '⁅' | '⁆' | '❲' | '❳' | '︗' | '︘' | '︹'..='︼' | '﹇' | '﹈' | '﹝' | '﹞'
    )
}
