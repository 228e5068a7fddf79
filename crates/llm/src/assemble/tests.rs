use super::*;
use crate::chat::{Arguments, FailureKind, ToolCall};
use crate::events::Splitter;
use crate::listen::{Listener, Piece};
use proptest::prelude::*;
use serde_json::json;

fn assembled(pieces: impl IntoIterator<Item = Value>) -> Result<Reply, Failure> {
    let mut assembler = Assembler::default();
    for piece in pieces {
        assembler.push(piece, &mut Teller::new(&Nobody, &[]))?;
    }
    assembler.finish(7)
}

#[derive(Default)]
struct Ear(std::sync::Mutex<Vec<String>>);

impl Listener for Ear {
    fn hear(&self, piece: Piece<'_>) {
        self.0.lock().unwrap().push(format!("{piece:?}"));
    }
}

#[test]
fn a_listener_hears_text_and_reasoning_and_the_names_of_calls() {
    let ear = Ear::default();
    let (mut assembler, mut teller) = (Assembler::default(), Teller::new(&ear, &[]));
    let call = |index: u64, name: &str, arguments: &str| json!({"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]});
    for message in [
        json!({"reasoning_content": "hm"}),
        json!({"content": "so "}),
        json!({"content": "be it", "reasoning": "well"}),
        call(0, "find", ""),
        call(0, "", "{}"),
        call(1, "read", "{}"),
    ] {
        assembler.push(delta(message), &mut teller).unwrap();
    }
    teller.finish();
    let heard: Vec<String> = ear.0.into_inner().unwrap();
    let heard: Vec<&str> =
        heard.iter().map(String::as_str).filter(|piece| !piece.starts_with("Arguments")).collect();
    let expect = [
        r#"Reasoning("hm")"#,
        r#"Text("so ")"#,
        r#"Text("be it")"#,
        r#"Reasoning("well")"#,
        r#"Call("find")"#,
        r#"Call("read")"#,
    ];
    assert_eq!(heard, expect);
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// Assembles a stream of tool call deltas and returns the calls as `(id, name, arguments)`.
fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
    let pieces = deltas.iter().map(|call| delta(json!({"tool_calls": [call]}))).chain([end("tool_calls")]);
    let reply = assembled(pieces).unwrap();
    reply
        .tool_calls
        .into_iter()
        .map(|call| {
            let arguments = match call.arguments {
                Arguments::Object(object) => Value::Object(object).to_string(),
                Arguments::Malformed(text) => format!("malformed: {text}"),
            };
            (call.id, call.name, arguments)
        })
        .collect()
}

fn check_calls(deltas: &[Value], expect: &[(&str, &str, &str)]) {
    let expect: Vec<_> =
        expect.iter().map(|(id, name, args)| ((*id).into(), (*name).into(), (*args).into())).collect();
    assert_eq!(calls(deltas), expect);
}

#[test]
fn texts_join_and_usage_comes_last() {
    let reply = assembled([
        delta(json!({"role": "assistant", "content": ""})),
        delta(json!({"content": "你"})),
        delta(json!({"content": "好"})),
        end("stop"),
        json!({"model": "m", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
    ]);
    let expect = Reply {
        text: Some("你好".into()),
        finish_reason: "stop".into(),
        usage: Usage { prompt_tokens: 3, completion_tokens: 2, source: UsageSource::Reported },
        model: Some("m".into()),
        ..Reply::default()
    };
    assert_eq!(reply, Ok(expect));
}

#[test]
fn without_a_report_usage_is_estimated() {
    let reply = assembled([delta(json!({"content": "12345"})), end("stop")]).unwrap();
    assert_eq!(reply.usage, Usage { prompt_tokens: 7, completion_tokens: 2, source: UsageSource::Estimated });
}

#[test]
fn an_answer_of_nothing_has_no_text() {
    assert_eq!(assembled([delta(json!({"content": ""})), end("stop")]).unwrap().text, None);
    assert_eq!(assembled([delta(json!({"content": null})), end("stop")]).unwrap().text, None);
    assert_eq!(assembled([delta(json!({"content": "\n\n"})), end("stop")]).unwrap().text, None);
}

#[test]
fn an_end_without_a_finish_reason_has_broken_off() {
    for pieces in [vec![], vec![delta(json!({"content": "half an ans"}))], vec![json!({"choices": []})]] {
        assert_eq!(assembled(pieces).unwrap_err().kind, FailureKind::BrokenOff);
    }
}

#[test]
fn calls_join_by_index() {
    check_calls(
        &[
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
            json!({"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"x\":"}}),
            json!({"index": 1, "function": {"arguments": "{}"}}),
            json!({"index": 0, "function": {"arguments": "1}"}}),
        ],
        &[("a", "f", r#"{"x":1}"#), ("b", "g", "{}")],
    );
}

#[test]
fn an_id_that_changes_within_a_call_is_ignored() {
    check_calls(
        &[
            json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}),
            json!({"index": 0, "id": "b", "function": {"arguments": "}"}}),
            json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}),
        ],
        &[("a", "f", "{}")],
    );
}

#[test]
fn a_missing_index_is_tolerated() {
    check_calls(
        &[
            json!({"id": "a", "function": {"name": "f", "arguments": "{\"x\""}}),
            json!({"function": {"arguments": ":1"}}),
            json!({"id": "b", "function": {"name": "g", "arguments": "{}"}}),
            json!({"id": "a", "function": {"arguments": "}"}}),
        ],
        &[("a", "f", r#"{"x":1}"#), ("b", "g", "{}")],
    );
}

#[test]
fn whole_calls_without_id_and_index_stay_apart() {
    check_calls(
        &[
            json!({"id": "", "function": {"name": "f", "arguments": "{}"}}),
            json!({"function": {"name": "f", "arguments": {"x": 1}}}),
        ],
        &[("", "f", "{}"), ("", "f", r#"{"x":1}"#)],
    );
}

#[test]
fn calls_that_share_one_index_stay_apart() {
    check_calls(
        &[
            json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "g", "arguments": "{\"x\""}}),
            json!({"index": 0, "function": {"arguments": ":1}"}}),
        ],
        &[("a", "f", "{}"), ("b", "g", r#"{"x":1}"#)],
    );
}

#[test]
fn arguments_cut_in_two_are_malformed() {
    check_calls(
        &[json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{\"x"}})],
        &[("a", "f", "malformed: {\"x")],
    );
}

#[test]
fn a_thought_signature_on_a_trailing_delta_belongs_to_the_last_call() {
    let reply = assembled([
        delta(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}]})),
        delta(json!({"tool_calls": [{"extra_content": {"google": {"thought_signature": "sig"}}}]})),
        end("tool_calls"),
    ]);
    assert_eq!(
        Value::from(reply.unwrap().tool_calls[0].extra.clone()),
        json!({"extra_content": {"google": {"thought_signature": "sig"}}})
    );
}

