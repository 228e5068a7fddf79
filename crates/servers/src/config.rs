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

/// Where a text ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The text is complete.
    Whole,
    /// The rest of the text was cut off.
    Cut,
}

impl Launch {
    /// Replaces each secret of this server by `[secret]` in a text that people or models will read.
    pub(crate) fn hide_secrets(&self, text: &str) -> String {
        self.hide(text, Ends::Whole)
    }

    /// Hides the secrets in a text that was cut. If the text ends with the beginning of a secret, leaves this end out.
    pub(crate) fn hide_secrets_in_cut(&self, text: &str) -> String {
        self.hide(text, Ends::Cut)
    }

    /// Looks for a secret at each character. Secrets can overlap: with each other, and with the beginning of a secret
    /// at the cut. So no secret is replaced before the search for the others has ended.
    fn hide(&self, text: &str, ends: Ends) -> String {
        let mut shown = String::with_capacity(text.len());
        let mut hidden_until = 0;
        // The cut may have split a character.
        let last_end = text.trim_end_matches(char::REPLACEMENT_CHARACTER).len();
        for (at, character) in text.char_indices() {
            let rest = &text[at..];
            let whole = self.secrets().filter(|secret| rest.starts_with(secret));
            if let Some(end) = whole.map(|secret| at + secret.len()).max() {
                if at >= hidden_until {
                    shown.push_str("[secret]");
                }
                hidden_until = hidden_until.max(end);
            }
            if ends == Ends::Cut
                && at < last_end
                && self.secrets().any(|secret| secret.starts_with(&text[at..last_end]))
            {
                break;
            }
            if at >= hidden_until {
                shown.push(character);
            }
        }
        shown
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
    use proptest::prelude::*;

    fn with_env(secrets: &[String]) -> Launch {
        let numbered = secrets.iter().enumerate();
        let env = numbered.map(|(number, secret)| (number.to_string(), Secret::new(secret.as_str())));
        let env = env.collect::<BTreeMap<_, _>>();
        Launch::Process(Process {
            command: String::new(),
            args: Vec::new(),
            env,
            cwd: None,
            sandbox: Sandbox::Off,
        })
    }

    #[track_caller]
    fn check_cut(secrets: &[&str], text: &str, expect: &str) {
        let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
        assert_eq!(with_env(&secrets).hide_secrets_in_cut(text), expect);
    }

    #[test]
    fn a_whole_secret_at_the_cut_is_hidden_even_if_it_ends_as_a_secret_begins() {
        check_cut(&["hunter2h"], "key: hunter2h", "key: [secret]");
        check_cut(&["hunter2h"], "key: hunter2h hunt", "key: [secret] ");
        check_cut(&["abcabcabc"], "key: abcabcabcabc", "key: [secret]");
        check_cut(&["abcdefXY", "XYghijkl"], "key: abcdefXY", "key: [secret]");
        check_cut(&["abcdefXY", "XYghijkl"], "key: abcdefXYgh", "key: [secret]");
        check_cut(&["abcdef", "abcdefghijkl"], "key: abcdefgh", "key: [secret]");
        check_cut(&["ключ-тайна"], "key: клю\u{fffd}", "key: ");
        check_cut(&["abcdefgh"], "split: \u{fffd}", "split: \u{fffd}");
        check_cut(&["abcdefgh"], "nothing to hide", "nothing to hide");
    }

    #[test]
    fn secrets_that_overlap_are_hidden_as_one() {
        let hide = |text| with_env(&["abcdefXY".to_owned(), "XYghijkl".to_owned()]).hide_secrets(text);
        assert_eq!(hide("key: abcdefXYghijkl."), "key: [secret].");
        assert_eq!(hide("key: abcdefXYXYghijkl."), "key: [secret][secret].");
    }

    proptest! {
        /// Only two letters, so that secrets often overlap, begin alike, and end as they begin. The text itself
        /// contains neither letter, so each letter in the result would come from a secret.
        #[test]
        fn nothing_of_a_secret_survives_the_cut(
            secrets in prop::collection::vec("[ab]{6,9}", 1..4),
            whole in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
            cut in any::<prop::sample::Index>(),
            length in 1..9_usize,
        ) {
            let mut text = "key: ".to_owned();
            let secret = |index: &prop::sample::Index| index.get(&secrets[..]).clone();
            whole.iter().for_each(|index| text.push_str(&secret(index)));
            let last = secret(&cut);
            text.push_str(&last[..length.min(last.len())]);
            let shown = with_env(&secrets).hide_secrets_in_cut(&text).replace("[secret]", "");
            prop_assert_eq!(shown, "key: ");
        }
    }

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
