use std::io::Cursor;

use ::image::codecs::gif::GifEncoder;
use ::image::{DynamicImage, Frame, GenericImageView as _, ImageFormat, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::*;

const BOUNDS: ImageBounds = ImageBounds { max_bytes: 100_000, max_edge: 200, metadata: Metadata::Keep };
const STRIP: ImageBounds = ImageBounds { metadata: Metadata::Strip, ..BOUNDS };

/// A picture that is red on the left and blue on the right, so that its orientation can be checked.
fn two_halves(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |x, _| {
        ::image::Rgb(if x < width / 2 { [255, 0, 0] } else { [0, 0, 255] })
    }))
}

/// A picture of random pixels, which does not compress.
fn noise(width: u32, height: u32) -> DynamicImage {
    let mut state = 1_u32;
    DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_be_bytes();
        ::image::Rgb([red, green, blue])
    }))
}

fn file(pixels: &DynamicImage, format: ImageFormat) -> Bytes {
    let mut bytes = Cursor::new(Vec::new());
    match format {
        // Add an alpha channel, because the library reads only icons with transparency.
        ImageFormat::Ico => DynamicImage::ImageRgba8(pixels.to_rgba8()).write_to(&mut bytes, format).unwrap(),
        _ => pixels.write_to(&mut bytes, format).unwrap(),
    }
    bytes.into_inner().into()
}

fn jpeg_segment(marker: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 2).unwrap();
    [&[0xFF, marker], length.to_be_bytes().as_slice(), content].concat()
}

fn exif(orientation: u8) -> Vec<u8> {
    let tiff = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
    [tiff.as_slice(), &[orientation, 0, 0, 0, 0, 0, 0, 0], b"SECRET"].concat()
}

fn jpeg_with(pixels: &DynamicImage, segments: &[Vec<u8>], trailer: &[u8]) -> Bytes {
    let plain = file(pixels, ImageFormat::Jpeg);
    [&plain[..2], &segments.concat(), &plain[2..], trailer].concat().into()
}

fn jpeg_with_orientation(pixels: &DynamicImage, orientation: u8) -> Bytes {
    let app1 = [b"Exif\0\0".as_slice(), &exif(orientation)].concat();
    jpeg_with(pixels, &[jpeg_segment(0xE1, &app1)], &[])
}

fn png_with(pixels: &DynamicImage, kind: &[u8; 4], content: &[u8]) -> Bytes {
    let plain = file(pixels, ImageFormat::Png);
    let (header, rest) = plain.split_at(33);
    [header, &chunk(kind, content), rest].concat().into()
}

fn chunk(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).unwrap().to_be_bytes();
    let checksum = crc32(&[kind.as_slice(), content].concat()).to_be_bytes();
    [&length, kind.as_slice(), content, &checksum].concat()
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0xEDB8_8320 * (sum & 1)))
    })
}

