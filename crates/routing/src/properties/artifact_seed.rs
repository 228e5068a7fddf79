//! Tests of the properties 1 to 3 and the invariants INV-1 to INV-5 of `docs/seeds/artifact-content-routing.design.md`.

use super::inputs::*;
use crate::*;
use polity_society::content::{Artifact, Capability, Direction, Kind};
use polity_society::mime::MimeType;
use proptest::prelude::*;

/// Generates texts of every sort, including some that look like base64.
fn texts_to_show() -> impl Strategy<Value = String> {
    prop_oneof![3 => any::<String>(), 1 => "([A-Za-z0-9+/]{4}){0,40}", 1 => filenames()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Artifact routing, Property 1: every model gets a text as text, unchanged.
    #[test]
    fn artifact_property_1_text_content_is_never_encoded_as_base64(
        mut artifact in artifacts(Just(Kind::Text).boxed()), text in texts_to_show(), capabilities in capabilities(),
        file_types in file_types(),
    ) {
        artifact.size = text.len() as u64;
        let route = route(&Routable::of(&artifact), &capabilities, &file_types);
        prop_assert_eq!(&route, &Route::Text);
        let page = cut_text(&text, 0, usize::MAX);
        let result = serde_json::to_value(route_result(&route, &artifact, Material::Text(page), &Help::Hire, &LANGUAGES[0])).unwrap();
        prop_assert_eq!(&result["contentType"], "text");
        prop_assert_eq!(&result["routing"], "text");
        prop_assert_eq!(&result["content"], &text);
    }

    /// Artifact routing, Property 2: a model that reads only text gets binary content as a description,
    /// even if the caller has the bytes.
    #[test]
    fn artifact_property_2_binary_content_never_enters_a_text_field(
        artifact in artifacts(binary_kinds().boxed()), file_types in file_types(), base64 in long_base64(),
    ) {
        let route = route(&Routable::of(&artifact), &Default::default(), &file_types);
        let page = Page { text: &base64, next_offset: None };
        for texts in &*LANGUAGES {
            for material in [Material::Base64(&base64), Material::Text(page), Material::Withheld, Material::Unreadable] {
                let result = route_result(&route, &artifact, material, &Help::Hire, texts);
                let content = content_of(&result).unwrap_or_default();
                prop_assert!(content.starts_with('['), "{content}");
                prop_assert!(content.contains(&artifact.id.reference()));
                prop_assert!(!leaks(&tool_message(&result).to_string(), &base64));
            }
        }
    }

    /// Artifact routing, Property 3: a model with vision gets a picture as an `image_url` that contains its bytes.
    #[test]
    fn artifact_property_3_image_content_is_routed_to_image_url(
        mut artifact in artifacts(Just(Kind::Image).boxed()), mut capabilities in capabilities(), file_types in file_types(),
        mime_type in proptest::sample::select(vec!["image/jpeg", "image/png", "image/gif", "image/webp"]),
        base64 in long_base64(),
    ) {
        artifact.mime_type = MimeType::unchecked(mime_type);
        capabilities.input.push(Capability::VISION);
        let route = route(&Routable::of(&artifact), &capabilities, &file_types);
        let result = route_result(&route, &artifact, Material::Base64(&base64), &Help::Hire, &LANGUAGES[0]);
        let json = serde_json::to_value(&result).unwrap();
        prop_assert_eq!(&json["contentType"], "image");
        prop_assert_eq!(&json["routing"], "image_url");
        prop_assert_eq!(&json["imageUrl"]["type"], "image_url");
        prop_assert_eq!(&json["imageUrl"]["image_url"]["url"], &format!("data:{mime_type};base64,{base64}"));
    }

    /// Artifact routing, INV-1: for every kind and route, no text contains the base64 of the bytes.
    /// The texts are the `content` of a result and the `tool` message.
    #[test]
    fn inv_1_binary_content_is_in_no_text_field(
        artifact in artifacts(kinds().boxed()), route in routes(), base64 in long_base64(),
    ) {
        for texts in &*LANGUAGES {
            let result = route_result(&route, &artifact, Material::Base64(&base64), &Help::Hire, texts);
            prop_assert!(!leaks(content_of(&result).unwrap_or_default(), &base64));
            prop_assert!(!leaks(&tool_message(&result).to_string(), &base64));
        }
    }

    /// Artifact routing, INV-2: no character of a text is encoded or changed, neither on a page nor in a message.
    #[test]
    fn inv_2_text_content_is_never_encoded(
        artifact in artifacts(Just(Kind::Text).boxed()), text in texts_to_show(), limit in 1usize..40,
    ) {
        let mut read = String::new();
        let mut offset = Some(0);
        while let Some(start) = offset {
            let page = cut_text(&text, start, limit);
            let result = route_result(&Route::Text, &artifact, Material::Text(page), &Help::Hire, &LANGUAGES[0]);
            let message = tool_message(&result);
            read.push_str(message["content"].as_str().unwrap_or_default());
            offset = message["nextOffset"].as_u64().map(|offset| usize::try_from(offset).unwrap());
        }
        prop_assert_eq!(&read, &text);
        for texts in &*LANGUAGES {
            let shown = inline_text(&text, &artifact, limit, texts);
            if text.chars().count() <= limit {
                prop_assert_eq!(&*shown, &text);
            } else {
                let whole: String = text.chars().take(limit).collect();
                let note = shown.strip_prefix(&whole).and_then(|note| note.strip_prefix('\n')).unwrap_or_default();
                prop_assert!(note.contains(&artifact.id.reference()) && note.contains("get_artifact"), "{shown}");
            }
        }
    }

    /// Artifact routing, INV-3: the route depends only on the kind, the MIME type,
    /// the input capability that the kind needs, and the file types.
    /// The route does not depend on the file's name, size, label or time, on the order of the capabilities, on other
    /// capabilities, or on the outputs.
    #[test]
    fn inv_3_routing_decision_consistency(
        one in artifacts(kinds().boxed()), other in artifacts(kinds().boxed()), capabilities in capabilities(),
        others in capabilities(), file_types in file_types(),
    ) {
        let first = route(&Routable::of(&one), &capabilities, &file_types);
        prop_assert_eq!(&route(&Routable::of(&one), &capabilities, &file_types), &first);
        let mime_type = MimeType::unchecked(one.mime_type.as_str().to_ascii_uppercase());
        let twin = Artifact { kind: one.kind, mime_type, ..other };
        let needed = one.kind.needs();
        let mut same = others;
        same.input.retain(|capability| *capability != needed);
        if capabilities.has(&needed, Direction::Input) {
            same.input.insert(same.input.len() / 2, needed);
        }
        prop_assert_eq!(&route(&Routable::of(&twin), &same, &file_types), &first);
    }

    /// Artifact routing, INV-4: a result has exactly the fields of the seed, each with its type.
    /// A result has `content` if and only if `routing` is `text`.
    /// If the caller gave the bytes, the result also has the part for its routing.
    #[test]
    fn inv_4_result_structure_integrity(
        artifact in artifacts(kinds().boxed()), capabilities in capabilities(), file_types in file_types(),
        base64 in "[A-Za-z0-9+/]{4,40}", next_offset in proptest::option::of(1usize..9),
    ) {
        let route = route(&Routable::of(&artifact), &capabilities, &file_types);
        let page = Page { text: "text", next_offset };
        for material in [Material::Text(page), Material::Base64(&base64), Material::Withheld, Material::Unreadable] {
            let result = route_result(&route, &artifact, material, &Help::Hire, &LANGUAGES[0]);
            let json = serde_json::to_value(&result).unwrap();
            let names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
            let given = matches!(material, Material::Base64(_));
            let is_page = route == Route::Text && matches!(material, Material::Text(_)) && next_offset.is_some();
            let payload: &[&str] = match json["routing"].as_str() {
                Some("text") if is_page => &["content", "nextOffset"],
                Some("text") => &["content"],
                Some("image_url") if given => &["imageUrl"],
                Some("file") if given => &["file"],
                Some("image_url" | "file") => &[],
                other => panic!("routing is {other:?}"),
            };
            prop_assert_eq!(&names, &[&["contentType", "routing"], payload, &["metadata"]].concat());
            let content_type = match artifact.kind { Kind::Text => "text", Kind::Image => "image", _ => "binary" };
            prop_assert_eq!(&json["contentType"], content_type);
            prop_assert!(payload.first() != Some(&"content") || json["content"].is_string());

            let metadata = &json["metadata"];
            prop_assert_eq!(&metadata["id"], artifact.id.as_str());
            prop_assert_eq!(&metadata["size"], artifact.size);
            prop_assert_eq!(metadata["filename"].as_str(), artifact.filename.as_deref());
            prop_assert_eq!(metadata["type"].as_str(), artifact.label.as_deref());
            let mime_type = Some(artifact.mime_type.as_str()).filter(|mime_type| !mime_type.is_empty());
            prop_assert_eq!(metadata["mimeType"].as_str(), mime_type);
            let binary_type = (artifact.kind != Kind::Text).then(|| artifact.kind.as_str());
            prop_assert_eq!(metadata["binaryType"].as_str(), binary_type);
            prop_assert!(metadata.as_object().unwrap().values().all(|value| value.is_string() || value.is_u64()));

            let message = tool_message(&result);
            prop_assert_eq!(&message["status"], "success");
            for name in ["contentType", "routing", "content", "nextOffset", "metadata"] {
                prop_assert_eq!(message.get(name), json.get(name), "{}", name);
            }
            prop_assert!(message.get("imageUrl").or(message.get("file")).is_none());
        }
    }

    /// Artifact routing, INV-5: if the model lacks the capability, or its endpoint does not accept the type,
    /// the result is a description. Nothing panics, for any content and material.
    #[test]
    fn inv_5_capability_degradation_safety(
        artifact in artifacts(binary_kinds().boxed()), capabilities in capabilities(), file_types in file_types(),
        base64 in long_base64(),
    ) {
        let lacks = !capabilities.has(&artifact.kind.needs(), Direction::Input);
        let as_file = artifact.kind != Kind::Image && AudioFormat::of(&artifact.mime_type).is_none();
        let refused = as_file && !file_types.take(&artifact.mime_type);
        prop_assume!(lacks || refused);
        let route = route(&Routable::of(&artifact), &capabilities, &file_types);
        for texts in &*LANGUAGES {
            for material in [Material::Base64(&base64), Material::Withheld, Material::Unreadable] {
                let result = route_result(&route, &artifact, material, &Help::Hire, texts);
                prop_assert_eq!(content_of(&result), Some(&*describe_unreadable(&artifact, &BlockReason::Unsupported(Help::Hire), texts)));
            }
        }
    }

    /// Artifact routing, INV-5, for a model without any capability: it still gets a text for every content.
    #[test]
    fn inv_5_capability_degradation_safety_without_any_capability(
        artifact in artifacts(kinds().boxed()), mut nothing in capabilities(),
    ) {
        nothing.input.clear();
        let route = route(&Routable::of(&artifact), &nothing, &FileTypes::default());
        prop_assert_eq!(route == Route::Text, artifact.kind == Kind::Text);
        for texts in &*LANGUAGES {
            let result = route_result(&route, &artifact, Material::Withheld, &Help::Hire, texts);
            prop_assert!(content_of(&result).is_some_and(|content| !content.is_empty()));
        }
    }
}
