//! Shows artifacts within a conversation: as themselves where the model takes them, in words where it does not.

use super::{Fetch, Fetched, Sight, route_of};
use crate::event::Shown;
use polity_llm::{AudioFormat, Data, Media, Part};
use polity_routing::{
    AttachmentBlock, BlockReason, Material, Metadata, Page, Route, RouteResult, Routed, artifact_not_found,
    cut_text, describe_old, describe_unreadable, inline_text, route_result, tool_message,
};
use polity_society::agent::Standing;
use polity_society::content::{Artifact, Kind};
use polity_society::id::{AgentId, ArtifactId, CallId};
use polity_society::present::{defuse, json_line};
use polity_society::text::{TextKey, Texts};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

pub(super) struct Content<'a> {
    sight: &'a Sight<'a>,
    fetched: &'a HashMap<ArtifactId, Fetched>,
    /// Where media stand that no longer fit.
    old: BTreeSet<usize>,
    shown: Vec<Shown>,
}

impl<'a> Content<'a> {
    pub(super) fn new(
        sight: &'a Sight<'a>,
        fetched: &'a HashMap<ArtifactId, Fetched>,
        old: BTreeSet<usize>,
    ) -> Self {
        Self { sight, fetched, old, shown: Vec::new() }
    }

    pub(super) fn texts(&self) -> &'a Texts {
        self.sight.texts
    }

    pub(super) fn shown(self) -> Vec<Shown> {
        self.shown
    }

    /// An attachment of a message: a label and the medium, a label and the text, or the block that stands for it.
    pub(super) fn attachment(&mut self, id: &ArtifactId, position: usize) -> Vec<Part> {
        let texts = self.sight.texts;
        let Some(fetched) = self.fetched.get(id) else {
            self.note(id, "described");
            return vec![Part::Text(missing(id).text(texts))];
        };
        let artifact = &fetched.artifact;
        let described = |reason| vec![Part::Text(AttachmentBlock::new(artifact, reason).text(texts))];
        let values = [("filename", self.shown_name(artifact)), ("reference", artifact.id.reference())];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        let label = texts.fill(TextKey::AttachmentLabel, &values);
        let route = route_of(artifact, self.sight);
        match (&route, &fetched.bytes) {
            (Route::Describe(_), extracted) => {
                self.note(id, "described");
                let block =
                    described(BlockReason::Unsupported { forward_to: self.readers_of(artifact.kind) });
                let Fetch::Extracted(text) = extracted else { return block };
                block.into_iter().chain([Part::Text(self.extracted(artifact, text))]).collect()
            }
            (Route::Text, Fetch::Text(bytes)) => {
                self.note(id, "text");
                let text = String::from_utf8_lossy(bytes);
                vec![Part::Text(format!("{label}\n{}", self.inline(artifact, &text)))]
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Medium(..))
                if self.old.contains(&position) =>
            {
                self.note(id, "described");
                vec![Part::Text(describe_old(artifact, texts))]
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Medium(mime_type, data)) => {
                let Some(part) = medium(&route, artifact, mime_type, data) else {
                    return Vec::new();
                };
                self.note(id, routing(&route));
                vec![Part::Text(label), part]
            }
            (Route::Text | Route::Image | Route::Audio(_) | Route::File, _) => {
                self.note(id, "described");
                described(BlockReason::ReadFailed)
            }
        }
    }

    /// The text of an artifact within a message: cut where it is long, and none of its lines like a header.
    fn inline(&self, artifact: &Artifact, text: &str) -> String {
        let limit = usize::try_from(self.sight.limits.inline_text_chars).unwrap_or(usize::MAX);
        defuse(&inline_text(text, artifact, limit, self.sight.texts), self.sight.texts)
    }

    /// The text that was got out of a document, marked as such.
    fn extracted(&self, artifact: &Artifact, text: &str) -> String {
        let heading = self.extracted_heading(artifact);
        format!("{heading}\n{}", self.inline(artifact, text))
    }

    fn extracted_heading(&self, artifact: &Artifact) -> String {
        let name = self.shown_name(artifact);
        self.sight.texts.fill(TextKey::AttachmentExtracted, &[("filename", &name)])
    }

    /// A file's name in one line that is no header.
    fn shown_name(&self, artifact: &Artifact) -> String {
        let name = artifact.filename.as_deref().unwrap_or(artifact.id.as_str());
        defuse(&name.replace(['\n', '\r'], " "), self.sight.texts)
    }

    /// The page of a text that `get_artifact` asks for.
    fn page<'t>(&self, text: &'t str, (offset, limit): (u64, Option<u64>)) -> Page<'t> {
        let most = self.sight.limits.inline_text_chars;
        let limit = limit.unwrap_or(most).min(most);
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        cut_text(text, size(offset), size(limit))
    }

    /// The result of `get_artifact`: the text of the `tool` message, and the medium that goes with it.
    pub(super) fn tool_result(
        &mut self,
        id: &ArtifactId,
        call: &CallId,
        wanted: (u64, Option<u64>),
        position: usize,
    ) -> (String, Vec<Media>) {
        let texts = self.sight.texts;
        let Some(fetched) = self.fetched.get(id) else {
            self.note(id, "described");
            return (artifact_not_found(&id.reference(), texts).to_string(), Vec::new());
        };
        let artifact = &fetched.artifact;
        let route = route_of(artifact, self.sight);
        if self.old.contains(&position) {
            self.note(id, "described");
            let routed = Routed::Text { content: describe_old(artifact, texts), next_offset: None };
            return (whole_result(artifact, routed), Vec::new());
        }
        if let (Route::Describe(_), Fetch::Extracted(text)) = (&route, &fetched.bytes) {
            self.note(id, "described");
            let page = self.page(text, wanted);
            let heading = self.extracted_heading(artifact);
            let content = format!("{}\n{heading}\n{}", describe_unreadable(artifact, texts), page.text);
            let routed = Routed::Text { content, next_offset: page.next_offset };
            return (whole_result(artifact, routed), Vec::new());
        }
        let text: Cow<'_, str>;
        let material = match (&route, &fetched.bytes) {
            (Route::Describe(_), _) => Material::Withheld,
            (Route::Text, Fetch::Text(bytes)) => {
                text = String::from_utf8_lossy(bytes);
                Material::Text(self.page(&text, wanted))
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Medium(..)) => Material::Withheld,
            (Route::Text | Route::Image | Route::Audio(_) | Route::File, _) => Material::Unreadable,
        };
        let result = route_result(&route, artifact, material, texts);
        let mut media = Vec::new();
        if let Fetch::Medium(mime_type, data) = &fetched.bytes
            && let Some(part) = medium(&route, artifact, mime_type, data)
        {
            let name = self.shown_name(artifact);
            let values = [
                ("filename", name.as_str()),
                ("reference", &artifact.id.reference()),
                ("call", call.as_str()),
            ];
            media.push(Media { label: texts.fill(TextKey::ToolMediaLabel, &values), part });
        }
        self.note(id, if material == Material::Unreadable { "described" } else { routing(&route) });
        (json_line(&tool_message(&result)), media)
    }

    /// The reader's contacts whose model can read that kind.
    fn readers_of(&self, kind: Kind) -> Vec<AgentId> {
        let can = |party: &polity_society::agent::Party| {
            party.standing == Standing::Active && !party.id.is_user() && party.capabilities.reads(kind)
        };
        let contacts = self.sight.contacts.iter().filter(|contact| can(&contact.party));
        contacts.map(|contact| contact.party.id.clone()).collect()
    }

    fn note(&mut self, id: &ArtifactId, routing: &str) {
        self.shown.push(Shown { artifact: id.clone(), routing: routing.to_owned() });
    }
}

