//! Asks a model for its next answer: makes attempts until an attempt brings an answer or the retry policy gives up.
//!
//! Each attempt first waits at the gate of the service. The gate limits how many requests the service gets at the same
//! time. After the wait, the attempt builds its request for the service, as the service is configured at that moment.
//! So a waiting attempt holds no request in memory, and no request is outdated when it is sent.

mod direct;
mod preview;
mod request;
mod scene;
mod told;

use crate::board::{self, Moment, Queued, Shown};
use crate::budget::{Reservation, Reserved};
use crate::handles::Handles;
pub(crate) use direct::direct;
pub use direct::{By, DirectAnswer, DirectError, Line};
use polity_decide::budget::{self, Reached};
use polity_decide::policy::{self, Fallback, Next, Room, Sent, Situation, Tried};
use polity_decide::room::{self, Compaction};
use polity_decide::turn::{Tools, with_unique_ids};
use polity_decide::understood::{Understood, understood};
use polity_llm::{CallError, FailureKind, Pass, Reply, Shut, estimate_prompt_tokens};
use polity_registry::{Service, Snapshot};
use polity_society::id::{ArtifactId, ServiceId, TurnId};
use polity_store::record::Replied;
use polity_store::usage::Served;
use polity_store::{Conversation, Error, events, sent, turns};
use polity_view::{Event, SentOutcome};
pub use preview::Bytes;
pub(crate) use preview::preview;
use request::{Made, Manner, capabilities_used, make};
use scene::{Scene, look};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The outcome of a model call, which makes one or more attempts.
pub(crate) enum Asked {
    /// The model answered.
    Answered(Box<Answer>),
    /// The call failed, and no further attempt is made.
    Failed {
        /// The service that was asked last.
        service: ServiceId,
        kind: FailureKind,
        /// Why the call failed, as a text for the parent or the person.
        reason: String,
    },
    /// The conversation has outgrown the context window, so its older part must be summed up first.
    TooLong(Box<Compaction>),
    /// The task has reached this limit, so it may not call models any more.
    Limited(Reached),
    /// The call ended without an answer or a failure: the agent was halted, or the process is about to end.
    Left,
}

/// An answer of a model.
pub(crate) struct Answer {
    /// The answer in the form in which the history records it.
    pub(crate) replied: Replied,
    /// Which service and model answered, and at what cost.
    pub(crate) served: Served,
    /// The request as it was sent.
    pub(crate) sent: sent::Sent,
    /// The budget that was reserved for the call. The caller drops the reservation after the cost of the call is
    /// written.
    pub(crate) reservation: Reservation,
}

/// Which answer a model call asks for: the turn, the number of the answer in the turn, and whether the model may call
/// tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) turn: TurnId,
    /// How many answers with tool calls the turn has had.
    pub(crate) number: u64,
    pub(crate) tools: Tools,
}

/// What a model call asks for.
#[derive(Clone, Copy, Debug)]
enum Wanted<'a> {
    /// The next answer in the conversation.
    Answer(Round),
    /// A summary of the conversation's older part.
    Summary(&'a Compaction),
}

/// Asks for the next answer in a conversation. `tried` records the attempts so far. If the result is that a summary is
/// needed first, the caller calls this function again after the summary, with the same `tried`. The call then
/// continues.
pub(crate) async fn ask(
    handles: &Handles,
    conversation: &Conversation,
    round: Round,
    tried: &mut Tried,
    halt: &CancellationToken,
) -> Result<Asked, Error> {
    ask_for(handles, conversation, Wanted::Answer(round), tried, halt).await
}

/// Asks a model for a summary of the older part of a conversation. A model call was interrupted, because it needs the
/// room that this summary makes. `during` holds the attempts of the interrupted call. Its service is asked first.
pub(crate) async fn ask_for_summary(
    handles: &Handles,
    conversation: &Conversation,
    compaction: &Compaction,
    during: &Tried,
    halt: &CancellationToken,
) -> Result<Asked, Error> {
    ask_for(handles, conversation, Wanted::Summary(compaction), &mut during.for_summary(), halt).await
}

/// At this interval, a running call checks the remaining time of its task. It checks repeatedly because the limit may
/// change.
const LOOK_AT_TIME: Duration = Duration::from_secs(1);

