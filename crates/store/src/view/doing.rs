//! Decides what an agent is doing, from the rows of the database and from what the running process knows.

use super::Builder;
use crate::Error;
use crate::messages::requests::awaited;
use polity_society::id::{AgentId, ApprovalId, MessageId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{About, AgentState, Awaited, Doing, MAX_AWAITED};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};

/// What the rows of the database say about an agent. The first condition that is true decides. `works` means that the
/// agent has work in a task and can go on with it: in this task, it is not parked and asks about no call. Only the
/// running process knows what exactly the agent does at this moment. The person has no work, but may have unread
/// messages.
///
/// The function [`doing`] makes the same decision from [`Facts`]. A filter needs the decision inside the statement, so
/// the decision is repeated here.
pub(super) const BASE: &str =
    "CASE WHEN ended_at IS NOT NULL THEN 'ended' WHEN paused_at IS NOT NULL THEN 'paused'
    WHEN works THEN 'work' WHEN parked THEN 'parked' WHEN asking OR questions THEN 'asking'
    WHEN waits THEN 'waiting' ELSE 'idle' END";
/// The most important moment of each agent, of those in tasks in which the agent can go on with its work. The parameter
/// has the moments as [`Moments::ranked`] writes them. SQLite takes `state` from the row that has the lowest `place`.
const AT_WORK: &str = "SELECT agent, state, min(place) FROM
    (SELECT value ->> 0 AS agent, value ->> 1 AS task, value ->> 2 AS state, key AS place FROM json_each(?)) m
    WHERE (EXISTS (SELECT 1 FROM turns t INDEXED BY turns_open_of
            WHERE t.agent = m.agent AND t.task = m.task AND t.state = 'open')
        OR EXISTS (SELECT 1 FROM messages q INDEXED BY messages_waiting
            WHERE q.receiver = m.agent AND q.task = m.task AND q.state = 'queued'))
    AND NOT EXISTS (SELECT 1 FROM holds h WHERE h.agent = m.agent AND h.task = m.task)
    AND NOT EXISTS (SELECT 1 FROM approvals p INDEXED BY approvals_of_agent
        WHERE p.agent = m.agent AND p.task = m.task AND p.state = 'open') GROUP BY agent";
const HELD: &str = "SELECT h.agent, h.task, h.reason, h.created_at AS since FROM json_each(?1) page
    CROSS JOIN holds h ON h.agent = page.value WHERE h.task = coalesce(?2, h.task) ORDER BY h.created_at, h.task";
const ASKED: &str = "SELECT a.agent, a.task, a.seq, a.asked_at AS since FROM json_each(?1) page
    CROSS JOIN approvals a INDEXED BY approvals_of_agent ON a.agent = page.value
    WHERE a.state = 'open' AND a.task = coalesce(?2, a.task) ORDER BY a.seq";
const TURNING: &str = "SELECT t.agent, t.task, t.created_at AS since FROM json_each(?1) page
    CROSS JOIN turns t INDEXED BY turns_open_of ON t.agent = page.value
    WHERE t.state = 'open' AND t.task = coalesce(?2, t.task) ORDER BY t.id";
const UNREAD: &str =
    "SELECT m.receiver AS agent, m.task, m.created_at AS since, min(m.seq) FROM json_each(?1) page
    CROSS JOIN messages m INDEXED BY messages_waiting ON m.receiver = page.value
    WHERE m.state = 'queued' AND m.receiver <> 'user' AND m.task = coalesce(?2, m.task)
    GROUP BY m.receiver, m.task";
const AWAITED: &str = concat!(
    "SELECT m.sender AS agent, m.receiver, m.id, m.task, m.created_at AS since FROM json_each(?1) page
    CROSS JOIN messages m INDEXED BY messages_asked ON m.sender = page.value
    WHERE ",
    awaited!(),
    " AND m.task = coalesce(?2, m.task) ORDER BY m.seq"
);

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[AT_WORK, HELD, ASKED, TURNING, UNREAD, AWAITED];

