//! The properties that the design documents state, over everything that could come in.

use crate::*;
use polity_society::content::{Artifact, Capabilities, Capability, Direction, Kind};
use polity_society::id::{AgentId, ArtifactId};
use polity_society::text::Texts;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::sync::LazyLock;

static LANGUAGES: LazyLock<[Texts; 2]> = LazyLock::new(|| [testing::chinese(), testing::english()]);

fn kinds() -> impl Strategy<Value = Kind> {
    proptest::sample::select(Kind::ALL.to_vec())
}

fn binary_kinds() -> impl Strategy<Value = Kind> {
    kinds().prop_filter("binary", |kind| *kind != Kind::Text)
}

fn mime_types() -> impl Strategy<Value = String> {
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
    prop_oneof![
        4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[a-z]{1,8}/[a-z0-9.+-]{1,20}",
        1 => any::<String>(),
    ]
}

/// File names of every sort: ordinary ones, those that look like the block's own lines, and those with characters that
/// break or turn a line.
fn filenames() -> impl Strategy<Value = String> {
    let pieces = proptest::sample::select(vec![
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
    ]);
    prop_oneof![
        any::<String>(),
        vec(pieces, 0..6).prop_map(|pieces| pieces.concat()),
        "[a-z]{1,8}\\.[a-z]{3}"
    ]
}

