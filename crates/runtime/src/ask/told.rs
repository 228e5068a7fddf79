//! Describes failed attempts in two forms: events for people who watch the society, and reasons for the parent or the
//! person.

use super::Asked;
use jiff::{SignedDuration, Timestamp, Unit};
use polity_decide::policy::Next;
use polity_llm::{CallError, FailureKind, ServerKind, Shut};
use polity_registry::{Remedy, Service};
use polity_society::content::Capability;
use polity_society::id::ServiceId;
use polity_store::Conversation;
use polity_view::{Event, NextAttempt};
use std::time::Duration;

/// Builds the event about an attempt that failed.
pub(super) fn model_failed(
    conversation: &Conversation,
    service: &Service,
    attempt: u32,
    failure: &CallError,
    next: Next,
    suspects: Vec<Capability>,
) -> Event {
    Event::ModelFailed {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        service: service.id.clone(),
        attempt,
        kind: failure.kind,
        status: failure.status,
        reason: failure.message.clone(),
        next: next_attempt(next),
        suspects,
        sent: None,
    }
}

/// Returns what a call does next, in the form that views show.
pub(super) fn next_attempt(next: Next) -> NextAttempt {
    match next {
        Next::Again { .. } => NextAttempt::Retry,
        Next::DescribeMedia => NextAttempt::DescribeMedia,
        Next::Compact => NextAttempt::Compact,
        Next::Reword => NextAttempt::Reword,
        Next::Fallback => NextAttempt::Fallback,
        Next::GiveUp => NextAttempt::GiveUp,
    }
}

/// Builds the failure that a server would cause if it sent nothing until the timeout. With this failure, the retry
/// policy is asked in advance what the call would do next. Views show this while the server is still silent.
pub(super) fn silent() -> CallError {
    let message = "the server stays silent".to_owned();
    CallError { kind: FailureKind::TimedOut, message, status: None, retry_after: None }
}

/// Builds an event. It says that the call skips a service and asks the service's fallback instead.
pub(super) fn service_skipped(
    conversation: &Conversation,
    service: &Service,
    fallback: &Service,
    reason: String,
) -> Event {
    Event::ServiceSkipped {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        service: service.id.clone(),
        fallback: fallback.id.clone(),
        reason,
    }
}

/// Builds the outcome of a call after its last failed attempt. `pause` is the time for which the service gets no
/// further requests.
pub(super) fn failed(service: &Service, failure: &CallError, pause: Option<Duration>) -> Asked {
    let mut reason = failure.to_string();
    // The end of the pause is better advice for a limited rate than to wait.
    let is_only_to_wait = failure.kind == FailureKind::RateLimited && pause.is_some();
    if let Some(advice) = advice(service, failure).filter(|_| !is_only_to_wait) {
        reason.push_str(&format!(" ({advice})"));
    }
    if let Some(pause) = pause {
        reason.push_str(&format!("; {}", may_be_asked_again(pause, Timestamp::now())));
    }
    Asked::Failed { service: service.id.clone(), kind: failure.kind, reason }
}

/// Builds the failure of a request that was not sent because it is larger than the window.
pub(super) fn does_not_fit(service: &Service, tokens: u64, window: u64) -> CallError {
    let message = format!(
        "the request takes about {tokens} tokens and the context window of service {} has {window}; it was not sent",
        service.id
    );
    CallError { kind: FailureKind::ContextOverflow, message, status: None, retry_after: None }
}

/// Returns what the person can do about a failure. Returns nothing for a service that is not configured correctly,
/// because the message of this failure already says what to change.
fn advice(service: &Service, failure: &CallError) -> Option<String> {
    if failure.kind == FailureKind::Misconfigured {
        return None;
    }
    let server = ServerKind::usual_at(&service.endpoint.base_url);
    let Remedy { advice, .. } = Remedy::of(service, failure, server);
    let id = &service.id;
    Some(match failure.status {
        None if is_silent(failure.kind) => format!("{}: {advice}", service.endpoint.base_url),
        None => advice,
        // The server answered with status 200, but the rest of the answer was faulty.
        Some(200) => format!("the server of {id} was reached: {advice}"),
        Some(status) => format!("the server of {id} was reached and answered with HTTP {status}: {advice}"),
    })
}

/// Returns whether this kind of failure means that no server answered. In that case, the person should first check
/// the address of the server.
fn is_silent(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Unreachable | FailureKind::TimedOut)
}