fn changed(
    bytes: &Bytes,
    mime_type: &str,
    bounds: &ImageBounds,
) -> (DynamicImage, Bytes, &'static str, Vec<Change>) {
    match fit_image(bytes.clone(), mime_type, bounds).unwrap() {
        Fitted::Changed { bytes, mime_type, what } => {
            (::image::load_from_memory(&bytes).unwrap(), bytes, mime_type, what)
        }
        Fitted::AsItIs(_) => panic!("nothing was changed"),
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn check_untouched(bytes: &Bytes, mime_type: &str, bounds: &ImageBounds) {
    assert_eq!(fit_image(bytes.clone(), mime_type, bounds).unwrap(), Fitted::AsItIs(bytes.clone()));
}

#[test]
fn within_bounds_it_stays_byte_for_byte() {
    let pixels = two_halves(200, 100);
    check_untouched(&file(&pixels, ImageFormat::Png), "image/png", &BOUNDS);
    check_untouched(&file(&pixels, ImageFormat::Jpeg), "image/jpeg", &BOUNDS);
    check_untouched(&file(&pixels, ImageFormat::WebP), "image/webp", &BOUNDS);
    check_untouched(&file(&pixels, ImageFormat::Png), "image/png", &STRIP);
    check_untouched(&file(&pixels, ImageFormat::Jpeg), "image/jpeg", &STRIP);
    check_untouched(&file(&pixels, ImageFormat::WebP), "image/webp", &STRIP);
    check_untouched(&jpeg_with_orientation(&pixels, 6), "image/jpeg", &BOUNDS);
    check_untouched(&png_with(&pixels, b"tEXt", b"a\0SECRET"), "image/png", &BOUNDS);
}

#[test]
fn a_wrong_type_is_corrected_and_nothing_else() {
    let bytes = file(&two_halves(20, 10), ImageFormat::Png);
    let expect =
        Fitted::Changed { bytes: bytes.clone(), mime_type: "image/png", what: vec![Change::TypeCorrected] };
    assert_eq!(fit_image(bytes, "image/jpg", &BOUNDS).unwrap(), expect);
}

#[test]
fn formats_that_servers_refuse_become_png_without_loss() {
    let pixels = two_halves(20, 10);
    for format in [
        ImageFormat::Bmp,
        ImageFormat::Tiff,
        ImageFormat::Ico,
        ImageFormat::Tga,
        ImageFormat::Pnm,
        ImageFormat::Qoi,
        ImageFormat::Gif,
    ] {
        let (after, _, mime_type, what) = changed(&file(&pixels, format), format.to_mime_type(), &BOUNDS);
        assert_eq!(after.to_rgb8(), pixels.to_rgb8(), "{format:?}");
        assert_eq!(mime_type, "image/png");
        assert_eq!(what, [Change::Reencoded { from: format.to_mime_type() }]);
    }
}

#[test]
fn a_cursor_is_read_like_an_icon() {
    let pixels = two_halves(20, 10);
    let mut cursor = file(&pixels, ImageFormat::Ico).to_vec();
    // A cursor has the type 2 in its header. In an icon, bytes 10 to 13 contain the numbers of colour planes and of
    // bits per pixel. In a cursor, these bytes contain the position of the point with which the cursor clicks.
    cursor[2] = 2;
    cursor[10..14].copy_from_slice(&[3, 0, 4, 0]);
    for mime_type in ["image/x-icon", "image/vnd.microsoft.icon", "image/x-win-bitmap"] {
        let (after, _, now, _) = changed(&cursor.clone().into(), mime_type, &BOUNDS);
        assert_eq!((after.to_rgb8(), now), (pixels.to_rgb8(), "image/png"), "{mime_type}");
    }
}

#[test]
fn a_picture_of_light_is_as_bright_as_on_a_screen() {
    // One grey pixel in shared-exponent form. Its light is a fifth of the full light. On a screen, this is a brightness
    // of about 124 of 255.
    let hdr = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\x66\x66\x66\x7f";
    let (after, _, mime_type, _) = changed(&Bytes::from_static(hdr), "image/vnd.radiance", &BOUNDS);
    assert_eq!(mime_type, "image/png");
    let [red, green, blue] = after.to_rgb8().get_pixel(0, 0).0;
    assert!(red == green && green == blue && (115..=135).contains(&red), "{red}");
}

#[test]
fn what_nothing_here_reads_is_said_to_be_unsupported() {
    let check = |bytes: &'static [u8], mime_type: &str| {
        assert!(is_never_converted(mime_type), "{mime_type}");
        let error = fit_image(Bytes::from_static(bytes), mime_type, &BOUNDS).unwrap_err();
        assert!(matches!(error, ImageError::Unsupported { .. }), "{mime_type}: {error:?}");
    };
    check(b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic");
    check(b"\0\0\0\x1cftypavif\0\0\0\0", "image/avif");
    check(b"\xff\x0a\0\0", "image/jxl");
    check(b"\0\0\0\x0cjP  \r\n\x87\n", "image/jp2");
    check(b"8BPS\0\x01", "image/vnd.adobe.photoshop");
    check(b"icns\0\0\0\x08", "image/x-icns");
    check(b"\x76\x2f\x31\x01\x02\0\0\0", "image/x-exr");
    check(b"\x0a\x05\x01\x08", "image/x-pcx");
    check(b"DDS \x7c\0\0\0", "image/vnd.ms-dds");
}

#[test]
fn a_picture_with_too_many_pixels_says_how_many() {
    let mut large = file(&two_halves(20, 10), ImageFormat::Png).to_vec();
    for (width, height) in [(12_000_u32, 12_000_u32), (70_000, 10)] {
        large[16..20].copy_from_slice(&width.to_be_bytes());
        large[20..24].copy_from_slice(&height.to_be_bytes());
        let checksum = crc32(&large[12..29]).to_be_bytes();
        large[29..33].copy_from_slice(&checksum);
        let error = fit_image(large.clone().into(), "image/png", &BOUNDS).unwrap_err();
        let ImageError::TooManyPixels(size) = error else { panic!("{error:?}") };
        assert_eq!(size, Size { width, height });
    }
}

#[test]
fn of_an_animation_the_first_frame_is_left() {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new(&mut bytes);
    for shade in [255, 0] {
        encoder
            .encode_frame(Frame::new(RgbaImage::from_pixel(4, 4, Rgba([shade, shade, shade, 255]))))
            .unwrap();
    }
    drop(encoder);
    let (after, _, _, what) = changed(&bytes.into(), "image/gif", &BOUNDS);
    assert_eq!(what, [Change::FirstFrameOnly, Change::Reencoded { from: "image/gif" }]);
    assert_eq!(after.get_pixel(0, 0), Rgba([255, 255, 255, 255]));
}

#[test]
fn too_many_pixels_are_scaled_in_proportion() {
    let (after, _, mime_type, what) =
        changed(&file(&two_halves(400, 100), ImageFormat::Png), "image/png", &BOUNDS);
    assert_eq!(after.dimensions(), (200, 50));
    assert_eq!(mime_type, "image/png");
    let (from, to) = (Size { width: 400, height: 100 }, Size { width: 200, height: 50 });
    assert_eq!(what, [Change::Scaled { from, to }, Change::Reencoded { from: "image/png" }]);
}

#[test]
fn what_does_not_compress_becomes_jpeg_and_then_smaller() {
    let bytes = file(&noise(200, 200), ImageFormat::Png);
    let (after, small, mime_type, what) =
        changed(&bytes, "image/png", &ImageBounds { max_bytes: 60_000, ..BOUNDS });
    assert_eq!((after.dimensions(), mime_type), ((200, 200), "image/jpeg"));
    assert!(small.len() <= 60_000);
    assert_eq!(what, [Change::Reencoded { from: "image/png" }]);

    let (after, small, ..) = changed(&bytes, "image/png", &ImageBounds { max_bytes: 3_000, ..BOUNDS });
    assert!(small.len() <= 3_000 && after.width() < 200);
    let nothing = ImageBounds { max_bytes: 10, ..BOUNDS };
    assert!(matches!(fit_image(bytes, "image/png", &nothing), Err(ImageError::CannotFit { max_bytes: 10 })));
}

#[test]
fn what_is_transparent_stays_so_in_png_and_is_white_in_jpeg() {
    let clear = DynamicImage::ImageRgba8(RgbaImage::from_pixel(8, 8, Rgba([0, 0, 0, 0])));
    let (after, ..) = changed(&file(&clear, ImageFormat::Tiff), "image/tiff", &BOUNDS);
    assert_eq!(after.get_pixel(3, 3).0[3], 0);

    let mut pixels = noise(100, 100).to_rgba8();
    pixels.enumerate_pixels_mut().filter(|(x, ..)| *x < 50).for_each(|(_, _, pixel)| pixel.0 = [0, 0, 0, 0]);
    let bytes = file(&DynamicImage::ImageRgba8(pixels), ImageFormat::Png);
    let (after, _, mime_type, _) = changed(&bytes, "image/png", &ImageBounds { max_bytes: 14_000, ..BOUNDS });
    assert_eq!(mime_type, "image/jpeg");
    assert!(after.get_pixel(after.width() / 5, after.height() / 2).0.iter().all(|channel| *channel > 240));
}

#[test]
fn what_is_encoded_anew_stands_upright_and_says_nothing() {
    // Orientation 6 in the metadata demands a quarter turn to the right. In the upright picture, the left half is at
    // the top.
    let bytes = jpeg_with_orientation(&two_halves(400, 200), 6);
    for (bounds, size) in [(BOUNDS, (100, 200)), (ImageBounds { max_edge: 400, ..STRIP }, (200, 400))] {
        let (after, written, mime_type, what) = changed(&bytes, "image/jpeg", &bounds);
        assert_eq!((after.dimensions(), mime_type), (size, "image/jpeg"));
        let [top, bottom] = [0, size.1 - 1].map(|y| after.get_pixel(size.0 / 2, y).0);
        assert!(top[0] > 200 && top[2] < 50, "{top:?}");
        assert!(bottom[2] > 200 && bottom[0] < 50, "{bottom:?}");
        assert!(what.contains(&Change::Oriented) && what.contains(&Change::MetadataRemoved));
        assert!(!contains(&written, b"SECRET") && !contains(&written, b"Exif"));
    }
}

#[test]
fn metadata_is_taken_out_without_touching_the_pixels() {
    let pixels = two_halves(64, 32);
    let check = |bytes: Bytes, mime_type: &'static str| {
        let (after, stripped, now, what) = changed(&bytes, mime_type, &STRIP);
        assert_eq!((now, what), (mime_type, vec![Change::MetadataRemoved]));
        assert!(contains(&bytes, b"SECRET") && !contains(&stripped, b"SECRET"));
        assert_eq!(after, ::image::load_from_memory(&bytes).unwrap());
        check_untouched(&stripped, mime_type, &STRIP);
    };
    check(jpeg_with_orientation(&pixels, 1), "image/jpeg");
    check(jpeg_with(&pixels, &[jpeg_segment(0xFE, b"SECRET")], b""), "image/jpeg");
    check(jpeg_with(&pixels, &[jpeg_segment(0xED, b"Photoshop 3.0\0SECRET")], b""), "image/jpeg");
    check(jpeg_with(&pixels, &[jpeg_segment(0xE2, b"MPF\0SECRET")], b"\xFF\xD8SECRET"), "image/jpeg");
    check(png_with(&pixels, b"tEXt", b"Author\0SECRET"), "image/png");
    check(png_with(&pixels, b"eXIf", &exif(1)), "image/png");
    check(png_with(&pixels, b"prIv", b"SECRET"), "image/png");

    let plain = file(&pixels, ImageFormat::WebP);
    let vp8x = [b"VP8X\x0A\0\0\0\x0C\0\0\0".as_slice(), &[63, 0, 0, 31, 0, 0]].concat();
    let metadata = b"EXIF\x08\0\0\0SECRET!!XMP \x06\0\0\0SECRET";
    let chunks = [b"WEBP".as_slice(), &vp8x, &plain[12..], metadata].concat();
    let size = u32::try_from(chunks.len()).unwrap().to_le_bytes();
    check([b"RIFF".as_slice(), &size, &chunks].concat().into(), "image/webp");
}

#[test]
fn a_colour_profile_stays_if_it_fits_the_pixels() {
    let profile = |space: &[u8]| [&[0; 16], space, &[7; 40]].concat();
    let segment =
        |space| jpeg_segment(0xE2, &[b"ICC_PROFILE\0\x01\x01".as_slice(), &profile(space)].concat());
    let pixels = two_halves(400, 100);
    let (_, stripped, ..) = changed(
        &jpeg_with(&pixels, &[segment(b"RGB "), jpeg_segment(0xFE, b"SECRET")], b""),
        "image/jpeg",
        &ImageBounds { max_edge: 400, ..STRIP },
    );
    assert!(contains(&stripped, &profile(b"RGB ")));
    let (_, scaled, ..) = changed(&jpeg_with(&pixels, &[segment(b"RGB ")], b""), "image/jpeg", &BOUNDS);
    assert!(contains(&scaled, &profile(b"RGB ")));
    let (_, scaled, ..) = changed(&jpeg_with(&pixels, &[segment(b"CMYK")], b""), "image/jpeg", &BOUNDS);
    assert!(!contains(&scaled, &profile(b"CMYK")));
}

#[test]
fn a_bomb_is_an_error() {
    let plain = file(&two_halves(20, 10), ImageFormat::Png);
    let mut bomb = plain.to_vec();
    bomb[16..24].copy_from_slice(&[0, 0, 0xF0, 0, 0, 0, 0xF0, 0]);
    let checksum = crc32(&bomb[12..29]).to_be_bytes();
    bomb[29..33].copy_from_slice(&checksum);
    let error = fit_image(bomb.into(), "image/png", &BOUNDS).unwrap_err();
    assert!(matches!(error, ImageError::TooManyPixels(_) | ImageError::Damaged(_)), "{error:?}");

    let gif = b"GIF89a\xFF\xFF\xFF\xFF\0\0\0,\0\0\0\0\xFF\xFF\xFF\xFF\0\x02\x02D\x01\0;";
    let error = fit_image(Bytes::from_static(gif), "image/gif", &BOUNDS).unwrap_err();
    assert!(matches!(error, ImageError::TooManyPixels(_) | ImageError::Damaged(_)), "{error:?}");
}

#[test]
fn what_is_no_picture_is_told_apart_from_what_is_damaged() {
    let check = |bytes: &'static [u8], mime_type: &str| {
        fit_image(Bytes::from_static(bytes), mime_type, &BOUNDS).unwrap_err()
    };
    assert!(matches!(check(b"hello", "text/plain"), ImageError::Unsupported { .. }));
    assert!(matches!(check(b"\0\0\0\x1cftypavif\0\0\0\0", "image/avif"), ImageError::Unsupported { .. }));
    assert!(matches!(check(b"hello", "image/png"), ImageError::Damaged(_)));
    assert!(matches!(check(b"", "image/jpeg"), ImageError::Damaged(_)));
}

