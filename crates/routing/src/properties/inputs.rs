//! Generators of inputs for the property tests: artifacts, models, material, and malicious file names.

use crate::*;
use polity_society::content::{Artifact, Capabilities, Capability, Kind};
use polity_society::id::{AgentId, ArtifactId, ServiceId};
use polity_society::mime::{MimePattern, MimeType};
use polity_society::text::Texts;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::LazyLock;

pub(super) static LANGUAGES: LazyLock<[Texts; 2]> =
    LazyLock::new(|| [crate::testing::chinese(), crate::testing::english()]);

pub(super) fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

pub(super) fn binary_kinds() -> impl Strategy<Value = Kind> {
    kinds().prop_filter("binary", |kind| *kind != Kind::Text)
}

pub(super) fn mime_types() -> impl Strategy<Value = MimeType> {
    let known = [
        "text/plain",
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "audio/wav",
        "audio/mpeg",
        "audio/ogg",
        "video/mp4",
        "application/pdf",
        "application/zip",
        "application/octet-stream",
    ];
    let texts = prop_oneof![
        4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[a-z]{1,8}/[a-z0-9.+-]{1,20}",
        1 => any::<String>(),
    ];
    texts.prop_map(MimeType::unchecked)
}

/// Generates pieces of text that imitate the lines of a block, break a line, or change the direction of the text.
pub(super) fn mean_pieces() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "a",
        "图",
        ".png",
        " ",
        "\n",
        "\r\n",
        "\n\n",
        "\u{202e}",
        "\u{2028}",
        "\u{85}",
        "\u{0}",
        "\"",
        "\\",
        "\\n",
        "{filename}",
        "【收到附件】",
        "类型: 图片",
        "文件名: ",
        "工件ID: artifact:x",
        "MIME类型: ",
        "建议转发给: ",
        "File name: ",
        "[",
        "]",
        ", ",
        "【Attachment received】",
        "读取失败: ",
        "\u{200b}",
        "\t",
    ])
}

/// Generates file names: arbitrary texts, names made of malicious pieces, and ordinary names.
pub(super) fn filenames() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        vec(mean_pieces(), 0..6).prop_map(|pieces| pieces.concat()),
        "[a-z]{1,8}\\.[a-z]{3}"
    ]
}

prop_compose! {
    pub(super) fn artifacts(kinds: BoxedStrategy<Kind>)(
        kind in kinds,
        mime_type in mime_types(),
        id in "[a-z0-9]{1,12}",
        filename in option::of(filenames()),
        label in option::of(any::<String>()),
        size in any::<u64>(),
        created_at in any::<i64>(),
    ) -> Artifact {
        let id = ArtifactId::new(id);
        Artifact { id, kind, mime_type, filename, label, size, created_at, meta: serde_json::Map::new() }
    }
}

pub(super) fn capabilities() -> impl Strategy<Value = Capabilities> {
    let known = ["text", "vision", "audio", "video", "file", "structured_output", "tool_calling", "smell"];
    let known: Vec<Capability> = known.iter().filter_map(|name| Capability::new(name)).collect();
    let some = || proptest::sample::subsequence(known.clone(), 0..=known.len());
    (some(), some()).prop_map(|(input, output)| Capabilities { input, output })
}

pub(super) fn file_types() -> impl Strategy<Value = FileTypes> {
    let patterns = ["*/*", "image/*", "audio/*", "video/*", "application/pdf"];
    let patterns: Vec<MimePattern> =
        patterns.iter().map(|text| MimePattern::parse(text).expect("a pattern")).collect();
    proptest::sample::subsequence(patterns, 0..=5).prop_map(|patterns| FileTypes::new(&patterns))
}

/// Generates every route. A test combines the route with any artifact. So the test also covers routes that its artifact
/// could never get.
pub(super) fn routes() -> impl Strategy<Value = Route> {
    proptest::sample::select(vec![
        Route::Text,
        Route::Image,
        Route::Audio(AudioFormat::Wav),
        Route::Audio(AudioFormat::Mp3),
        Route::File,
        Route::Describe(Reason::MissingCapability(Capability::VISION)),
        Route::Describe(Reason::FileTypeNotTaken),
        Route::Describe(Reason::Refused),
        Route::Describe(Reason::TooLarge { encoded: 40_000_000, limit: 24 << 20 }),
        Route::Describe(Reason::TooManyPixels {
            width: 12_000,
            height: 12_000,
            max_bytes: 1 << 28,
            max_edge: 65_535,
        }),
        Route::Describe(Reason::CannotFit { limit: 10 }),
        Route::Describe(Reason::NotConvertible),
        Route::Describe(Reason::Damaged),
    ])
}

pub(super) fn block_reasons() -> impl Strategy<Value = BlockReason> {
    let ids = vec("[a-z]{1,8}-[a-z0-9]{4}", 1..4);
    let contacts = ids.prop_map(|ids| Help::Contacts(ids.into_iter().map(AgentId::new).collect()));
    let service = "[A-Za-z0-9._-]{1,16}";
    let help = prop_oneof![
        2 => contacts,
        1 => Just(Help::Hire),
        1 => service.prop_map(|id| Help::HireOn(ServiceId::new(id))),
        1 => Just(Help::Nobody),
    ];
    let size = || any::<u64>().prop_map(HumanSize::of_bytes);
    let left_out = prop_oneof![
        (size(), size()).prop_map(|(encoded, limit)| LeftOut::TooLarge { encoded, limit }),
        (any::<u32>(), any::<u32>(), size(), any::<u32>())
            .prop_map(|(width, height, limit, edge)| LeftOut::TooManyPixels { width, height, limit, edge }),
        size().prop_map(|limit| LeftOut::CannotFit { limit }),
        Just(LeftOut::NotConvertible),
        Just(LeftOut::Damaged),
    ];
    prop_oneof![
        3 => help.clone().prop_map(BlockReason::Unsupported),
        1 => help.prop_map(BlockReason::Refused),
        2 => left_out.prop_map(BlockReason::LeftOut),
        1 => Just(BlockReason::ReadFailed),
    ]
}

prop_compose! {
    pub(super) fn blocks()(
        kind in kinds(), id in "[a-z0-9]{1,12}", filename in option::of(filenames()), size in option::of(any::<u64>()),
        mime_type in option::of(mime_types()), reason in block_reasons(),
    ) -> AttachmentBlock {
        let size = size.map(HumanSize::of_bytes);
        AttachmentBlock { kind, filename, artifact: ArtifactId::new(id), size, mime_type, reason }
    }
}

/// Generates base64 of more than 64 bytes, long enough for [`leaks`].
pub(super) fn long_base64() -> impl Strategy<Value = String> {
    "[A-Za-z0-9+/]{88,200}"
}

/// Returns the text of a result, if it has one.
pub(super) fn content_of(result: &RouteResult) -> Option<&str> {
    match &result.routed {
        Routed::Text { content, .. } => Some(content),
        Routed::ImageUrl { .. } | Routed::File { .. } => None,
    }
}

/// Returns whether `text` contains 64 consecutive characters of `base64`.
pub(super) fn leaks(text: &str, base64: &str) -> bool {
    base64.as_bytes().windows(64).any(|run| std::str::from_utf8(run).is_ok_and(|run| text.contains(run)))
}
