//! Sends a search query to the provider that the person has set up.

mod answer;

use std::sync::Arc;

use crate::error::Error;
use crate::request::{Request, Response};
use crate::settings::{AllowedHost, Search, Settings};
use crate::shown::shown_url;
use crate::web::{Call, Web};
use bytes::Bytes;

pub use answer::Hit;

/// Maximum length of a query, in characters.
const LONGEST_QUERY: usize = 400;

/// Maximum number of results of one search.
const MOST_HITS: usize = 20;

impl Web {
    /// Searches the web. Returns at most `limit` results, and never more than 20. Does not ask `call.permit` about
    /// the provider's address, because the person chose the provider.
    pub async fn search(&self, query: &str, limit: usize, call: &Call) -> Result<Vec<Hit>, Error> {
        let search = self.settings.search.as_ref().ok_or(Error::NoSearch)?;
        let query = query.trim();
        if query.is_empty() || query.chars().count() > LONGEST_QUERY {
            return Err(Error::BadQuery { longest: LONGEST_QUERY });
        }
        let limit = limit.clamp(1, MOST_HITS);
        let request = question(search, query, limit)?;
        let mut settings = Settings::clone(&self.settings);
        settings.allow_hosts.extend(named_by_person(search));
        let allowed = Self { settings: Arc::new(settings), network: Arc::clone(&self.network) };
        let answer = allowed.request(request, &Call::new(call.cancel.clone())).await?;
        hits(search, &answer, limit)
    }
}

fn named_by_person(search: &Search) -> Option<AllowedHost> {
    match search {
        Search::Searxng { url } => Some(AllowedHost::exactly(&url.host()?, url.port_or_known_default()?)),
        Search::Brave { .. } | Search::Tavily { .. } => None,
    }
}

/// Makes the request to a provider. Pure.
fn question(search: &Search, query: &str, limit: usize) -> Result<Request, Error> {
    match search {
        Search::Searxng { url } => {
            let mut url = url.clone();
            let path = format!("{}/search", url.path().trim_end_matches('/').trim_end_matches("/search"));
            url.set_path(&path);
            url.query_pairs_mut().clear().append_pair("q", query).append_pair("format", "json");
            Request::new("GET", url.as_str(), [("accept", "application/json")], None)
        }
        Search::Brave { key } => {
            let count = limit.to_string();
            let mut url = crate::request::url_of("https://api.search.brave.com/res/v1/web/search")?;
            url.query_pairs_mut().append_pair("q", query).append_pair("count", &count);
            let headers = [("accept", "application/json"), ("x-subscription-token", key.reveal())];
            Request::new("GET", url.as_str(), headers, None)
        }
        Search::Tavily { key } => {
            let authorization = format!("Bearer {}", key.reveal());
            let body = serde_json::json!({"query": query, "max_results": limit}).to_string();
            let headers = [("content-type", "application/json"), ("authorization", authorization.as_str())];
            Request::new("POST", "https://api.tavily.com/search", headers, Some(Bytes::from(body)))
        }
    }
}

/// Reads the answer of a provider. Pure.
fn hits(search: &Search, answer: &Response, limit: usize) -> Result<Vec<Hit>, Error> {
    let (provider, hint) = match search {
        Search::Searxng { .. } => (
            "SearXNG",
            "the user must list `json` under `search.formats` in its settings.yml, and its limiter must admit polity",
        ),
        Search::Brave { .. } => {
            ("Brave Search", "the user must check the key in tools.web.search and its quota")
        }
        Search::Tavily { .. } => ("Tavily", "the user must check the key in tools.web.search and its quota"),
    };
    let failed = |reason: String| Error::Search { provider, reason };
    match answer.status {
        200..=299 => {}
        401..=403 => return Err(failed(format!("it answered {}; {hint}", answer.status))),
        429 => {
            return Err(failed(
                "it answered 429, too many requests; wait a minute and search again".to_owned(),
            ));
        }
        status => return Err(failed(format!("it answered {status}; try again later"))),
    }
    let mut hits = match search {
        Search::Searxng { .. } => answer::searxng(&answer.body),
        Search::Brave { .. } => answer::brave(&answer.body),
        Search::Tavily { .. } => answer::tavily(&answer.body),
    }
    .map_err(|error| {
        failed(format!("its answer is not the JSON of results ({}); {hint}", shown_url(&error.to_string())))
    })?;
    hits.truncate(limit);
    Ok(hits)
}

#[cfg(test)]
mod tests;
