//! The block of text that replaces an attachment which is not shown.
//! The block has a few labelled lines that a program can parse, and then advice for the reader.

use crate::left_out::LeftOut;
use crate::quote::{quote_if_needed, unquote};
use crate::route::Reason;
use crate::template::values_of;
use crate::words::{HumanSize, capability_name, kind_name};
use polity_society::content::{Artifact, Kind};
use polity_society::id::{AgentId, ArtifactId, ServiceId};
use polity_society::mime::MimeType;
use polity_society::text::{Template, TextKey, Texts};

/// The content of a block. The text of the block has no line for a field that is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[doc(alias = "AdaptedContent")]
pub struct AttachmentBlock {
    /// The kind of the attachment.
    pub kind: Kind,
    /// The name of the file, if known.
    pub filename: Option<String>,
    /// The id of the artifact. The text contains it as a reference.
    pub artifact: ArtifactId,
    /// The size of the file, if known.
    pub size: Option<HumanSize>,
    /// The MIME type, if known.
    pub mime_type: Option<MimeType>,
    /// The reason why the attachment is not shown.
    pub reason: BlockReason,
}

/// The reason why an attachment is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockReason {
    /// The model cannot read the attachment.
    Unsupported(Help),
    /// The server refused the attachment in an earlier request.
    Refused(Help),
    /// The attachment cannot be sent to any model.
    LeftOut(LeftOut),
    /// The store could not read the bytes of the attachment.
    ReadFailed,
}

/// The agents that could read some content which the current agent cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// These contacts of the agent, the most suitable contact first.
    /// An empty list gives the same text as [`Help::Hire`].
    Contacts(Vec<AgentId>),
    /// A new agent whose role requires the capability. At least one service has this capability.
    Hire,
    /// A new agent on this service.
    HireOn(ServiceId),
    /// Nobody, because no other service accepts the content.
    Nobody,
}

impl BlockReason {
    /// Converts the reason of a [`Route::Describe`](crate::Route::Describe). `help` is used if another model could read
    /// the content.
    pub fn of(reason: &Reason, help: Help) -> Self {
        match (LeftOut::of(reason), reason) {
            (Some(left_out), _) => Self::LeftOut(left_out),
            (None, Reason::Refused) => Self::Refused(help),
            (None, _) => Self::Unsupported(help),
        }
    }
}

const BETWEEN_AGENTS: &str = ", ";

impl AttachmentBlock {
    /// Creates the block for an artifact.
    pub fn new(artifact: &Artifact, reason: BlockReason) -> Self {
        Self {
            kind: artifact.kind,
            filename: artifact.filename.clone(),
            artifact: artifact.id.clone(),
            size: Some(HumanSize::of_bytes(artifact.size)),
            mime_type: (artifact.mime_type != "").then(|| artifact.mime_type.clone()),
            reason,
        }
    }

    /// Returns the text of the block, without a line break at its end.
    #[doc(alias = "adaptToText")]
    pub fn text(&self, texts: &Texts) -> String {
        let mut lines = vec![
            texts.get(TextKey::AttachmentHeading).to_owned(),
            texts.fill(TextKey::AttachmentType, &[("kind", kind_name(self.kind, texts))]),
        ];
        if let Some(filename) = &self.filename {
            lines.push(texts.fill(TextKey::AttachmentFilename, &[("filename", &quote_if_needed(filename))]));
        }
        lines.push(texts.fill(TextKey::AttachmentReference, &[("reference", &self.artifact.reference())]));
        if let Some(size) = self.size {
            lines.push(texts.fill(TextKey::AttachmentSize, &[("size", &size.to_string())]));
        }
        if let Some(mime_type) = &self.mime_type {
            let mime_type = quote_if_needed(mime_type.as_str());
            lines.push(texts.fill(TextKey::AttachmentMimeType, &[("mime_type", &mime_type)]));
        }
        lines.push(String::new());
        match &self.reason {
            BlockReason::ReadFailed => lines.push(texts.get(TextKey::AttachmentReadFailed).to_owned()),
            BlockReason::Unsupported(help) => {
                lines.push(advice(self.kind, texts));
                lines.push(suggestion(self.kind, help, texts));
            }
            BlockReason::Refused(help) => {
                lines.push(texts.get(TextKey::AttachmentRefused).to_owned());
                lines.push(suggestion(self.kind, help, texts));
            }
            BlockReason::LeftOut(left_out) => {
                if *left_out == LeftOut::NotConvertible {
                    lines.push(texts.get(TextKey::AttachmentUnsupported).to_owned());
                }
                lines.push(left_out.text(texts));
            }
        }
        lines.join("\n")
    }
}

/// Returns two sentences. The first says that the model cannot read the content. The second says to whom the reader
/// can forward the content.
fn advice(kind: Kind, texts: &Texts) -> String {
    let (capability, _) = capability_name(kind, texts);
    let values = [("kind", kind_name(kind, texts)), ("capability", capability)];
    let forward = texts.fill(TextKey::AttachmentForward, &values);
    format!("{}\n{forward}", texts.get(TextKey::AttachmentUnsupported))
}

