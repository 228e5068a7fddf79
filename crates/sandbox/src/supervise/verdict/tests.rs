use std::time::Duration;

use proptest::prelude::*;

use super::{exceeded, greater};
use crate::ended::Usage;
use crate::limits::Limits;
use crate::message::Exceeded;

fn usage() -> impl Strategy<Value = Usage> {
    (0_u64..1000, 0_u64..1000, 0_u64..1000, 0_u64..1000).prop_map(
        |(memory_bytes, processes, disk_bytes, files)| Usage { memory_bytes, processes, disk_bytes, files },
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    (1_u64..1000, 1_u64..1000, 1_u64..1000, 1_u64..1000, 1_u64..1000).prop_map(
        |(timeout_ms, memory_bytes, processes, disk_bytes, files)| Limits {
            timeout_ms,
            memory_bytes,
            processes,
            output_bytes: 1,
            disk_bytes,
            files,
        },
    )
}

proptest! {
    /// A command is ended if and only if one of its values is above a limit, and the reason is a limit that it
    /// exceeds.
    #[test]
    fn a_command_ends_exactly_above_a_limit(limits in limits(), usage in usage(), elapsed in 0_u64..1000) {
        let elapsed = Duration::from_millis(elapsed);
        let above = [
            (Exceeded::Processes, usage.processes > limits.processes),
            (Exceeded::Memory, usage.memory_bytes > limits.memory_bytes),
            (Exceeded::Disk, usage.disk_bytes > limits.disk_bytes || usage.files > limits.files),
            (Exceeded::Time, elapsed >= limits.timeout()),
        ];
        match exceeded(&limits, elapsed, &usage) {
            Some(reason) => prop_assert!(above.contains(&(reason, true))),
            None => prop_assert!(above.iter().all(|(_, above)| !above)),
        }
    }

    #[test]
    fn a_peak_never_falls(one in usage(), other in usage()) {
        let peak = greater(one, other);
        prop_assert_eq!(greater(peak, one), peak);
        prop_assert_eq!(greater(peak, other), peak);
        prop_assert_eq!(peak, greater(other, one));
    }
}
