//! A circuit breaker, which stops calls to a server that fails again and again. It reads no clock: the caller passes
//! the current time.

use crate::chat::CallError;
use std::time::Duration;
use tokio::time::Instant;

/// The circuit opens after this number of failures in a row. The failures of all callers count. By default, a single
/// caller makes more attempts than this number, so it can open the circuit alone.
const OPENS_AT: u32 = 5;

/// The circuit breaker of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Circuit {
    state: State,
    /// How many probes have begun.
    probes: u64,
}

#[derive(Clone, Debug)]
enum State {
    /// Calls may go to the server.
    Closed {
        /// Failures in a row since the last answer.
        failures: u32,
    },
    /// No call may go to the server before `until`.
    Open { failures: u32, until: Instant, last: CallError },
    /// One call, the probe, tests whether the server works. No other call may begin.
    Probing { failures: u32, probe: Probe, last: CallError },
}

impl Default for State {
    fn default() -> Self {
        Self::Closed { failures: 0 }
    }
}

/// The number of a probe. It distinguishes the current probe from earlier probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe(u64);

/// The state of a circuit, as a caller sees it.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// The caller may ask the server.
    Closed,
    /// Nobody may ask the server before `until`.
    Open { until: Instant, failures: u32, last: CallError },
    /// The pause is over, so the next call becomes the probe.
    Due { last: CallError },
    /// A probe is in progress.
    Probing { failures: u32, last: CallError },
}

impl Circuit {
    /// Closes the circuit. Call this when another server has replaced the old server. The numbers of the probes are not
    /// reset. Otherwise a probe of the old server could count as a probe of the new server.
    pub(crate) fn forget(&mut self) {
        self.state = State::default();
    }

    /// Makes a probe due now if the circuit is open. The circuit stays open until the probe has an answer.
    pub(crate) fn try_now(&mut self, now: Instant) {
        if let State::Open { until, .. } = &mut self.state {
            *until = now.min(*until);
        }
    }

    /// Returns the state at the time `now`.
    pub(crate) fn look(&self, now: Instant) -> Found {
        match &self.state {
            State::Closed { .. } => Found::Closed,
            State::Open { failures, until, last } if now < *until => {
                Found::Open { until: *until, failures: *failures, last: last.clone() }
            }
            State::Open { last, .. } => Found::Due { last: last.clone() },
            State::Probing { failures, last, .. } => {
                Found::Probing { failures: *failures, last: last.clone() }
            }
        }
    }

    /// Makes the next call the probe, if a probe is due.
    pub(crate) fn probe(&mut self, now: Instant) -> Option<Probe> {
        let State::Open { failures, until, last } = &self.state else { return None };
        if now < *until {
            return None;
        }
        self.probes += 1;
        let probe = Probe(self.probes);
        self.state = State::Probing { failures: *failures, probe, last: last.clone() };
        Some(probe)
    }

    /// Closes the circuit after an answer. Any answer shows that the server works.
    pub(crate) fn answered(&mut self) {
        self.state = State::default();
    }

    /// Records a failure that the server has caused. The function `pause` takes the number of failures in a row, and
    /// returns how long the server gets no calls.
    pub(crate) fn failed(
        &mut self,
        probe: Option<Probe>,
        failure: &CallError,
        now: Instant,
        pause: impl FnOnce(u32) -> Duration,
    ) {
        let failures = match &self.state {
            State::Closed { failures } => failures.saturating_add(1),
            State::Probing { failures, probe: current, .. } if probe == Some(*current) => {
                failures.saturating_add(1)
            }
            // The call began before the circuit opened, so its failure tells nothing new.
            State::Open { .. } | State::Probing { .. } => return,
        };
        if failures < OPENS_AT {
            self.state = State::Closed { failures };
            return;
        }
        // If a pause is too long for the clock, it must be a mistake, and it counts as zero.
        let until = now.checked_add(pause(failures)).unwrap_or(now);
        self.state = State::Open { failures, until, last: failure.clone() };
    }