/// Builds the outcome of a call that the gate did not let in, if no other service can be asked instead.
pub(super) fn shut_out(service: &Service, shut: &Shut) -> Asked {
    let (kind, advice) = match shut {
        Shut::Paused { .. } => (FailureKind::RateLimited, None),
        Shut::Open { last, .. } | Shut::StillDown { last } => (last.kind, advice(service, last)),
    };
    let mut reason = format!("{kind}: {}", why(shut));
    if let Some(advice) = advice {
        reason.push_str(&format!(" ({advice})"));
    }
    Asked::Failed { service: service.id.clone(), kind, reason }
}

/// Builds the outcome of a call whose service was removed from the configuration, if no other service is left.
pub(super) fn withdrawn(service: &ServiceId) -> Asked {
    let reason = format!("the service {service} was taken out of the configuration while it was asked");
    Asked::Failed { service: service.clone(), kind: FailureKind::Misconfigured, reason }
}

/// Returns why a gate did not let a call in.
pub(super) fn why(shut: &Shut) -> String {
    match shut {
        Shut::Paused { left } => {
            format!("it has asked to be left alone; {}", may_be_asked_again(*left, Timestamp::now()))
        }
        Shut::Open { failures, last } => format!("its last {failures} calls failed: {last}"),
        Shut::StillDown { last } => last.to_string(),
    }
}

fn may_be_asked_again(after: Duration, now: Timestamp) -> String {
    // Round the time up, so that nobody asks the service too early.
    let seconds = i64::try_from(after.as_secs_f64().ceil() as u64).unwrap_or(i64::MAX);
    let after = SignedDuration::from_secs(seconds);
    match now.checked_add(after).and_then(|at| at.round(Unit::Second)) {
        Ok(at) => format!("it may be asked again in {after:#}, at {at}"),
        // The calendar of the library `jiff` ends before this time.
        Err(_) => format!("it may be asked again in {after:#}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_llm::Endpoint;

    fn reason(asked: &Asked) -> &str {
        let Asked::Failed { reason, .. } = asked else { panic!("not a failure") };
        reason
    }

    #[test]
    fn a_failed_call_is_told_with_advice_of_its_kind() {
        let service = Service::new(ServiceId::new("one"), Endpoint::new("http://127.0.0.1:9/v1", "m"));
        let check = |kind, status, pause, expect: &str| {
            let failure = CallError { kind, message: "why".to_owned(), status, retry_after: None };
            let asked = failed(&service, &failure, pause);
            let told = reason(&asked);
            assert!(told.starts_with(expect), "{told}");
            assert!(!told.contains("apiKey") || kind == FailureKind::Unauthorized, "{told}");
        };
        check(
            FailureKind::Passing,
            Some(500),
            None,
            "server error: why (the server of one was reached and answered with HTTP 500: check the server's log",
        );
        check(
            FailureKind::BrokenOff,
            Some(200),
            None,
            "answer broken off: why (the server of one was reached: check the server's log",
        );
        check(
            FailureKind::Unreachable,
            None,
            None,
            "server unreachable: why (http://127.0.0.1:9/v1: start the server",
        );
        check(
            FailureKind::RateLimited,
            Some(429),
            None,
            "rate limited: why (the server of one was reached and",
        );
        let pause = Some(Duration::from_secs(60));
        check(FailureKind::RateLimited, Some(429), pause, "rate limited: why; it may be asked again in 1m");
        check(FailureKind::Misconfigured, None, None, "service misconfigured: why");

        let last = CallError {
            kind: FailureKind::Passing,
            message: "why".to_owned(),
            status: Some(500),
            retry_after: None,
        };
        let asked = shut_out(&service, &Shut::StillDown { last });
        assert!(
            reason(&asked).ends_with("if the server is overloaded, try again later)"),
            "{}",
            reason(&asked)
        );
    }

    #[test]
    fn when_a_service_may_be_asked_again() {
        let now: Timestamp = "2026-11-21T10:00:00.2Z".parse().unwrap();
        let check = |after, expect| assert_eq!(may_be_asked_again(after, now), expect);
        check(Duration::from_secs(3_600), "it may be asked again in 1h, at 2026-11-21T11:00:00Z");
        check(Duration::from_millis(89_100), "it may be asked again in 1m 30s, at 2026-11-21T10:01:30Z");
    }
}
