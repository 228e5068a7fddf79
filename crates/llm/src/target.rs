//! Resolves the settings of an endpoint: the address of a call, its key and its headers.

use crate::chat::{CallError, FailureKind};
use crate::endpoint::Endpoint;
use crate::scrub::is_credential;
use crate::variables::{UnsetVariable, are_references, expand_variables};
use async_openai::config::Config;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

/// An endpoint whose settings are resolved, ready for a call.
///
/// `async-openai` has its own implementation of [`Config`]. It reads an organisation and a project from the
/// environment, and sends both to every server. This is not safe here, so this type implements [`Config`].
#[derive(Debug)]
pub(crate) struct Target {
    url: String,
    headers: HeaderMap,
    key: SecretString,
    /// The secrets that must not appear in errors: the key, and the values of all headers, split into words.
    pub(crate) secrets: Vec<SecretString>,
    /// The secrets that must not appear in successful answers, either. These are the key and the values of the headers
    /// that carry a credential, split into words. Secrets that may be ordinary words are left out ([`is_credential`]).
    pub(crate) credentials: Vec<SecretString>,
}

/// If the name of a header contains one of these words, its value counts as a credential.
const CREDENTIAL_HEADERS: [&str; 7] = ["auth", "key", "token", "secret", "cookie", "credential", "password"];