prop_compose! {
    fn artifacts(kinds: BoxedStrategy<Kind>)(
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

fn capabilities() -> impl Strategy<Value = Capabilities> {
    let known = ["text", "vision", "audio", "video", "file", "structured_output", "tool_calling", "smell"];
    let known: Vec<Capability> = known.iter().filter_map(|name| Capability::new(name)).collect();
    let some = || proptest::sample::subsequence(known.clone(), 0..=known.len());
    (some(), some()).prop_map(|(input, output)| Capabilities { input, output })
}

fn file_types() -> impl Strategy<Value = FileTypes> {
    let patterns = ["*/*", "image/*", "audio/*", "video/*", "application/pdf"].map(str::to_owned).to_vec();
    proptest::sample::subsequence(patterns, 0..=5).prop_map(|patterns| FileTypes::parse(&patterns).0)
}

fn reasons() -> impl Strategy<Value = BlockReason> {
    let ids = vec("[a-z]{1,8}-[a-z0-9]{4}", 0..4);
    let forward_to = ids.prop_map(|ids| ids.into_iter().map(AgentId::new).collect());
    prop_oneof![
        3 => forward_to.prop_map(|forward_to| BlockReason::Unsupported { forward_to }),
        1 => Just(BlockReason::ReadFailed),
    ]
}

fn content_of(result: &RouteResult) -> Option<&str> {
    match &result.routed {
        Routed::Text { content, .. } => Some(content),
        Routed::ImageUrl { .. } | Routed::File { .. } => None,
    }
}

/// Whether `text` holds a run of 64 characters of `base64`.
fn leaks(text: &str, base64: &str) -> bool {
    base64.as_bytes().windows(64).any(|run| std::str::from_utf8(run).is_ok_and(|run| text.contains(run)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Capability routing, Property 2.
    #[test]
    fn property_2_supported_attachments_are_included(
        kind in binary_kinds(), mime_type in mime_types(), mut capabilities in capabilities(),
    ) {
        capabilities.input.push(kind.needs());
        let route = route(&Content { kind, mime_type: &mime_type }, &capabilities, &FileTypes::default());
        let expected = match kind {
            Kind::Image => route == Route::Image,
            Kind::Audio => matches!(route, Route::Audio(_) | Route::File),
            _ => route == Route::File,
        };
        prop_assert!(expected, "{kind:?} {mime_type}: {route:?}");
    }

    /// Capability routing, Property 3.
    #[test]
    fn property_3_unsupported_attachments_are_described(
        artifact in artifacts(binary_kinds().boxed()), mut capabilities in capabilities(), file_types in file_types(),
        base64 in "[A-Za-z0-9+/]{88,200}",
    ) {
        let needed = artifact.kind.needs();
        capabilities.input.retain(|capability| *capability != needed);
        let route = route(&Content::of(&artifact), &capabilities, &file_types);
        prop_assert_eq!(&route, &Route::Describe(Reason::MissingCapability(needed)));
        for texts in &*LANGUAGES {
            let result = route_result(&route, &artifact, Material::Base64(&base64), texts);
            prop_assert_eq!(content_of(&result), Some(&*describe_unreadable(&artifact, texts)));
            prop_assert!(!leaks(&serde_json::to_string(&result).unwrap(), &base64));
        }
    }

    /// Capability routing, Property 4. A name on the way into a line may be quoted; Property 5 shows that nothing of it
    /// is lost.
    #[test]
    fn property_4_a_description_is_complete(artifact in artifacts(kinds().boxed()), reason in reasons()) {
        for texts in &*LANGUAGES {
            let text = AttachmentBlock::new(&artifact, reason.clone()).text(texts);
            prop_assert!(text.contains(&artifact.id.reference()));
            prop_assert!(text.contains(words::kind_name(artifact.kind, texts)));
            prop_assert!(text.contains(&HumanSize::of_bytes(artifact.size).to_string()));
            if let Some(filename) = &artifact.filename {
                prop_assert!(text.contains(&*quote::quote_if_needed(filename)));
            }
            let BlockReason::Unsupported { forward_to } = &reason else { continue };
            prop_assert!(text.contains("send_message"));
            prop_assert!(forward_to.iter().all(|id| text.contains(id.as_str())));
            if forward_to.is_empty() {
                prop_assert!(text.contains("introduction_request") && text.contains("create_role"));
            }
        }
    }

    /// Capability routing, Property 5.
    #[test]
    fn property_5_a_block_reads_back_whatever_the_file_is_called(
        kind in kinds(), id in "[a-z0-9]{1,12}", filename in option::of(filenames()), size in option::of(any::<u64>()),
        mime_type in option::of(mime_types()), reason in reasons(),
    ) {
        let size = size.map(HumanSize::of_bytes);
        let block = AttachmentBlock { kind, filename, artifact: ArtifactId::new(id), size, mime_type, reason };
        for texts in &*LANGUAGES {
            let text = block.text(texts);
            prop_assert_eq!(parse_attachment_block(&text, texts), Some(block.clone()), "{}", text);
        }
    }

    /// Any text is read without failing, and a block that reads is the one that is written.
    #[test]
    fn what_reads_as_a_block_writes_as_the_same(pieces in vec(filenames(), 0..6)) {
        for texts in &*LANGUAGES {
            let text = pieces.concat();
            if let Some(block) = parse_attachment_block(&text, texts) {
                prop_assert_eq!(parse_attachment_block(&block.text(texts), texts), Some(block));
            }
        }
    }

    /// Artifact routing, Property 1 and INV-2.
    #[test]
    fn property_1_text_is_never_encoded(
        mut artifact in artifacts(Just(Kind::Text).boxed()), text in any::<String>(), capabilities in capabilities(),
        file_types in file_types(),
    ) {
        artifact.size = text.len() as u64;
        let route = route(&Content::of(&artifact), &capabilities, &file_types);
        prop_assert_eq!(&route, &Route::Text);
        let page = cut_text(&text, 0, usize::MAX);
        let result = route_result(&route, &artifact, Material::Text(page), &LANGUAGES[0]);
        prop_assert_eq!(result.content_type, ContentType::Text);
        prop_assert_eq!(content_of(&result), Some(&*text));
        let message = tool_message(&result);
        prop_assert_eq!(message["content"].as_str(), Some(&*text));
        let inlined = inline_text(&text, &artifact, usize::MAX, &LANGUAGES[0]);
        prop_assert_eq!(&*inlined, &text);
    }

    /// Artifact routing, Property 2 and INV-1: whatever is in hand, and whatever the route.
    #[test]
    fn property_2_binary_content_never_enters_a_text(
        artifact in artifacts(binary_kinds().boxed()), capabilities in capabilities(), file_types in file_types(),
        base64 in "[A-Za-z0-9+/]{88,200}", reason in reasons(),
    ) {
        let route = route(&Content::of(&artifact), &capabilities, &file_types);
        for texts in &*LANGUAGES {
            for material in [Material::Base64(&base64), Material::Withheld, Material::Unreadable] {
                let result = route_result(&route, &artifact, material, texts);
                prop_assert!(!leaks(content_of(&result).unwrap_or_default(), &base64));
                prop_assert!(!leaks(&tool_message(&result).to_string(), &base64));
            }
            prop_assert!(!leaks(&AttachmentBlock::new(&artifact, reason.clone()).text(texts), &base64));
            prop_assert!(!leaks(&describe_old(&artifact, texts), &base64));
        }
    }

    /// Artifact routing, Property 3.
    #[test]
    fn property_3_images_go_to_models_that_see(
        mut artifact in artifacts(Just(Kind::Image).boxed()), mut capabilities in capabilities(),
        mime_type in proptest::sample::select(vec!["image/jpeg", "image/png", "image/gif", "image/webp"]),
        base64 in "[A-Za-z0-9+/]{88,200}",
    ) {
        artifact.mime_type = mime_type.to_owned();
        capabilities.input.push(Capability::VISION);
        let route = route(&Content::of(&artifact), &capabilities, &FileTypes::default());
        let result = route_result(&route, &artifact, Material::Base64(&base64), &LANGUAGES[0]);
        let json = serde_json::to_value(&result).unwrap();
        prop_assert_eq!(json["routing"].as_str(), Some("image_url"));
        prop_assert_eq!(json["imageUrl"]["type"].as_str(), Some("image_url"));
        let url = format!("data:{mime_type};base64,{base64}");
        prop_assert_eq!(json["imageUrl"]["image_url"]["url"].as_str(), Some(&*url));
    }

    /// Artifact routing, INV-3: the file's name, size, label and time, and the order of the capabilities, do not matter.
    #[test]
    fn inv_3_the_same_inputs_give_the_same_route(
        one in artifacts(kinds().boxed()), other in artifacts(kinds().boxed()), mut capabilities in capabilities(),
        file_types in file_types(),
    ) {
        let twin = Artifact { kind: one.kind, mime_type: one.mime_type.to_ascii_uppercase(), ..other };
        let first = route(&Content::of(&one), &capabilities, &file_types);
        prop_assert_eq!(&route(&Content::of(&one), &capabilities, &file_types), &first);
        capabilities.input.reverse();
        prop_assert_eq!(&route(&Content::of(&twin), &capabilities, &file_types), &first);
    }

    /// Artifact routing, INV-4.
    #[test]
    fn inv_4_a_result_is_whole(
        artifact in artifacts(kinds().boxed()), capabilities in capabilities(), file_types in file_types(),
        base64 in "[A-Za-z0-9+/]{4,40}",
    ) {
        let route = route(&Content::of(&artifact), &capabilities, &file_types);
        let page = Page { text: "text", next_offset: None };
        let material = if route == Route::Text { Material::Text(page) } else { Material::Base64(&base64) };
        let result = route_result(&route, &artifact, material, &LANGUAGES[0]);
        let json = serde_json::to_value(&result).unwrap();
        let content_type = match artifact.kind { Kind::Text => "text", Kind::Image => "image", _ => "binary" };
        prop_assert_eq!(json["contentType"].as_str(), Some(content_type));
        let has = ["content", "imageUrl", "file"].map(|field| json.get(field).is_some());
        let expected = match json["routing"].as_str() {
            Some("text") => [true, false, false],
            Some("image_url") => [false, true, false],
            Some("file") => [false, false, true],
            other => panic!("routing is {other:?}"),
        };
        prop_assert_eq!(has, expected);
        prop_assert_eq!(json["metadata"]["id"].as_str(), Some(artifact.id.as_str()));
        prop_assert_eq!(json["metadata"]["size"].as_u64(), Some(artifact.size));
        prop_assert_eq!(json["metadata"]["filename"].as_str(), artifact.filename.as_deref());
        let binary_type = (artifact.kind != Kind::Text).then(|| artifact.kind.as_str());
        prop_assert_eq!(json["metadata"]["binaryType"].as_str(), binary_type);
        let message = tool_message(&result);
        prop_assert_eq!(message["status"].as_str(), Some("success"));
        prop_assert_eq!(&message["routing"], &json["routing"]);
        prop_assert_eq!(&message["metadata"], &json["metadata"]);
        prop_assert_eq!(message.get("content"), json.get("content"));
        prop_assert!(message.get("imageUrl").is_none() && message.get("file").is_none());
    }

    /// Artifact routing, INV-5: a model that can do nothing at all gets a text for everything.
    #[test]
    fn inv_5_without_capabilities_everything_is_text(artifact in artifacts(kinds().boxed()), output in capabilities()) {
        let nothing = Capabilities { input: Vec::new(), output: output.output };
        let route = route(&Content::of(&artifact), &nothing, &FileTypes::default());
        prop_assert!(!nothing.has(&Capability::TEXT, Direction::Input));
        for texts in &*LANGUAGES {
            let result = route_result(&route, &artifact, Material::Withheld, texts);
            prop_assert!(content_of(&result).is_some_and(|content| !content.is_empty()));
        }
    }
}
