//! Describes facts and remedies of an explanation in words, for a terminal.

use super::{Fact, ResumeScope, WhyRemedy};
use crate::{ApprovalState, Because, Doing, NextAttempt, Outcome, elapsed};
use polity_society::content::Capability;
use polity_society::id::ServiceId;
use polity_society::tool_group::ToolGroup;

impl Fact {
    /// Describes the fact as a clause without a full stop, at the time `now` in milliseconds since 1970. The text may
    /// quote a model or a server, so it may contain control characters.
    pub fn sentence(&self, now: i64) -> String {
        match self {
            Self::Described { artifact, filename, agent, sent } => {
                let name = filename.as_deref().unwrap_or("the artifact");
                format!("{name} ({}) was described to {agent} in request {sent}", artifact.reference())
            }
            Self::ServiceTakes { service, revision, takes } => {
                format!("service {service} (revision {revision}) takes {}", only(takes))
            }
            Self::NotShown { because, service, revision } => {
                reason(because, &format!("service {service} (revision {revision})"))
            }
            Self::OthersCan { services } => format!("{} can take it", names(services)),
            Self::NobodyCan => "no other service can take it".to_owned(),
            Self::NoContactOn { agent, services } => {
                format!("{agent} had no contact on {}", names(services))
            }
            Self::HasContacts { agent, contacts } => {
                let contacts: Vec<&str> = contacts.iter().map(|contact| contact.as_str()).collect();
                format!("{agent} could have sent it to {}", contacts.join(", "))
            }
            Self::CallRefused { agent, tool, code, .. } => format!("{agent} was refused {tool}: {code}"),
            Self::Said { text } => text.clone(),
            Self::AttemptFailed { agent, service, attempt, kind, status, reason, sent } => {
                let status = status.map_or_else(String::new, |status| format!(", HTTP {status}"));
                let sent = sent.map_or_else(String::new, |sent| format!(" (request {sent})"));
                format!("attempt {attempt} of {agent} at {service} failed{sent}: {kind}{status}: {reason}")
            }
            Self::Then { next } => match next {
                NextAttempt::Retry => "the call tried again",
                NextAttempt::DescribeMedia => "the call tried again with media described",
                NextAttempt::Compact => "the call tried again with older history summed up",
                NextAttempt::Reword => "the call tried again and said how to call tools",
                NextAttempt::Fallback => "the call asked the fallback of the service",
                NextAttempt::GiveUp => "the call made no further attempt",
            }
            .to_owned(),
            Self::ServiceSkipped { service, fallback, reason } => {
                format!("{service} was not asked ({reason}), and {fallback} was asked instead")
            }
            Self::TurnFailed { agent, reason, at } => {
                let ago = at.and_then(|at| elapsed(at, now));
                let ago = ago.map_or_else(String::new, |ago| format!(" {ago} ago"));
                format!("a turn of {agent} failed{ago}: {reason}")
            }
            Self::FailedTurns { agent, count, limit, value } => {
                let turns = if *count == 1 { "1 turn".to_owned() } else { format!("{count} turns in a row") };
                format!("{agent} failed in {turns}, and limits.{limit} in app.json is {value}")
            }
            Self::Parked { agent, task, reason } => format!("{agent} is parked in {task}: {reason}"),
            Self::AgentEnded { agent, reason } if reason.is_empty() => format!("{agent} has ended"),
            Self::AgentEnded { agent, reason } => format!("{agent} has ended: {reason}"),
            Self::Paused { agent } => format!("you paused {agent}"),
            Self::Does { agent, doing } => match doing {
                Doing::Idle => format!("{agent} has nothing to do"),
                Doing::Ended { .. } => format!("{agent} has ended"),
                _ => format!("{agent} is {}", doing.words(now)),
            },
            Self::TaskOpen { task, since } => match elapsed(*since, now) {
                Some(lasts) => format!("{task} has been open for {lasts}"),
                None => format!("{task} is open"),
            },
            Self::TaskEnded { task, outcome } => {
                let how = match outcome {
                    Outcome::Answered => "with an answer",
                    Outcome::AwaitsUser => "and an agent waits for your answer",
                    Outcome::Unanswered => "without an answer",
                    Outcome::NoModel => "without an answer, because no model could be used",
                    Outcome::Limited => "without an answer, because a limit stopped it",
                };
                format!("nothing is left to do in {task}: it ended {how}")
            }
            Self::StoppedByUser { task } => format!("you stopped {task}"),
            Self::LimitReached { limit, value } => match value {
                Some(value) => format!("limits.{limit} ({value}) was reached"),
                None => format!("limits.{limit} was reached"),
            },
            Self::Unanswered { message, from, to, since } => {
                let ago = since.and_then(|since| elapsed(since, now));
                let ago = ago.map_or_else(String::new, |ago| format!(", sent {ago} ago"));
                let has = if to.is_user() { "you have".to_owned() } else { format!("{to} has") };
                format!("{has} not answered {message} of {from}{ago}")
            }
            Self::Bounced { message, to } => format!("{message} came back, because {to} has ended"),
            Self::Withdrawn { message, to } => format!("{message} to {to} was taken back"),
            Self::AgentStopped { agent, task, at } => {
                let ago = elapsed(*at, now).map_or_else(String::new, |ago| format!(", {ago} ago"));
                format!("you stopped the work of {agent} in {task}{ago}")
            }
            Self::CallAsked { agent, task, tool, arguments, state, since, at, reason, .. } => {
                let call = format!("{tool} {arguments} in {task}");
                let ended = at.and_then(|at| elapsed(at, now));
                let ended = ended.map_or_else(String::new, |ago| format!(", {ago} ago"));
                match state {
                    ApprovalState::Open => {
                        let ago = elapsed(*since, now);
                        let ago = ago.map_or_else(String::new, |ago| format!(" {ago} ago"));
                        format!("{agent} asked{ago} whether it may call {call}")
                    }
                    ApprovalState::Allowed => format!("you allowed {agent} to call {call}{ended}"),
                    ApprovalState::Denied => {
                        let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
                        format!("you did not allow {agent} to call {call}{ended}{reason}")
                    }
                    ApprovalState::Expired => {
                        format!("nobody answered in time whether {agent} may call {call}")
                    }
                    ApprovalState::Dropped => {
                        format!("the turn of {agent} that wanted to call {call} ended before you answered")
                    }
                }
            }
        }
    }
}