/// Checks that a file is reported as damaged if at least `missing` bytes are cut off its end.
fn check_cut_short(bytes: &Bytes, mime_type: &str, missing: usize) {
    check_untouched(bytes, mime_type, &BOUNDS);
    for bounds in [BOUNDS, STRIP, ImageBounds { max_edge: 8, ..BOUNDS }] {
        for length in 0..=bytes.len() - missing {
            let outcome = fit_image(bytes.slice(..length), mime_type, &bounds);
            assert!(
                matches!(outcome, Err(ImageError::Damaged(_))),
                "{length} of {}: {outcome:?}",
                bytes.len()
            );
        }
    }
}

#[test]
fn a_picture_that_is_cut_short_anywhere_is_damaged() {
    let pixels = noise(20, 10);
    check_cut_short(&file(&pixels, ImageFormat::Jpeg), "image/jpeg", 1);
    let with_thumbnail =
        jpeg_segment(0xE1, &[b"Exif\0\0".as_slice(), &file(&noise(4, 4), ImageFormat::Jpeg)].concat());
    check_cut_short(&jpeg_with(&pixels, &[with_thumbnail], b""), "image/jpeg", 1);
    check_cut_short(&file(&pixels, ImageFormat::WebP), "image/webp", 1);
    // The last four bytes are the checksum of an empty chunk. A decoder can read the picture without these four bytes,
    // so the test removes at least five bytes.
    check_cut_short(&file(&pixels, ImageFormat::Png), "image/png", 5);
}

