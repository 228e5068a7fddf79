//! Builds the request for one attempt, for the service as it is configured now.

use super::{Scene, Wanted};
use crate::door::known;
use crate::fetch::{All, fetch};
use crate::handles::Handles;
use crate::tools::{self, Asker, Offering};
use crate::trust::OfAll;
use polity_artifacts::index::Stored;
use polity_decide::found::found_tools;
use polity_decide::guidance::{Guidance, guidance};
use polity_decide::policy::Sent as Contents;
use polity_decide::render::{self, MediaUse, Sight, SystemFacts, Taker};
use polity_decide::room::{self, Compaction};
use polity_decide::turn::Tools;
use polity_llm::{
    Body, Message, Part, Request, Tool, ToolChoice, estimate_message_tokens, estimate_prompt_tokens, pieces,
};
use polity_registry::{Service, Snapshot};
use polity_routing::FileTypes;
use polity_society::content::{Capability, Kind};
use polity_society::id::ArtifactId;
use polity_society::rules::Verdict;
use polity_society::text::{TextKey, Texts};
use polity_society::tool_group::ToolGroup;
use polity_store::contacts::ContactRow;
use polity_store::sent::{Piece, Sent};
use polity_view::{Event, SentOutcome, Shown};
use serde_json::Value;
use std::ops::Range;

/// A request and facts about it. `shown` states how the request shows each artifact. `costs` states how many tokens
/// of the request each record takes.
pub(super) struct Made {
    pub(super) request: Request,
    /// The tools that the model may call. Usually the list of tools in the request contains them. If the server could
    /// not read earlier calls of its model, this list is empty, and only the system message names them.
    pub(super) offered: Vec<Tool>,
    pub(super) shown: Vec<Shown>,
    pub(super) costs: Vec<u64>,
    /// Events to record about artifacts that cannot be read.
    pub(super) unreadable: Vec<Event>,
}

impl Made {
    /// Returns whether the request contains media.
    pub(super) fn sent(&self) -> Contents {
        let has_media = self.request.messages.iter().any(|message| match message {
            Message::User(parts) => parts.iter().any(|part| !matches!(part, Part::Text(_))),
            Message::Tool { media, .. } => !media.is_empty(),
            Message::System(_) | Message::Assistant { .. } => false,
        });
        if has_media { Contents::Media } else { Contents::Text }
    }

    /// Returns the request in the form in which the store keeps it: as JSON that is cut into pieces and contains
    /// references instead of media.
    pub(super) fn as_sent(&self, service: &Service, revision: u64, outcome: SentOutcome) -> Sent {
        let request = self.request.by_reference();
        // Cannot fail: the same body was sent before.
        let body = Body::new(&request, &service.endpoint).to_json().unwrap_or_default();
        let body = String::from_utf8_lossy(&body);
        Sent {
            service: service.id.clone(),
            model: service.endpoint.model.clone(),
            revision,
            outcome,
            shown: self.shown.clone(),
            pieces: pieces(&body).into_iter().map(Piece::new).collect(),
        }
    }

    /// Returns the artifacts that the request shows as media.
    pub(super) fn media(&self) -> Vec<ArtifactId> {
        let media = self.shown.iter().filter(|shown| shown.routing.is_media());
        media.map(|shown| shown.artifact.clone()).collect()
    }
}

/// The properties of a request that depend on how earlier attempts have failed.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    /// Whether media are shown or described.
    pub(super) media: MediaUse,
    /// How many extra lines explain how to call tools.
    pub(super) reworded: u32,
}

impl Manner {
    /// The manner of the first attempt: nothing has failed yet.
    pub(super) const FIRST: Self = Self { media: MediaUse::Shown, reworded: 0 };
}

/// Builds the request for an answer or for a summary.
pub(super) async fn make(
    handles: &Handles,
    scene: &Scene,
    snapshot: &Snapshot,
    service: &Service,
    manner: Manner,
    wanted: Wanted<'_>,
) -> Made {
    match wanted {
        Wanted::Answer(round) => answer_request(handles, scene, snapshot, service, manner, round.tools).await,
        Wanted::Summary(compaction) => summary_request(compaction, snapshot),
    }
}

