//! Tests with pages that an attacker could write to slow down or crash polity.

use proptest::prelude::*;
use rustix::time::{ClockId, clock_gettime};

use super::super::{Cut, Readable};
use super::read;

/// Reads a page in a thread with the stack size of tokio's blocking threads, and checks how much processor time the
/// thread used. The test measures processor time, because other work of the machine does not change it. Reading a tree
/// within the bounds takes far less time than the limit. Quadratic work takes far more.
fn survived(what: &str, html: String) -> Readable {
    let reader = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(move || (read(&html), used()));
    let (readable, used) = reader.expect("a thread").join().expect(what);
    println!("{what}: {used} seconds, {} bytes of text", readable.markdown.len());
    assert!(used < 30, "{what} took {used} seconds");
    readable
}

/// Returns the processor time of this thread, in seconds.
fn used() -> i64 {
    clock_gettime(ClockId::ThreadCPUTime).tv_sec
}

#[test]
fn nesting_without_end_neither_overflows_the_stack_nor_takes_forever() {
    for tag in [
        "div",
        "b",
        "blockquote",
        "ul",
        "ul><li",
        "ol><li",
        "table><tr><td",
        "span",
        "a href=x",
        "font",
        "svg",
        "template",
        "select",
        "button",
        "p",
        "dl><dd",
        "math",
        "form",
        "h1",
        "pre",
        "q",
        "nobr",
    ] {
        let count = 100_000;
        let html = format!("{}deep{}", format!("<{tag}>").repeat(count), "<p>after".repeat(10));
        let readable = survived(&format!("{count} <{tag}>"), html);
        if tag == "div" {
            assert_eq!(readable.cut, Cut::Shortened);
            assert_eq!(readable.markdown.matches("after").count(), 10, "{}", readable.markdown);
        }
    }
}

#[test]
fn unclosed_formatting_does_not_multiply() {
    let mut html = String::new();
    for at in 0..5000 {
        html.push_str(&format!("<b a={at}><i a={at}>"));
    }
    html.push_str(&"<p>x</p>".repeat(50_000));
    survived("formatting that is never closed", html);
    let misnested = "<a><b><i><u><s></a></b></i></u></s><p>x".repeat(10_000);
    survived("misnested formatting", misnested);
    survived(
        "formatting in tables",
        format!("{}{}", "<b x=1><table>".repeat(200), "<i>y<td>x".repeat(20_000)),
    );
}

#[test]
fn much_of_one_thing_is_read_in_bounded_time() {
    for (what, html) in [
        ("paragraphs", "<p>Some words, and some more words.</p>".repeat(100_000)),
        ("unclosed paragraphs", "<p>Some words, and some more words.".repeat(100_000)),
        ("line breaks", "a<br>".repeat(200_000)),
        ("links", "<a href=/x>link</a> ".repeat(60_000)),
        ("rows", format!("<table>{}</table>", "<tr><td>a</td><td>b</td></tr>".repeat(30_000))),
        ("items", format!("<ul>{}</ul>", "<li>an item<p>b</p></li>".repeat(40_000))),
        ("one long word", format!("<p>{}</p>", "a".repeat(4_000_000))),
        ("brackets", format!("<p>{}</p>", "[".repeat(1_000_000))),
        ("attributes", format!("<p {}>x", (0..100_000).map(|at| format!("a{at}=b ")).collect::<String>())),
        ("classes", format!("<p class=\"{}\">x", "a ".repeat(500_000))),
        (
            "rules",
            format!(
                "<style>{}</style>{}",
                "p p p p p{display:none}".repeat(10_000),
                "<div><p>x</p></div>".repeat(20_000)
            ),
        ),
        ("open blocks of style", format!("<style>{}", "@media print{".repeat(200_000))),
        ("closing tags", "</p></b></br></div>".repeat(100_000)),
        ("entities", "&amp;&#x41;&notit;".repeat(200_000)),
        ("images", "<img src=/a alt=b>".repeat(60_000)),
        ("comments", "<!-- x -->".repeat(300_000)),
        ("quoted lines", format!("{}{}", "<blockquote>".repeat(150), "line<br>".repeat(50_000))),
        (
            "nested paragraphs",
            format!("{}{}", "<div>".repeat(150), "<div><p>Some words, and more.</p></div>".repeat(20_000)),
        ),
    ] {
        survived(what, html);
    }
}

