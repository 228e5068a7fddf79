//! Formats the change of a file as a unified diff, for people.

use similar::TextDiff;
use std::time::Duration;

/// The search for the shortest diff takes at most this long. After that, a longer diff is good enough.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the change of a file as a unified diff, or an empty text if the contents are equal.
pub fn diff(old: &str, new: &str, path: &str) -> String {
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(old, new);
    diff.unified_diff().header(&format!("a/{path}"), &format!("b/{path}")).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

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
