//! What to do about a model call that brought no answer: the one retry policy (contract section 4). Pure.

use crate::decide::render::MediaUse;
use polity_llm::{CallError, FailureKind, Patience, WhileOpen};
use polity_registry::Retry;
use polity_society::id::{ArtifactId, ServiceId};
use std::time::Duration;

/// The longest pause that a service may ask for and be waited for, where nobody else can be asked. After a longer one
/// the call fails and says when the service may be asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// After this time a service is asked again, whatever pause it has asked for: some servers name a time that nobody means.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(60 * 60);

/// How often a model is told how to call tools.
const MOST_REWORDED: u32 = 2;

/// What was tried for one call. It stays with the call through everything: other services, media described, a history
/// that is summed up meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tried {
    /// Attempts in all.
    attempts: u32,
    /// Attempts before its service was asked first.
    before: u32,
    /// The service that is asked.
    service: Option<ServiceId>,
    /// Those that were given up.
    given_up: Vec<ServiceId>,
    /// Whether media are shown to the service.
    pub(crate) media: MediaUse,
    /// How often the model was told how to call tools, because the server could not read its call.
    reworded: u32,
    /// What the service seems to have refused. It is known once the service has answered without it.
    suspected: Option<Suspected>,
    /// Whether older history can be summed up for the service.
    pub(crate) room: Room,
}

impl Tried {
    /// Nothing yet.
    pub(crate) fn nothing() -> Self {
        Self {
            attempts: 0,
            before: 0,
            service: None,
            given_up: Vec::new(),
            media: MediaUse::Shown,
            reworded: 0,
            suspected: None,
            room: Room::Untouched,
        }
    }

    /// How many lines more the system message has that say how to call tools.
    pub(crate) fn reworded(&self) -> u32 {
        self.reworded
    }

    /// Has the model told how to call tools, once more.
    pub(crate) fn reword(&mut self) {
        self.reworded += 1;
    }

    /// What is known when a summary is asked for in the middle of the call: which service is to be asked, and which not.
    pub(crate) fn for_summary(&self) -> Self {
        Self { service: self.service.clone(), given_up: self.given_up.clone(), ..Self::nothing() }
    }

    /// Attempts in all.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The service that is asked; none before the first.
    pub(crate) fn service(&self) -> Option<&ServiceId> {
        self.service.as_ref()
    }

    /// Whether a service was neither given up nor is the one that is asked.
    pub(crate) fn is_untried(&self, service: &ServiceId) -> bool {
        self.service.as_ref() != Some(service) && !self.given_up.contains(service)
    }

    /// Turns to a service, and gives up the one before.
    pub(crate) fn turn_to(&mut self, service: ServiceId) {
        self.given_up.extend(self.service.replace(service));
        self.before = self.attempts;
        self.media = MediaUse::Shown;
        self.reworded = 0;
        self.suspected = None;
        // Another service, another window.
        self.room = Room::Untouched;
    }

    /// Has media described from now on, because of a failure of a request with these media. `revision` is that of the
    /// catalogue for which it was made.
    pub(crate) fn describe_media(&mut self, failure: &CallError, media: Vec<ArtifactId>, revision: u64) {
        self.media = MediaUse::Described;
        // Of a request that was too long it is not said that any of its media is to blame: a shorter history may do.
        self.suspected =
            (failure.kind != FailureKind::ContextOverflow).then_some(Suspected { media, revision });
    }

    /// The media that the service has refused, now that it has answered a request without them.
    pub(crate) fn convicted(&mut self, revision: u64) -> Vec<ArtifactId> {
        let suspected = self.suspected.take().filter(|suspected| suspected.revision == revision);
        suspected.map(|suspected| suspected.media).unwrap_or_default()
    }

    /// Counts an attempt.
    pub(crate) fn count(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    /// Notes that older history is being summed up.
    pub(crate) fn make_room(&mut self) {
        self.room = match self.room {
            Room::Untouched => Room::Made,
            Room::Made | Room::Exhausted => Room::Exhausted,
        };
    }
}

/// The media of a request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Suspected {
    media: Vec<ArtifactId>,
    /// The revision of the catalogue for which the request was made: after a correction, the refusal says nothing.
    revision: u64,
}

