//! Reads a message that an agent heard: its sender, its words, and its attachments.

use crate::texts::captures;
use polity_llm::Part;
use polity_society::content::{Capability, Kind};
use polity_society::id::{AgentId, ArtifactId};
use polity_society::text::{TextKey, Texts};

/// A message that the agent received, split into its parts.
#[derive(Debug)]
pub(crate) struct Inbound<'a> {
    pub(crate) sender: Sender,
    /// If the message is a request, its id. An answer can name this id.
    pub(crate) request: Option<&'a str>,
    /// The lines of the content. Three things are left out: the header, the kind of message, and the reply hint.
    pub(crate) lines: Vec<&'a str>,
    /// The JSON Schema that the answer must fit.
    pub(crate) schema: Option<&'a str>,
    /// The attachments, in the order of the message.
    pub(crate) attachments: Vec<Attachment<'a>>,
    section: Section,
}

/// The sender of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Person,
    Agent(AgentId),
    System,
    /// The message has no header.
    Unknown,
}

/// An attachment that came with a message.
#[derive(Debug)]
pub(crate) struct Attachment<'a> {
    /// The file name, if the message contains one.
    pub(crate) name: Option<&'a str>,
    /// The id of the artifact, which tool calls need. `None` if the message contains no id.
    pub(crate) artifact: Option<ArtifactId>,
    pub(crate) form: Form<'a>,
}

/// How an attachment is presented in the message.
#[derive(Debug)]
pub(crate) enum Form<'a> {
    /// The message contains only a description, because the model cannot read the attachment.
    Described { mime_type: Option<&'a str> },
    /// The message contains the lines of its text.
    Text(Vec<&'a str>),
    /// The message contains its bytes.
    Medium { data: &'a [u8], declared: &'a str },
}

/// The part of a message to which the next line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Content,
    Description,
    Text,
}

impl<'a> Inbound<'a> {
    /// Reads a message whose first part begins with a header. Returns `None` if there is no header.
    pub(crate) fn with_header(parts: &'a [Part], texts: &Texts) -> Option<Self> {
        let Some((Part::Text(opening), others)) = parts.split_first() else {
            return None;
        };
        let (header, content) = opening.split_once('\n').unwrap_or((opening, ""));
        let sender = read_header(header, texts)?;
        let mut inbound = Self::from(sender);
        let (kind, after_kind) = content.split_once('\n').unwrap_or((content, ""));
        let content = match read_kind(kind, texts) {
            Some(request) => {
                inbound.request = request;
                after_kind
            }
            None => content,
        };
        inbound.read_text(content, texts);
        inbound.read_parts(others, texts);
        Some(inbound)
    }

    /// Reads a message without a header.
    pub(crate) fn without_header(parts: &'a [Part], texts: &Texts) -> Self {
        let mut inbound = Self::from(Sender::Unknown);
        inbound.read_parts(parts, texts);
        inbound
    }

    /// Adds the content of these parts to the message.
    pub(crate) fn read_parts(&mut self, parts: &'a [Part], texts: &Texts) {
        for part in parts {
            match part {
                Part::Text(text) => self.read_text(text, texts),
                Part::Image { mime_type, data } => self.read_medium(data, mime_type),
                Part::Audio { format, data } => self.read_medium(data, format.as_str()),
                Part::File { mime_type, data, .. } => self.read_medium(data, mime_type),
            }
        }
    }

    /// Returns the artifacts that are attached to the message or named in its text, each once.
    pub(crate) fn artifacts(&self) -> Vec<ArtifactId> {
        let mut found: Vec<ArtifactId> = Vec::new();
        let attached = self.attachments.iter().filter_map(|attachment| attachment.artifact.clone());
        for artifact in attached.chain(self.lines.iter().flat_map(|line| references_in(line))) {
            if !found.contains(&artifact) {
                found.push(artifact);
            }
        }
        found
    }

    /// Returns the content without blank lines at its beginning and end.
    pub(crate) fn words(&self) -> &[&'a str] {
        let blank = |line: &&str| line.trim().is_empty();
        let from = self.lines.iter().position(|line| !blank(line)).unwrap_or(self.lines.len());
        let to = self.lines.iter().rposition(|line| !blank(line)).map_or(from, |last| last + 1);
        self.lines.get(from..to).unwrap_or_default()
    }

    fn from(sender: Sender) -> Self {
        Self {
            sender,
            request: None,
            lines: Vec::new(),
            schema: None,
            attachments: Vec::new(),
            section: Section::Content,
        }
    }

