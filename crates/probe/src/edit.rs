//! Writes corrections into the text of `llmservices.json`. The rest of the text stays the same, byte for byte.
//!
//! This module parses the text to find the positions of values, and then replaces a few pieces of the text.

mod list;

use crate::correction::Correction;
use jsonc_parser::ast::{Array, Object, ObjectProp, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use polity_registry::{Service, parse_services};
use std::ops::Range;

/// Why a text was not edited.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum EditError {
    /// The text is not valid JSON with comments, which is the format that the registry reads.
    #[error("the file cannot be read as JSON with comments")]
    Unreadable,
    /// If the registry read the edited text, it would not get the corrected values.
    #[error("the file is laid out in a way that cannot be edited safely")]
    Unsafe,
}

/// A text with corrections written into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The whole edited text.
    pub text: String,
    /// The changes that were made; empty if the text is the same as before.
    pub changes: Vec<Change>,
}

/// A change to one field of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Id of the service.
    pub service: String,
    /// The field, such as `capabilities.input`.
    pub field: &'static str,
    /// The old value, as JSON; absent if the field is new.
    pub before: Option<String>,
    /// The new value, as JSON.
    pub after: String,
}

/// A replacement for a piece of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// Writes the corrections into the text. A field that cannot be corrected safely stays as it is.
///
/// # Errors
///
/// Fails if the text cannot be read, or if the registry would not read the corrected values from the edited text.
pub fn edit(text: &str, corrections: &[Correction]) -> Result<Edited, EditError> {
    let (splices, changes) = plan(text, corrections)?;
    let edited = spliced(text, splices);
    let is_meant = is_meant(text, &edited, &changes);
    is_meant.then_some(Edited { text: edited, changes }).ok_or(EditError::Unsafe)
}

/// Returns the replacements that write the corrections into the text, and the changes to report.
fn plan(text: &str, corrections: &[Correction]) -> Result<(Vec<Splice>, Vec<Change>), EditError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
    // Parse the text without its byte order mark. (The registry ignores the mark too.) The positions from the parser
    // are then too small by the length of the mark. The loop at the end corrects them.
    let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = text.len() - without_mark.len();
    let parsed = parse_to_ast(without_mark, &collect, &options).map_err(|_| EditError::Unreadable)?;
    let Some(Value::Object(root)) = &parsed.value else { return Err(EditError::Unreadable) };
    let Some(Value::Array(services)) = value_of(root, "services") else { return Ok(Default::default()) };
    let (mut splices, mut changes) = (Vec::new(), Vec::new());
    for correction in corrections {
        let mut named = services.elements.iter().filter_map(Value::as_object).filter(|object| {
            let id = value_of(object, "id").and_then(Value::as_string_lit);
            id.is_some_and(|id| id.value.trim() == correction.service)
        });
        // If two services have the same id, the registry uses the first, so correct the first.
        let Some(object) = named.next() else { continue };
        correct(without_mark, object, correction, &mut splices, &mut changes);
    }
    for Splice { range, .. } in &mut splices {
        *range = range.start + mark..range.end + mark;
    }
    Ok((splices, changes))
}

/// Returns the value of a field. If the field occurs twice, returns `None`, because it is not clear which value counts.
fn value_of<'o, 't>(object: &'o Object<'t>, name: &str) -> Option<&'o Value<'t>> {
    let mut named = object.properties.iter().filter(|property| property.name.as_str() == name);
    let first = named.next()?;
    named.next().is_none().then_some(&first.value)
}

fn has(object: &Object<'_>, name: &str) -> bool {
    object.properties.iter().any(|property| property.name.as_str() == name)
}

fn correct(
    text: &str,
    object: &Object<'_>,
    correction: &Correction,
    splices: &mut Vec<Splice>,
    changes: &mut Vec<Change>,
) {
    let mut change = |field: &'static str, before: Option<String>, after: String| {
        changes.push(Change { service: correction.service.clone(), field, before, after });
    };
    let sides = [
        ("input", "capabilities.input", &correction.input),
        ("output", "capabilities.output", &correction.output),
    ];
    let mut fields: Vec<(&str, String)> = Vec::new();
    if !has(object, "capabilities") {
        let wanted: Vec<String> = sides
            .iter()
            .filter_map(|(name, _, list)| Some(format!("{name:?}: {}", list::written(list.as_ref()?))))
            .collect();
        if !wanted.is_empty() {
            for (_, field, list) in &sides {
                if let Some(list) = list {
                    change(field, None, list::written(list));
                }
            }
            fields.push(("capabilities", format!("{{{}}}", wanted.join(", "))));
        }
    } else if let Some(Value::Object(capabilities)) = value_of(object, "capabilities") {
        let mut missing: Vec<(&str, String)> = Vec::new();
        for (name, field, list) in sides {
            let Some(list) = list else { continue };
            match value_of(capabilities, name) {
                Some(Value::Array(array)) => {
                    let Some(names) = list::names(array).filter(|names| names != list) else { continue };
                    let Some(edits) = list::edits(text, array, list) else { continue };
                    change(field, Some(list::written(&names)), list::written(list));
                    splices.extend(edits);
                }
                None if !has(capabilities, name) => {
                    change(field, None, list::written(list));
                    missing.push((name, list::written(list)));
                }
                Some(_) | None => {}
            }
        }
        splices.extend(append(text, capabilities, &missing));
    }
    if let Some(window) = correction.context_window.map(|window| window.to_string()) {
        match value_of(object, "contextWindow") {
            Some(Value::NumberLit(before)) if before.value != window => {
                change("contextWindow", Some(before.value.to_owned()), window.clone());
                splices.push(Splice { range: before.range.start..before.range.end, text: window });
            }
            None if !has(object, "contextWindow") => {
                change("contextWindow", None, window.clone());
                fields.push(("contextWindow", window));
            }
            Some(_) | None => {}
        }
    }
    splices.extend(append(text, object, &fields));
}

