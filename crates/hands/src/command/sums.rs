//! Compares what all commands of a task use together with the limits of the task. Pure.

use super::spent::Spent;
use polity_sandbox::{TaskLimits, Usage};
use polity_society::command::CommandLimit;
use std::time::Duration;

/// If the running commands together use more of a resource than a limit allows, returns two things: the index of the
/// command that uses most of this resource, and the limit. The caller ends that command.
pub(super) fn heaviest(limits: &TaskLimits, usages: &[Usage]) -> Option<(usize, CommandLimit)> {
    let over = |limit: u64, used: fn(&Usage) -> u64| {
        let sum = usages.iter().map(used).fold(0, u64::saturating_add);
        let heaviest = usages.iter().enumerate().max_by_key(|(_, usage)| used(usage));
        heaviest.filter(|_| sum > limit).map(|(index, _)| index)
    };
    let memory = over(limits.memory_bytes, |usage| usage.memory_bytes);
    let processes = || over(limits.processes, |usage| usage.processes);
    let with = |limit: CommandLimit| move |index: usize| (index, limit);
    memory.map(with(CommandLimit::TaskMemory)).or_else(|| processes().map(with(CommandLimit::TaskProcesses)))
}

/// The limits on time and output apply to the sum over all commands of a task. If a sum has reached its limit, returns
/// this limit. Then no command of the task may run any more.
pub(super) fn used_up(limits: &TaskLimits, spent: &Spent) -> Option<CommandLimit> {
    let Spent { time_ms, output_bytes } = *spent;
    let time = (time_ms >= limits.time_ms).then_some(CommandLimit::TaskTime);
    time.or((output_bytes >= limits.output_bytes).then_some(CommandLimit::TaskOutput))
}

/// Says in words that the commands of a task together have used up their time or output.
pub(super) fn in_words(limit: CommandLimit, limits: &TaskLimits) -> String {
    match limit {
        CommandLimit::TaskOutput => {
            format!("the commands of this task together have printed {} bytes", limits.output_bytes)
        }
        _ => format!("the commands of this task together have run for {} ms", limits.time_ms),
    }
}

/// The commands of a task share the time of the task, and `running` of them run now. Returns how long they can go on
/// before they have used up this time. The result is at least a millisecond. Otherwise a caller that waits for this
/// time would make no progress.
pub(super) fn time_left(limits: &TaskLimits, spent: &Spent, running: u64) -> Duration {
    let left = limits.time_ms.saturating_sub(spent.time_ms);
    Duration::from_millis((left / running.max(1)).max(1))
}

/// A command may always add this many bytes to the disk. So even if a task has reached its limit, its agents can still
/// run commands that delete files.
const LEAST_DISK: u64 = 64 << 20;

/// Returns how many bytes a command may add on disk. `limit` is the limit of one command, and `used` is the size of the
/// task's directories.
pub(super) fn disk_left(limits: &TaskLimits, limit: u64, used: u64) -> u64 {
    limit.min(limits.disk_bytes.saturating_sub(used).max(LEAST_DISK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usage() -> impl Strategy<Value = Usage> {
        (0..20_u64, 0..20_u64).prop_map(|(memory_bytes, processes)| Usage {
            memory_bytes,
            processes,
            ..Usage::default()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The loop in this test calls `heaviest` again and again, and removes each command that `heaviest` returns.
        /// The loop goes on as long as a limit is exceeded, and no longer.
        #[test]
        fn exactly_as_many_commands_end_as_exceed_the_limits(
            memory_bytes in 0..60_u64,
            processes in 0..60_u64,
            mut usages in prop::collection::vec(usage(), 0..8),
        ) {
            let limits = TaskLimits { memory_bytes, processes, ..TaskLimits::default() };
            while let Some((index, limit)) = heaviest(&limits, &usages) {
                let (sum, most, limit): (u64, _, _) = match limit {
                    CommandLimit::TaskMemory => (
                        usages.iter().map(|usage| usage.memory_bytes).sum(),
                        usages.iter().all(|usage| usage.memory_bytes <= usages[index].memory_bytes),
                        memory_bytes,
                    ),
                    _ => (
                        usages.iter().map(|usage| usage.processes).sum(),
                        usages.iter().all(|usage| usage.processes <= usages[index].processes),
                        processes,
                    ),
                };
                prop_assert!(sum > limit && most);
                usages.remove(index);
            }
            prop_assert!(usages.iter().map(|usage| usage.memory_bytes).sum::<u64>() <= memory_bytes);
            prop_assert!(usages.iter().map(|usage| usage.processes).sum::<u64>() <= processes);
        }

        /// A caller waits for `time_left` again and again. After few waits, the time of the task is used up. Then the
        /// commands have run at most a few milliseconds longer than the task permits.
        #[test]
        fn waiting_for_the_time_that_is_left_ends_when_it_is_used_up(
            time_ms in 1..10_000_u64,
            begin in 0..10_000_u64,
            running in 1..6_u64,
        ) {
            let limits = TaskLimits { time_ms, ..TaskLimits::default() };
            let mut spent = Spent { time_ms: begin, output_bytes: 0 };
            let mut waits = 0;
            while used_up(&limits, &spent).is_none() {
                let wait = u64::try_from(time_left(&limits, &spent, running).as_millis()).unwrap();
                spent.time_ms += wait * running;
                waits += 1;
            }
            prop_assert_eq!(used_up(&limits, &spent), Some(CommandLimit::TaskTime));
            prop_assert!(spent.time_ms < time_ms.max(begin) + running, "{spent:?}");
            prop_assert!(waits <= 20, "{waits}");
        }

        #[test]
        fn output_is_used_up_exactly_at_its_limit(output_bytes in 1..u64::MAX, more in any::<bool>()) {
            let limits = TaskLimits { output_bytes, ..TaskLimits::default() };
            let spent = Spent { time_ms: 0, output_bytes: if more { output_bytes } else { output_bytes - 1 } };
            prop_assert_eq!(used_up(&limits, &spent), more.then_some(CommandLimit::TaskOutput));
        }

        #[test]
        fn a_command_never_gets_more_disk_than_its_own_limit(limit: u64, disk_bytes: u64, used: u64) {
            let limits = TaskLimits { disk_bytes, ..TaskLimits::default() };
            let left = disk_left(&limits, limit, used);
            prop_assert!(left <= limit);
            prop_assert!(left >= limit.min(LEAST_DISK), "a full task can be tidied up");
            prop_assert!(used.saturating_add(left) <= disk_bytes || left <= LEAST_DISK);
        }
    }
}