#[test]
fn a_page_that_is_too_long_is_cut_at_a_character() {
    let readable =
        survived("9 MiB of Chinese", format!("<title>t</title><p>{}", "汉".repeat(3 * 1024 * 1024)));
    assert_eq!(readable.cut, Cut::Shortened);
    assert!(readable.markdown.chars().all(|char| char == '汉'));
}

fn any_html() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "<p>",
            "</p>",
            "<div style='display:none'>",
            "</div>",
            "<div>",
            "<b>",
            "</b>",
            "<a href='../x?y#z'>",
            "</a>",
            "<table>",
            "<tr>",
            "<td>",
            "</table>",
            "<ul>",
            "<li>",
            "</ul>",
            "<blockquote>",
            "</blockquote>",
            "<pre>",
            "</pre>",
            "<code>",
            "</code>",
            "<h1>",
            "</h1>",
            "<!--",
            "-->",
            "<script>",
            "</script>",
            "<style>p{display:none}",
            "</style>",
            "<br>",
            "<img src=x alt=y>",
            "<svg>",
            "</svg>",
            "<template>",
            "</template>",
            "<title>",
            "</title>",
            "<body>",
            "</body>",
            "<html>",
            "</html>",
            "<frameset>",
            "<select>",
            "<option>",
            "<math>",
            "<plaintext>",
            "<textarea>",
            "<base href='http://b.example/'>",
            "<ol start=99999999999>",
            "&lt;",
            "&#0;",
            "]]>",
            "\u{202e}",
        ])
        .prop_map(str::to_owned),
        "[a-z \\n*_#\\[\\]()`|~-]{0,12}",
        "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, source_file: Some(file!()), ..ProptestConfig::default() })]

    #[test]
    fn any_html_is_read_the_same_way_twice_without_unseen_characters(html in any_html()) {
        let readable = read(&html);
        prop_assert_eq!(&readable, &read(&html));
        let unseen = readable.markdown.contains(['\u{202e}', '\u{0}']);
        prop_assert!(!unseen);
        prop_assert!(readable.links.iter().all(|link| matches!(link.url.scheme(), "http" | "https")));
    }

    #[test]
    fn text_in_a_hidden_element_never_appears(before in harmless_html(), inside in harmless_html(), way in 0_usize..7) {
        let hidden = [
            "<div hidden>", "<div style='display:none'>", "<div aria-hidden=true>", "<p class=x>", "<p id=y>",
            "<div style='font-size:0;color:red'>", "<div style='position:absolute;left:-999em'>",
        ][way];
        let html = format!("<style>.x,div b{{}} .x{{display:none}}\n#y{{visibility:hidden}}</style>{before}{hidden}{inside} canary");
        let readable = read(&html);
        prop_assert!(!readable.markdown.contains("canary"), "{}", readable.markdown);
        prop_assert!(!readable.links.iter().any(|link| link.text.contains("canary")));
    }
}

/// Generates HTML whose end tags close only elements of this HTML, never an element around it.
fn harmless_html() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "<b>",
            "</b>",
            "<i>x</i>",
            "<span class=x>y</span>",
            "<em>",
            "<a href=/z>z</a>",
            "<br>",
            "<img src=x alt=y>",
            "<code>",
            "</code>",
            "<u>",
            "</u>",
            "&lt;",
            "<!-- x -->",
            "<script>z</script>",
        ])
        .prop_map(str::to_owned),
        "[a-z \\n*_#]{0,12}",
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}
