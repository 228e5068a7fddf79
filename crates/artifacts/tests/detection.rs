//! Real files of many formats, each detected with metadata that is right, missing, damaged or wrong.
//!
//! Section 2 of `docs/contract.md` has the rules. If the bytes have a known signature, and the metadata claims a type
//! of another family, the signature decides, and the result contains the contradiction. Without a signature, the
//! metadata decides.
//! There is one limit: bytes that are declared as text but are not UTF-8 get the kind `other`.
//! Readable text in a file with the extension of a text format is text, even if its declared type is different.

#![expect(clippy::expect_used, reason = "a file that cannot be read fails the test")]

use Bytes::{Foreign, Mute, Speak, Words};
use Kind::{Audio, Document, Image, Other, Text, Video};
use polity_artifacts::{Contradiction, Detected, Extent, detect};
use polity_society::content::Kind;
use polity_society::mime::MimeType;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What the bytes of a file reveal without metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bytes {
    /// The bytes have the signature of the file's type.
    Speak,
    /// The bytes are readable text without a signature, so they could be any type of text.
    Words,
    /// The bytes are UTF-8 with control characters, or they are binary and have no signature.
    Mute,
    /// The bytes are text in an encoding other than UTF-8. Such text counts as binary.
    Foreign,
}

const OCTETS: &str = "application/octet-stream";
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PPTX: &str = "application/vnd.openxmlformats-officedocument.presentationml.presentation";
const ODT: &str = "application/vnd.oasis.opendocument.text";
const ODS: &str = "application/vnd.oasis.opendocument.spreadsheet";
const ODP: &str = "application/vnd.oasis.opendocument.presentation";
const EXE: &str = "application/vnd.microsoft.portable-executable";

