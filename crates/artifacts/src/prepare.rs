//! From bytes and what was said about them to what is written down.

use crate::blobs::{Blob, BlobError, BlobStore};
use crate::detect::{Detected, Extent, detect};
use bytes::Bytes;
use polity_society::content::Artifact;
use polity_society::id::ArtifactId;
use serde_json::{Map, Value, json};

/// Something to store, and what is said about it.
#[derive(Clone, Debug, Default)]
pub struct NewArtifact {
    /// The content.
    pub bytes: Bytes,
    /// The MIME type that was declared, as it was declared.
    pub declared_mime: Option<String>,
    /// The name of the file, perhaps with a path.
    pub filename: Option<String>,
    /// A label, such as `report`.
    pub label: Option<String>,
    /// What else is to be kept about it.
    pub meta: Map<String, Value>,
}

/// An artifact whose bytes are stored and whose row is not yet written.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// What is known about it.
    pub artifact: Artifact,
    /// Where its bytes are.
    pub blob: Blob,
}

/// The longest file name that is kept, in characters.
const MAX_FILENAME_CHARS: usize = 255;

/// Under this name a contradiction between what was said and what was found is kept in an artifact's `meta`.
const CONTRADICTION: &str = "contradiction";

/// Finds out what the bytes are and stores them. `created_at` is in milliseconds since 1970.
///
/// Fails only where the bytes cannot be stored; what they are is never an error.
pub async fn prepare(
    store: &BlobStore,
    new: NewArtifact,
    id: ArtifactId,
    created_at: i64,
) -> Result<Prepared, BlobError> {
    let NewArtifact { bytes, declared_mime, filename, label, mut meta } = new;
    let filename = filename.as_deref().and_then(plain_filename);
    let (looked_at, name) = (bytes.clone(), filename.clone());
    // Looking for a bad byte in 64 MiB of text takes long enough to do it elsewhere.
    let look = move || detect(declared_mime.as_deref(), name.as_deref(), &looked_at, Extent::Whole);
    let detected = tokio::task::spawn_blocking(look).await.map_err(BlobError::CutOff)?;
    let blob = store.put(bytes).await?;

    let Detected { kind, mime_type, contradiction } = detected;
    if let Some(contradiction) = contradiction {
        let (declared, found) = (&contradiction.declared, &contradiction.found);
        tracing::warn!(artifact = %id, declared, found, "an artifact is not what it was said to be");
        meta.insert(CONTRADICTION.to_owned(), json!(contradiction));
    }
    let size = blob.size;
    Ok(Prepared { artifact: Artifact { id, kind, mime_type, filename, label, size, created_at, meta }, blob })
}

/// The last component of a path, without control characters and not too long; `None` where nothing is left.
fn plain_filename(filename: &str) -> Option<String> {
    let (_, last) = filename.rsplit_once(['/', '\\']).unwrap_or(("", filename));
    let plain: String = last.chars().filter(|character| !character.is_control()).collect();
    let plain = plain.trim();
    if plain.is_empty() || plain == "." || plain == ".." {
        return None;
    }
    Some(shortened(plain))
}

/// The name with its end cut off, but for an extension.
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
    use polity_society::content::Kind;
    use proptest::prelude::*;

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
            mime_type: "image/png".to_owned(),
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
