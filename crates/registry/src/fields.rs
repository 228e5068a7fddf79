//! Reads the fields of hand-written JSON objects one by one, so that one bad field does not invalidate the others.

use crate::before::before;
use crate::problem::{Place, Problem, Severity};
use crate::similar;
use jsonc_parser::ParseOptions;
use jsonc_parser::errors::ParseErrorKind;
use serde_json::{Map, Value};
use std::time::Duration;
use strum::VariantArray;

/// Parses a JSON file, which may contain comments. The root of the JSON must be an object.
pub(crate) fn parse_object(file: &str, text: &str) -> Result<Map<String, Value>, Problem> {
    // Editors on some systems begin every file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let problem = |place: Place, what: String| {
        let done = "the file is not used".to_owned();
        Problem { file: file.to_owned(), place, severity: Severity::Error, what, done }
    };
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
    match jsonc_parser::parse_to_serde_value::<Value>(text, &options) {
        Ok(Value::Object(object)) => Ok(object),
        // If a file is empty, somebody is most likely still writing it.
        Ok(Value::Null) => Err(problem(Place::Whole, "the file is empty".to_owned())),
        Ok(_) => Err(problem(Place::Whole, "must contain one JSON object".to_owned())),
        Err(error) => {
            let what = match error.kind() {
                // Do not use the text of a custom error: it may quote a value of the file.
                ParseErrorKind::Custom(_) => "not a JSON value".to_owned(),
                kind => match text.get(..error.range().start).and_then(before) {
                    Some(before) => format!("{kind} (after `{before}`)"),
                    None => kind.to_string(),
                },
            };
            let place = Place::Position { line: error.line_display(), column: error.column_display() };
            Err(problem(place, what))
        }
    }
}

/// The fields of one object that have not been read yet.
pub(crate) struct Fields<'a> {
    file: &'a str,
    pointer: String,
    rest: Map<String, Value>,
    /// The names of all fields that the code has tried to read so far. In the end, these are all field names that the
    /// object may have.
    known: Vec<String>,
    problems: &'a mut Vec<Problem>,
}

impl<'a> Fields<'a> {
    /// Opens the object at `pointer` in `file`. Adds the problems of its fields to `problems`.
    pub(crate) fn new(
        file: &'a str,
        pointer: impl Into<String>,
        object: Map<String, Value>,
        problems: &'a mut Vec<Problem>,
    ) -> Self {
        Self { file, pointer: pointer.into(), rest: object, known: Vec::new(), problems }
    }

    /// Reports a problem with a field. `done` says what polity does because of the problem, such as `the default is
    /// used`.
    pub(crate) fn report(&mut self, severity: Severity, field: &str, what: impl Into<String>, done: &str) {
        let place = Place::Pointer(self.pointer_to(field));
        let file = self.file.to_owned();
        self.problems.push(Problem { file, place, severity, what: what.into(), done: done.to_owned() });
    }

    /// Reports a problem with one item of a list. The list is the value of a field.
    pub(crate) fn report_item(
        &mut self,
        severity: Severity,
        (field, index): (&str, usize),
        what: impl Into<String>,
        done: &str,
    ) {
        self.report_inside(severity, (field, &index.to_string()), what, done);
    }

    /// Reports a problem with one field of an object. The object is the value of a field.
    pub(crate) fn report_inside(
        &mut self,
        severity: Severity,
        (field, inner): (&str, &str),
        what: impl Into<String>,
        done: &str,
    ) {
        let place = Place::Pointer(format!("{}/{}", self.pointer_to(field), escaped(inner)));
        let file = self.file.to_owned();
        self.problems.push(Problem { file, place, severity, what: what.into(), done: done.to_owned() });
    }

    /// Returns the number of errors that were reported in this file so far.
    pub(crate) fn errors(&self) -> usize {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count()
    }

    fn pointer_to(&self, field: &str) -> String {
        format!("{}/{}", self.pointer, escaped(field))
    }

