//! Decides how one piece of content reaches one model.

use crate::file_types::FileTypes;
use polity_society::content::{Artifact, Capabilities, Capability, Direction, Kind};
use polity_society::mime::MimeType;
use serde::Serialize;

/// The content to decide about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routable<'a> {
    /// The kind, which determines the capability that the model needs.
    pub kind: Kind,
    /// The MIME type; its parameters and letter case do not matter.
    pub mime_type: &'a MimeType,
}

impl<'a> Routable<'a> {
    /// Returns the kind and the MIME type of an artifact.
    pub fn of(artifact: &'a Artifact) -> Self {
        Self { kind: artifact.kind, mime_type: &artifact.mime_type }
    }
}

/// How a piece of content reaches a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// The model gets the content as text.
    Text,
    /// The model gets the content as an image part of the request.
    Image,
    /// The model gets the content as an audio part of this format.
    Audio(AudioFormat),
    /// The model gets the content as a file part of the request.
    File,
    /// The model does not get the content, but a description of it.
    Describe(Reason),
}

/// The formats that an audio part can have. Other audio is sent as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AudioFormat {
    /// RIFF WAVE.
    Wav,
    /// MPEG audio, layer 3.
    Mp3,
}

impl AudioFormat {
    /// Returns the format for a MIME type. Also knows unofficial names of MIME types.
    pub fn of(mime_type: &MimeType) -> Option<Self> {
        match mime_type.essence().as_str() {
            "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some(Self::Wav),
            "audio/mpeg" | "audio/mp3" | "audio/x-mp3" | "audio/x-mpeg" | "audio/mpeg3"
            | "audio/x-mpeg-3" => Some(Self::Mp3),
            _ => None,
        }
    }

    /// Returns the name of the format in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Mp3 => "mp3",
        }
    }
}

/// Why content is described instead of shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The model lacks this input capability.
    MissingCapability(Capability),
    /// The model reads files, but its endpoint does not accept files of this type.
    FileTypeNotTaken,
    /// The server refused this content in an earlier request.
    Refused,
    /// One request may contain media up to a maximum total size. This content alone is larger.
    TooLarge {
        /// Bytes of the content on the wire, in base64.
        encoded: u64,
        /// Maximum bytes of the media of one request.
        limit: u64,
    },
    /// The content is a picture with more pixels than polity decodes.
    TooManyPixels {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Maximum bytes of the decoded pixels.
        max_bytes: u64,
        /// Maximum length of a side, in pixels.
        max_edge: u32,
    },
    /// The content is a picture that cannot be reduced to the maximum size.
    CannotFit {
        /// Maximum bytes of a picture.
        limit: u64,
    },
    /// The content is a picture in a format that servers do not accept and polity cannot convert.
    NotConvertible,
    /// The content is a picture that cannot be decoded.
    Damaged,
}

/// Decides how `content` reaches a model with these capabilities, through an endpoint that accepts these file types.
///
/// Every model gets text as text. Any other content needs a model with the capability of its kind.
/// Content that is sent as a file also needs an endpoint that accepts its type.
#[doc(alias = "routeContent")]
pub fn route(content: &Routable<'_>, capabilities: &Capabilities, file_types: &FileTypes) -> Route {
    let needed = content.kind.needs();
    if content.kind != Kind::Text && !capabilities.has(&needed, Direction::Input) {
        return Route::Describe(Reason::MissingCapability(needed));
    }
    let as_file = || match file_types.take(content.mime_type) {
        true => Route::File,
        false => Route::Describe(Reason::FileTypeNotTaken),
    };
    match content.kind {
        Kind::Text => Route::Text,
        Kind::Image => Route::Image,
        Kind::Audio => AudioFormat::of(content.mime_type).map_or_else(as_file, Route::Audio),
        Kind::Video | Kind::Document | Kind::Other => as_file(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::mime::MimePattern;

    fn inputs(names: &[&str]) -> Capabilities {
        let input = names.iter().filter_map(|name| Capability::new(name)).collect();
        Capabilities { input, output: vec![Capability::TEXT] }
    }

    #[test]
    fn file_types_restrict_only_what_goes_as_a_file() {
        let only_pdf = FileTypes::new(&[MimePattern::Exactly(MimeType::PDF)]);
        let all = inputs(&["text", "vision", "audio", "video", "file"]);
        let check = |kind: Kind, mime_type: &str, expect: Route| {
            let mime_type = &MimeType::unchecked(mime_type);
            assert_eq!(route(&Routable { kind, mime_type }, &all, &only_pdf), expect, "{mime_type}");
        };
        let not_taken = || Route::Describe(Reason::FileTypeNotTaken);
        check(Kind::Text, "text/plain", Route::Text);
        check(Kind::Image, "image/png", Route::Image);
        check(Kind::Audio, "audio/x-wav", Route::Audio(AudioFormat::Wav));
        check(Kind::Audio, "Audio/MP3; rate=44100", Route::Audio(AudioFormat::Mp3));
        check(Kind::Audio, "audio/ogg", not_taken());
        check(Kind::Video, "video/mp4", not_taken());
        check(Kind::Document, "application/PDF", Route::File);
        check(Kind::Document, "application/msword", not_taken());
        check(Kind::Other, "application/zip", not_taken());
    }

    #[test]
    fn an_output_capability_reads_nothing() {
        let painter = Capabilities { input: vec![Capability::TEXT], output: vec![Capability::VISION] };
        let content = Routable { kind: Kind::Image, mime_type: &MimeType::unchecked("image/png") };
        let expect = Route::Describe(Reason::MissingCapability(Capability::VISION));
        assert_eq!(route(&content, &painter, &FileTypes::default()), expect);
    }
}
