//! Makes tags with very many attributes harmless.
//!
//! The tokenizer compares each attribute of a tag with all attributes before it, so a tag with 100,000 attributes
//! takes a minute. The filter after the tokenizer is too late to prevent this. So this module escapes the `<` of such
//! a tag before the tokenizer reads the document.
//!
//! This module checks each `<` that could begin a tag, so a page cannot hide a tag from the check. Some of these `<` do
//! not begin a tag, because they are inside a script or in the value of an attribute. To escape them is unnecessary,
//! but does no harm: scripts are dropped anyway, and in the value of an attribute, `&lt;` means `<`.

use std::borrow::Cow;

/// Maximum number of attributes of a tag.
const MOST_ATTRIBUTES: usize = 200;

/// Maximum length of the name of a tag, in bytes.
const LONGEST_NAME: usize = 100;

/// Maximum length, in bytes, of one part of a tag: white space, the name of an attribute, or a value without quotes.
const LONGEST_STRETCH: usize = 8 * 1024;

/// Escapes each `<` that begins a tag with too many attributes, or with a part that is too long.
pub(super) fn bounded(html: &str) -> Cow<'_, str> {
    let bytes = html.as_bytes();
    let scan = Scan { bytes, double: positions(html, '"'), single: positions(html, '\'') };
    let mut bounded = String::new();
    let mut copied = 0;
    // The end of the last tag that exceeded a bound, as far as it was read. Each `<` before this place is inside the
    // tag, and is escaped without a check.
    let mut escape_before = 0;
    for (at, _) in html.match_indices('<') {
        if at >= escape_before {
            let Some(end) = scan.excess(at) else { continue };
            escape_before = end;
        }
        bounded.push_str(html.get(copied..at).unwrap_or_default());
        bounded.push_str("&lt;");
        copied = at + 1;
    }
    if copied == 0 {
        return Cow::Borrowed(html);
    }
    bounded.push_str(html.get(copied..).unwrap_or_default());
    Cow::Owned(bounded)
}

fn positions(html: &str, quote: char) -> Vec<usize> {
    html.match_indices(quote).map(|(at, _)| at).collect()
}

struct Scan<'h> {
    bytes: &'h [u8],
    double: Vec<usize>,
    single: Vec<usize>,
}

impl Scan<'_> {
    /// If the tag that begins at `start` exceeds a bound, returns the place in the text at which it does so.
    fn excess(&self, start: usize) -> Option<usize> {
        let name = match self.bytes.get(start + 1)? {
            b'/' => start + 2,
            _ => start + 1,
        };
        if !self.bytes.get(name)?.is_ascii_alphabetic() {
            return None;
        }
        let mut at = self.skip(name, |byte| !ends_name(byte));
        if at - name > LONGEST_NAME {
            return Some(at);
        }
        for _ in 0..=MOST_ATTRIBUTES {
            let begun = at;
            at = self.skip(at, |byte| is_space(byte) || byte == b'/');
            if matches!(self.bytes.get(at), None | Some(b'>')) {
                return None;
            }
            // The first byte of an attribute's name may be any byte, even `=`.
            at = self.skip(at + 1, |byte| !ends_name(byte) && byte != b'=');
            let behind = self.skip(at, is_space);
            if self.bytes.get(behind) == Some(&b'=') {
                at = self.skip(behind + 1, is_space);
                at = match self.bytes.get(at) {
                    Some(b'"') => next(&self.double, at + 1)?,
                    Some(b'\'') => next(&self.single, at + 1)?,
                    Some(_) | None => {
                        let end = self.skip(at, |byte| !is_space(byte) && byte != b'>');
                        if end - begun > LONGEST_STRETCH {
                            return Some(end);
                        }
                        end
                    }
                };
            } else if at - begun > LONGEST_STRETCH {
                return Some(at);
            }
        }
        Some(at)
    }

    /// Returns the first place from `at` on whose byte does not meet the condition `holds`. Stops one byte beyond
    /// [`LONGEST_STRETCH`], because the stretch is then too long anyway.
    fn skip(&self, at: usize, holds: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let stretch = rest.iter().take(LONGEST_STRETCH + 1).take_while(|byte| holds(**byte)).count();
        at + stretch
    }
}

/// Returns the place directly after the first quotation mark at `from` or later.
fn next(quotes: &[usize], from: usize) -> Option<usize> {
    let at = quotes.partition_point(|quote| *quote < from);
    quotes.get(at).map(|quote| quote + 1)
}

fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::bounded;

    fn attributes(count: usize) -> String {
        (0..count).map(|at| format!(" a{at}=\"x > y\" b{at}")).collect()
    }

    #[test]
    fn only_tags_beyond_the_bounds_are_escaped() {
        for plain in [
            "",
            "<",
            "a < b",
            "<p>",
            "</p>",
            "<p",
            "<p a='",
            "<p a=\"<b>\">",
            "<!-- <x> -->",
            "<img src='data:x'/>",
        ] {
            assert_eq!(bounded(plain), plain);
        }
        let fits = format!("<p{}>x", attributes(100));
        assert_eq!(bounded(&fits), fits);
        let long_value = format!("<p data-x=\"{}\">", "a b c ".repeat(100_000));
        assert!(bounded(&long_value) == long_value, "a long value is no reason");

        let too_many = format!("<i>a</i><p{}>x<b>y", attributes(101));
        let escaped = bounded(&too_many);
        assert!(escaped.starts_with("<i>a</i>&lt;p a0") && escaped.ends_with(">x<b>y"), "{escaped}");
        // The quotation mark makes the tag `<p` look like a part of an attribute's value. But the mark is inside a
        // script, where it has no meaning in HTML, so `<p` does begin a tag.
        let hidden = format!("<script><a x=\"</script><p{}>", attributes(101));
        assert!(bounded(&hidden).contains("&lt;p a0"));
        assert!(bounded(&format!("</p{}>", attributes(101))).starts_with("&lt;/p"));
        assert!(bounded(&format!("<p a={}>", "x".repeat(10_000))).starts_with("&lt;p"));
    }
}
