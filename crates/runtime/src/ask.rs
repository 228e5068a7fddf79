//! Asks a model for its next answer: renders the request for the service as it is configured now, makes attempts until
//! one brings an answer or the policy gives up.

use crate::door::{known, service_for};
use crate::event::{Event, NextAttempt, Shown};
use crate::fetch::fetch;
use crate::handles::Handles;
use crate::history::History;
use crate::policy::{self, Fallback, Next, Room, Sent, Tried};
use crate::record::Replied;
use crate::render::{self, MediaUse, Sight, SystemFacts};
use crate::room::{self, Compaction};
use crate::store::contacts::ContactRow;
use crate::store::usage::{Served, Used};
use crate::store::{Conversation, Error, agents, artifacts, contacts, records, roles, tasks, usage};
use crate::tools;
use crate::trust::OfAll;
use crate::turn::{Tools, with_unique_ids};
use polity_artifacts::index::Stored;
use polity_llm::{
    CallError, FailureKind, Message, Part, Reply, Request, Tool, ToolChoice, estimate_message_tokens,
    estimate_prompt_tokens,
};
use polity_registry::{Service, Snapshot};
use polity_routing::FileTypes;
use polity_society::content::{Capability, Kind};
use polity_society::id::{ArtifactId, ServiceId};
use polity_society::limits::Limits;
use polity_society::text::TextKey;
use std::ops::Range;
use std::sync::Arc;

/// What came of asking.
pub(crate) enum Asked {
    /// An answer.
    Answered(Box<Answer>),
    /// No answer, for good.
    Failed {
        /// The service that was asked last.
        service: ServiceId,
        /// What sort of failure it was.
        kind: FailureKind,
        /// Why.
        reason: String,
    },
    /// Nothing was asked: the conversation has outgrown the context window, and its older part is to be summed up first.
    TooLong(Box<Compaction>),
    /// The task may not call models any more.
    Limited {
        /// The limit's name.
        limit: &'static str,
        /// Its value.
        value: u64,
    },
}

/// An answer of a model.
pub(crate) struct Answer {
    /// What is recorded of it.
    pub(crate) replied: Replied,
    /// What answered.
    pub(crate) served: Served,
    /// How the artifacts of the conversation were shown.
    pub(crate) shown: Vec<Shown>,
}

/// Which answer of which turn is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The turn.
    pub(crate) turn: i64,
    /// How many answers with tool calls it has had.
    pub(crate) number: u64,
    /// Whether the model may call tools.
    pub(crate) tools: Tools,
    /// Whether older history was summed up for it already.
    pub(crate) room: Room,
}

/// What a model is asked for.
#[derive(Clone, Copy, Debug)]
enum Wanted<'a> {
    /// What comes next in the conversation.
    Answer(Round),
    /// A summary of its older part.
    Summary(&'a Compaction),
}

/// What a request is made from, apart from the service.
struct Scene {
    agent: agents::AgentRow,
    role: Option<polity_society::role::Role>,
    history: History,
    contacts: Vec<ContactRow>,
    stored: Vec<Stored>,
    wanted: Option<ServiceId>,
    used: Used,
}

/// Asks for the next answer in a conversation.
pub(crate) async fn ask(
    handles: &Handles,
    conversation: &Conversation,
    round: Round,
) -> Result<Asked, Error> {
    ask_for(handles, conversation, Wanted::Answer(round)).await
}

/// Asks for a summary of the older part of a conversation.
pub(crate) async fn ask_for_summary(
    handles: &Handles,
    conversation: &Conversation,
    compaction: &Compaction,
) -> Result<Asked, Error> {
    ask_for(handles, conversation, Wanted::Summary(compaction)).await
}