    /// Removes a field and returns its value. `null` counts as absent.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.known.push(field.to_owned());
        self.rest.shift_remove(field).filter(|value| !value.is_null())
    }

    /// Returns the name of an unread field that is probably a misspelling or a synonym of `field`.
    pub(crate) fn written_like(&self, field: &str) -> Option<&str> {
        let mut names = self.rest.keys().map(String::as_str);
        names.find(|written| *written != field && similar::field(written, [field]).is_some())
    }

    /// Returns whether a field is present and `null`.
    pub(crate) fn is_null(&self, field: &str) -> bool {
        self.rest.get(field).is_some_and(Value::is_null)
    }

    /// Removes a field and converts its value with `read`. If the conversion fails, reports a problem and returns
    /// `None`. The problem says that `done` is the consequence.
    pub(crate) fn read<T, E: Into<String>>(
        &mut self,
        field: &str,
        done: &str,
        read: impl FnOnce(Value) -> Result<T, E>,
    ) -> Option<T> {
        match read(self.take(field)?) {
            Ok(value) => Some(value),
            Err(what) => {
                self.report(Severity::Error, field, what, done);
                None
            }
        }
    }

    /// Reads a field, and returns the default if the field is absent or wrong.
    pub(crate) fn read_or<T, E: Into<String>>(
        &mut self,
        field: &str,
        default: T,
        read: impl FnOnce(Value) -> Result<T, E>,
    ) -> T {
        self.read(field, "the default is used", read).unwrap_or(default)
    }

    /// Opens the object that is the value of a field.
    pub(crate) fn open(&mut self, field: &str, done: &str) -> Option<Fields<'_>> {
        let object = self.read(field, done, object)?;
        let pointer = self.pointer_to(field);
        Some(Fields::new(self.file, pointer, object, self.problems))
    }

    /// Opens an item of a list. The item must be an object, and the list is the value of a field.
    pub(crate) fn open_item(
        &mut self,
        (field, index): (&str, usize),
        item: Value,
        done: &str,
    ) -> Option<Fields<'_>> {
        match object(item) {
            Ok(object) => {
                let pointer = format!("{}/{index}", self.pointer_to(field));
                Some(Fields::new(self.file, pointer, object, self.problems))
            }
            Err(what) => {
                self.report_item(Severity::Error, (field, index), what, done);
                None
            }
        }
    }

    /// Reads a required field.
    pub(crate) fn required<T, E: Into<String>>(
        &mut self,
        field: &str,
        done: &str,
        read: impl FnOnce(Value) -> Result<T, E>,
    ) -> Option<T> {
        let Some(value) = self.take(field) else {
            let what = match self.written_like(field) {
                Some(written) => format!("missing (rename {written:?} to {field:?}?)"),
                None => "missing".to_owned(),
            };
            self.report(Severity::Error, field, what, done);
            return None;
        };
        match read(value) {
            Ok(value) => Some(value),
            Err(what) => {
                self.report(Severity::Error, field, what, done);
                None
            }
        }
    }

    /// Returns whether the value of an unread field is an object.
    pub(crate) fn is_object(&self, field: &str) -> bool {
        self.rest.get(field).is_some_and(Value::is_object)
    }

    /// Returns the names of the fields that have not been read yet.
    pub(crate) fn names(&self) -> Vec<String> {
        self.rest.keys().cloned().collect()
    }

    /// Reports every unread field as unknown, and returns these fields.
    pub(crate) fn finish(mut self, done: &str) -> Map<String, Value> {
        let unknown = std::mem::take(&mut self.rest);
        for field in unknown.keys() {
            let what = match similar::field(field, self.known.iter().map(String::as_str)) {
                Some(meant) => format!("there is no such field (did you mean {meant:?}?)"),
                None => "there is no such field".to_owned(),
            };
            self.report(Severity::Warning, field, what, done);
        }
        unknown
    }
}

/// Escapes a field name for use in a JSON pointer.
pub(crate) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns whether an environment variable can have that name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns whether HTTP allows a header of that name.
pub(crate) fn is_header_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Reads an object.
pub(crate) fn object(value: Value) -> Result<Map<String, Value>, &'static str> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("must be an object"),
    }
}

/// Reads a string and removes white space at both ends.
pub(crate) fn text(value: Value) -> Result<String, &'static str> {
    match value {
        Value::String(text) => Ok(text.trim().to_owned()),
        _ => Err("must be a string"),
    }
}

/// Reads a non-empty string without line breaks or other control characters.
pub(crate) fn name(value: Value) -> Result<String, &'static str> {
    let name = text(value)?;
    if name.is_empty() {
        return Err("must not be empty");
    }
    if name.chars().any(char::is_control) {
        return Err("must be one line without control characters");
    }
    Ok(name)
}

/// Reads a list of strings.
pub(crate) fn texts(value: Value) -> Result<Vec<String>, &'static str> {
    let wrong = "must be a list of strings";
    let Value::Array(items) = value else {
        return Err(wrong);
    };
    items.into_iter().map(|item| text(item).map_err(|_| wrong)).collect()
}

