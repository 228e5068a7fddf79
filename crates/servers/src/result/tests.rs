//! Tests of all kinds of results, including hostile ones.

use super::*;
use proptest::prelude::*;

fn converted(result: Value) -> Result<Output, String> {
    let server = ServerName::new("s").unwrap();
    let bounds = Bounds { files: 3, ..Bounds::default() };
    output(&server, "t", serde_json::from_value(result).unwrap(), Linked::new(), &bounds)
}

fn from_server(content: Content, files: Vec<File>) -> Output {
    let sources = BTreeSet::from([Source::Server(ServerName::new("s").unwrap())]);
    Output { content, files, referred: None, sources, goes_on: None }
}

fn text(text: &str) -> Content {
    Content::Text { origin: "s: t".to_owned(), text: text.to_owned() }
}

fn file(bytes: &'static [u8], mime: &str, filename: Option<&str>) -> File {
    File {
        bytes: Bytes::from_static(bytes),
        declared_mime: Some(mime.to_owned()),
        filename: filename.map(str::to_owned),
    }
}

#[test]
fn texts_are_joined() {
    let result = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b\nc"}]});
    assert_eq!(converted(result).unwrap(), from_server(text("a\nb\nc"), Vec::new()));
    assert_eq!(converted(json!({"content": []})).unwrap(), from_server(text(""), Vec::new()));
}

#[test]
fn media_and_resources_become_files() {
    let result = json!({"content": [
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {"type": "audio", "data": " aGk=\n", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "file:///x/a.txt?b#c", "mimeType": "text/plain", "text": "hi"}},
        {"type": "resource", "resource": {"uri": "x:", "mimeType": "a/b", "blob": "aGk="}},
        {"type": "image", "data": "!", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///x/b", "name": "b\nc", "mimeType": "text/plain"},
    ]});
    let said = concat!(
        "[a file of the result is not valid base64: Invalid symbol 33, offset 0.]\n",
        "[resource b c: file:///x/b (text/plain)]\n",
        "[1 further files of the result were left out]",
    );
    let files = vec![
        file(b"hi", "image/png", None),
        file(b"hi", "audio/wav", None),
        file(b"hi", "text/plain", Some("a.txt")),
    ];
    assert_eq!(converted(result).unwrap(), from_server(text(said), files));
}

/// A link becomes a line of text. If its resource was read, the result also gets the files of the resource. Otherwise
/// it gets only the line.
#[test]
fn what_a_link_leads_to_becomes_files() {
    let link =
        |name: &str, uri: &str| json!({"type": "resource_link", "name": name, "uri": uri, "mimeType": "a/b"});
    let result = json!({"content": [
        link("both", "x://d/both"),
        link("page", "https://e"),
        link("gone", "x://gone"),
        link("both", "x://d/both"),
        link("many", "x://many"),
    ]});
    let read = |contents: Value| Ok(serde_json::from_value(contents).unwrap());
    let both = json!([
        {"uri": "x://d/one.txt", "mimeType": "text/plain", "text": "hi"},
        {"uri": "x://d/two", "blob": "aGk="},
    ]);
    let many = json!([{"uri": "x://1", "text": "hi"}, {"uri": "x://2", "text": "hi"}]);
    let linked = Linked::from([
        ("x://d/both".to_owned(), read(both)),
        ("x://gone".to_owned(), Err("not\nfound".to_owned())),
        ("x://many".to_owned(), read(many)),
    ]);
    let server = ServerName::new("s").unwrap();
    let bounds = Bounds { files: 3, ..Bounds::default() };
    let output = output(&server, "t", serde_json::from_value(result).unwrap(), linked, &bounds).unwrap();
    let said = concat!(
        "[resource both: x://d/both (a/b)]\n",
        "[resource page: https://e (a/b)]\n",
        "[resource gone: x://gone (a/b); it could not be read: not found]\n",
        "[resource both: x://d/both (a/b)]\n",
        "[resource many: x://many (a/b)]\n",
        "[1 further files of the result were left out]",
    );
    let files = vec![
        file(b"hi", "text/plain", Some("one.txt")),
        file(b"hi", "a/b", Some("two")),
        file(b"hi", "a/b", Some("1")),
    ];
    assert_eq!(output, from_server(text(said), files));
}

