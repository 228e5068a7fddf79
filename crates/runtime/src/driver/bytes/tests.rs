use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use polity_decide::inline::forms::{FORMS, SURROUNDINGS, files, other_texts, run_left};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, json};

/// Returns bytes with the signature of PNG, so that they are recognized even as plain base64.
fn picture(rest: &[u8]) -> Vec<u8> {
    [b"\x89PNG\r\n\x1a\n".as_slice(), rest].concat()
}

fn call(name: &str, arguments: Arguments) -> ToolCall {
    ToolCall { id: "call_1".to_owned(), name: name.to_owned(), arguments, extra: Map::new() }
}

fn object(value: Value) -> Arguments {
    match value {
        Value::Object(object) => Arguments::Object(object),
        other => Arguments::Malformed(other.to_string()),
    }
}

/// What happens to bytes, depending on where and how a model writes them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Becomes {
    Artifact,
    Refused(&'static str),
    LeftOut,
}

type Place = (&'static str, fn(&str, &str) -> Replied, Becomes);

fn with_call(call: ToolCall) -> Replied {
    Replied { calls: vec![call], ..Replied::default() }
}

/// Every place of an answer that may contain bytes. Each place has a name, a function that writes the bytes into an
/// answer, and what happens to the bytes. The function gets the bytes as plain base64 and as a data URL.
const PLACES: [Place; 13] = [
    (
        "content, with its encoding",
        |base64, _| {
            with_call(call(
                "put_artifact",
                object(json!({"type": "a", "content": base64, "encoding": "base64"})),
            ))
        },
        Becomes::Artifact,
    ),
    (
        "content, without its encoding",
        |base64, _| with_call(call("put_artifact", object(json!({"type": "a", "content": base64})))),
        Becomes::Artifact,
    ),
    (
        "content that is a data URL",
        |_, url| with_call(call("put_artifact", object(json!({"type": "a", "content": url})))),
        Becomes::Artifact,
    ),
    (
        "content without a type",
        |base64, _| with_call(call("put_artifact", object(json!({"content": base64, "encoding": "base64"})))),
        Becomes::Refused("invalid_arguments"),
    ),
    (
        "content in an encoding that does not exist",
        |base64, _| {
            with_call(call(
                "put_artifact",
                object(json!({"type": "a", "content": base64, "encoding": "base85"})),
            ))
        },
        Becomes::Refused("invalid_arguments"),
    ),
    (
        "content that is broken",
        |base64, _| {
            let broken = format!("{base64}!");
            with_call(call(
                "put_artifact",
                object(json!({"type": "a", "content": broken, "encoding": "base64"})),
            ))
        },
        Becomes::Refused("invalid_arguments"),
    ),
    (
        "content within an object",
        |base64, _| {
            with_call(call(
                "put_artifact",
                object(json!({"type": "a", "content": {"bytes": [base64]}, "encoding": "base64"})),
            ))
        },
        Becomes::Refused("invalid_arguments"),
    ),
    (
        "arguments that break off",
        |base64, _| {
            let text = format!(r#"{{"type": "a", "encoding": "base64", "content": "{base64}"#);
            with_call(call("put_artifact", Arguments::Malformed(text)))
        },
        Becomes::Refused("invalid_arguments"),
    ),
    (
        "broken arguments of another tool",
        |_, url| with_call(call("send_message", Arguments::Malformed(format!("to: root {url}")))),
        Becomes::LeftOut,
    ),
    (
        "a message",
        |_, url| {
            with_call(call(
                "send_message",
                object(json!({"to": "root", "payload": {"text": format!("look: {url}.")}})),
            ))
        },
        Becomes::Artifact,
    ),
    (
        "an attachment",
        |_, url| {
            with_call(call("send_message", object(json!({"to": "root", "payload": {"attachments": [url]}}))))
        },
        Becomes::Artifact,
    ),
    (
        "what the model says",
        |_, url| Replied { text: Some(format!("![drawn]({url})")), ..Replied::default() },
        Becomes::Artifact,
    ),
    (
        "a field that only the server understands",
        |_, url| {
            let images = json!([{"type": "image_url", "image_url": {"url": url}}]);
            Replied { extra: Map::from_iter([("images".to_owned(), images)]), ..Replied::default() }
        },
        Becomes::Artifact,
    ),
];

fn in_base64(bytes: &[u8], form: usize) -> String {
    match form {
        0 => STANDARD.encode(bytes),
        1 => STANDARD_NO_PAD.encode(bytes),
        2 => URL_SAFE.encode(bytes),
        _ => URL_SAFE_NO_PAD.encode(bytes),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// docs/contract.md, section 3: no text ever contains binary data, in base64 or any other form.
    #[test]
    fn no_bytes_are_left_in_what_is_recorded(
        place in select(PLACES.to_vec()),
        rest in proptest::collection::vec(any::<u8>(), 65..400),
        form in 0..4usize,
    ) {
        let bytes = picture(&rest);
        let base64 = in_base64(&bytes, form);
        let (name, written, becomes) = place;
        let mut replied = written(&base64, &format!("data:image/png;base64,{base64}"));
        let (found, refused) = find(&mut replied, &Limits::default());
        let recorded = serde_json::to_string(&replied).unwrap() + &format!("{refused:?}");
        for start in 0..=base64.len() - 64 {
            prop_assert!(!recorded.contains(&base64[start..start + 64]), "{name}: {recorded}");
        }
        match becomes {
            Becomes::Artifact => {
                prop_assert_eq!(found.len(), 1, "{}", name);
                prop_assert_eq!(&found[0].1.bytes, &bytes);
                prop_assert!(recorded.contains(&found[0].0.reference()), "{name}: {recorded}");
                prop_assert!(refused.is_empty());
            }
            Becomes::Refused(code) => {
                prop_assert!(found.is_empty());
                prop_assert_eq!(refused.iter().map(|(_, refusal)| refusal.code()).collect::<Vec<_>>(), [code]);
                prop_assert_eq!(&refused[0].0, "call_1");
            }
            Becomes::LeftOut => prop_assert!(found.is_empty() && refused.is_empty()),
        }
    }

    /// If the content of a `put_artifact` call is too large, the call is refused. If there are too many bytes in any
    /// other place, they are left out. In both cases, no record contains the bytes.
    #[test]
    fn what_is_too_large_is_recorded_nowhere(
        place in select(PLACES.to_vec()),
        rest in proptest::collection::vec(any::<u8>(), 65..400),
    ) {
        let base64 = STANDARD.encode(picture(&rest));
        let mut replied = (place.1)(&base64, &format!("data:image/png;base64,{base64}"));
        let (found, _) = find(&mut replied, &Limits { max_artifact_bytes: 64, ..Limits::default() });
        prop_assert!(found.is_empty());
        let recorded = serde_json::to_string(&replied).unwrap();
        prop_assert!(!recorded.contains(&base64[..64]), "{}: {recorded}", place.0);
    }
}

/// A place of an answer that may contain a text with bytes in it: the name of the place, and a function that builds
/// the answer.
type TextPlace = (&'static str, fn(&str) -> Replied);

const TEXT_PLACES: [TextPlace; 11] = [
    ("closing text", |text| Replied { text: Some(text.to_owned()), ..Replied::default() }),
    ("message", |text| {
        with_call(call("send_message", object(json!({"to": "root", "payload": {"text": text}}))))
    }),
    ("message that is an object in a text", |text| {
        let payload = json!({"content": {"picture": text}}).to_string();
        with_call(call("send_message", object(json!({"to": "root", "payload": payload}))))
    }),
    ("brief", |text| {
        let brief = json!({"objective": "draw", "inputs": {"picture": [text]}, text: "a name"});
        with_call(call("spawn_agent", object(json!({"roleId": "r", "taskBrief": brief}))))
    }),
    ("role prompt", |text| {
        with_call(call("create_role", object(json!({"name": "painter", "rolePrompt": text}))))
    }),
    ("summary", |text| with_call(call("compress_context", object(json!({"summary": text}))))),
    ("tool that there is not", |text| with_call(call("draw", object(json!({"picture": text}))))),
    ("arguments that break off", |text| {
        let text = json!({"to": "root", "payload": text}).to_string();
        with_call(call("send_message", Arguments::Malformed(text[..text.len() - 1].to_owned())))
    }),
    ("metadata of what is stored", |text| {
        let meta = json!({"filename": "a.txt", "thumbnail": text});
        with_call(call("put_artifact", object(json!({"type": "a", "content": "words", "meta": meta}))))
    }),
    ("a field that only the server understands", |text| {
        let extra = Map::from_iter([("reasoning_content".to_owned(), json!([{ "text": text }]))]);
        Replied { extra, ..Replied::default() }
    }),
    ("a field of a call", |text| {
        let mut call = call("list_contacts", object(json!({})));
        call.extra.insert("thought".to_owned(), json!(text));
        with_call(call)
    }),
];

/// Takes the bytes out of an answer. Returns the bytes, and the text that would be recorded.
fn taken_out(mut replied: Replied) -> (Found, String) {
    let (found, refused) = find(&mut replied, &Limits::default());
    (found, serde_json::to_string(&replied).unwrap() + &format!("{refused:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// docs/contract.md, section 3: after the bytes were taken out, an answer contains no run of 64 digits that encodes
    /// a part of a file. This holds for base64 and hexadecimal, for all surrounding texts, and for every place in an
    /// answer.
    #[test]
    fn no_run_of_a_file_is_left_in_an_answer(
        bytes in files(),
        form in select(FORMS.to_vec()),
        surroundings in select(SURROUNDINGS.to_vec()),
        place in select(TEXT_PLACES.to_vec()),
    ) {
        let text = (surroundings.1)(&(form.1)(&bytes));
        let (_, recorded) = taken_out((place.1)(&text));
        prop_assert_eq!(
            run_left(&recorded, &bytes), None, "{} in {}, {}: {}", form.0, surroundings.0, place.0, recorded
        );
    }

    /// The text of a `put_artifact` call is stored byte for byte. If the text contains encoded bytes, the recorded
    /// call contains a reference instead of the text.
    #[test]
    fn a_text_with_bytes_in_it_is_stored_as_it_is_and_recorded_nowhere(
        bytes in files(),
        form in select(FORMS.to_vec()),
        surroundings in select(SURROUNDINGS.to_vec()),
    ) {
        let text = format!("<!-- a page -->{}", (surroundings.1)(&(form.1)(&bytes)));
        let page = json!({"type": "page", "content": text, "encoding": "utf-8"});
        let (found, recorded) = taken_out(with_call(call("put_artifact", object(page))));
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(&found[0].1.bytes, &text.as_bytes());
        prop_assert!(recorded.contains(&found[0].0.reference()));
        prop_assert_eq!(run_left(&recorded, &bytes), None);
    }

    /// An answer that contains no encoded bytes is recorded unchanged.
    #[test]
    fn an_answer_without_bytes_stays_as_it_is(text in other_texts(), place in select(TEXT_PLACES.to_vec())) {
        let replied = (place.1)(&text);
        let mut same = replied.clone();
        let (found, _) = find(&mut same, &Limits::default());
        prop_assert!(found.is_empty(), "{}", place.0);
        prop_assert_eq!(same, replied, "{}", place.0);
    }

    /// A piece from the middle of a known file is left out of an answer wherever the piece occurs. Nothing else is left
    /// out.
    #[test]
    fn no_piece_of_what_is_known_is_left_in_an_answer(
        bytes in proptest::collection::vec(any::<u8>(), 300..900),
        from in 0usize..200,
        place in select(TEXT_PLACES[..8].to_vec()),
        form in select(FORMS[..4].to_vec()),
    ) {
        let written = (form.1)(&bytes);
        let text = format!("a piece: {}, which is known", &written[from..from + 120]);
        let mut known = Fragments::default();
        known.know(&bytes);
        let mut replied = (place.1)(&text);
        prop_assert!(is_suspicious(&replied));
        leave_fragments_out(&mut replied, &known, &Limits::default(), &mut Found::new());
        let recorded = serde_json::to_string(&replied).unwrap();
        prop_assert_eq!(run_left(&recorded, &bytes), None, "{}", recorded);
        prop_assert!(recorded.contains("which is known"));
    }
}

#[test]
fn fields_without_bytes_are_kept() {
    let extra = Map::from_iter([
        ("reasoning_content".to_owned(), json!("a data: URL would be nice")),
        ("signature".to_owned(), json!(STANDARD.encode([3; 300]))),
    ]);
    let mut replied = Replied { text: Some("so".to_owned()), extra: extra.clone(), ..Replied::default() };
    find(&mut replied, &Limits::default());
    assert_eq!((replied.extra, replied.text.as_deref()), (extra, Some("so")));
}