/// Returns one line that tells the agent who could read the content instead.
pub(crate) fn suggestion(kind: Kind, help: &Help, texts: &Texts) -> String {
    let (capability, name) = capability_name(kind, texts);
    let values = [("kind", kind_name(kind, texts)), ("capability", capability), ("name", name.as_str())];
    match help {
        Help::Contacts(ids) if !ids.is_empty() => {
            let ids: Vec<&str> = ids.iter().map(AgentId::as_str).collect();
            texts.fill(TextKey::AttachmentSuggestion, &[("agents", &ids.join(BETWEEN_AGENTS))])
        }
        Help::Contacts(_) | Help::Hire => texts.fill(TextKey::AttachmentNoSuggestion, &values[1..]),
        Help::HireOn(service) => {
            texts.fill(TextKey::AttachmentHireOn, &[("kind", values[0].1), ("service", service.as_str())])
        }
        Help::Nobody => texts.fill(TextKey::AttachmentNobody, &values),
    }
}

/// Parses a block that [`AttachmentBlock::text`] wrote with the same `texts`; `None` for every other text.
pub fn parse_attachment_block(text: &str, texts: &Texts) -> Option<AttachmentBlock> {
    let (fields, closing) = text.split_once("\n\n")?;
    let mut lines = fields.split('\n').peekable();
    // If the next line is the line of this field, consumes the line and returns its value. Otherwise leaves the line.
    let mut field = |key: TextKey| {
        let value = value_of(lines.peek()?, texts.template(key))?;
        lines.next();
        Some(value)
    };
    field(TextKey::AttachmentHeading)?;
    let kind_word = field(TextKey::AttachmentType)?;
    let kind = Kind::ALL.iter().copied().find(|kind| kind_name(*kind, texts) == kind_word)?;
    let filename = optional(field(TextKey::AttachmentFilename), unquote)?;
    let artifact = ArtifactId::from_reference(field(TextKey::AttachmentReference)?)?;
    let size = optional(field(TextKey::AttachmentSize), HumanSize::parse)?;
    let mime_type = optional(field(TextKey::AttachmentMimeType), unquote)?.map(MimeType::unchecked);
    if lines.next().is_some() {
        return None;
    }
    let reason = parse_reason(closing, kind, texts)?;
    Some(AttachmentBlock { kind, filename, artifact, size, mime_type, reason })
}

fn parse_reason(closing: &str, kind: Kind, texts: &Texts) -> Option<BlockReason> {
    if closing == texts.get(TextKey::AttachmentReadFailed) {
        return Some(BlockReason::ReadFailed);
    }
    let after = |opening: &str| closing.strip_prefix(opening)?.strip_prefix('\n');
    if after(texts.get(TextKey::AttachmentUnsupported)) == Some(texts.get(TextKey::LeftOutFormat)) {
        return Some(BlockReason::LeftOut(LeftOut::NotConvertible));
    }
    if let Some(left_out) = LeftOut::parse(closing, texts) {
        return (left_out != LeftOut::NotConvertible).then_some(BlockReason::LeftOut(left_out));
    }
    if let Some(suggested) = after(texts.get(TextKey::AttachmentRefused)) {
        return parse_help(suggested, kind, texts).map(BlockReason::Refused);
    }
    parse_help(after(&advice(kind, texts))?, kind, texts).map(BlockReason::Unsupported)
}

fn parse_help(line: &str, kind: Kind, texts: &Texts) -> Option<Help> {
    for help in [Help::Hire, Help::Nobody] {
        if line == suggestion(kind, &help, texts) {
            return Some(help);
        }
    }
    if let Some(values) = values_of(line, texts.template(TextKey::AttachmentHireOn)) {
        let help = Help::HireOn(ServiceId::new(*values.get("service")?));
        return (line == suggestion(kind, &help, texts)).then_some(help);
    }
    let ids = value_of(line, texts.template(TextKey::AttachmentSuggestion))?;
    Some(Help::Contacts(ids.split(BETWEEN_AGENTS).map(AgentId::new).collect()))
}

/// `template` has at most one placeholder. If the line matches the template, returns the value that was filled into the
/// placeholder, or an empty value if there is no placeholder. If the line does not match, returns `None`.
fn value_of<'a>(line: &'a str, template: &Template) -> Option<&'a str> {
    let Some(placeholder) = template.placeholders().first().map(|name| format!("{{{name}}}")) else {
        return (line == template.as_str()).then_some("");
    };
    let (before, after) = template.as_str().split_once(&placeholder)?;
    line.strip_prefix(before)?.strip_suffix(after)
}

