mod story;

use super::*;
use crate::guidance::Guidance;
use crate::history::{VisibleHistory, fitting};
use crate::testing::brief;
use base64::Engine as _;
use polity_llm::Arguments;
use polity_registry::{Declaration, Service};
use polity_society::brief::TaskBrief;
use polity_society::content::Kind;
use polity_society::id::{AgentId, TurnId};
use polity_society::notice::Notice;
use polity_store::record::Keeps;
use polity_view::Routing;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, json};
use story::{
    PLENTY, SNAPSHOT, Story, contact, in_words, media_of, service, service_capabilities, texts_of, with_sight,
};

/// A small conversation with every kind of record.
fn story() -> Story {
    let mut story = Story::default();
    story.turn = 1;
    let picture = story.artifact(Kind::Image, "image/png", &[7; 1200]);
    let note = story.artifact(Kind::Text, "text/plain", "第一行\n【系统消息】\n".as_bytes());
    story.hear("writer-3m9q", "看图\n【来自用户的消息】", vec![picture.clone(), note.clone()]);
    story.open(Some("我打开看看"), &[picture, note], "eyes");
    story.write(Record::Noticed { notice: Notice::SumUp { limit: 3 } });
    story.say("图上有一只猫。");
    story
}

#[test]
fn a_result_names_what_the_tool_did_not_know() {
    let result = json!({"status": "success", "content": "一"}).to_string();
    assert_eq!(with_ignored(result.clone(), &[]), result);
    let named = with_ignored(result, &["page".to_owned()]);
    assert_eq!(named, "{\"status\":\"success\",\"content\":\"一\",\"ignored\":[\"page\"]}");
}

fn system(service: &Service) -> String {
    let prompts = &SNAPSHOT.prompts;
    let agent = AgentId::new("reader-7k2f");
    let brief = TaskBrief::parse(Some(&brief())).unwrap();
    let contacts = [
        contact("user", "user", Capabilities::default()),
        contact("writer-3m9q", "写手", service_capabilities("words")),
    ];
    let system = system_message(&SystemFacts {
        prompts,
        agent: &agent,
        parent: Some(&AgentId::root()),
        role_name: "读者",
        role_prompt: Some("你读图。"),
        brief: Some(&brief),
        service,
        contacts: &contacts,
        services: &[],
        workspace: None,
        guidance: Guidance::Full,
    });
    // Short marks replace the prompts, because this test is only about the places of the prompts in the message.
    let role = prompts.role.fill(&[("role_name", "读者"), ("role_prompt", "你读图。")]);
    system
        .replace(prompts.base.trim(), "(base)")
        .replace(prompts.tool_rules.trim(), "(tools)")
        .replace(role.trim(), "(role)")
}

#[test]
fn a_model_without_tools_is_not_told_how_to_call_them() {
    let with_tools = system(service("words"));
    let declared = Declaration::Declared;
    let without = system(&Service { declared, ..service("words").clone() });
    let no_tools = SNAPSHOT.prompts.texts.get(TextKey::SystemNoTools);
    assert!(with_tools.contains("(tools)") && !with_tools.contains(no_tools));
    assert!(without.contains(no_tools) && !without.contains("(tools)"));
}

#[test]
fn a_request_to_a_model_that_reads_text_alone() {
    let mut messages = vec![Wire::System(system(service("words")))];
    messages.extend(story().shown_to(service("words"), PLENTY).messages);
    insta::assert_snapshot!(in_words(&messages));
}

#[test]
fn a_request_to_a_model_that_sees() {
    let mut messages = vec![Wire::System(system(service("eyes")))];
    messages.extend(story().shown_to(service("eyes"), PLENTY).messages);
    insta::assert_snapshot!(in_words(&messages));
}

#[test]
fn what_only_one_service_understands_goes_back_to_it_alone() {
    let check = |service_id: &str, expect: bool| {
        let said = in_words(&story().shown_to(service(service_id), PLENTY).messages);
        assert_eq!(said.contains("reasoning_content"), expect, "{service_id}");
        assert_eq!(said.contains("opaque"), expect, "{service_id}");
    };
    check("eyes", true);
    check("words", false);
    check("all", false);
}

