use super::forms::{FORMS, SURROUNDINGS, files, other_texts, other_values, run_left};
use super::*;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

#[track_caller]
fn check_replaced(text: &str, expected: Option<&str>) {
    let replaced = replace(text, &mut |written| Some(format!("[{}]", written.mime.unwrap_or_default())));
    assert_eq!(replaced.as_deref(), expected);
}

#[test]
fn a_data_url_gives_way_to_what_names_it() {
    let data = STANDARD.encode([7; 90]);
    check_replaced(&format!("see data:image/png;base64,{data}."), Some("see [image/png]."));
    check_replaced(&format!("![](data:image/png;base64,{data})"), Some("![]([image/png])"));
    check_replaced(&format!("data:;base64,{data} data:a/b;base64,{data}"), Some("[] [a/b]"));
    check_replaced(&format!("data:text/plain;charset=x;base64,{data}"), Some("[text/plain]"));
}

#[test]
fn what_is_no_data_url_stays() {
    check_replaced("the data: base64, they say", None);
    check_replaced("data:image/png;base64,AAAA", None);
    check_replaced(&format!("data:image/png,{}", "A".repeat(200)), None);
    check_replaced(&format!("data:a b;base64,{}", "A".repeat(200)), None);
}

#[test]
fn a_data_url_in_lines_goes_as_a_whole() {
    let data = STANDARD.encode([7; 300]);
    let lines: Vec<&str> =
        data.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    for line_break in ["\n", "\r\n"] {
        let text = format!("see data:image/png;base64,{}\nNext line.", lines.join(line_break));
        check_replaced(&text, Some("see [image/png]\nNext line."));
    }
}

#[test]
fn several_files_in_a_text_are_several() {
    let data = STANDARD.encode([b"\x89PNG\r\n\x1a\n".as_slice(), &[0; 40], &[9; 100]].concat());
    check_replaced(&format!("{data} {data}\n{data}, {data}"), Some("[] []\n[], []"));
}

#[test]
fn what_is_left_out_has_a_mark() {
    let text = format!("x data:image/png;base64,{} y", "A".repeat(65));
    assert_eq!(without_bytes(text), "x … y");
}

fn png() -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n".as_slice(), &[0, 0, 0, 13], b"IHDR", &[1; 60]].concat()
}

#[test]
fn a_whole_text_that_is_a_file() {
    let plain = STANDARD.encode(png());
    let bytes = |text: &str| nothing_but_bytes(text).map(|written| written.bytes);
    for text in [
        plain.clone(),
        format!(" data:image/png;base64,{plain}\n"),
        format!("```\n{plain}\n```"),
        format!("```base64\n{plain}\n```\n"),
        format!("\"{plain}\""),
        plain.replace('/', "\\/"),
    ] {
        assert_eq!(bytes(&text), Some(png()), "{text}");
    }
    // None of these texts is exactly one file of a known kind.
    assert_eq!(bytes(&STANDARD.encode([7; 90])), None);
    assert_eq!(bytes(&"word".repeat(30)), None);
    assert_eq!(bytes(&format!("the picture: {plain}")), None);
    assert_eq!(bytes("see below"), None);
}

#[test]
fn lists_that_are_bytes() {
    let base64 = STANDARD.encode(png());
    let lines: Vec<&str> =
        base64.as_bytes().chunks(40).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let replaced = |mut value: Value| {
        let mut found = Vec::new();
        replace_in(&mut value, &mut |written| {
            found.push(written.bytes);
            Some("[it]".to_owned())
        });
        (value, found)
    };
    assert_eq!(replaced(json!({"data": lines})), (json!({"data": "[it]"}), vec![png()]));
    let buffer = json!({"type": "Buffer", "data": png()});
    assert_eq!(replaced(buffer), (json!({"type": "Buffer", "data": "[it]"}), vec![png()]));
    assert_eq!(replaced(json!([base64, base64])), (json!(["[it]", "[it]"]), vec![png(), png()]));
    assert_eq!(replaced(json!({ base64: 1 })), (json!({"[it]": 1}), vec![png()]));
    for other in [json!([1, 2, 3]), json!(["a", "b"]), json!((0..=255).collect::<Vec<u8>>())] {
        assert_eq!(replaced(other.clone()), (other, vec![]));
    }
}

