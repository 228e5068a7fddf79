//! The person's settings for the web: `tools.web.*` in `app.json`.

mod allowed;

use std::fmt;

use serde::Deserialize;
use url::Url;

pub(crate) use allowed::bare;
pub use allowed::{AllowedHost, AllowedHostError};

/// The settings `tools.web.*`. The caller has already replaced each reference such as `${NAME}` by the value of the
/// environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// Hosts and addresses that agents may reach although they are not public. Empty by default.
    pub allow_hosts: Vec<AllowedHost>,
    /// The provider that `search` asks. Without a provider there is no search.
    pub search: Option<Search>,
    /// Maximum size of a response body in bytes. It applies to the compressed and to the decompressed body. Default: 20
    /// MiB.
    pub max_bytes: u64,
    /// Maximum number of redirects per request. Default: 10.
    pub max_redirects: u32,
    /// Time limit in milliseconds for a whole request with its redirects. If the request reads a page, the limit
    /// includes the conversion of the page. Default: 30 seconds.
    pub timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allow_hosts: Vec::new(),
            search: None,
            max_bytes: 20 * 1024 * 1024,
            max_redirects: 10,
            timeout_ms: 30_000,
        }
    }
}

/// A search provider: `{"searxng": {"url": …}}`, `{"brave": {"key": …}}` or `{"tavily": {"key": …}}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Search {
    /// A SearXNG instance whose settings allow the format `json`. The address of the instance may be private, because
    /// the person chose it.
    Searxng {
        /// The address of the instance, such as `http://127.0.0.1:8888`.
        url: Url,
    },
    /// The Brave Search API.
    Brave {
        /// The subscription token.
        key: SearchKey,
    },
    /// The Tavily API.
    Tavily {
        /// The API key.
        key: SearchKey,
    },
}

/// The key of a search provider. The debug output of this type does not show the key.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct SearchKey(String);

impl SearchKey {
    /// Makes a key from the text that the provider issued.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SearchKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SearchKey(…)")
    }
}

#[cfg(test)]
mod tests;
