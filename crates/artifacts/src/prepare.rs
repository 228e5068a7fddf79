//! Stores the bytes of a new artifact and builds its row from the bytes and their metadata.

use crate::blobs::{Blob, BlobError, BlobStore};
use crate::detect::{Detected, detect};
use crate::text_test::Extent;
use bytes::Bytes;
use polity_society::content::{Artifact, Kind};
use polity_society::id::ArtifactId;
use serde_json::{Map, Value, json};

/// Bytes to store, with the metadata that came with them.
#[derive(Clone, Debug, Default)]
pub struct NewArtifact {
    /// The content; any bytes are accepted.
    pub bytes: Bytes,
    /// The declared MIME type, exactly as received; it may be malformed or wrong.
    pub declared_mime: Option<String>,
    /// The file's name as received, perhaps with a path.
    pub filename: Option<String>,
    /// A label, such as `report`.
    pub label: Option<String>,
    /// Further metadata to keep. [`prepare()`] adds a contradiction if detection finds one.
    pub meta: Map<String, Value>,
}

/// An artifact whose bytes are stored and whose row is not yet written.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The metadata for the row.
    pub artifact: Artifact,
    /// The blob with the bytes of the artifact.
    pub blob: Blob,
    /// The beginning of a text, by which a search finds the artifact; empty if the content is no text.
    pub words: String,
}

/// Longest file name that is kept, in characters.
const MAX_FILENAME_CHARS: usize = 255;

/// The key in an artifact's `meta` for a contradiction between declared and detected type.
const CONTRADICTION: &str = "contradiction";

/// Detects what the bytes are and stores them. `created_at` is in milliseconds since 1970.
///
/// Fails only if the bytes cannot be stored. Bytes of an unknown type are not an error.
pub async fn prepare(
    store: &BlobStore,
    new: NewArtifact,
    id: ArtifactId,
    created_at: i64,
) -> Result<Prepared, BlobError> {
    let NewArtifact { bytes, declared_mime, filename, label, mut meta } = new;
    let filename = filename.as_deref().and_then(plain_filename);
    let (looked_at, name) = (bytes.clone(), filename.clone());
    // Use a thread for blocking work: the search for an invalid byte in 64 MiB of text would block an async thread for
    // too long.
    let look = move || detect(declared_mime.as_deref(), name.as_deref(), &looked_at, Extent::Whole);
    let detected = tokio::task::spawn_blocking(look).await.map_err(BlobError::CutOff)?;
    let beginning = bytes.slice(..bytes.len().min(WORDS_BYTES));
    let blob = store.put(bytes).await?;

    let Detected { kind, mime_type, contradiction } = detected;
    if let Some(contradiction) = contradiction {
        let (declared, found) = (contradiction.declared.as_str(), contradiction.found.as_str());
        tracing::warn!(artifact = %id, declared, found, "the bytes of an artifact contradict its declared type");
        meta.insert(CONTRADICTION.to_owned(), json!(contradiction));
    }
    let size = blob.size;
    let words = words(kind, &beginning);
    let artifact = Artifact { id, kind, mime_type, filename, label, size, created_at, meta };
    Ok(Prepared { artifact, blob, words })
}

/// A search sees only this many bytes at the beginning of a text artifact. Without this limit, the transaction that
/// writes the row would take too long.
pub const WORDS_BYTES: usize = 16 * 1024;

/// A run of this many digits of base64 or hexadecimal is no word. It could be a file within a text, and files do not
/// belong into the database.
const NO_WORD: usize = 64;

/// Returns the text by which a search finds an artifact with this content; empty if the content is no text. Only the
/// first [`WORDS_BYTES`] of the content are needed.
pub fn words(kind: Kind, content: &[u8]) -> String {
    match kind {
        Kind::Text => {
            let beginning = &content[..content.len().min(WORDS_BYTES)];
            let text = String::from_utf8_lossy(beginning).trim_end_matches('\u{fffd}').replace('\0', " ");
            without_long_runs(&text)
        }
        Kind::Image | Kind::Audio | Kind::Video | Kind::Document | Kind::Other => String::new(),
    }
}

/// Replaces each run of at least [`NO_WORD`] digits of base64 or hexadecimal with `…`.
fn without_long_runs(text: &str) -> String {
    let is_digit = |character: char| character.is_ascii_alphanumeric() || "+/=-_".contains(character);
    let mut kept = String::with_capacity(text.len());
    let mut run = 0;
    for character in text.chars() {
        run = if is_digit(character) { run + 1 } else { 0 };
        match run {
            0..NO_WORD => kept.push(character),
            NO_WORD => {
                // All digits are ASCII characters, so each of them takes one byte.
                kept.truncate(kept.len() + 1 - NO_WORD);
                kept.push('…');
            }
            _ => {}
        }
    }
    kept
}

