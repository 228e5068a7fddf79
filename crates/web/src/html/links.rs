//! Makes the links of a page absolute, and lists them.

use std::collections::HashSet;

use dom_query::{Document, NodeRef};
use url::Url;

use crate::shown::one_line;

/// Maximum number of links that are listed.
const MOST_LINKS: usize = 200;

/// A link of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The text of the link, in one line.
    pub text: String,
    /// The address to which the link leads.
    pub url: Url,
}

/// Makes all addresses in the document absolute, and removes addresses that nobody can follow, such as `javascript:`.
/// Returns the links to other pages.
pub(super) fn settle(document: &Document, url: &Url) -> Vec<Link> {
    let base = document.base_uri().and_then(|base| url.join(&base).ok()).unwrap_or_else(|| url.clone());
    let mut links = Vec::new();
    let mut known = HashSet::new();
    for anchor in document.select("a").nodes() {
        if is_sign(&anchor.text()) {
            anchor.remove_from_parent();
            continue;
        }
        let Some(target) = anchor.attr("href").and_then(|href| base.join(href.trim()).ok()) else {
            anchor.remove_attr("href");
            continue;
        };
        // A link to another place of the same page, or a link with an unknown scheme, becomes plain text.
        if is_in_page(&target, url) || !matches!(target.scheme(), "http" | "https" | "mailto") {
            anchor.remove_attr("href");
            continue;
        }
        anchor.set_attr("href", target.as_str());
        let text = one_line(&anchor.text(), 120);
        let is_page = target.scheme() != "mailto";
        if is_page && !text.is_empty() && links.len() < MOST_LINKS && known.insert(target.clone()) {
            links.push(Link { text, url: target });
        }
    }
    for image in document.select("img").nodes() {
        settle_image(image, &base);
    }
    links
}

/// Returns whether a link leads to another place of the same page.
fn is_in_page(target: &Url, page: &Url) -> bool {
    let bare = |url: &Url| {
        let mut bare = url.clone();
        bare.set_fragment(None);
        bare
    };
    target.fragment().is_some() && bare(target) == bare(page)
}

/// Returns whether the text of a link is only a sign, such as `#` or `¶`. On many pages, such a link stands beside a
/// heading and leads to this heading.
fn is_sign(text: &str) -> bool {
    matches!(text.trim(), "#" | "¶" | "§" | "🔗" | "\u{f0c1}")
}

/// Makes the address of a picture absolute. Some pages load a picture only when the reader scrolls down to the picture.
/// Such pages write the address of the picture into `data-src` or `data-original` instead of `src`.
fn settle_image(image: &NodeRef<'_>, base: &Url) {
    let found = ["src", "data-src", "data-original"].iter().find_map(|name| {
        let target = base.join(image.attr(name)?.trim()).ok()?;
        matches!(target.scheme(), "http" | "https").then_some(target)
    });
    image.remove_attrs(&["src", "srcset", "data-src", "data-srcset", "data-original"]);
    if let Some(source) = found {
        image.set_attr("src", source.as_str());
    }
}
