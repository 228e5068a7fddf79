//! Quotes file names, so that each fits on one line of text, shows all its characters, and can be parsed again.
//! A file name may contain any characters, for example line breaks and invisible characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns the name unchanged if nothing in it could mislead a reader.
/// Otherwise returns it as a JSON string in which every misleading character is escaped.
pub(crate) fn quote_if_needed(name: &str) -> Cow<'_, str> {
    let padded = name.trim() != name;
    if !name.is_empty() && !padded && !name.starts_with('"') && !name.chars().any(misleads) {
        return Cow::Borrowed(name);
    }
    let mut quoted = String::with_capacity(name.len() + 2);
    quoted.push('"');
    for character in name.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if misleads(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a `String` cannot fail.
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    Cow::Owned(quoted)
}

/// Parses a name that [`quote_if_needed`] wrote; `None` if the quoting is invalid.
pub(crate) fn unquote(shown: &str) -> Option<String> {
    if shown.starts_with('"') { serde_json::from_str(shown).ok() } else { Some(shown.to_owned()) }
}

/// Returns whether a character breaks a line, changes the direction of the text, or is invisible.
fn misleads(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quoting() {
        let check = |name: &str, expect: &str| assert_eq!(quote_if_needed(name), expect);
        check("screenshot.png", "screenshot.png");
        check("截图 (1).png", "截图 (1).png");
        check("a \"b\" \\ c.png", "a \"b\" \\ c.png");
        check("【收到附件】.png", "【收到附件】.png");
        check("", r#""""#);
        check(" a.png", r#"" a.png""#);
        check("\"a\".png", r#""\"a\".png""#);
        check("a\nb\\.png", r#""a\nb\\.png""#);
        check("gnp\u{202e}.exe", r#""gnp\u202e.exe""#);
        check("a\u{2028}b\u{85}c", r#""a\u2028b\u0085c""#);
        check("a\u{e0041}", r#""a\udb40\udc41""#);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_quoted_name_is_one_line_and_reads_back(name in any::<String>()) {
            let shown = quote_if_needed(&name);
            prop_assert!(!shown.chars().any(misleads));
            prop_assert_eq!(unquote(&shown), Some(name));
        }
    }
}