/// Reads `true` or `false` into an enum with two variants.
pub(crate) fn switch<T: From<bool>>(value: Value) -> Result<T, &'static str> {
    value.as_bool().map(T::from).ok_or("must be true or false")
}

/// Reads a name that must belong to a fixed set of names.
pub(crate) fn member<T: VariantArray + Copy + Into<&'static str>>(value: Value) -> Result<T, String> {
    let is_meant = |member: &T| value.as_str() == Some((*member).into());
    T::VARIANTS.iter().copied().find(is_meant).ok_or_else(not_a_member::<T>)
}

/// Returns the error text for a name that does not belong to a fixed set of names. The text lists the whole set.
pub(crate) fn not_a_member<T: VariantArray + Copy + Into<&'static str>>() -> String {
    let quoted = |member: &T| {
        let name: &str = (*member).into();
        format!("{name:?}")
    };
    let names: Vec<String> = T::VARIANTS.iter().map(quoted).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("must be {} or {last}", others.join(", ")),
        _ => format!("must be {}", names.concat()),
    }
}

/// Reads a whole number above zero that fits `T`.
pub(crate) fn count<T: TryFrom<u64>>(value: Value) -> Result<T, &'static str> {
    let number = value.as_u64().filter(|number| *number > 0).ok_or("must be a whole number above zero")?;
    T::try_from(number).map_err(|_| "is too large")
}

/// Reads a time in milliseconds, a whole number above zero.
pub(crate) fn milliseconds(value: Value) -> Result<Duration, &'static str> {
    count(value).map(Duration::from_millis)
}

/// Reads a number above zero. The number may have a fraction.
pub(crate) fn amount(value: Value) -> Result<f64, &'static str> {
    value.as_f64().filter(|number| number.is_finite() && *number > 0.0).ok_or("must be a number above zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Synchronous;
    use polity_llm::{MaxTokensField, SystemRole, ToolCallIds, ToolResultMedia};
    use polity_society::text::Language;

    #[test]
    fn comments_and_a_byte_order_mark_are_allowed_and_nothing_else() {
        let check = |text: &str, expect: &str| {
            let parsed = parse_object("app.json", text);
            let shown =
                parsed.map_or_else(|problem| problem.to_string(), |object| Value::Object(object).to_string());
            assert_eq!(shown, expect);
        };
        check("\u{feff}{\"a\": 1 /* one */} // end", r#"{"a":1}"#);
        check("{\"a\": 1, \"a\": 2}", r#"{"a":2}"#);
        check("", "app.json: the file is empty; the file is not used");
        check("[]", "app.json: must contain one JSON object; the file is not used");
        check(
            "{\n  \"a\": 1,\n}",
            "app.json:2:9: Trailing commas are not allowed (after `\"a\": …`); the file is not used",
        );
        check(
            "{'a': 1}",
            "app.json:1:2: Single-quoted strings are not allowed (after `{`); the file is not used",
        );
        check(
            "{\"a\": 0x10}",
            "app.json:1:7: Hexadecimal numbers are not allowed (after `{\"a\":`); the file is not used",
        );
        check(
            "{\"a\" 1}",
            "app.json:1:6: Expected colon after the string or word in object property (after `{\"…\"`); the file is not used",
        );
        check("{\"a\": 1", "app.json:1:8: Unterminated object (after `{\"a\": …`); the file is not used");
    }

    #[test]
    fn pointers_are_escaped() {
        let mut problems = Vec::new();
        let object = parse_object("app.json", r#"{"a/b~c": 1}"#).unwrap();
        Fields::new("app.json", "/limits", object, &mut problems).finish("ignored");
        assert_eq!(problems[0].place, Place::Pointer("/limits/a~1b~0c".to_owned()));
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_names_of_all_members() {
        let check = |what: String, expect: &str| assert_eq!(what, expect);
        check(not_a_member::<Language>(), r#"must be "zh" or "en""#);
        check(not_a_member::<Synchronous>(), r#"must be "full" or "normal""#);
        check(not_a_member::<ToolResultMedia>(), r#"must be "after" or "inline""#);
        check(not_a_member::<SystemRole>(), r#"must be "system", "developer" or "user""#);
        check(not_a_member::<ToolCallIds>(), r#"must be "any" or "alnum9""#);
        check(not_a_member::<MaxTokensField>(), r#"must be "max_tokens" or "max_completion_tokens""#);
        assert_eq!(member(Value::from("en")), Ok(Language::En));
        for wrong in [Value::from("En"), Value::from(" en"), Value::Null, Value::from(1)] {
            assert_eq!(member(wrong), Err::<Language, _>(not_a_member::<Language>()));
        }
    }
}
