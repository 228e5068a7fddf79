//! Shortens texts of servers.

/// Joins a text into a single line, and cuts it after `chars` characters.
pub(crate) fn on_one_line(text: &str, chars: usize) -> String {
    let words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let mut line = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > chars * 4 {
            break;
        }
    }
    cut(&line, chars)
}

/// Cuts a text after `chars` characters, and marks the cut with `…`.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_line_is_short_and_has_no_control_characters(text in ".{0,80}|[ \n\t\u{0}a文]{0,80}", chars in 1..40_usize) {
            let line = on_one_line(&text, chars);
            prop_assert!(line.chars().count() <= chars + 1);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(line.trim(), &line);
        }
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("文字列", 2), "文字…");
        assert_eq!(cut("文字", 2), "文字");
        assert_eq!(on_one_line(" a\r\n\u{1b}b ", 10), "a b");
    }
}