#[test]
fn an_example_of_how_a_file_begins_is_for_people() {
    check_replaced("a PNG begins with 89 50 4E 47 0D 0A 1A 0A 00 00 00 0D 49 48 44 52", None);
    check_replaced("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB…", None);
}

/// Every certificate begins with the same characters as this example.
#[test]
fn a_certificate_is_a_text() {
    let lines =
        format!("MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n{}", "RTESMBAG".repeat(8));
    check_replaced(&format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"), None);
}

/// The search must stay fast even if every place of the text looks like the beginning of a file.
#[test]
fn a_text_made_to_take_long_is_looked_through_in_passing() {
    for piece in [
        "/9j/4AAQSkZJ",
        "ffd8ffe000104a46",
        "SUQzBAAA",
        "0 0 ",
        "iVBO",
        "data:;base64,",
        "UklGRg\n",
        "\"\\/",
        "AAAAAAAAAAAAAAAA \\u002b",
        "A +",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        let _ = find(&text);
    }
}

#[test]
fn a_piece_of_what_is_known_is_told_wherever_it_was_cut_out() {
    let bytes: Vec<u8> =
        (0..2_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut known = Fragments::default();
    known.know(&bytes);
    let base64 = STANDARD.encode(&bytes);
    let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    for start in 500..520 {
        for piece in [&base64[start..start + 64], &hexadecimal[start..start + 64]] {
            let mut text = format!("the piece {piece} of it");
            known.leave_out(&mut text);
            assert_eq!(text, "the piece … of it", "{start}");
        }
    }
    let mut other = json!(["f00dfeed".repeat(9), STANDARD.encode(&bytes[3..]).to_lowercase()]);
    let before = other.clone();
    known.leave_out_in(&mut other);
    assert_eq!(other, before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Decoding returns the same bytes for every form of base64.
    #[test]
    fn bytes_come_back_from_every_form(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let encoded = STANDARD.encode(&bytes);
        let lines: Vec<String> =
            encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        for form in [
            encoded.clone(),
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
            lines.join("\n"),
            format!("data:image/png;base64,{encoded}"),
            format!("```\n{encoded}\n```"),
        ] {
            prop_assert_eq!(&decode(&form).unwrap().bytes, &bytes);
        }
    }

    /// Contract section 3: a file of a known kind is found in every form and in all surroundings.
    #[test]
    fn a_file_is_found_in_every_form_and_surroundings(
        bytes in files(),
        form in select(FORMS.to_vec()),
        surroundings in select(SURROUNDINGS.to_vec()),
    ) {
        let text = (surroundings.1)(&(form.1)(&bytes));
        let mut stored = Vec::new();
        let replaced = replace(&text, &mut |written| {
            stored.push(written.bytes);
            Some("[it]".to_owned())
        });
        let replaced = replaced.unwrap_or_else(|| text.clone());
        // The search may miss a short last line, because it cannot tell a few digits from a word.
        let [only] = &stored[..] else {
            return Err(TestCaseError::fail(format!("{} in {}: {} in {text}", form.0, surroundings.0, stored.len())));
        };
        prop_assert!(
            bytes.starts_with(only) && bytes.len() < only.len() + 16,
            "{} in {}: {} of {} bytes in {text}", form.0, surroundings.0, only.len(), bytes.len()
        );
        prop_assert_eq!(run_left(&replaced, &bytes), None, "{} in {}: {}", form.0, surroundings.0, replaced);
    }

    /// The search does not change a text that contains no binary data.
    #[test]
    fn other_texts_stay_as_they_are(text in other_texts(), value in other_values()) {
        prop_assert_eq!(replace(&text, &mut |_| Some(String::new())), None);
        let mut same = value.clone();
        replace_in(&mut same, &mut |_| Some(String::new()));
        prop_assert_eq!(&same, &value);
        prop_assert!(!holds_bytes(&value));
    }

    /// `leave_out` also removes long runs of base64 that cannot be decoded.
    #[test]
    fn no_run_of_base64_is_left_in_a_quotation(
        bytes in proptest::collection::vec(any::<u8>(), 65..300),
        before in "[ -~]{0,80}",
        after in "\\PC{0,80}",
    ) {
        for form in [STANDARD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            let kept = leave_out(&format!("{before} {form} {after}"));
            prop_assert!(long_runs(&kept).is_empty(), "{kept}");
        }
    }
}