async fn ask_for(handles: &Handles, conversation: &Conversation, wanted: Wanted<'_>) -> Result<Asked, Error> {
    let mut scene = look(handles, conversation).await?;
    let mut snapshot = handles.registry.refresh().await;
    if let Some((limit, value)) = over_budget(&scene.used, &snapshot.settings.limits) {
        return Ok(Asked::Limited { limit, value });
    }
    let mut service = Arc::clone(service_for(&snapshot.catalogue, scene.wanted.as_ref()));
    let mut tried_services = vec![service.id.clone()];
    let room = match wanted {
        Wanted::Answer(round) => round.room,
        Wanted::Summary(_) => Room::Exhausted,
    };
    let mut tried =
        Tried { attempts: 0, sent: Sent::Text, fallback: Fallback::None, media: MediaUse::Shown, room };
    let mut made = 0;
    loop {
        scene.history.pin_tokens = service.context_window.map(|window| window / 4);
        let Made { request, shown, costs } = match wanted {
            Wanted::Answer(round) => {
                request(handles, &scene, &snapshot, &service, tried.media, round.tools).await?
            }
            Wanted::Summary(compaction) => summary_request(compaction, &snapshot),
        };
        let tokens = estimate_prompt_tokens(&request);
        if tried.room != Room::Exhausted && room::outgrows(tokens, &service) {
            match room::compaction(&scene.history, &costs, tokens, tried.room, &service, &snapshot) {
                Some(compaction) => return Ok(Asked::TooLong(Box::new(compaction))),
                None => tried.room = Room::Exhausted,
            }
        }
        let media = media_in(&shown);
        tried.sent = sent(&request);
        tried.fallback = match untried_fallback(&snapshot, &service, &tried_services) {
            Some(_) => Fallback::Untried,
            None => Fallback::None,
        };
        tried.attempts += 1;
        made += 1;
        let failure = match attempt(handles, &service, &request).await {
            Ok(mut reply) => {
                handles.trusts.taken(&snapshot, &service.id, &media);
                if let Wanted::Answer(round) = wanted {
                    let taken = scene.history.call_ids();
                    reply.tool_calls = with_unique_ids(reply.tool_calls, &taken, round.turn, round.number);
                }
                return Ok(answered(reply, &service, &snapshot, made, shown));
            }
            Err(failure) => failure,
        };
        let compaction = match (failure.kind, tried.room) {
            (FailureKind::ContextOverflow, Room::Untouched | Room::Made) => {
                room::compaction(&scene.history, &costs, tokens, tried.room, &service, &snapshot)
            }
            _ => None,
        };
        if compaction.is_none() && failure.kind == FailureKind::ContextOverflow {
            tried.room = Room::Exhausted;
        }
        let next = policy::next(&failure, tried, &snapshot.settings.retry, fastrand::f64());
        let suspects = match failure.kind {
            FailureKind::MediaRefused => {
                handles.trusts.refused(&snapshot, &service.id, &media);
                capabilities_used(&media, &scene.stored)
            }
            _ => Vec::new(),
        };
        let attempt =
            FailedAttempt { service: service.id.clone(), attempt: made, failure: &failure, next, suspects };
        note_failure(handles, conversation, attempt).await?;
        polity_points::point!("ask::failure_noted");
        match next {
            Next::Again { after } => {
                if failure.retry_after.is_some() {
                    handles.gates.of(&service).pause(after);
                } else {
                    tokio::time::sleep(after).await;
                }
            }
            Next::DescribeMedia => tried.media = MediaUse::Described,
            Next::Compact => match compaction {
                Some(compaction) => return Ok(Asked::TooLong(Box::new(compaction))),
                // Cannot be missing: the policy was told that there is room to make.
                None => return Ok(failed(&service, &failure)),
            },
            Next::Fallback => {
                let fallback = untried_fallback(&snapshot, &service, &tried_services).map(Arc::clone);
                // Cannot be missing: the policy was told that there is one.
                let Some(fallback) = fallback else {
                    return Ok(failed(&service, &failure));
                };
                tried_services.push(fallback.id.clone());
                service = fallback;
                tried = Tried { attempts: 0, media: MediaUse::Shown, ..tried };
            }
            Next::GiveUp => return Ok(failed(&service, &failure)),
        }
        // Configuration may have changed meanwhile; a service that is still there is asked as it is now.
        snapshot = handles.registry.refresh().await;
        match snapshot.catalogue.service(&service.id) {
            Some(current) => service = Arc::clone(current),
            // It is gone: the default takes over, and starts afresh.
            None => {
                service = Arc::clone(snapshot.catalogue.default_service());
                tried_services.push(service.id.clone());
                tried = Tried { attempts: 0, media: MediaUse::Shown, ..tried };
            }
        }
    }
}

