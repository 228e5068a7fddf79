use super::*;
use proptest::prelude::*;

fn root() -> AgentId {
    AgentId::root()
}

fn read(messages: &Value) -> Result<Conversation, Problem> {
    Conversation::read(messages.as_array().unwrap())
}

fn with<'a>(agent: &'a AgentId) -> Between<'a> {
    Between { agent, person: "" }
}

#[test]
fn what_is_asked_comes_after_the_last_answer() {
    let conversation = read(&json!([
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "one\r\n"},
        {"role": "assistant", "content": "two"},
        {"role": "developer", "content": "and polite"},
        {"role": "user", "content": [{"type": "text", "text": "three"}]},
        {"role": "user", "content": "four"},
    ]))
    .unwrap();
    assert_eq!(conversation.question(), "three\n\nfour");
    let background = Value::Object(conversation.background());
    let said = json!([{"role": "user", "text": "one"}, {"role": "assistant", "text": "two"}]);
    assert_eq!(background, json!({"instructions": "be brief\n\nand polite", "conversation": said}));
}

#[test]
fn conversations_that_ask_nothing() {
    let check = |messages: Value| assert_eq!(read(&messages).unwrap_err().status.as_u16(), 400, "{messages}");
    check(json!([]));
    check(json!([{"role": "system", "content": "be brief"}]));
    check(json!([{"role": "user", "content": "  "}]));
    check(json!([{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]));
    check(json!([{"role": "tool", "content": "4", "tool_call_id": "x"}]));
    check(json!([{"role": "wizard", "content": "one"}]));
    check(json!([{"content": "one"}]));
    check(json!(["one"]));
}

#[test]
fn the_results_of_a_clients_own_tools_may_stand_in_what_was_said_before() {
    let messages = json!([
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 2}"}},
        ]},
        {"role": "tool", "content": "4", "tool_call_id": "x"},
        {"role": "assistant", "content": "it is 4"},
        {"role": "user", "content": "and now?"},
    ]);
    let conversation = read(&messages).unwrap();
    let before = conversation.background().remove("conversation").unwrap();
    assert_eq!(before.as_array().unwrap().len(), 4);
    assert_eq!(before[1], json!({"role": "assistant", "text": "called add {\"a\": 2}"}));
    assert_eq!(before[2], json!({"role": "tool", "text": "4"}));
    assert_eq!(conversation.question(), "and now?");
}

#[test]
fn a_conversation_that_ends_with_results_of_tools_asks_what_the_person_said_last() {
    let mut messages = json!([
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "what is in the directory?"},
        {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "ls", "arguments": "{}"}}]},
        {"role": "tool", "content": "a.txt"},
    ]);
    let conversation = read(&messages).unwrap();
    assert_eq!(conversation.question(), "what is in the directory?");
    let before = conversation.background().remove("conversation").unwrap();
    assert_eq!(before[3], json!({"role": "tool", "text": "a.txt"}));
    assert_eq!(conversation.ending(with(&root())), None, "those tools were called for another model");
    // The agent answers this conversation. Then the client sends the conversation with the answer and a new message.
    // This longer conversation continues the same task.
    let reply = conversation.reply(with(&root()), "a.txt is in it");
    messages.as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": "a.txt is in it"}),
        json!({"role": "user", "content": "thanks"}),
    ]);
    assert_eq!(read(&messages).unwrap().ending(with(&root())), Some(reply));
}

#[test]
fn a_question_that_was_given_as_a_refusal_is_what_the_agent_said() {
    let of = |message: Value| {
        read(&json!([{"role": "user", "content": "paint"}, message, {"role": "user", "content": "red"}]))
            .unwrap()
    };
    let refused = of(json!({"role": "assistant", "content": null, "refusal": "red or blue?"}));
    let said = of(json!({"role": "assistant", "content": "red or blue?"}));
    assert_eq!(refused.ending(with(&root())), said.ending(with(&root())));
}

#[test]
fn a_conversation_may_go_on_from_what_the_client_names() {
    let root = root();
    let mut named = read(&json!([{"role": "user", "content": "and now?"}])).unwrap();
    named.previous = Some("abc".to_owned());
    assert_eq!(named.ending(with(&root)), Some("abc".to_owned()));
    let mut other = named.clone();
    other.previous = Some("abd".to_owned());
    assert_ne!(named.request(with(&root)), other.request(with(&root)));
    assert_ne!(named.reply(with(&root), "x"), other.reply(with(&root), "x"));
}

#[test]
fn neither_instructions_nor_the_form_of_a_text_make_another_conversation() {
    let root = root();
    let fingerprint = |messages: Value| read(&messages).unwrap().request(with(&root));
    let plain = fingerprint(json!([{"role": "user", "content": "one\ntwo"}]));
    assert_eq!(plain, fingerprint(json!([{"role": "user", "content": " one\r\ntwo\n"}])));
    let parts = json!([{"type": "text", "text": "one\ntwo"}]);
    assert_eq!(plain, fingerprint(json!([{"role": "user", "content": parts}])));
    let dated = json!([
        {"role": "system", "content": "today is Monday"},
        {"role": "user", "content": "one\ntwo"},
    ]);
    assert_eq!(plain, fingerprint(dated));
}

