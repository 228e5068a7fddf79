//! Explains what agents do at this moment, and for whom they wait.

use super::{Lasts, MOST, OpenRequest, attempts, last_attempts, paused, released};
use polity_society::id::{AgentId, TaskId};
use polity_view::{About, Awaited, Doing, Entry, Fact, ResumeScope, Why, WhyRemedy};
use std::collections::{HashMap, HashSet};

/// Maximum number of agents that an explanation describes.
pub const MOST_TOLD: usize = 10;

/// An agent at this moment.
#[derive(Clone, Debug)]
pub struct Party {
    pub doing: Doing,
    /// The events that can explain a failure of the agent, oldest first.
    pub before: Vec<Entry>,
}

/// Returns the requests that the explanation of an agent follows to their receivers: the oldest requests for which the
/// agent waits.
pub fn followed(doing: &Doing) -> &[Awaited] {
    match doing {
        Doing::Waiting { requests, .. } => &requests[..requests.len().min(MOST)],
        _ => &[],
    }
}

/// Explains what an agent does, and for whom it waits. Returns `None` if the agent has nothing to do or has ended.
/// `parties` contains the agent, and the agents to which [`followed`] leads from it.
pub fn agent(agent: &AgentId, parties: &HashMap<AgentId, Party>) -> Option<Why> {
    let doing = &parties.get(agent)?.doing;
    if matches!(doing, Doing::Idle | Doing::Ended { .. }) {
        return None;
    }
    let mut telling = Telling::new(parties);
    telling.tell(agent, None);
    let receivers = followed(doing).iter().map(|request| &request.agent);
    receivers.for_each(|receiver| telling.stop(receiver));
    Some(telling.why)
}

/// Explains why a request of a task has no answer. `parties` contains the receiver, and the agents to which
/// [`followed`] leads from it.
pub fn request(open: &OpenRequest, task: &TaskId, parties: &HashMap<AgentId, Party>) -> Why {
    let mut telling = Telling::new(parties);
    telling.request(open.clone(), task);
    telling.stop(&open.to);
    telling.why
}

/// The facts about a task that has not ended.
#[derive(Clone, Debug)]
pub struct OpenTask<'a> {
    pub task: &'a TaskId,
    /// When the task began.
    pub since: i64,
    /// The agents that have something to do in the task, in the order in which to describe them.
    pub agents: &'a [AgentId],
    /// The requests that nobody has answered, oldest first.
    pub open: &'a [OpenRequest],
}

/// Explains the state of a task that has not ended: who works or waits in it, and which requests are open. `parties`
/// contains the agents of the task.
pub fn open_task(open: &OpenTask<'_>, parties: &HashMap<AgentId, Party>) -> Why {
    let mut telling = Telling::new(parties);
    telling.why.chain.push(Fact::TaskOpen { task: open.task.clone(), since: open.since });
    for agent in open.agents {
        telling.tell(agent, Some(open.task));
    }
    for request in open.open.iter().take(MOST) {
        if !telling.names(request) {
            telling.request(request.clone(), open.task);
        }
    }
    telling.why
}

/// An explanation in the making.
struct Telling<'a> {
    parties: &'a HashMap<AgentId, Party>,
    /// The agents that the explanation describes already.
    told: HashSet<AgentId>,
    why: Why,
}

impl<'a> Telling<'a> {
    fn new(parties: &'a HashMap<AgentId, Party>) -> Self {
        Self { parties, told: HashSet::new(), why: Why::default() }
    }

