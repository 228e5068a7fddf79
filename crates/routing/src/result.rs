//! The result of routing an artifact for `get_artifact`, and the `tool` message about it.

use crate::attachment::{BlockReason, Help};
use crate::describe::{describe_failure, describe_unreadable};
use crate::page::Page;
use crate::route::Route;
use polity_society::content::{Artifact, Kind};
use polity_society::mime::MimeType;
use polity_society::text::{TextKey, Texts};
use serde::Serialize;
use serde_json::{Value, json};

/// The result of routing one artifact. As JSON: `{contentType, routing, content?, imageUrl?, file?, metadata}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[doc(alias = "ContentRouteResult")]
pub struct RouteResult {
    /// The rough type of the artifact's content.
    pub content_type: ContentType,
    /// The place in the request to which the content goes. Also contains the content, in the form that this place
    /// needs.
    #[serde(flatten)]
    pub routed: Routed,
    /// Facts about the artifact, such as its name and size.
    pub metadata: Metadata,
}

/// The rough type of content. The variants have the names that the JSON of a result uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentType {
    /// Text.
    Text,
    /// A picture.
    Image,
    /// Binary content of any kind but a picture.
    Binary,
}

impl From<Kind> for ContentType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text,
            Kind::Image => Self::Image,
            Kind::Audio | Kind::Video | Kind::Document | Kind::Other => Self::Binary,
        }
    }
}

/// The place in a request to which the content goes.
/// Only the variant `Text` contains a text, so binary content can never be in a text field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "routing", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Routed {
    /// The content goes into the text of the message.
    Text {
        /// The text itself, or the description that replaces content that cannot be shown.
        content: String,
        /// Offset of the next page in characters; `None` if there is no next page.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_offset: Option<usize>,
    },
    /// The content goes into an image part.
    ImageUrl {
        /// The image part; `None` if the caller did not give the bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        image_url: Option<ImagePart>,
    },
    /// The content goes into a file part or an audio part.
    File {
        /// The file part; `None` if the caller did not give the bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<FilePart>,
    },
}

/// An image part: `{type: "image_url", image_url: {url}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "image_url")]
pub struct ImagePart {
    /// The `data:` URL of the image, which contains the bytes of the image.
    pub image_url: ImageAddress,
}

/// The URL of an image in an image part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImageAddress {
    /// A `data:` URL with the bytes of the image in base64.
    pub url: String,
}

/// A file part: `{type: "file", file: {filename, mimeType, data}}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "file")]
pub struct FilePart {
    /// The file with its name and type.
    pub file: FileContent,
}

/// A file with its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileContent {
    /// The name of the file, or the id of the artifact if it has no name.
    pub filename: String,
    /// The MIME type of the artifact.
    pub mime_type: MimeType,
    /// The bytes of the file in base64.
    pub data: String,
}

/// Facts about an artifact. Unknown facts are absent from the JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// The id of the artifact, without the prefix `artifact:`.
    pub id: String,
    /// The label under which the artifact was stored, if it has one.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The name of the file, if the artifact has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// The MIME type; absent if the MIME type of the artifact is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<MimeType>,
    /// Size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The time at which the artifact was stored, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The kind of binary content; absent for text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_type: Option<Kind>,
}

impl Metadata {
    /// Returns the facts about an artifact that a result contains.
    pub fn of(artifact: &Artifact) -> Self {
        let created_at = jiff::Timestamp::from_millisecond(artifact.created_at);
        Self {
            id: artifact.id.as_str().to_owned(),
            label: artifact.label.clone(),
            filename: artifact.filename.clone(),
            mime_type: (artifact.mime_type != "").then(|| artifact.mime_type.clone()),
            size: Some(artifact.size),
            created_at: created_at.ok().map(|time| time.to_string()),
            binary_type: (artifact.kind != Kind::Text).then_some(artifact.kind),
        }
    }

    /// Returns a copy with the id and no other facts. It is for a message in which the other facts do not fit.
    pub(crate) fn id_alone(&self) -> Self {
        Self {
            id: self.id.clone(),
            label: None,
            filename: None,
            mime_type: None,
            size: None,
            created_at: None,
            binary_type: None,
        }
    }
}