/// Returns the last component of a path, shortened and without control characters; `None` if nothing is left.
fn plain_filename(filename: &str) -> Option<String> {
    let (_, last) = filename.rsplit_once(['/', '\\']).unwrap_or(("", filename));
    let plain: String = last.chars().filter(|character| !character.is_control()).collect();
    let plain = plain.trim();
    if plain.is_empty() || plain == "." || plain == ".." {
        return None;
    }
    Some(shortened(plain))
}

/// Cuts a name that is too long, but keeps its extension.
fn shortened(name: &str) -> String {
    if name.chars().count() <= MAX_FILENAME_CHARS {
        return name.to_owned();
    }
    let extension =
        name.rsplit_once('.').map(|(_, extension)| extension).filter(|text| text.chars().count() <= 16);
    let Some(extension) = extension else {
        return name.chars().take(MAX_FILENAME_CHARS).collect();
    };
    let room = MAX_FILENAME_CHARS - extension.chars().count() - 1;
    let stem: String = name.chars().take(room).collect();
    format!("{stem}.{extension}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::mime::MimeType;
    use proptest::prelude::*;

    #[test]
    fn the_words_of_a_text_are_its_beginning() {
        assert_eq!(words(Kind::Text, "天气 report\0".as_bytes()), "天气 report ");
        assert_eq!(words(Kind::Image, b"\x89PNG"), "");
        let long = "天".repeat(WORDS_BYTES);
        assert_eq!(words(Kind::Text, long.as_bytes()), "天".repeat(WORDS_BYTES / 3));
    }

    #[test]
    fn a_file_within_a_text_is_no_word() {
        let check = |text: &str, expect: &str| assert_eq!(words(Kind::Text, text.as_bytes()), expect);
        let (short, long) = ("aB3+/".repeat(12), "aB3+/-_=".repeat(20));
        check(&format!("天{short}气 {long}"), &format!("天{short}气 …"));
        check(
            &format!("<img src=\"data:image/png;base64,{long}\"> {long}天"),
            "<img src=\"data:image/png;base64,…\"> …天",
        );
        check(&"a".repeat(63), &"a".repeat(63));
        check(&"a".repeat(64), "…");
    }

    #[test]
    fn filenames() {
        let check =
            |filename: &str, expect: Option<&str>| assert_eq!(plain_filename(filename).as_deref(), expect);
        check("a.png", Some("a.png"));
        check("/etc/passwd", Some("passwd"));
        check("..\\..\\照片 1.jpg", Some("照片 1.jpg"));
        check("a\nb\0.png", Some("ab.png"));
        check("  a.png ", Some("a.png"));
        check("", None);
        check("dir/", None);
        check("..", None);
        check("\u{7}\n", None);
        let long = "图".repeat(300);
        check(&long, Some(&"图".repeat(255)));
        check(&format!("{long}.pdf"), Some(&format!("{}.pdf", "图".repeat(251))));
    }

    #[tokio::test]
    async fn bytes_are_stored_and_described() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlobStore::open(directory.path()).await.unwrap();
        let new = NewArtifact {
            bytes: Bytes::from_static(b"\x89PNG\r\n\x1a\n\0\0"),
            declared_mime: Some("text/plain".to_owned()),
            filename: Some("/home/a/notes.txt".to_owned()),
            label: Some("report".to_owned()),
            meta: Map::from_iter([("page".to_owned(), json!(3))]),
        };
        let prepared = prepare(&store, new, ArtifactId::new("abc"), 12).await.unwrap();
        let expect = Artifact {
            id: ArtifactId::new("abc"),
            kind: Kind::Image,
            mime_type: MimeType::unchecked("image/png"),
            filename: Some("notes.txt".to_owned()),
            label: Some("report".to_owned()),
            size: 10,
            created_at: 12,
            meta: Map::from_iter([
                ("page".to_owned(), json!(3)),
                ("contradiction".to_owned(), json!({"declared": "text/plain", "found": "image/png"})),
            ]),
        };
        assert_eq!(prepared.artifact, expect);
        assert_eq!(store.read(&prepared.blob.hash).await.unwrap(), &b"\x89PNG\r\n\x1a\n\0\0"[..]);
    }

    #[tokio::test]
    async fn equal_bytes_are_two_artifacts_and_one_blob() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlobStore::open(directory.path()).await.unwrap();
        let new = NewArtifact { bytes: Bytes::from_static(b"same"), ..NewArtifact::default() };
        let one = prepare(&store, new.clone(), ArtifactId::new("a"), 1).await.unwrap();
        let other = prepare(&store, new, ArtifactId::new("b"), 2).await.unwrap();
        assert_ne!(one.artifact.id, other.artifact.id);
        assert_eq!(one.blob, other.blob);
        assert_eq!(one.artifact.kind, Kind::Text);
        assert!(one.artifact.meta.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_kept_filename_is_one_plain_component(filename in any::<String>()) {
            if let Some(plain) = plain_filename(&filename) {
                prop_assert!(!plain.is_empty() && plain.chars().count() <= MAX_FILENAME_CHARS);
                prop_assert!(!plain.chars().any(|character| character.is_control() || "/\\".contains(character)));
            }
        }
    }
}