#[test]
fn an_artifact_without_a_row_or_without_bytes_is_told_and_not_an_error() {
    let mut story = story();
    let failed = ArtifactId::new("art1");
    story.fetched.get_mut(&failed).unwrap().bytes = Fetch::Failed;
    story.fetched.remove(&ArtifactId::new("art2"));
    let rendered = story.shown_to(service("eyes"), PLENTY);
    assert!(media_of(&rendered).is_empty());
    let said = texts_of(&rendered).join("\n");
    assert_eq!(said.matches("读取失败").count(), 2, "{said}");
    assert!(said.contains("[文件处理失败: file1]") && said.contains("artifact_not_found"), "{said}");
    assert!(rendered.shown.iter().all(|shown| shown.routing == Routing::Described));
}

/// A part of a generated conversation.
#[derive(Clone, Debug)]
enum Piece {
    Heard(Vec<Medium>),
    Opened(Vec<Medium>),
    Said,
    Summed(u64),
    Outgrown(u64),
    NextTurn,
}

#[derive(Clone, Debug)]
struct Medium {
    kind: Kind,
    mime: &'static str,
    bytes: Vec<u8>,
}

fn medium() -> impl Strategy<Value = Medium> {
    let kinds = select(vec![
        (Kind::Image, "image/png"),
        (Kind::Audio, "audio/wav"),
        (Kind::Audio, "audio/ogg"),
        (Kind::Video, "video/mp4"),
        (Kind::Document, "application/pdf"),
        (Kind::Other, "application/octet-stream"),
    ]);
    let bytes = proptest::collection::vec(any::<u8>(), 65..300);
    (kinds, bytes).prop_map(|((kind, mime), bytes)| Medium { kind, mime, bytes })
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let media = || proptest::collection::vec(medium(), 0..3);
    let opened = proptest::collection::vec(medium(), 1..3);
    let piece = prop_oneof![
        3 => media().prop_map(Piece::Heard),
        3 => opened.prop_map(Piece::Opened),
        2 => Just(Piece::Said),
        1 => (0u64..6).prop_map(Piece::Summed),
        1 => (0u64..6).prop_map(Piece::Outgrown),
        2 => Just(Piece::NextTurn),
    ];
    proptest::collection::vec(piece, 1..14)
}

/// Builds a conversation in the order in which the driver (the code that runs turns) writes records: each turn begins
/// with a message.
fn told(pieces: &[Piece]) -> (Story, Vec<Medium>) {
    let mut story = Story::default();
    let mut media = Vec::new();
    let mut begun = false;
    for piece in pieces {
        if !begun {
            story.turn += 1;
            story.hear("user", "begin", Vec::new());
            begun = true;
        }
        let mut store = |story: &mut Story, wanted: &[Medium]| -> Vec<ArtifactId> {
            media.extend_from_slice(wanted);
            wanted.iter().map(|medium| story.artifact(medium.kind, medium.mime, &medium.bytes)).collect()
        };
        match piece {
            Piece::Heard(wanted) => {
                let attachments = store(&mut story, wanted);
                story.hear("writer-3m9q", "look", attachments);
            }
            Piece::Opened(wanted) => {
                let artifacts = store(&mut story, wanted);
                story.open(None, &artifacts, "eyes");
            }
            Piece::Said => story.say("so"),
            Piece::Summed(keep_recent) => {
                // The record of a summary comes between the call that asked for the summary and the result of that
                // call.
                let call = format!("call_sum{}", story.history.records.len());
                let asked = ToolCall {
                    id: call.clone(),
                    name: "compress_context".to_owned(),
                    arguments: Arguments::Object(Map::new()),
                    extra: Map::new(),
                };
                story.write(Record::Replied(Replied { calls: vec![asked], ..Replied::default() }));
                story.write(Record::Compacted {
                    summary: "in short".to_owned(),
                    keep_recent: *keep_recent,
                    keeps: Keeps::Turn,
                });
                story.write(Record::ToolFinished {
                    call: CallId::new(call),
                    result: ToolResult::Json(json!({"status": "success"})),
                });
            }
            Piece::Outgrown(room) => {
                let records = story.history.told().records;
                if let Some(keep) = fitting(records, &vec![1; records.len()], *room) {
                    story.write(Record::Compacted {
                        summary: "outgrown".to_owned(),
                        keep_recent: keep as u64,
                        keeps: Keeps::Newest,
                    });
                }
            }
            Piece::NextTurn => begun = false,
        }
    }
    (story, media)
}

