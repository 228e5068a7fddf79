//! Describes in one line what an agent is doing. The line begins with the name of the state.

use super::{Awaited, Doing, Silence};
use crate::event::{NextAttempt, beginning};
use polity_society::id::AgentId;

/// Maximum number of agents that a line names, and of requests to each of them.
const NAMED: usize = 3;

impl Doing {
    /// Describes what the agent is doing, at the time `now` in milliseconds since 1970. The line may quote a model or a
    /// server, so it may contain control characters.
    pub fn words(&self, now: i64) -> String {
        match self.words_apart(now) {
            (words, Some(silence)) => format!("{words}; {silence}"),
            (words, None) => words,
        }
    }

    /// Does the same as [`Doing::words`], but returns two texts: what the agent is doing, and how long its server has
    /// been silent and what happens when. The second text is absent while the server is not silent.
    pub fn words_apart(&self, now: i64) -> (String, Option<String>) {
        let silence = match self {
            Self::Thinking { silence, .. } => silence.as_ref().map(|silence| silence.words(now)),
            _ => None,
        };
        (self.without_silence(now), silence)
    }

    fn without_silence(&self, now: i64) -> String {
        let lasts = self.since().and_then(|since| elapsed(since, now));
        let lasts = lasts.map_or_else(String::new, |lasts| format!(", {lasts}"));
        match self {
            Self::Asking { .. } => format!("asking you{lasts}"),
            Self::Thinking { service, since, tokens, silence, .. } => {
                // If nothing has arrived since the request was sent, both times are the same. Say it once.
                let lasts = match silence {
                    Some(silence) if elapsed(silence.since, now) == elapsed(*since, now) => String::new(),
                    Some(_) | None => lasts,
                };
                let tokens = if *tokens > 0 { format!(", {tokens} tokens") } else { String::new() };
                format!("thinking at {service}{lasts}{tokens}")
            }
            Self::Queued { service, place, closed_until, .. } => {
                let place = place.map_or_else(String::new, |place| format!(", place {place}"));
                let left = closed_until.and_then(|until| elapsed(now, until));
                let closed =
                    left.map_or_else(String::new, |left| format!(", which takes no calls for {left}"));
                format!("queued for {service}{place}{lasts}{closed}")
            }
            Self::Running { tools, .. } => format!("running {}{lasts}", tools.join(", ")),
            Self::Retrying { service, attempt, of, why, until, .. } => {
                let left = elapsed(now, *until).map_or_else(|| "now".to_owned(), |left| format!("in {left}"));
                format!("retrying {service} {left} after failure {attempt} of {of}: {}", beginning(why))
            }
            Self::Ready { .. } => format!("ready{lasts}"),
            Self::Waiting { requests, .. } => {
                let mut whom: Vec<(&AgentId, Vec<&str>)> = Vec::new();
                for Awaited { agent, request, .. } in requests {
                    match whom.iter_mut().find(|(other, _)| *other == agent) {
                        Some((_, asked)) => asked.push(request.as_str()),
                        None => whom.push((agent, vec![request.as_str()])),
                    }
                }
                let whom: Vec<String> =
                    whom.iter().map(|(agent, asked)| format!("{agent} ({})", listed(asked))).collect();
                format!("waiting for {}{lasts}", listed(&whom))
            }
            Self::Parked { reason, .. } => format!("parked{lasts}: {}", beginning(reason)),
            Self::Paused { .. } => format!("paused{lasts}"),
            Self::Idle => "idle".to_owned(),
            Self::Ended { .. } => "ended".to_owned(),
        }
    }
}

impl Silence {
    fn words(&self, now: i64) -> String {
        let silent = elapsed(self.since, now).unwrap_or_else(|| "a moment".to_owned());
        let left = elapsed(now, self.until).unwrap_or_else(|| "a moment".to_owned());
        let then = match (self.then, &self.fallback) {
            (NextAttempt::Fallback, Some(fallback)) => format!("then asks {fallback} instead"),
            (NextAttempt::GiveUp | NextAttempt::Fallback, _) => "and the call fails".to_owned(),
            (
                NextAttempt::Retry | NextAttempt::DescribeMedia | NextAttempt::Compact | NextAttempt::Reword,
                _,
            ) => "then asks it again".to_owned(),
        };
        format!("silent for {silent}; polity ends this attempt in {left}, {then}")
    }
}

/// Lists the first [`NAMED`] names, and counts the others.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let named: Vec<&str> = names.iter().take(NAMED).map(AsRef::as_ref).collect();
    let named = named.join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Formats the time between two moments, such as `12 s`, `2 min 5 s` or `1 h 10 min`; `None` below one second.
pub fn elapsed(from: i64, to: i64) -> Option<String> {
    let seconds = to.saturating_sub(from) / 1_000;
    Some(match seconds {
        ..1 => return None,
        1..60 => format!("{seconds} s"),
        60..3_600 if seconds % 60 == 0 => format!("{} min", seconds / 60),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        86_400.. => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    })
}

#[cfg(test)]
mod tests {
    use super::super::About;
    use super::*;
    use polity_society::id::{ApprovalId, MessageId, ServiceId, TaskId};

    fn task() -> TaskId {
        TaskId::new("t-1")
    }

