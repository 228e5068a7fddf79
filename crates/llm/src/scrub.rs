//! Removes keys and media from texts that are shown.

use secrecy::{ExposeSecret, SecretString};

/// The longest text that an error carries, in bytes.
const MAX_TEXT: usize = 2_048;
/// The longest run of base64 characters that stays whole, in bytes. Words, codes and ids are shorter, media are longer.
const MAX_RUN: usize = 48;
/// Number of bytes that are kept of a run that is too long.
const RUN_HEAD: usize = 16;
/// Shortest key that is removed, in bytes. Shorter keys are placeholders such as `x`: removing them would garble texts.
const MIN_SECRET: usize = 6;

/// Removes keys and long runs of base64 characters from a text, and limits its length.
pub(crate) fn scrub(text: &str, secrets: &[SecretString]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().map(SecretString::expose_secret).filter(|secret| secret.len() >= MIN_SECRET)
    {
        if text.contains(secret) {
            text = text.replace(secret, "[key]");
        }
    }
    shorten(cut_runs(&text))
}

fn cut_runs(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(MAX_TEXT));
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run_length = rest.find(|character| !is_base64(character)).unwrap_or(rest.len());
        if run_length == 0 {
            out.push(first);
            rest = rest.split_at(first.len_utf8()).1;
            continue;
        }
        let (run, after) = rest.split_at(run_length);
        match run.split_at_checked(RUN_HEAD) {
            Some((head, _)) if run.len() > MAX_RUN => {
                out.push_str(head);
                out.push('…');
            }
            Some(_) | None => out.push_str(run),
        }
        rest = after;
    }
    out
}

fn is_base64(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=' | '-' | '_')
}

fn shorten(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(scrub(text, &["sk-secret-key".to_owned().into(), "x".to_owned().into()]), expect);
    }

    #[test]
    fn keys_and_long_runs_go() {
        check("Incorrect API key provided: sk-secret-key.", "Incorrect API key provided: [key].");
        check("max context exceeded", "max context exceeded");
        check("模型不存在", "模型不存在");
        let run = "QUJD".repeat(40);
        check(
            &format!("bad url data:image/png;base64,{run} here"),
            "bad url data:image/png;base64,QUJDQUJDQUJDQUJD… here",
        );
        check(&"A".repeat(48), &"A".repeat(48));
        check(&"A".repeat(49), "AAAAAAAAAAAAAAAA…");
    }

    proptest! {
        #[test]
        fn no_long_run_survives_and_the_length_is_bounded(text in "[a-zA-Z0-9+/ 字\n]{0,3000}") {
            let scrubbed = scrub(&text, &[]);
            prop_assert!(scrubbed.len() <= MAX_TEXT);
            let mut runs = scrubbed.split(|character| !is_base64(character));
            prop_assert!(runs.all(|run| run.len() <= MAX_RUN));
        }

        #[test]
        fn a_key_never_survives(key in "[a-zA-Z0-9-]{8,120}", before in ".{0,40}", after in ".{0,40}") {
            let text = format!("{before}{key}{after}");
            let scrubbed = scrub(&text, &[key.clone().into()]);
            prop_assert!(!scrubbed.contains(&key));
        }
    }
}
