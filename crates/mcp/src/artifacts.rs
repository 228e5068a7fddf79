//! Artifacts, in the form in which tools and resources show them.

use crate::refusal::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polity_runtime::{ArtifactContent as Stored, Society};
use polity_society::content::Kind;
use polity_society::id::ArtifactId;
use polity_society::mime::MimeType;
use polity_view::ArtifactView;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Read as _;

/// The part of an artifact's address before its id.
const SCHEME: &str = "polity://artifact/";

/// Default size of a page of text, in characters. `LONGEST_PAGE_CHARS` is the maximum size.
const PAGE_CHARS: u64 = 20_000;
const LONGEST_PAGE_CHARS: u64 = 200_000;

/// Maximum size of a picture or sound in a result, in bytes. Clients and their models accept media up to this size.
const SHOWN_BYTES: u64 = 5 << 20;

/// Largest artifact that can be read, in bytes. The size is bounded because the whole artifact is held in memory and
/// sent in one message.
const READ_BYTES: u64 = 16 << 20;

/// Image types that clients and their models accept. Some clients reject the whole conversation if it contains an
/// image of another type, such as TIFF.
const SHOWN_PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A piece of a tool's result, for the model that called the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Text(String),
    /// A picture, with its bytes in base64.
    Image {
        data: String,
        mime: MimeType,
    },
    /// Sound, with its bytes in base64.
    Audio {
        data: String,
        mime: MimeType,
    },
}

/// A part of an artifact.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Page {
    /// What is known about the artifact.
    pub(crate) artifact: ArtifactView,
    /// The text of the page, if the bytes of the artifact are text: valid UTF-8, and without null characters unless the
    /// artifact is of the kind `text`. A picture or sound that is shown itself has no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// `offset` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<u64>,
}

/// The content of an artifact as a resource.
#[derive(Debug)]
pub(crate) enum ReadArtifact {
    /// The text of an artifact of the kind `text`.
    Text(String),
    /// The bytes of any other artifact, in base64.
    Bytes(String),
}

/// Returns the address of an artifact as an MCP resource.
pub(crate) fn uri(id: &ArtifactId) -> String {
    format!("{SCHEME}{}", id.as_str())
}

/// Parses the address of an artifact as an MCP resource. Returns `None` if no valid id follows [`SCHEME`].
pub(crate) fn of_uri(uri: &str) -> Option<ArtifactId> {
    ArtifactId::from_reference(uri.strip_prefix(SCHEME)?).filter(|id| uri.ends_with(id.as_str()))
}

/// Reads an artifact for a model. Of a text, returns a page. Of a picture or sound that can be shown, returns the
/// bytes. Of any other artifact, returns only a description. `offset` and `limit` count characters.
pub(crate) async fn page(
    society: &Society,
    id: &ArtifactId,
    offset: u64,
    limit: Option<u64>,
) -> Result<(Page, Block), Refusal> {
    let (artifact, bytes) = read(society, id).await?;
    let shown = artifact.size <= SHOWN_BYTES;
    let mime = artifact.mime_type.clone();
    let described = Block::Text(format!("{}: nothing of it can be shown here", line(&artifact)));
    let block = match artifact.kind {
        Kind::Image if shown && SHOWN_PICTURES.contains(&mime.as_str()) => {
            Block::Image { data: STANDARD.encode(&bytes), mime }
        }
        Kind::Audio if shown => Block::Audio { data: STANDARD.encode(&bytes), mime },
        _ => match as_text(&artifact, bytes) {
            Some(text) => {
                let limit = limit.unwrap_or(PAGE_CHARS).clamp(1, LONGEST_PAGE_CHARS);
                let (text, next) = part(&text, offset, limit);
                let page = Page { artifact, text: Some(text.clone()), next };
                return Ok((page, Block::Text(text)));
            }
            None => described,
        },
    };
    Ok((Page { artifact, text: None, next: None }, block))
}

/// Reads the whole content of an artifact.
pub(crate) async fn whole(
    society: &Society,
    id: &ArtifactId,
) -> Result<(ArtifactView, ReadArtifact), Refusal> {
    let (artifact, bytes) = read(society, id).await?;
    let content = match (artifact.kind, String::from_utf8(bytes)) {
        (Kind::Text, Ok(text)) => ReadArtifact::Text(text),
        (_, Ok(text)) => ReadArtifact::Bytes(STANDARD.encode(text)),
        (_, Err(error)) => ReadArtifact::Bytes(STANDARD.encode(error.into_bytes())),
    };
    Ok((artifact, content))
}

async fn read(society: &Society, id: &ArtifactId) -> Result<(ArtifactView, Vec<u8>), Refusal> {
    let refusal = |code: &str, message: String| Refusal { code: code.to_owned(), message, details: None };
    let content = society.artifact_content(id).await?;
    let Some(Stored { artifact, file, .. }) = content else {
        return Err(refusal("not_found", format!("there is no artifact `{}`", id.reference())));
    };
    if file.size > READ_BYTES {
        let message =
            format!("{}; artifacts of more than {READ_BYTES} bytes cannot be read here", line(&artifact));
        return Err(refusal("limit_reached", message));
    }
    let mut file = file.file;
    let work = move || {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let read = tokio::task::spawn_blocking(work).await.map_err(std::io::Error::other).flatten();
    match read {
        Ok(bytes) => Ok((artifact, bytes)),
        Err(error) => Err(refusal("internal_error", format!("{} cannot be read: {error}", id.reference()))),
    }
}

fn as_text(artifact: &ArtifactView, bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    (matches!(artifact.kind, Kind::Text) || !text.contains('\0')).then_some(text)
}

/// Cuts a part out of a text. `offset` and `limit` count characters. Also returns the offset of the next part, if any
/// text is left.
fn part(text: &str, offset: u64, limit: u64) -> (String, Option<u64>) {
    let (skip, take) =
        (usize::try_from(offset).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX));
    let mut rest = text.chars().skip(skip);
    let part: String = rest.by_ref().take(take).collect();
    let next = rest.next().map(|_| offset.saturating_add(limit));
    (part, next)
}

/// Describes an artifact in one line.
pub(crate) fn line(artifact: &ArtifactView) -> String {
    let name = artifact.filename.as_deref().unwrap_or("artifact");
    format!("{name} ({}, {}, {} bytes)", artifact.reference, artifact.mime_type, artifact.size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |uri: &str, expect: Option<&str>| {
            assert_eq!(of_uri(uri).as_ref().map(ArtifactId::as_str), expect, "{uri}");
        };
        check("polity://artifact/abc123", Some("abc123"));
        check("polity://artifact/", None);
        check("polity://artifact/../../etc/passwd", None);
        check("polity://artifact/abc123/../x", None);
        check("polity://artifact/abc%2F", None);
        check("polity://artifact/abc ", None);
        check("artifact:abc123", None);
        check("file:///etc/passwd", None);
        assert_eq!(of_uri(&uri(&ArtifactId::new("abc"))), Some(ArtifactId::new("abc")));
    }

    #[test]
    fn pages_make_up_the_whole() {
        let text = "图片a里有b三只猫";
        for limit in 1..10 {
            let (mut whole, mut at) = (String::new(), Some(0));
            while let Some(offset) = at {
                let (page, next) = part(text, offset, limit);
                assert!(page.chars().count() as u64 <= limit);
                whole += &page;
                at = next;
            }
            assert_eq!(whole, text, "{limit}");
        }
        assert_eq!(part(text, 100, 5), (String::new(), None));
        assert_eq!(part("", 0, 5), (String::new(), None));
    }
}