async fn answer_request(
    handles: &Handles,
    scene: &Scene,
    snapshot: &Snapshot,
    service: &Service,
    manner: Manner,
    tools: Tools,
) -> Made {
    let limits = &room::within(&snapshot.settings.limits, service);
    let distrust = handles.trusts.distrust(snapshot, &service.id);
    let service_of =
        |contact: &ContactRow| snapshot.catalogue.service_for(contact.agent.service.as_ref()).id.clone();
    let contact_services =
        scene.contacts.iter().map(|contact| (contact.agent.id.clone(), service_of(contact))).collect();
    let services: Vec<Taker> = snapshot.catalogue.services().iter().map(|service| taker(service)).collect();
    let contacts = known(scene.contacts.clone(), &snapshot.catalogue);
    let file_types = FileTypes::new(&service.file_types);
    let sight = Sight {
        service: &service.id,
        capabilities: &service.capabilities,
        file_types: &file_types,
        media_bytes: service
            .max_request_bytes
            .unwrap_or(limits.max_request_bytes)
            .min(limits.max_request_bytes),
        limits,
        texts: &snapshot.prompts.texts,
        contacts: &contacts,
        contact_services: &contact_services,
        services: &services,
        media: if distrust.of_all == OfAll::Yes { MediaUse::Described } else { manner.media },
        refused: &distrust.refused,
    };
    let All { fetched, unreadable } = fetch(handles, service, &scene.stored, &sight).await;
    let rendered = render::render(&scene.history, &fetched, &sight);
    let rights = snapshot.settings.rights(&scene.chain);
    let may_hire = rights.decide(&ToolGroup::Organization) == Verdict::Allow;
    let works_on_files =
        [ToolGroup::Files, ToolGroup::Command].iter().any(|group| rights.decide(group) == Verdict::Allow);
    let system = |guidance: Guidance| {
        render::system_message(&SystemFacts {
            prompts: &snapshot.prompts,
            agent: &scene.agent.id,
            parent: scene.agent.parent.as_ref(),
            role_name: &scene.agent.role_name,
            role_prompt: scene.role.as_ref().map(|role| role.prompt.as_str()),
            brief: scene.agent.brief.as_ref(),
            service,
            contacts: &contacts,
            services: if may_hire { &services } else { &[] },
            workspace: scene.workspace.filter(|_| works_on_files),
            guidance,
        })
    };
    let offering = Offering { window: service.context_window, found: found_tools(&scene.history.records) };
    let Handles { hands, tool_cache, .. } = handles;
    let asker = Asker { rights: &rights, role: &scene.agent.role_name, snapshot, hands };
    let permitted = if service.tools_allowed() {
        let mut permitted = tools::offered(asker, tool_cache);
        permitted.extend(tools::offered_outside(asker, &offering, tool_cache));
        permitted
    } else {
        Vec::new()
    };
    let offered = |guidance: Guidance| guidance.choose(permitted.clone());
    let guidance = guidance(service.context_window, |guidance| {
        let messages = vec![Message::System(system(guidance))];
        estimate_prompt_tokens(&Request { messages, tools: offered(guidance), ..Request::default() })
    });
    let of_record = |span: &Range<usize>| -> u64 {
        rendered.messages.get(span.clone()).unwrap_or_default().iter().map(estimate_message_tokens).sum()
    };
    let costs = rendered.spans.iter().map(of_record).collect();
    let mut messages = Vec::with_capacity(rendered.messages.len() + 1);
    let tools_offered = offered(guidance);
    let mut system = system(guidance);
    for line in how_to_call(manner, &tools_offered, &snapshot.prompts.texts) {
        system.push_str("\n\n");
        system.push_str(&line);
    }
    messages.push(Message::System(system));
    messages.extend(rendered.messages);
    let tool_choice = match tools {
        Tools::Offered => ToolChoice::Auto,
        Tools::Withheld => ToolChoice::None,
    };
    // If the server could not read two calls of its model, leave the tools out of the request. The server then does not
    // look for calls: it returns everything that the model writes as text. polity reads the calls from this text.
    let offered = tools_offered;
    let tools = if manner.reworded < TOOLS_IN_WORDS { offered.clone() } else { Vec::new() };
    let request = Request { messages, tools, tool_choice };
    Made { request, offered, shown: rendered.shown, costs, unreadable }
}

/// A server may fail to parse the tool calls that its model writes. After this many failures, the next request contains
/// no list of tools, and only its system message describes the tools.
const TOOLS_IN_WORDS: u32 = 2;

/// Returns a tool's name with the names of its parameters: `get_artifact(ref, offset, limit)`.
fn signature(tool: &Tool) -> String {
    let properties = tool.parameters.get("properties").and_then(Value::as_object);
    let names: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    format!("{}({})", tool.name, names.join(", "))
}

/// Returns extra lines for a model if the server could not read its last call. The first line lists the tools and
/// explains how to write a call. The second line allows the model to write a plain text.
fn how_to_call(manner: Manner, tools: &[Tool], texts: &Texts) -> Vec<String> {
    let names: Vec<String> = tools.iter().map(signature).collect();
    let lines = [
        texts.fill(TextKey::SystemHowToCall, &[("tools", &names.join(", "))]),
        texts.get(TextKey::SystemNoCall).to_owned(),
    ];
    let count = usize::try_from(manner.reworded).unwrap_or(usize::MAX);
    if tools.is_empty() { Vec::new() } else { lines.into_iter().take(count).collect() }
}

fn taker(service: &Service) -> Taker {
    Taker {
        id: service.id.clone(),
        capabilities: service.capabilities.clone(),
        file_types: FileTypes::new(&service.file_types),
    }
}

fn summary_request(compaction: &Compaction, snapshot: &Snapshot) -> Made {
    let texts = &snapshot.prompts.texts;
    let tokens = compaction.summary_tokens.to_string();
    let messages = vec![
        Message::System(texts.fill(TextKey::ContextSumUp, &[("tokens", &tokens)])),
        Message::User(vec![Part::Text(compaction.transcript.clone())]),
    ];
    Made {
        request: Request { messages, ..Request::default() },
        offered: Vec::new(),
        shown: Vec::new(),
        costs: Vec::new(),
        unreadable: Vec::new(),
    }
}

/// Returns the declared capabilities that allowed these media to be sent.
pub(super) fn capabilities_used(media: &[ArtifactId], stored: &[Stored]) -> Vec<Capability> {
    let mut used = Vec::new();
    for id in media {
        let kind = stored.iter().find(|stored| stored.artifact.id == *id).map(|stored| stored.artifact.kind);
        let capability = kind.map(Kind::needs).filter(|capability| !used.contains(capability));
        used.extend(capability);
    }
    used
}