/// Each file with its kind, its type, and what its bytes reveal.
#[rustfmt::skip]
const FILES: &[(&str, Kind, &str, Bytes)] = &[
    // Pictures.
    ("picture.png",          Image,    "image/png",                          Speak),
    ("animated.png",         Image,    "image/png",                          Speak),
    ("photo.jpg",            Image,    "image/jpeg",                         Speak),
    ("progressive.jpeg",     Image,    "image/jpeg",                         Speak),
    ("picture.gif",          Image,    "image/gif",                          Speak),
    ("animated.gif",         Image,    "image/gif",                          Speak),
    ("picture.webp",         Image,    "image/webp",                         Speak),
    ("animated.webp",        Image,    "image/webp",                         Speak),
    ("picture.bmp",          Image,    "image/bmp",                          Speak),
    ("little-endian.tiff",   Image,    "image/tiff",                         Speak),
    ("big-endian.tif",       Image,    "image/tiff",                         Speak),
    ("favicon.ico",          Image,    "image/x-icon",                       Speak),
    ("pointer.cur",          Image,    "image/x-win-bitmap",                 Speak),
    ("app.icns",             Image,    "image/x-icns",                       Speak),
    ("picture.avif",         Image,    "image/avif",                         Speak),
    ("photo.heic",           Image,    "image/heic",                         Speak),
    ("picture.jxl",          Image,    "image/jxl",                          Speak),
    ("boxed.jxl",            Image,    "image/jxl",                          Speak),
    ("picture.jp2",          Image,    "image/jp2",                          Speak),
    ("picture.ppm",          Image,    "image/x-portable-pixmap",            Speak),
    ("picture.qoi",          Image,    "image/qoi",                          Speak),
    ("picture.psd",          Image,    "image/vnd.adobe.photoshop",          Speak),
    ("picture.dds",          Image,    "image/vnd.ms-dds",                   Speak),
    ("picture.exr",          Image,    "image/x-exr",                        Speak),
    ("picture.hdr",          Image,    "image/vnd.radiance",                 Speak),
    ("picture.tga",          Image,    "image/x-tga",                        Mute),
    ("picture.pcx",          Image,    "image/x-pcx",                        Mute),
    // Sound.
    ("tone.wav",             Audio,    "audio/wav",                          Speak),
    ("rf64.wav",             Audio,    "audio/wav",                          Speak),
    ("tone.w64",             Audio,    "audio/x-w64",                        Speak),
    ("bare.mp3",             Audio,    "audio/mpeg",                         Speak),
    ("tagged.mp3",           Audio,    "audio/mpeg",                         Speak),
    ("tone.mp2",             Audio,    "audio/mpeg",                         Speak),
    ("tone.flac",            Audio,    "audio/flac",                         Speak),
    ("tone.ogg",             Audio,    "audio/ogg",                          Speak),
    ("tone.opus",            Audio,    "audio/ogg",                          Speak),
    ("tone.spx",             Audio,    "audio/ogg",                          Speak),
    ("tone.aac",             Audio,    "audio/aac",                          Speak),
    ("tone.m4a",             Audio,    "audio/mp4",                          Speak),
    ("sound-only.mp4",       Audio,    "audio/mp4",                          Speak),
    ("voice.weba",           Audio,    "audio/webm",                         Speak),
    ("tone.mka",             Audio,    "audio/x-matroska",                   Speak),
    ("tone.wma",             Audio,    "audio/x-ms-wma",                     Speak),
    ("tone.aiff",            Audio,    "audio/aiff",                         Speak),
    ("tone.aifc",            Audio,    "audio/aiff",                         Speak),
    ("tone.au",              Audio,    "audio/basic",                        Speak),
    ("tone.caf",             Audio,    "audio/x-caf",                        Speak),
    ("tone.wv",              Audio,    "audio/x-wavpack",                    Speak),
    ("tone.tta",             Audio,    "audio/x-tta",                        Speak),
    ("tune.mid",             Audio,    "audio/midi",                         Speak),
    ("speech.amr",           Audio,    "audio/amr",                          Speak),
    ("speech.awb",           Audio,    "audio/amr-wb",                       Speak),
    // Moving pictures.
    ("clip.mp4",             Video,    "video/mp4",                          Speak),
    ("with-sound.mp4",       Video,    "video/mp4",                          Speak),
    ("fragmented.mp4",       Video,    "video/mp4",                          Speak),
    ("clip.m4v",             Video,    "video/x-m4v",                        Speak),
    ("clip.mov",             Video,    "video/quicktime",                    Speak),
    ("clip.3gp",             Video,    "video/3gpp",                         Speak),
    ("clip.3g2",             Video,    "video/3gpp2",                        Speak),
    ("clip.webm",            Video,    "video/webm",                         Speak),
    ("clip.mkv",             Video,    "video/x-matroska",                   Speak),
    ("clip.ogv",             Video,    "video/ogg",                          Speak),
    ("clip.avi",             Video,    "video/x-msvideo",                    Speak),
    ("clip.wmv",             Video,    "video/x-ms-wmv",                     Speak),
    ("clip.flv",             Video,    "video/x-flv",                        Speak),
    ("clip.mpg",             Video,    "video/mpeg",                         Speak),
    ("clip.m2v",             Video,    "video/mpeg",                         Speak),
    ("clip.ts",              Video,    "video/mp2t",                         Speak),
    ("clip.m2ts",            Video,    "video/mp2t",                         Speak),
    // Documents.
    ("report.pdf",           Document, "application/pdf",                    Speak),
    ("ascii.pdf",            Document, "application/pdf",                    Speak),
    ("letter.rtf",           Document, "application/rtf",                    Speak),
    ("figure.ps",            Document, "application/postscript",             Speak),
    ("figure.eps",           Document, "application/postscript",             Speak),
    ("scan.djvu",            Document, "image/vnd.djvu",                     Speak),
    ("report.docx",          Document, DOCX,                                 Speak),
    ("other-order.docx",     Document, DOCX,                                 Speak),
    ("table.xlsx",           Document, XLSX,                                 Speak),
    ("slides.pptx",          Document, PPTX,                                 Speak),
    ("text.odt",             Document, ODT,                                  Speak),
    ("table.ods",            Document, ODS,                                  Speak),
    ("slides.odp",           Document, ODP,                                  Speak),
    ("book.epub",            Document, "application/epub+zip",               Speak),
    ("table.xls",            Document, "application/vnd.ms-excel",           Speak),
    // Archives, programs, data.
    ("notes.zip",            Other,    "application/zip",                    Speak),
    ("empty.zip",            Other,    "application/zip",                    Speak),
    ("office-like.zip",      Other,    "application/zip",                    Speak),
    ("notes.tar",            Other,    "application/x-tar",                  Speak),
    ("note.txt.gz",          Other,    "application/gzip",                   Speak),
    ("note.txt.bz2",         Other,    "application/x-bzip2",                Speak),
    ("note.txt.xz",          Other,    "application/x-xz",                   Speak),
    ("note.txt.zst",         Other,    "application/zstd",                   Speak),
    ("note.txt.lz4",         Other,    "application/x-lz4",                  Speak),
    ("note.txt.lzma",        Other,    "application/x-lzma",                 Mute),
    ("notes.7z",             Other,    "application/x-7z-compressed",        Speak),
    ("notes.rar",            Other,    "application/vnd.rar",                Speak),
    ("notes.cab",            Other,    "application/vnd.ms-cab-compressed",  Speak),
    ("notes.cpio",           Other,    "application/x-cpio",                 Speak),
    ("papers.a",             Other,    "application/x-unix-archive",         Speak),
    ("program.elf",          Other,    "application/x-executable",           Speak),
    ("add.o",                Other,    "application/x-executable",           Speak),
    ("program.exe",          Other,    EXE,                                  Speak),
    ("add.wasm",             Other,    "application/wasm",                   Speak),
    ("Note.class",           Other,    "application/java-vm",                Speak),
    ("note.pyc",             Other,    "application/x-python-code",          Speak),
    ("clip.swf",             Other,    "application/x-shockwave-flash",      Speak),
    ("table.sqlite",         Other,    "application/vnd.sqlite3",            Speak),
    ("table.parquet",        Other,    "application/vnd.apache.parquet",     Speak),
    ("table.arrow",          Other,    "application/vnd.apache.arrow.file",  Speak),
    ("vector.npy",           Other,    "application/x-npy",                  Speak),
    ("settings.plist",       Other,    "application/x-bplist",               Speak),
    ("zh.mo",                Other,    "application/x-gettext-translation",  Speak),
    ("scene.glb",            Other,    "model/gltf-binary",                  Speak),
    ("certificate.der",      Other,    "application/x-x509-ca-cert",         Speak),
    ("box.ttf",              Other,    "font/ttf",                           Speak),
    ("box.otf",              Other,    "font/otf",                           Speak),
    ("box.woff",             Other,    "font/woff",                          Speak),
    ("box.woff2",            Other,    "font/woff2",                         Speak),
    // Text whose first line identifies its type.
    ("drawing.svg",          Text,     "image/svg+xml",                      Speak),
    ("bare.svg",             Text,     "image/svg+xml",                      Speak),
    ("page.html",            Text,     "text/html",                          Speak),
    ("with-bom.html",        Text,     "text/html",                          Speak),
    ("feed.xml",             Text,     "text/xml",                           Speak),
    ("build.sh",             Text,     "text/x-shellscript",                 Speak),
    ("main.py",              Text,     "text/x-python",                      Speak),
    ("certificate.pem",      Text,     "application/x-pem-file",             Speak),
    // Text.
    ("data.json",            Text,     "application/json",                   Words),
    ("events.jsonl",         Text,     "application/jsonl",                  Words),
    ("table.csv",            Text,     "text/csv",                           Words),
    ("table.tsv",            Text,     "text/tab-separated-values",          Words),
    ("readme.md",            Text,     "text/markdown",                      Words),
    ("emoji.md",             Text,     "text/markdown",                      Words),
    ("settings.yaml",        Text,     "application/yaml",                   Words),
    ("settings.toml",        Text,     "application/toml",                   Words),
    ("main.rs",              Text,     "text/x-rust",                        Words),
    ("types.ts",             Text,     "text/typescript",                    Words),
    ("main.js",              Text,     "text/javascript",                    Words),
    ("main.c",               Text,     "text/x-c",                           Words),
    ("main.go",              Text,     "text/x-go",                          Words),
    ("Main.java",            Text,     "text/x-java",                        Words),
    ("schema.sql",           Text,     "application/sql",                    Words),
    ("style.css",            Text,     "text/css",                           Words),
    ("change.diff",          Text,     "text/x-diff",                        Words),
    ("mail.eml",             Text,     "message/rfc822",                     Words),
    ("talk.srt",             Text,     "application/x-subrip",               Words),
    ("list.m3u8",            Text,     "audio/x-mpegurl",                    Words),
    ("with-bom.txt",         Text,     "text/plain",                         Words),
    ("chinese.txt",          Text,     "text/plain",                         Words),
    ("base64.txt",           Text,     "text/plain",                         Words),
    ("empty.txt",            Text,     "text/plain",                         Words),
    // Text that contains the signature of another format, at the beginning or later.
    ("about-bmw.txt",        Text,     "text/plain",                         Words),
    ("about-ftyp.txt",       Text,     "text/plain",                         Words),
    ("about-gif.txt",        Text,     "text/plain",                         Words),
    ("about-id3.txt",        Text,     "text/plain",                         Words),
    ("about-pdf.txt",        Text,     "text/plain",                         Words),
    ("about-riff.txt",       Text,     "text/plain",                         Words),
    ("riff-wave.txt",        Text,     "text/plain",                         Words),
    ("use-the-webp.txt",     Text,     "text/plain",                         Words),
    ("good-news.txt",        Text,     "text/plain",                         Words),
    // UTF-8 with a NUL character. It is text if the metadata declares text; otherwise its type is unknown.
    ("with-nul.txt",         Text,     "text/plain",                         Mute),
    ("nul-and-letters.txt",  Text,     "text/plain",                         Mute),
    // These files are declared as text, but are not UTF-8, so they do not count as text. Some of these files begin
    // with the signature of another format.
    ("utf-16-le.txt",        Other,    "text/plain",                         Foreign),
    ("utf-16-be.txt",        Other,    "text/plain",                         Foreign),
    ("gbk.txt",              Other,    "text/plain",                         Foreign),
    ("latin-1.txt",          Other,    "text/plain",                         Foreign),
    ("latin-1-bc.txt",       Other,    "text/plain",                         Foreign),
    ("latin-1-gif.txt",      Other,    "text/plain",                         Foreign),
    ("latin-1-id3.txt",      Other,    "text/plain",                         Foreign),
    ("latin-1-mac.txt",      Other,    "text/plain",                         Foreign),
    ("latin-1-pdf.txt",      Other,    "text/plain",                         Foreign),
    ("latin-1-webp.txt",     Other,    "text/plain",                         Foreign),
];

