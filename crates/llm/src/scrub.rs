//! Removes keys and media from the texts of errors, and credentials from answers.

use crate::chat::{Arguments, Reply};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

/// The longest text that an error carries, in bytes.
const MAX_TEXT: usize = 2_048;
/// The longest name that an error carries, in bytes.
const MAX_NAME: usize = 200;
/// The longest run of base64 characters that stays as it is, in bytes. Words, codes and ids are shorter than this, so
/// they stay. Media are longer, so they are shortened.
const MAX_RUN: usize = 48;
/// If a run is longer than `MAX_RUN`, only this number of bytes at its beginning is kept.
const RUN_HEAD: usize = 16;
/// Shortest key that is removed, in bytes. A shorter key is a placeholder such as `x`. To remove such a key would
/// garble the texts.
const MIN_SECRET: usize = 6;

/// Shortest credential that is removed from answers, in bytes.
const MIN_CREDENTIAL: usize = 8;
/// If a server needs no key, people write one of these values as its key. An answer may contain these values, because
/// they are ordinary words.
const PLACEHOLDERS: &[&str] = &[
    "lm-studio",
    "lmstudio",
    "llama.cpp",
    "llama-cpp",
    "not-needed",
    "not-required",
    "no-key-required",
    "sk-no-key-required",
    "placeholder",
    "anything",
    "localhost",
    "api-key",
    "sk-dummy",
];

/// Removes keys and long runs of base64 characters from a text, and limits its length.
pub(crate) fn scrub(text: &str, secrets: &[SecretString]) -> String {
    shorten(cut_runs(&without(text, secrets)), MAX_TEXT)
}

/// Removes keys from a name that a server has chosen, and limits its length. Does not shorten runs of base64 characters,
/// because names of models may be such runs.
pub(crate) fn scrub_name(name: &str, secrets: &[SecretString]) -> String {
    shorten(without(name, secrets), MAX_NAME)
}

fn without(text: &str, secrets: &[SecretString]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().map(SecretString::expose_secret).filter(|secret| secret.len() >= MIN_SECRET)
    {
        replace(&mut text, secret);
    }
    text
}

pub(crate) fn replace(text: &mut String, secret: &str) {
    if text.contains(secret) {
        *text = text.replace(secret, "[key]");
    }
}

/// Returns whether a credential is removed from answers. A short credential or a placeholder may also be an ordinary
/// word of an answer, so it is not removed.
pub(crate) fn is_credential(secret: &str) -> bool {
    secret.len() >= MIN_CREDENTIAL && !PLACEHOLDERS.contains(&secret.to_lowercase().as_str())
}

/// Removes credentials from every text of a successful answer. A server may repeat a credential in its answer, and
/// polity stores the answer and shows it to others.
pub(crate) fn scrub_reply(reply: &mut Reply, credentials: &[SecretString]) {
    let Reply { text, tool_calls, finish_reason, usage: _, model, extra } = reply;
    for credential in credentials.iter().map(SecretString::expose_secret) {
        for text in [text.as_mut(), model.as_mut(), Some(&mut *finish_reason)].into_iter().flatten() {
            replace(text, credential);
        }
        scrub_members(extra, credential);
        for call in &mut *tool_calls {
            replace(&mut call.id, credential);
            replace(&mut call.name, credential);
            scrub_members(&mut call.extra, credential);
            match &mut call.arguments {
                Arguments::Object(members) => scrub_members(members, credential),
                Arguments::Malformed(text) => replace(text, credential),
            }
        }
    }
}

fn scrub_members(members: &mut Map<String, Value>, credential: &str) {
    if members.keys().any(|name| name.contains(credential)) {
        let renamed = std::mem::take(members).into_iter();
        *members = renamed.map(|(name, value)| (name.replace(credential, "[key]"), value)).collect();
    }
    members.values_mut().for_each(|value| scrub_value(value, credential));
}

fn scrub_value(value: &mut Value, credential: &str) {
    match value {
        Value::String(text) => replace(text, credential),
        Value::Array(values) => values.iter_mut().for_each(|value| scrub_value(value, credential)),
        Value::Object(members) => scrub_members(members, credential),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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

fn shorten(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - '…'.len_utf8()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{ToolCall, Usage};
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

    fn reply() -> Reply {
        let value = |text: &str| Map::from_iter([(text.to_owned(), serde_json::json!([{"x": text}, 7]))]);
        let text = "it is sk-secret-key!";
        let call = |arguments| ToolCall {
            id: text.to_owned(),
            name: text.to_owned(),
            arguments,
            extra: value(text),
        };
        Reply {
            text: Some(text.to_owned()),
            tool_calls: vec![
                call(Arguments::Object(value(text))),
                call(Arguments::Malformed(text.to_owned())),
            ],
            finish_reason: text.to_owned(),
            usage: Usage::default(),
            model: Some(text.to_owned()),
            extra: value(text),
        }
    }

    #[test]
    fn no_part_of_an_answer_keeps_a_credential() {
        let mut scrubbed = reply();
        scrub_reply(&mut scrubbed, &["sk-secret-key".to_owned().into()]);
        assert_eq!(scrubbed.text.as_deref(), Some("it is [key]!"));
        assert!(!format!("{scrubbed:?}").contains("sk-secret-key"), "{scrubbed:?}");
        let mut same = reply();
        scrub_reply(&mut same, &["another-key".to_owned().into()]);
        assert_eq!(same, reply());
    }

    #[test]
    fn words_are_no_credentials() {
        for word in ["", "x", "ollama", "EMPTY", "lm-studio", "LM-Studio", "sk-no-key-required"] {
            assert!(!is_credential(word), "{word}");
        }
        for key in ["sk-secret-key", "0123abcd"] {
            assert!(is_credential(key), "{key}");
        }
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
