//! Scales and encodes a picture until it fits.

use std::borrow::Cow;

use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::{CompressionType, FilterType as PngFilter, PngEncoder};
use image::{DynamicImage, ImageEncoder, RgbImage, Rgba};

use super::open::Picture;
use super::{ImageBounds, ImageError, Size};

/// The formats to try, until the encoded picture fits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Coding {
    /// PNG, and then JPEG if the PNG has too many bytes.
    LosslessIfSmall,
    /// JPEG only.
    Lossy,
}

pub(super) struct Encoded {
    pub(super) bytes: Vec<u8>,
    pub(super) mime_type: &'static str,
    pub(super) size: Size,
}

/// JPEG qualities to try at each scale. If even the last quality gives too many bytes, polity reduces the scale and not
/// the quality: text is easier to read in a smaller picture than in a picture of lower quality.
const QUALITIES: [u8; 3] = [88, 75, 60];

/// Factor by which polity multiplies each side of the picture, if the file is too large even in the last quality. This
/// halves the number of pixels.
const SHRINK: f64 = 0.7;

/// Number of scales to try. The last scale shrinks a side of 2,000 pixels to 28.
const SCALES: u32 = 13;

/// Encodes the picture within the bounds, in the best quality that they allow.
pub(super) fn encode_within(
    picture: &Picture,
    coding: Coding,
    bounds: &ImageBounds,
) -> Result<Encoded, ImageError> {
    let fits = |bytes: &Vec<u8>| u64::try_from(bytes.len()).is_ok_and(|length| length <= bounds.max_bytes);
    let scaled = within_edge(&picture.pixels, bounds.max_edge.max(1))?;
    if let Coding::LosslessIfSmall = coding {
        let bytes = png(&scaled, picture.profile.as_deref())?;
        if fits(&bytes) {
            return Ok(Encoded { bytes, mime_type: "image/png", size: size_of(&scaled) });
        }
    }
    let mut scaled = on_white(scaled);
    for _ in 0..SCALES {
        for quality in QUALITIES {
            let bytes = jpeg(&scaled, quality, picture.profile.as_deref())?;
            if fits(&bytes) {
                return Ok(Encoded { bytes, mime_type: "image/jpeg", size: size_of(&scaled) });
            }
        }
        // Scale the last result and not the original, which may have a thousand times as many pixels.
        let edge = shortened(size_of(&scaled).longer_side(), SHRINK);
        scaled = Cow::Owned(within_edge(&scaled, edge)?.into_owned());
    }
    Err(ImageError::CannotFit { max_bytes: bounds.max_bytes })
}

fn size_of(pixels: &DynamicImage) -> Size {
    Size { width: pixels.width(), height: pixels.height() }
}

/// Scales the picture in proportion, so that its longer side is at most `edge`.
fn within_edge(pixels: &DynamicImage, edge: u32) -> Result<Cow<'_, DynamicImage>, ImageError> {
    let Size { width, height } = size_of(pixels);
    let longer = width.max(height);
    if longer <= edge {
        return Ok(Cow::Borrowed(pixels));
    }
    let factor = f64::from(edge) / f64::from(longer);
    let mut scaled = DynamicImage::new(shortened(width, factor), shortened(height, factor), pixels.color());
    let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3));
    Resizer::new().resize(pixels, &mut scaled, &options).map_err(ImageError::Scale)?;
    Ok(Cow::Owned(scaled))
}

/// Returns a length multiplied by a factor, but at least 1. The factor must be between 0 and 1, so that the product
/// fits `u32`.
fn shortened(length: u32, factor: f64) -> u32 {
    ((f64::from(length) * factor).round() as u32).max(1)
}

/// Replaces transparency by white, because JPEG has no transparency. Pages and chats show pictures on white.
fn on_white(picture: Cow<'_, DynamicImage>) -> Cow<'_, DynamicImage> {
    let Some(pixels) = picture.as_rgba8() else {
        return picture;
    };
    let mut flat = RgbImage::new(pixels.width(), pixels.height());
    for (Rgba([red, green, blue, alpha]), to) in pixels.pixels().zip(flat.pixels_mut()) {
        to.0 = [red, green, blue].map(|channel| over_white(*channel, *alpha));
    }
    Cow::Owned(DynamicImage::ImageRgb8(flat))
}

fn over_white(channel: u8, alpha: u8) -> u8 {
    let (channel, alpha) = (u16::from(channel), u16::from(alpha));
    let mixed = (channel * alpha + 255 * (255 - alpha) + 127) / 255;
    u8::try_from(mixed).unwrap_or(u8::MAX)
}

fn png(pixels: &DynamicImage, profile: Option<&[u8]>) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    let encoder = PngEncoder::new_with_quality(&mut bytes, CompressionType::Default, PngFilter::Adaptive);
    write(pixels, encoder, profile)?;
    Ok(bytes)
}

fn jpeg(pixels: &DynamicImage, quality: u8, profile: Option<&[u8]>) -> Result<Vec<u8>, ImageError> {
    let mut bytes = Vec::new();
    write(pixels, JpegEncoder::new_with_quality(&mut bytes, quality), profile)?;
    Ok(bytes)
}

fn write(
    pixels: &DynamicImage,
    mut encoder: impl ImageEncoder,
    profile: Option<&[u8]>,
) -> Result<(), ImageError> {
    if let Some(profile) = profile {
        encoder
            .set_icc_profile(profile.to_vec())
            .map_err(|source| ImageError::Encode(image::ImageError::Unsupported(source)))?;
    }
    pixels.write_with_encoder(encoder).map_err(ImageError::Encode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_edge(size: (u32, u32), edge: u32, expect: (u32, u32)) {
        let picture = DynamicImage::new_luma8(size.0, size.1);
        let scaled = within_edge(&picture, edge).unwrap();
        assert_eq!((scaled.width(), scaled.height()), expect);
    }

    #[test]
    fn the_longer_side_decides_and_no_side_vanishes() {
        check_edge((100, 50), 100, (100, 50));
        check_edge((100, 50), 500, (100, 50));
        check_edge((100, 50), 40, (40, 20));
        check_edge((50, 100), 40, (20, 40));
        check_edge((1000, 1), 10, (10, 1));
        check_edge((3, 1000), 500, (2, 500));
    }

    #[test]
    fn what_is_transparent_becomes_white() {
        assert_eq!(over_white(0, 0), 255);
        assert_eq!(over_white(0, 255), 0);
        assert_eq!(over_white(200, 255), 200);
        assert_eq!(over_white(0, 128), 127);
    }
}
