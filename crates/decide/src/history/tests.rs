use super::*;
use crate::testing::snapshot;
use polity_llm::ToolCall;
use polity_society::id::{AgentId, CallId, MessageId, TaskId, TurnId};
use polity_society::message::{Expects, Finality, Payload, Sender};
use polity_society::notice::Notice;
use polity_store::record::Replied;
use proptest::prelude::*;
use serde_json::{Map, json};

/// A batch: an answer with calls, and the results of the calls.
fn batch(number: usize, calls: usize) -> Vec<Record> {
    let call = |index: usize| ToolCall {
        id: format!("call_{number}_{index}"),
        name: "list_contacts".to_owned(),
        arguments: Arguments::Object(Map::new()),
        extra: Map::new(),
    };
    let replied = Replied { calls: (0..calls).map(call).collect(), ..Replied::default() };
    let result = |index: usize| Record::ToolFinished {
        call: CallId::new(format!("call_{number}_{index}")),
        result: ToolResult::Json(json!({"found": "nothing much"})),
    };
    std::iter::once(Record::Replied(replied)).chain((0..calls).map(result)).collect()
}

fn message(number: usize) -> Message {
    Message {
        id: MessageId::from_sequence(i64::try_from(number).unwrap()),
        task: TaskId::new("t-1"),
        from: Sender::Party(AgentId::user()),
        from_role: String::new(),
        to: AgentId::root(),
        body: Body::Payload(Payload::text("do this")),
        in_reply_to: Vec::new(),
        about: None,
        on_behalf_of: None,
        expects: Expects::Answer,
        finality: Finality::Final,
        introduction: None,
        introduced: None,
        due_at: None,
    }
}

fn heard(number: usize) -> Record {
    Record::Heard { message: MessageId::from_sequence(i64::try_from(number).unwrap()) }
}

