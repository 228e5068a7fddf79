//! The parts of a message's content: text, and attachments that become artifacts. Nothing is fetched from the network.

use crate::problem::Problem;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use polity_society::id::ArtifactId;
use serde_json::Value;

/// An attachment of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attached {
    /// Bytes that the client sent.
    Bytes {
        bytes: Bytes,
        /// The MIME type that the client declares.
        mime: Option<String>,
        filename: Option<String>,
    },
    /// An existing artifact.
    Stored(ArtifactId),
    /// The hash of the bytes or of the reference. After the message was sent, this hash replaces the bytes or the
    /// reference.
    Fingerprint([u8; 32]),
}

impl Attached {
    /// Returns a hash of the content. It does not depend on the filename or the MIME type.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        match self {
            Self::Bytes { bytes, .. } => *blake3::hash(bytes).as_bytes(),
            Self::Stored(id) => *blake3::hash(id.reference().as_bytes()).as_bytes(),
            Self::Fingerprint(fingerprint) => *fingerprint,
        }
    }
}

/// The form of base64 that is accepted. Padding is optional, because some clients omit it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Parses the content of a message: a text, null, or parts. `at` is the place of the content in the body; errors show
/// this place.
pub(crate) fn content(content: &Value, at: &str) -> Result<(String, Vec<Attached>), Problem> {
    let parts = match content {
        Value::Null => return Ok((String::new(), Vec::new())),
        Value::String(text) => return Ok((text.clone(), Vec::new())),
        Value::Array(parts) => parts,
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return Err(Problem::invalid("invalid_value", at, "content is a text or a list of parts"));
        }
    };
    let mut texts = Vec::new();
    let mut attached = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let text = |name: &str| {
            let path = format!("{at}.{}", name.trim_start_matches('/').replace('/', "."));
            let found = part.pointer(name).and_then(Value::as_str);
            found.ok_or_else(|| Problem::invalid("invalid_value", path.clone(), "must be a text"))
        };
        match part.get("type").and_then(Value::as_str) {
            Some("text" | "input_text" | "output_text") => texts.push(text("/text")?),
            Some("refusal") => texts.push(text("/refusal")?),
            Some("input_image") if part.get("file_id").is_some_and(|id| !id.is_null()) => {
                attached.push(stored(text("/file_id")?, &format!("{at}.file_id"))?);
            }
            Some("image_url" | "input_image") => {
                let url = part.pointer("/image_url/url").and_then(Value::as_str);
                // Some clients send the URL itself instead of an object with `url`.
                let url = url.or_else(|| part.get("image_url").and_then(Value::as_str));
                let at = format!("{at}.image_url.url");
                let url =
                    url.ok_or_else(|| Problem::invalid("invalid_value", at.clone(), "must be a text"))?;
                attached.push(of_url(url, &at)?);
            }
            Some("input_audio") => {
                let mime = match text("/input_audio/format")? {
                    "mp3" => "audio/mpeg".to_owned(),
                    format if format.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                        format!("audio/{format}")
                    }
                    _ => {
                        let message = "must name a format such as wav or mp3";
                        return Err(Problem::invalid(
                            "invalid_value",
                            format!("{at}.input_audio.format"),
                            message,
                        ));
                    }
                };
                let bytes = decode(text("/input_audio/data")?, &format!("{at}.input_audio.data"))?;
                attached.push(Attached::Bytes { bytes, mime: Some(mime), filename: None });
            }
            Some("file") => attached.push(file(&part["file"], &format!("{at}.file"))?),
            Some("input_file") => attached.push(file(part, &at)?),
            Some(_) | None => {
                let message = "must be text, image_url, input_audio or file; in a response input_text, input_image or input_file";
                return Err(Problem::invalid("unsupported_value", format!("{at}.type"), message));
            }
        }
    }
    Ok((texts.join("\n"), attached))
}

/// Parses a `file_id`, which must be the reference of an artifact.
fn stored(id: &str, at: &str) -> Result<Attached, Problem> {
    ArtifactId::from_reference(id).map(Attached::Stored).ok_or_else(|| {
        let message = "there is no file store; use the reference of an artifact: artifact:…";
        Problem::invalid("invalid_value", at, message)
    })
}

/// Parses a file: its bytes, or the reference of an artifact. `at` is the place of the file in the body; errors show
/// this place.
fn file(file: &Value, at: &str) -> Result<Attached, Problem> {
    let field = |name: &str| file.get(name).and_then(Value::as_str);
    if let Some(id) = field("file_id") {
        return stored(id, &format!("{at}.file_id"));
    }
    if let Some(url) = field("file_url") {
        return of_url(url, &format!("{at}.file_url"));
    }
    let at = format!("{at}.file_data");
    let Some(data) = field("file_data") else {
        return Err(Problem::invalid("invalid_value", at, "must be a data URL or base64"));
    };
    let filename = field("filename").map(str::to_owned);
    // Some clients send plain base64 instead of a data URL.
    match if data.contains(':') {
        of_url(data, &at)?
    } else {
        Attached::Bytes { bytes: decode(data, &at)?, mime: None, filename: None }
    } {
        Attached::Bytes { bytes, mime, .. } => Ok(Attached::Bytes { bytes, mime, filename }),
        other @ (Attached::Stored(_) | Attached::Fingerprint(_)) => Ok(other),
    }
}

