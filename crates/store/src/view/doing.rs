//! Decides what an agent is doing, from the rows of the database and from what the running process knows.

use super::Builder;
use crate::Error;
use polity_society::id::{AgentId, ApprovalId, MessageId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{About, AgentState, Awaited, Doing, MAX_AWAITED};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};

/// What the rows of the database say about an agent. The first condition that is true decides. `work` means that the
/// agent has something to do. Only the running process knows what exactly the agent does at this moment. The person
/// has no work, but may have unread messages.
///
/// The function [`doing`] makes the same decision from [`Facts`]. A filter needs the decision inside the statement, so
/// the decision is repeated here.
pub(super) const BASE: &str =
    "CASE WHEN ended_at IS NOT NULL THEN 'ended' WHEN paused_at IS NOT NULL THEN 'paused'
    WHEN parked THEN 'parked' WHEN asking THEN 'asking' WHEN turning OR (unread > 0 AND id <> 'user') THEN 'work'
    WHEN questions THEN 'asking' WHEN waits THEN 'waiting' ELSE 'idle' END";
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
    WHERE m.state = 'queued' AND m.receiver <> 'user' AND m.task = coalesce(?2, m.task) GROUP BY m.receiver";
const AWAITED: &str =
    "SELECT m.sender AS agent, m.receiver, m.id, m.task, m.created_at AS since FROM json_each(?1) page
    CROSS JOIN messages m INDEXED BY messages_asked ON m.sender = page.value
    WHERE m.expects = 'answer' AND m.answered_by IS NULL AND m.receiver <> m.sender
    AND m.state IN ('delayed', 'queued', 'in_turn', 'done') AND m.task = coalesce(?2, m.task) ORDER BY m.seq";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[HELD, ASKED, TURNING, UNREAD, AWAITED];

/// What only the process that runs the society knows: what each agent with work is doing at this moment.
#[derive(Clone, Debug, Default)]
pub struct Moments(HashMap<AgentId, Doing>);

impl Moments {
    /// Returns what the process knows, by agent.
    pub fn all(&self) -> impl Iterator<Item = (&AgentId, &Doing)> {
        self.0.iter()
    }

    /// Returns what an agent is doing, if the process knows it.
    pub fn of(&self, agent: &AgentId) -> Option<&Doing> {
        self.0.get(agent)
    }

