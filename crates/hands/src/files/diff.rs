//! Formats the change of a file as a unified diff, for people.

use serde_json::{Value, json};
use similar::TextDiff;
use std::time::Duration;

/// The search for the shortest diff takes at most this long. After that, a longer diff is good enough.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the change of a file as a unified diff, or an empty text if the contents are equal.
pub fn diff(old: &str, new: &str, path: &str) -> String {
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

/// Maximum number of bytes of the diff in the record of a call.
const RECORDED_BYTES: usize = 32 << 10;

/// Adds the path and the diff of a change to the evidence of its call. The record of the call keeps the evidence, so the
/// person can see what the call wrote even where no commit shows it.
pub(super) fn with_diff(mut evidence: Value, path: &str, diff: &str) -> Value {
    evidence["path"] = json!(path);
    evidence["diff"] = json!(cut(diff));
    evidence
}

/// Returns a diff that is short enough for a record. If it was cut off, it ends with `…`.
fn cut(diff: &str) -> String {
    if diff.len() <= RECORDED_BYTES {
        return diff.to_owned();
    }
    let end = (0..=RECORDED_BYTES).rev().find(|at| diff.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", &diff[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_a_diff_up_to_a_bound() {
        let kept = |diff: &str| with_diff(json!({"before": null}), "f", diff)["diff"].clone();
        assert_eq!(
            with_diff(json!({"before": null}), "f", "+x"),
            json!({"before": null, "path": "f", "diff": "+x"})
        );
        let longest = "é".repeat(RECORDED_BYTES / 2);
        assert_eq!(kept(&longest), json!(longest));
        // One byte more, so the bound is in the middle of a character.
        assert_eq!(kept(&format!("x{longest}")), json!(format!("x{}…", "é".repeat(RECORDED_BYTES / 2 - 1))));
    }

    #[test]
    fn a_change_is_shown_with_its_surroundings() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
        let expect = "--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(diff(old, new, "f"), expect);
        assert_eq!(diff(old, old, "f"), "");
        assert_eq!(diff("", "x", "f"), "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n");
    }
}