/// Parses a URL. Accepts only `data:` URLs and references of artifacts.
fn of_url(url: &str, at: &str) -> Result<Attached, Problem> {
    let invalid = |message: &str| Problem::invalid("invalid_value", at, message);
    let (scheme, rest) = url.split_once(':').ok_or_else(|| invalid("must be a data: URL"))?;
    match scheme.to_ascii_lowercase().as_str() {
        "data" => {
            let (head, data) = rest.split_once(',').ok_or_else(|| invalid("a data: URL needs a comma"))?;
            let mut head = head.split(';').map(str::trim);
            let mime = head.next().filter(|mime| !mime.is_empty()).map(str::to_owned);
            if !head.any(|parameter| parameter.eq_ignore_ascii_case("base64")) {
                return Err(invalid("a data: URL must be in base64"));
            }
            Ok(Attached::Bytes { bytes: decode(data, at)?, mime, filename: None })
        }
        "artifact" => {
            ArtifactId::from_reference(url).map(Attached::Stored).ok_or_else(|| invalid("is not an artifact"))
        }
        "http" | "https" => {
            Err(invalid("nothing is fetched from the network; send the content as a data: URL"))
        }
        _ => Err(invalid("must be a data: URL, or artifact:…")),
    }
}

fn decode(text: &str, at: &str) -> Result<Bytes, Problem> {
    let text: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let decoded = BASE64.decode(text);
    let bytes = decoded.map_err(|_| Problem::invalid("invalid_value", at, "is not base64"))?;
    if bytes.is_empty() {
        return Err(Problem::invalid("invalid_value", at, "is empty"));
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attached(part: Value) -> Result<Attached, Problem> {
        content(&json!([part]), "content").map(|(_, mut attached)| attached.remove(0))
    }

    fn bytes(content: &'static str, mime: Option<&str>, filename: Option<&str>) -> Attached {
        Attached::Bytes {
            bytes: Bytes::from_static(content.as_bytes()),
            mime: mime.map(str::to_owned),
            filename: filename.map(str::to_owned),
        }
    }

    #[test]
    fn parts_that_become_artifacts() {
        let check = |part: Value, expect: Attached| assert_eq!(attached(part.clone()), Ok(expect), "{part}");
        let png = bytes("hello", Some("image/png"), None);
        check(
            json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}}),
            png.clone(),
        );
        check(json!({"type": "image_url", "image_url": "data:image/png;base64,aGVsbG8"}), png.clone());
        check(
            json!({"type": "image_url", "image_url": {"url": "DATA:image/png;x=1;BASE64,aGVs\nbG8="}}),
            png,
        );
        check(
            json!({"type": "image_url", "image_url": {"url": "artifact:abc"}}),
            Attached::Stored(ArtifactId::new("abc")),
        );
        check(
            json!({"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "mp3"}}),
            bytes("hello", Some("audio/mpeg"), None),
        );
        check(
            json!({"type": "input_audio", "input_audio": {"data": "aGVsbG8=", "format": "wav"}}),
            bytes("hello", Some("audio/wav"), None),
        );
        check(
            json!({"type": "file", "file": {"file_data": "data:application/pdf;base64,aGVsbG8=", "filename": "a.pdf"}}),
            bytes("hello", Some("application/pdf"), Some("a.pdf")),
        );
        check(
            json!({"type": "file", "file": {"file_data": "aGVsbG8=", "filename": "a.pdf"}}),
            bytes("hello", None, Some("a.pdf")),
        );
        check(
            json!({"type": "file", "file": {"file_id": "artifact:abc"}}),
            Attached::Stored(ArtifactId::new("abc")),
        );
    }

    #[test]
    fn parts_that_are_refused_say_where() {
        let check = |part: Value, param: &str| {
            let problem = attached(part).unwrap_err();
            assert_eq!(problem.param.as_deref(), Some(param));
            assert_eq!(problem.status.as_u16(), 400);
        };
        let url = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
        check(url("https://example.com/cat.png"), "content[0].image_url.url");
        check(url("http://127.0.0.1:7717/api/agents"), "content[0].image_url.url");
        check(url("file:///etc/passwd"), "content[0].image_url.url");
        check(url("/etc/passwd"), "content[0].image_url.url");
        check(url("artifact:../../etc/passwd"), "content[0].image_url.url");
        check(url("data:image/png,hello"), "content[0].image_url.url");
        check(url("data:image/png;base64,***"), "content[0].image_url.url");
        check(url("data:image/png;base64,"), "content[0].image_url.url");
        check(json!({"type": "image_url"}), "content[0].image_url.url");
        check(
            json!({"type": "input_audio", "input_audio": {"data": "aGVsbG8="}}),
            "content[0].input_audio.format",
        );
        check(json!({"type": "file", "file": {"file_id": "file-abc/../x"}}), "content[0].file.file_id");
        check(json!({"type": "file", "file": {}}), "content[0].file.file_data");
        check(json!({"type": "video_url", "video_url": {"url": "x"}}), "content[0].type");
        check(json!("text"), "content[0].type");
        check(json!({"type": "text", "text": 7}), "content[0].text");
    }

    #[test]
    fn texts() {
        let check = |value: Value, expect: &str| assert_eq!(content(&value, "").unwrap().0, expect);
        check(json!("hello"), "hello");
        check(Value::Null, "");
        check(json!([]), "");
        check(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), "a\nb");
        assert!(content(&json!(7), "").is_err());
    }
}