#[test]
fn a_gif_that_is_cut_short_is_damaged() {
    let bytes = file(&noise(20, 10), ImageFormat::Gif);
    // The last three bytes contain no pixels: they only mark the end of the compressed pixels, of their blocks, and of
    // the file. A decoder can read the picture without them, so the test always removes at least four bytes.
    for length in 0..=bytes.len() - 4 {
        let outcome = fit_image(bytes.slice(..length), "image/gif", &BOUNDS);
        assert!(matches!(outcome, Err(ImageError::Damaged(_))), "{length} of {}: {outcome:?}", bytes.len());
    }
}

#[test]
fn pixels_that_do_not_decode_are_damage() {
    let mut png = file(&noise(20, 10), ImageFormat::Png).to_vec();
    let middle = png.len() / 2;
    png[middle] ^= 0xFF;
    let outcome = fit_image(png.into(), "image/png", &BOUNDS);
    assert!(matches!(outcome, Err(ImageError::Damaged(_))), "{outcome:?}");
}

#[test]
fn what_programs_overlook_is_overlooked() {
    let pixels = noise(20, 10);
    let jpeg = file(&pixels, ImageFormat::Jpeg);
    check_untouched(
        &[&jpeg, b"what phones put behind a picture".as_slice()].concat().into(),
        "image/jpeg",
        &BOUNDS,
    );
    let mut flipped = jpeg.to_vec();
    let inside = flipped.len() - 40;
    flipped[inside] ^= 0x10;
    check_untouched(&flipped.into(), "image/jpeg", &BOUNDS);

    let mut comment = png_with(&pixels, b"tEXt", b"a\0b").to_vec();
    comment[33 + 8] = b'c';
    check_untouched(&comment.into(), "image/png", &BOUNDS);
}

