//! Test data: files of known kinds, encoded in the forms that models use, within other texts.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// Generates files of known kinds: each has a valid beginning, followed by random bytes.
pub fn files() -> impl Strategy<Value = Vec<u8>> {
    let beginnings: Vec<&[u8]> = vec![
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0\x08\x06\0\0\0",
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0",
        b"GIF89a\x40\x01\xf0\0\xf7\0\0",
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
        b"RIFF\x24\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x02\0\x44\xac\0\0",
        b"PK\x03\x04\x14\0\0\0\x08\0\x21\x5a\x7b\x59\xd1\x0c\x44\x2f\0\x01\0\0\0\x02\0\0\x05\0\0\0a.bin",
        b"ID3\x04\0\0\0\0\0\x23TSSE\0\0\0\x0f\0\0\x03Lavf58.76\0",
        b"OggS\0\x02\0\0\0\0\0\0\0\0\x4a\x9b\x11\x22\0\0\0\0\x8c\x4b\x33\x20\x01\x1eOpusHead",
        b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xed\xbd",
        b"RIFF\x24\x08\0\0WEBPVP8 \x10\x07\0\0",
    ];
    (select(beginnings), proptest::collection::vec(any::<u8>(), 200..700))
        .prop_map(|(beginning, rest)| [beginning, &rest].concat())
}

/// A form in which a model may write binary data: the name of the form, and a function that encodes the data.
pub type Form = (&'static str, fn(&[u8]) -> String);

fn in_lines(bytes: &[u8], length: usize, line_break: &str) -> String {
    let base64 = STANDARD.encode(bytes);
    let lines: Vec<&str> =
        base64.as_bytes().chunks(length).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    lines.join(line_break)
}

fn in_hexadecimal(bytes: &[u8], before: &str, between: &str) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{before}{byte:02x}")).collect();
    bytes.join(between)
}

