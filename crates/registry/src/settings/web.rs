//! `tools.web`: what agents may reach over the web, and which provider searches.

use crate::fields::{self, Fields};
use crate::problem::Severity;
use crate::secret::SecretText;
use polity_llm::UnsetVariable;
use polity_web::{AllowedHost, Search, SearchKey};
use secrecy::ExposeSecret;
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};
use url::Url;

/// What agents may reach over the web, and which provider makes their searches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebSettings {
    /// Hosts and addresses that are not public, but that agents may reach.
    pub allow_hosts: Vec<AllowedHost>,
    /// The provider of web searches; `None` if agents cannot search the web.
    pub search: Option<SearchSettings>,
}

/// A search provider.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchSettings {
    /// A SearXNG instance at this address.
    Searxng(Url),
    /// A provider that needs a key.
    WithKey {
        /// Which of the providers to ask.
        provider: SearchProvider,
        /// The key that the person has got from the provider.
        key: SecretText,
    },
}

/// A search provider that needs a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum SearchProvider {
    /// The Brave Search API.
    Brave,
    /// The Tavily API.
    Tavily,
}

impl WebSettings {
    /// Returns the settings in the form that the crate `web` takes. Each `${NAME}` is replaced by the value that
    /// `variable` returns for the name.
    ///
    /// # Errors
    ///
    /// Fails with the name of a variable that is not set.
    pub fn resolve(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<polity_web::Settings, UnsetVariable> {
        let search = match &self.search {
            None => None,
            Some(SearchSettings::Searxng(url)) => Some(Search::Searxng { url: url.clone() }),
            Some(SearchSettings::WithKey { provider, key }) => {
                let key = SearchKey::new(key.resolve(variable)?.expose_secret());
                Some(match provider {
                    SearchProvider::Brave => Search::Brave { key },
                    SearchProvider::Tavily => Search::Tavily { key },
                })
            }
        };
        Ok(polity_web::Settings { allow_hosts: self.allow_hosts.clone(), search, ..Default::default() })
    }
}

pub(super) fn read(tools: &mut Fields<'_>) -> WebSettings {
    let Some(mut object) = tools.open("web", "the defaults are used") else {
        return WebSettings::default();
    };
    let web = WebSettings { allow_hosts: read_hosts(&mut object), search: read_search(&mut object) };
    object.finish("it has no effect");
    web
}

fn read_hosts(object: &mut Fields<'_>) -> Vec<AllowedHost> {
    let done = "only public addresses are reached";
    let listed = object.read("allowHosts", done, fields::texts).unwrap_or_default();
    let mut hosts = Vec::new();
    for (index, host) in listed.iter().enumerate() {
        match host.parse() {
            Ok(host) => hosts.push(host),
            Err(_) => {
                let what = "must be a name (wiki.corp), names below one (*.corp), an address (10.0.0.7, [::1]) or a \
                            range (10.0.0.0/8), with :port behind it for a single port";
                object.report_item(Severity::Error, ("allowHosts", index), what, "it is left out");
            }
        }
    }
    hosts
}

fn read_search(object: &mut Fields<'_>) -> Option<SearchSettings> {
    const NONE: &str = "there is no search";
    if object.is_object("search") {
        let mut search = object.open("search", NONE)?;
        // Read the provider and the key before returning, so that the problems of both are reported.
        let provider = search.required("provider", NONE, fields::member::<SearchProvider>);
        let key = search.required("key", NONE, read_key);
        search.finish("it has no effect");
        return Some(SearchSettings::WithKey { provider: provider?, key: key? });
    }
    object.read("search", NONE, read_address).map(SearchSettings::Searxng)
}

fn read_key(value: Value) -> Result<SecretText, &'static str> {
    let key = SecretText::read(value)?;
    if key.written().is_empty() { Err("must not be empty") } else { Ok(key) }
}

fn read_address(value: Value) -> Result<Url, &'static str> {
    const WRONG: &str = "must be the http or https URL of a SearXNG instance, or {\"provider\", \"key\"}";
    let url = Url::parse(&fields::text(value).map_err(|_| WRONG)?).map_err(|_| WRONG)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(WRONG);
    }
    // The address is shown to people, so it must not contain secrets.
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password");
    }
    Ok(url)
}
