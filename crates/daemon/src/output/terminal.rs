//! Makes texts of models safe for a terminal: no escape sequence may move the cursor, set the title or fill the
//! clipboard, and no text may change the writing direction of the text beside it.

use std::borrow::Cow;

/// Replaces every character that controls a terminal by its number, such as `<U+001B>`. Line breaks and tabs stay;
/// `\r\n` becomes `\n`.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        if is_obeyed(character) {
            shown.push_str(&format!("<U+{:04X}>", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// In a JSON line, escapes all characters that control a terminal. The meaning of the JSON stays the same. JSON itself
/// requires escapes for only some of these characters.
pub(crate) fn harmless_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_obeyed) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if is_obeyed(character) {
            // All of these characters are below U+10000, so one `\u` escape with four digits is enough.
            shown.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns whether a terminal acts on a character instead of showing it: control characters, and characters that change
/// the writing direction of the text after them. Joiners and direction marks are allowed, because many languages need
/// them inside words.
pub(crate) fn is_obeyed(character: char) -> bool {
    let is_control = character.is_control() && !matches!(character, '\n' | '\t');
    is_control || matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_obeyed_is_shown() {
        let check = |text: &str, expect: &str| assert_eq!(harmless(text), expect, "{text:?}");
        check("", "");
        check("看看这张图片\n\t— 👨‍👩‍👧 می‌خواهم", "看看这张图片\n\t— 👨‍👩‍👧 می‌خواهم");
        check("\u{1b}[31mred\u{1b}[0m", "<U+001B>[31mred<U+001B>[0m");
        check("\u{1b}]52;c;cm0gLXJm\u{7}", "<U+001B>]52;c;cm0gLXJm<U+0007>");
        check("\u{9b}2J", "<U+009B>2J");
        check("\u{0}\u{8}\u{7f}", "<U+0000><U+0008><U+007F>");
        check("one\r\ntwo\r\n", "one\ntwo\n");
        check("hidden\rshown", "hidden<U+000D>shown");
        check("\r\r\n", "<U+000D>\n");
        check("evil\u{202E}txt.exe", "evil<U+202E>txt.exe");
        check("\u{2066}a\u{2069}", "<U+2066>a<U+2069>");
    }

    #[test]
    fn json_is_escaped() {
        let check = |json: &str, expect: &str| assert_eq!(harmless_json(json), expect, "{json:?}");
        check(r#"{"text":"a\u001b\n看"}"#, r#"{"text":"a\u001b\n看"}"#);
        check("{\"text\":\"\u{7f}\u{9b}\u{202E}\"}", r#"{"text":"\u007f\u009b\u202e"}"#);
    }

    fn is_turning(character: char) -> bool {
        "\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}".contains(character)
    }

    /// Generates texts with many of the dangerous characters.
    fn texts() -> impl Strategy<Value = String> {
        let character = prop_oneof![
            any::<char>(),
            proptest::char::range('\u{0}', '\u{9f}'),
            proptest::char::range('\u{2028}', '\u{2069}'),
            Just('\r'),
            Just('\n'),
        ];
        proptest::collection::vec(character, 0..40).prop_map(|characters| characters.into_iter().collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn no_control_character_but_line_break_and_tab_survives(text in texts()) {
            let shown = harmless(&text);
            let survives = |character: char| character.is_control() && !"\n\t".contains(character);
            prop_assert!(!shown.contains(survives), "{shown:?}");
            let turned = shown.contains(is_turning);
            prop_assert!(!turned, "{shown:?}");
        }

        #[test]
        fn all_else_stays_as_it_was(text in texts()) {
            let plain = |text: &str| text.replace(is_obeyed, "");
            let numbers_gone = text.chars().filter(|character| is_obeyed(*character)).fold(
                harmless(&text).into_owned(),
                |shown, character| shown.replacen(&format!("<U+{:04X}>", u32::from(character)), "", 1),
            );
            prop_assert_eq!(numbers_gone, plain(&text));
        }

        #[test]
        fn escaped_json_says_the_same_and_has_nothing_to_obey(text in texts()) {
            let value = serde_json::json!({ text.as_str(): [text.as_str(), 1] });
            let json = value.to_string();
            let shown = harmless_json(&json);
            prop_assert!(!shown.contains(|character: char| character.is_control() || is_obeyed(character)));
            let read: serde_json::Value = serde_json::from_str(&shown).unwrap();
            prop_assert_eq!(read, value);
        }
    }
}
