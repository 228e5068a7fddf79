//! Finds agents that wait for each other (contract section 7: X *waits for* Y while X has an open request to Y).

use crate::id::{AgentId, MessageId};
use std::collections::{BTreeMap, BTreeSet};

/// One agent waits for the answer of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wait {
    /// The agent that waits.
    pub waits: AgentId,
    /// The party that the agent waits for.
    pub awaited: AgentId,
    /// The open request of the agent that waits.
    pub request: MessageId,
}

/// Agents that wait for each other until somebody outside the circle writes to one of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadlock {
    /// The agents in the circle. Each agent waits only for other agents in the circle.
    pub agents: Vec<AgentId>,
    /// The open requests between these agents.
    pub requests: Vec<MessageId>,
}

/// Finds the deadlocks among waiting agents.
/// The agents in `busy` have something to do: a turn, or mail that is queued or due later.
/// The person is never part of a deadlock, because the person may answer at any time.
pub fn deadlocks(waits: &[Wait], busy: &BTreeSet<AgentId>) -> Vec<Deadlock> {
    let mut awaited: BTreeMap<&AgentId, BTreeSet<&AgentId>> = BTreeMap::new();
    for wait in waits {
        awaited.entry(&wait.waits).or_default().insert(&wait.awaited);
    }
    let reached: BTreeMap<&AgentId, BTreeSet<&AgentId>> =
        awaited.keys().map(|agent| (*agent, reachable(agent, &awaited))).collect();
    let mut found: BTreeSet<Deadlock> = BTreeSet::new();
    for (agent, all) in &reached {
        // An agent can go on as soon as any party that it waits for can go on. So an agent is in a deadlock only if all
        // the parties that it waits for are stuck too: each of them waits for this agent, directly or through other
        // agents.
        let each_waits_for_it =
            |other: &&AgentId| reached.get(other).is_some_and(|back| back.contains(agent));
        let is_closed = all.contains(agent) && all.iter().all(each_waits_for_it);
        if !is_closed || all.iter().any(|other| other.is_user() || busy.contains(*other)) {
            continue;
        }
        let between = waits.iter().filter(|wait| all.contains(&wait.waits));
        let requests: BTreeSet<&MessageId> = between.map(|wait| &wait.request).collect();
        found.insert(Deadlock {
            agents: all.iter().map(|agent| (*agent).clone()).collect(),
            requests: requests.into_iter().cloned().collect(),
        });
    }
    found.into_iter().collect()
}

/// Returns the parties that an agent waits for, directly or through other agents.
fn reachable<'a>(
    agent: &AgentId,
    awaited: &BTreeMap<&'a AgentId, BTreeSet<&'a AgentId>>,
) -> BTreeSet<&'a AgentId> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&AgentId> = awaited.get(agent).into_iter().flatten().copied().collect();
    while let Some(other) = next.pop() {
        if reached.insert(other) {
            next.extend(awaited.get(other).into_iter().flatten().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waits(pairs: &[(&str, &str)]) -> Vec<Wait> {
        let wait = |(number, (waits, awaited)): (i64, &(&str, &str))| Wait {
            waits: AgentId::new(*waits),
            awaited: AgentId::new(*awaited),
            request: MessageId::from_sequence(number),
        };
        (1..).zip(pairs).map(wait).collect()
    }

    #[track_caller]
    fn check(pairs: &[(&str, &str)], busy: &[&str], expected: &[&[&str]]) {
        let busy = busy.iter().map(|id| AgentId::new(*id)).collect();
        let found = deadlocks(&waits(pairs), &busy);
        let found: Vec<Vec<&str>> =
            found.iter().map(|deadlock| deadlock.agents.iter().map(AgentId::as_str).collect()).collect();
        assert_eq!(found, expected, "{pairs:?}");
    }

    #[test]
    fn circles() {
        check(&[], &[], &[]);
        check(&[("a", "b")], &[], &[]);
        check(&[("a", "b"), ("b", "a")], &[], &[&["a", "b"]]);
        check(&[("a", "b"), ("b", "c"), ("c", "a")], &[], &[&["a", "b", "c"]]);
        // `root` waits for `a`, but nobody waits for `root`. So `root` is not part of the deadlock, and goes on when
        // `a` can go on.
        check(&[("root", "a"), ("a", "b"), ("b", "a")], &[], &[&["a", "b"]]);
        check(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")], &[], &[&["a", "b"], &["c", "d"]]);
    }

    #[test]
    fn whoever_may_still_hear_something_is_in_no_deadlock() {
        check(&[("a", "b"), ("b", "a")], &["b"], &[]);
        // `c` works, and its answer wakes `b`.
        check(&[("a", "b"), ("b", "a"), ("b", "c")], &[], &[]);
        // The person may answer at any time.
        check(&[("a", "user"), ("user", "a")], &[], &[]);
        check(&[("a", "b"), ("b", "a"), ("a", "user")], &[], &[]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// In a deadlock, every agent waits, waits only for other agents of the same deadlock, and has nothing else to
        /// do.
        #[test]
        fn nobody_in_a_deadlock_can_go_on(
            pairs in proptest::collection::vec((0usize..6, 0usize..6), 0..12),
            busy in proptest::collection::btree_set(0usize..6, 0..3),
        ) {
            const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "user"];
            let pairs: Vec<(&str, &str)> =
                pairs.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (NAMES[a], NAMES[b])).collect();
            let busy: BTreeSet<AgentId> = busy.into_iter().map(|index| AgentId::new(NAMES[index])).collect();
            let waits = waits(&pairs);
            let found = deadlocks(&waits, &busy);
            for deadlock in &found {
                for agent in &deadlock.agents {
                    prop_assert!(!busy.contains(agent) && !agent.is_user());
                    let mut of_agent = waits.iter().filter(|wait| wait.waits == *agent).peekable();
                    prop_assert!(of_agent.peek().is_some());
                    prop_assert!(of_agent.all(|wait| deadlock.agents.contains(&wait.awaited)));
                }
            }
            // For comparison, the test finds the stuck agents in another way. It removes agents that can go on, until
            // only stuck agents are left. Each of these is in a deadlock, or waits for an agent that is in one.
            let mut stuck: BTreeSet<AgentId> = waits.iter().map(|wait| wait.waits.clone()).filter(|agent| !busy.contains(agent) && !agent.is_user()).collect();
            loop {
                let before = stuck.len();
                let now = stuck.clone();
                stuck.retain(|agent| waits.iter().filter(|wait| wait.waits == *agent).all(|wait| now.contains(&wait.awaited)));
                if stuck.len() == before {
                    break;
                }
            }
            prop_assert_eq!(found.is_empty(), stuck.is_empty());
        }
    }
}