#[test]
fn opaque_fields_join_by_their_kind() {
    let reply = assembled([
        delta(json!({"reasoning_content": "let me ", "details": [1], "state": {"a": "x"}, "level": 1})),
        delta(json!({"reasoning_content": "think", "details": [2], "state": {"a": "y", "b": 2}, "level": 2})),
        delta(json!({"reasoning_content": null, "content": "done"})),
        end("stop"),
    ]);
    assert_eq!(
        Value::from(reply.unwrap().extra),
        json!({"reasoning_content": "let me think", "details": [1, 2], "state": {"a": "xy", "b": 2}, "level": 2})
    );
}

#[test]
fn fields_of_the_standard_are_not_opaque() {
    let answer = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "hi", "refusal": null, "annotations": [], "audio": null}}]});
    assert!(assemble_whole(answer, 0).unwrap().extra.is_empty());
}

#[test]
fn a_refusal_is_said() {
    let answer =
        json!({"choices": [{"finish_reason": "stop", "message": {"content": null, "refusal": "I cannot"}}]});
    assert_eq!(assemble_whole(answer, 0).unwrap().text.as_deref(), Some("I cannot"));
}

#[test]
fn the_old_form_of_a_call_is_understood() {
    let answer = json!({"choices": [{"finish_reason": "function_call",
        "message": {"content": null, "function_call": {"name": "f", "arguments": "{\"x\":1}"}}}]});
    let expect = ToolCall {
        id: String::new(),
        name: "f".into(),
        arguments: parse_object(json!({"x": 1})),
        extra: Map::new(),
    };
    assert_eq!(assemble_whole(answer, 0).unwrap().tool_calls, [expect]);
}

fn parse_object(value: Value) -> Arguments {
    Arguments::Object(value.as_object().unwrap().clone())
}

