//! The configuration of a server.

use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// A secret is replaced in texts only if it has at least this many bytes. A shorter value would also occur in harmless
/// words.
const LEAST_SECRET: usize = 6;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How to start or reach the server.
    pub launch: Launch,
    /// Time limit for each call of the server's tools.
    pub timeout: Duration,
}

/// How to start or reach a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Launch {
    /// A process that exchanges messages over its standard input and output.
    Process(Process),
    /// A server that is reached over the MCP transport "streamable HTTP".
    Http(Http),
}

/// A process that exchanges messages over its standard input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// The program to start.
    pub command: String,
    /// The command line arguments.
    pub args: Vec<String>,
    /// Variables to add to the environment. Their values often contain keys.
    pub env: BTreeMap<String, Secret>,
    /// The working directory. If absent, the [`Launcher`](crate::Launcher) that starts the process chooses one.
    pub cwd: Option<PathBuf>,
    /// Whether the process runs in a sandbox.
    pub sandbox: Sandbox,
}

/// Whether the process of a server runs in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sandbox {
    /// The process has the same rights as polity.
    #[default]
    Off,
    /// The launcher puts the process into a sandbox.
    On,
}

/// A server that is reached over the MCP transport "streamable HTTP".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// The address of the MCP endpoint.
    pub url: Url,
    /// Headers to add to each request. Their values often contain keys.
    pub headers: BTreeMap<String, Secret>,
}

/// A value that must not appear in logs or other output.
#[derive(Clone, Debug)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(SecretString::from(value.into()))
    }

    /// Returns the value in plain text.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

impl Launch {
    /// Replaces each secret of this server by `[secret]` in a text that people or models will read.
    pub(crate) fn hide_secrets(&self, text: &str) -> String {
        self.secrets().fold(text.to_owned(), |text, secret| text.replace(secret, "[secret]"))
    }

    /// If a text that was cut ends with the beginning of a secret, returns the text without this end.
    pub(crate) fn without_cut_secret<'t>(&self, cut: &'t str) -> &'t str {
        // The cut may have split a character.
        let text = cut.trim_end_matches(char::REPLACEMENT_CHARACTER);
        let beginning = |secret: &str| {
            let mut ends = (1..secret.len()).rev().filter_map(|end| secret.get(..end));
            ends.find(|beginning| text.ends_with(*beginning)).map_or(0, str::len)
        };
        match self.secrets().map(beginning).max() {
            None | Some(0) => cut,
            Some(longest) => &text[..text.len() - longest],
        }
    }

    fn secrets(&self) -> impl Iterator<Item = &str> {
        let (values, query) = match self {
            Self::Process(process) => (process.env.values(), None),
            Self::Http(http) => (http.headers.values(), http.url.query()),
        };
        let values = values.map(|value| value.expose().strip_prefix("Bearer ").unwrap_or(value.expose()));
        values.chain(query).filter(|value| value.len() >= LEAST_SECRET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let headers = BTreeMap::from([
            ("Authorization".to_owned(), Secret::new("Bearer abcdefgh")),
            ("X-Short".to_owned(), Secret::new("on")),
        ]);
        let http = Launch::Http(Http { url: Url::parse("http://h/mcp?key=12345678").unwrap(), headers });
        let hidden = http.hide_secrets("http://h/mcp?key=12345678 refused abcdefgh on it");
        assert_eq!(hidden, "http://h/mcp?[secret] refused [secret] on it");
        let env = BTreeMap::from([("KEY".to_owned(), Secret::new("abcdefgh"))]);
        let process =
            Process { command: "x".to_owned(), args: Vec::new(), env, cwd: None, sandbox: Sandbox::Off };
        assert!(!format!("{process:?}").contains("abcdefgh"));
        assert_eq!(Launch::Process(process).hide_secrets("abcdefgh"), "[secret]");
    }
}