impl Target {
    /// Resolves an endpoint. `variable` looks up an environment variable.
    pub(crate) fn resolve(
        endpoint: &Endpoint,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, CallError> {
        let url = completions_url(&endpoint.base_url)?;
        let key = expand(endpoint.api_key.expose_secret(), "the API key", &variable)?;
        let mut secrets = words(&key);
        let mut credentials = secrets.clone();
        let mut headers = HeaderMap::new();
        if !key.expose_secret().is_empty() {
            headers.insert(AUTHORIZATION, header_value(&bearer(&key), "the API key")?);
        }
        for (name, value) in &endpoint.headers {
            let what = format!("the header {name:?}");
            let header: HeaderName = name
                .trim()
                .parse()
                .map_err(|_| misconfigured(format!("{what} has a name that HTTP does not allow")))?;
            let value = expand(value.expose_secret(), &what, &variable)?;
            if CREDENTIAL_HEADERS.iter().any(|part| header.as_str().contains(part)) {
                credentials.extend(words(&value));
            }
            headers.insert(header, header_value(&value, &what)?);
            secrets.extend(words(&value));
        }
        credentials.retain(|credential| is_credential(credential.expose_secret()));
        Ok(Self { url, headers, key, secrets, credentials })
    }

    /// Returns the headers of each request, including the key.
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

impl Endpoint {
    /// Whether calls to this endpoint carry a key. `variable` looks up an environment variable.
    pub fn has_key(&self, variable: impl Fn(&str) -> Option<String>) -> bool {
        let key = expand(self.api_key.expose_secret(), "the API key", variable);
        key.is_ok_and(|key| !key.expose_secret().is_empty())
    }
}

impl Config for Target {
    fn headers(&self) -> HeaderMap {
        self.headers.clone()
    }

    /// Returns the address of the chat call. Ignores the path that `async-openai` asks for.
    fn url(&self, _path: &str) -> String {
        self.url.clone()
    }

    fn query(&self) -> Vec<(&str, &str)> {
        Vec::new()
    }

    fn api_base(&self) -> &str {
        &self.url
    }

    fn api_key(&self) -> &SecretString {
        &self.key
    }
}

fn completions_url(base_url: &str) -> Result<String, CallError> {
    let fail =
        |problem: &str| misconfigured(format!("baseURL {problem}: write it like http://127.0.0.1:11434/v1"));
    let mut url = Url::parse(base_url.trim()).map_err(|error| fail(&format!("is not a URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fail("is neither http nor https"));
    }
    url.path_segments_mut().map_err(|()| fail("has no path"))?.pop_if_empty().extend(["chat", "completions"]);
    Ok(url.into())
}

/// Splits a secret such as `Bearer token` into words, because a server may repeat only one of the words.
fn words(value: &SecretString) -> Vec<SecretString> {
    value.expose_secret().split_whitespace().map(SecretString::from).collect()
}

fn bearer(key: &SecretString) -> SecretString {
    format!("Bearer {}", key.expose_secret()).into()
}

/// Replaces each `${NAME}` with the environment variable of that name. `what` is the name of the setting in errors.
fn expand(
    text: &str,
    what: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<SecretString, CallError> {
    if !are_references(text) {
        return Err(misconfigured(format!("{what} has a `${{` that does not begin a `${{NAME}}`")));
    }
    expand_variables(text, variable).map_err(|UnsetVariable { name }| {
        misconfigured(format!(
            "{what} is read from the environment variable {name}, which is not set: set {name} and start again"
        ))
    })
}

fn header_value(value: &SecretString, what: &str) -> Result<HeaderValue, CallError> {
    let mut header = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
        misconfigured(format!("{what} has characters that HTTP does not allow in it (a line break, perhaps)"))
    })?;
    header.set_sensitive(true);
    Ok(header)
}

pub(crate) fn misconfigured(message: String) -> CallError {
    CallError { kind: FailureKind::Misconfigured, message, status: None, retry_after: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        match name {
            "MY_KEY" => Some("from-the-environment\n".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn resolve(endpoint: Endpoint) -> Result<Target, String> {
        Target::resolve(&endpoint, variable).map_err(|error| {
            assert_eq!(error.kind, FailureKind::Misconfigured);
            error.message
        })
    }

    fn check_url(base_url: &str, expect: &str) {
        assert_eq!(resolve(Endpoint::new(base_url, "m")).unwrap().url, expect);
    }

    #[test]
    fn base_urls_with_and_without_a_slash() {
        check_url("http://127.0.0.1:1234/v1", "http://127.0.0.1:1234/v1/chat/completions");
        check_url("http://127.0.0.1:1234/v1/", "http://127.0.0.1:1234/v1/chat/completions");
        check_url(" http://host ", "http://host/chat/completions");
        check_url("https://host/a?api-version=2", "https://host/a/chat/completions?api-version=2");
    }

    #[test]
    fn bad_urls_are_named_as_such() {
        for bad in [
            "",
            "127.0.0.1:8080",
            "not a url",
            "ftp://host/v1",
            "http://",
            "data:text/plain,x",
            "localhost/v1",
        ] {
            let message = resolve(Endpoint::new(bad, "m")).unwrap_err();
            assert!(message.starts_with("baseURL "), "{bad}: {message}");
        }
    }

    fn with_key(key: &str) -> Endpoint {
        Endpoint { api_key: key.to_owned().into(), ..Endpoint::new("http://host", "m") }
    }

    fn check_key(key: &str, expect: Option<&str>) {
        assert_eq!(with_key(key).has_key(variable), expect.is_some(), "{key}");
        let target = resolve(with_key(key)).unwrap();
        assert_eq!(target.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap()), expect, "{key}");
    }

    #[test]
    fn keys_are_read_from_the_environment() {
        check_key("", None);
        check_key("${EMPTY}", None);
        check_key("plain", Some("Bearer plain"));
        check_key(" plain\n", Some("Bearer plain"));
        check_key("${MY_KEY}", Some("Bearer from-the-environment"));
        check_key("a$b", Some("Bearer a$b"));
    }

    #[test]
    fn keys_that_cannot_be_sent_say_why() {
        let message = resolve(with_key("${NOT_SET}")).unwrap_err();
        insta::assert_snapshot!(message, @"the API key is read from the environment variable NOT_SET, which is not set: set NOT_SET and start again");
        let message = resolve(with_key("sk-\nsecret")).unwrap_err();
        insta::assert_snapshot!(message, @"the API key has characters that HTTP does not allow in it (a line break, perhaps)");
        let message = resolve(with_key("${MY KEY}")).unwrap_err();
        insta::assert_snapshot!(message, @"the API key has a `${` that does not begin a `${NAME}`");
    }

    #[test]
    fn headers_are_sent_and_may_replace_the_key() {
        let headers = vec![
            ("api-key".to_owned(), "${MY_KEY}".to_owned().into()),
            ("Authorization".to_owned(), "Basic ${MY_KEY}".to_owned().into()),
        ];
        let target = resolve(Endpoint { headers, ..with_key("unused") }).unwrap();
        assert_eq!(target.headers.get("api-key").unwrap(), "from-the-environment");
        assert_eq!(target.headers.get(AUTHORIZATION).unwrap(), "Basic from-the-environment");
        assert_eq!(target.headers.len(), 2);
        let headers = vec![("bad name".to_owned(), "x".to_owned().into())];
        let message = resolve(Endpoint { headers, ..with_key("") }).unwrap_err();
        insta::assert_snapshot!(message, @r#"the header "bad name" has a name that HTTP does not allow"#);
    }

    #[test]
    fn debug_shows_no_secret() {
        let headers = vec![("x-token".to_owned(), "header-secret".to_owned().into())];
        let endpoint = Endpoint { headers, ..with_key("key-secret") };
        let shown = format!("{endpoint:?} {:?}", resolve(endpoint.clone()).unwrap());
        assert!(shown.contains("x-token"), "{shown}");
        assert!(!shown.contains("key-secret") && !shown.contains("header-secret"), "{shown}");
    }
}