#[test]
fn content_in_parts_is_their_texts() {
    let answer = json!({"choices": [{"finish_reason": "stop", "message": {"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]}}]});
    assert_eq!(assemble_whole(answer, 0).unwrap().text.as_deref(), Some("yes"));
}

#[test]
fn only_the_first_choice_counts() {
    let reply = assembled([
        json!({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]}),
        delta(json!({"content": "this"})),
        end("stop"),
    ]);
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_deref(), reply.finish_reason.as_str()), (Some("this"), "stop"));
}

#[test]
fn an_error_inside_a_stream_is_a_failure() {
    let failure = assembled([
        delta(json!({"content": "half"})),
        json!({"error": {"code": 503, "message": "overloaded"}}),
    ]);
    assert_eq!(failure.unwrap_err(), Failure { kind: FailureKind::Passing, message: "overloaded".into() });
}

#[test]
fn json_of_another_shape_is_no_answer() {
    for value in
        [json!({"hello": 1}), json!([]), json!("text"), json!({"choices": []}), json!({"choices": null})]
    {
        assert_eq!(assemble_whole(value, 0).unwrap_err().kind, FailureKind::NotAnAnswer);
    }
}

/// A model's answer, before the server splits it into chunks.
#[derive(Clone, Debug)]
struct ModelAnswer {
    content: String,
    reasoning: Option<String>,
    calls: Vec<(String, String, String)>,
    reason: String,
    usage: Option<(u32, u32)>,
}

impl ModelAnswer {
    fn whole(&self) -> Value {
        let calls: Vec<Value> = (self.calls.iter().enumerate())
            .map(|(number, (name, arguments, signature))| {
                json!({"id": format!("call_{number}"), "type": "function",
                    "function": {"name": name, "arguments": arguments}, "signature": signature})
            })
            .collect();
        let mut message = json!({"role": "assistant", "content": self.content, "tool_calls": calls});
        if let Some(reasoning) = &self.reasoning {
            message["reasoning_content"] = json!(reasoning);
        }
        json!({"model": "m", "choices": [{"index": 0, "message": message, "finish_reason": self.reason}], "usage": self.usage()})
    }

    fn usage(&self) -> Value {
        match self.usage {
            Some((prompt, completion)) => json!({"prompt_tokens": prompt, "completion_tokens": completion}),
            None => Value::Null,
        }
    }

    /// Splits the answer into chunks. `cuts` are the lengths of the pieces. `style` tells what the server leaves out of
    /// them.
    fn stream(&self, cuts: &[usize], style: Style) -> Vec<Value> {
        let mut cuts = cuts.iter().copied().cycle();
        let mut chunks =
            vec![json!({"model": "m", "choices": [{"delta": {"role": "assistant", "content": null}}]})];
        for piece in split(self.reasoning.as_deref().unwrap_or_default(), &mut cuts) {
            chunks.push(delta(json!({"reasoning_content": piece})));
        }
        if self.reasoning.as_deref() == Some("") {
            chunks.push(delta(json!({"reasoning_content": ""})));
        }
        for piece in split(&self.content, &mut cuts) {
            chunks.push(delta(json!({"content": piece})));
        }
        let mut deltas: Vec<Vec<Value>> = Vec::new();
        for (number, (name, arguments, signature)) in self.calls.iter().enumerate() {
            let id = format!("call_{number}");
            let mut call =
                vec![json!({"index": number, "id": id, "type": "function", "function": {"name": name}})];
            for piece in split(arguments, &mut cuts) {
                call.push(json!({"index": number, "id": id, "function": {"arguments": piece}}));
            }
            call.push(json!({"index": number, "id": id, "signature": signature}));
            for (place, piece) in call.iter_mut().enumerate() {
                let piece = piece.as_object_mut().unwrap();
                match style {
                    Style::Full => {}
                    Style::IdOnce if place == 0 => {}
                    Style::IdOnce => drop(piece.remove("id")),
                    Style::NoIndex => drop(piece.remove("index")),
                    Style::NoIndexIdOnce => {
                        piece.remove("index");
                        if place > 0 {
                            piece.remove("id");
                        }
                    }
                }
            }
            deltas.push(call);
        }
        let in_order = match style {
            // The calls arrive at the same time: first a piece of each call, then the next piece of each call. The id
            // or the index of a piece tells to which call it belongs.
            Style::Full | Style::IdOnce | Style::NoIndex => interleave(deltas),
            Style::NoIndexIdOnce => deltas.concat(),
        };
        chunks.extend(in_order.into_iter().map(|call| delta(json!({"tool_calls": [call]}))));
        chunks.push(end(&self.reason));
        chunks.push(json!({"choices": [], "usage": self.usage()}));
        chunks
    }
}

#[derive(Clone, Copy, Debug)]
enum Style {
    Full,
    IdOnce,
    NoIndex,
    NoIndexIdOnce,
}

fn split(text: &str, cuts: &mut impl Iterator<Item = usize>) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut rest = characters.as_slice();
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cuts.next().unwrap_or(1).clamp(1, rest.len()));
        pieces.push(piece.iter().collect());
        rest = after;
    }
    pieces
}

