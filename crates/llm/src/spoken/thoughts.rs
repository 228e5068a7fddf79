//! Splits a model's thoughts from its answer.

use super::cursor::Cursor;

/// The marks around thoughts. Thoughts come first in an answer. If a mark is in the middle of a text, it is a
/// quotation.
const BLOCKS: [(&str, &str); 9] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("◁think▷", "◁/think▷"),
    ("<seed:think>", "</seed:think>"),
    ("<|channel>thought", "<channel|>"),
];

/// Some chat templates already contain the opening mark, so the answer has only the closing mark. These are the closing
/// marks for which this happens.
const LONE: [&str; 4] = ["</think>", "</thinking>", "[/THINK]", "</seed:think>"];

/// Tokens that may follow a message in Harmony, the format of gpt-oss.
const MESSAGE_ENDS: [&str; 5] = ["<|end|>", "<|start|>", "<|channel|>", "<|return|>", "<|call|>"];

/// Splits an answer into the model's thoughts, if there are any, and the rest without outer blanks.
///
/// Finds thoughts only at the beginning of the answer. If the last thought is never closed, all text after its opening
/// mark is a thought.
pub fn without_thoughts(text: &str) -> (Option<String>, String) {
    let mut thoughts = Vec::new();
    let mut rest = text.trim();
    while let Some((thought, after)) = block(rest).or_else(|| analysis(rest)).or_else(|| unopened(rest)) {
        if !thought.trim().is_empty() {
            thoughts.push(thought.trim());
        }
        rest = after.trim_start();
    }
    let thoughts = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
    (thoughts, without_final_header(rest).trim().to_owned())
}

fn block(text: &str) -> Option<(&str, &str)> {
    let (inside, closer) =
        BLOCKS.iter().find_map(|(opener, closer)| Some((text.strip_prefix(opener)?, closer)))?;
    Some(inside.split_once(closer).unwrap_or((inside, "")))
}

/// Splits off a message in Harmony's channel for thoughts. If the message names a recipient, it is not a thought,
/// because it calls a built-in tool: the recipient.
fn analysis(text: &str) -> Option<(&str, &str)> {
    let mut cursor = Cursor::new(text);
    cursor.eat("<|start|>assistant");
    if !cursor.eat("<|channel|>analysis<|message|>") {
        return None;
    }
    let inside = cursor.rest();
    let mut marks = inside.match_indices("<|").map(|(at, _)| inside.split_at(at));
    let ends = |rest: &str| MESSAGE_ENDS.iter().any(|end| rest.starts_with(end));
    let (thought, rest) = marks.find(|(_, rest)| ends(rest)).unwrap_or((inside, ""));
    Some((thought, rest.strip_prefix("<|end|>").unwrap_or(rest)))
}

/// Splits off thoughts before a closing mark that has no opening mark. A closing mark in quotes, in a fence, in the
/// middle of a line or after an opening mark does not count, because the text only mentions it.
fn unopened(text: &str) -> Option<(&str, &str)> {
    // A text may have many megabytes, but only few `<` and `[`. So search with `memchr`, which skips all other bytes
    // quickly.
    for at in memchr::memchr2_iter(b'<', b'[', text.as_bytes()) {
        let (before, from) = text.split_at(at);
        if BLOCKS.iter().any(|(opener, _)| from.starts_with(opener)) {
            return None;
        }
        let Some(after) = LONE.iter().find_map(|closer| from.strip_prefix(closer)) else { continue };
        let is_in_fence = before.matches("```").count() % 2 == 1;
        return (!is_in_fence && stands_alone(before, after)).then_some((before, after));
    }
    None
}

fn stands_alone(before: &str, after: &str) -> bool {
    let is_free_before = before.is_empty() || before.ends_with('\n');
    is_free_before || after.is_empty() || after.starts_with(['\n', '\r', '<', '{', '['])
}

/// Removes the header of Harmony's channel for the answer.
fn without_final_header(text: &str) -> &str {
    let inside = text.strip_prefix("<|start|>assistant").unwrap_or(text);
    match inside.strip_prefix("<|channel|>final<|message|>") {
        Some(answer) => {
            let answer = answer.trim_end();
            answer.strip_suffix("<|return|>").or_else(|| answer.strip_suffix("<|end|>")).unwrap_or(answer)
        }
        None => text,
    }
}
