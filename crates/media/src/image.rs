//! Makes pictures fit their bounds. A picture that already fits and can be decoded stays as it is.

mod formats;

mod open;

mod strip;

mod encode;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use tokio::sync::Semaphore;

pub use self::formats::is_never_converted;
pub use self::open::{MAX_DECODED_BYTES, MAX_DECODED_EDGE};

use self::encode::{Coding, encode_within};
use self::open::Source;
use self::strip::{Stripped, without_metadata};

/// The bounds of a picture, and what to do with its metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageBounds {
    /// Largest size of the file in bytes, before the file is encoded as base64.
    pub max_bytes: u64,
    /// Greatest length of the longer side, in pixels; 0 counts as 1.
    pub max_edge: u32,
    /// Whether metadata is kept or removed.
    pub metadata: Metadata,
}

impl Default for ImageBounds {
    fn default() -> Self {
        Self {
            // The strictest server accepts at most 5 MB of base64 text. A file has three quarters of the length of its
            // base64 text.
            max_bytes: 3_750_000,
            // Models scale pictures down to between 1,500 and 2,048 pixels, so more pixels would be wasted. Some
            // servers refuse requests with many pictures if one picture has a side longer than 2,000 pixels.
            max_edge: 2_000,
            metadata: Metadata::Keep,
        }
    }
}

/// What happens to the metadata of a picture (such as EXIF, GPS, XMP and comments), if nothing else has to be changed.
///
/// A picture that is encoded again loses its metadata in any case. A colour profile does not count as metadata, because
/// it affects how the picture looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metadata {
    /// Leave metadata in the file.
    Keep,
    /// Remove metadata. The pixels are encoded again only if that is necessary.
    Strip,
}

/// A picture that is within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitted {
    /// The bytes that came in, unchanged.
    AsItIs(Bytes),
    /// A new file, because the picture had to be changed.
    Changed {
        /// The whole new file.
        bytes: Bytes,
        /// The MIME type of the new file.
        mime_type: &'static str,
        /// The changes, in the order in which they were made; never empty.
        what: Vec<Change>,
    },
}

/// One change that was made to a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The picture had several frames; only the first was kept.
    FirstFrameOnly,
    /// The picture was rotated or mirrored as its metadata required.
    Oriented,
    /// The picture was scaled down.
    Scaled {
        /// The size of the upright picture before scaling.
        from: Size,
        /// The size of the upright picture after scaling.
        to: Size,
    },
    /// The pixels were encoded again, in another format or with more loss.
    Reencoded {
        /// The MIME type before the change.
        from: &'static str,
    },
    /// The metadata of the picture was removed.
    MetadataRemoved,
    /// Only the declared type was corrected, because servers refuse a wrong type. The bytes are unchanged.
    TypeCorrected,
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pixels in a row.
    pub width: u32,
    /// Number of rows.
    pub height: u32,
}

impl Size {
    fn longer_side(self) -> u32 {
        self.width.max(self.height)
    }
}

