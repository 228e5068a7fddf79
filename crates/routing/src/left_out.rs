//! Reasons why some content is not sent to any model, even to a model with the needed capability.
//! Also writes and parses the texts about these reasons.

use crate::route::Reason;
use crate::template::values_of;
use crate::words::HumanSize;
use polity_society::text::{TextKey, Texts};

/// The reason why content is left out of every request to a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// One request may contain media up to a maximum total size. This content alone is larger.
    TooLarge {
        /// The size of the content on the wire, in base64.
        encoded: HumanSize,
        /// Maximum size of the media of one request.
        limit: HumanSize,
    },
    /// A picture with more pixels than polity decodes.
    TooManyPixels {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
        /// Maximum memory for the decoded pixels.
        limit: HumanSize,
        /// Maximum length of a side, in pixels.
        edge: u32,
    },
    /// A picture that cannot be reduced to the maximum size.
    CannotFit {
        /// Maximum size of a picture.
        limit: HumanSize,
    },
    /// A picture in a format that servers do not accept and polity cannot convert.
    NotConvertible,
    /// A picture that cannot be decoded.
    Damaged,
}

impl LeftOut {
    /// Converts the reason for which content is described instead of shown. If another model could get the content,
    /// returns `None`.
    pub fn of(reason: &Reason) -> Option<Self> {
        match *reason {
            Reason::MissingCapability(_) | Reason::FileTypeNotTaken | Reason::Refused => None,
            Reason::TooLarge { encoded, limit } => Some(Self::TooLarge {
                encoded: HumanSize::of_bytes(encoded),
                limit: HumanSize::of_bytes(limit),
            }),
            Reason::TooManyPixels { width, height, max_bytes, max_edge } => Some(Self::TooManyPixels {
                width,
                height,
                limit: HumanSize::of_bytes(max_bytes),
                edge: max_edge,
            }),
            Reason::CannotFit { limit } => Some(Self::CannotFit { limit: HumanSize::of_bytes(limit) }),
            Reason::NotConvertible => Some(Self::NotConvertible),
            Reason::Damaged => Some(Self::Damaged),
        }
    }

    /// Returns one line of text that states the reason.
    pub(crate) fn text(&self, texts: &Texts) -> String {
        match *self {
            Self::TooLarge { encoded, limit } => texts.fill(
                TextKey::LeftOutTooLarge,
                &[("encoded", &encoded.to_string()), ("limit", &limit.to_string())],
            ),
            Self::TooManyPixels { width, height, limit, edge } => texts.fill(
                TextKey::LeftOutPixels,
                &[
                    ("width", &width.to_string()),
                    ("height", &height.to_string()),
                    ("limit", &limit.to_string()),
                    ("edge", &edge.to_string()),
                ],
            ),
            Self::CannotFit { limit } => {
                texts.fill(TextKey::LeftOutCannotFit, &[("limit", &limit.to_string())])
            }
            Self::NotConvertible => texts.get(TextKey::LeftOutFormat).to_owned(),
            Self::Damaged => texts.get(TextKey::LeftOutDamaged).to_owned(),
        }
    }

    /// Parses a line that [`LeftOut::text`] wrote with the same `texts`.
    pub(crate) fn parse(line: &str, texts: &Texts) -> Option<Self> {
        let values = |key| values_of(line, texts.template(key));
        let too_large = || {
            let values = values(TextKey::LeftOutTooLarge)?;
            let size = |name| HumanSize::parse(values.get(name)?);
            Some(Self::TooLarge { encoded: size("encoded")?, limit: size("limit")? })
        };
        let pixels = || {
            let values = values(TextKey::LeftOutPixels)?;
            let number = |name| values.get(name)?.parse().ok();
            let limit = HumanSize::parse(values.get("limit")?)?;
            let (width, height, edge) = (number("width")?, number("height")?, number("edge")?);
            Some(Self::TooManyPixels { width, height, limit, edge })
        };
        let cannot_fit = || {
            let values = values(TextKey::LeftOutCannotFit)?;
            Some(Self::CannotFit { limit: HumanSize::parse(values.get("limit")?)? })
        };
        let plain = |key, value| (line == texts.get(key)).then_some(value);
        let read = too_large().or_else(pixels).or_else(cannot_fit);
        let read = read.or_else(|| plain(TextKey::LeftOutFormat, Self::NotConvertible));
        let read = read.or_else(|| plain(TextKey::LeftOutDamaged, Self::Damaged));
        // Rejects a line with a number that `text` would never write in this way, such as a number with leading zeros.
        read.filter(|left_out| left_out.text(texts) == line)
    }
}