/// What only the process that runs the society knows: what each agent with work is doing at this moment, in each of its
/// tasks. The moments of an agent are in the order of their [`rank`].
#[derive(Clone, Debug, Default)]
pub struct Moments(HashMap<AgentId, Vec<Doing>>);

impl Moments {
    /// Returns what the process knows: each agent with what it is doing in one of its tasks.
    pub fn all(&self) -> impl Iterator<Item = (&AgentId, &Doing)> {
        self.0.iter().flat_map(|(agent, moments)| moments.iter().map(move |moment| (agent, moment)))
    }

    /// Returns what an agent is doing in each of its tasks, as far as the process knows it. What matters most to a
    /// person who watches comes first.
    pub fn of(&self, agent: &AgentId) -> &[Doing] {
        self.0.get(agent).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns what an agent is doing in a task, if the process knows it.
    pub fn in_task(&self, agent: &AgentId, task: &TaskId) -> Option<&Doing> {
        self.of(agent).iter().find(|moment| moment.task() == Some(task))
    }

    /// Returns the moments as a JSON array of agent, task and state, for [`AT_WORK`].
    fn ranked(&self) -> String {
        let moments: Vec<(&AgentId, Option<&TaskId>, &str)> =
            self.all().map(|(agent, moment)| (agent, moment.task(), moment.state().as_str())).collect();
        json!(moments).to_string()
    }

    /// Restricts a statement to the agents in this state. The column `base` is [`BASE`].
    pub(super) fn filter(&self, query: &mut Builder, state: AgentState) {
        match state {
            // An agent with work is `ready` if the process does not know what the agent is doing.
            AgentState::Ready => {
                query.push(" AND base = 'work' AND id NOT IN (SELECT agent FROM (").push(AT_WORK);
                query.bind(self.ranked());
                query.push("))");
            }
            AgentState::Thinking | AgentState::Running | AgentState::Retrying | AgentState::Queued => {
                query.push(" AND base = 'work' AND id IN (SELECT agent FROM (").push(AT_WORK);
                query.bind(self.ranked());
                query.push(") WHERE state = ").push_bind(state.as_str()).push(")");
            }
            AgentState::Asking
            | AgentState::Waiting
            | AgentState::Parked
            | AgentState::Paused
            | AgentState::Idle
            | AgentState::Ended => {
                query.push(" AND base = ").push_bind(state.as_str());
            }
        }
    }
}

impl FromIterator<(AgentId, Doing)> for Moments {
    fn from_iter<I: IntoIterator<Item = (AgentId, Doing)>>(moments: I) -> Self {
        let mut known: HashMap<AgentId, Vec<Doing>> = HashMap::new();
        for (agent, moment) in moments.into_iter().filter(|(_, moment)| is_known_to_the_process(moment)) {
            known.entry(agent).or_default().push(moment);
        }
        for moments in known.values_mut() {
            moments.sort_by_cached_key(rank);
        }
        Self(known)
    }
}

/// Returns whether `doing` is something that only the running process knows.
fn is_known_to_the_process(doing: &Doing) -> bool {
    doing.state().is_at_work() && doing.state() != AgentState::Ready
}

/// Returns the rank of a moment. The lowest rank matters most to a person who watches. So an agent whose request is at a
/// server is always shown as thinking, whatever it does in its other tasks.
fn rank(moment: &Doing) -> (u8, i64, Option<TaskId>) {
    let first = match moment.state() {
        AgentState::Thinking => 0,
        AgentState::Running => 1,
        AgentState::Retrying => 2,
        AgentState::Queued => 3,
        AgentState::Asking
        | AgentState::Ready
        | AgentState::Waiting
        | AgentState::Parked
        | AgentState::Paused
        | AgentState::Idle
        | AgentState::Ended => 4,
    };
    (first, moment.since().unwrap_or(i64::MAX), moment.task().cloned())
}

/// What the rows say about one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) ended: Option<i64>,
    pub(super) paused: Option<i64>,
    /// The tasks in which the agent is parked, the reasons, and since when; oldest first.
    pub(super) parked: Vec<(TaskId, String, i64)>,
    /// The tasks in which the agent asks whether it may make a call, and since when; oldest first.
    pub(super) approvals: Vec<(TaskId, ApprovalId, i64)>,
    /// The tasks in which the agent has an open turn or unread messages, and since when. Each task is there once.
    pub(super) work: Vec<(TaskId, i64)>,
    /// The agent's requests without an answer, oldest first.
    pub(super) awaited: Vec<Awaited>,
}