/// The block of an artifact of which not even a row is left.
fn missing(id: &ArtifactId) -> AttachmentBlock {
    AttachmentBlock {
        kind: Kind::Other,
        filename: None,
        artifact: id.clone(),
        size: None,
        mime_type: None,
        reason: BlockReason::ReadFailed,
    }
}

fn routing(route: &Route) -> &'static str {
    match route {
        Route::Text => "text",
        Route::Image => "image_url",
        Route::Audio(_) => "input_audio",
        Route::File => "file",
        Route::Describe(_) => "described",
    }
}

/// The `tool` message for text that stands for an artifact.
fn whole_result(artifact: &Artifact, routed: Routed) -> String {
    let content_type = artifact.kind.into();
    json_line(&tool_message(&RouteResult { content_type, routed, metadata: Metadata::of(artifact) }))
}

/// The part that a route wants for a medium; none where it wants words.
fn medium(route: &Route, artifact: &Artifact, mime_type: &str, data: &Data) -> Option<Part> {
    let (mime_type, data) = (mime_type.to_owned(), data.clone());
    match route {
        Route::Image => Some(Part::Image { mime_type, data }),
        Route::Audio(polity_routing::AudioFormat::Wav) => {
            Some(Part::Audio { format: AudioFormat::Wav, data })
        }
        Route::Audio(polity_routing::AudioFormat::Mp3) => {
            Some(Part::Audio { format: AudioFormat::Mp3, data })
        }
        Route::File => {
            let filename = artifact.filename.clone().unwrap_or_else(|| artifact.id.to_string());
            Some(Part::File { filename, mime_type, data })
        }
        Route::Text | Route::Describe(_) => None,
    }
}