    /// Records that a probe ended without a result. The next call becomes the probe.
    pub(crate) fn abandoned(&mut self, probe: Probe, now: Instant) {
        if let State::Probing { failures, probe: current, last } = &self.state
            && *current == probe
        {
            self.state = State::Open { failures: *failures, until: now, last: last.clone() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::FailureKind;
    use proptest::prelude::*;

    fn failure() -> CallError {
        CallError {
            kind: FailureKind::Passing,
            message: "overloaded".to_owned(),
            status: Some(503),
            retry_after: None,
        }
    }

    fn pause(failures: u32) -> Duration {
        Duration::from_secs(u64::from(failures.min(20)))
    }

    #[tokio::test(start_paused = true)]
    async fn it_opens_after_enough_failures_in_a_row_and_one_probe_closes_it() {
        let (mut circuit, now) = (Circuit::default(), Instant::now());
        for _ in 1..OPENS_AT {
            circuit.failed(None, &failure(), now, pause);
            assert!(matches!(circuit.look(now), Found::Closed));
        }
        circuit.answered();
        for _ in 0..OPENS_AT {
            assert!(matches!(circuit.look(now), Found::Closed), "an answer resets the count");
            circuit.failed(None, &failure(), now, pause);
        }
        let until = now + Duration::from_secs(5);
        assert!(matches!(circuit.look(now), Found::Open { until: at, failures: 5, .. } if at == until));
        assert_eq!(circuit.probe(now), None);
        let probe = circuit.probe(until).unwrap();
        assert_eq!(circuit.probe(until), None, "one at a time");
        circuit.failed(Some(probe), &failure(), until, pause);
        let later = until + Duration::from_secs(6);
        assert!(matches!(circuit.look(until), Found::Open { until: at, failures: 6, .. } if at == later));
        circuit.probe(later).unwrap();
        circuit.answered();
        assert!(matches!(circuit.look(later), Found::Closed));
    }

    #[derive(Clone, Debug)]
    enum Act {
        /// The given number of seconds passes.
        Wait(u64),
        /// A caller arrives.
        Come,
        /// An admitted caller gets an answer.
        Answer(usize),
        /// The call of an admitted caller fails.
        Fail(usize),
        /// An admitted caller leaves without having asked the server.
        Leave(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            (0..10_u64).prop_map(Act::Wait),
            Just(Act::Come),
            Just(Act::Come),
            any::<usize>().prop_map(Act::Answer),
            any::<usize>().prop_map(Act::Fail),
            any::<usize>().prop_map(Act::Fail),
            any::<usize>().prop_map(Act::Leave),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// A failure opens the circuit, and an answer closes it. In between, the circuit lets in only one probe at a
        /// time. However the calls end, the circuit never keeps everybody out for longer than the longest pause, unless
        /// a probe is in progress.
        #[test]
        fn while_it_is_open_one_probe_at_a_time_is_all_that_is_let_in(acts in prop::collection::vec(act(), 1..120)) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let _entered = runtime.enter();
            let mut now = Instant::now();
            let mut circuit = Circuit::default();
            // The admitted callers. If a caller is the probe, its entry contains the number of the probe.
            let mut inside: Vec<Option<Probe>> = Vec::new();
            let mut in_a_row = 0;
            for act in acts {
                match act {
                    Act::Wait(seconds) => now += Duration::from_secs(seconds),
                    Act::Come => match circuit.look(now) {
                        Found::Closed => inside.push(None),
                        Found::Due { .. } => {
                            let probe = circuit.probe(now);
                            prop_assert!(probe.is_some());
                            inside.push(probe);
                        }
                        Found::Open { until, failures, .. } => {
                            prop_assert!(failures >= OPENS_AT);
                            prop_assert!(until - now <= pause(failures));
                            prop_assert_eq!(circuit.probe(now), None);
                        }
                        Found::Probing { .. } => prop_assert_eq!(circuit.probe(now), None),
                    },
                    Act::Answer(_) | Act::Fail(_) | Act::Leave(_) if inside.is_empty() => {}
                    Act::Answer(which) => {
                        inside.swap_remove(which % inside.len());
                        circuit.answered();
                        in_a_row = 0;
                        prop_assert!(matches!(circuit.look(now), Found::Closed));
                    }
                    Act::Fail(which) => {
                        let probe = inside.swap_remove(which % inside.len());
                        circuit.failed(probe, &failure(), now, pause);
                        in_a_row += 1;
                        prop_assert!(in_a_row >= OPENS_AT || matches!(circuit.look(now), Found::Closed));
                    }
                    Act::Leave(which) => {
                        if let Some(probe) = inside.swap_remove(which % inside.len()) {
                            circuit.abandoned(probe, now);
                        }
                    }
                }
                // If the circuit waits for a probe, the probe must still be in progress. Otherwise the circuit would
                // keep all callers out for ever.
                if let State::Probing { probe, .. } = &circuit.state {
                    prop_assert!(inside.contains(&Some(*probe)), "no probe is under way");
                }
            }
        }
    }
}
