//! Checks that the environment variables in the keys and headers of services are set.

use crate::fields;
use crate::problem::{Place, Problem, Severity};
use crate::secret::variables;
use crate::services::{Declared, FILE, read};
use secrecy::ExposeSecret;

/// Looks up each `${NAME}` in the keys and headers with the function `variable`. Returns a warning for each variable
/// that is unset or empty. If the file cannot be used, returns no warnings.
pub(crate) fn unset_variables(text: &str, variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let Ok((services, _)) = read(text) else { return Vec::new() };
    services.iter().flat_map(|declared| of_service(declared, &variable)).collect()
}

fn of_service(declared: &Declared, variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let Declared { pointer, service } = declared;
    let key = (format!("{pointer}/apiKey"), &service.endpoint.api_key);
    let headers = service.endpoint.headers.iter().map(|(name, value)| {
        let pointer = format!("{pointer}/headers/{}", fields::escaped(name));
        (pointer, value)
    });
    let mut problems = Vec::new();
    for (pointer, secret) in std::iter::once(key).chain(headers) {
        for name in variables(secret.expose_secret()) {
            let (what, done) = match variable(name) {
                None => ("is not set", "fail until it is"),
                Some(value) if value.trim().is_empty() => ("is empty", "are sent without it"),
                Some(_) => continue,
            };
            problems.push(Problem {
                file: FILE.to_owned(),
                place: Place::Pointer(pointer.clone()),
                severity: Severity::Warning,
                what: format!("the environment variable {name} {what}"),
                done: format!("calls to the service {:?} {done}", service.id.as_str()),
            });
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "SET" => Some("sk-1".to_owned()),
            "EMPTY" => Some(" ".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn each_variable_that_is_not_there_is_told_with_its_place() {
        let service = |id: &str, key: &str| json!({"id": id, "baseURL": "http://a.example", "model": "m", "apiKey": key});
        let mut with_headers = service("headers", "${SET}");
        with_headers["headers"] = json!({"X~Key": "Bearer ${NOT_SET}", "X-Two": "${SET}", "X-Both": "a ${EMPTY} ${MISSING} ${no name}"});
        let text = json!({"services": [
            service("literal", "sk-live-${"),
            {"id": "left-out", "model": "m", "apiKey": "${NOT_SET}"},
            service("set", "${SET}"),
            service("unset", "${NOT_SET}"),
            service("empty", "${EMPTY}"),
            with_headers,
        ]});
        let problems = unset_variables(&text.to_string(), lookup);
        assert!(problems.iter().all(|problem| problem.severity == Severity::Warning));
        let lines: Vec<String> = problems.iter().map(Problem::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        llmservices.json: /services/3/apiKey: the environment variable NOT_SET is not set; calls to the service "unset" fail until it is
        llmservices.json: /services/4/apiKey: the environment variable EMPTY is empty; calls to the service "empty" are sent without it
        llmservices.json: /services/5/headers/X~0Key: the environment variable NOT_SET is not set; calls to the service "headers" fail until it is
        llmservices.json: /services/5/headers/X-Both: the environment variable EMPTY is empty; calls to the service "headers" are sent without it
        llmservices.json: /services/5/headers/X-Both: the environment variable MISSING is not set; calls to the service "headers" fail until it is
        "#);
    }

    #[test]
    fn a_file_that_cannot_be_taken_has_none() {
        for text in ["", "{", "[]", r#"{"services": [{"apiKey": "${NOT_SET}"}]}"#, "{}"] {
            assert_eq!(unset_variables(text, lookup), []);
        }
    }
}
