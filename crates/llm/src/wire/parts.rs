//! Parts of a message in the form in which the server gets them, with media in base64.

use crate::chat::{Media, Part};
use crate::data::Data;
use serde::Serialize;
use serde::ser::Serializer;
use std::borrow::Cow;

/// One part of a message on the wire.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WirePart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: File<'a> },
}

#[derive(Debug, Serialize)]
pub(super) struct ImageUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Debug, Serialize)]
pub(super) struct InputAudio<'a> {
    data: Encoded<'a>,
    format: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct File<'a> {
    filename: &'a str,
    file_data: DataUrl<'a>,
}

impl<'a> WirePart<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }
}

impl<'a> From<&'a Part> for WirePart<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Text(text) => Self::text(text),
            Part::Image { mime_type, data } => {
                Self::ImageUrl { image_url: ImageUrl { url: DataUrl { mime_type, bytes: data } } }
            }
            Part::Audio { format, data } => {
                Self::InputAudio { input_audio: InputAudio { data: Encoded(data), format: format.as_str() } }
            }
            Part::File { filename, mime_type, data } => {
                Self::File { file: File { filename, file_data: DataUrl { mime_type, bytes: data } } }
            }
        }
    }
}

/// Returns a medium, preceded by the line that names it.
pub(super) fn labelled(media: &Media) -> [WirePart<'_>; 2] {
    [WirePart::text(&media.label), WirePart::from(&media.part)]
}

/// The content of a message. A single text is written as a plain string, because some servers accept nothing else.
#[derive(Debug)]
pub(super) struct WireContent<'a>(pub(super) Vec<WirePart<'a>>);

impl Serialize for WireContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_slice() {
            [WirePart::Text { text }] => serializer.serialize_str(text),
            parts => serializer.collect_seq(parts),
        }
    }
}

/// Bytes that are written as base64.
#[derive(Debug)]
struct Encoded<'a>(&'a Data);

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.base64())
    }
}

/// Bytes that are written as a data URL.
#[derive(Debug)]
struct DataUrl<'a> {
    mime_type: &'a str,
    bytes: &'a Data,
}

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { mime_type, bytes } = self;
        serializer.collect_str(&format_args!("data:{mime_type};base64,{}", bytes.base64()))
    }
}
