//! Removes words from a list and adds words to it.

use super::{Array, Ranged, Splice};

/// Writes a list on one line.
pub(super) fn written(list: &[String]) -> String {
    let words: Vec<String> =
        list.iter().map(|word| format!("{}", serde_json::Value::from(word.as_str()))).collect();
    format!("[{}]", words.join(", "))
}

/// Returns the words of a list. Returns `None` if the list contains anything other than words.
pub(super) fn names(array: &Array<'_>) -> Option<Vec<String>> {
    let word = |value: &jsonc_parser::ast::Value<'_>| Some(value.as_string_lit()?.value.trim().to_owned());
    array.elements.iter().map(word).collect()
}

/// Returns the replacements after which the list contains exactly the words `wanted`. The old words must come first in
/// `wanted`, in the order of the list, and the new words must follow. Returns `None` if `wanted` has another order, or
/// if the edit would remove a comment.
pub(super) fn edits(text: &str, array: &Array<'_>, wanted: &[String]) -> Option<Vec<Splice>> {
    let there = names(array)?;
    let kept: Vec<&String> = there.iter().filter(|word| wanted.contains(word)).collect();
    let added: Vec<&String> = wanted.iter().filter(|word| !there.contains(word)).collect();
    if !wanted.iter().eq(kept.iter().chain(&added).copied()) {
        return None;
    }
    let last = array.elements.last();
    if kept.is_empty() || last.is_none() {
        // No old word stays, so replace the whole list, unless that would remove a comment.
        let inside = text.get(array.range.start + 1..array.range.end.checked_sub(1)?)?;
        let has_comment =
            last.is_none() && !inside.trim().is_empty() || inside.contains("//") || inside.contains("/*");
        return (!has_comment)
            .then(|| vec![Splice { range: array.range.start..array.range.end, text: written(wanted) }]);
    }
    let mut splices = Vec::new();
    for (index, element) in array.elements.iter().enumerate() {
        if wanted.contains(there.get(index)?) {
            continue;
        }
        // Remove the word and one comma. This is the comma after the word if a later word stays, and otherwise the
        // comma before the word.
        let is_followed = there.get(index + 1..)?.iter().any(|word| wanted.contains(word));
        let range = if is_followed {
            element.start()..array.elements.get(index + 1)?.start()
        } else {
            array.elements.get(index.checked_sub(1)?)?.end()..element.end()
        };
        let gap = text.get(range.clone())?;
        // Here `//` and `/*` can only begin a comment, because the names of capabilities never contain them. The edit
        // would remove this comment, so leave the list unchanged.
        if gap.contains("//") || gap.contains("/*") {
            return None;
        }
        splices.push(Splice { range, text: String::new() });
    }
    if !added.is_empty() {
        let gap = separator(text, array);
        let written: Vec<String> =
            added.iter().map(|word| format!("{gap}{}", serde_json::Value::from(word.as_str()))).collect();
        // Insert after the last word that stays.
        let at = array.elements.iter().zip(&there).rev().find(|(_, word)| wanted.contains(word))?.0.end();
        splices.push(Splice { range: at..at, text: written.concat() });
    }
    Some(splices)
}

/// Returns the separator to put before a new word. This is the text between the first two words, if that text is only a
/// comma and white space.
fn separator(text: &str, array: &Array<'_>) -> String {
    let between = match array.elements.as_slice() {
        [one, other, ..] => text.get(one.end()..other.start()).unwrap_or_default().to_owned(),
        // If the only word is on a line of its own, a new word gets its own line too.
        [one] => {
            let before = text.get(array.range.start + 1..one.start()).unwrap_or_default();
            let is_line = before.contains('\n') && before.trim().is_empty();
            if is_line { format!(",{before}") } else { String::new() }
        }
        [] => String::new(),
    };
    let is_plain = between.starts_with(',') && between.get(1..).is_some_and(|rest| rest.trim().is_empty());
    if is_plain { between } else { ", ".to_owned() }
}