/// Generates the records of conversations, each with its turn, and the tokens of each record. The driver (the code that
/// runs turns) could write the records in this order.
fn conversations() -> impl Strategy<Value = (Vec<(TurnId, Record)>, Vec<u64>)> {
    let pieces = proptest::collection::vec((0usize..5, 0u64..50), 1..30);
    pieces.prop_map(|pieces| {
        let (mut records, mut costs) = (Vec::new(), Vec::new());
        let mut turn = 0;
        for (number, (kind, cost)) in pieces.into_iter().enumerate() {
            if kind == 0 || records.is_empty() {
                turn += 1;
                records.push((TurnId::new(turn), heard(number)));
                costs.push(cost);
                continue;
            }
            for record in batch(number, kind) {
                records.push((TurnId::new(turn), record));
                costs.push(cost);
            }
        }
        (records, costs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A batch is an answer with its calls and results. Whether there is much room or little, every result keeps its
    /// call, and the newest batch stays. As many older batches stay as fit.
    #[test]
    fn what_fits_is_whole((records, costs) in conversations(), room in 0u64..400) {
        let Some(kept) = fitting(&records, &costs, room) else {
            let newest = records.iter().rposition(|(_, record)| begins_something(record)).unwrap_or(0);
            prop_assert!(newest == 0 || costs.iter().sum::<u64>() <= room);
            return Ok(());
        };
        prop_assert!(kept > 0 && kept < records.len());
        let start = records.len() - kept;
        prop_assert!(begins_something(&records[start].1));
        let taken: u64 = costs[start..].iter().sum();
        let is_one_batch = !records[start + 1..].iter().any(|(_, record)| begins_something(record));
        prop_assert!(taken <= room || is_one_batch);
        let before = records[..start].iter().rposition(|(_, record)| begins_something(record)).unwrap_or(0);
        prop_assert!(costs[before..].iter().sum::<u64>() > room, "more could have stayed");
    }

    /// After a summary, a model is shown exactly the records that fitted, and all requests that are still open.
    #[test]
    fn what_is_told_after_a_summary_is_what_fitted(
        (records, costs) in conversations(),
        room in 0u64..400,
        open in proptest::collection::hash_set(0usize..30, 0..4),
        later in 0usize..3,
    ) {
        let Some(kept) = fitting(&records, &costs, room) else { return Ok(()) };
        let mut history = History { records: records.clone(), ..History::default() };
        let id = |number: &usize| MessageId::from_sequence(i64::try_from(*number).unwrap()).to_string();
        history.open = open.iter().map(id).collect();
        history.messages = open.iter().map(|number| (id(number), message(*number))).collect();
        let summary = "in short".to_owned();
        let compacted = Record::Compacted { summary, keep_recent: kept as u64, keeps: Keeps::Newest };
        let turn = TurnId::new(99);
        history.records.push((turn, compacted));
        let newer: Vec<(TurnId, Record)> = (0..later).flat_map(|number| batch(100 + number, 2)).map(|record| (turn, record)).collect();
        history.records.extend(newer.clone());
        let told = history.told();
        prop_assert_eq!(told.summary, Some("in short"));
        prop_assert_eq!(&told.records[..kept], &records[records.len() - kept..]);
        prop_assert_eq!(&told.records[kept + 1..], &newer[..]);
        for (_, record) in &records[..records.len() - kept] {
            let Record::Heard { message } = record else { continue };
            prop_assert_eq!(told.pinned.contains(&record), history.open.contains(message.as_str()));
        }
    }
}

#[tokio::test]
async fn a_transcript_is_as_long_as_it_may_be() {
    let snapshot = snapshot(&json!({"language": "en"})).await;
    let texts = &snapshot.prompts.texts;
    let mut records = vec![(TurnId::new(1), Record::Noticed { notice: Notice::Nudge })];
    records.extend(batch(1, 2).into_iter().map(|record| (TurnId::new(1), record)));
    let said = Replied { text: Some("word ".repeat(3_000)), ..Replied::default() };
    records.push((TurnId::new(1), Record::Replied(said)));
    let history = History { records, ..History::default() };
    let check = |tokens: u64| {
        let text = transcript(&history.told(), 5, &history.messages, texts, tokens);
        assert!(estimate_tokens(&text) <= tokens, "{tokens}: {}", estimate_tokens(&text));
        text
    };
    insta::assert_snapshot!(check(120), @r#"
    system → All work has stopped, but the user has not received a result. Give the user your final answer now, as text, from wha…
    ← list_contacts({}) list_contacts({})
    = {"found":"nothing much"}
    = {"found":"nothing much"}
    ← word word word word word word word word word word word word word word word word word word word word word word word word wor…
    "#);
    assert!(check(2_000).len() > 4_000);
    check(10);
    check(0);
}

#[test]
fn summaries_are_bounded() {
    assert_eq!(bounded(" short ", 100), "short");
    let long = bounded(&"字".repeat(1_000), 100);
    assert!(estimate_tokens(&long) <= 100 && estimate_tokens(&long) >= 50);
}

#[test]
fn open_requests_are_told_oldest_first_as_far_as_there_is_room() {
    let mut history = History::default();
    for number in 1..=5 {
        history.records.push((TurnId::new(1), heard(number)));
        history.messages.insert(message(number).id.to_string(), message(number));
        history.open.insert(message(number).id.to_string());
    }
    let summary = "in short".to_owned();
    history
        .records
        .push((TurnId::new(1), Record::Compacted { summary, keep_recent: 1, keeps: Keeps::Newest }));
    let pinned = |history: &History| history.told().pinned.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(pinned(&history), [heard(1), heard(2), heard(3), heard(4)]);
    let one = estimate_tokens(&Payload::text("do this").to_json_text());
    history.pin_tokens = Some(one * 2);
    assert_eq!(pinned(&history), [heard(1), heard(2)]);
    history.pin_tokens = Some(0);
    assert_eq!(pinned(&history), []);
}