/// Runs a call until it has ended, is halted, or the task's time is used up.
async fn ask_for(
    handles: &Handles,
    conversation: &Conversation,
    wanted: Wanted<'_>,
    tried: &mut Tried,
    halt: &CancellationToken,
) -> Result<Asked, Error> {
    let scene = look(handles, conversation).await?;
    let mut call = Call { handles, conversation, wanted, scene, tried, failed: None };
    let mut made = std::pin::pin!(call.make());
    loop {
        let limits = &handles.registry.current().settings.limits;
        let worked = handles.budgets.worked(&conversation.task).unwrap_or_default();
        let mut next_look = LOOK_AT_TIME;
        if let Some(seconds) = limits.max_seconds_per_task {
            let left = Duration::from_secs(seconds).saturating_sub(worked);
            if left.is_zero() {
                return Ok(Asked::Limited(Reached { limit: "maxSecondsPerTask", value: seconds.into() }));
            }
            next_look = next_look.min(left);
        }
        tokio::select! {
            biased;
            asked = &mut made => return asked,
            () = halt.cancelled() => return Ok(Asked::Left),
            () = tokio::time::sleep(next_look) => {}
        }
    }
}

/// One call of [`ask`] or [`ask_for_summary`] in progress, with all its attempts.
struct Call<'a> {
    handles: &'a Handles,
    conversation: &'a Conversation,
    wanted: Wanted<'a>,
    scene: Scene,
    tried: &'a mut Tried,
    /// The last failed attempt, if the service asked for a pause after this attempt.
    failed: Option<board::Failed>,
}

/// The outcome of one attempt.
enum Attempted {
    /// The attempt ended the call.
    Ended(Asked),
    /// The attempt failed.
    Failed(Box<FailedAttempt>),
    /// No request was sent, and the call must begin a new attempt. Three things lead to this: the service was changed
    /// while the attempt waited, the service asked for a pause after the gate had let the attempt in, or other calls
    /// had reserved the budget of the task.
    Stale,
}

/// An attempt that brought no answer.
struct FailedAttempt {
    failure: CallError,
    sent: Sent,
    /// The artifacts that the request showed as media.
    media: Vec<ArtifactId>,
    /// The revision of the catalogue (the list of services) for which the request was made.
    revision: u64,
    /// The part of the conversation that could be summed up to make the request shorter.
    compaction: Option<Compaction>,
    /// The request as it was sent; `None` if no request was sent.
    request: Option<sent::Sent>,
}