/// One type and one extension for each kind, and an unknown type of sound.
const CLAIMS: &[(Kind, &str, &str)] = &[
    (Text, "text/plain", "txt"),
    (Image, "image/png", "png"),
    (Audio, "audio/mpeg", "mp3"),
    (Audio, "audio/x-unheard-of", "mp3"),
    (Video, "video/mp4", "mp4"),
    (Document, "application/pdf", "pdf"),
    (Other, "application/zip", "zip"),
];

/// A row of the table, with the bytes of its file.
struct Case {
    file: &'static str,
    kind: Kind,
    mime_type: &'static str,
    gives_away: Bytes,
    bytes: Vec<u8>,
}

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

fn cases() -> Vec<Case> {
    let read = |&(file, kind, mime_type, gives_away)| {
        let bytes = fs::read(files().join(file)).expect(file);
        Case { file, kind, mime_type, gives_away, bytes }
    };
    FILES.iter().map(read).collect()
}

impl Case {
    #[track_caller]
    fn check(&self, declared: Option<&str>, filename: Option<&str>, expect: Detected) {
        let found = detect(declared, filename, &self.bytes, Extent::Whole);
        assert_eq!(found, expect, "{}, declared {declared:?}, named {filename:?}", self.file);
    }

    fn is_zip(&self) -> bool {
        self.bytes.starts_with(b"PK")
    }

