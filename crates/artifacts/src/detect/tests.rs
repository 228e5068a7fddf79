use super::*;
use proptest::prelude::*;

/// The MIME type of bytes of an unknown type.
const UNKNOWN: &str = "application/octet-stream";

/// Returns the kind and type that are detected without any metadata.
fn bare(bytes: &[u8]) -> (Kind, String) {
    let detected = detect(None, None, bytes, Extent::Whole);
    assert_eq!(detected.contradiction, None);
    (detected.kind, detected.mime_type.to_string())
}

/// `head`, followed by a few bytes that are not text.
fn padded(head: &[u8]) -> Vec<u8> {
    [head, &[0x00, 0xff, 0x80, 0x01].repeat(16)].concat()
}

/// A zip archive with these entries, uncompressed.
fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, body) in entries {
        bytes.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend((body.len() as u32).to_le_bytes());
        bytes.extend((name.len() as u16).to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend(name.as_bytes());
        bytes.extend(body.as_bytes());
    }
    bytes
}

/// An OLE compound file with one stream in its directory.
fn ole(stream: &str) -> Vec<u8> {
    let mut bytes = vec![0; 1536];
    bytes[..8].copy_from_slice(&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]);
    bytes[30] = 9;
    bytes[48] = 1;
    let name: Vec<u8> = stream.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes[1024..1024 + name.len()].copy_from_slice(&name);
    bytes
}

fn transport_stream() -> Vec<u8> {
    let mut packet = [0xff; 188];
    packet[0] = 0x47;
    packet.repeat(4)
}

fn tar() -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[257..265].copy_from_slice(b"ustar\x0000");
    bytes
}

/// The beginning of a Windows program: a DOS header that contains the offset of the PE header.
fn program() -> Vec<u8> {
    let mut bytes = vec![0; 0x44];
    bytes[..4].copy_from_slice(b"MZ\x90\0");
    bytes[0x3c] = 0x40;
    bytes[0x40..].copy_from_slice(b"PE\0\0");
    padded(&bytes)
}

/// A directory of one icon (`sort` 1) or one mouse pointer (`sort` 2).
fn icon(sort: u8) -> Vec<u8> {
    padded(&[0, 0, sort, 0, 1, 0, 16, 16, 0, 0, 1, 0, 32, 0, 64, 0, 0, 0, 22, 0, 0, 0])
}

fn box_of(brand: &[u8]) -> Vec<u8> {
    padded(&[b"\0\0\0\x18ftyp", brand, b"\0\0\x02\0", brand].concat())
}

