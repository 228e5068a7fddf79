//! Tests how content reaches a model, with a complete table. The table has all combinations of kinds of content,
//! capabilities of models, and sizes.

use crate::testing::chinese;
use crate::*;
use polity_society::content::{Artifact, Capabilities, Capability, Kind};
use polity_society::id::ArtifactId;

/// The value of `limits.inlineTextChars` for the table.
const LIMIT: usize = 5;

/// The name of each column, and the input capabilities of its model.
const COLUMNS: [(&str, &[&str]); 7] = [
    ("text-only", &["text"]),
    ("+vision", &["text", "vision"]),
    ("+audio", &["text", "audio"]),
    ("+video", &["text", "video"]),
    ("+file", &["text", "file"]),
    ("all", &["text", "vision", "audio", "video", "file"]),
    ("none", &[]),
];

/// The sizes in characters. Each character has three bytes, so the test fails if the code counts bytes instead of
/// characters.
const SIZES: [(&str, usize); 4] =
    [("empty", 0), ("small", 1), ("at-limit", LIMIT), ("over-limit", LIMIT + 1)];

/// Each row is a kind, a MIME type and a size; each column is a model. A cell says what the model gets: `text` (the
/// whole text), `cut` (a part of the text with a note), `image_url`, `input_audio` or `file`. If the model lacks a
/// capability, it gets a description; the cell then names the capability, such as `-vision`.
///
/// The size matters only for text. The setting `fileTypes` accepts every type here.
const TABLE: &str = "
kind     type            size       text-only +vision   +audio      +video  +file   all         none

text     text/plain      empty      text      text      text        text    text    text        text
text     text/plain      small      text      text      text        text    text    text        text
text     text/plain      at-limit   text      text      text        text    text    text        text
text     text/plain      over-limit cut       cut       cut         cut     cut     cut         cut

text     image/svg+xml   empty      text      text      text        text    text    text        text
text     image/svg+xml   small      text      text      text        text    text    text        text
text     image/svg+xml   at-limit   text      text      text        text    text    text        text
text     image/svg+xml   over-limit cut       cut       cut         cut     cut     cut         cut

image    image/png       empty      -vision   image_url -vision     -vision -vision image_url   -vision
image    image/png       small      -vision   image_url -vision     -vision -vision image_url   -vision
image    image/png       at-limit   -vision   image_url -vision     -vision -vision image_url   -vision
image    image/png       over-limit -vision   image_url -vision     -vision -vision image_url   -vision

audio    audio/wav       empty      -audio    -audio    input_audio -audio  -audio  input_audio -audio
audio    audio/wav       small      -audio    -audio    input_audio -audio  -audio  input_audio -audio
audio    audio/wav       at-limit   -audio    -audio    input_audio -audio  -audio  input_audio -audio
audio    audio/wav       over-limit -audio    -audio    input_audio -audio  -audio  input_audio -audio

audio    audio/ogg       empty      -audio    -audio    file        -audio  -audio  file        -audio
audio    audio/ogg       small      -audio    -audio    file        -audio  -audio  file        -audio
audio    audio/ogg       at-limit   -audio    -audio    file        -audio  -audio  file        -audio
audio    audio/ogg       over-limit -audio    -audio    file        -audio  -audio  file        -audio

video    video/mp4       empty      -video    -video    -video      file    -video  file        -video
video    video/mp4       small      -video    -video    -video      file    -video  file        -video
video    video/mp4       at-limit   -video    -video    -video      file    -video  file        -video
video    video/mp4       over-limit -video    -video    -video      file    -video  file        -video

document application/pdf empty      -file     -file     -file       -file   file    file        -file
document application/pdf small      -file     -file     -file       -file   file    file        -file
document application/pdf at-limit   -file     -file     -file       -file   file    file        -file
document application/pdf over-limit -file     -file     -file       -file   file    file        -file

