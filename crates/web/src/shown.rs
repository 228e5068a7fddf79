//! Makes text from outside safe to show in one line of an error or a field.

/// Maximum length of outside text in an error, in characters.
const LONGEST: usize = 200;

/// Removes invisible characters, in which somebody could hide orders to a model: control characters, zero-width and
/// direction characters, tags and variation selectors. Keeps line breaks and tabs.
pub(crate) fn visible_chars(text: &str) -> String {
    text.chars().filter(|char| !is_unseen(*char)).collect()
}

fn is_unseen(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        // These are: soft hyphen, Mongolian vowel separator, zero-width space, direction marks and overrides, invisible
        // operators, byte order mark, annotations. The joiners U+200C and U+200D are not among them and are kept,
        // because words and emoji need them.
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        // The block "Tags" of Unicode, which is an invisible copy of ASCII, and the variation selectors beside it.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => char.is_control(),
    }
}

/// Returns text as one line of at most `longest` characters.
pub(crate) fn one_line(text: &str, longest: usize) -> String {
    let visible = visible_chars(text);
    let mut line = String::new();
    let mut length = 0;
    for word in visible.split_whitespace() {
        let gap = usize::from(!line.is_empty());
        let room = longest.saturating_sub(length + gap);
        if room == 0 {
            line.push('…');
            return line;
        }
        if gap == 1 {
            line.push(' ');
        }
        let taken = word.chars().take(room).count();
        line.extend(word.chars().take(room));
        length += gap + taken;
        if taken < word.chars().take(room + 1).count() {
            line.push('…');
            return line;
        }
    }
    line
}

/// Returns a URL, or another text of a server, as an error shows it: one line of at most [`LONGEST`] characters.
pub(crate) fn shown_url(text: &str) -> String {
    one_line(text, LONGEST)
}

#[cfg(test)]
mod tests;
