//! Shows artifacts within a conversation: as media or text if the model takes them, otherwise as descriptions.

use super::{Crowded, Fetch, Fetched, Sight, Taker, route_of_fetched};
use polity_llm::{AudioFormat, Data, Media, Part};
use polity_routing::{
    AttachmentBlock, BlockReason, Excerpt, Help, Material, Metadata, Reason, Route, RouteResult, Routed,
    artifact_not_found, bounded_message, describe_old, describe_together, describe_unreadable, inline_text,
    page_message, route_result,
};
use polity_society::agent::Standing;
use polity_society::content::{Artifact, Kind};
use polity_society::defuse::defuse;
use polity_society::id::{AgentId, ArtifactId, CallId};
use polity_society::mime::MimeType;
use polity_society::text::{TextKey, Texts};
use polity_view::{Because, Routing, Shown, WhyDescribed};
use std::collections::{BTreeMap, HashMap};

pub(super) struct ArtifactRenderer<'a> {
    sight: &'a Sight<'a>,
    fetched: &'a HashMap<ArtifactId, Fetched>,
    /// The positions of the records whose media are left out because the request has too little room for them, each
    /// with the reason.
    old: BTreeMap<usize, Crowded>,
    shown: Vec<Shown>,
}

impl<'a> ArtifactRenderer<'a> {
    pub(super) fn new(
        sight: &'a Sight<'a>,
        fetched: &'a HashMap<ArtifactId, Fetched>,
        old: BTreeMap<usize, Crowded>,
    ) -> Self {
        Self { sight, fetched, old, shown: Vec::new() }
    }