/// The part of an artifact's content that the caller has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Material<'a> {
    /// A page of the text.
    Text(Page<'a>),
    /// The bytes in base64.
    Base64(&'a str),
    /// Nothing, because the caller sends the bytes in another way.
    Withheld,
    /// Nothing, because the store could not read the bytes.
    Unreadable,
}

/// Builds the result of routing an artifact.
///
/// [`Route::Text`] needs `Material::Text`. The routes to an image, audio or file part use `Material::Base64`.
/// [`Route::Describe`] ignores the material: its result is a description. The description may suggest who can help
/// (`help`).
pub fn route_result(
    route: &Route,
    artifact: &Artifact,
    material: Material<'_>,
    help: &Help,
    texts: &Texts,
) -> RouteResult {
    let description = |content: String| Routed::Text { content, next_offset: None };
    let base64 = match material {
        Material::Base64(base64) => Some(base64),
        Material::Text(_) | Material::Withheld | Material::Unreadable => None,
    };
    let routed = match (route, material) {
        (Route::Describe(reason), _) => {
            let reason = BlockReason::of(reason, help.clone());
            description(describe_unreadable(artifact, &reason, texts))
        }
        (_, Material::Unreadable) => description(describe_failure(artifact, texts)),
        (Route::Text, Material::Text(page)) => {
            Routed::Text { content: page.text.to_owned(), next_offset: page.next_offset }
        }
        // The route demands text, but the caller has only bytes or nothing. This is an error of the caller, and the
        // result tells that the content could not be read.
        (Route::Text, Material::Base64(_) | Material::Withheld) => {
            description(describe_failure(artifact, texts))
        }
        (Route::Image, _) => {
            Routed::ImageUrl { image_url: base64.map(|base64| image_part(artifact, base64)) }
        }
        (Route::Audio(_) | Route::File, _) => {
            Routed::File { file: base64.map(|base64| file_part(artifact, base64)) }
        }
    };
    RouteResult { content_type: artifact.kind.into(), routed, metadata: Metadata::of(artifact) }
}

#[doc(alias = "formatImageUrl")]
fn image_part(artifact: &Artifact, base64: &str) -> ImagePart {
    ImagePart { image_url: ImageAddress { url: format!("data:{};base64,{base64}", artifact.mime_type) } }
}

fn file_part(artifact: &Artifact, base64: &str) -> FilePart {
    let filename = artifact.filename.as_deref().unwrap_or(artifact.id.as_str()).to_owned();
    FilePart {
        file: FileContent { filename, mime_type: artifact.mime_type.clone(), data: base64.to_owned() },
    }
}

/// Returns the `tool` message of `get_artifact`: `{status, contentType, routing, content?, nextOffset?, metadata}`.
/// The message never contains the image part or file part of the result.
pub fn tool_message(result: &RouteResult) -> Value {
    // Indexing cannot panic here, because `message` is an object. `json!` cannot panic, because all values are plain
    // data.
    let mut message = json!({"status": "success", "contentType": result.content_type});
    match &result.routed {
        Routed::Text { content, next_offset } => {
            message["routing"] = json!("text");
            message["content"] = json!(content);
            if let Some(next_offset) = next_offset {
                message["nextOffset"] = json!(next_offset);
            }
        }
        Routed::ImageUrl { .. } => message["routing"] = json!("image_url"),
        Routed::File { .. } => message["routing"] = json!("file"),
    }
    message["metadata"] = json!(result.metadata);
    message
}

/// Returns the `tool` message for an artifact that does not exist or that the calling agent may not open.
pub fn artifact_not_found(reference: &str, texts: &Texts) -> Value {
    json!({
        "error": "artifact_not_found",
        "ref": reference,
        "message": texts.get(TextKey::FailureArtifactNotFound),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::{AudioFormat, Reason};
    use crate::testing::{artifact, chinese};
    use insta::assert_snapshot;

    fn both(route: &Route, artifact: &Artifact, material: Material<'_>) -> String {
        let result = route_result(route, artifact, material, &Help::Hire, &chinese());
        format!("{}\n{}", serde_json::to_string(&result).unwrap(), tool_message(&result))
    }

    #[test]
    fn a_page_of_text() {
        let mut notes = artifact(Kind::Text, "text/markdown", Some("notes.md"));
        notes.label = Some("report".to_owned());
        let page = Page { text: "# 标题\n", next_offset: Some(5) };
        assert_snapshot!(both(&Route::Text, &notes, Material::Text(page)), @r##"
        {"contentType":"text","routing":"text","content":"# 标题\n","nextOffset":5,"metadata":{"id":"abc123","type":"report","filename":"notes.md","mimeType":"text/markdown","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z"}}
        {"status":"success","contentType":"text","routing":"text","content":"# 标题\n","nextOffset":5,"metadata":{"id":"abc123","type":"report","filename":"notes.md","mimeType":"text/markdown","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z"}}
        "##);
        let failed = both(&Route::Text, &notes, Material::Unreadable);
        assert_eq!(failed, both(&Route::Text, &notes, Material::Withheld));
        assert_eq!(failed, both(&Route::Text, &notes, Material::Base64("AAAA")));
        assert_snapshot!(failed, @r##"
        {"contentType":"text","routing":"text","content":"[文件处理失败: notes.md]\n错误: 无法读取文件内容\n请检查文件是否损坏","metadata":{"id":"abc123","type":"report","filename":"notes.md","mimeType":"text/markdown","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z"}}
        {"status":"success","contentType":"text","routing":"text","content":"[文件处理失败: notes.md]\n错误: 无法读取文件内容\n请检查文件是否损坏","metadata":{"id":"abc123","type":"report","filename":"notes.md","mimeType":"text/markdown","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z"}}
        "##);
    }

    #[test]
    fn an_image() {
        let picture = artifact(Kind::Image, "image/png", Some("a.png"));
        assert_snapshot!(both(&Route::Image, &picture, Material::Base64("iVBORw0KGgo=")), @r##"
        {"contentType":"image","routing":"image_url","imageUrl":{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},"metadata":{"id":"abc123","filename":"a.png","mimeType":"image/png","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"image"}}
        {"status":"success","contentType":"image","routing":"image_url","metadata":{"id":"abc123","filename":"a.png","mimeType":"image/png","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"image"}}
        "##);
        assert_snapshot!(both(&Route::Image, &picture, Material::Withheld), @r##"
        {"contentType":"image","routing":"image_url","metadata":{"id":"abc123","filename":"a.png","mimeType":"image/png","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"image"}}
        {"status":"success","contentType":"image","routing":"image_url","metadata":{"id":"abc123","filename":"a.png","mimeType":"image/png","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"image"}}
        "##);
        let missing = Route::Describe(Reason::MissingCapability(Kind::Image.needs()));
        assert_snapshot!(both(&missing, &picture, Material::Base64("iVBORw0KGgo=")), @r##"
        {"contentType":"image","routing":"text","content":"[无法读取] a.png (artifact:abc123)\n类型: PNG 图片\n大小: 1.2 MB\n当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。","metadata":{"id":"abc123","filename":"a.png","mimeType":"image/png","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"image"}}
        {"status":"success","contentType":"image","routing":"text","content":"[无法读取] a.png (artifact:abc123)\n类型: PNG 图片\n大小: 1.2 MB\n当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。","metadata":{"id":"abc123","filename":"a.png","mimeType":"image/png","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"image"}}
        "##);
    }

    #[test]
    fn files() {
        let report = artifact(Kind::Document, "application/pdf", Some("report.pdf"));
        assert_snapshot!(both(&Route::File, &report, Material::Base64("JVBERi0=")), @r##"
        {"contentType":"binary","routing":"file","file":{"type":"file","file":{"filename":"report.pdf","mimeType":"application/pdf","data":"JVBERi0="}},"metadata":{"id":"abc123","filename":"report.pdf","mimeType":"application/pdf","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"document"}}
        {"status":"success","contentType":"binary","routing":"file","metadata":{"id":"abc123","filename":"report.pdf","mimeType":"application/pdf","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"document"}}
        "##);
        assert_snapshot!(both(&Route::File, &report, Material::Unreadable), @r##"
        {"contentType":"binary","routing":"text","content":"[文件处理失败: report.pdf]\n错误: 无法读取文件内容\n请检查文件是否损坏","metadata":{"id":"abc123","filename":"report.pdf","mimeType":"application/pdf","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"document"}}
        {"status":"success","contentType":"binary","routing":"text","content":"[文件处理失败: report.pdf]\n错误: 无法读取文件内容\n请检查文件是否损坏","metadata":{"id":"abc123","filename":"report.pdf","mimeType":"application/pdf","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"document"}}
        "##);
        assert_snapshot!(both(&Route::Describe(Reason::FileTypeNotTaken), &report, Material::Withheld), @r##"
        {"contentType":"binary","routing":"text","content":"[无法读取] report.pdf (artifact:abc123)\n类型: PDF 文档\n大小: 1.2 MB\n当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。","metadata":{"id":"abc123","filename":"report.pdf","mimeType":"application/pdf","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"document"}}
        {"status":"success","contentType":"binary","routing":"text","content":"[无法读取] report.pdf (artifact:abc123)\n类型: PDF 文档\n大小: 1.2 MB\n当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。","metadata":{"id":"abc123","filename":"report.pdf","mimeType":"application/pdf","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"document"}}
        "##);
        let sound = artifact(Kind::Audio, "audio/wav", None);
        assert_snapshot!(both(&Route::Audio(AudioFormat::Wav), &sound, Material::Base64("UklGRg==")), @r##"
        {"contentType":"binary","routing":"file","file":{"type":"file","file":{"filename":"abc123","mimeType":"audio/wav","data":"UklGRg=="}},"metadata":{"id":"abc123","mimeType":"audio/wav","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"audio"}}
        {"status":"success","contentType":"binary","routing":"file","metadata":{"id":"abc123","mimeType":"audio/wav","size":1258291,"createdAt":"2023-11-14T22:13:20.123Z","binaryType":"audio"}}
        "##);
    }

    #[test]
    fn no_such_artifact() {
        assert_snapshot!(artifact_not_found("artifact:zzz", &chinese()), @r##"{"error":"artifact_not_found","ref":"artifact:zzz","message":"工件不存在或已被删除"}"##);
    }

    #[test]
    fn times_are_rfc_3339() {
        let check = |milliseconds: i64, expect: Option<&str>| {
            let mut artifact = artifact(Kind::Text, "text/plain", None);
            artifact.created_at = milliseconds;
            assert_eq!(Metadata::of(&artifact).created_at.as_deref(), expect);
        };
        check(0, Some("1970-01-01T00:00:00Z"));
        check(1_700_000_000_123, Some("2023-11-14T22:13:20.123Z"));
        check(-1, Some("1969-12-31T23:59:59.999Z"));
        check(i64::MAX, None);
    }
}
