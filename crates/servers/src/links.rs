//! Reads the resources that the result of a tool links to, from the same server.

use crate::bounds::Bounds;
use crate::call::{Connection, Failure};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The resources that a result links to, by URI. An error says why a resource could not be read. A link that is not in
/// this map was not followed.
pub(crate) type Linked = BTreeMap<String, Result<Vec<ResourceContents>, String>>;

/// The time limit of a call. The time for reading the links of its result counts, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) begun: Instant,
    pub(crate) timeout: Duration,
}

impl Patience {
    fn left(&self) -> Duration {
        self.timeout.saturating_sub(self.begun.elapsed())
    }
}

/// Reads the resources that a result links to. All of them together have at most [`Bounds::message_bytes`].
pub(crate) async fn follow(
    connection: &Connection,
    result: &CallToolResult,
    bounds: &Bounds,
    cancel: &CancellationToken,
    patience: Patience,
) -> Linked {
    let mut linked = Linked::new();
    if !connection.offers_resources() {
        return linked;
    }
    let mut room = bounds.message_bytes;
    for uri in links(result).take(bounds.files) {
        if linked.contains_key(uri) {
            continue;
        }
        let too_large = || format!("the resources are longer than {} bytes together", bounds.message_bytes);
        let read = if room == 0 {
            Err(too_large())
        } else {
            let read = connection.read(uri, cancel, patience.left()).await.map_err(why);
            match room.checked_sub(read.as_deref().map_or(0, length)) {
                Some(left) => {
                    room = left;
                    read
                }
                None => {
                    room = 0;
                    Err(too_large())
                }
            }
        };
        linked.insert(uri.to_owned(), read);
    }
    linked
}

/// Returns the URIs that only the server can read. Pages of the web are left out: for these, agents have tools of their
/// own, to which the person's rules about hosts apply.
fn links(result: &CallToolResult) -> impl Iterator<Item = &str> {
    let has_failed = result.is_error == Some(true);
    let content: &[ContentBlock] = if has_failed { &[] } else { &result.content };
    content.iter().filter_map(|block| match block {
        ContentBlock::ResourceLink(link) if !is_of_the_web(&link.uri) => Some(link.uri.as_str()),
        _ => None,
    })
}

fn is_of_the_web(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default();
    ["http", "https"].iter().any(|web| scheme.trim_ascii().eq_ignore_ascii_case(web))
}

fn length(contents: &[ResourceContents]) -> usize {
    let length = |contents: &ResourceContents| match contents {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        _ => 0,
    };
    contents.iter().map(length).sum()
}

/// Says why a resource was not read. The usual messages of some failures are about calls: they say that the call may
/// have had its effect. For a resource, such a failure gets another message here.
fn why(failure: Failure) -> String {
    match failure {
        Failure::TimedOut(_) => "no answer in time".to_owned(),
        Failure::Closed => "the connection ended before the answer".to_owned(),
        Failure::Cancelled => "nobody waits for it any more".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_the_web_are_not_followed() {
        for uri in ["http://a/b", "https://a", "HTTPS://a", " https://a", "http:a", "https:"] {
            assert!(is_of_the_web(uri), "{uri:?}");
        }
        for uri in ["file:///a", "demo://http://a", "httpx://a", "a", ""] {
            assert!(!is_of_the_web(uri), "{uri:?}");
        }
    }
}
