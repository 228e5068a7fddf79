//! The header `Range` (RFC 9110, section 14).

use std::ops::RangeInclusive;

/// The bytes to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Portion {
    /// All bytes.
    Whole,
    /// The bytes at these positions.
    Part(RangeInclusive<u64>),
    /// No bytes, because the requested range is outside the content.
    Outside,
}

/// Interprets a `Range` header for content of `size` bytes. A header has no effect if it is malformed or requests
/// several parts; the standard permits this. Empty content is always sent whole.
pub(super) fn portion(range: Option<&str>, size: u64) -> Portion {
    if size == 0 {
        return Portion::Whole;
    }
    let Some((unit, wanted)) = range.and_then(|range| range.split_once('=')) else { return Portion::Whole };
    let Some((first, last)) =
        wanted.trim().split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("bytes"))
    else {
        return Portion::Whole;
    };
    let end = size - 1;
    match (number(first), number(last)) {
        (Number::Is(first), Number::Is(last)) if last < first => Portion::Whole,
        (Number::Is(first), Number::Is(_) | Number::Absent) if first >= size => Portion::Outside,
        (Number::Is(first), Number::Is(last)) => Portion::Part(first..=last.min(end)),
        (Number::Is(first), Number::Absent) => Portion::Part(first..=end),
        (Number::Absent, Number::Is(0)) => Portion::Outside,
        (Number::Absent, Number::Is(many)) => Portion::Part(size.saturating_sub(many)..=end),
        (Number::Absent, Number::Absent) | (Number::Unreadable, _) | (_, Number::Unreadable) => {
            Portion::Whole
        }
    }
}

enum Number {
    Is(u64),
    Absent,
    Unreadable,
}

fn number(text: &str) -> Number {
    match text.trim() {
        "" => Number::Absent,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // A number too large for `u64` is beyond the end of any content.
            Number::Is(digits.parse().unwrap_or(u64::MAX))
        }
        _ => Number::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges() {
        let check = |range: &str, expect: Portion| assert_eq!(portion(Some(range), 10), expect, "{range:?}");
        check("bytes=0-3", Portion::Part(0..=3));
        check("bytes=4-", Portion::Part(4..=9));
        check("bytes=-3", Portion::Part(7..=9));
        check("bytes=-30", Portion::Part(0..=9));
        check("bytes=2-99999999999999999999999", Portion::Part(2..=9));
        check("Bytes = 0-0", Portion::Part(0..=0));
        check("bytes=9-9", Portion::Part(9..=9));
        check("bytes=10-", Portion::Outside);
        check("bytes=99999999999999999999999-", Portion::Outside);
        check("bytes=-0", Portion::Outside);
        check("bytes=3-2", Portion::Whole);
        check("bytes=-", Portion::Whole);
        check("bytes=0-1,4-5", Portion::Whole);
        check("bytes=+1-2", Portion::Whole);
        check("bytes=a-b", Portion::Whole);
        check("lines=0-3", Portion::Whole);
        check("", Portion::Whole);
        assert_eq!(portion(None, 10), Portion::Whole);
        for range in ["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=5-6"] {
            assert_eq!(portion(Some(range), 0), Portion::Whole, "{range:?}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_inside(range in "(bytes=)?[0-9 ,-]{0,12}", size in 0u64..1000) {
            if let Portion::Part(part) = portion(Some(&range), size) {
                prop_assert!(part.start() <= part.end() && *part.end() < size);
            }
        }
    }
}