impl WhyRemedy {
    /// Describes the remedy in the imperative, with one sentence for each command. A command ends its sentence, so that it
    /// can be copied. Each command gets these options, such as ` --data home`; empty for none.
    pub fn sentences(&self, options: &str) -> Vec<String> {
        vec![match self {
            Self::Introduce { agent, service: Some(service), to, .. } => {
                format!("introduce {agent}, which is on {service}, to {to} (in the live view)")
            }
            Self::Introduce { agent, service: None, to, .. } => {
                format!("introduce {agent} to {to} (in the live view)")
            }
            Self::UseService { agent, service, .. } => {
                format!("give the role of {agent} the service {service} (in the live view)")
            }
            Self::AllowGroups { agent, groups, .. } => {
                format!("give the role of {agent} the tools of {} (in the live view)", listed(groups))
            }
            Self::AllowRoot { groups } => format!("add {} to tools.root in app.json", listed(groups)),
            Self::Hire { agent, task, service } => {
                format!(
                    "have {agent} hire somebody on {service}: polity send --to {agent} --task {task}{options} \"…\""
                )
            }
            Self::Declare { capability } => {
                format!("add a service that takes {} to llmservices.json", capability.as_str())
            }
            Self::Resume { agent, scope: ResumeScope::Agent } => {
                format!("go on: polity resume {agent} --alone{options}")
            }
            Self::Resume { agent, scope: ResumeScope::Subtree } => {
                format!("go on: polity resume {agent}{options}")
            }
            Self::RaiseLimit { limit } => {
                format!("raise limits.{limit} in app.json, and write to root again")
            }
            Self::CheckService { service } => {
                format!("check {service} and its entry in llmservices.json: polity doctor{options}")
            }
            Self::Answer { message, agent, task } => {
                format!("answer {message}: polity send --to {agent} --task {task}{options} \"…\"")
            }
            Self::Decide { approval } => {
                return vec![
                    format!("allow the call: polity approve {approval}{options}"),
                    format!("refuse the call: polity deny {approval}{options}"),
                ];
            }
            Self::Stop { agent } => {
                format!("stop the work of {agent}, so that nobody waits for it: polity stop {agent}{options}")
            }
            Self::Write { agent, task } => {
                format!("write again: polity send --to {agent} --task {task}{options} \"…\"")
            }
            Self::RunAgain { agent, task, turn, service: Some(service) } => format!(
                "run turn {turn} of {agent} again with {service}: \
                 polity fork {task} --turn {turn} --service {service}{options}"
            ),
            Self::RunAgain { agent, task, turn, service: None } => {
                format!("run turn {turn} of {agent} again: polity fork {task} --turn {turn}{options}")
            }
        }]
    }
}

fn names(services: &[ServiceId]) -> String {
    services.iter().map(ServiceId::as_str).collect::<Vec<_>>().join(", ")
}

fn listed(groups: &[ToolGroup]) -> String {
    groups.iter().map(ToolGroup::to_string).collect::<Vec<_>>().join(", ")
}

fn only(takes: &[Capability]) -> String {
    let takes: Vec<&str> = takes.iter().map(Capability::as_str).collect();
    match takes.is_empty() {
        true => "nothing that is declared".to_owned(),
        false => format!("{} only", takes.join(", ")),
    }
}

