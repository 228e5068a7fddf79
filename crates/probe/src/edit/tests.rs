use super::*;
use jsonc_parser::ast::Value;
use proptest::prelude::*;

fn list(words: &[&str]) -> Option<Vec<String>> {
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

fn correction(input: Option<Vec<String>>, output: Option<Vec<String>>, window: Option<u64>) -> Correction {
    Correction { service: "a".to_owned(), input, output, context_window: window }
}

#[track_caller]
fn check(text: &str, correction: &Correction, expect: &str) {
    let edited = edit(text, std::slice::from_ref(correction)).unwrap();
    assert_eq!(edited.text, expect);
    assert_eq!(edited.changes.is_empty(), text == expect);
    assert_eq!(
        edit(&edited.text, std::slice::from_ref(correction)).unwrap().text,
        expect,
        "a second edit changes nothing"
    );
}

/// Returns the text of a file with one service, whose declaration ends with `rest`.
fn file(rest: &str) -> String {
    format!(
        "// mine\n{{\"services\": [\n  {{\n    \"id\": \"a\", // short\n    \"baseURL\": \"http://h/v1\",\n    \"model\": \"m\"{rest}\n  }}\n]}}\n"
    )
}

#[test]
fn lists_are_changed_where_they_stand() {
    let capabilities = |input: &str| {
        file(&format!(",\n    \"capabilities\": {{\"input\": {input}, \"output\": [\"text\"]}} // sees"))
    };
    let check = |before: &str, wanted: &[&str], after: &str| {
        check(&capabilities(before), &correction(list(wanted), None, None), &capabilities(after));
    };
    check(r#"["text"]"#, &["text", "vision"], r#"["text", "vision"]"#);
    check(r#"["text","file"]"#, &["text", "file", "vision"], r#"["text","file","vision"]"#);
    check(r#"["text", "vision", "file"]"#, &["text", "file"], r#"["text", "file"]"#);
    check(r#"["vision", "text"]"#, &["text"], r#"["text"]"#);
    check(r#"["text", "vision", "file"]"#, &["text"], r#"["text"]"#);
    check(r#"["text", "vision"]"#, &["text", "audio"], r#"["text", "audio"]"#);
    check(
        "[\n  \"text\",\n  \"file\"\n]",
        &["text", "file", "vision"],
        "[\n  \"text\",\n  \"file\",\n  \"vision\"\n]",
    );
    check("[\n  \"text\"\n]", &["text", "vision"], "[\n  \"text\",\n  \"vision\"\n]");
    check(
        "[ /* all */ \"text\" /* it reads */ ]",
        &["text", "vision"],
        "[ /* all */ \"text\", \"vision\" /* it reads */ ]",
    );
    check("[]", &["text"], r#"["text"]"#);
    check(r#"["vision"]"#, &["text"], r#"["text"]"#);
    check(r#"["text"]"#, &["text"], r#"["text"]"#);
    // A list stays as it is if an edit would remove a comment or change the order of the words.
    check("[\"text\", // always\n \"vision\"]", &["text"], "[\"text\", // always\n \"vision\"]");
    check(r#"["text", "vision"]"#, &["vision", "text"], r#"["text", "vision"]"#);
    check("[/* none */]", &["text"], "[/* none */]");
}

#[test]
fn fields_come_behind_the_last_one() {
    let window = correction(None, None, Some(4096));
    check(&file(""), &window, &file(",\n    \"contextWindow\": 4096"));
    check(&file(" // best"), &window, &file(", // best\n    \"contextWindow\": 4096"));
    check(
        &file(" /* a */ /* b */\n    // below"),
        &window,
        &file(", /* a */ /* b */\n    \"contextWindow\": 4096\n    // below"),
    );
    let one_line = r#"{"services":[{"id":"a","baseURL":"http://h/v1","model":"m"}]}"#;
    check(
        one_line,
        &window,
        r#"{"services":[{"id":"a","baseURL":"http://h/v1","model":"m", "contextWindow": 4096}]}"#,
    );
    let all = correction(list(&["text", "vision"]), list(&["text"]), Some(4096));
    check(
        &file(""),
        &all,
        &file(
            ",\n    \"capabilities\": {\"input\": [\"text\", \"vision\"], \"output\": [\"text\"]},\n    \"contextWindow\": 4096",
        ),
    );
    check(
        &file(",\n    \"capabilities\": {\"input\": [\"text\"]}"),
        &all,
        &file(
            ",\n    \"capabilities\": {\"input\": [\"text\", \"vision\"], \"output\": [\"text\"]},\n    \"contextWindow\": 4096",
        ),
    );
    let windows = file("").replace('\n', "\r\n");
    check(&windows, &window, &file(",\n    \"contextWindow\": 4096").replace('\n', "\r\n"));
    let marked = format!("\u{feff}{}", file(""));
    check(&marked, &window, &format!("\u{feff}{}", file(",\n    \"contextWindow\": 4096")));
}

#[test]
fn a_window_is_changed_where_it_stands() {
    let window = correction(None, None, Some(16_384));
    let check = |before: &str, after: &str| {
        let with = |window: &str| file(&format!(",\n    \"contextWindow\":{window} // small\n"));
        check(&with(before), &window, &with(after));
        check(&format!("\u{feff}{}", with(before)), &window, &format!("\u{feff}{}", with(after)));
    };
    check("4096", "16384");
    check(" /* old */ 4096", " /* old */ 16384");
    check(" 16384", " 16384");
    check(" null", " null");
    check(" 4096, \"contextWindow\": 4096", " 4096, \"contextWindow\": 4096");
}

#[test]
fn what_is_not_clear_stays() {
    let all = correction(list(&["text", "vision"]), None, None);
    for rest in [
        ",\n \"capabilities\": 7",
        ",\n \"capabilities\": {\"input\": \"text\", \"output\": [\"text\"]}",
        ",\n \"capabilities\": {\"input\": [\"text\", 7], \"output\": [\"text\"]}",
    ] {
        check(&file(rest), &all, &file(rest));
    }
    let other = Correction { service: "b".to_owned(), ..all.clone() };
    check(&file(""), &other, &file(""));
    assert_eq!(edit("{", std::slice::from_ref(&all)), Err(EditError::Unreadable));
    assert_eq!(edit("[]", std::slice::from_ref(&all)), Err(EditError::Unreadable));
}

/// Generates white space and comments, as they may appear between any two tokens.
fn gap() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        4 => Just(" ".to_owned()),
        3 => Just("\n      ".to_owned()),
        2 => Just("\r\n\t".to_owned()),
        1 => Just(" /* it's, \"so\": [1] */ ".to_owned()),
        1 => Just(" // {\"id\": \"a\"}, http://x\n".to_owned()),
    ]
}

fn words() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![Just("text"), Just("vision"), Just("audio"), Just("看"), Just("a\\u0062")];
    prop::collection::vec(word.prop_map(str::to_owned), 0..4)
}

fn joined(open: char, items: &[String], gaps: &[String], close: char) -> String {
    let mut gaps = gaps.iter().cycle().map(String::as_str);
    let mut next = || gaps.next().unwrap_or_default();
    let mut text = format!("{open}{}", next());
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push_str(&format!(",{}", next()));
        }
        text.push_str(&format!("{item}{}", next()));
    }
    text.push(close);
    text
}

fn service(id: &'static str) -> impl Strategy<Value = String> {
    let gaps = || prop::collection::vec(gap(), 1..7);
    let list = move || {
        (words(), gaps()).prop_map(|(words, gaps)| {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            joined('[', &quoted, &gaps, ']')
        })
    };
    let capabilities =
        (prop::option::of(list()), prop::option::of(list()), gaps()).prop_map(|(input, output, gaps)| {
            let sides = [("input", input), ("output", output)];
            let fields: Vec<String> =
                sides.into_iter().filter_map(|(name, list)| Some(format!("\"{name}\":{}", list?))).collect();
            joined('{', &fields, &gaps, '}')
        });
    (prop::option::of(capabilities), prop::option::of(1_u64..9), gaps(), any::<prop::sample::Index>())
        .prop_map(move |(capabilities, window, gaps, turn)| {
            let mut fields = vec![
                format!("\"id\":\"{id}\""),
                "\"baseURL\": \"http://h/v1\"".to_owned(),
                "\"model\" : \"m, }]\"".to_owned(),
                "\"apiKey\": \"sk-//not\"".to_owned(),
            ];
            fields.extend(capabilities.map(|text| format!("\"capabilities\": {text}")));
            fields.extend(window.map(|window| format!("\"contextWindow\":{window}")));
            let count = fields.len();
            fields.rotate_left(turn.index(count));
            joined('{', &fields, &gaps, '}')
        })
}

fn corrections() -> impl Strategy<Value = Vec<Correction>> {
    let names = || {
        let word =
            prop_oneof![Just("text"), Just("vision"), Just("audio"), Just("看"), Just("ab"), Just("new")];
        prop::option::of(prop::collection::btree_set(word.prop_map(str::to_owned), 1..4))
    };
    let one = |id: &'static str| {
        (names(), names(), prop::option::of(1_u64..100_000)).prop_map(
            move |(input, output, context_window)| {
                let list = |names: Option<std::collections::BTreeSet<String>>| {
                    names.map(|names| names.into_iter().collect())
                };
                Correction {
                    service: id.to_owned(),
                    input: list(input),
                    output: list(output),
                    context_window,
                }
            },
        )
    };
    (one("a"), one("b")).prop_map(|(a, b)| vec![a, b])
}

/// Returns the text without `capabilities` and `contextWindow`. Only these fields may be changed by an edit.
fn outside(text: &str) -> String {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default()).unwrap();
    let root = parsed.value.as_ref().and_then(Value::as_object).unwrap();
    let Some(Value::Array(services)) = value_of(root, "services") else { panic!("no services") };
    let mut cut: Vec<Range<usize>> = Vec::new();
    for service in services.elements.iter().filter_map(Value::as_object) {
        for property in &service.properties {
            match property.name.as_str() {
                "contextWindow" => cut.push(property.start()..property.end()),
                "capabilities" => cut.push(property.start()..property.end()),
                _ => {}
            }
        }
    }
    cut.sort_by_key(|range| range.start);
    spliced(text, cut.into_iter().map(|range| Splice { range, text: String::new() }).collect())
}

/// Returns whether `text` differs from `original` only by additional white space and commas.
fn is_padded(text: &str, original: &str) -> bool {
    let mut original = original.chars().peekable();
    let all_are = text.chars().all(|character| {
        original.next_if_eq(&character).is_some() || character.is_whitespace() || character == ','
    });
    all_are && original.peek().is_none()
}

#[test]
fn what_tests_take_for_padded() {
    assert!(is_padded("a, b", "ab") && is_padded("ab", "ab"));
    assert!(!is_padded("ab", "ab ") && !is_padded("axb", "ab") && !is_padded("b", "ab"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn everything_else_stays_and_a_second_time_changes_nothing(
        (first, second, gaps) in (service("a"), service("b"), prop::collection::vec(gap(), 1..6)),
        corrections in corrections(),
    ) {
        let list = joined('[', &[first, second], &gaps, ']');
        let text = format!("{}{}", joined('{', &[format!("\"services\":{list}")], &gaps, '}'), gaps[0]);
        let edited = edit(&text, &corrections).unwrap();
        prop_assert!(is_padded(&outside(&edited.text), &outside(&text)), "{}\n---\n{}", text, edited.text);
        prop_assert_eq!(edited.changes.is_empty(), edited.text == text);
        // No comment is lost or changed, wherever it is.
        for comment in ["/* it's, \"so\": [1] */", "// {\"id\": \"a\"}, http://x"] {
            prop_assert_eq!(edited.text.matches(comment).count(), text.matches(comment).count());
        }
        let again = edit(&edited.text, &corrections).unwrap();
        prop_assert_eq!(again.text, edited.text);
        prop_assert_eq!(again.changes, vec![]);
    }
}