impl Facts {
    /// Returns the parties whose answers the agent waits for.
    pub(super) fn waits_for(&self) -> Vec<AgentId> {
        let parties: BTreeSet<&AgentId> = self.awaited.iter().map(|awaited| &awaited.agent).collect();
        parties.into_iter().cloned().collect()
    }

    /// Returns the tasks in which the agent has work and can go on with it, and since when. The agent does nothing in a
    /// task in which it is parked, or in which it asks whether it may make a call.
    fn open_work(&self) -> impl Iterator<Item = &(TaskId, i64)> {
        self.work.iter().filter(|(task, _)| {
            self.parked.iter().all(|(held, ..)| held != task)
                && self.approvals.iter().all(|(asking, ..)| asking != task)
        })
    }
}

/// Decides what an agent is doing. The rows (`facts`) decide in which tasks the agent has work and can go on with it.
/// `moments` are what the running process last saw the agent do, the most important first. A moment in any other task is
/// ignored: the process may still have an old value for an agent that was stopped.
///
/// An agent may have several tasks. What it does in one of them counts more than that it is parked in another, or asks
/// the person there. So an agent whose request is at a server is always `thinking`, and what does not go on is shown as
/// stuck.
pub(super) fn doing(facts: Facts, moments: &[Doing]) -> Doing {
    if let Some(since) = facts.ended {
        return Doing::Ended { since };
    }
    if let Some(since) = facts.paused {
        return Doing::Paused { since };
    }
    if let Some(doing) = at_work(&facts, moments) {
        return doing;
    }
    let Facts { parked, approvals, awaited, .. } = facts;
    if let Some((task, reason, since)) = parked.into_iter().next() {
        return Doing::Parked { task, reason, since };
    }
    if let Some((task, approval, since)) = approvals.into_iter().next() {
        return Doing::Asking { task, about: About::Approval(approval), since };
    }
    if let Some(Awaited { request, task, since, .. }) =
        awaited.iter().find(|awaited| awaited.agent.is_user()).cloned()
    {
        return Doing::Asking { task, about: About::Question(request), since };
    }
    match awaited.first().map(|oldest| oldest.since) {
        Some(since) => Doing::Waiting { requests: awaited.into_iter().take(MAX_AWAITED).collect(), since },
        None => Doing::Idle,
    }
}

/// Returns what an agent is doing in a task in which it can go on; `None` if there is no such task.
fn at_work(facts: &Facts, moments: &[Doing]) -> Option<Doing> {
    let goes_on = |moment: &&Doing| facts.open_work().any(|(task, _)| moment.task() == Some(task));
    let ready =
        || facts.open_work().next().map(|(task, since)| Doing::Ready { task: task.clone(), since: *since });
    moments.iter().find(goes_on).cloned().or_else(ready)
}