    /// Restricts a statement to the agents in this state. The column `base` is [`BASE`].
    pub(super) fn filter(&self, query: &mut Builder, state: AgentState) {
        let ids = |wanted: Option<AgentState>| {
            let is_wanted = |doing: &Doing| wanted.is_none_or(|wanted| wanted == doing.state());
            let ids = self.0.iter().filter(|(_, doing)| is_wanted(doing)).map(|(agent, _)| agent);
            json!(ids.collect::<Vec<_>>()).to_string()
        };
        match state {
            // An agent with work is `ready` if the process does not know what the agent is doing.
            AgentState::Ready => {
                query.push(" AND base = 'work' AND id NOT IN (SELECT value FROM json_each(");
                query.push_bind(ids(None)).push("))");
            }
            AgentState::Thinking | AgentState::Running | AgentState::Retrying | AgentState::Queued => {
                query.push(" AND base = 'work' AND id IN (SELECT value FROM json_each(");
                query.push_bind(ids(Some(state))).push("))");
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
        Self(moments.into_iter().filter(|(_, doing)| is_known_to_the_process(doing)).collect())
    }
}

/// Returns whether `doing` is something that only the running process knows.
fn is_known_to_the_process(doing: &Doing) -> bool {
    doing.state().is_at_work() && doing.state() != AgentState::Ready
}

/// What the rows say about one agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) ended: Option<i64>,
    pub(super) paused: Option<i64>,
    /// The task in which the agent is parked, the reason, and since when.
    pub(super) parked: Option<(TaskId, String, i64)>,
    /// The task in which the agent asks whether it may make a call, and since when.
    pub(super) approval: Option<(TaskId, ApprovalId, i64)>,
    /// The task in which the agent has an open turn or unread messages, and since when.
    pub(super) work: Option<(TaskId, i64)>,
    /// The agent's requests without an answer, oldest first.
    pub(super) awaited: Vec<Awaited>,
}

impl Facts {
    /// Returns the parties whose answers the agent waits for.
    pub(super) fn waits_for(&self) -> Vec<AgentId> {
        let parties: BTreeSet<&AgentId> = self.awaited.iter().map(|awaited| &awaited.agent).collect();
        parties.into_iter().cloned().collect()
    }
}

/// Decides what an agent is doing. The rows (`facts`) decide whether the agent has work and may go on with it. `moment`
/// is what the running process last saw the agent do. If the agent may not go on, `moment` is ignored: the process may
/// still have an old value for an agent that was stopped.
pub(super) fn doing(facts: Facts, moment: Option<&Doing>) -> Doing {
    let Facts { ended, paused, parked, approval, work, awaited } = facts;
    if let Some(since) = ended {
        return Doing::Ended { since };
    }
    if let Some(since) = paused {
        return Doing::Paused { since };
    }
    if let Some((task, reason, since)) = parked {
        return Doing::Parked { task, reason, since };
    }
    if let Some((task, approval, since)) = approval {
        return Doing::Asking { task, about: About::Approval(approval), since };
    }
    if let Some((task, since)) = work {
        return moment
            .filter(|moment| is_known_to_the_process(moment))
            .cloned()
            .unwrap_or(Doing::Ready { task, since });
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
        facts.entry(id(&row)).or_default().parked.get_or_insert(parked);
    }
    for row in read(connection, ASKED, ids, task).await? {
        let asked = (of(&row), ApprovalId::from_number(row.get("seq")), row.get("since"));
        facts.entry(id(&row)).or_default().approval.get_or_insert(asked);
    }
    for statement in [TURNING, UNREAD] {
        for row in read(connection, statement, ids, task).await? {
            facts.entry(id(&row)).or_default().work.get_or_insert((of(&row), row.get("since")));
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

    fn task() -> TaskId {
        TaskId::new("t-1")
    }

    fn awaited(agent: &str, since: i64) -> Awaited {
        let request = MessageId::new(format!("m-{since}"));
        Awaited { agent: AgentId::new(agent), request, task: task(), since }
    }

    fn moments() -> impl Strategy<Value = Option<Doing>> {
        let service = || ServiceId::new("local");
        let queued =
            Doing::Queued { task: task(), service: service(), place: Some(1), since: 5, closed_until: None };
        let running = Doing::Running { task: task(), tools: vec!["bash".to_owned()], since: 5 };
        let thinking = Doing::Thinking {
            task: task(),
            service: service(),
            attempt: 1,
            since: 5,
            first_byte: None,
            tokens: 0,
            silence: None,
        };
        // The rows tell whether an agent is idle, so the function `doing` must ignore the last value, `Doing::Idle`.
        let all = vec![None, Some(queued), Some(running), Some(thinking), Some(Doing::Idle)];
        prop::sample::select(all)
    }

    fn some<T: Clone + std::fmt::Debug + 'static>(value: T) -> impl Strategy<Value = Option<T>> {
        prop::option::of(Just(value))
    }

    fn any_facts() -> impl Strategy<Value = Facts> {
        let parked = some((task(), "it failed".to_owned(), 3));
        let approval = some((task(), ApprovalId::from_number(1), 4));
        let parties = prop::collection::vec(prop::sample::select(vec!["user", "a", "b"]), 0..30);
        (some(1), some(2), parked, approval, some((task(), 5)), parties).prop_map(
            |(ended, paused, parked, approval, work, parties)| {
                let awaited = (6..).zip(parties).map(|(since, agent)| awaited(agent, since)).collect();
                Facts { ended, paused, parked, approval, work, awaited }
            },
        )
    }

    proptest! {
        /// The rows decide whether an agent has work and may go on with it. A moment (what the running process knows)
        /// only tells what the agent does for this work.
        #[test]
        fn a_moment_counts_exactly_if_the_rows_let_the_agent_work(facts in any_facts(), moment in moments()) {
            let held = facts.ended.is_some() || facts.paused.is_some() || facts.parked.is_some() || facts.approval.is_some();
            let works = facts.work.is_some() && !held;
            let without = doing(facts.clone(), None);
            let with = doing(facts.clone(), moment.as_ref());
            prop_assert_eq!(without.state() == AgentState::Ready, works);
            prop_assert!(works || with == without);
            match moment.filter(is_known_to_the_process) {
                Some(moment) if works => prop_assert_eq!(with, moment),
                Some(_) | None => prop_assert_eq!(with, without),
            }
        }

        #[test]
        fn the_first_fact_that_is_there_decides(facts in any_facts()) {
            let asks_person = facts.awaited.iter().any(|awaited| awaited.agent.is_user());
            let expect = match &facts {
                Facts { ended: Some(_), .. } => AgentState::Ended,
                Facts { paused: Some(_), .. } => AgentState::Paused,
                Facts { parked: Some(_), .. } => AgentState::Parked,
                Facts { approval: Some(_), .. } => AgentState::Asking,
                Facts { work: Some(_), .. } => AgentState::Ready,
                _ if asks_person => AgentState::Asking,
                Facts { awaited, .. } if awaited.is_empty() => AgentState::Idle,
                Facts { .. } => AgentState::Waiting,
            };
            let oldest = facts.awaited.first().map(|awaited| awaited.since);
            let doing = doing(facts, None);
            prop_assert_eq!(doing.state(), expect);
            if let Doing::Waiting { requests, since } = doing {
                prop_assert!(requests.len() <= MAX_AWAITED);
                prop_assert_eq!(Some(since), oldest);
            }
        }
    }
}