/// How an attempt was made that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Situation {
    /// Whether the request had media in it.
    pub(crate) sent: Sent,
    /// Whether there is another service to turn to.
    pub(crate) fallback: Fallback,
    /// Whether older history can be summed up.
    pub(crate) room: Room,
}

/// Whether room can be made in the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// It can: nothing was summed up for this call yet.
    Untouched,
    /// It can once more: what was summed up was not enough.
    Made,
    /// It cannot.
    Exhausted,
}

/// What a request held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Text alone.
    Text,
    /// Media too.
    Media,
}

/// Whether there is another service to turn to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fallback {
    /// There is one that was not tried yet.
    Untried,
    /// There is none.
    None,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The same again, after a pause.
    Again {
        /// How long the pause is.
        after: Duration,
    },
    /// The same at once, with media described in text.
    DescribeMedia,
    /// The same at once, with a line more that says how to call tools.
    Reword,
    /// The same, once older history was summed up.
    Compact,
    /// Ask the fallback.
    Fallback,
    /// Tell the parent, or the person.
    GiveUp,
}

/// What a call waits for before an attempt.
pub(crate) fn patience(fallback: Fallback, retry: &Retry) -> Patience {
    let while_open = match fallback {
        Fallback::Untried => WhileOpen::Leave,
        Fallback::None => WhileOpen::Wait,
    };
    Patience { longest_pause: longest_pause(fallback, retry), while_open }
}

fn longest_pause(fallback: Fallback, retry: &Retry) -> Duration {
    match fallback {
        // As long as the pauses between attempts are.
        Fallback::Untried => retry.max_delay,
        Fallback::None => LONGEST_PAUSE,
    }
}

/// How long all callers leave a service alone that has asked for it.
pub(crate) fn shared_pause(asked: Duration) -> Duration {
    asked.min(ASKED_AGAIN_AFTER)
}

/// Decides what follows a failed attempt, which is counted already. `jitter` is a random number from 0 to 1; it spreads
/// those who wait for the same server.
pub(crate) fn next(
    failure: &CallError,
    tried: &Tried,
    situation: Situation,
    retry: &Retry,
    jitter: f64,
) -> Next {
    if tried.attempts >= retry.max_attempts {
        return Next::GiveUp;
    }
    let elsewhere = match situation.fallback {
        Fallback::Untried => Next::Fallback,
        Fallback::None => Next::GiveUp,
    };
    if tried.attempts - tried.before >= share(retry.max_attempts - tried.before, situation.fallback) {
        return elsewhere;
    }
    if failure.kind == FailureKind::ContextOverflow && situation.room != Room::Exhausted {
        return Next::Compact;
    }
    let shows_media = situation.sent == Sent::Media && tried.media == MediaUse::Shown;
    if shows_media && failure.may_refuse_media() {
        return Next::DescribeMedia;
    }
    match failure.kind {
        FailureKind::CallNotParsed if tried.reworded < MOST_REWORDED => Next::Reword,
        FailureKind::CallNotParsed => elsewhere,
        FailureKind::Unreachable
        | FailureKind::TimedOut
        | FailureKind::RateLimited
        | FailureKind::Passing
        | FailureKind::BrokenOff
        | FailureKind::NotAnAnswer => {
            let too_long = longest_pause(situation.fallback, retry);
            if failure.retry_after.is_some_and(|asked| asked > too_long) {
                return elsewhere;
            }
            let here = tried.attempts - tried.before;
            Next::Again { after: pause(failure.retry_after, here, retry, jitter) }
        }
        FailureKind::MediaRefused
        | FailureKind::Unauthorized
        | FailureKind::ContextOverflow
        | FailureKind::Refused
        | FailureKind::Misconfigured => elsewhere,
    }
}

/// How many of the attempts that are left a service has: half of them, rounded up, where another can be asked after it.
fn share(left: u32, fallback: Fallback) -> u32 {
    match fallback {
        Fallback::Untried => left.div_ceil(2),
        Fallback::None => left,
    }
}

/// Twice as long after each failure, by half more or less; never shorter than the server asks for.
pub(crate) fn pause(asked: Option<Duration>, failures: u32, retry: &Retry, jitter: f64) -> Duration {
    let doubled = retry.base_delay.saturating_mul(1 << failures.saturating_sub(1).min(20));
    let spread = doubled.min(retry.max_delay).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    asked.map_or(spread, |asked| asked.max(spread))
}

#[cfg(test)]
mod tests;
