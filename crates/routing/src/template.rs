//! Finds the values that were filled into a template.

use polity_society::text::Template;
use std::collections::BTreeMap;

/// If `line` was made from `template`, returns the values that were filled into the placeholders. Otherwise returns
/// `None`. Each value except the last is as short as possible: it ends at the first occurrence of the words that follow
/// its placeholder in the template.
pub(crate) fn values_of<'t>(line: &'t str, template: &'t Template) -> Option<BTreeMap<&'t str, &'t str>> {
    let mut values = BTreeMap::new();
    let mut names = template.placeholders().into_iter().peekable();
    let mut words = template.as_str();
    let mut rest = line;
    while let Some(name) = names.next() {
        let (before, after) = words.split_once(&format!("{{{name}}}"))?;
        rest = rest.strip_prefix(before)?;
        words = after;
        let value = match names.peek() {
            None => rest.strip_suffix(after)?,
            Some(next) => {
                let (between, _) = after.split_once(&format!("{{{next}}}"))?;
                rest.split_once(between)?.0
            }
        };
        rest = rest.strip_prefix(value)?;
        values.insert(name, value);
    }
    (rest == words).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let check = |template: &str, line: &str, expect: Option<&[(&str, &str)]>| {
            let template = Template::new(template);
            let expect = expect.map(|values| values.iter().copied().collect::<BTreeMap<_, _>>());
            assert_eq!(values_of(line, &template), expect, "{line}");
        };
        check("no {a}.", "no 1.", Some(&[("a", "1")]));
        check("{a} × {b}: {c}", "3 × 4: 1.2 MB", Some(&[("a", "3"), ("b", "4"), ("c", "1.2 MB")]));
        check("{a} × {b}", "3 of 4", None);
        check("words", "words", Some(&[]));
        check("words", "other", None);
        check("no {a}.", "no 1", None);
    }
}
