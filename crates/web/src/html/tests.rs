mod hostile;

use url::Url;

use super::{Part, Readable, read_html};

pub(super) fn read(html: &str) -> Readable {
    read_html(html, &Url::parse("https://example.com/docs/2.1/config.html").expect("a URL"))
}

fn shown(readable: &Readable) -> String {
    use std::fmt::Write as _;

    let mut shown = String::new();
    for (name, value) in [
        ("title", &readable.title),
        ("byline", &readable.byline),
        ("site", &readable.site),
        ("published", &readable.published),
        ("language", &readable.language),
    ] {
        if let Some(value) = value {
            let _ = writeln!(shown, "{name}: {value}");
        }
    }
    let _ = writeln!(shown, "part: {:?}, hidden: {}, {:?}", readable.part, readable.hidden, readable.cut);
    let _ = writeln!(shown, "---\n{}\n---", readable.markdown.replace("  \n", "··\n"));
    for link in &readable.links {
        let _ = writeln!(shown, "{}: {}", link.text, link.url);
    }
    shown
}

#[test]
fn an_article_is_read_without_its_surroundings() {
    insta::assert_snapshot!(shown(&read(include_str!("tests/pages/article.html"))));
}

#[test]
fn a_page_of_documentation_keeps_code_and_definitions() {
    insta::assert_snapshot!(shown(&read(include_str!("tests/pages/docs.html"))));
}

#[test]
fn a_forum_keeps_all_posts() {
    let readable = read(include_str!("tests/pages/forum.html"));
    for words in ["hums since the winter", "Check the bearing", "air in the hose", "Thank you both"] {
        assert!(readable.markdown.contains(words), "{words}: {}", readable.markdown);
    }
    insta::assert_snapshot!(shown(&readable));
}

#[test]
fn orders_that_a_reader_does_not_see_are_left_out() {
    let readable = read(include_str!("tests/pages/orders.html"));
    assert!(!shown(&readable).contains("ORDER"), "{}", shown(&readable));
    for words in ["Tomorrow is sunny", "On Friday it rains", "pollen count", "Sunset is at"] {
        assert!(readable.markdown.contains(words), "{words}: {}", readable.markdown);
    }
    insta::assert_snapshot!(shown(&readable));
}

#[test]
fn a_chinese_page_is_read_like_an_english_one() {
    let readable = read(include_str!("tests/pages/chinese.html"));
    assert_eq!(readable.part, Part::Main);
    insta::assert_snapshot!(shown(&readable));
}

#[test]
fn the_same_page_gives_the_same_text() {
    for page in [include_str!("tests/pages/article.html"), include_str!("tests/pages/forum.html")] {
        let first = read(page);
        for _ in 0..10 {
            assert_eq!(read(page), first);
        }
    }
}

#[test]
fn a_page_without_text_is_empty_and_no_error() {
    for html in ["", " ", "<html></html>", "<script>x</script>", "\u{0}", "<", "<!--", "<body hidden>x"] {
        assert_eq!(read(html).markdown.trim_matches(['\\', '<', '\u{fffd}']), "", "{html:?}");
    }
    assert_eq!(read("<p>one").markdown, "one");
    assert_eq!(read("just text").markdown, "just text");
}