    fn read_text(&mut self, text: &'a str, texts: &Texts) {
        for line in text.lines() {
            self.read_line(line, texts);
        }
    }

    fn read_line(&mut self, line: &'a str, texts: &Texts) {
        if let Some([id]) = captures(texts, TextKey::MessageReplyHint, line).as_deref()
            && self.is_from(id)
        {
            self.section = Section::Content;
            return;
        }
        if let Some([schema]) = captures(texts, TextKey::MessageResultSchema, line).as_deref() {
            self.schema = Some(schema);
            return;
        }
        if let Some([name, reference]) = captures(texts, TextKey::AttachmentLabel, line).as_deref()
            && let Some(artifact) = ArtifactId::from_reference(reference)
        {
            self.attach(Some(name), Some(artifact), Form::Text(Vec::new()));
            self.section = Section::Text;
            return;
        }
        if captures(texts, TextKey::AttachmentHeading, line).is_some() {
            self.attach(None, None, Form::Described { mime_type: None });
            self.section = Section::Description;
            return;
        }
        if let Some([name, reference, ..]) = captures(texts, TextKey::AttachmentOld, line).as_deref() {
            self.attach(
                Some(name),
                ArtifactId::from_reference(reference),
                Form::Described { mime_type: None },
            );
            self.section = Section::Description;
            return;
        }
        if captures(texts, TextKey::AttachmentTextCut, line).is_some() {
            self.section = Section::Content;
            return;
        }
        match self.section {
            Section::Content => self.lines.push(line),
            Section::Description => self.describe(line, texts),
            Section::Text => {
                if let Some(Attachment { form: Form::Text(lines), .. }) = self.attachments.last_mut() {
                    lines.push(line);
                }
            }
        }
    }

    /// Reads a line of a description. It describes the attachment that was added last.
    fn describe(&mut self, line: &'a str, texts: &Texts) {
        let value = |key: TextKey| captures(texts, key, line).and_then(|values| values.first().copied());
        let Some(attachment) = self.attachments.last_mut() else {
            return;
        };
        if let Some(name) = value(TextKey::AttachmentFilename) {
            attachment.name = Some(name);
        }
        if let Some(artifact) = value(TextKey::AttachmentReference).and_then(ArtifactId::from_reference) {
            attachment.artifact = Some(artifact);
        }
        if let Some(declared) = value(TextKey::AttachmentMimeType) {
            attachment.form = Form::Described { mime_type: Some(declared) };
        }
    }

    /// Adds a medium, such as a picture. If a line with an artifact id is directly before the medium, the line and
    /// the medium are one attachment.
    fn read_medium(&mut self, data: &'a [u8], declared: &'a str) {
        let medium = Form::Medium { data, declared };
        match self.attachments.last_mut() {
            Some(Attachment { form: form @ Form::Text(_), .. }) if form.is_label_alone() => *form = medium,
            _ => self.attach(None, None, medium),
        }
        self.section = Section::Content;
    }

    fn attach(&mut self, name: Option<&'a str>, artifact: Option<ArtifactId>, form: Form<'a>) {
        self.attachments.push(Attachment { name, artifact, form });
    }

    fn is_from(&self, id: &str) -> bool {
        match &self.sender {
            Sender::Person => AgentId::new(id).is_user(),
            Sender::Agent(sender) => sender.as_str() == id,
            Sender::System | Sender::Unknown => false,
        }
    }
}

impl Form<'_> {
    fn is_label_alone(&self) -> bool {
        matches!(self, Self::Text(lines) if lines.iter().all(|line| line.trim().is_empty()))
    }
}

impl Attachment<'_> {
    /// If the message contains only a description of the attachment, returns the capability that a model needs to read
    /// the attachment itself.
    pub(crate) fn needs(&self) -> Option<Capability> {
        let Form::Described { mime_type } = self.form else {
            return None;
        };
        let family = mime_type.and_then(|mime_type| mime_type.split('/').next()).unwrap_or_default();
        let kind = match family {
            "image" => Kind::Image,
            "audio" => Kind::Audio,
            "video" => Kind::Video,
            _ => Kind::Other,
        };
        Some(kind.needs())
    }
}

