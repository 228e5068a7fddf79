//! Decides what to do after a model call that got no answer: the only retry policy of polity (contract section 4).
//! The functions are pure.

use crate::render::MediaUse;
use polity_llm::{CallError, FailureKind, Patience, WhileOpen};
use polity_registry::Retry;
use polity_society::id::{ArtifactId, ServiceId};
use std::time::Duration;

/// The longest pause that a call waits for if its service asks for a pause and there is no other service. If the
/// service asks for a longer pause, the call fails, and the reason of the failure says when the pause ends.
const LONGEST_PAUSE: Duration = Duration::from_secs(15 * 60);

/// After a service asked for a pause, all callers stop sending requests to this service. Some servers ask for absurd
/// pauses, so the callers stop for at most this long.
const ASKED_AGAIN_AFTER: Duration = Duration::from_secs(60 * 60);

/// How often a call may send its request again to the same service with an explanation of how to call tools. Each time,
/// the explanation has one more line.
const MOST_REWORDED: u32 = 2;

/// What one model call has tried so far. All attempts of the call count. The call goes on, and its attempts are added,
/// even if it changes to another service, replaces media with descriptions, or sums up older history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The number of attempts so far, at all services together, without those that the person asked for.
    attempts: u32,
    /// The number of attempts that the person asked for. They do not count, so the person cannot make the call give up.
    asked_for: u32,
    /// Whether the person has asked for the next attempt.
    is_asked_for: bool,
    /// The number of attempts that were made before the first attempt at the current service.
    before: u32,
    /// The service that the call asks now; `None` at the beginning.
    service: Option<ServiceId>,
    /// The services that the call has given up.
    given_up: Vec<ServiceId>,
    /// Whether media are shown to the service.
    pub media: MediaUse,
    /// How often the request was sent again with an explanation of how to call tools, because the server could not
    /// read a tool call of its model.
    reworded: u32,
    /// The media that the service seems to have refused. This becomes certain if the service answers a request without
    /// these media.
    suspected: Option<Suspected>,
    /// Whether older history can still be summed up for the service.
    pub room: Room,
}

impl Tried {
    /// Returns the state at the beginning of a call.
    pub fn nothing() -> Self {
        Self {
            attempts: 0,
            asked_for: 0,
            is_asked_for: false,
            before: 0,
            service: None,
            given_up: Vec::new(),
            media: MediaUse::Shown,
            reworded: 0,
            suspected: None,
            room: Room::Untouched,
        }
    }

    /// Returns how many extra lines of the request explain how to call tools.
    pub fn reworded(&self) -> u32 {
        self.reworded
    }

    /// Makes the next request explain in one more line how to call tools.
    pub fn reword(&mut self) {
        self.reworded += 1;
    }

    /// A separate call asks a model for a summary. Returns the state in which the separate call begins: it asks the
    /// service that this call asks now, and it never asks a service that this call has given up.
    pub fn for_summary(&self) -> Self {
        Self { service: self.service.clone(), given_up: self.given_up.clone(), ..Self::nothing() }
    }

    /// Returns the number of attempts at all services, with those that the person asked for.
    pub fn attempts(&self) -> u32 {
        self.attempts.saturating_add(self.asked_for)
    }

    /// Returns the maximum of [`Tried::attempts`] so far. Each attempt that the person asked for raises it by one.
    pub fn most_attempts(&self, retry: &Retry) -> u32 {
        retry.max_attempts.saturating_add(self.asked_for)
    }

    /// Returns the service that the call asks now; `None` at the beginning.
    pub fn service(&self) -> Option<&ServiceId> {
        self.service.as_ref()
    }

    /// Returns whether the call could still change to this service: the service is not the current one,
    /// and the call has not given it up.
    pub fn is_untried(&self, service: &ServiceId) -> bool {
        self.service.as_ref() != Some(service) && !self.given_up.contains(service)
    }

    /// Makes another service the current service, and gives up the previous service.
    pub fn turn_to(&mut self, service: ServiceId) {
        self.given_up.extend(self.service.replace(service));
        self.is_asked_for = false;
        self.before = self.attempts;
        self.media = MediaUse::Shown;
        self.reworded = 0;
        self.suspected = None;
        // The new service has its own context window, so older history may be summed up again.
        self.room = Room::Untouched;
    }

    /// A request with these media failed, so the next requests describe media in text. `revision` is the revision of
    /// the catalogue with which the failed request was made.
    pub fn describe_media(&mut self, failure: &CallError, media: Vec<ArtifactId>, revision: u64) {
        self.media = MediaUse::Described;
        // If the request was too long, its media may not be the cause: a shorter history may be enough. So the media
        // are not suspected.
        self.suspected =
            (failure.kind != FailureKind::ContextOverflow).then_some(Suspected { media, revision });
    }