async fn look(handles: &Handles, conversation: &Conversation) -> Result<Scene, Error> {
    let mut reader = handles.store.reader().await?;
    let Some(agent) = agents::get(&mut reader, &conversation.agent).await? else {
        return Err(Error::Damaged { table: "agents", what: format!("{} is missing", conversation.agent) });
    };
    let role = match &agent.role {
        Some(role) => roles::get(&mut reader, role).await?,
        None => None,
    };
    let history = records::history(&mut reader, conversation).await?;
    let contacts = contacts::of(&mut reader, &conversation.agent, &conversation.task).await?;
    let stored = artifacts::get_many(&mut reader, &render::artifacts_of(&history)).await?;
    let wanted = match agent.service.clone() {
        Some(service) => Some(service),
        None => tasks::service(&mut reader, &conversation.task).await?,
    };
    let used = usage::of_task(&mut reader, &conversation.task).await?;
    Ok(Scene { agent, role, history, contacts, stored, wanted, used })
}

fn over_budget(used: &Used, limits: &Limits) -> Option<(&'static str, u64)> {
    let bounds = [
        ("maxModelCallsPerTask", used.calls, limits.max_model_calls_per_task),
        ("maxTokensPerTask", used.tokens, limits.max_tokens_per_task),
    ];
    bounds
        .into_iter()
        .find_map(|(name, used, limit)| limit.filter(|limit| used >= *limit).map(|limit| (name, limit)))
}

async fn request(
    handles: &Handles,
    scene: &Scene,
    snapshot: &Snapshot,
    service: &Service,
    media: MediaUse,
    tools: Tools,
) -> Result<Made, Error> {
    let limits = &room::within(&snapshot.settings.limits, service);
    let distrust = handles.trusts.distrust(snapshot, &service.id);
    let contacts = known(scene.contacts.clone(), &snapshot.catalogue);
    let (file_types, _) = FileTypes::parse(&service.file_types);
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
        media: if distrust.of_all == OfAll::Yes { MediaUse::Described } else { media },
        refused: &distrust.refused,
    };
    let fetched = fetch(handles, service, &scene.stored, &sight).await?;
    let rendered = render::render(&scene.history, &fetched, &sight);
    let system = render::system_message(&SystemFacts {
        prompts: &snapshot.prompts,
        agent: &scene.agent.id,
        parent: scene.agent.parent.as_ref(),
        role_name: &scene.agent.role_name,
        role_prompt: scene.role.as_ref().map(|role| role.prompt.as_str()),
        brief: scene.agent.brief.as_ref(),
        service,
        contacts: &contacts,
    });
    let of_record = |span: &Range<usize>| -> u64 {
        rendered.messages.get(span.clone()).unwrap_or_default().iter().map(estimate_message_tokens).sum()
    };
    let costs = rendered.spans.iter().map(of_record).collect();
    let mut messages = Vec::with_capacity(rendered.messages.len() + 1);
    messages.push(Message::System(system));
    messages.extend(rendered.messages);
    let groups = scene.role.as_ref().map(|role| role.tool_groups.as_slice()).unwrap_or_default();
    let offered: Vec<Tool> = if service.tools_allowed() {
        let outside = handles.outside.iter().map(|outside| outside.tool.clone());
        tools::offered(groups, &snapshot.prompts).into_iter().chain(outside).collect()
    } else {
        Vec::new()
    };
    let tool_choice = match tools {
        Tools::Offered => ToolChoice::Auto,
        Tools::Withheld => ToolChoice::None,
    };
    let request = Request { messages, tools: offered, tool_choice };
    Ok(Made { request, shown: rendered.shown, costs })
}

/// A request, how the artifacts in it are shown, and what each record that is told takes of it, in tokens.
struct Made {
    request: Request,
    shown: Vec<Shown>,
    costs: Vec<u64>,
}

