//! Chooses the event at which a stream begins.

/// The point at which a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// The stream begins after the event that the client knows, so the client misses nothing.
    There(i64),
    /// The stream begins after another event. The client may miss events and must be told to reload.
    Anew(i64),
}

/// Chooses the beginning of a stream for a client that requests the events after the number `after`. `oldest` is the
/// number of the oldest stored event, or `None` if all events have been deleted. `newest` is the number of the newest
/// event.
pub(super) fn begin(after: i64, oldest: Option<i64>, newest: i64) -> Begin {
    // The number just before the oldest event. If all events have been deleted, the next new event will be the oldest,
    // and `newest` is the number just before it.
    let before_oldest = oldest.map_or(newest, |oldest| oldest - 1);
    if after > newest {
        // The client knows an event that this data directory does not contain. The reason is that a backup was restored
        // or the data directory was replaced after the client had got this event.
        Begin::Anew(newest)
    } else if after > 0 && after < before_oldest {
        Begin::Anew(before_oldest)
    } else {
        // A client that sends 0 knows no event and gets all stored events.
        Begin::There(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn beginnings() {
        let check = |after, oldest, newest, expect| {
            assert_eq!(begin(after, oldest, newest), expect, "{after} {oldest:?} {newest}");
        };
        check(0, None, 0, Begin::There(0));
        check(0, Some(1), 7, Begin::There(0));
        check(0, Some(5), 7, Begin::There(0));
        check(7, Some(1), 7, Begin::There(7));
        check(3, Some(1), 7, Begin::There(3));
        check(4, Some(5), 7, Begin::There(4));
        check(3, Some(5), 7, Begin::Anew(4));
        check(1, Some(7), 7, Begin::Anew(6));
        check(8, Some(1), 7, Begin::Anew(7));
        check(1, None, 0, Begin::Anew(0));
        check(3, None, 7, Begin::Anew(7));
        check(7, None, 7, Begin::There(7));
        check(i64::MAX, Some(1), 7, Begin::Anew(7));
    }

    proptest! {
        #[test]
        fn no_event_that_is_there_is_passed_over_in_silence(
            after in 0_i64..60, oldest in 1_i64..50, more in 0_i64..50,
        ) {
            let newest = oldest + more;
            match begin(after, Some(oldest), newest) {
                Begin::There(from) => {
                    prop_assert_eq!(from, after);
                    prop_assert!(after <= newest && (after == 0 || after + 1 >= oldest));
                }
                Begin::Anew(from) => prop_assert!(from == newest || from + 1 == oldest),
            }
        }
    }
}