/// Reads the facts about the agents of a page from the database, for one task or for all tasks. Runs five statements for
/// the whole page, not for each agent.
/// `ended` and `paused` stay empty; the caller has read them with the agent.
pub(super) async fn facts(
    connection: &mut Connection,
    ids: &str,
    task: Option<&TaskId>,
) -> Result<HashMap<AgentId, Facts>, Error> {
    let mut facts: HashMap<AgentId, Facts> = HashMap::new();
    let id = |row: &Row| AgentId::new(row.get::<String, _>("agent"));
    let of = |row: &Row| TaskId::new(row.get::<String, _>("task"));
    for row in read(connection, HELD, ids, task).await? {
        let parked = (of(&row), row.get("reason"), row.get("since"));
        facts.entry(id(&row)).or_default().parked.push(parked);
    }
    for row in read(connection, ASKED, ids, task).await? {
        let asked = (of(&row), ApprovalId::from_number(row.get("seq")), row.get("since"));
        facts.entry(id(&row)).or_default().approvals.push(asked);
    }
    for statement in [TURNING, UNREAD] {
        for row in read(connection, statement, ids, task).await? {
            let (task, work) = (of(&row), &mut facts.entry(id(&row)).or_default().work);
            if work.iter().all(|(known, _)| *known != task) {
                work.push((task, row.get("since")));
            }
        }
    }
    for row in read(connection, AWAITED, ids, task).await? {
        let awaited = Awaited {
            agent: AgentId::new(row.get::<String, _>("receiver")),
            request: MessageId::new(row.get::<String, _>("id")),
            task: of(&row),
            since: row.get("since"),
        };
        facts.entry(id(&row)).or_default().awaited.push(awaited);
    }
    Ok(facts)
}