/// An animated PNG with two frames.
fn moving_png() -> Bytes {
    let plain = file(&two_halves(8, 8), ImageFormat::Png);
    let (header, rest) = plain.split_at(33);
    let end = rest.len() - 12;
    let control = |number: u32| {
        chunk(
            b"fcTL",
            &[&number.to_be_bytes(), [0, 0, 0, 8, 0, 0, 0, 8].as_slice(), &[0; 8], &[0, 1, 0, 1, 0, 0]]
                .concat(),
        )
    };
    let pixels = rest.get(8..end - 4).unwrap();
    [
        header,
        &chunk(b"acTL", &[0, 0, 0, 2, 0, 0, 0, 0]),
        &control(0),
        &rest[..end],
        &control(1),
        &chunk(b"fdAT", &[2_u32.to_be_bytes().as_slice(), pixels].concat()),
        &rest[end..],
    ]
    .concat()
    .into()
}

#[test]
fn a_png_that_moves_stays_byte_for_byte() {
    let bytes = moving_png();
    let decoder = ::image::codecs::png::PngDecoder::new(Cursor::new(&bytes)).unwrap();
    assert!(decoder.is_apng().unwrap());
    check_untouched(&bytes, "image/png", &BOUNDS);
    check_untouched(&bytes, "image/png", &STRIP);
    let outcome = fit_image(bytes.slice(..80), "image/png", &BOUNDS);
    assert!(matches!(outcome, Err(ImageError::Damaged(_))), "{outcome:?}");
}