#[test]
fn pictures_agents_and_people_make_another_conversation() {
    let conversation = |url: &str| {
        let picture = json!({"type": "image_url", "image_url": {"url": url}});
        read(&json!([{"role": "user", "content": [{"type": "text", "text": "look"}, picture]}])).unwrap()
    };
    let (one, two) =
        (conversation("data:image/png;base64,aGVsbG8="), conversation("data:image/png;base64,aGVsbA=="));
    let (root, reader) = (root(), AgentId::new("reader-7k2f"));
    assert_ne!(one.request(with(&root)), two.request(with(&root)));
    assert_eq!(
        one.request(with(&root)),
        conversation("data:image/jpeg;base64,aGVsbG8=").request(with(&root))
    );
    assert_ne!(one.request(with(&root)), one.request(with(&reader)));
    assert_ne!(one.request(with(&root)), one.request(Between { agent: &root, person: "ann" }));
}

/// Generates similar texts. So it often happens that two lists contain the same characters, but the texts begin and end
/// at different places.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{1,2}", "(user|assistant|tool)a?", "\\PC{1,8}"]
        .prop_filter("says something", |text| !text.trim().is_empty())
}

/// Generates pairs of a question and its answer.
fn turns() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((text(), text()), 1..5)
}

/// Builds the conversation up to the question of the turn `last`.
fn up_to(turns: &[(String, String)], last: usize) -> Conversation {
    let mut messages = Vec::new();
    for (question, answer) in &turns[..last] {
        messages.push(json!({"role": "user", "content": question}));
        messages.push(json!({"role": "assistant", "content": answer}));
    }
    messages.push(json!({"role": "user", "content": turns[last].0}));
    Conversation::read(&messages).unwrap()
}

/// Returns the texts that make up the identity of a conversation.
fn words(turns: &[(String, String)], last: usize) -> Vec<String> {
    let mut words = Vec::new();
    for (question, answer) in &turns[..last] {
        words.extend([normal(question), normal(answer)]);
    }
    words.push(normal(&turns[last].0));
    words
}

proptest! {
    /// A conversation that continues from an answer has the fingerprint that was stored with the answer.
    #[test]
    fn a_conversation_goes_on_where_it_was_answered(turns in turns()) {
        let root = root();
        prop_assert_eq!(up_to(&turns, 0).ending(with(&root)), None);
        for last in 1..turns.len() {
            let answered = up_to(&turns, last - 1).reply(with(&root), &turns[last - 1].1);
            prop_assert_eq!(up_to(&turns, last).ending(with(&root)), Some(answered));
        }
    }

    /// The fingerprint of a conversation differs from the fingerprints of its beginnings and of all other
    /// conversations.
    #[test]
    fn a_fingerprint_stands_for_one_conversation(one in turns(), two in turns()) {
        let root = root();
        for a in 0..one.len() {
            for b in 0..two.len() {
                let same = words(&one, a) == words(&two, b);
                let (first, second) = (up_to(&one, a), up_to(&two, b));
                prop_assert_eq!(first.request(with(&root)) == second.request(with(&root)), same);
                // An answer and a question with the same text have different fingerprints.
                let answered = second.reply(with(&root), &two[b].1);
                prop_assert_ne!(first.request(with(&root)), answered.clone());
                let prefix = first.ending(with(&root));
                let goes_on = a > 0 && words(&one, a)[..2 * a] == [&words(&two, b)[..], &[normal(&two[b].1)]].concat();
                prop_assert_eq!(prefix == Some(answered), goes_on);
            }
        }
    }

    /// The parser either accepts or refuses any input, and never panics.
    #[test]
    fn nothing_that_is_sent_panics(role in "user|assistant|system|x", text in any::<String>(), kind in "text|image_url|file|input_audio|refusal") {
        let part = json!({"type": kind, "text": text, "image_url": {"url": text}, "file": {"file_data": text},
            "input_audio": {"data": text, "format": text}});
        let _ = Conversation::read(&[json!({"role": role, "content": [part]})]);
    }
}

#[test]
fn a_conversation_without_its_bytes_is_the_same() {
    let picture = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
    let mut conversation = read(&json!([
        {"role": "user", "content": [picture("aGVsbG8="), {"type": "image_url", "image_url": {"url": "artifact:abc"}}]},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": [picture("d29ybGQ=")]},
    ]))
    .unwrap();
    let root = root();
    let all = |conversation: &Conversation| {
        (
            conversation.ending(with(&root)),
            conversation.request(with(&root)),
            conversation.reply(with(&root), "x"),
        )
    };
    let before = all(&conversation);
    conversation.forget_bytes();
    let attached = conversation.said().iter().flat_map(|said| &said.attached);
    assert_eq!(attached.filter(|attached| matches!(attached, Attached::Fingerprint(_))).count(), 3);
    assert_eq!(all(&conversation), before);
}
