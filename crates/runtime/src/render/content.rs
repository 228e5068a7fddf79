//! Shows artifacts within a conversation: as themselves where the model takes them, in words where it does not.

use super::{Fetch, Fetched, Sight, route_of};
use crate::event::Shown;
use polity_llm::{AudioFormat, Data, Media, Part};
use polity_routing::{
    AttachmentBlock, BlockReason, Material, Metadata, Route, RouteResult, Routed, artifact_not_found,
    cut_text, describe_old, inline_text, route_result, tool_message,
};
use polity_society::agent::Standing;
use polity_society::content::{Artifact, Kind};
use polity_society::id::{AgentId, ArtifactId, CallId};
use polity_society::present::defuse;
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
        let label = || {
            let name = artifact.filename.as_deref().unwrap_or(artifact.id.as_str());
            let name = defuse(&name.replace(['\n', '\r'], " "), texts);
            texts.fill(
                TextKey::AttachmentLabel,
                &[("filename", &name), ("reference", &artifact.id.reference())],
            )
        };
        let route = route_of(artifact, self.sight);
        match (&route, &fetched.bytes) {
            (Route::Describe(_), _) => {
                self.note(id, "described");
                described(BlockReason::Unsupported { forward_to: self.readers_of(artifact.kind) })
            }
            (_, Fetch::Failed | Fetch::Spared) => {
                self.note(id, "described");
                described(BlockReason::ReadFailed)
            }
            (Route::Text, Fetch::Read(bytes)) => {
                self.note(id, "text");
                let text = String::from_utf8_lossy(bytes);
                let limit = usize::try_from(self.sight.limits.inline_text_chars).unwrap_or(usize::MAX);
                let text = defuse(&inline_text(&text, artifact, limit, texts), texts);
                vec![Part::Text(format!("{}\n{text}", label()))]
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Read(_))
                if self.old.contains(&position) =>
            {
                self.note(id, "described");
                vec![Part::Text(describe_old(artifact, texts))]
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Read(bytes)) => {
                let Some(part) = medium(&route, artifact, bytes) else {
                    return Vec::new();
                };
                self.note(id, routing(&route));
                vec![Part::Text(label()), part]
            }
        }
    }

    /// The result of `get_artifact`: the text of the `tool` message, and the medium that goes with it.
    pub(super) fn tool_result(
        &mut self,
        id: &ArtifactId,
        call: &CallId,
        (offset, limit): (u64, Option<u64>),
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
            let content_type = artifact.kind.into();
            let result = RouteResult { content_type, routed, metadata: Metadata::of(artifact) };
            return (tool_message(&result).to_string(), Vec::new());
        }
        let text: Cow<'_, str>;
        let material = match (&route, &fetched.bytes) {
            (Route::Describe(_), _) => Material::Withheld,
            (_, Fetch::Failed | Fetch::Spared) => Material::Unreadable,
            (Route::Text, Fetch::Read(bytes)) => {
                text = String::from_utf8_lossy(bytes);
                let most = self.sight.limits.inline_text_chars;
                let limit = limit.unwrap_or(most).min(most);
                let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                Material::Text(cut_text(&text, size(offset), size(limit)))
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Read(_)) => Material::Withheld,
        };
        let result = route_result(&route, artifact, material, texts);
        let mut media = Vec::new();
        if let Fetch::Read(bytes) = &fetched.bytes
            && let Some(part) = medium(&route, artifact, bytes)
        {
            let name = artifact.filename.as_deref().unwrap_or(artifact.id.as_str());
            let name = defuse(&name.replace(['\n', '\r'], " "), texts);
            let values = [
                ("filename", name.as_str()),
                ("reference", &artifact.id.reference()),
                ("call", call.as_str()),
            ];
            media.push(Media { label: texts.fill(TextKey::ToolMediaLabel, &values), part });
        }
        self.note(id, if material == Material::Unreadable { "described" } else { routing(&route) });
        (tool_message(&result).to_string(), media)
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

/// The part that a route wants for these bytes; none where it wants words.
fn medium(route: &Route, artifact: &Artifact, bytes: &bytes::Bytes) -> Option<Part> {
    let data = Data::from(bytes.clone());
    let mime_type = artifact.mime_type.clone();
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
