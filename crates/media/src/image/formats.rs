//! Determines the format of a picture.

use image::ImageFormat;

/// Determines the format of a picture from its first bytes. If these are unknown, determines it from the declared type.
/// Returns `None` if this crate cannot read the format.
pub(super) fn format_of(bytes: &[u8], mime_type: &str) -> Option<ImageFormat> {
    let called = || match mime_type {
        // A cursor file has the layout of an icon file, with another number in its header. The first bytes do not
        // identify a cursor, because a TGA file may begin with the same bytes. So only the declared type identifies a
        // cursor.
        "image/x-win-bitmap" | "image/x-cursor" => Some(ImageFormat::Ico),
        _ => ImageFormat::from_mime_type(mime_type),
    };
    image::guess_format(bytes).ok().or_else(called).filter(ImageFormat::reading_enabled)
}

/// If some servers accept the format, returns its MIME type. Otherwise returns `None`. Most servers refuse GIF, so
/// `Source::is_taken_by_servers` leaves it out.
pub(super) fn taken_by_servers(format: ImageFormat) -> Option<&'static str> {
    match format {
        ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::WebP | ImageFormat::Gif => {
            Some(format.to_mime_type())
        }
        _ => None,
    }
}

/// Types of pictures that are never converted, because this crate has no decoder for them.
const NEVER: &[&str] = &[
    "image/avif",
    "image/avif-sequence",
    "image/heic",
    "image/heic-sequence",
    "image/heif",
    "image/heif-sequence",
    "image/jxl",
    "image/jp2",
    "image/jpx",
    "image/jpm",
    "image/jxr",
    "image/vnd.ms-photo",
    "image/vnd.adobe.photoshop",
    "image/vnd.dwg",
    "image/x-canon-cr2",
    "image/icns",
    "image/x-icns",
    "image/x-exr",
    "image/aces",
    "image/vnd-ms.dds",
    "image/vnd.ms-dds",
    "image/x-dds",
    "image/x-pcx",
    "image/vnd.zbrush.pcx",
    "image/wmf",
    "image/emf",
];

/// Returns whether this crate cannot convert pictures of this type, whatever their bytes are.
pub fn is_never_converted(mime_type: &str) -> bool {
    NEVER.contains(&mime_type)
}