impl Call<'_> {
    /// Makes attempts until the call has ended.
    async fn make(&mut self) -> Result<Asked, Error> {
        loop {
            let snapshot = self.handles.registry.current();
            let service = match self.service(&snapshot) {
                Ok(service) => service,
                Err(gone) => return Ok(told::withdrawn(&gone)),
            };
            let fallback = untried_fallback(&snapshot, &service, self.tried);
            let gate = self.handles.gates.of(&service);
            let patience = policy::patience(fallback_of(fallback), &snapshot.settings.retry);
            let tries = gate.tries();
            let ticket = gate.join();
            let queued = Moment::Queued(Queued {
                service: service.id.clone(),
                gate: Arc::clone(&gate),
                ticket: ticket.number(),
                failed: self.failed.take(),
            });
            // The board shows the conversation as queued until the request is sent.
            let queued = self.handles.board.show(self.conversation, queued);
            let entered = tokio::select! {
                entered = ticket.enter(patience) => entered,
                () = self.handles.draining.cancelled() => return Ok(Asked::Left),
            };
            // The person may have ended the wait. This holds for the call that then makes a probe, and for the calls
            // that fail with this probe.
            if tries.has_changed().unwrap_or(false) {
                self.tried.ask_for();
            }
            let attempted = match entered {
                Ok(pass) => self.attempt(pass, &service, queued).await?,
                Err(Shut::StillDown { last }) => {
                    self.tried.count();
                    Attempted::Failed(Box::new(still_down(last)))
                }
                Err(shut @ (Shut::Paused { .. } | Shut::Open { .. })) => {
                    let Some(fallback) = fallback else { return Ok(told::shut_out(&service, &shut)) };
                    let skipped =
                        told::service_skipped(self.conversation, &service, fallback, told::why(&shut));
                    self.handles.store.note(skipped).await?;
                    self.tried.turn_to(fallback.id.clone());
                    continue;
                }
            };
            match attempted {
                Attempted::Ended(asked) => return Ok(asked),
                Attempted::Failed(failed) => {
                    if let Some(asked) = self.go_on(&service, *failed).await? {
                        return Ok(asked);
                    }
                }
                Attempted::Stale => {}
            }
        }
    }

    /// Returns the service to ask, as it is configured now. This is the service that the call asked last. If the call
    /// has asked no service yet, or if that service was removed from the configuration, takes the service that was
    /// chosen for the agent. If the call has already tried that one, takes the default service. If the call has already
    /// tried both, fails; the error names the removed service.
    fn service(&mut self, snapshot: &Snapshot) -> Result<Arc<Service>, ServiceId> {
        let current = self.tried.service();
        if let Some(service) = current.and_then(|id| snapshot.catalogue.service(id)) {
            return Ok(Arc::clone(service));
        }
        let wanted = snapshot.catalogue.service_for(self.scene.agent.service.as_ref());
        let candidates = [wanted, snapshot.catalogue.default_service()];
        match candidates.into_iter().find(|service| self.tried.is_untried(&service.id)) {
            Some(service) => {
                self.tried.turn_to(service.id.clone());
                Ok(Arc::clone(service))
            }
            None => Err(current.unwrap_or(&wanted.id).clone()),
        }
    }

    async fn attempt(
        &mut self,
        pass: Pass,
        entered: &Service,
        queued: Shown<'_>,
    ) -> Result<Attempted, Error> {
        // The wait at the gate may have been long, so the configuration is read again.
        let snapshot = self.handles.registry.refresh().await;
        // Wait for MCP servers that are just being started, so that this request offers their tools.
        tokio::select! {
            () = self.handles.hands.settled() => {}
            () = self.handles.draining.cancelled() => return Ok(Attempted::Ended(Asked::Left)),
        }
        let current = snapshot.catalogue.service(&entered.id);
        let Some(service) = current.filter(|now| now.endpoint.is_same_server(&entered.endpoint)) else {
            return Ok(Attempted::Stale);
        };
        self.scene.history.pin_tokens = service.context_window.map(|window| window / 4);
        let manner = Manner { media: self.tried.media, reworded: self.tried.reworded() };
        let made = make(self.handles, &self.scene, &snapshot, service, manner, self.wanted).await;
        for event in &made.unreadable {
            self.handles.store.note(event.clone()).await?;
        }
        let tokens = estimate_prompt_tokens(&made.request);
        if room::outgrows(tokens, service)
            && let Some(compaction) = self.compaction(&made, tokens, service, &snapshot)
        {
            return Ok(Attempted::Ended(self.too_long(compaction)));
        }
        // Some servers silently cut a request that is too long, so such a request is not sent.
        if let Some(window) = room::overfills(tokens, service) {
            self.tried.count();
            let failure = told::does_not_fit(service, tokens, window);
            let (sent, media) = (made.sent(), made.media());
            let revision = snapshot.catalogue.revision();
            let failed = FailedAttempt { failure, sent, media, revision, compaction: None, request: None };
            return Ok(Attempted::Failed(Box::new(failed)));
        }
        let need = budget::need(tokens, service);
        let (store, task, limits) = (&self.handles.store, &self.conversation.task, &snapshot.settings.limits);
        let reservation = match self.handles.budgets.reserve(store, task, need, limits).await? {
            Reserved::Granted(reservation) => reservation,
            Reserved::Refused(reached) => return Ok(Attempted::Ended(Asked::Limited(reached))),
            Reserved::Later(settled) => {
                // The pass is the place of this call at the gate. Dropping the pass lets another call through while
                // this call waits.
                drop(pass);
                tokio::select! {
                    () = settled => {}
                    () = self.handles.draining.cancelled() => return Ok(Attempted::Ended(Asked::Left)),
                }
                return Ok(Attempted::Stale);
            }
        };
        if self.handles.draining.is_cancelled() {
            return Ok(Attempted::Ended(Asked::Left));
        }
        if pass.is_paused() {
            return Ok(Attempted::Stale);
        }
        self.tried.count();
        polity_points::point!("ask::before_attempt");
        let called = {
            let answer = Arc::new(self.begun(service, &snapshot, made.sent()));
            let _thinking = self.handles.board.show(self.conversation, Moment::Thinking(Arc::clone(&answer)));
            drop(queued);
            self.handles.model.call(&service.endpoint, &made.request, &*answer).await
        };
        polity_points::point!("ask::after_attempt");
        if let Some(asked) = called.as_ref().err().and_then(|failure| failure.retry_after) {
            // Begin the pause before the pass is dropped. Otherwise a waiting caller would get through the gate
            // before the pause begins.
            self.handles.gates.of(service).pause(policy::shared_pause(asked));
        }
        let retry = &snapshot.settings.retry;
        pass.settle(called.as_ref().err(), |failures| policy::pause(None, failures, retry, fastrand::f64()));
        let failure = match called {
            Ok(reply) => {
                let convicted = self.tried.convicted(snapshot.catalogue.revision());
                self.handles.trusts.refused(&snapshot, &service.id, &convicted);
                self.handles.trusts.taken(&snapshot, &service.id, &made.media());
                return Ok(Attempted::Ended(self.answered(reply, service, &snapshot, made, reservation)));
            }
            Err(failure) => failure,
        };
        let media = made.media();
        let compaction = match failure.kind {
            FailureKind::ContextOverflow => self.compaction(&made, tokens, service, &snapshot),
            _ => None,
        };
        let revision = snapshot.catalogue.revision();
        let sent = made.sent();
        let request = Some(made.as_sent(service, revision, SentOutcome::Failed));
        let failed = FailedAttempt { failure, sent, media, revision, compaction, request };
        Ok(Attempted::Failed(Box::new(failed)))
    }

    /// Does what the retry policy decides after a failed attempt. If the call ends, returns the outcome of the call.
    async fn go_on(&mut self, service: &Service, failed: FailedAttempt) -> Result<Option<Asked>, Error> {
        let snapshot = self.handles.registry.current();
        let FailedAttempt { failure, sent, media, revision, compaction, request } = failed;
        let fallback = untried_fallback(&snapshot, service, self.tried);
        let room = if compaction.is_some() { self.tried.room } else { Room::Exhausted };
        let situation = Situation { sent, fallback: fallback_of(fallback), room };
        let next = policy::next(&failure, self.tried, situation, &snapshot.settings.retry, fastrand::f64());
        let suspects = match (next, failure.kind) {
            (Next::DescribeMedia, _) | (_, FailureKind::MediaRefused) => {
                capabilities_used(&media, &self.scene.stored)
            }
            _ => Vec::new(),
        };
        let attempt = self.tried.attempts();
        let event = told::model_failed(self.conversation, service, attempt, &failure, next, suspects);
        self.note_failure(event, request).await?;
        polity_points::point!("ask::failure_noted");
        let pause = self.leave_alone(service, &failure, next);
        match (next, fallback, compaction) {
            (Next::Again { after }, _, _) => {
                // If the service asked for a pause, all callers wait at the gate until the pause is over.
                // This call also waits at the gate.
                let failed = self.failed(service, &failure, &snapshot);
                if pause.is_some() {
                    self.failed = Some(failed);
                } else {
                    let until = board::after(failed.at, after);
                    let gate = self.handles.gates.of(service);
                    let mut tries = gate.tries();
                    let retrying = Moment::Retrying { failed, until };
                    let _pausing = self.handles.board.show(self.conversation, retrying);
                    tokio::select! {
                        () = tokio::time::sleep(after) => {}
                        // Cannot fail: `gate` owns the sender.
                        Ok(()) = tries.changed() => self.tried.ask_for(),
                        () = self.handles.draining.cancelled() => return Ok(Some(Asked::Left)),
                    }
                }
            }
            (Next::Reword, _, _) => self.tried.reword(),
            (Next::DescribeMedia, _, _) => self.tried.describe_media(&failure, media, revision),
            (Next::Compact, _, Some(compaction)) => return Ok(Some(self.too_long(compaction))),
            (Next::Fallback, Some(fallback), _) => self.tried.turn_to(fallback.id.clone()),
            // `Fallback` and `Compact` cannot reach this arm: the policy returns `Fallback` only if there is a
            // fallback, and `Compact` only if there is something to sum up.
            (Next::GiveUp | Next::Fallback | Next::Compact, _, _) => {
                return Ok(Some(told::failed(service, &failure, pause)));
            }
        }
        Ok(None)
    }

    /// Records a failed attempt, with the request as it was sent.
    async fn note_failure(&self, event: Event, request: Option<sent::Sent>) -> Result<(), Error> {
        let conversation = self.conversation.clone();
        let write = self.handles.store.write(move |tx| {
            Box::pin(async move {
                let mut event = event;
                // Somebody may have ended the turn during the attempt. Then the event is recorded without the request.
                if let Some(request) = request
                    && let Some(open) = turns::open(&mut tx.connection, &conversation).await?
                {
                    let number = sent::insert(tx, &conversation, open.id, &request, None).await?;
                    if let Event::ModelFailed { sent, .. } = &mut event {
                        *sent = Some(number);
                    }
                }
                events::append(tx, &event).await
            })
        });
        write.await
    }

    /// Returns what the board tells about the attempt that begins now. Views show this while the answer arrives.
    fn begun(&self, service: &Service, snapshot: &Snapshot, sent: Sent) -> board::Answer {
        let fallback = untried_fallback(snapshot, service, self.tried);
        let situation = Situation { sent, fallback: fallback_of(fallback), room: Room::Exhausted };
        let next = policy::next(&told::silent(), self.tried, situation, &snapshot.settings.retry, 0.0);
        let limits = board::Limits::of(
            &service.endpoint,
            told::next_attempt(next),
            fallback.map(|fallback| fallback.id.clone()),
        );
        let board = &self.handles.board;
        board::Answer::new(board.number(), service.id.clone(), self.tried.attempts(), limits)
    }

    /// Returns what the board tells about the failed attempt. Views show this while the call pauses.
    fn failed(&self, service: &Service, failure: &CallError, snapshot: &Snapshot) -> board::Failed {
        board::Failed {
            service: service.id.clone(),
            attempt: self.tried.attempts(),
            of: self.tried.most_attempts(&snapshot.settings.retry),
            why: failure.to_string(),
            at: board::now(),
        }
    }

    /// If the service asked for a pause, closes the gate of the service for as long as the retry policy decides.
    /// Returns how long the gate stays closed.
    fn leave_alone(&self, service: &Service, failure: &CallError, next: Next) -> Option<Duration> {
        let asked = failure.retry_after?;
        let pause = match next {
            Next::Again { after } => after,
            _ => policy::shared_pause(asked),
        };
        // During the attempt, the person may have configured another server for the service. The new server has not
        // asked for a pause, so its gate stays open.
        self.handles.gates.known(service)?.pause(pause);
        Some(pause)
    }

    /// A summary must replace a part of the conversation, so that the rest fits. Returns this part, or `None` if no
    /// summary helps.
    fn compaction(
        &self,
        made: &Made,
        tokens: u64,
        service: &Service,
        snapshot: &Snapshot,
    ) -> Option<Compaction> {
        match (self.wanted, self.tried.room) {
            (Wanted::Summary(_), _) | (_, Room::Exhausted) => None,
            (Wanted::Answer(_), room @ (Room::Untouched | Room::Made)) => {
                room::compaction(&self.scene.history, &made.costs, tokens, room, service, snapshot)
            }
        }
    }

    fn too_long(&mut self, compaction: Compaction) -> Asked {
        self.tried.make_room();
        Asked::TooLong(Box::new(compaction))
    }

    fn answered(
        &self,
        reply: Reply,
        service: &Service,
        snapshot: &Snapshot,
        made: Made,
        reservation: Reservation,
    ) -> Asked {
        let Understood { mut reply, taken, called_as, refusal } = understood(reply, &made.offered);
        if let Wanted::Answer(round) = self.wanted {
            let taken = self.scene.history.call_ids();
            reply.tool_calls = with_unique_ids(reply.tool_calls, &taken, round.turn, round.number);
        }
        let texts = &snapshot.prompts.texts;
        let refused = refusal.iter().zip(&reply.tool_calls);
        let called_as = reply.tool_calls.iter().zip(called_as);
        let replied = Replied {
            called_as: called_as.filter_map(|(call, word)| Some((call.id.clone(), word?))).collect(),
            refused: refused.map(|(refusal, call)| (call.id.clone(), refusal.to_json(texts))).collect(),
            text: reply.text,
            calls: reply.tool_calls,
            extra: reply.extra,
            service: Some(service.id.clone()),
            taken,
        };
        let served = Served {
            service: service.id.clone(),
            model: reply.model.unwrap_or_else(|| service.endpoint.model.clone()),
            revision: snapshot.catalogue.revision(),
            attempts: self.tried.attempts(),
            cost: budget::cost(&reply.usage, service),
            usage: reply.usage,
        };
        let mut sent = made.as_sent(service, served.revision, SentOutcome::Answered);
        sent.model.clone_from(&served.model);
        Asked::Answered(Box::new(Answer { replied, served, sent, reservation }))
    }
}

/// Returns the failure of an attempt that sent no request, because another call has found that the service is still
/// down.
fn still_down(last: CallError) -> FailedAttempt {
    let message = format!("another call has found it still down: {}", last.message);
    // `retry_after` is `None`, so that this call does not close the gate again. The call that found the service down
    // has already closed it for as long as the server asked.
    let failure = CallError { message, retry_after: None, ..last };
    FailedAttempt {
        failure,
        sent: Sent::Text,
        media: Vec::new(),
        revision: 0,
        compaction: None,
        request: None,
    }
}

fn untried_fallback<'s>(
    snapshot: &'s Snapshot,
    service: &Service,
    tried: &Tried,
) -> Option<&'s Arc<Service>> {
    let fallback = service.fallback.as_ref().filter(|fallback| tried.is_untried(fallback))?;
    snapshot.catalogue.service(fallback)
}

fn fallback_of(fallback: Option<&Arc<Service>>) -> Fallback {
    if fallback.is_some() { Fallback::Untried } else { Fallback::None }
}