async fn read(
    connection: &mut Connection,
    statement: &'static str,
    ids: &str,
    task: Option<&TaskId>,
) -> Result<Vec<Row>, Error> {
    Ok(polity_sql::query(statement).bind(ids).bind(task.map(TaskId::as_str)).fetch_all(connection).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::id::ServiceId;
    use proptest::prelude::*;

    const TASKS: [&str; 3] = ["t-1", "t-2", "t-3"];

    fn awaited(agent: &str, since: i64) -> Awaited {
        let request = MessageId::new(format!("m-{since}"));
        Awaited { agent: AgentId::new(agent), request, task: TaskId::new("t-1"), since }
    }

    fn thinking(task: &str) -> Doing {
        Doing::Thinking {
            task: TaskId::new(task),
            service: ServiceId::new("local"),
            attempt: 1,
            since: 5,
            first_byte: None,
            tokens: 0,
            silence: None,
        }
    }

    fn queued(task: &str) -> Doing {
        let (task, service) = (TaskId::new(task), ServiceId::new("local"));
        Doing::Queued { task, service, place: Some(1), since: 5, closed_until: None }
    }

    fn running(task: &str) -> Doing {
        Doing::Running { task: TaskId::new(task), tools: vec!["bash".to_owned()], since: 5 }
    }

    /// Decides what root is doing that has these moments, in any order.
    fn doing_of(facts: Facts, moments: &[Doing]) -> Doing {
        let moments: Moments = moments.iter().map(|moment| (AgentId::root(), moment.clone())).collect();
        doing(facts, moments.of(&AgentId::root()))
    }

    fn moments() -> impl Strategy<Value = Vec<Doing>> {
        let moment = (prop::sample::select(&TASKS[..]), 0..4).prop_map(|(task, kind)| match kind {
            0 => queued(task),
            1 => running(task),
            2 => thinking(task),
            // The rows tell whether an agent is idle, so the function `doing` must ignore this value.
            _ => Doing::Idle,
        });
        prop::collection::vec(moment, 0..4)
    }

    fn some<T: Clone + std::fmt::Debug + 'static>(value: T) -> impl Strategy<Value = Option<T>> {
        prop::option::of(Just(value))
    }

    fn tasks() -> impl Strategy<Value = Vec<TaskId>> {
        prop::sample::subsequence(&TASKS[..], 0..=TASKS.len())
            .prop_map(|tasks| tasks.into_iter().map(TaskId::new).collect())
    }

    fn any_facts() -> impl Strategy<Value = Facts> {
        let parties = prop::collection::vec(prop::sample::select(vec!["user", "a", "b"]), 0..30);
        (some(1), some(2), tasks(), tasks(), tasks(), parties).prop_map(
            |(ended, paused, parked, asking, work, parties)| Facts {
                ended,
                paused,
                parked: parked.into_iter().map(|task| (task, "it failed".to_owned(), 3)).collect(),
                approvals: asking.into_iter().map(|task| (task, ApprovalId::from_number(1), 4)).collect(),
                work: work.into_iter().map(|task| (task, 5)).collect(),
                awaited: (6..).zip(parties).map(|(since, agent)| awaited(agent, since)).collect(),
            },
        )
    }

    /// Returns the tasks in which the agent can go on with its work, from the definition of this.
    fn free(facts: &Facts) -> Vec<TaskId> {
        let held = |task: &TaskId| {
            facts.parked.iter().any(|(other, ..)| other == task)
                || facts.approvals.iter().any(|(other, ..)| other == task)
        };
        if facts.ended.is_some() || facts.paused.is_some() {
            return Vec::new();
        }
        facts.work.iter().map(|(task, _)| task.clone()).filter(|task| !held(task)).collect()
    }

    #[test]
    fn what_goes_on_in_one_task_counts_more_than_a_question_in_another() {
        let task = TaskId::new;
        let work = || vec![(task("t-1"), 1), (task("t-2"), 2)];
        let asks = || Facts {
            approvals: vec![(task("t-1"), ApprovalId::from_number(1), 4)],
            work: work(),
            ..Facts::default()
        };
        let parked = Facts {
            parked: vec![(task("t-1"), "it failed".to_owned(), 3)],
            work: work(),
            ..Facts::default()
        };
        let both = [queued("t-2"), thinking("t-1")];
        assert_eq!(doing_of(asks(), &[thinking("t-2")]), thinking("t-2"));
        assert_eq!(doing_of(parked, &[thinking("t-2")]), thinking("t-2"));
        // The moment in `t-1` is old: root asks there.
        assert_eq!(doing_of(asks(), &both), queued("t-2"));
        assert_eq!(doing_of(asks(), &[]), Doing::Ready { task: task("t-2"), since: 2 });
        // In both tasks, root can go on. A request at a server counts more than a place in a queue.
        assert_eq!(doing_of(Facts { work: work(), ..Facts::default() }, &both), thinking("t-1"));
        let only = Facts { work: vec![(task("t-1"), 1)], ..asks() };
        assert_eq!(doing_of(only, &[]).state(), AgentState::Asking);
    }

    proptest! {
        /// The rows decide in which tasks an agent has work and can go on with it. The moments (what the running process
        /// knows) only tell what the agent does for this work.
        #[test]
        fn an_agent_is_at_work_exactly_if_it_can_go_on_in_some_task(facts in any_facts(), moments in moments()) {
            let free = free(&facts);
            let (without, with) = (doing_of(facts.clone(), &[]), doing_of(facts, &moments));
            prop_assert_eq!(without.state() == AgentState::Ready, !free.is_empty());
            let counts: Vec<&Doing> =
                moments.iter().filter(|moment| moment.task().is_some_and(|task| free.contains(task))).collect();
            if counts.is_empty() {
                prop_assert_eq!(with, without);
            } else {
                prop_assert!(counts.contains(&&with));
                let thinks = counts.iter().any(|moment| moment.state() == AgentState::Thinking);
                prop_assert_eq!(with.state() == AgentState::Thinking, thinks);
            }
        }

        #[test]
        fn the_first_fact_that_is_there_decides(facts in any_facts()) {
            let asks_person = facts.awaited.iter().any(|awaited| awaited.agent.is_user());
            let expect = if facts.ended.is_some() {
                AgentState::Ended
            } else if facts.paused.is_some() {
                AgentState::Paused
            } else if !free(&facts).is_empty() {
                AgentState::Ready
            } else if !facts.parked.is_empty() {
                AgentState::Parked
            } else if !facts.approvals.is_empty() || asks_person {
                AgentState::Asking
            } else if !facts.awaited.is_empty() {
                AgentState::Waiting
            } else {
                AgentState::Idle
            };
            let oldest = facts.awaited.first().map(|awaited| awaited.since);
            let doing = doing(facts, &[]);
            prop_assert_eq!(doing.state(), expect);
            if let Doing::Waiting { requests, since } = doing {
                prop_assert!(requests.len() <= MAX_AWAITED);
                prop_assert_eq!(Some(since), oldest);
            }
        }
    }
}