/// Reads a line that may state the kind of a message. For a request, returns `Some(Some(id))`; for any other kind,
/// `Some(None)`. Returns `None` if the line states no kind.
fn read_kind<'a>(line: &'a str, texts: &Texts) -> Option<Option<&'a str>> {
    if let Some([_, id]) = captures(texts, TextKey::MessageKindRequest, line).as_deref() {
        return Some(Some(id));
    }
    let others = [
        TextKey::MessageKindAnswer,
        TextKey::MessageKindSupplement,
        TextKey::MessageKindReport,
        TextKey::MessageKindNote,
        TextKey::MessageKindInformation,
    ];
    others.into_iter().any(|key| captures(texts, key, line).is_some()).then_some(None)
}

fn read_header(line: &str, texts: &Texts) -> Option<Sender> {
    if captures(texts, TextKey::MessageFromUser, line).is_some() {
        return Some(Sender::Person);
    }
    if captures(texts, TextKey::MessageFromSystem, line).is_some() {
        return Some(Sender::System);
    }
    match captures(texts, TextKey::MessageFromAgent, line)?.as_slice() {
        [_, id] => Some(Sender::Agent(AgentId::new(*id))),
        _ => None,
    }
}

/// Finds the references in a line: `artifact:` and the letters, digits and hyphens after it.
fn references_in(line: &str) -> Vec<ArtifactId> {
    let id = |rest: &str| {
        let end = rest.find(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
        ArtifactId::from_reference(rest.split_at(end.unwrap_or(rest.len())).0)
    };
    line.split("artifact:").skip(1).filter_map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts;
    use polity_society::text::Language;

    fn read(parts: &[Part]) -> String {
        let inbound = Inbound::with_header(parts, texts::of(Language::Zh)).expect("a header");
        let mut shown = format!("{:?} {:?}", inbound.sender, inbound.lines);
        for Attachment { name, artifact, form } in &inbound.attachments {
            let name = name.unwrap_or("-");
            let reference = artifact.as_ref().map(ArtifactId::reference).unwrap_or_default();
            shown.push_str(&format!("\n{name} {reference} {form:?}"));
        }
        shown
    }

    #[test]
    fn a_prompt_with_a_description_and_a_text() {
        let text = "【来自用户的消息】\n看图，再读 artifact:old1\n\n【收到附件】\n类型: 图片\n文件名: a.png\n工件ID: artifact:p1\n文件大小: 1 KB\n\
            MIME类型: image/png\n\n当前模型不支持直接处理此类型内容。\n附件 n.txt（artifact:t1）:\n一\n\n二\n\
            如需回复，请使用 send_message(to='user', ...)";
        let parts = [Part::Text(text.into())];
        insta::assert_snapshot!(read(&parts), @r#"
        Person ["看图，再读 artifact:old1", ""]
        a.png artifact:p1 Described { mime_type: Some("image/png") }
        n.txt artifact:t1 Text(["一", "", "二"])
        "#);
        let inbound = Inbound::with_header(&parts, texts::of(Language::Zh)).expect("a header");
        let artifacts: Vec<String> = inbound.artifacts().iter().map(ArtifactId::reference).collect();
        assert_eq!(artifacts, ["artifact:p1", "artifact:t1", "artifact:old1"]);
        assert_eq!(inbound.words(), ["看图，再读 artifact:old1"]);
    }

    #[test]
    fn media_belong_to_their_labels() {
        let image =
            || Part::Image { mime_type: "image/png".into(), data: bytes::Bytes::from_static(b"abc").into() };
        let parts = [
            Part::Text("【来自 组长（lead-1）的消息】\n请看\n附件 a.png（artifact:p1）:".into()),
            image(),
            Part::Text("附件 b.png（artifact:p2）:".into()),
            image(),
            image(),
            Part::Text("如需回复，请使用 send_message(to='lead-1', ...)".into()),
        ];
        insta::assert_snapshot!(read(&parts), @r#"
        Agent(AgentId(lead-1)) ["请看"]
        a.png artifact:p1 Medium { data: [97, 98, 99], declared: "image/png" }
        b.png artifact:p2 Medium { data: [97, 98, 99], declared: "image/png" }
        -  Medium { data: [97, 98, 99], declared: "image/png" }
        "#);
    }

    #[test]
    fn references() {
        let check = |line: &str, expect: &[&str]| {
            let found: Vec<String> = references_in(line).iter().map(ArtifactId::reference).collect();
            assert_eq!(found, expect);
        };
        check("（artifact:a-1），artifact:b2.", &["artifact:a-1", "artifact:b2"]);
        check("artifact:", &[]);
        check("artifact:图", &[]);
    }
}