fn interleave(lists: Vec<Vec<Value>>) -> Vec<Value> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|place| lists.iter().filter_map(move |list| list.get(place).cloned())).collect()
}

fn said() -> impl Strategy<Value = ModelAnswer> {
    let arguments = prop_oneof!["\\{\"[a-z]{0,9}\":\"[a-z字🙂]{0,20}\"\\}", Just(String::new()), ".{0,20}"];
    let call = ("[a-z_]{1,12}", arguments, "[A-Za-z0-9]{1,12}");
    (
        ".{0,40}",
        proptest::option::of(".{0,40}"),
        proptest::collection::vec(call, 0..4),
        prop_oneof![Just("stop"), Just("tool_calls"), Just("length")],
        proptest::option::of(any::<(u32, u32)>()),
    )
        .prop_map(|(content, reasoning, calls, reason, usage)| ModelAnswer {
            content,
            reasoning,
            calls,
            reason: reason.to_owned(),
            usage,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_split_into_deltas_gives_the_same_reply(
        said in said(),
        cuts in proptest::collection::vec(1..9usize, 1..20),
        style in prop_oneof![Just(Style::Full), Just(Style::IdOnce), Just(Style::NoIndex), Just(Style::NoIndexIdOnce)],
    ) {
        let whole = assemble_whole(said.whole(), 7);
        prop_assert!(whole.is_ok());
        prop_assert_eq!(assembled(said.stream(&cuts, style)), whole);
    }

    #[test]
    fn a_stream_cut_before_its_finish_is_never_an_answer(said in said(), cuts in proptest::collection::vec(1..9usize, 1..20), keep in any::<proptest::sample::Index>()) {
        let mut chunks = said.stream(&cuts, Style::Full);
        // The last two chunks are the finish reason and the usage. A stream without them has broken off.
        chunks.truncate(keep.index(chunks.len() - 1));
        prop_assert_eq!(assembled(chunks).unwrap_err().kind, FailureKind::BrokenOff);
    }
}

/// llama.cpp streams a call while the model writes it, and reports only afterwards that it cannot parse the rest.
#[test]
fn calls_that_came_whole_count_although_the_server_could_not_read_on() {
    let rescued = |deltas: &[Value], message: &str| {
        let mut assembler = Assembler::default();
        for call in deltas {
            assembler.push(delta(json!({"tool_calls": [call]})), &mut Teller::new(&Nobody, &[])).unwrap();
        }
        let error = json!({"error": {"code": 500, "message": message}});
        let failure = assembler.push(error, &mut Teller::new(&Nobody, &[])).unwrap_err();
        assembler.rescue(&failure, 7)
    };
    let unreadable = "The model produced output that does not match the expected peg-native format";
    let begun = json!({"index": 0, "function": {"name": "get_artifact", "arguments": "{\"ref\": "}});
    let ended = json!({"index": 0, "function": {"arguments": "\"artifact:a\"}"}});
    let reply = rescued(&[begun.clone(), ended.clone()], unreadable).unwrap();
    assert_eq!(reply.tool_calls[0].name, "get_artifact");
    assert_eq!(reply.finish_reason, "tool_calls");
    assert!(rescued(std::slice::from_ref(&begun), unreadable).is_none(), "the arguments are incomplete");
    assert!(rescued(&[], unreadable).is_none(), "there is no call");
    assert!(rescued(&[begun, ended], "out of memory").is_none(), "another failure");
}

#[test]
fn a_piece_of_a_stream_takes_few_instructions() {
    let name = "assemble::tests::a_piece_of_a_stream_takes_few_instructions";
    polity_instructions::guard("stream_piece", name, 500, |times| {
        let event = format!("data: {}\n\n", delta(json!({"content": " word"})));
        let (mut splitter, mut assembler) = (Splitter::default(), Assembler::default());
        let mut teller = Teller::new(&Nobody, &[]);
        for _ in 0..times {
            let event = splitter.next(&mut event.as_bytes()).unwrap();
            assembler.push(serde_json::from_slice(&event.data).unwrap(), &mut teller).unwrap();
        }
        std::hint::black_box(assembler.kept());
    });
}