/// Parses a field that may be absent. Returns `Some(None)` if the field is absent, and `None` if it is present but
/// invalid.
fn optional<T>(shown: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    match shown {
        None => Some(None),
        Some(shown) => parse(shown).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{artifact, chinese, english};
    use insta::assert_snapshot;

    fn unsupported(ids: &[&str]) -> BlockReason {
        BlockReason::Unsupported(Help::Contacts(ids.iter().map(|id| AgentId::new(*id)).collect()))
    }

    #[test]
    fn with_agents_to_forward_it_to() {
        let picture = artifact(Kind::Image, "image/png", Some("screenshot.png"));
        let block = AttachmentBlock::new(&picture, unsupported(&["vision-agent", "multimodal-7k2f"]));
        assert_snapshot!(block.text(&chinese()), @"
        【收到附件】
        类型: 图片
        文件名: screenshot.png
        工件ID: artifact:abc123
        文件大小: 1.2 MB
        MIME类型: image/png

        当前模型不支持直接处理此类型内容。
        如需处理此图片，可以使用 send_message 工具将其转发给具备视觉理解能力的智能体。
        建议转发给: vision-agent, multimodal-7k2f
        ");
        assert_snapshot!(block.text(&english()), @"
        【Attachment received】
        Type: image
        File name: screenshot.png
        Artifact ID: artifact:abc123
        File size: 1.2 MB
        MIME type: image/png

        The current model cannot process this type of content directly.
        To have this image processed, forward it with the send_message tool to an agent that is capable of understanding images.
        Suggested recipients: vision-agent, multimodal-7k2f
        ");
    }

    #[test]
    fn with_nobody_to_forward_it_to() {
        let sound = artifact(Kind::Audio, "audio/ogg", None);
        let block = AttachmentBlock::new(&sound, unsupported(&[]));
        assert_snapshot!(block.text(&chinese()), @r#"
        【收到附件】
        类型: 音频
        工件ID: artifact:abc123
        文件大小: 1.2 MB
        MIME类型: audio/ogg

        当前模型不支持直接处理此类型内容。
        如需处理此音频，可以使用 send_message 工具将其转发给具备音频理解能力的智能体。
        建议转发给: （你的联系人中暂无具备音频理解能力的智能体）可以用 introduction_request 请联系人介绍一个（required_capability: audio），或在具备该能力的服务上创建一个智能体（create_role 时写明 requiredCapabilities: ["audio"]）。
        "#);
        assert_snapshot!(block.text(&english()), @r#"
        【Attachment received】
        Type: audio
        Artifact ID: artifact:abc123
        File size: 1.2 MB
        MIME type: audio/ogg

        The current model cannot process this type of content directly.
        To have this audio processed, forward it with the send_message tool to an agent that is capable of understanding audio.
        Suggested recipients: (none of your contacts is capable of understanding audio) ask a contact for one with introduction_request (required_capability: audio), or create an agent on a service that has the capability (create_role with requiredCapabilities: ["audio"]).
        "#);
    }

    #[test]
    fn that_could_not_be_read() {
        let block = AttachmentBlock {
            kind: Kind::Document,
            filename: Some("年报\n文件大小: 0 B".to_owned()),
            artifact: ArtifactId::new("def456"),
            size: None,
            mime_type: None,
            reason: BlockReason::ReadFailed,
        };
        assert_snapshot!(block.text(&chinese()), @r#"
        【收到附件】
        类型: 文档
        文件名: "年报\n文件大小: 0 B"
        工件ID: artifact:def456

        读取失败: 无法读取此附件的内容。工件ID仍然有效，可以稍后用 get_artifact 重试。
        "#);
        assert_snapshot!(block.text(&english()), @r#"
        【Attachment received】
        Type: document
        File name: "年报\n文件大小: 0 B"
        Artifact ID: artifact:def456

        Reading failed: the content of this attachment could not be read. The artifact ID is still valid; try again later with get_artifact.
        "#);
    }

    #[test]
    fn other_texts_are_no_block() {
        let texts = chinese();
        let picture = artifact(Kind::Image, "image/png", Some("a.png"));
        let whole = AttachmentBlock::new(&picture, unsupported(&["a-1"])).text(&texts);
        assert!(parse_attachment_block(&whole, &texts).is_some());
        let check = |from: &str, to: &str| {
            let changed = whole.replacen(from, to, 1);
            assert_ne!(changed, whole);
            assert_eq!(parse_attachment_block(&changed, &texts), None, "{changed}");
        };
        check("【收到附件】", "【来自用户的消息】");
        check("类型: 图片", "类型: 雕塑");
        check("文件名: a.png", "文件名: \"a.png");
        check("artifact:abc123", "../../etc/passwd");
        check("1.2 MB", "huge");
        check("文件大小", "重量");
        check("MIME类型", "文件名");
        check("视觉理解", "音频理解");
        check("建议转发给", "请勿转发给");
        check("\n\n", "\n");
        assert_eq!(parse_attachment_block("", &texts), None);
        assert_eq!(parse_attachment_block(&whole, &english()), None);
    }
}
