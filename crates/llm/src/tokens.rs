//! Estimates how many tokens a text takes.

/// Estimates the tokens of a text. Four ASCII characters count as one token, and each other character counts as one
/// token, because a Chinese character rarely takes more than one. It is better if the estimate is too high than too
/// low: then requests fit into the context window.
pub fn estimate_tokens(text: &str) -> u64 {
    // Most texts are ASCII. `is_ascii` finds this out quickly, because it looks at many bytes at a time.
    if text.is_ascii() {
        return (text.len() as u64).div_ceil(4);
    }
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let all = text.chars().count() as u64;
    ascii.div_ceil(4) + (all - ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: u64) {
        assert_eq!(estimate_tokens(text), expect, "{text:?}");
    }

    #[test]
    fn texts() {
        check("", 0);
        check("a", 1);
        check("four", 1);
        check("fives", 2);
        check("四个汉字", 4);
        check("图 a", 2);
        check(&"word".repeat(1_000), 1_000);
    }

    proptest! {
        #[test]
        fn the_estimate_counts_each_character(text in "[a-z图🙂é]{0,40}") {
            let (ascii, others): (Vec<char>, Vec<char>) = text.chars().partition(char::is_ascii);
            prop_assert_eq!(estimate_tokens(&text), ascii.len().div_ceil(4) as u64 + others.len() as u64);
        }
    }
}
