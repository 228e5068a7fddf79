//! Reads the JSON answers of the search providers.

use dom_query::Document;
use serde::Deserialize;
use url::Url;

use crate::shown::one_line;

/// Maximum length of a title and of a snippet, in characters. Longer texts are cut.
const LONGEST_TITLE: usize = 200;
const LONGEST_SNIPPET: usize = 500;

/// One result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The title, in one line.
    pub title: String,
    /// The address.
    pub url: Url,
    /// A piece of the page, or a description of the page, in one line.
    pub snippet: String,
}

#[derive(Deserialize)]
struct Results {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct Brave {
    #[serde(default)]
    web: Option<BraveResults>,
}

#[derive(Deserialize)]
struct BraveResults {
    #[serde(default)]
    results: Vec<BraveFound>,
}

#[derive(Deserialize)]
struct Found {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    content: Option<String>,
}

#[derive(Deserialize)]
struct BraveFound {
    url: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

pub(super) fn searxng(body: &[u8]) -> serde_json::Result<Vec<Hit>> {
    let Results { results } = serde_json::from_slice(body)?;
    Ok(results.into_iter().filter_map(|found| hit(&found.url, found.title, found.content)).collect())
}

pub(super) fn tavily(body: &[u8]) -> serde_json::Result<Vec<Hit>> {
    searxng(body)
}

/// Reads an answer of Brave. The texts in the answer are HTML, because Brave marks the words of the query with tags.
pub(super) fn brave(body: &[u8]) -> serde_json::Result<Vec<Hit>> {
    let Brave { web } = serde_json::from_slice(body)?;
    let results = web.map(|web| web.results).unwrap_or_default();
    let hits = results.into_iter().filter_map(|found| {
        hit(
            &found.url,
            found.title.as_deref().map(without_tags),
            found.description.as_deref().map(without_tags),
        )
    });
    Ok(hits.collect())
}

fn hit(url: &str, title: Option<String>, snippet: Option<String>) -> Option<Hit> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let title = one_line(&title.unwrap_or_default(), LONGEST_TITLE);
    let snippet = one_line(&snippet.unwrap_or_default(), LONGEST_SNIPPET);
    Some(Hit { title, url, snippet })
}

fn without_tags(html: &str) -> String {
    let start = html.get(..html.floor_char_boundary(4000)).unwrap_or_default();
    Document::fragment(start).text().to_string()
}