    /// Describes an agent, unless this was done before. `task` is the task of the work that somebody expects from the
    /// agent.
    fn tell(&mut self, agent: &AgentId, task: Option<&TaskId>) {
        let parties = self.parties;
        let Some(Party { doing, before }) = parties.get(agent) else { return };
        if self.told.len() >= MOST_TOLD || !self.told.insert(agent.clone()) {
            return;
        }
        match doing {
            Doing::Paused { .. } => return self.add(paused(agent, Lasts::Still)),
            Doing::Parked { task, reason, .. } => {
                let (task, reason) = (task.clone(), reason.clone());
                self.why.chain.push(Fact::Parked { agent: agent.clone(), task, reason });
                return self.remedy(released(agent));
            }
            _ => self.why.chain.push(Fact::Does { agent: agent.clone(), doing: doing.clone() }),
        }
        match doing {
            Doing::Asking { about: About::Approval(approval), .. } => {
                self.remedy(WhyRemedy::Decide { approval: approval.clone() });
            }
            Doing::Asking { about: About::Question(message), task, .. } => {
                let (message, task) = (message.clone(), task.clone());
                self.remedy(WhyRemedy::Answer { message, agent: agent.clone(), task });
            }
            Doing::Waiting { .. } => {
                for awaited in followed(doing) {
                    let Awaited { agent: to, request: message, task, since } = awaited.clone();
                    let from = agent.as_str().to_owned();
                    self.request(OpenRequest { message, from, to, since }, &task);
                }
            }
            Doing::Idle => {
                if let Some(task) = task {
                    self.remedy(WhyRemedy::Write { agent: agent.clone(), task: task.clone() });
                }
            }
            Doing::Thinking { .. }
            | Doing::Queued { .. }
            | Doing::Running { .. }
            | Doing::Retrying { .. }
            | Doing::Ready { .. } => self.add(attempts(&last_attempts(before))),
            Doing::Parked { .. } | Doing::Paused { .. } | Doing::Ended { .. } => {}
        }
    }

    /// Adds a request without an answer, and describes its receiver.
    fn request(&mut self, open: OpenRequest, task: &TaskId) {
        let (message, from, to) = (open.message.clone(), AgentId::new(open.from.clone()), open.to.clone());
        if !self.names(&open) {
            self.why.chain.push(open.fact());
        }
        if to.is_user() {
            self.remedy(WhyRemedy::Answer { message, agent: from, task: task.clone() });
        } else {
            self.tell(&to, Some(task));
        }
    }

    /// Adds the remedy that stops an agent for which somebody waits. Root works for all tasks, so it is not stopped.
    fn stop(&mut self, agent: &AgentId) {
        let has_ended =
            self.parties.get(agent).is_none_or(|party| matches!(party.doing, Doing::Ended { .. }));
        if !agent.is_user() && !agent.is_root() && !has_ended {
            self.remedy(WhyRemedy::Stop { agent: agent.clone() });
        }
    }

    /// Returns whether the explanation names a request already.
    fn names(&self, request: &OpenRequest) -> bool {
        let is_named = |fact: &Fact| match fact {
            Fact::Unanswered { message, .. } => *message == request.message,
            Fact::Does { doing: Doing::Asking { about: About::Question(message), .. }, .. } => {
                *message == request.message
            }
            _ => false,
        };
        self.why.chain.iter().any(is_named)
    }

    fn add(&mut self, why: Why) {
        self.why.chain.extend(why.chain);
        why.remedies.into_iter().for_each(|remedy| self.remedy(remedy));
    }

    /// Adds a remedy, unless the explanation has it already. If root and all its descendants are resumed, no other agent
    /// needs to be resumed.
    fn remedy(&mut self, remedy: WhyRemedy) {
        let remedies = &mut self.why.remedies;
        if remedies.contains(&remedy) || resumes(&remedy) && remedies.iter().any(resumes_all) {
            return;
        }
        if resumes_all(&remedy) {
            remedies.retain(|known| !resumes(known));
        }
        remedies.push(remedy);
    }
}

fn resumes(remedy: &WhyRemedy) -> bool {
    matches!(remedy, WhyRemedy::Resume { .. })
}

