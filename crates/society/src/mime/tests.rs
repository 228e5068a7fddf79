use super::*;
use proptest::prelude::*;
use serde_json::json;

#[test]
fn what_is_a_mime_type() {
    let check = |text: &str, expect: Option<&str>| {
        assert_eq!(MimeType::parse(text), expect.map(MimeType::unchecked), "{text}");
    };
    check("image/png", Some("image/png"));
    check(" Text/HTML; charset=UTF-8 ", Some("text/html"));
    check("application/octet-stream", Some("application/octet-stream"));
    check("", None);
    check("png", None);
    check("image/", None);
    check("/png", None);
    check("image/*", None);
    check("*/*", None);
    check("image/png, image/gif", None);
    check("图片/png", None);
    check("image/a/b", None);
    check(&format!("image/{}", "x".repeat(128)), None);
}

#[test]
fn the_constants_are_mime_types() {
    for constant in [MimeType::OCTET_STREAM, MimeType::PDF, MimeType::PLAIN_TEXT] {
        assert_eq!(MimeType::parse(constant.as_str()), Some(constant));
    }
}

#[test]
fn json_keeps_any_text() {
    for text in ["image/png", "Image/PNG; x=y", "no type", ""] {
        let mime_type: MimeType = serde_json::from_value(json!(text)).unwrap();
        assert_eq!(mime_type, text);
        assert_eq!(json!(mime_type), json!(text));
    }
    let mut generator = SchemaGenerator::default();
    assert_eq!(MimeType::json_schema(&mut generator), String::json_schema(&mut generator));
}

#[test]
fn patterns() {
    let check = |pattern: &str, mime_type: &str, expect: bool| {
        let pattern = MimePattern::parse(pattern).unwrap();
        assert_eq!(pattern.matches(&MimeType::unchecked(mime_type)), expect, "{pattern} {mime_type}");
    };
    check("*/*", "application/pdf", true);
    check("*/*", "", true);
    check("image/*", "image/png", true);
    check("IMAGE/*", "image/PNG", true);
    check("image/*", "imagery/png", false);
    check("image/*", "audio/ogg", false);
    check("application/pdf", "Application/PDF; version=1.7", true);
    check("application/pdf", "application/pdfx", false);
    check(" text/csv ", "text/csv", true);
}

#[test]
fn what_is_no_pattern() {
    let check = |text: &str| assert_eq!(MimePattern::parse(text), None, "{text}");
    check("");
    check("pdf");
    check("*/pdf");
    check("*");
    check("application/");
    check("/pdf");
    check("application/p*");
    check("application/pdf, image/png");
    check("a/b/c");
    check("application/pdf; version=1.7");
    check("image/*; q=0.5");
    check("*/*; q=0.5");
}

/// Generates MIME types, patterns, and invalid texts that resemble a MIME type or a pattern.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-cA-C*]{0,2}/?[a-cA-C*+.]{0,2}(/[a-c])?[ ]?(; ?x=y)?",
        "[ \t]?[a-zA-Z!#$&^_.+*-]{1,4}/[a-zA-Z0-9!#$&^_.+*-]{1,4}[ \t;,(]?",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn parsing_a_type_again_changes_nothing(text in texts()) {
        if let Some(mime_type) = MimeType::parse(&text) {
            prop_assert_eq!(MimeType::parse(mime_type.as_str()), Some(mime_type.clone()));
            prop_assert_eq!(mime_type.essence(), mime_type.as_str());
        }
        if let Some(pattern) = MimePattern::parse(&text) {
            prop_assert_eq!(MimePattern::parse(&pattern.to_string()), Some(pattern));
        }
    }
}