    /// Returns the expected result for metadata that claims the type `claim`, whose kind is not the kind of the file.
    fn under_claim(&self, kind: Kind, claim: &str) -> Detected {
        match self.gives_away {
            // The signature decides. But a document that is a zip archive may be declared as `application/zip`.
            Speak if claim == "application/zip" && self.is_zip() => plain(self.kind, self.mime_type),
            Speak => against(self.kind, self.mime_type, claim),
            // Bytes that are declared as text must be UTF-8.
            Foreign | Mute if kind == Text && std::str::from_utf8(&self.bytes).is_err() => {
                against(Other, OCTETS, claim)
            }
            // The bytes have no signature that contradicts the claimed type.
            Words | Mute | Foreign => plain(kind, claim),
        }
    }
}

fn plain(kind: Kind, mime_type: &str) -> Detected {
    Detected { kind, mime_type: MimeType::unchecked(mime_type), contradiction: None }
}

fn against(kind: Kind, mime_type: &str, declared: &str) -> Detected {
    let contradiction =
        Contradiction { declared: MimeType::unchecked(declared), found: MimeType::unchecked(mime_type) };
    Detected { contradiction: Some(contradiction), ..plain(kind, mime_type) }
}

#[test]
fn the_table_is_of_many_files_of_many_formats() {
    let formats: BTreeSet<&str> = FILES.iter().map(|(_, _, mime_type, _)| *mime_type).collect();
    let kinds: BTreeSet<&str> = FILES.iter().map(|(_, kind, _, _)| kind.as_str()).collect();
    assert!(FILES.len() >= 60, "{} files", FILES.len());
    assert!(formats.len() >= 40, "{} formats", formats.len());
    assert_eq!(kinds.len(), Kind::ALL.len());

    let listed: BTreeSet<String> = FILES.iter().map(|(file, ..)| (*file).to_owned()).collect();
    assert_eq!(listed.len(), FILES.len(), "a file is listed twice");
    let there = fs::read_dir(files()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there: BTreeSet<String> =
        there.filter(|file| file != "README.md" && file != ".gitattributes").collect();
    assert_eq!(listed, there);
}

#[test]
fn right_metadata_is_believed() {
    for case in cases() {
        let expect = match case.gives_away {
            Foreign => against(Other, OCTETS, case.mime_type),
            Speak | Words | Mute => plain(case.kind, case.mime_type),
        };
        case.check(Some(case.mime_type), Some(case.file), expect.clone());
        case.check(Some(case.mime_type), None, expect.clone());
        let parameters = format!(" {}; charset=utf-8", case.mime_type.to_uppercase());
        case.check(Some(&parameters), Some(case.file), expect);
    }
}

#[test]
fn without_metadata_the_bytes_decide() {
    for case in cases() {
        let expect = match case.gives_away {
            Speak => plain(case.kind, case.mime_type),
            Words => plain(Text, "text/plain"),
            Mute | Foreign => plain(Other, OCTETS),
        };
        case.check(None, None, expect.clone());
        case.check(Some("application/octet-stream"), Some("download"), expect.clone());
        // A caller may have only the beginning of a file, which may end in the middle of a character.
        let head = case.bytes.split_last().map_or(case.bytes.as_slice(), |(_, head)| head);
        let kind_of_head = detect(None, None, head, Extent::Head).kind;
        assert_eq!(kind_of_head, expect.kind, "the beginning of {}", case.file);
    }
}

#[test]
fn a_name_alone_gives_the_kind() {
    for case in cases().into_iter().filter(|case| case.gives_away != Foreign) {
        let found = detect(None, Some(case.file), &case.bytes, Extent::Whole);
        assert_eq!(found.kind, case.kind, "{}", case.file);
        // The extension of this file means a video, but the file contains only sound.
        let is_contradicted = case.file == "sound-only.mp4";
        assert_eq!(found.contradiction.is_some(), is_contradicted, "{}", case.file);
    }
}

#[test]
fn a_wrong_type_is_believed_only_of_bytes_without_a_signature() {
    for case in cases() {
        for (kind, claim, _) in CLAIMS.iter().filter(|(kind, ..)| *kind != case.kind) {
            case.check(Some(claim), None, case.under_claim(*kind, claim));
            if case.gives_away == Words {
                // The extension means text and the bytes are text, so the declared type does not count.
                let found = detect(Some(claim), Some(case.file), &case.bytes, Extent::Whole);
                let expect =
                    Contradiction { declared: MimeType::unchecked(*claim), found: found.mime_type.clone() };
                assert_eq!((found.kind, found.contradiction), (Text, Some(expect)), "{}, {claim}", case.file);
            }
        }
    }
}

#[test]
fn a_lying_name_is_believed_only_of_bytes_without_a_signature() {
    for case in cases() {
        let known = CLAIMS.iter().filter(|(kind, claim, _)| *kind != case.kind && !claim.contains("/x-"));
        for (kind, claim, extension) in known {
            let filename = format!("file.{extension}");
            case.check(None, Some(&filename), case.under_claim(*kind, claim));
        }
    }
}

#[test]
fn a_lying_name_does_not_count_beside_a_right_type() {
    for case in cases() {
        let expect = match case.gives_away {
            Foreign => against(Other, OCTETS, case.mime_type),
            Speak | Words | Mute => plain(case.kind, case.mime_type),
        };
        for (_, _, extension) in CLAIMS.iter().filter(|(kind, ..)| *kind != case.kind) {
            case.check(Some(case.mime_type), Some(&format!("file.{extension}")), expect.clone());
        }
    }
}

#[test]
fn damaged_metadata_counts_as_none() {
    let long = format!("image/{}", "x".repeat(4000));
    let damaged = [
        "",
        " ",
        "not a mime",
        "image",
        "image/",
        "/png",
        "image/png/gif",
        "image/*",
        "\0",
        "image/\0png",
        "image\n/png",
        "image/p\u{7f}ng",
        "图片/png",
        "image/png\u{fffd}",
        "{\"type\":\"image/png\"}",
        "null",
        &long,
    ];
    let names =
        ["", ".", "..", "\0", "\u{fffd}", "no extension", "ends.", "a.\0", "a.not an extension", "目录/"];
    for case in cases() {
        let expect = detect(None, None, &case.bytes, Extent::Whole);
        for (at, declared) in damaged.iter().enumerate() {
            case.check(Some(declared), None, expect.clone());
            case.check(Some(declared), names.get(at % names.len()).copied(), expect.clone());
            // If the declared type is damaged and the file name is not, the file name still counts.
            let by_name = detect(None, Some(case.file), &case.bytes, Extent::Whole);
            case.check(Some(declared), Some(case.file), by_name);
        }
    }
}

#[test]
fn a_file_cut_off_anywhere_is_never_taken_for_another_family() {
    for case in cases().into_iter().filter(|case| case.gives_away == Speak) {
        for end in (0..case.bytes.len().min(600)).chain([case.bytes.len()]) {
            let cut = &case.bytes[..end];
            let found = detect(Some(case.mime_type), Some(case.file), cut, Extent::Whole);
            let may_be = [case.kind, Other, Text];
            assert!(may_be.contains(&found.kind), "{} cut at {end}: {found:?}", case.file);
        }
    }
}