    pub(super) fn texts(&self) -> &'a Texts {
        self.sight.texts
    }

    pub(super) fn shown(self) -> Vec<Shown> {
        self.shown
    }

    /// Shows an attachment of a message. A medium or a text is shown below a label. A block describes an attachment
    /// that is not shown.
    pub(super) fn attachment(&mut self, id: &ArtifactId, position: usize) -> Vec<Part> {
        let texts = self.sight.texts;
        let Some(fetched) = self.fetched.get(id) else {
            self.described(id, None, Because::Unreadable);
            return vec![Part::Text(missing(id).text(texts))];
        };
        let artifact = &fetched.artifact;
        let described = |reason| vec![Part::Text(AttachmentBlock::new(artifact, reason).text(texts))];
        let values = [("filename", self.shown_name(artifact)), ("reference", artifact.id.reference())];
        let values = values.each_ref().map(|(name, value)| (*name, value.as_str()));
        let label = texts.fill(TextKey::AttachmentLabel, &values);
        let route = route_of_fetched(fetched, self.sight);
        match (&route, &fetched.bytes) {
            (Route::Describe(reason), extracted) => {
                self.described(id, Some(artifact), because(reason));
                let block = described(BlockReason::of(reason, self.help(artifact, reason)));
                let Fetch::Extracted(text) = extracted else { return block };
                block.into_iter().chain([Part::Text(self.extracted(artifact, text))]).collect()
            }
            (Route::Text, Fetch::Text(bytes)) => {
                self.note(id, Routing::Text);
                let text = String::from_utf8_lossy(bytes);
                vec![Part::Text(format!("{label}\n{}", self.inline(artifact, &text)))]
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Medium(..))
                if let Some(crowded) = self.old.get(&position) =>
            {
                let line = self.crowded_out(artifact, *crowded);
                self.described(id, Some(artifact), self.because_crowded(*crowded));
                vec![Part::Text(line)]
            }
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Medium(mime_type, data)) => {
                let Some(part) = medium(&route, artifact, mime_type, data) else {
                    return Vec::new();
                };
                self.note(id, routing(&route));
                vec![Part::Text(label), part]
            }
            (Route::Text | Route::Image | Route::Audio(_) | Route::File, _) => {
                self.described(id, Some(artifact), Because::Unreadable);
                described(BlockReason::ReadFailed)
            }
        }
    }

    /// Returns the text of an artifact for a message. A long text is cut. Lines that look like the header of a message
    /// are marked, so that no text can imitate another sender.
    fn inline(&self, artifact: &Artifact, text: &str) -> String {
        let limit = usize::try_from(self.sight.limits.inline_text_chars).unwrap_or(usize::MAX);
        defuse(&inline_text(text, artifact, limit, self.sight.texts), self.sight.texts)
    }

    /// Returns the extracted text of a document that the model cannot take, below a heading that names the file.
    fn extracted(&self, artifact: &Artifact, text: &str) -> String {
        let heading = self.extracted_heading(artifact);
        format!("{heading}\n{}", self.inline(artifact, text))
    }

    fn extracted_heading(&self, artifact: &Artifact) -> String {
        let name = self.shown_name(artifact);
        self.sight.texts.fill(TextKey::AttachmentExtracted, &[("filename", &name)])
    }

    /// Returns the name of a file, as one line that cannot be mistaken for the header of a message.
    fn shown_name(&self, artifact: &Artifact) -> String {
        let name = artifact.filename.as_deref().unwrap_or(artifact.id.as_str());
        defuse(&name.replace(['\n', '\r'], " "), self.sight.texts)
    }

    /// Returns the result of a `get_artifact` call that asks for a part of a text. The result begins with `lead` and
    /// has at most `most` characters.
    fn page(
        &self,
        artifact: &Artifact,
        lead: &str,
        text: &str,
        (offset, limit): (u64, Option<u64>),
        most: usize,
    ) -> String {
        let inline = self.sight.limits.inline_text_chars;
        let limit = size(limit.unwrap_or(inline).min(inline));
        let excerpt = Excerpt { lead, text, offset: size(offset), limit };
        page_message(artifact, &excerpt, most)
    }

    /// Maximum length of a tool result, in characters.
    pub(super) fn most(&self) -> usize {
        size(self.sight.limits.tool_result_chars)
    }

    /// Returns the result of `get_artifact` in two parts. The text has at most `most` characters and goes into the
    /// `tool` message. The media follow in a `user` message.
    pub(super) fn tool_result(
        &mut self,
        id: &ArtifactId,
        call: &CallId,
        wanted: (u64, Option<u64>),
        position: usize,
        most: usize,
    ) -> (String, Vec<Media>) {
        let texts = self.sight.texts;
        let Some(fetched) = self.fetched.get(id) else {
            self.described(id, None, Because::Unreadable);
            return (artifact_not_found(&id.reference(), texts).to_string(), Vec::new());
        };
        let artifact = &fetched.artifact;
        let route = route_of_fetched(fetched, self.sight);
        if let (Some(crowded), Route::Image | Route::Audio(_) | Route::File) =
            (self.old.get(&position), &route)
        {
            let routed = Routed::Text { content: self.crowded_out(artifact, *crowded), next_offset: None };
            self.described(id, Some(artifact), self.because_crowded(*crowded));
            let content_type = artifact.kind.into();
            let result = RouteResult { content_type, routed, metadata: Metadata::of(artifact) };
            return (bounded_message(&result, most), Vec::new());
        }
        let help = match &route {
            Route::Describe(reason) => self.help(artifact, reason),
            Route::Text | Route::Image | Route::Audio(_) | Route::File => Help::Nobody,
        };
        let material = match (&route, &fetched.bytes) {
            (Route::Describe(reason), Fetch::Extracted(text)) => {
                self.described(id, Some(artifact), because(reason));
                let heading = self.extracted_heading(artifact);
                let described = describe_unreadable(artifact, &BlockReason::of(reason, help), texts);
                let lead = format!("{described}\n{heading}\n");
                return (self.page(artifact, &lead, text, wanted, most), Vec::new());
            }
            (Route::Text, Fetch::Text(bytes)) => {
                self.note(id, routing(&route));
                // Lines that look like the header of a message get no marks here. Agents store texts such as source
                // code in artifacts so that the texts stay unchanged, so the text is shown exactly as it was stored.
                return (self.page(artifact, "", &String::from_utf8_lossy(bytes), wanted, most), Vec::new());
            }
            (Route::Describe(_), _) => Material::Withheld,
            (Route::Image | Route::Audio(_) | Route::File, Fetch::Medium(..)) => Material::Withheld,
            (Route::Text | Route::Image | Route::Audio(_) | Route::File, _) => Material::Unreadable,
        };
        let result = route_result(&route, artifact, material, &help, texts);
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
        match &route {
            Route::Describe(reason) => self.described(id, Some(artifact), because(reason)),
            _ if material == Material::Unreadable => {
                self.described(id, Some(artifact), Because::Unreadable);
            }
            Route::Text | Route::Image | Route::Audio(_) | Route::File => self.note(id, routing(&route)),
        }
        (bounded_message(&result, most), media)
    }

    /// Shows a file that an outside tool returned. Returns the text about the file, which goes into the `tool` message.
    /// Also returns the medium, if the model takes it.
    pub(super) fn file_of_result(
        &mut self,
        id: &ArtifactId,
        call: &CallId,
        position: usize,
    ) -> (String, Option<Media>) {
        let (mut lines, mut medium) = (Vec::new(), None);
        for part in self.attachment(id, position) {
            match part {
                Part::Text(text) => lines.push(text),
                part => medium = Some(part),
            }
        }
        let name =
            self.fetched.get(id).map_or_else(|| id.to_string(), |found| self.shown_name(&found.artifact));
        let values = [("filename", name.as_str()), ("reference", &id.reference()), ("call", call.as_str())];
        let label = self.sight.texts.fill(TextKey::ToolMediaLabel, &values);
        (lines.join("\n"), medium.map(|part| Media { label, part }))
    }

    /// Returns the line that replaces a medium for which a request has no room.
    fn crowded_out(&self, artifact: &Artifact, crowded: Crowded) -> String {
        let (limit, texts) = (self.sight.media_bytes, self.sight.texts);
        match crowded {
            Crowded::Out => describe_old(artifact, limit, texts),
            Crowded::Together => describe_together(artifact, limit, texts),
        }
    }

    /// Finds agents that could read an artifact for the reader. The reader is the agent whose model gets the request.
    /// Some services take the artifact. If contacts of the reader use such a service, they can help. Otherwise the
    /// reader could hire an agent for such a service.
    fn help(&self, artifact: &Artifact, reason: &Reason) -> Help {
        let others = self.takers(artifact);
        let contacts = self.contacts_on(&others);
        match (contacts.is_empty(), others.first(), reason) {
            (false, _, _) => Help::Contacts(contacts),
            (true, None, _) => Help::Nobody,
            (true, Some(_), Reason::MissingCapability(_)) => Help::Hire,
            // The reader's own service has the capability, but does not take the artifact for another reason. A new
            // agent could get the same service, so the help names another one.
            (true, Some(other), _) => Help::HireOn(other.id.clone()),
        }
    }

    fn note(&mut self, id: &ArtifactId, routing: Routing) {
        self.shown.push(Shown { artifact: id.clone(), routing, why: None });
    }

    /// Notes that an artifact is only described, and why. Also notes which other services and contacts could take it.
    fn described(&mut self, id: &ArtifactId, artifact: Option<&Artifact>, because: Because) {
        let others = artifact.map(|artifact| self.takers(artifact)).unwrap_or_default();
        let contacts = self.contacts_on(&others);
        let why = WhyDescribed {
            because,
            takes: self.sight.capabilities.input.clone(),
            services: others.iter().map(|service| service.id.clone()).collect(),
            contacts: contacts.into_iter().take(MOST_CONTACTS).collect(),
        };
        self.shown.push(Shown { artifact: id.clone(), routing: Routing::Described, why: Some(why) });
    }

    fn because_crowded(&self, crowded: Crowded) -> Because {
        let limit = self.sight.media_bytes;
        match crowded {
            Crowded::Out => Because::EarlierAttachment { limit },
            Crowded::Together => Because::TogetherTooLarge { limit },
        }
    }

    /// Returns the other services that take an artifact.
    fn takers(&self, artifact: &Artifact) -> Vec<&'a Taker> {
        let sight = self.sight;
        let others =
            sight.services.iter().filter(|service| service.id != *sight.service && service.takes(artifact));
        others.collect()
    }

    /// Returns the contacts that use one of these services and can help: active agents, not the person.
    fn contacts_on(&self, services: &[&Taker]) -> Vec<AgentId> {
        let serves = |id: &AgentId| {
            let service = self.sight.contact_services.get(id);
            service.is_some_and(|service| services.iter().any(|other| other.id == *service))
        };
        let can = |party: &polity_society::agent::Party| {
            party.standing == Standing::Active && !party.id.is_user() && serves(&party.id)
        };
        let parties = self.sight.contacts.iter().map(|contact| &contact.party).filter(|party| can(party));
        parties.map(|party| party.id.clone()).collect()
    }
}

