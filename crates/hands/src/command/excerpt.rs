//! Chooses which parts of a command's output to show. Pure: reads only the beginning and the end of the output, which
//! are in memory.

use polity_sandbox::Output;

/// Maximum number of output lines in the notice of a command's end, and in the list of running commands.
const LAST_LINES: usize = 12;

/// Maximum number of output bytes in the notice of a command's end, and in the list of running commands.
const LAST_BYTES: usize = 1_500;

/// The part of an output after a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    pub(super) text: String,
    /// Some bytes in the middle of the output may not be kept in memory. This is the number of bytes that `text` lacks
    /// for this reason.
    pub(super) omitted: u64,
    /// The position from which the next call continues, in bytes from the beginning of the output.
    pub(super) next: u64,
}

/// Whether more output can follow. If it can, it may complete a character that is cut off at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    MayGrow,
    IsFinal,
}

/// Returns the output after the first `seen` bytes.
pub(super) fn since(output: &Output, seen: u64, tail: Tail) -> Fresh {
    let first_end = output.first.len() as u64;
    let last_begin = output.total_bytes.saturating_sub(output.last.len() as u64).max(first_end);
    let part = |bytes: &[u8], begin: u64| {
        let skipped = usize::try_from(seen.saturating_sub(begin)).unwrap_or(usize::MAX);
        bytes.get(skipped..).unwrap_or_default().to_vec()
    };
    let (mut first, mut last) = (part(&output.first, 0), part(&output.last, last_begin));
    let omitted = last_begin.saturating_sub(seen.max(first_end));
    if omitted == 0 {
        // No byte is missing between the two parts. They are joined, because a character may begin in `first` and
        // end in `last`.
        first.append(&mut last);
        std::mem::swap(&mut first, &mut last);
    }
    let held_back = match tail {
        Tail::IsFinal => 0,
        Tail::MayGrow => hold_back(&mut last),
    };
    let (first, last) = (String::from_utf8_lossy(&first), String::from_utf8_lossy(&last));
    let text = match omitted {
        0 => last.into_owned(),
        _ => format!("{first}\n[… {omitted} bytes left out …]\n{last}"),
    };
    Fresh { text, omitted, next: output.total_bytes.max(seen) - held_back }
}

/// The last character may be incomplete, because some of its bytes have not arrived yet. Removes the bytes of an
/// incomplete character, and returns their number.
fn hold_back(bytes: &mut Vec<u8>) -> u64 {
    let begin = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(bytes.len());
    let unfinished = std::str::from_utf8(&bytes[begin..]).is_err_and(|error| error.error_len().is_none());
    if !unfinished {
        return 0;
    }
    let held = bytes.len() - begin;
    bytes.truncate(begin);
    held as u64
}

/// Returns the last lines of an output, at most [`LAST_LINES`] lines and [`LAST_BYTES`] bytes.
pub(super) fn last_lines(output: &Output) -> String {
    let all: Vec<u8> = if output.omitted_bytes() == 0 {
        output.first.iter().chain(&output.last).copied().collect()
    } else {
        output.last.clone()
    };
    let text = String::from_utf8_lossy(&all);
    let text = text.trim_end();
    let mut begin = text.len().saturating_sub(LAST_BYTES);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    let lines: Vec<&str> = text.get(begin..).unwrap_or_default().lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kept(bytes: &[u8], first: usize, last: usize) -> Output {
        let first = first.min(bytes.len());
        let last = last.min(bytes.len() - first);
        Output {
            first: bytes[..first].to_vec(),
            last: bytes[bytes.len() - last..].to_vec(),
            total_bytes: bytes.len() as u64,
            ..Output::default()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// If `since` is called several times while the output grows, the returned texts together are equal to the
        /// output.
        #[test]
        fn looks_add_up_to_the_output(text in "[a-zé漢\n😀]{0,60}", mut cuts in prop::collection::vec(0..240_usize, 0..5)) {
            let bytes = text.as_bytes();
            cuts.retain(|cut| *cut <= bytes.len());
            cuts.sort_unstable();
            let (mut seen, mut all) = (0, String::new());
            for cut in cuts {
                let fresh = since(&kept(&bytes[..cut], 16, usize::MAX), seen, Tail::MayGrow);
                prop_assert!(fresh.next >= seen);
                all.push_str(&fresh.text);
                seen = fresh.next;
            }
            let fresh = since(&kept(bytes, 16, usize::MAX), seen, Tail::IsFinal);
            all.push_str(&fresh.text);
            prop_assert_eq!(fresh.next, bytes.len() as u64);
            prop_assert_eq!(&all, &text);
        }

        /// No byte of the output is lost: it was seen before, or is shown, or is counted as left out.
        #[test]
        fn what_is_left_out_is_counted(text in "[a-z]{0,80}", first in 0..40_usize, last in 0..40_usize, seen in 0..100_u64) {
            let output = kept(text.as_bytes(), first, last);
            let seen = seen.min(output.total_bytes);
            let fresh = since(&output, seen, Tail::IsFinal);
            let shown = fresh.text.bytes().filter(u8::is_ascii_lowercase).count() as u64;
            let words = "bytes left out".bytes().filter(u8::is_ascii_lowercase).count() as u64;
            let shown = if fresh.omitted > 0 { shown - words } else { shown };
            prop_assert_eq!(seen + shown + fresh.omitted, output.total_bytes);
        }

        #[test]
        fn last_lines_are_few_and_are_the_last(text in "[a-zé\n]{0,3000}") {
            let lines = last_lines(&kept(text.as_bytes(), 100, 5_000));
            prop_assert!(lines.lines().count() <= LAST_LINES && lines.len() <= LAST_BYTES);
            prop_assert!(text.trim_end().ends_with(&lines));
        }
    }
}
