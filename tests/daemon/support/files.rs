//! Files that tests attach, and functions that search for the bytes of these files where they must not be.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use polity_tests::Polity;

/// The example picture of the repository, a PNG.
pub(crate) const PICTURE: &[u8] = include_bytes!("../../../examples/picture.png");

/// Writes a file into the home and returns its path for use as a command-line argument.
#[track_caller]
pub(crate) fn write(polity: &Polity, name: &str, bytes: &[u8]) -> String {
    let path = polity.home().join(name);
    std::fs::write(&path, bytes).expect("a file");
    path.to_str().expect("a path of text").to_owned()
}

/// Returns a WAV file with one second of sound: mono, eight bits, 8 kHz.
pub(crate) fn wave() -> Vec<u8> {
    let samples: Vec<u8> = (0..8000_u32).map(|at| (at * at % 251).to_le_bytes()[0]).collect();
    let length = u32::try_from(samples.len()).expect("a short sound");
    let mut wave = Vec::from(*b"RIFF");
    wave.extend((length + 36).to_le_bytes());
    wave.extend(*b"WAVEfmt ");
    wave.extend(16_u32.to_le_bytes());
    for number in [1_u16, 1] {
        wave.extend(number.to_le_bytes());
    }
    for number in [8000_u32, 8000] {
        wave.extend(number.to_le_bytes());
    }
    for number in [1_u16, 8] {
        wave.extend(number.to_le_bytes());
    }
    wave.extend(*b"data");
    wave.extend(length.to_le_bytes());
    wave.extend(samples);
    wave
}

/// Returns bytes that only begin and end like a PDF file.
pub(crate) fn pdf() -> Vec<u8> {
    let mut pdf = Vec::from(*b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n");
    pdf.extend((0..600_u32).map(|at| (at * at % 253).to_le_bytes()[0]));
    pdf.extend(*b"\n%%EOF\n");
    pdf
}

/// Encodes bytes in base64, as requests do.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[track_caller]
pub(crate) fn from_base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("base64")
}

/// Returns the bytes of a data URL of this MIME type.
#[track_caller]
pub(crate) fn from_data_url(url: &str, mime_type: &str) -> Vec<u8> {
    let data = url.strip_prefix(&format!("data:{mime_type};base64,"));
    from_base64(data.unwrap_or_else(|| panic!("not a data URL of {mime_type}: {:.80}", url)))
}

/// A text counts as a copy of a file if it contains this many successive characters of the file's base64.
const RUN: usize = 64;

/// Encodes bytes in hexadecimal, with `before` in front of each byte and with the separator `between`.
pub(crate) fn hexadecimal(bytes: &[u8], before: &str, between: &str) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{before}{byte:02x}")).collect();
    bytes.join(between)
}

/// Searches the haystack for 64 successive characters of the file's base64 or hexadecimal form. Returns the first
/// match. Also finds a match in which JSON has added backslashes.
pub(crate) fn run_of(haystack: &[u8], file: &[u8]) -> Option<String> {
    let (plain, hexadecimal) = (base64(file), hexadecimal(file, "", ""));
    let for_addresses = plain.replace('+', "-").replace('/', "_");
    let forms = [plain, for_addresses, hexadecimal.to_uppercase(), hexadecimal];
    let runs: HashSet<&[u8]> = forms.iter().flat_map(|form| form.as_bytes().windows(RUN)).collect();
    let bare: Vec<u8> = haystack.iter().copied().filter(|byte| *byte != b'\\').collect();
    let mut windows = haystack.windows(RUN).chain(bare.windows(RUN));
    let found = windows.find(|window| runs.contains(window))?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// Returns whether the haystack contains 64 successive characters of the file's base64.
pub(crate) fn holds_base64_of(haystack: &[u8], file: &[u8]) -> bool {
    let encoded = base64(file);
    let runs: HashSet<&[u8]> = encoded.as_bytes().windows(RUN).collect();
    assert!(!runs.is_empty(), "the file is too short to be searched for");
    haystack.windows(RUN).any(|window| runs.contains(window))
}

/// Returns the paths of all files below a directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Fails if the database or its write-ahead log contains base64 of the file.
#[track_caller]
pub(crate) fn assert_not_in_database(polity: &Polity, file: &[u8]) {
    let files = files_below(&polity.data_dir());
    let of_database = |path: &&PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("polity.db"))
    };
    let of_database: Vec<&PathBuf> = files.iter().filter(of_database).collect();
    assert!(!of_database.is_empty(), "there is no database");
    for path in of_database {
        let bytes = std::fs::read(path).expect("a file");
        assert!(!holds_base64_of(&bytes, file), "{}", path.display());
    }
}
