use proptest::prelude::*;

use super::*;

fn text_of(rtf: &[u8]) -> (Result<Completeness, Stop>, String) {
    let mut sink = Sink::new(10_000);
    let outcome = read(rtf, &mut sink);
    (outcome, sink.into_text())
}

/// Checks that a document with this body has the text `expect`.
fn check(body: &str, expect: &str) {
    let rtf = format!("{{\\rtf1\\ansi\\ansicpg1252\\deff0{{\\fonttbl{{\\f0\\fnil Arial;}}}}{body}}}");
    assert_eq!(text_of(rtf.as_bytes()), (Ok(Completeness::Whole), expect.to_owned()));
}

#[test]
fn words_end_with_a_space_that_is_no_text() {
    check("\\f0\\fs24 A letter\\b  to\\b0  all.\\par Next", "A letter to all.\nNext");
    check("a\\b0b\\fs-12c", "abc");
    check("line\r\nbroken", "linebroken");
    check("a\\-b", "ab");
}

#[test]
fn what_is_escaped_is_text() {
    check("\\{a\\}\\\\b\\~c\\_d", "{a}\\b c-d");
    check("\\ldblquote a\\rdblquote\\emdash b\\bullet", "“a”—b•");
    check("a\\\nb", "a\nb");
}

#[test]
fn bytes_are_of_the_code_page_of_their_font_or_else_of_the_document() {
    check("caf\\'e9", "café");
    check("\\'zz!", "!");
    let chinese = r"{\rtf1\ansi\ansicpg936{\fonttbl{\f0\fcharset134 \'cb\'ce\'cc\'e5;}{\f1\fcharset204 Arial;}}\f0 \'c4\'e3\'ba\'c3 {\f1 \'c4\'e0}\'81A\plain\'ba
\'c3}";
    assert_eq!(text_of(chinese.as_bytes()), (Ok(Completeness::Whole), "你好 Да丄好".to_owned()));
    let raw = [b"{\\rtf1\\ansicpg936 ".as_slice(), b"\xC4\xE3\xBA\xC3", b"}"].concat();
    assert_eq!(text_of(&raw), (Ok(Completeness::Whole), "你好".to_owned()));
}

#[test]
fn unicode_replaces_what_stands_in_for_it() {
    check("\\u20320?\\u22909?", "你好");
    check("\\uc2\\u20320\\'c4\\'e3\\u22909\\'ba\\'c3!", "你好!");
    check("\\uc0\\u20320\\u22909 x", "你好x");
    check("\\u-10179?\\u-8704?", "😀");
    check("\\u-10179?a", "a");
    check("\\u8226\\bullet b", "•b");
    check("{\\u20320}?", "你?");
}

#[test]
fn what_is_not_on_the_page_is_left_out() {
    check("{\\*\\generator Writer;}{\\info{\\title no}}{\\header no}{\\stylesheet{\\s0 no;}}yes", "yes");
    check("a{\\pict\\pngblip 89504e47}b{\\pict\\bin3 }}}c}d", "abd");
    check("a{\\v hidden}b\\deleted gone\\deleted0 c", "abc");
    check("{\\field{\\*\\fldinst HYPERLINK \"x\"}{\\fldrslt link}}", "link");
    check("{\\info{\\upr{\\title a}{\\*\\ud{\\title b}}}}c", "c");
}

#[test]
fn what_is_on_the_page_is_kept_wherever_it_stands() {
    check("{\\upr{a}{\\*\\ud{\\u20320?}}}", "你");
    check("a{\\shp{\\*\\shpinst{\\sp{\\sv no}}{\\shptxt box}}{\\shprslt no}}b", "aboxb");
    check("a{\\footnote {\\super\\chftn} see b}c", "a[ see b]c");
    check("\\trowd a\\cell b\\cell\\row c\\cell d\\cell\\row\\pard e", "a\tb\t\nc\td\t\ne");
}

#[test]
fn what_follows_the_document_is_ignored() {
    check("a}{\\rtf1 b", "a");
    let (outcome, text) = text_of(b"{\\rtf1 half of");
    assert_eq!((outcome, text.as_str()), (Ok(Completeness::PartsUnreadable), "half of"));
}

#[test]
fn deep_groups_and_other_files_are_refused() {
    let deep = format!("{{\\rtf1{}", "{".repeat(1_000_000));
    assert!(matches!(text_of(deep.as_bytes()).0, Err(Stop::Unreadable(_))));
    assert!(matches!(text_of(b"plain text").0, Err(Stop::Unreadable(_))));
    assert!(matches!(text_of(b"").0, Err(Stop::Unreadable(_))));
}

#[test]
fn a_full_sink_ends_it() {
    let mut sink = Sink::new(3);
    assert_eq!(read(b"{\\rtf1 abcdef}", &mut sink), Err(Stop::Full));
    assert_eq!(sink.into_text(), "abc");
}

/// Encodes a text as RTF, with `stand_in` as the substitute for each Unicode character.
fn written(text: &str, stand_in: &str) -> String {
    let mut rtf = format!("{{\\rtf1\\ansi\\uc{}", stand_in.len());
    for character in text.chars() {
        match character {
            '{' | '}' | '\\' => rtf.extend(['\\', character]),
            ' '..='~' => rtf.push_str(&format!("{{{character}}}")),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    rtf.push_str(&format!(
                        "\\u{}{}{stand_in}",
                        *unit as i16,
                        if stand_in.is_empty() { " " } else { "" }
                    ));
                }
            }
        }
    }
    rtf + "}"
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    let control = prop::sample::select(vec![
        "{",
        "}",
        "\\",
        "{\\*",
        "\\'",
        "\\'c4",
        "\\u",
        "\\u-10179",
        "\\uc3 ",
        "\\bin9",
        "\\f1",
        "\\fonttbl",
        "\\fcharset134",
        "\\upr",
        "\\ud",
        "\\shptxt",
        "\\footnote",
        "\\par",
        "\\cell",
        "\\row",
        "\\v",
        "\\v0",
        "\\pict",
        "\\ansicpg936",
    ]);
    prop_oneof![
        control.prop_map(|control| control.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_text_comes_back_as_it_was_written(text in "[ -~é你-好😀-😎]{0,40}", stand_in in "[?a]{0,3}") {
        let (outcome, read) = text_of(written(&text, &stand_in).as_bytes());
        prop_assert_eq!(outcome, Ok(Completeness::Whole));
        prop_assert_eq!(read, text.trim_end());
    }

    #[test]
    fn nothing_makes_it_panic_or_write_more_than_it_read(pieces in prop::collection::vec(piece(), 0..60)) {
        let rtf = [b"{\\rtf1".as_slice(), &pieces.concat()].concat();
        let (_, text) = text_of(&rtf);
        prop_assert!(text.chars().count() <= rtf.len());
    }
}