fn percent(text: &str) -> String {
    text.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

/// All forms that the tests use. Most of these forms were seen in answers of models.
pub const FORMS: [Form; 29] = [
    ("base64", |bytes| STANDARD.encode(bytes)),
    ("base64 without padding", |bytes| STANDARD_NO_PAD.encode(bytes)),
    ("base64 for addresses", |bytes| URL_SAFE.encode(bytes)),
    ("base64 for addresses without padding", |bytes| URL_SAFE_NO_PAD.encode(bytes)),
    ("lines of 76", |bytes| in_lines(bytes, 76, "\n")),
    ("lines of 64, from Windows", |bytes| in_lines(bytes, 64, "\r\n")),
    ("short lines", |bytes| in_lines(bytes, 20, "\n")),
    ("long lines", |bytes| in_lines(bytes, 200, "\n")),
    ("indented lines", |bytes| format!("    {}", in_lines(bytes, 76, "\n    "))),
    ("quoted lines", |bytes| format!("> {}", in_lines(bytes, 76, "\n> "))),
    ("a comment", |bytes| format!("// {}", in_lines(bytes, 76, "\n// "))),
    ("lines as JSON has them", |bytes| in_lines(bytes, 76, "\\n")),
    ("lines as JSON in JSON has them", |bytes| in_lines(bytes, 76, "\\\\r\\\\n")),
    ("strings that are joined", |bytes| format!("\"{}\"", in_lines(bytes, 60, "\" +\n  \""))),
    ("strings in a list", |bytes| format!("[\"{}\"]", in_lines(bytes, 60, "\", \""))),
    ("blanks for line ends", |bytes| in_lines(bytes, 76, " ")),
    ("a data URL", |bytes| format!("data:image/png;base64,{}", STANDARD.encode(bytes))),
    ("a data URL in lines", |bytes| format!("data:image/png;base64,{}", in_lines(bytes, 76, "\n"))),
    ("a data URL within an address", |bytes| {
        percent(&format!("data:image/png;base64,{}", STANDARD.encode(bytes)))
    }),
    ("within an address within an address", |bytes| percent(&STANDARD.encode(bytes)).replace('%', "%25")),
    ("slashes that are escaped", |bytes| STANDARD.encode(bytes).replace('/', "\\/")),
    ("all that is escaped as .NET does it", |bytes| {
        STANDARD.encode(bytes).replace('+', "\\u002B").replace('/', "\\u002f").replace('=', "\\u003d")
    }),
    ("hexadecimal", |bytes| in_hexadecimal(bytes, "", "")),
    ("hexadecimal in capitals", |bytes| in_hexadecimal(bytes, "", "").to_uppercase()),
    ("hexadecimal with blanks", |bytes| in_hexadecimal(bytes, "", " ")),
    ("hexadecimal with colons", |bytes| in_hexadecimal(bytes, "", ":")),
    ("hexadecimal as C has it", |bytes| in_hexadecimal(bytes, "0x", ", ")),
    ("hexadecimal as Python has it", |bytes| in_hexadecimal(bytes, "\\x", "")),
    ("hexadecimal in lines", |bytes| {
        let lines: Vec<String> = bytes.chunks(32).map(|line| in_hexadecimal(line, "", "")).collect();
        lines.join("\n")
    }),
];

/// A text that may surround encoded data: the name of the text, and a function that puts the data into the text.
pub type Surroundings = (&'static str, fn(&str) -> String);

/// The texts in which models put encoded data.
pub const SURROUNDINGS: [Surroundings; 14] = [
    ("nothing", |form| form.to_owned()),
    ("words", |form| format!("Here is the picture: {form} and that was the picture.")),
    ("lines of words", |form| format!("Here is the picture:\n\n{form}\n\nThat was the picture.")),
    ("words right below", |form| format!("The picture\n{form}\nThat was it, as you see.")),
    ("Chinese", |form| format!("图片：{form}。请看。")),
    ("a fence", |form| format!("Look:\n```base64\n{form}\n```\nDone.")),
    ("a fence in a list", |form| format!("1. Look:\n   ```\n   {form}\n   ```\n2. Done.")),
    ("JSON", |form| json!({"type": "image", "data": form, "size": 3}).to_string()),
    ("JSON in JSON", |form| {
        json!({"result": json!({"image": {"data": form}, "n": 1}).to_string()}).to_string()
    }),
    ("a page", |form| format!("<p>Look</p><img src=\"{form}\" alt='a picture'/><p>Done</p>")),
    ("brackets", |form| format!("![a picture]({form})")),
    ("code", |form| format!("const picture = '{form}';\nshow(picture);")),
    ("a name right before it", |form| format!("picture_base64={form};")),
    ("a number of its length right behind", |form| format!("[{form}](1234 bytes)")),
];

/// Looks in a text for 64 digits of base64 or hexadecimal that encode a part of `bytes`. Also finds digits that are
/// escaped in the text. Returns the first 64 such digits.
pub fn run_left(text: &str, bytes: &[u8]) -> Option<String> {
    let plain = text.replace("\\u002B", "+").replace("\\u002f", "/").replace("%2B", "+").replace("%2F", "/");
    let texts = [text.to_owned(), plain.replace('\\', "")];
    let hexadecimal = in_hexadecimal(bytes, "", "");
    let forms = [STANDARD.encode(bytes), URL_SAFE.encode(bytes), hexadecimal.to_uppercase(), hexadecimal];
    let runs = forms.iter().flat_map(|form| (0..=form.len().saturating_sub(64)).map(|at| &form[at..at + 64]));
    let left = |run: &&str| texts.iter().any(|text| text.contains(run));
    let mut runs: Vec<&str> = runs.collect();
    runs.dedup();
    runs.into_iter().find(left).map(str::to_owned)
}

/// Generates texts of many sorts. Many of these texts resemble binary data, but none contains any.
pub fn other_texts() -> impl Strategy<Value = String> {
    let words = "([a-z]{1,12}[ ,.\n]){0,80}";
    let code =
        "(    let [a-z_]{3,40} = [a-z_]{3,30}\\(\"[a-zA-Z0-9/_.-]{0,90}\", 0x[0-9a-f]{2,16}\\);\n){0,12}";
    let digests = "(sha256:[0-9a-f]{64}  [a-z/]{3,30}\n){0,10}";
    let bare_digests = "([0-9a-f]{128}\n){0,8}";
    let numbers = "(-?[0-9]{1,20}(\\.[0-9]{1,9})?, ){0,60}";
    let addresses = "https://[a-z]{3,12}\\.example/[a-zA-Z0-9/_-]{40,200}\\?q=[a-zA-Z0-9%=&_-]{0,200}";
    let paths = "(/home/me/src/[a-z]{3,12}/[a-zA-Z0-9/_-]{40,120}\n){0,6}";
    let genes = "([ACGT]{60}\n){0,12}";
    let digits = "[0-9]{64,600}";
    let names = "[a-z]{4,10}([A-Z][a-z]{3,10}){8,30}";
    let tokens = "eyJhbGciOiJIUzI1NiJ9\\.eyJzdWIiOiI[a-zA-Z0-9_-]{60,300}\\.[a-zA-Z0-9_-]{43}";
    let bytes = proptest::collection::vec(any::<u8>(), 48..600);
    // Some model services send a signature that begins with these three bytes. If the random bytes came first, they
    // could by chance begin like a known file.
    let sealed = bytes.prop_map(|bytes| STANDARD.encode([b"\x0a\xd2\x01".as_slice(), &bytes].concat()));
    let encoded_words = words.prop_map(|words: String| in_lines(words.as_bytes(), 76, "\n"));
    prop_oneof![
        words,
        code,
        digests,
        bare_digests,
        numbers,
        addresses,
        paths,
        genes,
        digits,
        names,
        tokens,
        sealed,
        encoded_words,
        any::<String>(),
    ]
}

/// Generates JSON values whose texts contain no binary data.
pub fn other_values() -> impl Strategy<Value = Value> {
    proptest::collection::vec(other_texts(), 1..4).prop_map(|texts| {
        json!({"texts": texts, "nested": {"text": texts.concat(), "in_json": json!(texts).to_string()}, "n": [1, 2, 300]})
    })
}
