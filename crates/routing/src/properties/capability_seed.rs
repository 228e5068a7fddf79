//! Tests of the correctness properties 2 to 5 of `docs/seeds/capability-routing.design.md`.

use super::inputs::*;
use crate::*;
use polity_society::content::Kind;
use proptest::prelude::*;

/// Each line of a block begins with a label. These are the labels, first in Chinese (as in the seed), then in English:
/// of the type, the file name, the reference, the size, the MIME type, and the suggested recipients.
const LABELS: [[&str; 6]; 2] = [
    ["类型: ", "文件名: ", "工件ID: ", "文件大小: ", "MIME类型: ", "建议转发给: "],
    ["Type: ", "File name: ", "Artifact ID: ", "File size: ", "MIME type: ", "Suggested recipients: "],
];

/// Finds the only line that begins with `label`, and returns what follows the label. Returns `None` if no line begins
/// with the label.
fn value_after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    let mut values = text.split('\n').filter_map(|line| line.strip_prefix(label));
    let value = values.next()?;
    assert_eq!(values.next(), None, "{label:?} twice in {text}");
    Some(value)
}

/// Returns the name that a line shows, either plainly or as a JSON string.
fn meant_by(shown: &str) -> String {
    serde_json::from_str(shown).unwrap_or_else(|_| shown.to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Capability routing, Property 2: if the model supports an attachment,
    /// the result contains the data of the attachment, unchanged, in the field for this kind of attachment.
    #[test]
    fn capability_property_2_capability_routing_for_supported_types_includes_the_attachment_data(
        artifact in artifacts(binary_kinds().boxed()), mut capabilities in capabilities(), base64 in long_base64(),
        place in any::<prop::sample::Index>(),
    ) {
        let place = place.index(capabilities.input.len() + 1);
        capabilities.input.insert(place, artifact.kind.needs());
        let route = route(&Routable::of(&artifact), &capabilities, &FileTypes::default());
        let result = route_result(&route, &artifact, Material::Base64(&base64), &Help::Hire, &LANGUAGES[0]);
        match (artifact.kind, result.routed) {
            (Kind::Image, Routed::ImageUrl { image_url: Some(part) }) => {
                prop_assert_eq!(part.image_url.url, format!("data:{};base64,{base64}", artifact.mime_type));
            }
            (Kind::Audio | Kind::Video | Kind::Document | Kind::Other, Routed::File { file: Some(part) }) => {
                prop_assert_eq!(part.file.data, base64);
                prop_assert_eq!(part.file.mime_type, artifact.mime_type);
                let name = artifact.filename.unwrap_or_else(|| artifact.id.to_string());
                prop_assert_eq!(part.file.filename, name);
            }
            (kind, routed) => prop_assert!(false, "{kind:?} became {routed:?}"),
        }
    }

    /// Capability routing, Property 3: an attachment that the model does not support becomes a text description without
    /// any of the raw data, even if the model has other capabilities.
    #[test]
    fn capability_property_3_fallback_conversion_for_unsupported_types_leaves_the_raw_data_out(
        artifact in artifacts(binary_kinds().boxed()), mut capabilities in capabilities(), file_types in file_types(),
        base64 in long_base64(),
    ) {
        let needed = artifact.kind.needs();
        capabilities.input.retain(|capability| *capability != needed);
        // An output capability must not count as an input capability.
        capabilities.output.push(needed.clone());
        let route = route(&Routable::of(&artifact), &capabilities, &file_types);
        prop_assert_eq!(&route, &Route::Describe(Reason::MissingCapability(needed)));
        for texts in &*LANGUAGES {
            let result = route_result(&route, &artifact, Material::Base64(&base64), &Help::Hire, texts);
            let hire = BlockReason::Unsupported(Help::Hire);
            prop_assert_eq!(content_of(&result), Some(&*describe_unreadable(&artifact, &hire, texts)));
            prop_assert!(!leaks(&serde_json::to_string(&result).unwrap(), &base64));
        }
    }

    /// Capability routing, Property 4: a description contains the reference, the type and, if they are known, the
    /// file's name, size and MIME type, each on a separate line, and the suggested recipients.
    #[test]
    fn capability_property_4_content_adapter_output_completeness(block in blocks()) {
        for (texts, labels) in LANGUAGES.iter().zip(LABELS) {
            let text = block.text(texts);
            let [kind, filename, reference, size, mime_type, forward_to] =
                labels.map(|label| value_after(&text, label));
            prop_assert_eq!(kind, Some(words::kind_name(block.kind, texts)));
            prop_assert_eq!(filename.map(meant_by), block.filename.as_deref().map(str::to_owned));
            prop_assert_eq!(reference, Some(&*format!("artifact:{}", block.artifact)));
            prop_assert_eq!(size.map(str::to_owned), block.size.map(|size| size.to_string()));
            prop_assert_eq!(mime_type.map(meant_by), block.mime_type.as_ref().map(ToString::to_string));
            match &block.reason {
                BlockReason::ReadFailed => {
                    prop_assert_eq!(forward_to, None);
                    prop_assert!(text.contains("get_artifact"));
                }
                BlockReason::LeftOut(left_out) => {
                    prop_assert_eq!(forward_to, None);
                    // No model gets this content. So the text must not suggest that the agent opens the artifact again
                    // or hires another agent.
                    prop_assert!(!text.contains("create_role") && !text.contains("get_artifact"));
                    if let LeftOut::TooLarge { encoded, limit } = left_out {
                        prop_assert!(text.contains(&encoded.to_string()) && text.contains(&limit.to_string()));
                    }
                }
                BlockReason::Unsupported(help) | BlockReason::Refused(help) => {
                    let said = forward_to.unwrap_or_default();
                    match help {
                        Help::Contacts(agents) => {
                            let ids: Vec<&str> = agents.iter().map(|id| id.as_str()).collect();
                            prop_assert_eq!(said, ids.join(", "));
                        }
                        Help::Hire => {
                            prop_assert!(said.contains("introduction_request") && said.contains("create_role"));
                            prop_assert!(said.contains(block.kind.needs().as_str()));
                        }
                        Help::HireOn(service) => {
                            prop_assert!(said.contains("create_role") && said.contains(service.as_str()));
                        }
                        Help::Nobody => {
                            prop_assert!(!said.contains("create_role") && !said.contains("introduction_request"));
                            prop_assert!(said.contains(block.kind.needs().as_str()));
                        }
                    }
                    if let BlockReason::Unsupported(_) = &block.reason {
                        prop_assert!(text.contains("send_message"));
                    }
                }
            }
        }
    }

    /// Capability routing, Property 4, for the text of `get_artifact`: name, reference, type, size, and advice.
    #[test]
    fn capability_property_4_content_adapter_output_completeness_for_get_artifact(
        artifact in artifacts(binary_kinds().boxed()),
    ) {
        for (texts, [kind, _, _, _, _, _]) in LANGUAGES.iter().zip(LABELS) {
            let text = describe_unreadable(&artifact, &BlockReason::Unsupported(Help::Hire), texts);
            let lines: Vec<&str> = text.split('\n').collect();
            prop_assert_eq!(lines.len(), 4, "{}", text);
            let name = artifact.filename.clone().unwrap_or_else(|| artifact.id.to_string());
            let shown = lines[0].split_once("] ").and_then(|(_, rest)| rest.strip_suffix(&format!(" (artifact:{})", artifact.id)));
            prop_assert_eq!(shown.map(meant_by), Some(name));
            let type_name = texts.type_name(artifact.mime_type.as_str()).to_owned();
            prop_assert_eq!(lines[1].strip_prefix(kind).map(meant_by), Some(type_name));
            let size = format!(": {}", HumanSize::of_bytes(artifact.size));
            prop_assert!(lines[2].ends_with(&size));
            prop_assert!(!lines[3].is_empty());
        }
    }

    /// Capability routing, Property 5: parsing the text of a block gives the same fields, for any file name.
    #[test]
    fn capability_property_5_structured_output_format_parses_back(block in blocks()) {
        for texts in &*LANGUAGES {
            let text = block.text(texts);
            prop_assert_eq!(parse_attachment_block(&text, texts), Some(block.clone()), "{}", text);
        }
    }

    /// Capability routing, Property 5, for changed texts: parsing a changed block never panics. If parsing succeeds,
    /// writing the block and parsing it again gives the same block.
    #[test]
    fn capability_property_5_structured_output_format_of_a_changed_block(
        block in blocks(), cut in (any::<prop::sample::Index>(), 0usize..12), piece in mean_pieces(),
    ) {
        for texts in &*LANGUAGES {
            let characters: Vec<char> = block.text(texts).chars().collect();
            let from = cut.0.index(characters.len());
            let to = (from + cut.1).min(characters.len());
            let changed: String =
                characters[..from].iter().copied().chain(piece.chars()).chain(characters[to..].iter().copied()).collect();
            if let Some(read) = parse_attachment_block(&changed, texts) {
                prop_assert_eq!(parse_attachment_block(&read.text(texts), texts), Some(read));
            }
        }
    }
}