fn summary_request(compaction: &Compaction, snapshot: &Snapshot) -> Made {
    let texts = &snapshot.prompts.texts;
    let tokens = compaction.summary_tokens.to_string();
    let messages = vec![
        Message::System(texts.fill(TextKey::ContextSumUp, &[("tokens", &tokens)])),
        Message::User(vec![Part::Text(compaction.transcript.clone())]),
    ];
    Made { request: Request { messages, ..Request::default() }, shown: Vec::new(), costs: Vec::new() }
}

fn sent(request: &Request) -> Sent {
    let has_media = request.messages.iter().any(|message| match message {
        Message::User(parts) => parts.iter().any(|part| !matches!(part, polity_llm::Part::Text(_))),
        Message::Tool { media, .. } => !media.is_empty(),
        Message::System(_) | Message::Assistant { .. } => false,
    });
    if has_media { Sent::Media } else { Sent::Text }
}

async fn attempt(handles: &Handles, service: &Service, request: &Request) -> Result<Reply, CallError> {
    let gate = handles.gates.of(service);
    let _pass = gate.enter().await;
    polity_points::point!("ask::before_attempt");
    let reply = handles.model.call(&service.endpoint, request).await;
    polity_points::point!("ask::after_attempt");
    reply
}

fn untried_fallback<'s>(
    snapshot: &'s Snapshot,
    service: &Service,
    tried: &[ServiceId],
) -> Option<&'s Arc<Service>> {
    let fallback = service.fallback.as_ref().filter(|fallback| !tried.contains(fallback))?;
    snapshot.catalogue.service(fallback)
}

fn answered(reply: Reply, service: &Service, snapshot: &Snapshot, attempts: u32, shown: Vec<Shown>) -> Asked {
    let replied = Replied {
        text: reply.text,
        calls: reply.tool_calls,
        extra: reply.extra,
        service: Some(service.id.clone()),
    };
    let served = Served {
        service: service.id.clone(),
        model: reply.model.unwrap_or_else(|| service.endpoint.model.clone()),
        revision: snapshot.catalogue.revision(),
        attempts,
        usage: reply.usage,
    };
    Asked::Answered(Box::new(Answer { replied, served, shown }))
}

fn failed(service: &Service, failure: &CallError) -> Asked {
    // Where nobody answers, the address is what one looks at first.
    let reason = match failure.kind {
        FailureKind::Unreachable | FailureKind::TimedOut => {
            format!("{failure} ({})", service.endpoint.base_url)
        }
        _ => failure.to_string(),
    };
    Asked::Failed { service: service.id.clone(), kind: failure.kind, reason }
}

/// The artifacts that were sent as media.
fn media_in(shown: &[Shown]) -> Vec<ArtifactId> {
    let media = shown.iter().filter(|shown| !matches!(shown.routing.as_str(), "text" | "described"));
    media.map(|shown| shown.artifact.clone()).collect()
}

/// The capabilities on the strength of which media were sent.
fn capabilities_used(media: &[ArtifactId], stored: &[Stored]) -> Vec<Capability> {
    let mut used = Vec::new();
    for id in media {
        let kind = stored.iter().find(|stored| stored.artifact.id == *id).map(|stored| stored.artifact.kind);
        let capability = kind.map(Kind::needs).filter(|capability| !used.contains(capability));
        used.extend(capability);
    }
    used
}

/// An attempt that brought no answer.
struct FailedAttempt<'a> {
    service: ServiceId,
    attempt: u32,
    failure: &'a CallError,
    next: Next,
    suspects: Vec<Capability>,
}

async fn note_failure(
    handles: &Handles,
    conversation: &Conversation,
    failed: FailedAttempt<'_>,
) -> Result<(), Error> {
    let event = Event::ModelFailed {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        service: failed.service,
        attempt: failed.attempt,
        kind: failed.failure.kind,
        reason: failed.failure.message.clone(),
        next: match failed.next {
            Next::Again { .. } => NextAttempt::Retry,
            Next::DescribeMedia => NextAttempt::DescribeMedia,
            Next::Compact => NextAttempt::Compact,
            Next::Fallback => NextAttempt::Fallback,
            Next::GiveUp => NextAttempt::GiveUp,
        },
        suspects: failed.suspects,
    };
    handles.store.note(event).await
}