#[test]
fn formats_by_their_bytes() {
    let check = |bytes: &[u8], kind: Kind, mime_type: &str| {
        assert_eq!(bare(bytes), (kind, mime_type.to_owned()));
    };
    check(b"\x89PNG\r\n\x1a\n", Kind::Image, "image/png");
    check(b"\xff\xd8\xff\xe0\0\x10JFIF", Kind::Image, "image/jpeg");
    check(&padded(b"GIF89a"), Kind::Image, "image/gif");
    let mut like_packets = [b"GIF89a".as_slice(), &[0; 300]].concat();
    like_packets[188] = b'G';
    check(&like_packets, Kind::Image, "image/gif");
    check(b"GIF87a\x01\0\x01\0", Kind::Image, "image/gif");
    check(&padded(b"RIFF\x24\0\0\0WEBPVP8 "), Kind::Image, "image/webp");
    check(b"BM\x36\0\0\0\0\0\0\0\x36\0\0\0", Kind::Image, "image/bmp");
    check(&padded(b"II*\0"), Kind::Image, "image/tiff");
    check(&padded(b"MM\0*"), Kind::Image, "image/tiff");
    check(&icon(1), Kind::Image, "image/x-icon");
    check(&icon(2), Kind::Image, "image/x-win-bitmap");
    check(&padded(b"8BPS\0\x01"), Kind::Image, "image/vnd.adobe.photoshop");
    check(&box_of(b"heic"), Kind::Image, "image/heic");
    check(&box_of(b"hevc"), Kind::Image, "image/heif");
    check(&box_of(b"avif"), Kind::Image, "image/avif");
    check(&padded(b"\0\0\0\x0cJXL \r\n\x87\n"), Kind::Image, "image/jxl");
    check(&padded(b"RIFF\x24\0\0\0WAVEfmt "), Kind::Audio, "audio/wav");
    check(&padded(b"ID3\x03\0\0\0\0\x02\0"), Kind::Audio, "audio/mpeg");
    check(&[b"\xff\xfb\x90\x64".as_slice(), &[0; 413]].concat(), Kind::Audio, "audio/mpeg");
    check(&padded(b"fLaC\0\0\0\x22"), Kind::Audio, "audio/flac");
    check(&padded(b"OggS\0\x02"), Kind::Audio, "audio/ogg");
    check(&box_of(b"M4A "), Kind::Audio, "audio/mp4");
    check(&padded(b"MThd\0\0\0\x06"), Kind::Audio, "audio/midi");
    check(&padded(b"#!AMR\n"), Kind::Audio, "audio/amr");
    check(&padded(b"caff\0\x01\0\0"), Kind::Audio, "audio/x-caf");
    check(&padded(b"FORM\0\0\x10\0AIFFCOMM"), Kind::Audio, "audio/aiff");
    check(&box_of(b"isom"), Kind::Video, "video/mp4");
    check(&box_of(b"qt  "), Kind::Video, "video/quicktime");
    check(&box_of(b"3gp4"), Kind::Video, "video/3gpp");
    check(&padded(b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f\x42\x82\x84webm"), Kind::Video, "video/webm");
    check(&padded(b"RIFF\x24\0\0\0AVI LIST"), Kind::Video, "video/x-msvideo");
    check(&padded(b"FLV\x01\x05"), Kind::Video, "video/x-flv");
    check(&padded(b"\0\0\x01\xba"), Kind::Video, "video/mpeg");
    check(&transport_stream(), Kind::Video, "video/mp2t");
    check(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", Kind::Document, "application/pdf");
    check(b"%PDF-1.4\n1 0 obj\n", Kind::Document, "application/pdf");
    check(b"{\\rtf1\\ansi text}", Kind::Document, "application/rtf");
    check(b"%!PS-Adobe-3.0\n", Kind::Document, "application/postscript");
    check(
        &zip(&[("[Content_Types].xml", "<Types/>"), ("_rels/.rels", "x"), ("word/document.xml", "y")]),
        Kind::Document,
        DOCX,
    );
    check(
        &zip(&[("_rels/.rels", "x"), ("docProps/app.xml", "z"), ("xl/workbook.xml", "y")]),
        Kind::Document,
        XLSX,
    );
    check(&zip(&[("[Content_Types].xml", "<Types/>"), ("ppt/presentation.xml", "y")]), Kind::Document, PPTX);
    check(&zip(&[("mimetype", ODT), ("content.xml", "x")]), Kind::Document, ODT);
    check(
        &zip(&[("mimetype", "application/vnd.oasis.opendocument.graphics"), ("content.xml", "x")]),
        Kind::Document,
        "application/vnd.oasis.opendocument.graphics",
    );
    check(
        &zip(&[("mimetype", "application/epub+zip"), ("META-INF/container.xml", "x")]),
        Kind::Document,
        "application/epub+zip",
    );
    check(&ole("WordDocument"), Kind::Document, "application/msword");
    check(&ole("Workbook"), Kind::Document, "application/vnd.ms-excel");
    check(&ole("PowerPoint Document"), Kind::Document, "application/vnd.ms-powerpoint");
    check(&ole("Something"), Kind::Other, OLE);
    check(&zip(&[("notes.txt", "hello"), ("word/document.xml", "y")]), Kind::Other, ZIP);
    check(&padded(b"Rar!\x1a\x07\x01\0"), Kind::Other, "application/vnd.rar");
    check(&padded(b"7z\xbc\xaf\x27\x1c"), Kind::Other, "application/x-7z-compressed");
    check(&padded(b"\x1f\x8b\x08"), Kind::Other, "application/gzip");
    check(&padded(b"BZh91AY&SY"), Kind::Other, "application/x-bzip2");
    check(&padded(b"\xfd7zXZ\0"), Kind::Other, "application/x-xz");
    check(&padded(b"\x28\xb5\x2f\xfd"), Kind::Other, "application/zstd");
    check(&tar(), Kind::Other, "application/x-tar");
    check(&padded(b"SQLite format 3\0"), Kind::Other, "application/vnd.sqlite3");
    check(&padded(b"\0asm\x01\0\0\0"), Kind::Other, "application/wasm");
    check(&padded(b"\x7fELF\x02\x01\x01"), Kind::Other, "application/x-executable");
    check(&program(), Kind::Other, "application/vnd.microsoft.portable-executable");
    check(&padded(b"wOFF\0\x01\0\0"), Kind::Other, "font/woff");
    check(&padded(b"wOF2\0\x01\0\0"), Kind::Other, "font/woff2");
    check(&padded(b"bplist00"), Kind::Other, "application/x-bplist");
    check(b"<!DOCTYPE html>\n<p>", Kind::Text, "text/html");
    check(b"<?xml version=\"1.0\"?><a/>", Kind::Text, "text/xml");
    check(
        b"<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        Kind::Text,
        "image/svg+xml",
    );
    check(b"\xef\xbb\xbf<svg>", Kind::Text, "image/svg+xml");
    check(b"#!/bin/sh\necho", Kind::Text, "text/x-shellscript");
    check(b"", Kind::Text, "text/plain");
    check("一段文字".as_bytes(), Kind::Text, "text/plain");
    check(b"{\"a\": 1}", Kind::Text, "text/plain");
    // Text that begins with the letters of another format's signature.
    check(b"BMW is a car", Kind::Text, "text/plain");
    check(b"MZ is a beginning", Kind::Text, "text/plain");
    check(b"BZh is what it says", Kind::Text, "text/plain");
    check(b"FWS and CWS are short", Kind::Text, "text/plain");
    check(b"%!TEX root = main.tex", Kind::Text, "text/plain");
    check(b"BM\xc0\xef\xca\xd3\xb5\xc4\xb3\xb5\xcc\xa8", Kind::Other, UNKNOWN);
    // Bytes that are not recognised.
    check(&[0x00, 0x01, 0x02, 0xfe, 0xfd], Kind::Other, UNKNOWN);
    check(b"\xff\xfeh\0i\0", Kind::Other, UNKNOWN);
    check(b"a\0b", Kind::Other, UNKNOWN);
}

const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const ODT: &str = "application/vnd.oasis.opendocument.text";

#[test]
fn formats_by_their_names() {
    let text = "plain words".as_bytes();
    let binary: &[u8] = &[0x00, 0xff, 0x00, 0xfe];
    let check = |filename: &str, bytes: &[u8], kind: Kind, mime_type: &str| {
        let detected = detect(None, Some(filename), bytes, Extent::Whole);
        assert_eq!((detected.kind, detected.mime_type.as_str()), (kind, mime_type), "{filename}");
        // A declared type that says nothing, or is malformed, counts as missing.
        for meaningless in ["application/octet-stream", "", "garbage", "image/"] {
            assert_eq!(
                detect(Some(meaningless), Some(filename), bytes, Extent::Whole),
                detected,
                "{filename}"
            );
        }
    };
    check("a.md", text, Kind::Text, "text/markdown");
    check("a.json", text, Kind::Text, "application/json");
    check("a.csv", text, Kind::Text, "text/csv");
    check("a.html", text, Kind::Text, "text/html");
    check("a.svg", text, Kind::Text, "image/svg+xml");
    check("a.xml", text, Kind::Text, "text/xml");
    check("a.yaml", text, Kind::Text, "application/yaml");
    check("a.toml", text, Kind::Text, "application/toml");
    check("a.py", text, Kind::Text, "text/x-python");
    check("a.rs", text, Kind::Text, "text/x-rust");
    check("a.go", text, Kind::Text, "text/x-go");
    check("a.js", text, Kind::Text, "text/javascript");
    check("a.ts", text, Kind::Text, "text/typescript");
    check("A.TS", text, Kind::Text, "text/typescript");
    check("a.ts", &transport_stream(), Kind::Video, "video/mp2t");
    check("a.ts", binary, Kind::Video, "video/mp2t");
    check("go.mod", text, Kind::Text, "text/plain");
    check("a.sh", text, Kind::Text, "text/x-shellscript");
    check("a.sql", text, Kind::Text, "application/sql");
    check("a.log", text, Kind::Text, "text/plain");
    check("a.key", text, Kind::Text, "text/plain");
    check("a.key", binary, Kind::Document, "application/vnd.apple.keynote");
    check("a.eml", text, Kind::Text, "message/rfc822");
    check("a.txt", "é".as_bytes(), Kind::Text, "text/plain");
    check("a.txt", b"caf\xe9", Kind::Other, UNKNOWN);
    check("a.py", binary, Kind::Other, UNKNOWN);
    check("a.png", binary, Kind::Image, "image/png");
    check("照片.JPG", binary, Kind::Image, "image/jpeg");
    check("a.heic", binary, Kind::Image, "image/heic");
    check("a.mp3", binary, Kind::Audio, "audio/mpeg");
    check("a.wav", binary, Kind::Audio, "audio/wav");
    check("a.m4a", binary, Kind::Audio, "audio/mp4");
    check("a.m4a", &box_of(b"isom"), Kind::Audio, "audio/mp4");
    check("a.mp4", binary, Kind::Video, "video/mp4");
    check("a.pdf", binary, Kind::Document, "application/pdf");
    check("a.docx", binary, Kind::Document, DOCX);
    check("a.docx", &zip(&[("strange", "x")]), Kind::Document, DOCX);
    check("a.xlsx", &zip(&[("[Content_Types].xml", "x")]), Kind::Document, XLSX);
    check("a.odt", &zip(&[("mimetype", ODT)]), Kind::Document, ODT);
    check("a.doc", &ole("Something"), Kind::Document, "application/msword");
    check("a.epub", &zip(&[("x", "y")]), Kind::Document, "application/epub+zip");
    check("a.jar", &zip(&[("META-INF/MANIFEST.MF", "y")]), Kind::Other, "application/java-archive");
    check("a.zip", &zip(&[("x", "y")]), Kind::Other, ZIP);
    check("a.bin", binary, Kind::Other, UNKNOWN);
    check("Makefile", text, Kind::Text, "text/plain");
    check("a.", text, Kind::Text, "text/plain");
    check("unheard.of", binary, Kind::Other, UNKNOWN);
}

#[test]
fn the_declared_type_comes_first() {
    let check = |declared: &str, filename: Option<&str>, bytes: &[u8], kind: Kind, mime_type: &str| {
        let detected = detect(Some(declared), filename, bytes, Extent::Whole);
        let expect = Detected { kind, mime_type: MimeType::unchecked(mime_type), contradiction: None };
        assert_eq!(detected, expect, "{declared} {filename:?}");
    };
    let binary: &[u8] = &[0x00, 0xff, 0x00, 0xfe];
    check("image/png", None, binary, Kind::Image, "image/png");
    check("image/png", Some("a.mp3"), binary, Kind::Image, "image/png");
    check("IMAGE/JPG; q=1", None, binary, Kind::Image, "image/jpeg");
    check("image/png", None, b"not really a picture", Kind::Image, "image/png");
    check("audio/x-wav", None, binary, Kind::Audio, "audio/wav");
    check("video/x-unheard-of", None, binary, Kind::Video, "video/x-unheard-of");
    check("application/json", None, b"{}", Kind::Text, "application/json");
    check("image/svg+xml", None, b"<svg/>", Kind::Text, "image/svg+xml");
    check("text/markdown", Some("a.txt"), b"# a", Kind::Text, "text/markdown");
    check("text/plain", None, b"<!DOCTYPE html><p>", Kind::Text, "text/plain");
    check("text/plain", None, b"OggS is four letters", Kind::Text, "text/plain");
    check("application/x-nobody-knows", None, b"words", Kind::Text, "application/x-nobody-knows");
    check("application/x-nobody-knows", None, binary, Kind::Other, "application/x-nobody-knows");
    check("model/stl", None, b"solid cube", Kind::Text, "model/stl");
    // Container formats, which can hold sound or video.
    check("audio/webm", None, &padded(b"\x1a\x45\xdf\xa3\x42\x82\x84webm"), Kind::Audio, "audio/webm");
    check("video/ogg", None, &padded(b"OggS\0\x02"), Kind::Video, "video/ogg");
    check("audio/aac", None, &padded(b"ID3\x03\0\0\0\0\x02\0"), Kind::Audio, "audio/aac");
    check(
        "application/vnd.ms-outlook",
        None,
        &ole("Something"),
        Kind::Document,
        "application/vnd.ms-outlook",
    );
    check(
        "application/vnd.android.package-archive",
        None,
        &zip(&[("a", "b")]),
        Kind::Other,
        "application/vnd.android.package-archive",
    );
    check("application/zip", Some("a.docx"), &zip(&[("a", "b")]), Kind::Document, DOCX);
    check("application/x-zip-compressed", None, &zip(&[("word/document.xml", "b")]), Kind::Document, DOCX);
    check("image/tiff", Some("a.dng"), &padded(b"II*\0"), Kind::Image, "image/tiff");
    check("image/x-adobe-dng", None, &padded(b"II*\0"), Kind::Image, "image/x-adobe-dng");
}

#[test]
fn signatures_win_over_what_was_said() {
    let check = |declared: &str, filename: Option<&str>, bytes: &[u8], kind: Kind, found: &str| {
        let declared_mime = (!declared.is_empty()).then_some(declared);
        let detected = detect(declared_mime, filename, bytes, Extent::Whole);
        assert_eq!((detected.kind, detected.mime_type.as_str()), (kind, found), "{declared} {filename:?}");
        let contradiction = detected.contradiction.expect("the metadata is contradicted");
        assert_eq!(contradiction.found, found);
        if !declared.is_empty() {
            assert_eq!(contradiction.declared, declared);
        }
    };
    let png = padded(b"\x89PNG\r\n\x1a\n");
    check("text/plain", None, &png, Kind::Image, "image/png");
    check("", Some("notes.txt"), &png, Kind::Image, "image/png");
    check("application/json", Some("a.json"), &png, Kind::Image, "image/png");
    check("audio/mpeg", None, &png, Kind::Image, "image/png");
    check("application/pdf", None, &png, Kind::Image, "image/png");
    check("application/x-nobody-knows", None, &png, Kind::Image, "image/png");
    check("image/jpeg", None, &png, Kind::Image, "image/png");
    check("image/png", None, b"%PDF-1.7\n", Kind::Document, "application/pdf");
    check("text/plain", None, b"%PDF-1.7\n", Kind::Document, "application/pdf");
    check("text/plain", None, b"{\\rtf1 a}", Kind::Document, "application/rtf");
    check("application/msword", None, b"{\\rtf1 a}", Kind::Document, "application/rtf");
    check("image/png", None, b"<!DOCTYPE html><p>not found", Kind::Text, "text/html");
    check("image/png", None, b"<svg xmlns='x'>", Kind::Text, "image/svg+xml");
    check("application/pdf", None, b"<?xml version='1.0'?><Error/>", Kind::Text, "text/xml");
    check("image/png", None, &program(), Kind::Other, "application/vnd.microsoft.portable-executable");
    check("application/pdf", None, &zip(&[("a", "b")]), Kind::Other, ZIP);
    check("text/csv", None, &zip(&[("xl/workbook.xml", "b")]), Kind::Document, XLSX);
    check("image/svg+xml", None, &padded(b"\x1f\x8b\x08"), Kind::Other, "application/gzip");
    check("audio/wav", None, &padded(b"ID3\x03\0\0\0\0\x02\0"), Kind::Audio, "audio/mpeg");
    // Bytes that are declared as text but are not UTF-8.
    check("text/plain", None, b"caf\xe9", Kind::Other, UNKNOWN);
    check("application/json", None, b"\xff\xfe{\0}\0", Kind::Other, UNKNOWN);
    // The extension means text and the bytes are text, so the declared type does not count.
    check("video/mp2t", Some("a.ts"), b"const a: number = 1;", Kind::Text, "text/typescript");
    check("application/vnd.ms-excel", Some("a.csv"), b"a;b\n", Kind::Text, "text/csv");
}

#[test]
fn a_head_may_end_within_a_character() {
    let text = "一二三".as_bytes();
    let check = |declared: Option<&str>, end: usize, extent: Extent, kind: Kind| {
        assert_eq!(detect(declared, None, &text[..end], extent).kind, kind);
    };
    for declared in [None, Some("text/plain")] {
        check(declared, 9, Extent::Whole, Kind::Text);
        check(declared, 8, Extent::Head, Kind::Text);
        check(declared, 8, Extent::Whole, Kind::Other);
    }
}

fn anything_said() -> impl Strategy<Value = (Option<String>, Option<String>)> {
    let types = [
        "image/png",
        "text/plain",
        "application/pdf",
        "application/zip",
        "video/mp4",
        "image/svg+xml",
        "x/y",
        "?",
    ];
    let names = ["a.png", "a.ts", "a.docx", "a.doc", "a.txt", "a", ".", "a.key", "a.m4a"];
    let some = |of: &[&str]| {
        proptest::option::of(proptest::sample::select(
            of.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(),
        ))
    };
    (some(&types), some(&names))
}

/// Generates bytes that begin like a zip archive, an OLE file, a video or an XML text. For these formats, detection
/// reads more of the content than the signature.
fn anything_to_see() -> impl Strategy<Value = Vec<u8>> {
    let heads = vec![
        Vec::new(),
        b"PK\x03\x04".to_vec(),
        zip(&[("[Content_Types].xml", "x")]),
        zip(&[("mimetype", "")]),
        ole("WordDocument")[..600].to_vec(),
        vec![0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1],
        b"\0\0\0\x18ftyp".to_vec(),
        b"\x1a\x45\xdf\xa3".to_vec(),
        b"<?xml".to_vec(),
        b"\xef\xbb\xbf".to_vec(),
    ];
    let tail = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300),
        any::<String>().prop_map(String::into_bytes)
    ];
    (proptest::sample::select(heads), tail).prop_map(|(head, tail)| [head, tail].concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_is_text_is_utf_8_and_nothing_ever_fails(
        (declared, filename) in anything_said(), bytes in anything_to_see(),
    ) {
        let detected = detect(declared.as_deref(), filename.as_deref(), &bytes, Extent::Whole);
        if detected.kind == Kind::Text {
            prop_assert!(std::str::from_utf8(&bytes).is_ok());
        }
        prop_assert_eq!(mime::kind_of(detected.mime_type.as_str()).unwrap_or(detected.kind), detected.kind);
        let parsed = mime::parse(detected.mime_type.as_str());
        prop_assert!(detected.mime_type == UNKNOWN || parsed.as_ref() == Some(&detected.mime_type));
        if let Some(contradiction) = &detected.contradiction {
            prop_assert_eq!(&contradiction.found, &detected.mime_type);
            prop_assert_ne!(&contradiction.declared, &detected.mime_type);
        }
        // Declaring the detected type must lead to the same result, without a contradiction.
        if detected.mime_type != UNKNOWN {
            let again = detect(Some(detected.mime_type.as_str()), filename.as_deref(), &bytes, Extent::Whole);
            prop_assert_eq!(again, Detected { contradiction: None, ..detected });
        }
    }

    #[test]
    fn readable_text_is_text_whatever_it_begins_with(
        start in proptest::sample::select(LETTERS), gap in "[a-z ]{0,8}", rest in "\\PC{0,80}",
    ) {
        let text = format!("{start}{gap}{rest}");
        prop_assert_eq!(detect(None, None, text.as_bytes(), Extent::Whole).kind, Kind::Text);
        let shifted = format!("{gap}{start} {rest}");
        prop_assert_eq!(detect(None, None, shifted.as_bytes(), Extent::Whole).kind, Kind::Text);
    }

    #[test]
    fn text_in_another_encoding_is_never_taken_for_media(
        start in proptest::sample::select(LETTERS), rest in "[ -~\u{a0}-\u{ff}]{1,80}",
    ) {
        let text = format!("{start} {rest}é.");
        let latin: Vec<u8> = text.chars().filter_map(|letter| u8::try_from(letter).ok()).collect();
        let wide = |bytes_of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(bytes_of).collect()
        };
        for bytes in [latin, wide(u16::to_le_bytes), wide(u16::to_be_bytes)] {
            let detected = detect(None, None, &bytes, Extent::Whole);
            prop_assert_eq!(detected.kind, Kind::Other, "{:?}", detected.mime_type);
            let declared = detect(Some("text/plain"), Some("a.txt"), &bytes, Extent::Whole);
            prop_assert_eq!(declared.kind, Kind::Other);
        }
    }
}

/// Words that contain the letters of a signature, at their beginning or further on.
const LETTERS: &[&str] = &[
    "GIF",
    "GIF is",
    "BM",
    "BMW",
    "MZ",
    "ID3",
    "ID3 tags",
    "RIFF",
    "RIFFabcdWAVE",
    "RIFF in WEBP",
    "Use the WEBP",
    "FORM",
    "FORMabcdAIFF",
    "OggS",
    "fLaC",
    "MThd",
    "MAC address",
    "DSD sound",
    "8BPS",
    "caff",
    ".snd",
    "wvpk",
    "TTA1",
    "qoif",
    "icns",
    "DDS ",
    "The ftyp",
    "The moov",
    "The mdat",
    "M4A is",
    "one ftyp3gp4",
    "abcdftypisom",
    "FLV",
    "FWS",
    "CWS",
    "BZh",
    "PAR1",
    "PK",
    "Rar",
    "7z",
    "SQLite",
    "SQLite format",
    "MSCF",
    "AC1015",
    "P5",
    "P6 and",
    "BC",
    "d",
    "L",
    "0",
    "G",
    "GGGG",
    "%PDF",
    "about %PDF-1.7",
    "%!TEX",
    "wOFF",
    "OTTO",
    "ustar",
    "LZIP",
    "Cr24",
];
