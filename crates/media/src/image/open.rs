//! Reads pictures: first only the header, then the pixels, both within limits.

use std::io::{self, Cursor};

use image::codecs::webp::WebPDecoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, ImageResult, Limits};

use super::formats::{format_of, taken_by_servers};
use super::strip::is_cut_short;
use super::{ImageError, Size};

/// Memory limit for the pixels of one picture, in bytes. 64 million pixels with transparency need this much memory.
pub const MAX_DECODED_BYTES: u64 = 256 * 1024 * 1024;

/// Longest side that is decoded, in pixels. A JPEG header cannot contain a larger number.
pub const MAX_DECODED_EDGE: u32 = 65_535;

/// Maximum size of a colour profile that is copied into a new file, in bytes. Profiles of screens and cameras have a
/// few thousand bytes. Profiles of printing presses have about a million bytes. They are not copied, because these
/// bytes are better used for pixels.
const MAX_PROFILE_BYTES: usize = 64 * 1024;

/// The facts from the header of a picture.
pub(super) struct Source {
    pub(super) format: ImageFormat,
    /// The size as stored, before the picture is turned upright.
    pub(super) size: Size,
    pub(super) has_metadata: bool,
    orientation: Orientation,
    frames: Frames,
}

enum Frames {
    One,
    Several,
}

/// Decoded pixels: upright, eight bits per channel, with an alpha channel only if some pixel is transparent.
pub(super) struct Picture {
    pub(super) pixels: DynamicImage,
    /// The colour profile that is needed to show the pixels in the right colours.
    pub(super) profile: Option<Vec<u8>>,
}

impl Source {
    pub(super) fn read_header(bytes: &[u8], mime_type: &str) -> Result<Self, ImageError> {
        let format = format_of(bytes, mime_type)
            .ok_or_else(|| ImageError::Unsupported { mime_type: mime_type.to_owned() })?;
        let mut decoder =
            open(bytes, format).map_err(|error| wrong(error, format, size_of(bytes, format)))?;
        let (width, height) = decoder.dimensions();
        let size = Size { width, height };
        if decoder.total_bytes() > MAX_DECODED_BYTES || size.longer_side() > MAX_DECODED_EDGE {
            return Err(ImageError::TooManyPixels(size));
        }
        // Metadata that cannot be read counts as missing.
        let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
        let has_metadata = matches!(decoder.exif_metadata(), Ok(Some(_)))
            || matches!(decoder.xmp_metadata(), Ok(Some(_)))
            || matches!(decoder.iptc_metadata(), Ok(Some(_)));
        Ok(Self { format, size, has_metadata, orientation, frames: frames(bytes, format) })
    }

    /// Returns whether servers accept the file. A GIF does not count as accepted, because some servers refuse GIF. An
    /// animated WebP does not count as accepted either.
    pub(super) fn is_taken_by_servers(&self) -> bool {
        match (self.format, &self.frames) {
            (ImageFormat::Png | ImageFormat::Jpeg, _) | (ImageFormat::WebP, Frames::One) => true,
            (_, Frames::One | Frames::Several) => false,
        }
    }

    pub(super) fn is_turned(&self) -> bool {
        self.orientation != Orientation::NoTransforms
    }

    pub(super) fn has_more_frames(&self) -> bool {
        matches!(self.frames, Frames::Several)
    }

