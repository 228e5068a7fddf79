//! The texts that replace content which a model does not get.

use crate::attachment::{BlockReason, Help, suggestion};
use crate::left_out::LeftOut;
use crate::page::cut_text;
use crate::quote::quote_if_needed;
use crate::words::HumanSize;
use polity_society::content::Artifact;
use polity_society::text::{TextKey, Texts};
use std::borrow::Cow;

/// An agent has called `get_artifact` for an artifact that is not shown. Returns the text that the agent gets instead:
/// the artifact's name, reference, type and size, the reason, and advice.
#[doc(alias = "generateTextDescription")]
pub fn describe_unreadable(artifact: &Artifact, reason: &BlockReason, texts: &Texts) -> String {
    let not_supported = texts.get(TextKey::UnreadableUnsupported);
    let advice = match reason {
        BlockReason::ReadFailed | BlockReason::LeftOut(LeftOut::Damaged) => {
            return describe_failure(artifact, texts);
        }
        BlockReason::Unsupported(Help::Contacts(_) | Help::Hire) => {
            texts.get(TextKey::UnreadableHire).to_owned()
        }
        BlockReason::Unsupported(help) => {
            format!("{not_supported}\n{}", suggestion(artifact.kind, help, texts))
        }
        BlockReason::Refused(help) => {
            let refused = texts.get(TextKey::AttachmentRefused);
            format!("{refused}\n{}", suggestion(artifact.kind, help, texts))
        }
        BlockReason::LeftOut(left_out @ LeftOut::NotConvertible) => {
            format!("{not_supported}\n{}", left_out.text(texts))
        }
        BlockReason::LeftOut(left_out) => left_out.text(texts),
    };
    describe(TextKey::Unreadable, artifact, ("advice", &advice), texts)
}

/// Returns the line that replaces an old attachment which no longer fits into a request.
/// `limit` is the maximum size of the media of a request, in bytes.
pub fn describe_old(artifact: &Artifact, limit: u64, texts: &Texts) -> String {
    let limit = HumanSize::of_bytes(limit).to_string();
    describe(TextKey::AttachmentOld, artifact, ("limit", &limit), texts)
}

/// Returns the line that replaces an attachment if the media of its message together do not fit into a request.
/// `limit` is the maximum size of the media of a request, in bytes.
pub fn describe_together(artifact: &Artifact, limit: u64, texts: &Texts) -> String {
    let limit = HumanSize::of_bytes(limit).to_string();
    describe(TextKey::AttachmentTogether, artifact, ("limit", &limit), texts)
}

fn describe(key: TextKey, artifact: &Artifact, more: (&str, &str), texts: &Texts) -> String {
    let size = HumanSize::of_bytes(artifact.size).to_string();
    let type_name = quote_if_needed(texts.type_name(artifact.mime_type.as_str()));
    let values = [
        ("filename", &*shown_name(artifact)),
        ("reference", &artifact.id.reference()),
        ("type", &type_name),
        ("size", &size),
        more,
    ];
    texts.fill(key, &values)
}

/// Returns the text of `get_artifact` for an artifact whose content could not be read.
pub fn describe_failure(artifact: &Artifact, texts: &Texts) -> String {
    texts.fill(TextKey::FailureFile, &[("filename", &shown_name(artifact))])
}

/// Returns the text of an artifact for a message.
/// The result is the whole text, or its first `limit` characters and a note. The note contains the reference of the
/// artifact, and explains how to read the rest.
pub fn inline_text<'a>(text: &'a str, artifact: &Artifact, limit: usize, texts: &Texts) -> Cow<'a, str> {
    let page = cut_text(text, 0, limit);
    let Some(offset) = page.next_offset else {
        return Cow::Borrowed(text);
    };
    let values = [
        ("filename", &*shown_name(artifact)),
        ("reference", &artifact.id.reference()),
        ("shown", &offset.to_string()),
        ("total", &text.chars().count().to_string()),
        ("offset", &offset.to_string()),
    ];
    let note = texts.fill(TextKey::AttachmentTextCut, &values);
    Cow::Owned(format!("{}\n{note}", page.text))
}

/// Returns the name of the file, or the id if it has no name, quoted if needed.
pub(crate) fn shown_name(artifact: &Artifact) -> Cow<'_, str> {
    quote_if_needed(artifact.filename.as_deref().unwrap_or(artifact.id.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{artifact, chinese, english};
    use insta::assert_snapshot;
    use polity_society::content::Kind;

    fn hire() -> BlockReason {
        BlockReason::Unsupported(Help::Hire)
    }

    #[test]
    fn unreadable() {
        let picture = artifact(Kind::Image, "image/png", Some("screenshot.png"));
        assert_snapshot!(describe_unreadable(&picture, &hire(), &chinese()), @"
        [无法读取] screenshot.png (artifact:abc123)
        类型: PNG 图片
        大小: 1.2 MB
        当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。
        ");
        assert_snapshot!(describe_unreadable(&picture, &hire(), &english()), @"
        [Cannot read] screenshot.png (artifact:abc123)
        Type: PNG image
        Size: 1.2 MB
        The current model cannot read this kind of file. Consider creating an agent that has the capability to help with it.
        ");
        let nameless = artifact(Kind::Other, "application/x-strange", None);
        assert_snapshot!(describe_unreadable(&nameless, &hire(), &chinese()), @"
        [无法读取] abc123 (artifact:abc123)
        类型: application/x-strange
        大小: 1.2 MB
        当前模型不支持读取此类文件。建议创建具备相应能力的智能体协助处理。
        ");
    }

    #[test]
    fn failed() {
        let report = artifact(Kind::Document, "application/pdf", Some("report.pdf"));
        assert_snapshot!(describe_failure(&report, &chinese()), @"
        [文件处理失败: report.pdf]
        错误: 无法读取文件内容
        请检查文件是否损坏
        ");
        assert_snapshot!(describe_failure(&report, &english()), @"
        [File processing failed: report.pdf]
        Error: the content of the file could not be read
        Please check whether the file is damaged
        ");
    }

    #[test]
    fn old_media() {
        let picture = artifact(Kind::Image, "image/png", Some("a\nb.png"));
        assert_snapshot!(describe_old(&picture, 24 << 20, &chinese()), @r#"[较早的附件] "a\nb.png"（artifact:abc123）｜PNG 图片｜1.2 MB｜此处不再附上内容：一次请求的媒体编码后最多 24.0 MB，已让位给较新的内容。需要时可用 get_artifact 重新读取。"#);
        assert_snapshot!(describe_old(&picture, 24 << 20, &english()), @r#"[Earlier attachment] "a\nb.png" (artifact:abc123) | PNG image | 1.2 MB | its content is no longer included here: the media of a request may be 24.0 MB once encoded, and newer ones took its place. Read it again with get_artifact if you need it."#);
    }

    #[test]
    fn cut_text_says_how_to_read_on() {
        let notes = artifact(Kind::Text, "text/plain", Some("notes.txt"));
        assert_eq!(inline_text("一二三", &notes, 3, &chinese()), "一二三");
        assert_snapshot!(inline_text("一二三四五", &notes, 3, &chinese()), @"
        一二三
        （以上是 notes.txt（artifact:abc123）的前 3 个字符，全文共 5 个字符。用 get_artifact(ref='artifact:abc123', offset=3) 继续阅读）
        ");
        assert_snapshot!(inline_text("12345", &notes, 3, &english()), @"
        123
        (These are the first 3 of 5 characters of notes.txt (artifact:abc123). Read on with get_artifact(ref='artifact:abc123', offset=3))
        ");
    }
}
