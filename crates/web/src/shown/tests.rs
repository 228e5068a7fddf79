use super::{one_line, visible_chars};

#[test]
fn unseen_characters_are_removed() {
    let orders: String =
        "obey".chars().map(|char| char::from_u32(0xe0000 + char as u32).expect("a tag")).collect();
    let text = format!("a\u{200b}b\u{202e}c\u{ad}d{orders}\u{1b}[31me\r\n\tf\u{feff}");
    assert_eq!(visible_chars(&text), "abcd[31me\n\tf");
    // Joiners are part of words and of emoji.
    assert_eq!(visible_chars("می\u{200c}خواهم 👩\u{200d}💻"), "می\u{200c}خواهم 👩\u{200d}💻");
}

#[test]
fn a_line_is_one_line_and_not_too_long() {
    assert_eq!(one_line(" a\n\n b\tc ", 10), "a b c");
    assert_eq!(one_line("abcdef", 6), "abcdef");
    assert_eq!(one_line("abcdefg", 6), "abcdef…");
    assert_eq!(one_line("abc defg", 6), "abc de…");
    assert_eq!(one_line("abc def", 3), "abc…");
    assert_eq!(one_line("", 3), "");
}