    pub(super) fn mime_type(&self) -> &'static str {
        self.format.to_mime_type()
    }

    /// Returns whether the pixels count as already compressed with loss. PNG then has no advantage over JPEG.
    pub(super) fn is_lossy(&self, picture: &Picture) -> bool {
        match self.format {
            ImageFormat::Jpeg => true,
            ImageFormat::WebP => !picture.pixels.color().has_alpha(),
            _ => false,
        }
    }

    /// Checks that the picture, or its first frame, can be decoded.
    pub(super) fn check(&self, bytes: &[u8]) -> Result<(), ImageError> {
        self.check_end(bytes)?;
        let decoder = open(bytes, self.format).map_err(|error| self.wrong(error))?;
        // `read_header` has checked that this length is within the limit.
        let length =
            usize::try_from(decoder.total_bytes()).map_err(|_| ImageError::TooManyPixels(self.size))?;
        decoder.read_image(&mut vec![0; length]).map_err(|error| self.wrong(error))
    }

    /// Fails if a JPEG file is cut short. The decoder would invent the missing pixels, as browsers do. A model could
    /// not distinguish invented pixels from real pixels, and servers may refuse the file.
    fn check_end(&self, bytes: &[u8]) -> Result<(), ImageError> {
        if self.format == ImageFormat::Jpeg && is_cut_short(bytes) {
            return Err(ImageError::Damaged(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
        }
        Ok(())
    }

    fn wrong(&self, error: image::ImageError) -> ImageError {
        wrong(error, self.format, Some(self.size))
    }

    /// Decodes the picture, or its first frame.
    pub(super) fn decode(&self, bytes: &[u8]) -> Result<Picture, ImageError> {
        self.check_end(bytes)?;
        let mut decoder = open(bytes, self.format).map_err(|error| self.wrong(error))?;
        // A profile that cannot be read counts as missing.
        let profile = decoder.icc_profile().unwrap_or_default();
        let mut pixels = DynamicImage::from_decoder(decoder).map_err(|error| self.wrong(error))?;
        if self.format == ImageFormat::Hdr {
            brighten(&mut pixels);
        }
        pixels.apply_orientation(self.orientation);
        let pixels = eight_bits(pixels);
        let colour_space: &[u8] = if pixels.color().has_color() { b"RGB " } else { b"GRAY" };
        // Drop a profile for other channels than those of the pixels. The decoders convert CMYK to RGB, so a CMYK
        // profile no longer matches.
        let profile = profile.filter(|profile| {
            profile.len() <= MAX_PROFILE_BYTES
                && profile.get(16..20).is_some_and(|space| space == colour_space)
        });
        Ok(Picture { pixels, profile })
    }
}

fn open(bytes: &[u8], format: ImageFormat) -> ImageResult<impl ImageDecoder + '_> {
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(MAX_DECODED_EDGE);
    limits.max_image_height = Some(MAX_DECODED_EDGE);
    limits.max_alloc = Some(MAX_DECODED_BYTES);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(limits);
    reader.into_decoder()
}

/// Reads width and height from the header, even if they are beyond the limits.
fn size_of(bytes: &[u8], format: ImageFormat) -> Option<Size> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.no_limits();
    let (width, height) = reader.into_dimensions().ok()?;
    Some(Size { width, height })
}

/// Converts linear amounts of light to the values that a screen expects. Unconverted, the picture would be too dark.
fn brighten(pixels: &mut DynamicImage) {
    if let DynamicImage::ImageRgb32F(pixels) = pixels {
        pixels.iter_mut().for_each(|channel| *channel = channel.clamp(0.0, 1.0).powf(1.0 / 2.2));
    }
}

/// Classifies an error of a decoder: the format or variant is unsupported, the picture is too large, or the file is
/// damaged.
fn wrong(error: image::ImageError, format: ImageFormat, size: Option<Size>) -> ImageError {
    match (error, size) {
        (image::ImageError::Unsupported(_), _) => match taken_by_servers(format) {
            Some(mime_type) => ImageError::UnknownVariant { mime_type },
            None => ImageError::Unsupported { mime_type: format.to_mime_type().to_owned() },
        },
        (image::ImageError::Limits(_), Some(size)) => ImageError::TooManyPixels(size),
        (error @ image::ImageError::Limits(_), None) => ImageError::TooMuchMemory(error),
        (error, _) => ImageError::Damaged(error),
    }
}

fn frames(bytes: &[u8], format: ImageFormat) -> Frames {
    let has_several = match format {
        ImageFormat::Gif => gif_has_several_frames(bytes),
        ImageFormat::WebP => {
            WebPDecoder::new(Cursor::new(bytes)).is_ok_and(|decoder| decoder.has_animation())
        }
        _ => false,
    };
    if has_several { Frames::Several } else { Frames::One }
}

/// Returns whether a GIF file has a second frame, without decoding the first frame.
fn gif_has_several_frames(bytes: &[u8]) -> bool {
    let mut options = gif::DecodeOptions::new();
    options.skip_frame_decoding(true);
    let Ok(mut decoder) = options.read_info(Cursor::new(bytes)) else {
        return false;
    };
    let mut has_next = || matches!(decoder.next_frame_info(), Ok(Some(_)));
    has_next() && has_next()
}

fn eight_bits(pixels: DynamicImage) -> DynamicImage {
    let colour = pixels.color();
    if colour.has_alpha() {
        let pixels = pixels.into_rgba8();
        let is_opaque = pixels.pixels().all(|pixel| pixel.0[3] == u8::MAX);
        let pixels = DynamicImage::ImageRgba8(pixels);
        return match (is_opaque, colour.has_color()) {
            (true, true) => DynamicImage::ImageRgb8(pixels.into_rgb8()),
            (true, false) => DynamicImage::ImageLuma8(pixels.into_luma8()),
            (false, _) => pixels,
        };
    }
    if colour.has_color() {
        return DynamicImage::ImageRgb8(pixels.into_rgb8());
    }
    DynamicImage::ImageLuma8(pixels.into_luma8())
}
