//! Cuts long texts into pages.

/// One part of a longer text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// The part: an unchanged slice of the whole text.
    pub text: &'a str,
    /// Offset of the next page, in characters from the start of the whole text; `None` if this is the last page.
    pub next_offset: Option<usize>,
}

/// Returns at most `limit` characters of `text`, from character `offset` on.
///
/// Characters are Unicode scalar values, so no character is split.
/// A limit of 0 counts as 1, so that reading page by page always reaches the end.
/// An offset past the end gives an empty last page.
pub fn cut_text(text: &str, offset: usize, limit: usize) -> Page<'_> {
    // `byte_of` returns where a character begins, so the slices below cannot panic.
    let byte_of = |text: &str, characters: usize| text.char_indices().nth(characters).map(|(byte, _)| byte);
    let rest = byte_of(text, offset).map_or("", |start| &text[start..]);
    let limit = limit.max(1);
    match byte_of(rest, limit) {
        Some(end) => Page { text: &rest[..end], next_offset: Some(offset + limit) },
        None => Page { text: rest, next_offset: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pages() {
        let check = |text: &str, offset: usize, limit: usize, expect: &str, next_offset: Option<usize>| {
            assert_eq!(cut_text(text, offset, limit), Page { text: expect, next_offset });
        };
        check("", 0, 10, "", None);
        check("图片阅读者", 0, 2, "图片", Some(2));
        check("图片阅读者", 2, 2, "阅读", Some(4));
        check("图片阅读者", 4, 2, "者", None);
        check("图片阅读者", 0, 5, "图片阅读者", None);
        check("图片阅读者", 5, 2, "", None);
        check("图片阅读者", 99, 2, "", None);
        check("ab", 0, 0, "a", Some(1));
        check("ab", 0, usize::MAX, "ab", None);
        check("a\u{301}b", 0, 1, "a", Some(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn the_pages_of_a_text_are_the_text(text in any::<String>(), limit in 1usize..20) {
            let mut joined = String::new();
            let mut offset = Some(0);
            while let Some(start) = offset {
                let page = cut_text(&text, start, limit);
                prop_assert!(page.text.chars().count() <= limit);
                joined.push_str(page.text);
                offset = page.next_offset;
            }
            prop_assert_eq!(joined, text);
        }
    }
}