/// If an artifact is only described, an explanation is stored. It names at most this many contacts that could read the
/// artifact.
const MOST_CONTACTS: usize = 5;

fn because(reason: &Reason) -> Because {
    match reason {
        Reason::MissingCapability(capability) => {
            Because::MissingCapability { capability: capability.clone() }
        }
        Reason::FileTypeNotTaken => Because::FileTypeNotTaken,
        Reason::Refused => Because::Refused,
        Reason::TooLarge { encoded, limit } => Because::TooLarge { encoded: *encoded, limit: *limit },
        Reason::TooManyPixels { width, height, .. } => {
            Because::TooManyPixels { width: *width, height: *height }
        }
        Reason::CannotFit { limit } => Because::CannotFit { limit: *limit },
        Reason::NotConvertible => Because::NotConvertible,
        Reason::Damaged => Because::Damaged,
    }
}

/// Returns the block for an artifact that has no row in the database.
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

fn routing(route: &Route) -> Routing {
    match route {
        Route::Text => Routing::Text,
        Route::Image => Routing::ImageUrl,
        Route::Audio(_) => Routing::InputAudio,
        Route::File => Routing::File,
        Route::Describe(_) => Routing::Described,
    }
}

fn size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns the part for a medium; `None` if its route is text or a description.
fn medium(route: &Route, artifact: &Artifact, mime_type: &MimeType, data: &Data) -> Option<Part> {
    let (mime_type, data) = (mime_type.to_string(), data.clone().named(&artifact.id.reference()));
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
