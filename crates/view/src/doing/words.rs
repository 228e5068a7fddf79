//! Describes in one line what an agent is doing. The line begins with the name of the state.

use super::{Doing, Silence};
use crate::event::{NextAttempt, beginning};

/// Maximum number of agents that a line names.
const NAMED: usize = 3;

impl Doing {
    /// Describes what the agent is doing, at the time `now` in milliseconds since 1970. The line may quote a model or a
    /// server, so it may contain control characters.
    pub fn words(&self, now: i64) -> String {
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
                let silence = silence.as_ref().map_or_else(String::new, |silence| silence.words(now));
                format!("thinking at {service}{lasts}{tokens}{silence}")
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
                let mut whom: Vec<&str> = Vec::new();
                for request in requests {
                    if !whom.contains(&request.agent.as_str()) {
                        whom.push(request.agent.as_str());
                    }
                }
                let more = whom.len().saturating_sub(NAMED);
                whom.truncate(NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("waiting for {}{more}{lasts}", whom.join(", "))
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
        format!("; silent for {silent}; polity ends this attempt in {left}, {then}")
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
    use super::super::{About, Awaited};
    use super::*;
    use polity_society::id::{AgentId, ApprovalId, MessageId, ServiceId, TaskId};

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
        let check = |doing: Doing, expect: &str| assert_eq!(doing.words(13_000), expect);
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
        let awaited = |agent: &str| Awaited {
            agent: AgentId::new(agent),
            request: MessageId::new("m-1"),
            task: task(),
            since: 1_000,
        };
        let waiting = |whom: &[&str]| Doing::Waiting {
            requests: whom.iter().map(|agent| awaited(agent)).collect(),
            since: 1_000,
        };
        check(waiting(&["a", "b", "a"]), "waiting for a, b, 12 s");
        check(waiting(&["a", "b", "c", "d", "e"]), "waiting for a, b, c and 2 more, 12 s");
        let parked = Doing::Parked { task: task(), reason: "damaged".into(), since: 13_000 };
        check(parked, "parked: damaged");
        check(Doing::Paused { since: 1_000 }, "paused, 12 s");
        check(Doing::Idle, "idle");
        check(Doing::Ended { since: 1_000 }, "ended");
    }
}