#[test]
fn a_bomb_that_measures_little_is_bounded_by_its_pixels() {
    // The file contains far more compressed pixels than its header declares.
    let plain = file(&two_halves(4, 4), ImageFormat::Png);
    let flood = file(&DynamicImage::new_rgb8(4_000, 4_000), ImageFormat::Png);
    let pixels_of = |png: &Bytes| png.slice(33..png.len() - 12);
    let bomb: Bytes = [&plain[..33], &pixels_of(&flood), &plain[plain.len() - 12..]].concat().into();
    check_untouched(&bomb, "image/png", &ImageBounds { max_bytes: 1_000_000, ..BOUNDS });

    let jpeg = file(&two_halves(16, 16), ImageFormat::Jpeg).to_vec();
    let at = jpeg.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    let mut bomb = jpeg;
    bomb[at + 5..at + 9].copy_from_slice(&[0xFF; 4]);
    let error =
        fit_image(bomb.into(), "image/jpeg", &ImageBounds { max_edge: u32::MAX, ..BOUNDS }).unwrap_err();
    assert!(matches!(error, ImageError::TooManyPixels(_) | ImageError::TooMuchMemory(_)), "{error:?}");
}

#[tokio::test]
async fn in_the_background_it_is_the_same() {
    let bytes = file(&two_halves(400, 100), ImageFormat::Bmp);
    let expect = fit_image(bytes.clone(), "image/bmp", &BOUNDS).unwrap();
    assert_eq!(fit_image_in_background(bytes, "image/bmp".to_owned(), BOUNDS).await.unwrap(), expect);
}