    fn thinking(tokens: u64, silence: Option<Silence>) -> Doing {
        let service = ServiceId::new("local");
        Doing::Thinking { task: task(), service, attempt: 1, since: 1_000, first_byte: None, tokens, silence }
    }

    #[test]
    fn times() {
        let check = |milliseconds: i64, expect: Option<&str>| {
            assert_eq!(elapsed(7, 7 + milliseconds).as_deref(), expect);
        };
        check(-5, None);
        check(999, None);
        check(1_000, Some("1 s"));
        check(59_999, Some("59 s"));
        check(60_000, Some("1 min"));
        check(125_000, Some("2 min 5 s"));
        check(3_600_000, Some("1 h 0 min"));
        check(90_000_000, Some("1 d 1 h"));
        assert!(elapsed(i64::MIN, i64::MAX).is_some());
    }

    #[test]
    fn lines() {
        let check = |doing: Doing, expect: &str| {
            let state = doing.state().as_str();
            assert_eq!(serde_json::to_value(&doing).expect("JSON")["state"], state);
            assert!(expect.starts_with(state), "{expect:?} does not begin with {state}");
            assert_eq!(doing.words(13_000), expect);
        };
        check(thinking(0, None), "thinking at local, 12 s");
        check(thinking(34, None), "thinking at local, 12 s, 34 tokens");
        let silence = |then, fallback| Some(Silence { since: 1_000, until: 61_000, then, fallback });
        let later = Some(Silence { since: 3_000, until: 63_000, then: NextAttempt::GiveUp, fallback: None });
        check(
            thinking(34, later),
            "thinking at local, 12 s, 34 tokens; silent for 10 s; polity ends this attempt in 50 s, and the call fails",
        );
        check(
            thinking(0, silence(NextAttempt::Retry, None)),
            "thinking at local; silent for 12 s; polity ends this attempt in 48 s, then asks it again",
        );
        check(
            thinking(0, silence(NextAttempt::Fallback, Some(ServiceId::new("far")))),
            "thinking at local; silent for 12 s; polity ends this attempt in 48 s, then asks far instead",
        );
        check(
            thinking(0, silence(NextAttempt::GiveUp, None)),
            "thinking at local; silent for 12 s; polity ends this attempt in 48 s, and the call fails",
        );
        let silent = thinking(0, silence(NextAttempt::Retry, None)).words_apart(13_000);
        let told = "silent for 12 s; polity ends this attempt in 48 s, then asks it again".to_owned();
        assert_eq!(silent, ("thinking at local".to_owned(), Some(told)));
        assert_eq!(Doing::Idle.words_apart(13_000), ("idle".to_owned(), None));
        let queued = |place, closed_until| Doing::Queued {
            task: task(),
            service: ServiceId::new("local"),
            place,
            since: 10_000,
            closed_until,
        };
        check(queued(None, None), "queued for local, 3 s");
        check(queued(Some(2), None), "queued for local, place 2, 3 s");
        check(queued(Some(2), Some(20_000)), "queued for local, place 2, 3 s, which takes no calls for 7 s");
        let running =
            Doing::Running { task: task(), tools: vec!["bash".into(), "fetch".into()], since: 12_500 };
        check(running, "running bash, fetch");
        let retrying = |until| Doing::Retrying {
            task: task(),
            service: ServiceId::new("local"),
            attempt: 2,
            of: 4,
            why: "server error: oops\nand more".into(),
            since: 12_000,
            until,
        };
        check(retrying(15_000), "retrying local in 2 s after failure 2 of 4: server error: oops and more");
        check(retrying(13_000), "retrying local now after failure 2 of 4: server error: oops and more");
        check(Doing::Ready { task: task(), since: 13_000 }, "ready");
        let approval = About::Approval(ApprovalId::new("ok-1"));
        check(Doing::Asking { task: task(), about: approval, since: 3_000 }, "asking you, 10 s");
        let awaited = |(agent, request): &(&str, i64)| Awaited {
            agent: AgentId::new(*agent),
            request: MessageId::from_sequence(*request),
            task: task(),
            since: 1_000,
        };
        let waiting = |requests: &[(&str, i64)]| Doing::Waiting {
            requests: requests.iter().map(awaited).collect(),
            since: 1_000,
        };
        check(waiting(&[("a", 6)]), "waiting for a (m000000006), 12 s");
        check(
            waiting(&[("a", 1), ("b", 2), ("a", 3)]),
            "waiting for a (m000000001, m000000003), b (m000000002), 12 s",
        );
        check(
            waiting(&[("a", 1), ("a", 2), ("a", 3), ("a", 4), ("a", 5)]),
            "waiting for a (m000000001, m000000002, m000000003 and 2 more), 12 s",
        );
        check(
            waiting(&[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)]),
            "waiting for a (m000000001), b (m000000002), c (m000000003) and 2 more, 12 s",
        );
        let parked = Doing::Parked { task: task(), reason: "damaged".into(), since: 13_000 };
        check(parked, "parked: damaged");
        check(Doing::Paused { since: 1_000 }, "paused, 12 s");
        check(Doing::Idle, "idle");
        check(Doing::Ended { since: 1_000 }, "ended");
    }
}