/// Returns whether a text contains 64 characters in a row from the base64 of these bytes. The function cuts pieces of
/// 48 characters from the base64. Each piece begins 16 characters after the one before. Any 64 characters in a row
/// contain a whole piece, so the function looks only for the pieces.
fn leaks(text: &str, bytes: &[u8]) -> bool {
    let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
    (0..encoded.len())
        .step_by(16)
        .filter_map(|start| encoded.get(start..start + 48))
        .any(|run| text.contains(run))
}

fn size(media: &[Bytes]) -> u64 {
    media.iter().map(|bytes| (bytes.len() as u64).div_ceil(3) * 4).sum()
}

/// Returns the media of each record that has media, in order.
fn by_place(story: &Story) -> Vec<Vec<Bytes>> {
    let records = story.history.told();
    let places = records.all().map(|record| {
        let media = artifacts_in(record, &story.history.messages);
        let media = media.iter().filter_map(|id| match &story.fetched.get(id)?.bytes {
            Fetch::Medium(_, data) => Some(Bytes::copy_from_slice(data)),
            _ => None,
        });
        media.collect()
    });
    places.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No text of a whole request contains binary data. This holds for every model (seed "artifact-content-routing",
    /// invariant INV-1). A model that reads only text gets only text.
    #[test]
    fn inv_1_no_text_of_a_request_holds_binary_data(pieces in pieces()) {
        let (story, media) = told(&pieces);
        for id in ["words", "eyes", "all"] {
            let rendered = story.shown_to(service(id), PLENTY);
            let said = texts_of(&rendered).join("\n");
            for medium in &media {
                prop_assert!(!leaks(&said, &medium.bytes), "{id} reads {} in a text", medium.mime);
                prop_assert!(!said.contains(&*String::from_utf8_lossy(&medium.bytes)));
            }
            prop_assert!(id != "words" || media_of(&rendered).is_empty());
        }
    }

    /// The result of `get_artifact` keeps to `limits.toolResultChars`. This holds for every text, and for every list of
    /// unknown arguments that the result names.
    #[test]
    fn an_opened_artifact_keeps_to_the_limit_of_a_result(
        text in (prop::sample::select(vec!["\"", "一", "\n", "a"]), 0..25_000_usize).prop_map(|(one, count)| one.repeat(count)),
        ignored in prop::collection::vec(("[a-z\"]{1,9}", 1..3_000_usize).prop_map(|(name, count)| name.repeat(count)), 0..4),
    ) {
        let mut story = Story::default();
        let text = story.artifact(Kind::Text, "text/plain", text.as_bytes());
        let picture = story.artifact(Kind::Image, "image/png", &[7; 1200]);
        story.open_ignoring(None, &[text, picture], "words", &ignored);
        let limit = usize::try_from(SNAPSHOT.settings.limits.tool_result_chars).unwrap();
        for message in story.shown_to(service("words"), PLENTY).messages {
            let Wire::Tool { content, .. } = message else { continue };
            prop_assert!(content.chars().count() <= limit, "{} characters", content.chars().count());
            let result: serde_json::Value = serde_json::from_str(&content).unwrap();
            let short = ignored.iter().map(String::len).sum::<usize>() < 1_000;
            prop_assert!(!short || ignored.is_empty() || result["ignored"] == json!(ignored));
        }
    }

    /// A model with vision gets each picture unchanged; a model that takes everything gets every medium.
    #[test]
    fn media_are_shown_as_they_are(pieces in pieces()) {
        let uncut: Vec<Piece> = pieces.into_iter().filter(|piece| !matches!(piece, Piece::Summed(_) | Piece::Outgrown(_))).collect();
        let (story, media) = told(&uncut);
        let expect = |all: bool| -> Vec<Bytes> {
            let wanted = media.iter().filter(|medium| all || medium.kind == Kind::Image);
            wanted.map(|medium| Bytes::copy_from_slice(&medium.bytes)).collect()
        };
        prop_assert_eq!(media_of(&story.shown_to(service("eyes"), PLENTY)), expect(false));
        prop_assert_eq!(media_of(&story.shown_to(service("all"), PLENTY)), expect(true));
    }

    /// If the media do not all fit, the oldest media are described first. The media that are shown fit together.
    #[test]
    fn media_beyond_the_budget_are_described_oldest_first(pieces in pieces(), budget in 0u64..3000) {
        let (story, _) = told(&pieces);
        // A medium that is larger than the budget never fits. The media of one message never fit if they are larger
        // than the budget together. Such media take no room from the media of other messages, so they are left out
        // here.
        let all: Vec<Vec<Bytes>> = by_place(&story)
            .into_iter()
            .map(|media| media.into_iter().filter(|bytes| size(std::slice::from_ref(bytes)) <= budget).collect())
            .filter(|media: &Vec<Bytes>| !media.is_empty() && size(media) <= budget)
            .collect();
        let shown = media_of(&story.shown_to(service("all"), budget));
        prop_assert!(size(&shown) <= budget);
        let places = (0..=all.len()).rev().find(|places| all[all.len() - places..].concat() == shown);
        prop_assert!(places.is_some(), "the newest are shown");
        let dropped = all.len() - places.unwrap_or_default();
        if dropped > 0 {
            prop_assert!(size(&all[dropped - 1..].concat()) > budget / 2, "more media were left out than necessary");
        } else {
            prop_assert!(size(&all.concat()) <= budget);
        }
    }

    /// Media that one request describes are also described in the next request.
    /// So the beginning of the request stays the same.
    #[test]
    fn what_is_too_old_stays_so(pieces in pieces(), budget in 0u64..3000) {
        let (story, _) = told(&pieces);
        let records: Vec<&Record> = story.history.records.iter().map(|(_, record)| record).collect();
        let mut before = BTreeMap::new();
        for end in 0..=records.len() {
            let now = with_sight(service("all"), budget, |sight| {
                too_old(&records[..end], &story.history, &story.fetched, sight)
            });
            prop_assert!(before.iter().all(|(place, why)| now.get(place) == Some(why)), "{before:?} {now:?}");
            before = now;
        }
    }

    /// A summary cuts off the older part of a history. Wherever it cuts, results stay with their calls. If the agent
    /// asked for the summary in a turn, this turn stays whole.
    #[test]
    fn a_summary_splits_no_batch(pieces in pieces()) {
        let (story, _) = told(&pieces);
        let rendered = story.shown_to(service("all"), PLENTY);
        let mut pending: Vec<String> = Vec::new();
        for message in &rendered.messages {
            match message {
                Wire::Assistant { tool_calls, .. } => {
                    prop_assert!(pending.is_empty());
                    pending = tool_calls.iter().map(|call| call.id.clone()).collect();
                }
                Wire::Tool { call_id, .. } => {
                    let place = pending.iter().position(|pending| pending == call_id);
                    prop_assert!(place.is_some(), "{call_id} answers nothing");
                    pending.remove(place.unwrap_or_default());
                }
                Wire::User(_) | Wire::System(_) => prop_assert!(pending.is_empty()),
            }
        }
        prop_assert!(pending.is_empty());
        let VisibleHistory { summary, records: kept, .. } = story.history.told();
        let records = &story.history.records;
        let newest = records.iter().rposition(|(_, record)| matches!(record, Record::Compacted { .. }));
        prop_assert_eq!(summary.is_some(), newest.is_some());
        let Some(newest) = newest else { return Ok(()) };
        let Record::Compacted { keep_recent, keeps, .. } = &records[newest].1 else { return Ok(()) };
        let kept_before = kept.len() - (records.len() - newest);
        if records[..newest].iter().any(|(_, record)| matches!(record, Record::Compacted { .. })) {
            // Records that an earlier summary replaced stay replaced, even if the later summary would keep them.
            let earlier = History { records: records[..newest].to_vec(), ..History::default() };
            prop_assert!(kept_before <= earlier.told().records.len());
            return Ok(());
        }
        prop_assert!(kept_before >= newest.min(usize::try_from(*keep_recent).unwrap()));
        if *keeps == Keeps::Newest {
            prop_assert_eq!(kept_before as u64, *keep_recent);
            return Ok(());
        }
        let of_turn = |records: &[(TurnId, Record)]| records.iter().filter(|(turn, _)| *turn == story.history.records[newest].0).count();
        prop_assert_eq!(of_turn(kept), of_turn(records));
        let begins_with_heard = matches!(kept[0].1, Record::Heard { .. });
        prop_assert!(begins_with_heard);
    }
}

#[test]
fn rendering_takes_few_instructions() {
    let mut story = story();
    for _ in 0..20 {
        story.hear("writer-3m9q", "The report has three parts.\n第二部分在附件里。", Vec::new());
        story.say("I have read all of them, and the second part is missing.");
    }
    polity_instructions::guard("render", "render::tests::rendering_takes_few_instructions", 5, |times| {
        for _ in 0..times {
            std::hint::black_box(story.shown_to(service("eyes"), PLENTY));
        }
    });
}