    /// Returns the suspected media and forgets them. Call this function when the service has answered a request without
    /// these media, because the answer shows that the media were the reason of the refusal. Returns no media if the
    /// refused request was made with another revision of the catalogue than `revision`.
    pub fn convicted(&mut self, revision: u64) -> Vec<ArtifactId> {
        let suspected = self.suspected.take().filter(|suspected| suspected.revision == revision);
        suspected.map(|suspected| suspected.media).unwrap_or_default()
    }

    /// Counts one attempt.
    pub fn count(&mut self) {
        let counted =
            if std::mem::take(&mut self.is_asked_for) { &mut self.asked_for } else { &mut self.attempts };
        *counted = counted.saturating_add(1);
    }

    /// Notes that the person has asked to try the current service again.
    pub fn ask_for(&mut self) {
        self.is_asked_for = true;
    }

    /// Notes that older history is being summed up.
    pub fn make_room(&mut self) {
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
    /// The revision of the catalogue with which the request was made. In another revision, the service may be another
    /// server, and the refusal says nothing about that server.
    revision: u64,
}

/// The circumstances of a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Situation {
    pub sent: Sent,
    pub fallback: Fallback,
    pub room: Room,
}

/// Whether summing up older history can still make room in the context window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Room can be made: nothing was summed up for this call yet.
    Untouched,
    /// Older history was summed up once. If this is not enough, room can be made once more.
    Made,
    /// No more room can be made.
    Exhausted,
}

/// What a failed request contained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The request contained text alone.
    Text,
    /// The request contained media too.
    Media,
}

/// Whether there is another service to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// There is a fallback that the call has not tried.
    Untried,
    /// There is no other service to ask.
    None,
}

/// What a call does after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the same request again, after a pause.
    Again { after: Duration },
    /// Send the request again at once, with its media described in text.
    DescribeMedia,
    /// Send the request again at once, with one more line that explains how to call tools.
    Reword,
    /// Let a model sum up older history, then send the shorter request.
    Compact,
    /// Ask the fallback: the service to which the call can change.
    Fallback,
    /// End the call as failed, so that the parent or the person is told.
    GiveUp,
}

/// Before an attempt, a call may have to wait at the gate of its service. Returns what the call waits for, and what it
/// does not wait for. The gate is closed during a pause that the service asked for, and for a while after the service
/// has failed again and again.
pub fn patience(fallback: Fallback, retry: &Retry) -> Patience {
    let while_open = match fallback {
        Fallback::Untried => WhileOpen::Leave,
        Fallback::None => WhileOpen::Wait,
    };
    Patience { longest_pause: longest_pause(fallback, retry), while_open }
}

fn longest_pause(fallback: Fallback, retry: &Retry) -> Duration {
    match fallback {
        // If there is a fallback, a call waits for the service no longer than it would wait between two attempts.
        Fallback::Untried => retry.max_delay,
        Fallback::None => LONGEST_PAUSE,
    }
}

/// Returns how long all callers must pause before the next request to a service. `asked` is the pause that the service
/// asked for.
pub fn shared_pause(asked: Duration) -> Duration {
    asked.min(ASKED_AGAIN_AFTER)
}

/// Decides what follows a failed attempt. The caller has already counted this attempt. `jitter` is a random number from
/// 0 to 1. It makes the pauses differ, so that callers of the same server do not all try again at the same time.
pub fn next(failure: &CallError, tried: &Tried, situation: Situation, retry: &Retry, jitter: f64) -> Next {
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
        | FailureKind::ToolsRefused
        | FailureKind::NoSuchModel
        | FailureKind::NothingLoaded
        | FailureKind::WrongAddress
        | FailureKind::Refused
        | FailureKind::Misconfigured => elsewhere,
    }
}

/// Returns how many of the remaining attempts a service gets. If there is a fallback, the service gets half of the
/// attempts, rounded up; otherwise it gets all attempts.
fn share(left: u32, fallback: Fallback) -> u32 {
    match fallback {
        Fallback::Untried => left.div_ceil(2),
        Fallback::None => left,
    }
}

/// Returns the pause after this many failures in a row. The pause doubles with each failure up to the configured
/// maximum, and `jitter` shortens the pause by up to half. The pause is never shorter than `asked`, the pause that
/// the server asked for.
pub fn pause(asked: Option<Duration>, failures: u32, retry: &Retry, jitter: f64) -> Duration {
    let doubled = retry.base_delay.saturating_mul(1 << failures.saturating_sub(1).min(20));
    let spread = doubled.min(retry.max_delay).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
    asked.map_or(spread, |asked| asked.max(spread))
}

#[cfg(test)]
mod tests;