/// Why a picture could not be made to fit.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file is not a picture, is damaged, or has a format that this crate does not support. Servers do not accept
    /// such a file either.
    #[error("a file of type {mime_type} cannot be read as a picture")]
    Unsupported {
        /// The type of the recognised format. If no format was recognised, the declared type.
        mime_type: String,
    },
    /// Servers accept the format of the picture, but this crate cannot read this variant of the format. A server may
    /// be able to read the picture.
    #[error("this variant of {mime_type} cannot be read here")]
    UnknownVariant {
        /// The type of the recognised format.
        mime_type: &'static str,
    },
    /// The picture is damaged or ends too early, so no server would be able to read it either.
    #[error("the picture is damaged")]
    Damaged(#[source] ::image::ImageError),
    /// The size of the picture is beyond [`MAX_DECODED_BYTES`] or [`MAX_DECODED_EDGE`].
    #[error("a picture of {} by {} pixels is too large to decode", .0.width, .0.height)]
    TooManyPixels(Size),
    /// Decoding the picture takes more memory than is allowed.
    #[error("the picture takes too much memory to decode")]
    TooMuchMemory(#[source] ::image::ImageError),
    /// The pixels could not be scaled.
    #[error("failed to scale the picture")]
    Scale(#[source] fast_image_resize::ResizeError),
    /// The pixels could not be encoded as PNG or JPEG.
    #[error("failed to encode the picture")]
    Encode(#[source] ::image::ImageError),
    /// Even a tiny version of the picture has too many bytes.
    #[error("the picture cannot be made to fit into {max_bytes} bytes")]
    CannotFit {
        /// The limit from [`ImageBounds::max_bytes`].
        max_bytes: u64,
    },
    /// A decoder panicked. Only a crafted file should be able to make it panic.
    #[error("the picture made its decoder panic")]
    DecoderPanicked,
    /// The runtime is stopping, so the work was not done.
    #[error("the picture was not processed because the process is stopping")]
    Stopping,
}

/// Makes a picture fit its bounds. Does not change the pixels if the picture is within the bounds, in a format that
/// servers accept, and not damaged.
///
/// To find damage, this function decodes the picture once. Of an animation, it decodes only the first frame. Like most
/// programs, the function ignores small damage to the pixels. The content determines the format; the declared type
/// counts only if the content has no signature. Do not call the function on an async thread: it may take seconds of
/// processor time, and for the largest pictures a gigabyte of memory.
///
/// # Errors
///
/// Fails if the bytes are not a readable picture or are damaged, if they decode into too many pixels, or if the picture
/// cannot be made to fit.
pub fn fit_image(bytes: Bytes, mime_type: &str, bounds: &ImageBounds) -> Result<Fitted, ImageError> {
    // The decoders should never panic, but they read files from strangers, so panics are caught. A panic cannot leave
    // any state half changed, because the closure shares no state.
    catch_unwind(AssertUnwindSafe(|| fit(bytes, mime_type, bounds)))
        .unwrap_or(Err(ImageError::DecoderPanicked))
}

/// Maximum number of pictures that are processed at the same time. It is small because each picture may need hundreds
/// of megabytes.
const AT_ONCE: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// Runs [`fit_image`] on a thread for blocking work. Only a few pictures are processed at the same time.
///
/// # Errors
///
/// Fails for the same reasons as [`fit_image`], and also if the runtime is stopping.
pub async fn fit_image_in_background(
    bytes: Bytes,
    mime_type: String,
    bounds: ImageBounds,
) -> Result<Fitted, ImageError> {
    let place = PLACES.acquire().await.map_err(|_| ImageError::Stopping)?;
    let work = move || {
        // The work continues even if the caller stops waiting. So the thread keeps its permit until the work is done.
        let _place = place;
        fit_image(bytes, &mime_type, &bounds)
    };
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(ImageError::Stopping))
}

fn fit(bytes: Bytes, mime_type: &str, bounds: &ImageBounds) -> Result<Fitted, ImageError> {
    let source = Source::read_header(&bytes, mime_type)?;
    if source.is_taken_by_servers()
        && source.size.longer_side() <= bounds.max_edge.max(1)
        && let Some(fitted) = fit_without_encoding(&bytes, mime_type, &source, bounds)
    {
        source.check(&bytes)?;
        return Ok(fitted);
    }
    let picture = source.decode(&bytes)?;
    let coding = if source.is_lossy(&picture) { Coding::Lossy } else { Coding::LosslessIfSmall };
    let encoded = encode_within(&picture, coding, bounds)?;
    let from = Size { width: picture.pixels.width(), height: picture.pixels.height() };
    let facts = [
        (source.has_more_frames(), Change::FirstFrameOnly),
        (source.is_turned(), Change::Oriented),
        (from != encoded.size, Change::Scaled { from, to: encoded.size }),
        (true, Change::Reencoded { from: source.mime_type() }),
        (source.has_metadata, Change::MetadataRemoved),
    ];
    let what = facts.into_iter().filter_map(|(holds, change)| holds.then_some(change)).collect();
    Ok(Fitted::Changed { bytes: encoded.bytes.into(), mime_type: encoded.mime_type, what })
}

/// Makes a picture fit without a change to its pixels, or returns `None` if the pixels have to be encoded again.
fn fit_without_encoding(
    bytes: &Bytes,
    mime_type: &str,
    source: &Source,
    bounds: &ImageBounds,
) -> Option<Fitted> {
    let fits = |length: usize| u64::try_from(length).is_ok_and(|length| length <= bounds.max_bytes);
    let (bytes, stripped) = match bounds.metadata {
        Metadata::Keep => (bytes.clone(), None),
        // The orientation is part of the metadata. Without the orientation, the picture would be shown on its side. So
        // the pixels must be turned.
        Metadata::Strip if source.is_turned() => return None,
        Metadata::Strip => match without_metadata(bytes, source.format) {
            Stripped::NothingToRemove => (bytes.clone(), None),
            Stripped::Removed(rest) => (Bytes::from(rest), Some(Change::MetadataRemoved)),
            Stripped::NotPossible => return None,
        },
    };
    if !fits(bytes.len()) {
        return None;
    }
    let corrected = (source.mime_type() != mime_type).then_some(Change::TypeCorrected);
    let what: Vec<Change> = [stripped, corrected].into_iter().flatten().collect();
    if what.is_empty() {
        return Some(Fitted::AsItIs(bytes));
    }
    Some(Fitted::Changed { bytes, mime_type: source.mime_type(), what })
}

#[cfg(test)]
mod tests;