fn reason(because: &Because, service: &str) -> String {
    match because {
        Because::MissingCapability { capability } => {
            format!("{service} does not take {}", capability.as_str())
        }
        Because::FileTypeNotTaken => format!("{service} takes no files of this type"),
        Because::Refused => format!("the server of {service} refused it"),
        Because::TooLarge { encoded, limit } => format!(
            "it takes {encoded} bytes in a request, and the media of a request to {service} may take {limit}"
        ),
        Because::TooManyPixels { width, height } => {
            format!("it has {width} × {height} pixels, more than polity decodes")
        }
        Because::CannotFit { limit } => format!("it cannot be reduced to {limit} bytes for {service}"),
        Because::NotConvertible => "servers do not take its format, and polity cannot convert it".to_owned(),
        Because::Damaged => "it cannot be decoded".to_owned(),
        Because::EarlierAttachment { limit } => format!(
            "it belongs to an earlier message, and newer media fill the {limit} bytes of a request to {service}"
        ),
        Because::TogetherTooLarge { limit } => format!(
            "it and the other media of its message take more than the {limit} bytes of a request to {service}"
        ),
        Because::Unreadable => "its bytes could not be read".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};

    #[test]
    fn the_reasons_of_a_description_in_words() {
        let (mara, service) = (AgentId::new("mara-7k2f"), ServiceId::new("writer"));
        let eyes = vec![ServiceId::new("eyes")];
        let chain = [
            Fact::Described {
                artifact: ArtifactId::new("k3v9x2ma"),
                filename: Some("picture.png".to_owned()),
                agent: mara.clone(),
                sent: 7,
            },
            Fact::ServiceTakes { service, revision: 2, takes: vec![Capability::TEXT] },
            Fact::OthersCan { services: eyes.clone() },
            Fact::NoContactOn { agent: mara.clone(), services: eyes },
        ];
        let remedy = WhyRemedy::Introduce {
            agent: AgentId::new("seer-2222"),
            service: Some(ServiceId::new("eyes")),
            to: mara,
            task: TaskId::new("t-1"),
        };
        let words: Vec<String> =
            chain.iter().map(|fact| fact.sentence(0)).chain(remedy.sentences(" --data home")).collect();
        let expect = "picture.png (artifact:k3v9x2ma) was described to mara-7k2f in request 7
service writer (revision 2) takes text only
eyes can take it
mara-7k2f had no contact on eyes
introduce seer-2222, which is on eyes, to mara-7k2f (in the live view)";
        assert_eq!(words.join("\n"), expect);
    }

    #[test]
    fn who_may_hire_somebody_is_asked_with_a_command() {
        let (agent, task) = (AgentId::new("mara-7k2f"), TaskId::new("t-1"));
        let hire = WhyRemedy::Hire { agent, task, service: ServiceId::new("eyes") };
        let command = "polity send --to mara-7k2f --task t-1 --data home \"…\"";
        assert_eq!(
            hire.sentences(" --data home"),
            [format!("have mara-7k2f hire somebody on eyes: {command}")]
        );
    }

    #[test]
    fn facts_tell_how_long_ago_something_was() {
        let mara = AgentId::new("mara-7k2f");
        let check = |fact: &Fact, now: i64, expect: &str| assert_eq!(fact.sentence(now), expect);
        let failed =
            Fact::TurnFailed { agent: mara.clone(), reason: "server error".to_owned(), at: Some(1_000) };
        check(&failed, 63_000, "a turn of mara-7k2f failed 1 min 2 s ago: server error");
        check(&failed, 1_500, "a turn of mara-7k2f failed: server error");
        let limit = "maxFailedTurns".to_owned();
        let row = Fact::FailedTurns { agent: mara.clone(), count: 3, limit, value: 3 };
        check(&row, 0, "mara-7k2f failed in 3 turns in a row, and limits.maxFailedTurns in app.json is 3");
        let asked = Fact::Unanswered {
            message: MessageId::from_sequence(4),
            from: "root".to_owned(),
            to: mara.clone(),
            since: Some(0),
        };
        check(&asked, 5_000, "mara-7k2f has not answered m000000004 of root, sent 5 s ago");
        let open = Fact::TaskOpen { task: TaskId::new("t-1"), since: 0 };
        check(&open, 120_000, "t-1 has been open for 2 min");
        check(&open, 0, "t-1 is open");
        let does = |doing| Fact::Does { agent: mara.clone(), doing };
        check(&does(Doing::Idle), 0, "mara-7k2f has nothing to do");
        check(
            &does(Doing::Running { task: TaskId::new("t-1"), tools: vec!["bash".to_owned()], since: 0 }),
            3_000,
            "mara-7k2f is running bash, 3 s",
        );
    }
}
