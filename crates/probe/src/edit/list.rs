//! Takes words out of a list and puts words into it.

use super::{Array, Ranged, Splice};

/// A list on one line.
pub(super) fn written(list: &[String]) -> String {
    let words: Vec<String> =
        list.iter().map(|word| format!("{}", serde_json::Value::from(word.as_str()))).collect();
    format!("[{}]", words.join(", "))
}

/// The words of a list; nothing where there is anything else in it.
pub(super) fn names(array: &Array<'_>) -> Option<Vec<String>> {
    let word = |value: &jsonc_parser::ast::Value<'_>| Some(value.as_string_lit()?.value.trim().to_owned());
    array.elements.iter().map(word).collect()
}

/// What is to be replaced for the list to hold `wanted`: words that are there already, in the same order, and new ones
/// behind them. Nothing where that cannot be done.
pub(super) fn edits(text: &str, array: &Array<'_>, wanted: &[String]) -> Option<Vec<Splice>> {
    let there = names(array)?;
    let kept: Vec<&String> = there.iter().filter(|word| wanted.contains(word)).collect();
    let added: Vec<&String> = wanted.iter().filter(|word| !there.contains(word)).collect();
    if !wanted.iter().eq(kept.iter().chain(&added).copied()) {
        return None;
    }
    let last = array.elements.last();
    if kept.is_empty() || last.is_none() {
        // Nothing stays, so there is no layout to keep; comments in it would be lost.
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
        // With its comma: the one behind it or, of the last ones, the one before.
        let is_followed = there.get(index + 1..)?.iter().any(|word| wanted.contains(word));
        let range = if is_followed {
            element.start()..array.elements.get(index + 1)?.start()
        } else {
            array.elements.get(index.checked_sub(1)?)?.end()..element.end()
        };
        let gap = text.get(range.clone())?;
        // Words have neither, so what has is between them.
        if gap.contains("//") || gap.contains("/*") {
            return None;
        }
        splices.push(Splice { range, text: String::new() });
    }
    if !added.is_empty() {
        let gap = separator(text, array);
        let written: Vec<String> =
            added.iter().map(|word| format!("{gap}{}", serde_json::Value::from(word.as_str()))).collect();
        // Behind the last one that stays.
        let at = array.elements.iter().zip(&there).rev().find(|(_, word)| wanted.contains(word))?.0.end();
        splices.push(Splice { range: at..at, text: written.concat() });
    }
    Some(splices)
}

/// What stands between two words: as between the first two, where that is a comma and white space.
fn separator(text: &str, array: &Array<'_>) -> String {
    let between = match array.elements.as_slice() {
        [one, other, ..] => text.get(one.end()..other.start()).unwrap_or_default().to_owned(),
        // Alone in its line, so a new one has a line, too.
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