#[test]
fn structured_content_stays_json() {
    let check = |result: Value, expect: Value| {
        assert_eq!(converted(result).unwrap(), from_server(Content::Json(expect), Vec::new()));
    };
    let block = |text: &str| json!([{"type": "text", "text": text}]);
    check(json!({"content": [], "structuredContent": [1]}), json!([1]));
    check(json!({"content": block("{\"a\": 1}"), "structuredContent": {"a": 1}}), json!({"a": 1}));
    check(json!({"content": block("hi"), "structuredContent": {"result": "hi"}}), json!({"result": "hi"}));
    check(json!({"content": block("[2]"), "structuredContent": {"result": [2]}}), json!({"result": [2]}));
    check(
        json!({"content": block("more"), "structuredContent": {"a": 1}}),
        json!({"structuredContent": {"a": 1}, "text": "more"}),
    );
}

#[test]
fn an_error_is_a_reason() {
    let check = |result: Value, expect: &str| assert_eq!(converted(result).unwrap_err(), expect);
    check(json!({"isError": true, "content": [{"type": "text", "text": "no such file"}]}), "no such file");
    check(json!({"isError": true, "content": [], "structuredContent": {"code": 5}}), r#"{"code":5}"#);
    check(json!({"isError": true, "content": []}), "the server gives no reason");
}

#[test]
fn long_texts_are_cut() {
    let bounds = Bounds { text_chars: 5, description_chars: 3, ..Bounds::default() };
    let server = ServerName::new("s").unwrap();
    let long = |is_error: bool| {
        let result = json!({"isError": is_error, "content": [{"type": "text", "text": "文".repeat(50)}]});
        output(&server, "t", serde_json::from_value(result).unwrap(), Linked::new(), &bounds)
    };
    assert_eq!(long(false).unwrap().content, text("文文文文文…"));
    assert_eq!(long(true).unwrap_err(), "文文文…");
}

/// `read_text_file` of the official server `filesystem` returns the text of a file twice.
#[test]
fn a_long_text_that_repeats_the_structured_content_is_left_out() {
    let bounds = Bounds { text_chars: 5, ..Bounds::default() };
    let server = ServerName::new("s").unwrap();
    let with_text = |text: &str| {
        let file = json!({"content": "文".repeat(50)});
        let result = json!({"content": [{"type": "text", "text": text}], "structuredContent": file});
        output(&server, "t", serde_json::from_value(result).unwrap(), Linked::new(), &bounds).unwrap().content
    };
    let file = json!({"content": "文".repeat(50)});
    assert_eq!(with_text(&"文".repeat(50)), Content::Json(file.clone()));
    assert_eq!(with_text(&file.to_string()), Content::Json(file.clone()));
    let other = json!({"structuredContent": file, "text": "other…"});
    assert_eq!(with_text("other text"), Content::Json(other));
}

proptest! {
    #[test]
    fn every_result_names_its_server_and_stays_within_its_bounds(
        tool in "[ -~\n\u{1}文]{0,60}",
        blocks in prop::collection::vec((0..6_u8, "[A-Za-z+/=! \n]{0,12}"), 0..12),
    ) {
        let blocks: Vec<Value> = blocks.into_iter().map(|(kind, data)| match kind {
            0 => json!({"type": "text", "text": data}),
            1 => json!({"type": "image", "data": data, "mimeType": data}),
            2 => json!({"type": "audio", "data": data, "mimeType": data}),
            3 => json!({"type": "resource", "resource": {"uri": data, "text": data}}),
            4 => json!({"type": "resource", "resource": {"uri": data, "blob": data}}),
            _ => json!({"type": "resource_link", "uri": data, "name": data}),
        }).collect();
        let count = blocks.len();
        let server = ServerName::new("s").unwrap();
        let bounds = Bounds { files: 3, line_chars: 20, ..Bounds::default() };
        let result = serde_json::from_value(json!({"content": blocks})).unwrap();
        let output = output(&server, &tool, result, Linked::new(), &bounds).unwrap();
        prop_assert_eq!(output.sources, BTreeSet::from([Source::Server(server)]));
        prop_assert!(output.files.len() <= count.min(3));
        let Content::Text { origin, .. } = output.content else { panic!() };
        prop_assert!(origin.starts_with("s:") && origin.chars().count() <= 21 && !origin.contains('\n'));
        for file in output.files {
            prop_assert!(file.filename.is_none_or(|name| !name.is_empty() && !name.contains('/')));
        }
    }
}