fn resumes_all(remedy: &WhyRemedy) -> bool {
    matches!(remedy, WhyRemedy::Resume { agent, scope: ResumeScope::Subtree } if agent.is_root())
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::{ApprovalId, MessageId, ServiceId};

    fn task() -> TaskId {
        TaskId::new("t-1")
    }

    fn waiting(requests: &[(i64, &str)]) -> Doing {
        let awaited = |(number, agent): &(i64, &str)| Awaited {
            agent: AgentId::new(*agent),
            request: MessageId::from_sequence(*number),
            task: task(),
            since: 40_000,
        };
        Doing::Waiting { requests: requests.iter().map(awaited).collect(), since: 40_000 }
    }

    fn parties(all: &[(&str, Doing)]) -> HashMap<AgentId, Party> {
        let party = |(agent, doing): &(&str, Doing)| {
            (AgentId::new(*agent), Party { doing: doing.clone(), before: Vec::new() })
        };
        all.iter().map(party).collect()
    }

    fn words(why: &Why) -> String {
        let facts = why.chain.iter().map(|fact| fact.sentence(100_000));
        let remedies = why
            .remedies
            .iter()
            .flat_map(|remedy| remedy.sentences(""))
            .map(|sentence| format!("- {sentence}"));
        facts.chain(remedies).collect::<Vec<_>>().join("\n")
    }

    fn explained(id: &str, all: &[(&str, Doing)]) -> String {
        words(&agent(&AgentId::new(id), &parties(all)).unwrap())
    }

    fn running() -> Doing {
        Doing::Running { task: task(), tools: vec!["bash".to_owned()], since: 88_000 }
    }

    #[test]
    fn an_agent_waits_for_another_agent_that_works() {
        let all = [("root", waiting(&[(4, "mara")])), ("mara", running())];
        insta::assert_snapshot!(explained("root", &all), @r"
        root is waiting for mara (m000000004), 1 min
        mara has not answered m000000004 of root, sent 1 min ago
        mara is running bash, 12 s
        - stop the work of mara, so that nobody waits for it: polity stop mara
        ");
    }

    #[test]
    fn the_chain_of_agents_that_wait_leads_to_the_one_that_must_be_helped() {
        let all = [
            ("root", waiting(&[(4, "mara"), (5, "theo")])),
            ("mara", waiting(&[(6, "ida")])),
            ("ida", Doing::Paused { since: 0 }),
            ("theo", Doing::Parked { task: task(), reason: "no key".to_owned(), since: 0 }),
        ];
        insta::assert_snapshot!(explained("root", &all), @r"
        root is waiting for mara (m000000004), theo (m000000005), 1 min
        mara has not answered m000000004 of root, sent 1 min ago
        mara is waiting for ida (m000000006), 1 min
        ida has not answered m000000006 of mara, sent 1 min ago
        you paused ida
        theo has not answered m000000005 of root, sent 1 min ago
        theo is parked in t-1: no key
        - go on: polity resume ida
        - go on: polity resume theo --alone
        - stop the work of mara, so that nobody waits for it: polity stop mara
        - stop the work of theo, so that nobody waits for it: polity stop theo
        ");
    }

    #[test]
    fn one_command_resumes_everybody() {
        let paused = || Doing::Paused { since: 0 };
        let all = parties(&[("mara", paused()), ("root", paused()), ("theo", paused())]);
        let agents = ["mara", "root", "theo"].map(AgentId::new);
        let facts = OpenTask { task: &task(), since: 0, agents: &agents, open: &[] };
        insta::assert_snapshot!(words(&open_task(&facts, &all)), @r"
        t-1 has been open for 1 min 40 s
        you paused mara
        you paused root
        you paused theo
        - go on: polity resume root
        ");
    }

    #[test]
    fn agents_that_wait_for_each_other_are_told_once() {
        let all = [("mara", waiting(&[(4, "theo")])), ("theo", waiting(&[(5, "mara")]))];
        insta::assert_snapshot!(explained("mara", &all), @r"
        mara is waiting for theo (m000000004), 1 min
        theo has not answered m000000004 of mara, sent 1 min ago
        theo is waiting for mara (m000000005), 1 min
        mara has not answered m000000005 of theo, sent 1 min ago
        - stop the work of theo, so that nobody waits for it: polity stop theo
        ");
    }

    #[test]
    fn an_agent_that_asks_the_person_names_the_question() {
        let asking = |about| Doing::Asking { task: task(), about, since: 90_000 };
        let question = asking(About::Question(MessageId::from_sequence(4)));
        insta::assert_snapshot!(explained("mara", &[("mara", question)]), @r#"
        mara is asking you, 10 s
        - answer m000000004: polity send --to mara --task t-1 "…"
        "#);
        let call = asking(About::Approval(ApprovalId::from_number(3)));
        insta::assert_snapshot!(explained("mara", &[("mara", call)]), @r"
        mara is asking you, 10 s
        - allow the call: polity approve q3
        - refuse the call: polity deny q3
        ");
    }

    #[test]
    fn an_agent_with_nothing_to_do_is_not_explained() {
        for doing in [Doing::Idle, Doing::Ended { since: 0 }] {
            assert_eq!(agent(&AgentId::new("mara"), &parties(&[("mara", doing)])), None);
        }
        assert_eq!(agent(&AgentId::new("mara"), &HashMap::new()), None);
    }

    fn asked(number: i64, from: &str, to: &str) -> OpenRequest {
        OpenRequest {
            message: MessageId::from_sequence(number),
            from: from.to_owned(),
            to: AgentId::new(to),
            since: 40_000,
        }
    }

    #[test]
    fn an_open_request_tells_what_its_receiver_does() {
        let open = asked(4, "root", "mara");
        insta::assert_snapshot!(words(&request(&open, &task(), &parties(&[("mara", Doing::Idle)]))), @r#"
        mara has not answered m000000004 of root, sent 1 min ago
        mara has nothing to do
        - write again: polity send --to mara --task t-1 "…"
        - stop the work of mara, so that nobody waits for it: polity stop mara
        "#);
        let to_person = asked(4, "mara", "user");
        insta::assert_snapshot!(words(&request(&to_person, &task(), &HashMap::new())), @r#"
        you have not answered m000000004 of mara, sent 1 min ago
        - answer m000000004: polity send --to mara --task t-1 "…"
        "#);
    }

    #[test]
    fn a_request_between_agents_that_wait_for_each_other_is_told_once() {
        let all = parties(&[("mara", waiting(&[(5, "theo")])), ("theo", waiting(&[(4, "mara")]))]);
        insta::assert_snapshot!(words(&request(&asked(4, "theo", "mara"), &task(), &all)), @r"
        mara has not answered m000000004 of theo, sent 1 min ago
        mara is waiting for theo (m000000005), 1 min
        theo has not answered m000000005 of mara, sent 1 min ago
        theo is waiting for mara (m000000004), 1 min
        - stop the work of mara, so that nobody waits for it: polity stop mara
        ");
    }

    #[test]
    fn an_open_task_tells_who_works_and_what_is_open() {
        let thinking = Doing::Thinking {
            task: task(),
            service: ServiceId::new("one"),
            attempt: 1,
            since: 95_000,
            first_byte: None,
            tokens: 7,
            silence: None,
        };
        let all = parties(&[
            ("root", waiting(&[(4, "mara")])),
            ("mara", running()),
            ("theo", thinking),
            ("ida", Doing::Idle),
        ]);
        let agents = ["root", "mara", "theo"].map(AgentId::new);
        let requests = [asked(3, "user", "root"), asked(4, "root", "mara"), asked(5, "theo", "ida")];
        let facts = OpenTask { task: &task(), since: 0, agents: &agents, open: &requests };
        insta::assert_snapshot!(words(&open_task(&facts, &all)), @r#"
        t-1 has been open for 1 min 40 s
        root is waiting for mara (m000000004), 1 min
        mara has not answered m000000004 of root, sent 1 min ago
        mara is running bash, 12 s
        theo is thinking at one, 5 s, 7 tokens
        root has not answered m000000003 of user, sent 1 min ago
        ida has not answered m000000005 of theo, sent 1 min ago
        ida has nothing to do
        - write again: polity send --to ida --task t-1 "…"
        "#);
    }
}
