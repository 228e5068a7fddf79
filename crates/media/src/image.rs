//! Pictures: within bounds they stay as they are if they can be decoded, else they are made to fit.

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

/// What a picture may measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ImageBounds {
    /// The greatest size of the file, in bytes before base64.
    pub max_bytes: u64,
    /// The greatest length of the longer side, in pixels; 0 counts as 1.
    pub max_edge: u32,
    /// What happens to what a file says besides its pixels.
    pub metadata: Metadata,
}

impl Default for ImageBounds {
    fn default() -> Self {
        Self {
            // The strictest limit that a server states is 5 MB, and it is counted on the base64: three quarters of that.
            max_bytes: 3_750_000,
            // Models scale down by themselves to between 1,500 and 2,048 pixels, so that more is sent for nothing; and
            // requests with many pictures are refused by some servers if one of them is beyond 2,000.
            max_edge: 2_000,
            metadata: Metadata::Keep,
        }
    }
}

/// What happens to EXIF, GPS, XMP, comments and the like in a picture that needs no other change.
///
/// A picture that is encoded anew loses them in any case. A colour profile is part of how a picture looks, and stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Metadata {
    /// They stay.
    Keep,
    /// They are taken out, without touching the pixels where that is possible.
    Strip,
}

/// A picture that is within its bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fitted {
    /// The bytes that came in.
    AsItIs(Bytes),
    /// Something had to be changed.
    Changed {
        /// The whole file.
        bytes: Bytes,
        /// What the file is now.
        mime_type: &'static str,
        /// What was done, in order; never empty.
        what: Vec<Change>,
    },
}

/// One thing that was done to a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It had several frames; only the first is there.
    FirstFrameOnly,
    /// It was turned or mirrored as its metadata asked for.
    Oriented,
    /// It has fewer pixels.
    Scaled {
        /// Before, upright.
        from: Size,
        /// After.
        to: Size,
    },
    /// Its pixels were encoded anew, in another format or with more loss.
    Reencoded {
        /// The MIME type before.
        from: &'static str,
    },
    /// What it said besides its pixels is gone.
    MetadataRemoved,
    /// Its bytes are as they were, but they are of another type than was declared, and the declared one would be refused.
    TypeCorrected,
}

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
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
    /// It is no picture, or of a format that is not read here, whole or broken. Servers do not take it either.
    #[error("no picture format that can be read ({mime_type})")]
    Unsupported {
        /// What it was said to be.
        mime_type: String,
    },
    /// It is of a format that servers take, in a variant that is not read here: others may know more.
    #[error("a variant of {mime_type} that cannot be read here")]
    UnknownVariant {
        /// What it is.
        mime_type: &'static str,
    },
    /// It is damaged or ends too early: whoever it is sent to will not read it either.
    #[error("the picture is damaged")]
    Damaged(#[source] ::image::ImageError),
    /// It has more pixels than are decoded here.
    #[error("a picture of {} by {} pixels is too large to decode", .0.width, .0.height)]
    TooManyPixels(Size),
    /// Decoding it takes more memory than is given to it.
    #[error("the picture takes too much memory to decode")]
    TooMuchMemory(#[source] ::image::ImageError),
    /// It could not be scaled.
    #[error("failed to scale the picture")]
    Scale(#[source] fast_image_resize::ResizeError),
    /// It could not be written.
    #[error("failed to encode the picture")]
    Encode(#[source] ::image::ImageError),
    /// Not even a tiny version has so few bytes.
    #[error("the picture cannot be made to fit into {max_bytes} bytes")]
    CannotFit {
        /// What was asked for.
        max_bytes: u64,
    },
    /// A decoder panicked, which only a crafted file should bring about.
    #[error("the picture broke its decoder")]
    DecoderPanicked,
    /// The process is stopping.
    #[error("the picture was given up because the process is stopping")]
    Stopping,
}

/// Makes a picture fit: gives it back as it is, byte for byte, if it is within the bounds, of a format that servers take,
/// and not damaged.
///
/// To see that, it is decoded once, or its first frame is if it moves; what is wrong with a few pixels, and programs
/// commonly overlook, is overlooked. The declared type only counts where the content has no signature. Needs processor time (up to seconds) and memory (up
/// to a gigabyte for the largest pictures that are decoded at all), so it has no place on an async thread.
///
/// # Errors
///
/// If the bytes are no picture that can be read, are damaged, or decode into too much.
pub fn fit_image(bytes: Bytes, mime_type: &str, bounds: &ImageBounds) -> Result<Fitted, ImageError> {
    // The last line of defence: the decoders are written never to panic, but they read what strangers made. Nothing is
    // shared with the closure that could be left half changed.
    catch_unwind(AssertUnwindSafe(|| fit(bytes, mime_type, bounds)))
        .unwrap_or(Err(ImageError::DecoderPanicked))
}

/// How many pictures are worked on at once: each may need hundreds of megabytes.
const AT_ONCE: usize = 2;

static PLACES: Semaphore = Semaphore::const_new(AT_ONCE);

/// Does what [`fit_image`] does, on a thread for blocking work, a few pictures at a time.
///
/// # Errors
///
/// As [`fit_image`], and if the runtime is stopping.
pub async fn fit_image_in_background(
    bytes: Bytes,
    mime_type: String,
    bounds: ImageBounds,
) -> Result<Fitted, ImageError> {
    let place = PLACES.acquire().await.map_err(|_| ImageError::Stopping)?;
    let work = move || {
        // Held by the thread, since the work goes on even if nobody waits for it any more.
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

/// Gives nothing if the pixels have to be encoded anew.
fn fit_without_encoding(
    bytes: &Bytes,
    mime_type: &str,
    source: &Source,
    bounds: &ImageBounds,
) -> Option<Fitted> {
    let fits = |length: usize| u64::try_from(length).is_ok_and(|length| length <= bounds.max_bytes);
    let (bytes, stripped) = match bounds.metadata {
        Metadata::Keep => (bytes.clone(), None),
        // Few viewers on the servers' side look at the orientation, and without it the picture would lie on its side.
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