/// Adds fields after the last field of an object, with the same layout.
fn append(text: &str, object: &Object<'_>, fields: &[(&str, String)]) -> Vec<Splice> {
    let written = |(name, value): &(&str, String)| format!("{name:?}: {value}");
    if fields.is_empty() {
        return Vec::new();
    }
    let Some(last) = object.properties.last() else {
        let all: Vec<String> = fields.iter().map(written).collect();
        let at = object.range.start + 1;
        return vec![Splice { range: at..at, text: all.join(", ") }];
    };
    let end = last.end();
    // A comment on the line of the last field stays on that line.
    let place = end + comment_beside(text.get(end..object.range.end).unwrap_or_default());
    let is_after_comment = text.get(end..place).is_some_and(|comment| comment.contains("//"));
    let mut gap = gap_before(text, object, last);
    if is_after_comment && !gap.contains('\n') {
        gap.insert(0, '\n');
    }
    let added: String = fields
        .iter()
        .enumerate()
        .map(|(index, field)| format!("{}{gap}{}", if index == 0 { "" } else { "," }, written(field)))
        .collect();
    if place == end {
        return vec![Splice { range: end..end, text: format!(",{added}") }];
    }
    vec![Splice { range: end..end, text: ",".to_owned() }, Splice { range: place..place, text: added }]
}

/// Returns the white space before a field, or one space if there is none.
fn gap_before(text: &str, object: &Object<'_>, property: &ObjectProp<'_>) -> String {
    let from = match object.properties.iter().rev().nth(1) {
        Some(before) => before.end(),
        None => object.range.start + 1,
    };
    let between = text.get(from..property.start()).unwrap_or_default();
    let space = between.rsplit(|character: char| !character.is_whitespace()).next().unwrap_or_default();
    let space = match space.rfind('\n') {
        // Keep only the last line of the white space. Otherwise empty lines could separate the new field from the field
        // before it.
        Some(at) => {
            let line = space.get(at..).unwrap_or_default();
            if space.contains("\r\n") { format!("\r{line}") } else { line.to_owned() }
        }
        None => space.to_owned(),
    };
    if space.is_empty() { " ".to_owned() } else { space }
}

/// Returns the length of the comments on the same line, including the white space before the comments. Returns 0 if
/// there are no comments.
fn comment_beside(rest: &str) -> usize {
    let mut at = 0;
    loop {
        let here = rest.get(at..).unwrap_or_default();
        let white = here.len() - here.trim_start_matches([' ', '\t']).len();
        let comment = here.get(white..).unwrap_or_default();
        if comment.starts_with("//") {
            let line = comment.find('\n').unwrap_or(comment.len());
            let without_return = comment.get(..line).unwrap_or_default().trim_end_matches('\r').len();
            return at + white + without_return;
        }
        let Some(inside) = comment.strip_prefix("/*") else { return at };
        let Some(end) = inside.find("*/") else { return at };
        at += white + "/*".len() + end + "*/".len();
    }
}

/// Makes the replacements in the text.
fn spliced(text: &str, mut splices: Vec<Splice>) -> String {
    // If an insertion and a replacement begin at the same position, make the insertion first. Several insertions at one
    // position keep their order.
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let (mut edited, mut at) = (String::with_capacity(text.len()), 0);
    for Splice { range, text: with } in splices {
        edited.push_str(text.get(at..range.start).unwrap_or_default());
        edited.push_str(&with);
        at = range.end;
    }
    edited.push_str(text.get(at..).unwrap_or_default());
    edited
}

/// Returns whether the registry reads the same services from both texts, except for the intended changes.
fn is_meant(before: &str, after: &str, changes: &[Change]) -> bool {
    let (Ok((before, _)), Ok((after, _))) = (parse_services(before), parse_services(after)) else {
        return false;
    };
    let is_changed = |service: &Service, field: &str| {
        changes.iter().any(|change| change.service == service.id.as_str() && change.field.starts_with(field))
    };
    before.len() == after.len()
        && before.iter().zip(&after).all(|(before, after)| {
            let mut expected = before.clone();
            if is_changed(before, "capabilities") {
                expected.capabilities = after.capabilities.clone();
                expected.declared = after.declared;
            }
            if is_changed(before, "contextWindow") {
                expected.context_window = after.context_window;
            }
            let says = |service: &Service| format!("{service:?}");
            let has = |field: &str, value: String| {
                let mut wanted = changes
                    .iter()
                    .filter(|change| change.service == after.id.as_str() && change.field == field);
                wanted.all(|change| change.after == value)
            };
            let names = |list: &[polity_society::content::Capability]| {
                list::written(&list.iter().map(ToString::to_string).collect::<Vec<_>>())
            };
            says(&expected) == says(after)
                && expected.endpoint.is_same_server(&after.endpoint)
                && has("capabilities.input", names(&after.capabilities.input))
                && has("capabilities.output", names(&after.capabilities.output))
                && has("contextWindow", after.context_window.unwrap_or_default().to_string())
        })
}

#[cfg(test)]
mod tests;