other    application/zip empty      -file     -file     -file       -file   file    file        -file
other    application/zip small      -file     -file     -file       -file   file    file        -file
other    application/zip at-limit   -file     -file     -file       -file   file    file        -file
other    application/zip over-limit -file     -file     -file       -file   file    file        -file
";

#[test]
fn decision_table_of_kinds_capabilities_and_sizes() {
    let mut rows = TABLE.lines().filter(|line| !line.is_empty()).map(|line| line.split_whitespace());
    let heading: Vec<&str> = rows.next().unwrap().skip(3).collect();
    assert_eq!(heading, COLUMNS.map(|(name, _)| name));
    let mut seen = Vec::new();
    for mut row in rows {
        let mut next = || row.next().unwrap();
        let (kind, mime_type, size) = (next(), next(), next());
        let (_, characters) = *SIZES.iter().find(|(name, _)| *name == size).unwrap();
        let expect: Vec<&str> = row.collect();
        let actual = COLUMNS.map(|(_, input)| cell(Kind::from_name(kind), mime_type, characters, input));
        assert_eq!(actual.as_slice(), expect, "{kind} {mime_type} {size}");
        seen.push((kind, size));
    }
    // The table must cover every kind with every size.
    for &kind in Kind::ALL {
        for (size, _) in SIZES {
            assert!(seen.contains(&(kind.as_str(), size)), "{kind:?} {size}");
        }
    }
}

/// Returns the cell for one content and one model. The content has this kind, type and length. The model has the input
/// capabilities `input`.
fn cell(kind: Kind, mime_type: &str, characters: usize, input: &[&str]) -> String {
    let texts = chinese();
    let text = "工".repeat(characters);
    let artifact = Artifact {
        size: text.len() as u64,
        id: ArtifactId::new("k3v9x2ma"),
        ..crate::testing::artifact(kind, mime_type, None)
    };
    let capabilities = Capabilities {
        input: input.iter().filter_map(|name| Capability::new(name)).collect(),
        output: vec![Capability::TEXT],
    };
    let route = route(&Routable::of(&artifact), &capabilities, &FileTypes::default());
    let material = match route {
        Route::Text => Material::Text(cut_text(&text, 0, LIMIT)),
        Route::Image | Route::Audio(_) | Route::File | Route::Describe(_) => Material::Base64("5bel"),
    };
    let result =
        serde_json::to_value(route_result(&route, &artifact, material, &Help::Hire, &texts)).unwrap();
    let routing = result["routing"].as_str().unwrap();
    match route {
        Route::Text => {
            assert_eq!(routing, "text");
            let in_a_message = inline_text(&text, &artifact, LIMIT, &texts);
            if result.get("nextOffset").is_none() {
                assert_eq!((result["content"].as_str(), &*in_a_message), (Some(&*text), &*text));
                return "text".to_owned();
            }
            let shown: String = text.chars().take(LIMIT).collect();
            assert_eq!(result["content"], shown);
            assert_eq!(result["nextOffset"], LIMIT);
            let how_to_read_on = "get_artifact(ref='artifact:k3v9x2ma', offset=5)";
            assert!(in_a_message.starts_with(&format!("{shown}\n")) && in_a_message.contains(how_to_read_on));
            "cut".to_owned()
        }
        Route::Image => {
            assert_eq!(routing, "image_url");
            "image_url".to_owned()
        }
        Route::Audio(_) => {
            assert_eq!(routing, "file");
            "input_audio".to_owned()
        }
        Route::File => {
            assert_eq!(routing, "file");
            "file".to_owned()
        }
        Route::Describe(reason) => {
            assert_eq!(routing, "text");
            assert_eq!(
                result["content"].as_str(),
                Some(&*describe_unreadable(&artifact, &BlockReason::Unsupported(Help::Hire), &texts))
            );
            match reason {
                Reason::MissingCapability(capability) => format!("-{capability}"),
                other => format!("{other:?}"),
            }
        }
    }
}