fn any_format() -> impl Strategy<Value = ImageFormat> {
    prop::sample::select(vec![
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::WebP,
        ImageFormat::Gif,
        ImageFormat::Bmp,
        ImageFormat::Tiff,
        ImageFormat::Ico,
        ImageFormat::Tga,
        ImageFormat::Pnm,
        ImageFormat::Qoi,
    ])
}

fn any_bounds() -> impl Strategy<Value = ImageBounds> {
    let metadata = prop::sample::select(vec![Metadata::Keep, Metadata::Strip]);
    (1_000_u64..40_000, 0_u32..80, metadata).prop_map(|(max_bytes, max_edge, metadata)| ImageBounds {
        max_bytes,
        max_edge,
        metadata,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn what_fits_is_within_its_bounds(format in any_format(), width in 1_u32..120, height in 1_u32..120, bounds in any_bounds()) {
        let bytes = file(&noise(width, height), format);
        let fitted = fit_image(bytes.clone(), format.to_mime_type(), &bounds).unwrap();
        let result = match &fitted { Fitted::AsItIs(bytes) | Fitted::Changed { bytes, .. } => bytes };
        let pixels = ::image::load_from_memory(result).unwrap();
        prop_assert!(u64::try_from(result.len()).unwrap() <= bounds.max_bytes);
        prop_assert!(pixels.width().max(pixels.height()) <= bounds.max_edge.max(1));
        let now = match &fitted { Fitted::AsItIs(_) => format.to_mime_type(), Fitted::Changed { mime_type, .. } => mime_type };
        prop_assert_eq!(::image::guess_format(result).unwrap().to_mime_type(), now);
        prop_assert!(["image/png", "image/jpeg", "image/webp"].contains(&now));
        check_untouched(result, now, &bounds);
    }

    #[test]
    fn damaged_pictures_never_panic(format in any_format(), cut in 0_usize..2_000, flips in prop::collection::vec((0_usize..2_000, any::<u8>()), 0..6), bounds in any_bounds()) {
        let mut bytes = file(&two_halves(30, 20), format).to_vec();
        bytes.truncate(cut);
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) { *byte = value; }
        }
        let outcome = fit_image(bytes.into(), format.to_mime_type(), &bounds);
        prop_assert!(!matches!(outcome, Err(ImageError::DecoderPanicked)));
        if let Ok(Fitted::AsItIs(bytes) | Fitted::Changed { bytes, .. }) = outcome {
            prop_assert!(::image::load_from_memory(&bytes).is_ok(), "a picture that cannot be decoded was returned");
        }
    }

    #[test]
    fn random_bytes_never_panic(format in any_format(), bytes in prop::collection::vec(any::<u8>(), 0..400), bounds in any_bounds()) {
        let outcome = fit_image(bytes.into(), format.to_mime_type(), &bounds);
        prop_assert!(!matches!(outcome, Err(ImageError::DecoderPanicked)));
    }
}
